"""Running engines read for a while, or what a Prometheus server kept of them: whole, and in the parts that a view and an exporter need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from breakeven.errors import InputError

if TYPE_CHECKING:
    from breakeven.observation.history import HistoryQuery
    from breakeven.observation.opening import Opening
    from breakeven.observation.scrape import Target
    from breakeven.observation.timeline import Timeline
    from breakeven.observation.window import Heard
    from breakeven.spec.deployment import Deployment
    from breakeven.spec.evidence import Evidence, Told

FOR_S, EVERY_S = 60.0, 2.0
UNTOLD = ("error.no_model", "error.no_hardware", "error.no_hardware_read", "error.no_arrivals")
"""What a description may leave out, since the engine may tell it."""
RESTARTED = ("observe.note_restart", "observe.note_restart_unseen", "observe.note_restarts")
"""What is noted of a server that may be another since it was asked."""
OF_CALIBRATION = "warning.calibration_"
"""How the keys of what is said of a calibration begin: the ledgers rest on it."""


def observe(
    urls: Sequence[str] | str,
    *,
    for_s: float = FOR_S,
    every_s: float = EVERY_S,
    headers: Mapping[str, str] | None = None,
    engine: str | None = None,
    model_name: str | None = None,
    deployment: Deployment | None = None,
    heard: Heard | None = None,
) -> Evidence:
    """Read running engines for a while, changing nothing on them: several addresses are replicas of one engine.

    With the deployment that they are, its ledgers say how far they use their devices. ``heard`` is called after each reading.
    """
    from breakeven.observation import opening, window

    targets = targets_of(urls, headers=headers, engine=engine, model_name=model_name)
    opened = opening.Opening(targets, heard)
    timeline = window.observe(targets, for_s=for_s, every_s=every_s, heard=opened.heard)
    return evidence_of(timeline, told_of(targets, timeline, opened), targets, deployment)


def targets_of(
    urls: Sequence[str] | str, *, headers: Mapping[str, str] | None = None, engine: str | None = None, model_name: str | None = None
) -> tuple[Target, ...]:
    """The servers to read."""
    from breakeven.observation import scrape

    given = (urls,) if isinstance(urls, str) else tuple(urls)
    if not given:
        raise InputError("observe_no_target")
    return scrape.targets(given, headers, engine=engine, model=model_name)


def told_of(targets: Sequence[Target], timeline: Timeline, opened: Opening) -> Told:
    """What the first server that answered with an engine's metrics tells of itself beside them; asked again where it began anew."""
    from breakeven.observation import told

    target = opened.target or targets[0]
    anew = any(note.key in RESTARTED and note.values.get("target") == target.source for note in timeline.notes)
    return told.tell(target.places[0], timeline, earlier=opened.answers(), anew=anew)


def history(url: str, asked: HistoryQuery, *, headers: Mapping[str, str] | None = None) -> tuple[Timeline, str]:
    """What a Prometheus server kept of running engines, and the server's address as it may be shown."""
    from breakeven.endpoint import Endpoint
    from breakeven.observation import history as stored
    from breakeven.observation.prometheus import LONGEST_ANSWER_S, Server

    server = Server(endpoint=Endpoint(url=url, headers=headers or {}, timeout_s=LONGEST_ANSWER_S))
    return stored.read(server, asked), server.name


def observe_history(
    url: str, asked: HistoryQuery, *, headers: Mapping[str, str] | None = None, deployment: Deployment | None = None
) -> Evidence:
    """The same as :func:`observe` from what a Prometheus server kept."""
    timeline, server = history(url, asked, headers=headers)
    return evidence_of(timeline, told_in(timeline), server, deployment)


def told_in(timeline: Timeline) -> Told:
    """What the metrics alone tell of the engine."""
    from breakeven.observation import told

    return told.told_in(timeline)


def evidence_of(timeline: Timeline, told: Told, targets: Sequence[Target] | str, deployment: Deployment | None = None) -> Evidence:
    """What was read, as an operating point: of servers, or of the history that an address has."""
    from breakeven.observation import summary

    if isinstance(targets, str):
        return summary.summarised(timeline, told, target=targets, source="history", deployment=deployment)
    target = ", ".join(one.source for one in targets)
    return summary.summarised(timeline, told, target=target, source="live", deployment=deployment)


def described(deployed: Mapping[str, Any]) -> Deployment | None:
    """The deployment as far as it is described, at a workload that stands in; None where too little of it is. Faults are said at once."""
    from breakeven.use_cases.load import load
    from breakeven.use_cases.running_engine import PINNED

    flags = deployed["flags"]
    try:
        return load(**deployed)[0]
    except InputError as error:
        if error.message.key not in UNTOLD:
            raise
        if error.message.key == "error.no_arrivals" and not PINNED.keys() & flags.keys():
            return described({**deployed, "flags": {**flags, **PINNED}})
    return None


def with_ledgers(evidence: Evidence, timeline: Timeline, targets: Sequence[Target] | str, deployed: Mapping[str, Any]) -> Evidence:
    """The evidence with what the ledgers make of it, the deployment completed by what was observed; or why they could not."""
    from breakeven.observation.cautions import said
    from breakeven.use_cases.load import load
    from breakeven.use_cases.running_engine import PINNED

    # The ledgers ask for batch and context alone, which are measured even where no request has ended yet.
    pinned = {**deployed["flags"], **PINNED}
    failed: InputError | None = None
    for flags in (deployed["flags"], pinned):
        try:
            deployment, told = load(**{**deployed, "flags": flags, "evidence": evidence})
        except InputError as error:
            failed = failed or error
        else:
            found = evidence_of(timeline, evidence.told, targets, deployment)
            of_calibration = (said(one) for one in told if one.key.startswith(OF_CALIBRATION))
            return replace(found, warnings=(*found.warnings, *of_calibration))
    return evidence if failed is None else replace(evidence, warnings=(*evidence.warnings, said(failed.message)))
