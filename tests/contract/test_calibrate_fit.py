"""A fit of rows that the model made with numbers that are known: it finds them where rows tell them apart, and says where not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from breakeven import api
from breakeven.calibration.calibrate import calibrate
from breakeven.calibration.identify import tied, undetermined
from breakeven.calibration.leave_out import LeftOut
from breakeven.calibration.own import fit_own, jackknife
from breakeven.calibration.own_pairs import with_pairs
from breakeven.draws import MEDIAN
from breakeven.evaluator import Noise
from breakeven.measured.files import read
from breakeven.measured.run import Run
from breakeven.measured.steps import Stated
from breakeven.spec.calibration import Calibration
from breakeven.spec.deployment import Deployment
from breakeven.spec.workload import Workload

TRUE = {"step.layer_s": 30e-6, "step.bandwidth_kv": 0.88, "step.bandwidth_dense": 0.8, "step.sequence_s": 35e-6}


def run_of(model: str, devices: int, batch: float, context: float, noise: float = 0.0, **values: float) -> Run:
    """A step as the model has it with numbers that are known."""
    hardware = api.hardware("h100-sxm", devices)
    engine = api.engine("vllm", "0.11", hardware.device, tensor_parallel_size=devices, enable_prefix_caching=False, max_num_seqs=1024)
    d = Deployment(model=api.model(model), hardware=hardware, engine=engine, workload=Workload(batch=batch, context_tokens=context))
    seconds = api.evaluate(replace(d, calibration=Calibration(values=values or TRUE))).tpot_s
    where = f"made.csv:{model}:{batch}:{context}"
    return Run(
        id=where,
        where=where,
        deployment=d,
        group=f"{model} | h100-sxm | vllm",
        batch_of_runs="",
        tpot_s=float(seconds) * np.exp(noise),
        ttft_s=None,
    )


def runs_of(models, batches, contexts, *, noise: float = 0.0) -> list[Run]:
    rng = np.random.default_rng(3)
    conditions = [(model, b, c) for model in models for b in batches for c in contexts]
    return [run_of(*model, b, c, noise=float(noise * rng.standard_normal())) for model, b, c in conditions]


WIDE = runs_of([("llama-3.1-8b", 1), ("llama-3.2-3b", 1), ("qwen2.5-7b", 1)], [1, 4, 16, 64, 128], [500, 4000, 16000], noise=0.01)
SWEEP = runs_of([("llama-3.1-8b", 1)], [1, 2, 4, 8], [1000], noise=0.01)


def test_numbers_that_rows_tell_apart_are_found() -> None:
    found = fit_own(WIDE)
    for name in ("step.bandwidth_kv", "step.bandwidth_dense", "step.sequence_s"):
        one = found.estimates[name]
        assert one.low < TRUE[name] < one.high, name
        assert one.value == pytest.approx(TRUE[name], rel=0.15), name
        assert one.high / one.low < one.prior_high / one.prior_low
    assert found.estimates["step.layer_s"].low < TRUE["step.layer_s"] < found.estimates["step.layer_s"].high
    assert np.median([abs(np.log(row.measured / row.predicted)) for row in found.residuals]) < 0.02


def test_a_sweep_over_batches_alone_cannot_tell_a_slow_memory_from_dear_launches() -> None:
    """Sweeping the batch at one context on one model leaves the cache's bandwidth and a sequence's cost open; other contexts close them."""
    sweep, wide = fit_own(SWEEP, neutral_ground=True), fit_own(WIDE, neutral_ground=True)
    open_ = {one.name for one in undetermined(sweep)} | {name for pair in tied(sweep) for name in (pair.first, pair.second)}
    told_by_others = {"step.bandwidth_kv", "step.sequence_s"}
    assert told_by_others <= open_
    assert told_by_others & {one.name for one in undetermined(wide)} == set()


def test_one_row_out_of_line_does_not_pull_the_others() -> None:
    odd = replace(WIDE[7], tpot_s=WIDE[7].tpot_s * 6, id="odd", where="made.csv:odd")
    with_odd, without = fit_own([*WIDE, odd]), fit_own(WIDE)
    for name in TRUE:
        assert with_odd.estimates[name].value == pytest.approx(without.estimates[name].value, rel=0.25), name
    assert max(with_odd.residuals, key=lambda row: row.measured / row.predicted).id == "odd"


def test_a_number_that_no_row_bears_on_stays_what_it_was() -> None:
    found = fit_own(SWEEP)
    for name in ("step.moe_layer_s", "step.mla_layer_s", "ttft.queue"):
        one = found.estimates[name]
        assert one.rows == 0 and one.value == pytest.approx(one.prior, rel=1e-3), name


def test_the_jackknife_of_a_mean_is_the_variance_of_the_mean() -> None:
    """Leaving one of G groups out of a mean: (G − 1)/G·Σ(θ_g − θ̄)² is s²/G."""
    logs = np.array([0.1, -0.4, 0.3, 0.0, 0.6])
    left = {str(i): {"step.layer_s": float(np.exp(np.delete(logs, i).mean()))} for i in range(len(logs))}
    found = jackknife(LeftOut(tpot=np.zeros(0), ttft=np.zeros(0), values=left), ["step.layer_s"])
    assert found[0] == pytest.approx(logs.var(ddof=1) / len(logs))


@pytest.fixture(scope="module")
def serving(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first 16 aggregated rows of each of five groups of real serving runs."""
    import csv

    with (shared / "data/silicon_e2e.csv").open(encoding="utf-8") as file:
        reader = csv.DictReader(file)
        taken: dict[tuple[str, ...], list[dict[str, str]]] = {}
        for row in reader:
            key = (row["model_path"], row["system"], row["backend"])
            if row.get("mode", "agg") == "agg" and (key in taken or len(taken) < 5):
                taken.setdefault(key, []).append(row)
    path = tmp_path_factory.mktemp("serving") / "runs.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, reader.fieldnames or [])
        writer.writeheader()
        writer.writerows(row for rows in taken.values() for row in rows[:16])
    return path


