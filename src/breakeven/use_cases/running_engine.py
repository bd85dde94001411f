"""Which deployment a running engine is, and what it has room for: by what it tells of itself, and by what was stated over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from breakeven import endpoint
from breakeven.driving.dialect import dialect_of
from breakeven.driving.grid import CHUNK, Room
from breakeven.driving.running_engine import RunningEngine, StatedEngine
from breakeven.endpoint import Endpoint
from breakeven.errors import BreakevenError, InputError, UnreachableError
from breakeven.observation import scrape, told, window
from breakeven.observation.timeline import Timeline
from breakeven.spec.deployment import Deployment
from breakeven.spec.evidence import Evidence, Told
from breakeven.use_cases.load import load

ONCE_S = 0.1
FINE = 8
"""llama.cpp's kernels on a processor: rows in tiles of 4, what is left over row by row (measured: 3 rows take longer than 4)."""
PINNED = {"batch": "1", "context": "1"}
"""Stands in for a workload until one is measured; the grid of a load is one of its own."""
HUNG = "error.observe_busy"
GONE = tuple(f"error.endpoint_{why}" for why in ("connection_refused", "no_connection", "unresolved", "closed", "system"))
"""Where no server is, or none that could be measured; one that only has no metrics answers all the same."""


def running_engine(server: Endpoint, stated: StatedEngine, folders: Sequence[Path | str]) -> RunningEngine:
    """What an engine tells of itself, and what was stated over it, as the deployment that is driven."""
    said = _told(server, stated.flags.get("engine"))
    d, warnings = load(flags={**PINNED, **stated.flags}, launch=stated.launch, evidence=_evidence(server, said), catalog_dirs=folders)
    if d.engine.speculative is not None or said.speculative:
        raise InputError("drive_speculative", server=endpoint.address(server.url))
    return RunningEngine(
        server=server,
        address=endpoint.address(server.url),
        deployment=d,
        dialect=dialect_of(d.engine.name),
        model=stated.model_name or served_name(server, said),
        room=room_of(d, said),
        stated=stated,
        folders=folders,
        warnings=warnings,
    )


def _told(server: Endpoint, engine: str | None) -> Told:
    """By its metrics and its other pages; where it has no metrics, the engine has to be named."""
    try:
        targets = scrape.targets((server.url,), dict(server.headers), engine=engine)
        timeline = window.observe(targets, for_s=ONCE_S, every_s=ONCE_S, patience_s=ONCE_S)
    except BreakevenError as error:
        if error.message.key == HUNG:
            raise UnreachableError("drive_hung", **error.message.values) from None
        if engine is None or error.message.key in GONE:
            raise
        timeline = Timeline(engine=engine, series=(), start_s=0.0, end_s=0.0, readings=0, every_s=ONCE_S)
    return told.tell(server, timeline)


def _evidence(server: Endpoint, said: Told) -> Evidence:
    """What was told and nothing that was counted: what an engine did before is no part of its calibration."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Evidence(
        breakeven=version("breakeven"),
        source="live",
        target=endpoint.address(server.url),
        start=now,
        end=now,
        seconds=0.0,
        readings=1,
        every_s=ONCE_S,
        told=replace(said, kv_tokens=None),
    )


def served_name(server: Endpoint, said: Told) -> str:
    """The first of the names under which the server takes requests, by its list of models; else what it calls itself."""
    import msgspec

    try:
        page = msgspec.json.decode(endpoint.get(server, "/v1/models", accept="application/json").body)
        return str(page["data"][0]["id"])
    except (BreakevenError, msgspec.DecodeError, LookupError, TypeError):
        return said.model


def room_of(d: Deployment, said: Told) -> Room:
    """Sequences and tokens that the engine takes at once; the smaller of what it is set to and what the model can."""
    lengths = [length for length in (d.engine.max_model_len, d.model.max_context) if length]
    return Room(
        sequences=d.engine.max_num_seqs,
        tokens=min(lengths, default=2**20),
        pool_tokens=float(said.kv_tokens or "inf"),
        step_tokens=d.engine.max_num_batched_tokens or CHUNK,
        fine=FINE if dialect_of(d.engine.name).places else 1,
    )
