"""Measured steps over width against what was measured beside them: a curve of one's own machine beats a roofline with priors."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from breakeven import api, catalog
from breakeven.measured.curves import curves_of
from breakeven.measured.lines import Table, read_table
from breakeven.measured.step_forms import form_of
from breakeven.measured.steps import Stated, runs_of_steps, steps_of
from breakeven.spec.calibration import Calibration, StepCurve
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Speculative
from breakeven.spec.hardware import Hardware
from breakeven.spec.workload import Acceptance, Workload

# The machine of real-engines.md: two cores that stream 31 GB/s. Its compute rate is not told: half a TFLOP/s is above two AVX2 cores.
MACHINE = 'bandwidth_bytes_per_s = 31e9\nmemory_bytes = 16e9\nfamily = "cpu"\nmatmul_flops = {bf16 = 500e9, fp16 = 500e9, int8 = 1000e9}\n'
TARGET, DRAFT = "smollm2-135m", "two-layers"
OUTPUT = 48
Cell = tuple[str, int]


@pytest.fixture(scope="module")
def folders(root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """The machine and the draft (the first two of thirty layers) as entries of one's own."""
    folder = tmp_path_factory.mktemp("mine")
    for kind in ("hardware", "models"):
        (folder / kind).mkdir()
    (folder / "hardware/two-cores.toml").write_text(MACHINE)
    entry = (root / f"src/breakeven/catalog/models/{TARGET}.toml").read_text()
    entry = re.sub(r"(?m)^(hf_ids|aliases) = .*$", "", entry).replace("layers = 30", "layers = 2")
    for name, parameters in (("attention", 26542080), ("mlp", 79626240)):
        assert f"{name} = {parameters}" in entry
        entry = entry.replace(f"{name} = {parameters}", f"{name} = {parameters // 15}")
    (folder / f"models/{DRAFT}.toml").write_text(entry.replace("other = 35136", "other = 2880"))
    return (folder,)


@pytest.fixture(scope="module")
def runs(shared: Path) -> Table:
    return read_table(shared / "data/engine_cpu.csv")


def curve_of(table: Table, named: str, model: str, folders: tuple[Path, ...], setting: str | None = None) -> StepCurve:
    rows = [row for row in table.rows if (row.fields["model"], row.fields["lever"]) == (named, "concurrency_quiet")]
    if setting is not None:
        rows = [replace(row, fields={**row.fields, "setting": setting}) for row in rows]
    steps, _ = steps_of([replace(table, rows=tuple(rows))], Stated(model=model, device="two-cores", folders=folders))
    ((curve),) = (drawn.curve for drawn in curves_of(steps))
    step = steps[0].deployment
    return StepCurve(model=step.model, engine=step.engine, context_tokens=curve.context_tokens, rows=curve.rows, step_s=curve.step_s)


def cells(table: Table) -> Mapping[Cell, Mapping[str, float]]:
    """Every speculating run of llama.cpp: its setting and streams to its metrics."""
    found: dict[Cell, dict[str, float]] = {}
    for row in table.rows:
        if (row.fields["lever"], row.fields["engine"]) == ("spec_decode", "llama.cpp"):
            key = (row.fields["setting"], int(row.fields["concurrency"]))
            found.setdefault(key, {})[row.fields["metric"]] = float(row.fields["value_median"])
    return found


def gain(d: Deployment, metrics: Mapping[str, float], draft: str, models: Mapping[str, object]) -> float:
    rounds = metrics["spec_num_drafts"]
    k = round(metrics["draft_n"] / rounds)
    spec = Speculative(method="draft_model", num_speculative_tokens=k, model="draft")
    accepted = Acceptance(length=1 + metrics["draft_n_accepted"] / rounds)
    on = replace(
        d,
        engine=replace(d.engine, speculative=spec),
        drafts={"draft": models[draft]},
        workload=replace(d.workload, acceptance=accepted),
    )
    return float(api.evaluate(d).tpot_s / api.evaluate(on).tpot_s)


