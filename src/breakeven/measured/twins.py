"""Runs that contradict their twins or their own load: named, kept out of fits, and answered all the same. Rules over fields only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from breakeven.evaluator import evaluate
from breakeven.kernels import kv_names, weight_names
from breakeven.measured.run import Run
from breakeven.messages import Message
from breakeven.spec.calibration import Calibration
from breakeven.stats import Value

NOTHING = 1e-12
SHEET = Calibration(
    alone=True,
    values={
        **dict.fromkeys(("step.bandwidth_dense", "step.bandwidth_experts", "step.bandwidth_kv"), 1.0),
        **dict.fromkeys(("step.mfu_decode", "step.mfu_decode_experts"), 1.0),
        **dict.fromkeys(("prefill.mfu_dense", "prefill.mfu_experts", "prefill.mfu_attention", "step.link_efficiency"), 1.0),
        **dict.fromkeys(("step.layer_s", "step.mla_layer_s", "step.moe_layer_s", "step.sequence_s", "step.host_s"), NOTHING),
        **dict.fromkeys(("step.allreduce_s", "parallel.alltoall_s", "parallel.expert_imbalance", "prefill.interference"), NOTHING),
        **{
            f"weights.{kernel}.{share}": 1.0
            for kernel in weight_names()
            for share in ("phi", "delta_decode", "delta_prefill", "phi_experts")
        },
        **{f"kv.{cache}.{share}": 1.0 for cache in kv_names() for share in ("phi", "phi_narrow", "prefill")},
        **{f"kv.{cache}.layer_s": NOTHING for cache in kv_names()},
    },
)
"""A machine that reaches its sheet, whatever is shipped: what rows are left out for must not depend on what they were fitted to."""
SHEET_MARGIN = 0.7
"""Below the sheet's own time by more than shorter lengths than stated and a smaller batch than asked for would explain."""
FASTER = 1.3
"""Runs made together whose equal settings at other times took this much longer, at the median, run something their rows do not name."""
FEWEST_TWINS = 5
FLAT, FLAT_LOAD, FLAT_RUNS = 1.25, 1.9, 5
"""Runs whose time hardly moves from the tenth to the ninetieth percentile while the load grows to about twice and more, …"""
SLOWER = 1.7
"""… and is this much longer than that of like runs of the same model and device by others: launches set it, or padding."""
LIKE_LOAD, LIKE_PROMPT = 2.0, 4.0
"""Like runs have as many devices, and a load and a prompt within these factors."""
FALLS, UNSTEADY = 0.8, 0.25
"""A time per token that falls below this share of itself as the load grows, in this share of the steps from one load to the next."""


def settings(run: Run) -> tuple[object, ...]:
    """What two runs share that should take as long: model shape, device, engine, split, format and load."""
    d, e, w = run.deployment, run.deployment.engine, run.deployment.workload
    split = (e.tensor_parallel_size, e.data_parallel_size, e.enable_expert_parallel)
    return (run.group, split, e.quantization, w.input_tokens, w.output_tokens, w.concurrency, d.hardware.count)


def doubted(runs: Sequence[Run]) -> list[Run]:
    """The runs with their doubts: the first that applies."""
    return _unsteady(_flat(_unnamed(_impossible(_sums(_copies(list(runs)))))))


def _copies(runs: list[Run]) -> list[Run]:
    """One run exported twice has the same settings and the same times to the last digit."""
    seen: set[tuple[object, ...]] = set()
    found = []
    for run in runs:
        key = (*settings(run), run.tpot_s, run.ttft_s)
        found.append(replace(run, doubt=Message("runs.doubt_copy", {})) if key in seen else run)
        seen.add(key)
    return found


def _sums(runs: list[Run]) -> list[Run]:
    """Widths that no tensor group has are the devices of several workers together."""
    doubt = Message("runs.doubt_total", {})
    return [replace(run, doubt=doubt) if run.doubt is None and run.total else run for run in runs]


def _impossible(runs: list[Run]) -> list[Run]:
    """Times well below those of a machine that reaches its sheet in everything and starts kernels for nothing."""
    return [
        replace(run, doubt=Message("runs.doubt_impossible", {}))
        if run.doubt is None and run.tpot_s < SHEET_MARGIN * float(evaluate(replace(run.deployment, calibration=SHEET)).tpot_s)
        else run
        for run in runs
    ]


