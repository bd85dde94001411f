"""Samples of a page in one of Prometheus' text formats: name, labels and number."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from breakeven.errors import InputError
from breakeven.exposition.lines import Kept, kept

MOST_SAMPLES = 50_000
"""Samples of interest on one page: a hundred ranks of vLLM have fewer. A page with more is refused, since reading it would hurt us."""
MOST_LINES = 10**6
LARGEST = 1e100
"""What is beyond it counts nothing: it is left out as what is no number is, since sums of such overflow."""
OPEN = "openmetrics"
END = re.compile(rb"^# EOF\s*\Z", re.MULTILINE)
EXEMPLAR = re.compile(r"\s#\s*\{.*$")


class Sample(NamedTuple):
    """One line of a page."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, kw_only=True)
class Samples:
    """The samples of interest, and what was left out."""

    found: tuple[Sample, ...]
    dropped: int = 0
    not_numbers: tuple[str, ...] = ()
    """Names of those that were no numbers."""
    duplicates: int = 0
    damaged: int = 0


def samples(body: bytes, content_type: str, target: str) -> Samples:
    """The samples of interest on a page of text or OpenMetrics, each once.

    Of a name and labels that stand on a page twice Prometheus keeps the first and counts the others as duplicates; so does this.
    """
    is_open = OPEN in content_type.lower() or END.search(body[-64:]) is not None
    if is_open and END.search(body[-64:]) is None:
        raise InputError("page_cut", target=target, bytes=len(body))
    if body.count(b"\n") > MOST_LINES:
        raise InputError("page_too_many", target=target, found=body.count(b"\n"), most=MOST_LINES)
    lines = kept(body, described=is_open)
    if len(lines.samples) > MOST_SAMPLES:
        raise InputError("page_too_many", target=target, found=len(lines.samples), most=MOST_SAMPLES)
    parsed, damaged = _parsed(lines, is_open=is_open)
    once, not_numbers, duplicates = _once(parsed)
    return Samples(
        found=tuple(once), dropped=lines.dropped, not_numbers=not_numbers, duplicates=duplicates, damaged=damaged + lines.too_long
    )


def _parsed(lines: Kept, *, is_open: bool) -> tuple[list[Sample], int]:
    """All at once; one by one where a line is damaged, so that the others are read."""
    try:
        return list(_open(lines.metadata) if is_open else _plain(lines.samples)), 0
    except ValueError:
        return _one_by_one(lines.samples)


def _plain(lines: Iterable[bytes]) -> Iterator[Sample]:
    from prometheus_client.parser import text_string_to_metric_families

    page = b"\n".join(lines).decode("utf-8")
    return (Sample(one.name, one.labels, one.value) for family in text_string_to_metric_families(page) for one in family.samples)


def _open(lines: Iterable[bytes]) -> Iterator[Sample]:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    page = b"\n".join((*lines, b"# EOF\n")).decode("utf-8")
    families = text_string_to_metric_families(page)  # type: ignore[no-untyped-call]  # this module of the client has no types
    return (Sample(one.name, one.labels, one.value) for family in families for one in family.samples)


def _one_by_one(lines: Iterable[bytes]) -> tuple[list[Sample], int]:
    found: list[Sample] = []
    damaged = 0
    for line in lines:
        try:
            found += _plain((EXEMPLAR.sub("", line.decode("utf-8")).encode(),))
        except (ValueError, IndexError):
            damaged += 1
    return found, damaged


def _once(parsed: Iterable[Sample]) -> tuple[list[Sample], tuple[str, ...], int]:
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    found: list[Sample] = []
    not_numbers: list[str] = []
    duplicates = 0
    for one in parsed:
        key = (one.name, tuple(sorted(one.labels.items())))
        if key in seen:
            duplicates += 1
        elif not abs(one.value) <= LARGEST:
            not_numbers.append(one.name)
        else:
            found.append(one)
        seen.add(key)
    return found, tuple(not_numbers), duplicates
