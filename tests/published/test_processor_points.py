"""Steps of real engines on a processor at streams and contexts that were in no fit: what a calibration by a grid is worth there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from breakeven import api
from breakeven.calibration.calibrate import CalibrationRows, calibrated
from breakeven.measured.curves import curves_of
from breakeven.measured.lines import Table, read_table
from breakeven.measured.row import Row
from breakeven.measured.step import Step
from breakeven.measured.steps import Stated, runs_of_steps, steps_of
from breakeven.origin.calibrated import applied

# The machine of real-engines.md: two cores that stream 31 GB/s, and multiply at 200 GFLOP/s (a probe of such a machine).
MACHINE = 'bandwidth_bytes_per_s = 31e9\nmemory_bytes = 16e9\nfamily = "cpu"\nmatmul_flops = {bf16 = 200e9, fp16 = 200e9}\n'
LIMIT = 0.12


@pytest.fixture(scope="module")
def stated(tmp_path_factory: pytest.TempPathFactory) -> Stated:
    folder = tmp_path_factory.mktemp("mine")
    (folder / "two-cores.toml").write_text(MACHINE)
    return Stated(model="smollm2-135m", device="two-cores", folders=(folder,))


@pytest.fixture(scope="module")
def groups(shared: Path, stated: Stated) -> dict[tuple[str, str, str], list[Step]]:
    """Steps by engine, lever and setting; the two-layer draft is another model."""
    table = read_table(shared / "data/engine_cpu.csv")
    found: dict[tuple[str, str, str], list[Step]] = {}
    for row in table.rows:
        kept = row.fields["lever"] in ("concurrency", "concurrency_quiet", "kv_type") and row.fields["model"] != "draft2L-Q4_0"
        if kept and row.fields["metric"] == "chunk_step_time":
            key = (row.fields["engine"], row.fields["lever"], row.fields["setting"])
            found.setdefault(key, []).extend(step_of(table, row, stated))
    return {key: steps for key, steps in found.items() if len(steps) >= 5}


def step_of(table: Table, row: Row, stated: Stated) -> list[Step]:
    """Runs over types of the cache name their weights in the name of the model alone."""
    if row.fields["lever"] == "kv_type":
        row = replace(row, fields={**row.fields, "setting": f"weights=Q4_0;{row.fields['setting']}"})
    steps, skipped = steps_of([replace(table, rows=(row,))], stated)
    assert not skipped, [one.reason for one in skipped]
    return steps


def errors(seen: Sequence[Step], held: Sequence[Step]) -> list[float]:
    found = calibrated(CalibrationRows(runs=tuple(runs_of_steps(seen)), curves=tuple(curves_of(seen))), "a test")
    told = []
    for step in held:
        known = replace(step.deployment, calibration=applied(found.document, step.deployment, "a test"))
        told.append(float(api.evaluate(known).tpot_s) / step.step_s - 1.0)
    return told


def test_points_between_and_beyond_the_grid_are_within_twelve_per_cent_in_the_median(groups) -> None:
    """Streams of 4 and 16, and contexts of 512, 2048 and 4096 tokens, by 1, 2, 8 and 32 streams and by 128 and 1024 tokens."""
    missed: list[float] = []
    for (_, lever, _), steps in groups.items():
        held = [step for step in steps if is_held(step, lever)]
        missed += errors([step for step in steps if step not in held], held)
    assert len(missed) >= 20
    assert np.median(np.abs(missed)) < LIMIT, sorted(missed)


def is_held(step: Step, lever: str) -> bool:
    if lever == "kv_type":
        return not any(abs(step.context_tokens - seen) < 100 for seen in (128, 1024))
    return step.width in (4.0, 16.0)


def test_the_cache_s_share_of_bandwidth_is_found_for_each_of_its_types(groups) -> None:
    """llama.cpp reads a cache of 4 bits more slowly than one of 16 by its bytes, and neither near what the memory gives."""
    share = {}
    for (_, lever, setting), steps in groups.items():
        if lever == "kv_type":
            fit = calibrated(CalibrationRows(runs=tuple(runs_of_steps(steps)), curves=tuple(curves_of(steps))), "a test").fit
            share[setting] = fit.estimates["step.bandwidth_kv"]
    assert set(share) == {"kv=f16", "kv=q8_0", "kv=q4_0"}
    assert share["kv=q4_0"].value < share["kv=q8_0"].value < share["kv=f16"].value < 0.4
    assert all(one.high / one.low < 3.0 for one in share.values())
