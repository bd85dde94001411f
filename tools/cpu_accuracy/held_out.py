"""A running engine calibrated over one grid, and measured over another: what was predicted of the second, and what it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from breakeven import api
from breakeven.calibration import document
from breakeven.calibration.calibrate import Calibrated
from breakeven.calibration.driven import salt
from breakeven.calibration.points import MeasuredPoint, points_of
from breakeven.driving.grid import Bounds, plan
from breakeven.driving.running_engine import RunningEngine, StatedEngine
from breakeven.driving.tour import Tour, tour
from breakeven.endpoint import Endpoint
from breakeven.use_cases.running_engine import running_engine
from cpu_accuracy.closed_loop import Loop, loop


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Streams and contexts; nothing of the held-out ones is in the fit."""

    widths: Sequence[int]
    contexts: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A point that was in no fit."""

    width: int
    context_tokens: float
    predicted_s: float
    measured_s: float
    apart: float
    """Longest over shortest round of what was measured."""
    beyond: bool
    """Whether it lies outside the widths or the contexts of the fit."""

    @property
    def error(self) -> float:
        return self.predicted_s / self.measured_s - 1.0


@dataclass(frozen=True, kw_only=True)
class Held:
    """A calibration and the points it was tried on."""

    calibrated: Calibrated
    compared: tuple[Compared, ...]
    fit_load: tuple[float | None, float | None]
    held_load: tuple[float | None, float | None]
    """Of the machine, before and after each of the two loads."""
    drift: float
    """Points of the fit measured once more after all others, over what they took in the fit: how far the machine itself has moved."""
    loops: tuple[Loop, ...]
    """Clients that come and go."""
    held_input_tokens: int
    held_output_tokens: int
    """What was sent and came back while the held-out points were measured."""

    def median_error(self) -> float:
        return median(abs(one.error) for one in self.compared)

    def worst(self) -> Compared:
        return max(self.compared, key=lambda one: abs(one.error))


def held_out(
    url: str,
    flags: Mapping[str, str],
    folder: Path,
    *,
    fit: Grid,
    held: Grid,
    bounds: Bounds,
    name: str,
    launch: str | None = None,
    clients: Sequence[int] = (),
) -> Held:
    """Calibrate on one grid, keep the file in ``folder``, and measure the other grid on the same engine afterwards."""
    stated = StatedEngine(flags=flags, launch=launch)
    devices = (folder / "devices",)
    found = api.calibrate_engine(
        url, allow_load=True, stated=stated, widths=fit.widths, contexts=fit.contexts, bounds=bounds, catalog_dirs=devices
    )
    file = folder / f"{name}.toml"
    file.write_text(document.written(found.document), encoding="utf-8")
    engine = running_engine(Endpoint(url=url), stated, devices)
    made = measured(engine, held, bounds)
    points, _ = points_of(made)
    known = {**_engine(engine, flags), "calibration": str(file)}
    again = measured(engine, Grid(widths=(min(fit.widths), max(fit.widths)), contexts=fit.contexts[:1]), bounds)
    return Held(
        calibrated=found,
        compared=tuple(compared(one, engine, flags, launch, file, devices, fit) for one in points),
        fit_load=(None, None) if found.document.sent is None else (found.document.sent.load_before, found.document.sent.load_after),
        held_load=(made.load_before, made.load_after),
        drift=drift(found, again),
        loops=tuple(loop(engine, each, known, devices) for each in clients),
        held_input_tokens=made.input_tokens + again.input_tokens,
        held_output_tokens=made.output_tokens + again.output_tokens,
    )


def drift(found: Calibrated, again: Tour) -> float:
    """Median ratio of the points that were measured twice."""
    before = {} if found.driven is None else {(one.visit.concurrency, one.visit.context): one.step_s for one in found.driven.points}
    later, _ = points_of(again)
    return median(one.step_s / before[key] for one in later if (key := (one.visit.concurrency, one.visit.context)) in before)


def measured(engine: RunningEngine, grid: Grid, bounds: Bounds) -> Tour:
    wanted = plan(grid.widths, grid.contexts, (), engine.room, bounds)
    vocabulary = engine.deployment.model.vocabulary
    made = tour(engine.server, engine.dialect, wanted, model=engine.model, salt=salt(), vocabulary=vocabulary, placed=engine.placed)
    if made.ended == "interrupted":
        raise KeyboardInterrupt
    if made.ended == "failed":
        raise RuntimeError(f"the engine failed while the held-out points were measured, after {made.requests} requests")
    return made


def _engine(engine: RunningEngine, flags: Mapping[str, str]) -> dict[str, str]:
    """The engine as it was found, with what was said of it."""
    d = engine.deployment.engine
    return {"engine": d.name, "engine_version": d.version, "max_num_seqs": f"{d.max_num_seqs}", **flags}


def compared(
    one: MeasuredPoint, engine: RunningEngine, flags: Mapping[str, str], launch: str | None, file: Path, devices: Sequence[Path], fit: Grid
) -> Compared:
    """What ``advise --calibration`` would take the step to be, beside what it was."""
    width, context = one.visit.concurrency, one.context_tokens
    one_pass = {"kv_unified": "true"} if engine.placed else {}
    point = {**_engine(engine, flags), **one_pass, "batch": f"{width}", "context": f"{context}", "calibration": str(file)}
    deployment, _ = api.load(flags=point, launch=launch, catalog_dirs=devices)
    return Compared(
        width=width,
        context_tokens=context,
        predicted_s=float(api.evaluate(deployment).tpot_s),
        measured_s=one.step_s,
        apart=one.spread,
        beyond=width > max(fit.widths) or one.visit.context > max(fit.contexts),
    )
