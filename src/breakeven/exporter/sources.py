"""What an exporter observes over and over: running engines, or what a Prometheus server keeps of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import time
from typing import TYPE_CHECKING, Any

from breakeven import api
from breakeven.advice import Advice
from breakeven.exporter.loop import Loop
from breakeven.observation import opening, window
from breakeven.observation.scrape import Missed, Read
from breakeven.spec.evidence import Evidence
from breakeven.use_cases import observe as observing

if TYPE_CHECKING:
    from breakeven.observation.history import HistoryQuery
    from breakeven.observation.record import Record
    from breakeven.observation.scrape import Target

Deployed = Mapping[str, Any]
Heard = Callable[[str, float | None], None]
HISTORY_EVERY_S = 60.0
"""A history is asked for no more often: it is a heavier question than a page."""


def of_engines(targets: Sequence[Target], deployed: Deployed | None, *, for_s: float, every_s: float) -> Loop:
    """Observations of running engines, one after another."""

    def observe(heard: Heard) -> Evidence:
        def read(one: Read | Missed, record: Record) -> None:
            heard(one.source, one.at_s if isinstance(one, Read) else None)

        opened = opening.Opening(targets, read)
        timeline = window.observe(targets, for_s=for_s, every_s=every_s, heard=opened.heard)
        if any(note.key in (window.INTERRUPTED, window.TERMINATED) for note in timeline.notes):
            raise KeyboardInterrupt
        evidence = observing.evidence_of(timeline, observing.told_of(targets, timeline, opened), targets)
        return evidence if deployed is None else observing.with_ledgers(evidence, timeline, targets, deployed)

    return Loop(targets=tuple(one.source for one in targets), observe=observe, advise=_adviser(deployed))


def of_history(url: str, asked: Callable[[], HistoryQuery], deployed: Deployed | None, *, headers: Mapping[str, str]) -> Loop:
    """What a server keeps of its last hours, over and over."""
    from breakeven.endpoint import address
    from breakeven.observation import told

    def observe(heard: Heard) -> Evidence:
        timeline, server = observing.history(url, asked(), headers=headers)
        fresh = timeline.end_s > time() - max(HISTORY_EVERY_S, 4.0 * timeline.every_s)
        heard(server, timeline.end_s)
        if not fresh:
            heard(server, None)
        evidence = observing.evidence_of(timeline, told.told_in(timeline), server)
        return evidence if deployed is None else observing.with_ledgers(evidence, timeline, server, deployed)

    return Loop(targets=(address(url),), observe=observe, advise=_adviser(deployed), pause_s=HISTORY_EVERY_S)


def _adviser(deployed: Deployed | None) -> Callable[[Evidence], Advice] | None:
    if deployed is None:
        return None

    def advise(evidence: Evidence) -> Advice:
        deployment, warnings = api.load(**{**deployed, "evidence": evidence})
        return api.advise(deployment, warnings=warnings)

    return advise
