"""Whether what an evidence file says can be: settings of their kind, moments, and ranges in order."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from breakeven.errors import InputError
from breakeven.origin.engine_fields import FIELDS
from breakeven.origin.values import count, optional_tokens, shown, switch, tokens, utilization
from breakeven.spec.evidence import Evidence, Figure

OF_A_KIND = (count, tokens, optional_tokens, switch, utilization)
"""Numbers and switches; a word that is not known may be one of an engine that is newer, and is settled where it is used."""
ROUNDED = 1.0 + 1e-9
"""Two ends that are one number, worked out in two ways."""


def check_said(evidence: Evidence, name: str) -> None:
    """Refuse what cannot be, by the file's name and the place in it."""
    _check_settings(evidence, name)
    for place, moment in (("start", evidence.start), ("end", evidence.end)):
        _check_moment(moment, f"{name}: {place}")
    for place, number in (("replicas", evidence.replicas), ("ranks", evidence.ranks)):
        if number < 1:
            raise InputError("evidence_number", path=f"{name}: {place}", value=number)
    for place, figure in _figures(evidence):
        if figure.low is not None and figure.high is not None and figure.low > figure.high * ROUNDED:
            raise InputError("evidence_range", path=f"{name}: {place}", low=figure.low, high=figure.high)


def _check_settings(evidence: Evidence, name: str) -> None:
    for setting, value in evidence.told.settings.items():
        parser = FIELDS.get(setting)
        if parser in OF_A_KIND:
            parser(value, f"{name}: told.settings.{setting}")


def _check_moment(moment: str, path: str) -> None:
    try:
        datetime.fromisoformat(moment)
    except ValueError:
        raise InputError("evidence_moment", path=path, value=shown(moment)) from None


def _figures(e: Evidence) -> Iterator[tuple[str, Figure]]:
    yield from ((f"figures.{shown(name)}", figure) for name, figure in e.figures.items())
    for name, several in e.estimators.items():
        yield from ((f"estimators.{shown(name)}[{place}]", figure) for place, figure in enumerate(several))
