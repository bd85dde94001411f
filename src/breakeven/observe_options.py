"""The options that say what of a running engine is read, how long and how often, for every verb that reads one."""

# No `from __future__ import annotations`: typer reads the annotations of a verb.
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from breakeven import out_file
from breakeven.errors import InputError
from breakeven.verb import option

UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(ms|s|min|m|h|d)?")
DEPLOYMENT_FILES = (".yaml", ".yml", ".toml")
LONGEST_S, SHORTEST_S = 86_400.0, 0.1
RAREST_S = 3600.0
MOST_READINGS = 50_000
"""Of one server: a day at one in two seconds."""
EVIDENCE_BYTES = 64
"""So much of a file tells whether it is one that `--out` wrote: the schema stands first."""

Urls = Annotated[list[str] | None, typer.Argument(metavar="URL…", show_default=False)]
For = Annotated[str | None, option("--for", metavar="DURATION")]
Every = Annotated[str, typer.Option("--every", metavar="DURATION", show_default=True)]
Header = Annotated[list[str] | None, option("--header", metavar="NAME=VARIABLE")]
ModelName = Annotated[str | None, option("--model-name", metavar="NAME")]
EvidenceOut = Annotated[str | None, option("--out", metavar="FILE")]
Watch = Annotated[bool, option("--watch")]


def duration(given: str, name: str, least_s: float, most_s: float) -> float:
    """Seconds of a duration as it was typed, within bounds; a number alone is of seconds.

    >>> duration("5m", "--for", 0.1, 86_400), duration("500ms", "--every", 0.1, 3600), duration("90", "--for", 0.1, 86_400)
    (300.0, 0.5, 90.0)
    """
    found = DURATION.fullmatch(given.strip())
    if found is None:
        raise InputError("observe_duration", path=name, value=given[:40])
    seconds = float(found[1]) * UNITS[found[2] or "s"]
    if not least_s <= seconds <= most_s:
        raise InputError("observe_duration_range", path=name, value=given, low=least_s, high=most_s)
    return seconds


def schedule(for_: str, every: str) -> tuple[float, float]:
    """How long, and how often: seconds each."""
    every_s = duration(every, "--every", SHORTEST_S, RAREST_S)
    for_s = duration(for_, "--for", SHORTEST_S, LONGEST_S)
    if for_s < every_s:
        raise InputError("observe_one_reading", given=for_, every=every)
    if for_s / every_s > MOST_READINGS:
        raise InputError("observe_many_readings", readings=int(for_s / every_s), most=MOST_READINGS)
    return for_s, every_s


def headers(given: Sequence[str] | None) -> dict[str, str]:
    """Headers to send, their values from environment variables: never on the command line, where other users and logs see them."""
    from breakeven import endpoint

    named: dict[str, str] = {}
    for one in given or ():
        name, equals, variable = one.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable.strip()):
            raise InputError("endpoint_header_form")
        if name.strip().lower() in (other.lower() for other in named):
            raise InputError("endpoint_header_twice", name=name.strip())
        named[name.strip()] = variable.strip()
    return endpoint.headers_from(named, os.environ)


def split(urls: Sequence[str] | None, file: str | None) -> tuple[tuple[str, ...], str | None]:
    """What stands by its place: addresses, and last a deployment's file, if it is one."""
    places = [*(urls or ()), *(() if file is None else (file,))]
    if places and "://" not in places[-1] and places[-1].lower().endswith(DEPLOYMENT_FILES):
        return tuple(places[:-1]), places[-1]
    return tuple(places), None


def place_for(out: str | None) -> Path | None:
    """Where the evidence goes: a file that is there already has to be evidence to be written over."""
    return out_file.place_for(out, _is_evidence, "observe_out_other")


def _is_evidence(head: bytes) -> bool:
    """Whether a file is what ``--out`` has written, by its beginning."""
    return b'"breakeven.evidence/' in head[:EVIDENCE_BYTES]