def test_llama_cpp_curves_have_the_sign_of_every_speculating_run(runs, folders) -> None:
    """12 of 12 signs, and nearer than the roofline of the same machine: steps themselves vary by 1.2 between repetitions."""
    target = curve_of(runs, "smol-F16", TARGET, folders)
    drafts = curve_of(runs, "draft2L-Q4_0", DRAFT, folders, setting="weights=Q4_0")
    same = replace(catalog.load("models", TARGET), name="the target itself")
    known = Calibration(values={}, curves=(target, drafts, replace(target, model=same)))
    device = catalog.load("hardware", "two-cores", folders)
    models = {"draftSame_k3": same}
    errors: dict[str, list[float]] = {"curve": [], "roofline": []}
    signs = []
    for (setting, streams), metrics in sorted(cells(runs).items()):
        settings = dict(part.split("=") for part in setting.split(";"))
        if settings["spec"] == "off":
            continue
        text = settings["text"]
        off = cells(runs)[f"target=F16;spec=off;text={text}", streams]
        measured = off["tpot_mean"] / metrics["tpot_mean"]
        context = (24.0 if text == "rand" else 56.0) + OUTPUT / 2
        engine = replace(target.engine, max_num_seqs=32)
        load = Workload(batch=float(streams), context_tokens=context)
        d = Deployment(model=target.model, hardware=Hardware(device=device, count=1), engine=engine, workload=load)
        draft = settings["spec"] if settings["spec"] in models else DRAFT
        for name, calibration in (("curve", known), ("roofline", None)):
            found = gain(replace(d, calibration=calibration), metrics, draft, {**models, DRAFT: drafts.model})
            errors[name].append(abs(math.log(measured / found)))
            if name == "curve":
                signs.append((measured > 1) == (found > 1))
    assert (len(signs), sum(signs)) == (12, 12)
    assert np.median(errors["curve"]) < 0.18
    assert np.median(errors["curve"]) < np.median(errors["roofline"])


def test_a_curve_is_its_points_at_their_conditions(runs, folders) -> None:
    curve = curve_of(runs, "smol-F16", TARGET, folders)
    device = catalog.load("hardware", "two-cores", folders)
    load = Workload(batch=np.array(curve.rows), context_tokens=curve.context_tokens)
    d = Deployment(
        model=curve.model,
        hardware=Hardware(device=device, count=1),
        engine=curve.engine,
        workload=load,
        calibration=Calibration(values={}, curves=(curve,)),
    )
    point = api.evaluate(d)
    np.testing.assert_allclose(point.step_s / point.time_factor, curve.step_s, rtol=1e-12)
    assert curve.step_s[1] > 1.8 * curve.step_s[0], "the curve is a staircase with a step at 2"


def test_splitwise_rows_are_steps_and_curves_and_its_copies_are_left_out(shared) -> None:
    table = read_table(shared / "data/step_time_splitwise.csv")
    steps, left_out = steps_of([table])
    flagged = [row for row in table.rows if row.fields["quality_flag"] != "ok"]
    assert (len(steps), len(left_out)) == (len(table.rows) - len(flagged), len(flagged))
    assert {row.reason.key for row in left_out} == {"steps.flagged"}
    curves = [drawn.curve for drawn in curves_of(steps)]
    assert {(c.model, c.device, c.tensor_parallel_size) for c in curves} >= {
        ("llama-2-70b", "h100-sxm", 8),
        ("bloom-176b", "a100-sxm-80", 8),
    }
    runs = runs_of_steps(steps)
    assert all(run.tpot_s == step.step_s for run, step in zip(runs, steps, strict=True))


def test_published_speeds_of_static_batches_are_steps(shared) -> None:
    table = read_table(shared / "data/step_time_misc.csv")
    steps, left_out = steps_of([table])
    assert len(steps) + len(left_out) == len(table.rows)
    one = next(step for step in steps if step.where.endswith(":2"))
    assert one.step_s == pytest.approx(1 / 72.79) and one.context_tokens == 256
    assert one.deployment.engine.quantization == "q4_k_m" and one.deployment.hardware.device.name == "rtx-3070"


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("step_time_splitwise", "splitwise"),
        ("step_time_misc", "rates"),
        ("engine_cpu", "engine runs"),
        ("silicon_e2e", None),
        ("lever_points", None),
    ],
)
def test_each_file_is_told_by_its_columns(shared, name, form) -> None:
    found = form_of(read_table(shared / f"data/{name}.csv").columns)
    assert (found.name if found else None) == form
