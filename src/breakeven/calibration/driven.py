"""A running engine driven over a grid, and calibrated by what its steps took."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from time import time_ns

from breakeven import streams
from breakeven.calibration.calibrate import Calibrated, CalibrationRows, Driven, calibrated
from breakeven.calibration.counted import DRAFTED, counts, rose, tokens_of_others
from breakeven.calibration.driven_rows import rows_of
from breakeven.calibration.points import MeasuredPoint, points_of
from breakeven.calibration.verification import Verified, verified
from breakeven.catalog import engine_title
from breakeven.driving.grid import Bounds, Plan
from breakeven.driving.outcome import Request
from breakeven.driving.running_engine import RunningEngine, StatedEngine
from breakeven.driving.tour import Progress, Tour, tour
from breakeven.errors import BreakevenError, InputError, UnreachableError
from breakeven.measured.steps import UNSTATED
from breakeven.messages import Message
from breakeven.origin.calibrated import applied
from breakeven.origin.launch_command import without_secrets
from breakeven.spec.calibration_file import CalibrationFile, Sent
from breakeven.spec.deployment import Deployment

OUR_FILE = "calibration"
FAULTS: Mapping[str, str] = {
    "unreachable": "drive_unreachable",
    "status": "drive_status",
    "empty": "drive_empty",
    "cut": "drive_cut",
    "silent": "drive_silent",
    "not_understood": "drive_not_understood",
}
"""How a request ended, and the sentence of it."""


def calibrated_on(found: RunningEngine, plan: Plan, *, progress: Progress | None = None) -> Calibrated:
    """Drive a running engine over a plan, and calibrate by it."""
    engine = found.deployment.engine.name
    before = counts(found.server, engine)
    made = tour(
        found.server,
        found.dialect,
        plan,
        model=found.model,
        salt=salt(),
        vocabulary=found.deployment.model.vocabulary,
        placed=found.placed,
        progress=progress,
    )
    if made.ended == "interrupted":
        streams.tell(Message("driving.interrupted", {"requests": made.requests, "tokens": made.output_tokens, "server": found.address}))
        raise KeyboardInterrupt
    after = counts(found.server, engine)
    if rose(DRAFTED, before, after):
        raise InputError("drive_speculative", server=found.address)
    others = tokens_of_others(before, after, made)
    return calibrated_by(made, found.deployment, found.address, _command(found, plan), told=found.warnings, others=others)


def salt() -> str:
    """What no earlier load drew its prompts from: the engine may still have them in its cache."""
    return f"{time_ns()}"


def _command(found: RunningEngine, plan: Plan) -> tuple[str, ...]:
    """What makes it again, without what was secret in the address."""
    widths, contexts = (
        ",".join(map(str, dict.fromkeys(each)))
        for each in zip(*((v.concurrency, v.context) for v in plan.visits if not v.alone), strict=True)
    )
    d, devices = found.deployment, found.deployment.hardware
    hardware = f"{devices.device.name}:{devices.count}" if devices.count > 1 else devices.device.name
    memory = {"--device-memory": f"{devices.device.memory_bytes:.0f}"} if "hardware.device.memory_bytes" in d.provenance else {}
    typed = found.stated.flags
    stated = {
        "--model": typed.get("model", d.model.name),
        "--hardware": hardware,
        **memory,
        "--engine": d.engine.name,
        **_typed(found.stated),
    }
    grid = {
        "--concurrency-grid": ",".join(sorted(widths.split(","), key=int)),
        "--context-grid": ",".join(sorted(contexts.split(","), key=int)),
    }
    return (
        "breakeven",
        "calibrate",
        "--url",
        found.address,
        "--allow-load",
        *(word for pair in {**stated, **grid, **_bounds(plan.bounds)}.items() for word in pair),
        *(word for folder in found.folders for word in ("--catalog", str(folder))),
    )


def _typed(stated: StatedEngine) -> dict[str, str]:
    """What was said of the engine and it does not tell, without keys that stand in its command."""
    launch = None if stated.launch is None else without_secrets(stated.launch)
    said = {"--engine-version": stated.flags.get("engine_version"), "--launch": launch, "--model-name": stated.model_name}
    return {option: word for option, word in said.items() if word}


def _bounds(bounds: Bounds) -> dict[str, str]:
    """Options of the bounds that were not left as they are."""
    usual, given = asdict(Bounds()), asdict(bounds)
    return {f"--{name.replace('_', '-')}": str(value) for name, value in given.items() if value != usual[name]}


def calibrated_by(
    made: Tour, d: Deployment, server: str, command: Sequence[str], *, told: tuple[Message, ...] = (), others: float | None = None
) -> Calibrated:
    """The calibration that a tour tells of the deployment it was driven on; refused where the engine failed or nothing was measured.

    ``others`` are output tokens that the engine put out for others meanwhile.
    """
    _check(made, server)
    if any(one.drafted_tokens for visited in made.visited for one in visited.driven.requests):
        raise InputError("drive_speculative", server=server)
    told = (*told, *_used_by_others(made, others), *_version_untold(d))
    d = _as_told(d)
    rows = rows_of(made, d, server)
    if not any(run.deployment.workload.batch is not None for run in rows.runs):
        reason = rows.left_out[0].reason if rows.left_out else Message("driving.nothing_sent")
        raise InputError("drive_no_steps", server=server, requests=made.requests, reason=reason)
    found = calibrated(rows, shlex.join(command))
    points, _ = points_of(made)
    document = replace(found.document, own=(), sent=replace(_sent(made, d, server), spread=_spread(points), others_tokens=others))
    load = Driven(points=tuple(points), verification=_verification(document, d), notes=(*told, *_notes(made, rows)))
    return replace(found, document=document, driven=load)


def _used_by_others(made: Tour, others: float | None) -> tuple[Message, ...]:
    """That steps were wider than they are taken to be, where others used the engine."""
    if others is None:
        return ()
    return (Message("driving.others", {"counted": made.output_tokens + others, "ours": made.output_tokens}),)


def _spread(points: Sequence[MeasuredPoint]) -> float | None:
    """Of the point whose rounds lay furthest apart; None where no point was measured twice."""
    return max((point.spread for point in points if len(point.rounds) > 1), default=None)


def _version_untold(d: Deployment) -> tuple[Message, ...]:
    """That the engine does not say which version it is, and what was assumed of it meanwhile."""
    if d.provenance.get("engine.version") != "assumed":
        return ()
    return (Message("driving.version_untold", {"engine": engine_title(d.engine.name), "version": d.engine.version}),)


def _as_told(d: Deployment) -> Deployment:
    """The deployment without a version that is only assumed: a calibration is not to expire by what nobody told."""
    told = d.provenance.get("engine.version") != "assumed"
    return d if told else replace(d, engine=replace(d.engine, version=UNSTATED))


def _check(tour: Tour, server: str) -> None:
    """A load that an engine did not bear ends the calibration: what it broke is not to be measured on."""
    if tour.ended != "failed":
        return
    failed = next(one for visited in tour.visited if (one := visited.driven.failed) is not None)
    key = FAULTS[failed.end]
    values = {"server": server, "sent": tour.requests, "tokens": failed.output_tokens, "asked": failed.asked_tokens}
    raise (InputError if _ours(failed) else UnreachableError)(key, status=failed.status, **values)


def _ours(failed: Request) -> bool:
    """Whether what was asked for was at fault rather than the engine."""
    return failed.end == "status" and failed.status < 500


def _sent(tour: Tour, d: Deployment, server: str) -> Sent:
    return Sent(
        server=server,
        engine=d.engine.name,
        version="" if d.engine.version == UNSTATED else d.engine.version,
        points=len({(one.visit.concurrency, one.visit.context, one.visit.alone) for one in tour.visited if not one.visit.warm_up}),
        requests=tour.requests,
        input_tokens=tour.input_tokens,
        output_tokens=tour.output_tokens,
        seconds=tour.seconds,
        load_before=tour.load_before,
        load_after=tour.load_after,
    )


def _verification(document: CalibrationFile, d: Deployment) -> tuple[Verified, ...]:
    """By the curves of the document, on the deployment they were measured on; none where it cannot verify drafts at all."""
    known = replace(d, calibration=applied(document, d, OUR_FILE))
    try:
        return verified(known, document.curves)
    except BreakevenError:
        return ()


def _notes(tour: Tour, rows: CalibrationRows) -> tuple[Message, ...]:
    """What speaks against the measurement: cut off by time, prompts found in a cache, a machine that was busy with other work."""
    requests = [one for visited in tour.visited for one in visited.driven.requests]
    cached = sum(one.cached_tokens or 0 for one in requests)
    found = []
    if tour.ended == "seconds":
        found.append(Message("driving.out_of_time", {"made": len(tour.visited), "planned": tour.planned, "seconds": tour.seconds}))
    if cached:
        found.append(Message("driving.cached", {"cached": cached, "sent": tour.input_tokens}))
    if any(one.end == "stopped" for one in requests):
        found.append(Message("driving.cut_off", {"requests": sum(one.end == "stopped" for one in requests)}))
    return tuple(found)
