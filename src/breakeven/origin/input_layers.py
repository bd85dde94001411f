"""The layers of input in their order, and what they say against each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from breakeven.catalog import engine_title
from breakeven.errors import InputError
from breakeven.messages import Message
from breakeven.origin.evidence_layer import LENGTHS, Layer, differing, evidence_layer, without_traced
from breakeven.origin.launch import LaunchSettings
from breakeven.origin.layers import ARRIVAL_PATHS, Table, contradictions, file_layer, flags_layer, launch_layer, log_layer
from breakeven.origin.startup_log import StartupLog
from breakeven.spec.evidence import Evidence

ABOUT_ARRIVALS = tuple(f"warning.evidence_{name}" for name in ("full", "no_requests", "none_ended", "derived"))
"""Notes of an observation that say nothing where the user gives the arrivals."""
ABOUT_DEVICE = ("warning.evidence_device_here",)
"""And where the user gives the device."""
LENGTH_PATHS = tuple(f"workload.{name}" for name in LENGTHS)


@dataclass(frozen=True, kw_only=True)
class Layers:
    """The layers below the user's own, and those that the user typed."""

    settings: Table
    ran: Table
    observed: Layer
    typed: tuple[Table, ...]

    @property
    def ordered(self) -> tuple[Table, ...]:
        """Launch command < start-up log < evidence < file < flags."""
        return (self.settings, self.ran, self.observed.table, *self.typed)

    @property
    def told(self) -> tuple[Message, ...]:
        """Where layers say different things of one setting, and which is taken."""
        found = contradictions(self.ran, (self.settings, *self.typed))
        observed = self.observed.table
        found += contradictions(observed, (self.settings, self.ran, *self.typed), "warning.evidence_contradicts")
        arrivals = any(path in layer for layer in self.typed for path in (*ARRIVAL_PATHS, "workload.trace"))
        device = any("hardware.device" in layer for layer in self.typed)
        answered = (*(ABOUT_ARRIVALS if arrivals else ()), *(ABOUT_DEVICE if device else ()))
        notes = tuple(note for note in self.observed.notes if note.key not in answered)
        return (*found, *differing(observed, self.typed), *notes)


def layers_of(
    table: Mapping[str, object],
    flags: Mapping[str, object],
    command: LaunchSettings | None,
    started: StartupLog | None,
    seen: Evidence | None,
) -> Layers:
    """Each source as a layer of its own."""
    typed = (file_layer(table), flags_layer(flags))
    found = Layer(table={}) if seen is None else evidence_layer(seen)
    return Layers(
        settings=launch_layer(command) if command is not None else {},
        ran=log_layer(started) if started is not None else {},
        observed=replace(found, table=without_traced(found.table, typed)),
        typed=typed,
    )


def check_arrivals(seen: Evidence | None, merged: Table) -> None:
    """What an observation does not tell of the load, and the user has not said, is asked for in words of the observation."""
    if seen is None or "workload.trace" in merged:
        return
    if not any(path in merged for path in ARRIVAL_PATHS):
        raise InputError("evidence_no_rate", seconds=seen.seconds)
    missing = [path for path in LENGTH_PATHS if path not in merged]
    batch = merged.get("workload.batch")
    if not missing or "workload.context_tokens" in merged or batch is None or batch.layer != "evidence":
        return
    raise InputError(
        "evidence_no_lengths_none_ended" if "request_rate_per_s" in seen.figures else "evidence_no_lengths_no_requests",
        missing=" + ".join(missing),
        engine=engine_title(seen.told.engine),
        seconds=seen.seconds,
    )