def _unnamed(runs: list[Run]) -> list[Run]:
    """Runs made together that are faster than all their twins by more than noise: speculation that no column names, most likely."""
    times: dict[tuple[object, ...], dict[str, list[float]]] = {}
    for run in runs:
        if run.doubt is None:
            times.setdefault(settings(run), {}).setdefault(run.batch_of_runs, []).append(run.tpot_s)
    ratios: dict[str, list[float]] = {}
    for batches in times.values():
        for name, own in batches.items():
            others = [t for other, found in batches.items() if other != name for t in found]
            if others:
                ratios.setdefault(name, []).append(float(np.median(others) / np.median(own)))
    fast = {name for name, found in ratios.items() if len(found) >= FEWEST_TWINS and float(np.median(found)) > FASTER}
    return [
        replace(run, doubt=Message("runs.doubt_faster_than_twins", {"ratio": float(np.median(ratios[run.batch_of_runs]))}))
        if run.doubt is None and run.batch_of_runs in fast
        else run
        for run in runs
    ]


def _made_together(runs: list[Run]) -> list[list[int]]:
    """Places of runs of one version, date and split that nothing speaks against yet."""
    found: dict[tuple[object, ...], list[int]] = {}
    for place, run in enumerate(runs):
        e = run.deployment.engine
        if run.doubt is None:
            split = (e.tensor_parallel_size, e.data_parallel_size, e.enable_expert_parallel)
            found.setdefault((run.batch_of_runs, *split), []).append(place)
    return list(found.values())


def _flat(runs: list[Run]) -> list[Run]:
    """Steps that take as long whatever is in them, and long: no shape tells how long."""
    found = list(runs)
    for places in _made_together(runs):
        times = np.array([runs[place].tpot_s for place in places])
        loads = np.array([runs[place].deployment.workload.concurrency for place in places], dtype=float)
        still = float(np.quantile(times, 0.9) / np.quantile(times, 0.1)) < FLAT
        if len(places) >= FLAT_RUNS and still and loads.max() >= FLAT_LOAD * loads.min():
            ratio = _over_others(runs, places)
            if ratio is not None and ratio > SLOWER:
                for place in places:
                    found[place] = replace(runs[place], doubt=Message("runs.doubt_flat", {"ratio": ratio}))
    return found


def _over_others(runs: list[Run], places: list[int]) -> float | None:
    """Median time over that of like runs of other engines, versions and dates; None without any."""
    ratios = [
        runs[place].tpot_s / other.tpot_s
        for place in places
        for other in runs
        if other.doubt is None and other.batch_of_runs != runs[place].batch_of_runs and _like(runs[place], other)
    ]
    return float(np.median(ratios)) if ratios else None


def _like(a: Run, b: Run) -> bool:
    """The same model on as many of the same devices, at about the same load."""
    one, two = a.deployment, b.deployment
    same = a.group.split(" | ")[:2] == b.group.split(" | ")[:2] and one.hardware.count == two.hardware.count
    return (
        same
        and _within(one.workload.concurrency, two.workload.concurrency, LIKE_LOAD)
        and _within(one.workload.input_tokens, two.workload.input_tokens, LIKE_PROMPT)
    )


def _within(a: Value | None, b: Value | None, factor: float) -> bool:
    ratio = float(np.asarray(a) / np.asarray(b))
    return 1.0 / factor <= ratio <= factor


def _unsteady(runs: list[Run]) -> list[Run]:
    """Runs whose time per token falls and rises again as the load grows, at equal lengths: not one machine in one state."""
    found = list(runs)
    for places in _made_together(runs):
        steps = [ratio for of in _by_lengths(runs, places) for ratio in of]
        if len(steps) >= FLAT_RUNS and float(np.mean(np.array(steps) < FALLS)) >= UNSTEADY:
            for place in places:
                found[place] = replace(runs[place], doubt=Message("runs.doubt_unsteady", {}))
    return found


def _by_lengths(runs: list[Run], places: list[int]) -> list[list[float]]:
    """Ratios of the times at neighbouring loads, of each pair of lengths."""
    curves: dict[tuple[object, ...], dict[float, list[float]]] = {}
    for place in places:
        w = runs[place].deployment.workload
        load = float(np.asarray(w.concurrency))
        curves.setdefault((w.input_tokens, w.output_tokens), {}).setdefault(load, []).append(runs[place].tpot_s)
    medians = [[float(np.median(curve[load])) for load in sorted(curve)] for curve in curves.values()]
    return [[b / a for a, b in pairwise(curve)] for curve in medians]