def test_real_serving_runs_give_a_calibration_with_all_levels_of_knowledge(serving) -> None:
    found = calibrate([serving], Stated(), ship="own")  # From neutral ground: what is shipped has seen these very rows.
    document = found.document
    assert document.made.groups >= 4 and document.made.rows + len(found.left_out) >= 60
    assert set(document.residual) == {"none", "few", "deployment"}
    of = {level: (d["tpot_between"] ** 2 + d["tpot_within"] ** 2) ** 0.5 for level, d in document.residual.items()}
    assert of["none"] > of["deployment"] and of["few"] >= of["deployment"]
    assert {deployment.engine for deployment in document.deployments} <= {"vllm", "sglang", "trtllm"}
    assert any(parameter.determined for parameter in document.parameters.values())


def test_pairs_of_a_lever_start_from_what_is_known_of_their_kernels_and_move_where_they_disagree(root) -> None:
    """Where the gain is what the model has, nothing moves; where fp8 gains less than it should, fp8 is a worse kernel than was thought."""
    pairs = [pair for pair in read([root / "examples/measured-cases.csv"]).sound.pairs if pair.lever == "weight_quant"]
    as_known = [replace(pair, measured=float(pair.gain(MEDIAN, Noise()))) for pair in pairs]
    same, worse = with_pairs(None, as_known)[0], with_pairs(None, [replace(pair, measured=pair.measured * 0.8) for pair in as_known])[0]
    assert same.estimates["weights.fp8.phi"].value == pytest.approx(same.estimates["weights.fp8.phi"].prior, rel=0.01)
    assert worse.estimates["weights.fp8.phi"].value < 0.98 * same.estimates["weights.fp8.phi"].value
    assert {row.quantity for row in worse.residuals} == {"gain"}


def test_what_pairs_say_stands_beside_what_rows_say(root) -> None:
    timed, pairs = fit_own(SWEEP), read([root / "examples/measured-cases.csv"]).sound.pairs
    both, _ = with_pairs(timed, pairs)
    assert both.covariance.shape == (len(both.estimates),) * 2
    assert {name: both.estimates[name] for name in timed.estimates} == dict(timed.estimates)
    assert len(both.residuals) == len(timed.residuals) + len(pairs)
    assert with_pairs(timed, ())[0] is timed
