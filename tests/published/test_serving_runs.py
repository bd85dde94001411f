"""Time per token of whole serving runs that others measured, in a closed loop at the client's concurrency, uncalibrated.

Floors are a little looser than what the priors reach today (12.5 % median, 40 % at the 90th percentile over 1,879 rows; a fit of these
rows with each one's own group left out reaches 14.5 and 44 %). Bettering them is the calibration's work.

The rows are cleaned as their publishers' encoding needs: parallel labels of mixtures lie, one run is exported twice, and some
rows run speculation unlabelled. Rows with attention over data-parallel ranks, and rows of two pools, are told apart.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import exp, log
from pathlib import Path

import numpy as np
import pytest

from breakeven import catalog
from breakeven.evaluator import evaluate
from breakeven.spec.deployment import Deployment
from breakeven.spec.disaggregation import Disaggregation, PrefillPool
from breakeven.spec.engine import Engine
from breakeven.spec.hardware import Hardware
from breakeven.spec.model import Model
from breakeven.spec.workload import Workload
from breakeven.stats import Array

Row = Mapping[str, str]
ModelOf = Callable[[str], Model | None]
NEEDED = ("silicon_tpot_ms", "silicon_ttft_ms", "concurrency", "isl", "osl")
DEVICES = {"h100_sxm": "h100-sxm", "h200_sxm": "h200-sxm", "b200_sxm": "b200-sxm", "b300_sxm": "b300-sxm"}
RACKS = {"gb200": "gb200", "gb300": "gb300"}
"""Racks of which only runs over two pools are taken."""
WEIGHTS = {"fp8": "fp8", "fp8_block": "fp8", "nvfp4": "nvfp4", "fp4": "nvfp4", "int4_wo": "int4", "": None}
SAME_RUN = (
    "backend",
    "backend_version",
    "system",
    "precision",
    "isl",
    "osl",
    "concurrency",
    "tp_size",
    "moe_tp_size",
    "moe_ep_size",
    "attention_dp_size",
    "silicon_ttft_ms",
    "silicon_tpot_ms",
)


@dataclass(frozen=True, kw_only=True)
class Run:
    """A measured run, and ln(measured/predicted) of its two times."""

    group: str
    mixture: bool
    tpot: float
    ttft: float


def devices(row: Row) -> int | None:
    """Devices of a run with tensor parallelism; None where attention runs over data-parallel ranks or the label makes no sense."""
    tp, dp, moe_tp, moe_ep = (int(row[name] or 1) for name in ("tp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size"))
    experts = max(moe_tp, 1) * max(moe_ep, 1)
    if dp <= 1:
        return tp if experts in (1, tp) else {(64, 8, 8): 8, (16, 4, 4): 4}.get((tp, moe_tp, moe_ep))
    # vLLM's plain TP with experts in parallel is written as if there were ranks of data; runs with and without agree.
    return tp if tp == dp and experts == tp * dp else None


def ranks(row: Row) -> int | None:
    """Devices, and as many ranks, of a run whose attention is data parallel; None where it is not, or the label makes no sense."""
    tp, dp, moe_tp, moe_ep = (int(row[name] or 1) for name in ("tp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size"))
    if tp != 1 or dp <= 1:
        return None
    return {(64, 8, 8): 8, (16, 4, 4): 4}.get((dp, moe_tp, moe_ep), dp if moe_tp * moe_ep == dp else None)


def speculates(row: Row) -> bool:
    """TensorRT-LLM runs of DeepSeek that draft without saying so: 1.6 times as fast as equal runs days apart."""
    version, deepseek = row["backend_version"], "DeepSeek" in row["model_path"]
    dated = version == "1.1.0rc2.post2" and row["measured_date"] == "2026-01-14"
    return row["backend"] == "trtllm" and deepseek and (version == "1.2.0rc6.post3" or dated)


def is_slow_era(row: Row) -> bool:
    """Runs without CUDA graphs (85 ms at any load): of a prior of their own."""
    return row["backend"] == "trtllm" and row["backend_version"].startswith("1.3") and "R1" in row["model_path"]


def rows(shared: Path, devices_of: Callable[[Row], int | None] = devices) -> Iterator[tuple[Row, int]]:
    seen: set[tuple[str, ...]] = set()
    with (shared / "data" / "silicon_e2e.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["mode"] != "agg" or row["system"] not in DEVICES or not all(row[name] for name in NEEDED):
                continue
            count, run = devices_of(row), tuple(row[name] for name in SAME_RUN)
            if count is None or run in seen or speculates(row) or is_slow_era(row):
                continue
            seen.add(run)
            yield row, count


def deployment(row: Row, count: int, model: Model) -> Deployment:
    weights = "mxfp4" if "gpt-oss" in row["model_path"] else WEIGHTS[row["gemm_quant_mode"] or row["precision"]]
    # Not recorded: the cache format. Eight bits with 8- and 4-bit checkpoints is what their capacity shows.
    engine = Engine(
        name=row["backend"],
        version=(row["backend_version"] or "main") if row["backend"] == "vllm" else "1.0",
        tensor_parallel_size=count,
        max_num_seqs=4096,
        quantization=weights,
        kv_cache_dtype="bf16" if weights in (None, "int4") else "fp8",
        enable_prefix_caching=False,
        enable_chunked_prefill=True,
        kv_reserve="whole" if row["backend"] == "trtllm" else "grow",
        gpu_memory_utilization=0.93,
        runtime_reserve_bytes=3e9,
    )
    return Deployment(
        model=replace(model, stored={}, kv_scheme=None),
        hardware=Hardware(device=catalog.load("hardware", (DEVICES | RACKS)[row["system"]]), count=count),
        engine=engine,
        workload=Workload(input_tokens=float(row["isl"]), output_tokens=float(row["osl"]), concurrency=float(row["concurrency"])),
    )


@pytest.fixture(scope="module")
def runs(shared: Path, model_of: ModelOf) -> list[Run]:
    found = []
    for row, count in rows(shared):
        model = model_of(row["model_path"])
        if model is None:
            continue
        point = evaluate(deployment(row, count, model))
        assert point.fits, "a run that ran refutes a ledger that says it cannot"
        found.append(
            Run(
                group=f"{model.name} {row['system']} {row['backend']}",
                mixture=model.experts is not None,
                tpot=log(float(row["silicon_tpot_ms"]) * 1e-3 / float(point.tpot_s)),
                ttft=log(float(row["silicon_ttft_ms"]) * 1e-3 / float(np.asarray(point.ttft_s))),
            )
        )
    return found


def errors_over(pairs: list[tuple[Row, Deployment]]) -> Array:
    found = [float(row["silicon_tpot_ms"]) * 1e-3 / float(evaluate(d).tpot_s) for row, d in pairs]
    return np.log(np.array(found))


def test_runs_with_data_parallel_attention_are_nearer_as_what_they_are(shared: Path, model_of: ModelOf) -> None:
    # Gained: 31 runs. Today 10.8 % median (18.1 % as tensor parallelism).
    as_tensor, as_ranks = [], []
    for row, count in rows(shared, ranks):
        model = model_of(row["model_path"])
        if model is None:
            continue
        d = deployment(row, count, model)
        whole = int(row["moe_ep_size"] or 1) > 1
        engine = replace(d.engine, tensor_parallel_size=1, data_parallel_size=count, enable_expert_parallel=whole)
        as_tensor.append((row, d))
        as_ranks.append((row, replace(d, engine=engine)))
    plain, found = errors_over(as_tensor), errors_over(as_ranks)
    assert len(found) >= 31
    assert percent(found, 0.5) < 14.0 < percent(plain, 0.5)
    assert abs(float(np.median(found))) < 0.22


def test_runs_with_whole_experts_are_not_further_off_at_the_tail(shared: Path, model_of: ModelOf) -> None:
    # 413 runs. Today 16.2 and 55.0 %; as parts of every expert 15.9 and 56.0 %: the fit sees a tenth of the imbalance of even routing.
    parted, whole = [], []
    for row, count in rows(shared):
        model = model_of(row["model_path"])
        if model is not None and model.experts is not None and int(row["moe_ep_size"] or 1) > 1:
            d = deployment(row, count, model)
            parted.append((row, d))
            whole.append((row, replace(d, engine=replace(d.engine, enable_expert_parallel=True))))
    one, two = errors_over(parted), errors_over(whole)
    assert len(two) > 400
    assert percent(two, 0.9) < percent(one, 0.9) and percent(two, 0.5) < 20.0


def side(row: Row, name: str, mixture: bool) -> tuple[int, dict[str, object]] | None:
    """Devices of a pool and how they are split; None where its workers are not stated or the label makes no sense."""
    workers, tp, dp, moe_tp, moe_ep = (
        int(row[f"{name}_{key}"] or 0) for key in ("num_workers", "tp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")
    )
    group = max(moe_tp, 1) * max(moe_ep, 1) if mixture else tp
    known = {(1, group): (1, group), (group, group): (1, group), (group, 1): (group, 1), (group, 0): (group, 1)}
    split = known.get((tp, dp)) or ((tp, dp) if tp * dp == group else None)
    if not workers or split is None:
        return None
    sizes = {"tensor_parallel_size": split[0], "data_parallel_size": split[1] if mixture else 1}
    return workers * split[0] * split[1], {**sizes, "enable_expert_parallel": mixture and moe_ep > 1}


def pooled(shared: Path, model_of: ModelOf) -> Iterator[tuple[Row, Deployment]]:
    seen: set[tuple[str, ...]] = set()
    with (shared / "data" / "silicon_e2e.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            model = model_of(row["model_path"]) if row["mode"] == "disagg" and all(row[name] for name in NEEDED) else None
            run = tuple(value for key, value in row.items() if key not in ("id", "measured_date", "origin", "image"))
            if model is None or row["system"] not in (*DEVICES, *RACKS) or run in seen:
                continue
            seen.add(run)
            mixture = model.experts is not None
            prompts, tokens = side(row, "prefill", mixture), side(row, "decode", mixture)
            if prompts is not None and tokens is not None:
                d = deployment(row, tokens[0], model)
                pool = Disaggregation(prefill=PrefillPool(count=prompts[0], **prompts[1]))
                yield row, replace(d, engine=replace(d.engine, **tokens[1]), disaggregation=pool)


def test_runs_over_two_pools_are_nearer_as_what_they_are(shared: Path, model_of: ModelOf) -> None:
    # Gained: 264 runs. Today 19.4 and 47 %; with the prompts beside the tokens of the decode pool 36 and 124 %.
    pairs = list(pooled(shared, model_of))
    two, one = errors_over(pairs), errors_over([(row, replace(d, disaggregation=None)) for row, d in pairs])
    assert len(two) >= 250
    assert percent(two, 0.5) < 25.0 < 30.0 < percent(one, 0.5)
    assert percent(two, 0.9) < 60.0 < 100.0 < percent(one, 0.9)


def percent(errors: Array, quantile: float) -> float:
    return 100 * (exp(float(np.quantile(np.abs(errors), quantile))) - 1)


def test_the_rows_are_read(runs: list[Run]) -> None:
    assert len(runs) > 1800 and len({run.group for run in runs}) > 25


@pytest.mark.parametrize(("kind", "median", "ninetieth"), [("all", 15.0, 48.0), ("dense", 10.0, 32.0), ("mixture", 20.0, 58.0)])
def test_time_per_token_of_serving_runs(runs: list[Run], kind: str, median: float, ninetieth: float) -> None:
    # Today: all 12.5 and 40 %, dense 7.2 and 25 %, mixtures 16.7 and 49 %.
    errors = np.array([run.tpot for run in runs if kind == "all" or run.mixture == (kind == "mixture")])
    assert percent(errors, 0.5) <= median and percent(errors, 0.9) <= ninetieth, (percent(errors, 0.5), percent(errors, 0.9))


def test_time_per_token_is_not_systematically_off(runs: list[Run]) -> None:
    assert abs(float(np.median([run.tpot for run in runs]))) < 0.08


def test_the_offset_between_deployments_is_the_one_the_draws_have(runs: list[Run]) -> None:
    offsets = [float(np.median([run.tpot for run in runs if run.group == group])) for group in {run.group for run in runs}]
    within = [run.tpot - float(np.median([r.tpot for r in runs if r.group == run.group])) for run in runs]
    assert 0.10 < float(np.std(offsets)) < 0.34, "the prior draws it with 0.24"
    assert 1.48 * float(np.median(np.abs(within))) < 0.15, "the prior draws it with 0.10"


def test_time_to_first_token_of_serving_runs(runs: list[Run]) -> None:
    # Today 28 % median (fits: 30 % left out). The tail is warm-up, batching limits and percentiles that are not recorded.
    assert percent(np.array([run.ttft for run in runs]), 0.5) <= 35.0
