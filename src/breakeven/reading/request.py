"""One request as a format finds it in a record, before it is held against what a request may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from breakeven.trace import LONGEST_REQUEST

Tokens = Sequence[int] | NDArray[np.int32]
LARGEST_ID = 2**62
LONGEST_S = 1e9


@dataclass(slots=True, kw_only=True)
class Request:
    """Unchecked values of a record; None is what it does not say."""

    arrival_ns: int | None = None
    zoned: bool | None = None
    """Whether the time, a stamp, names its zone; None for a number, which needs none."""
    input_tokens: object = None
    output_tokens: object = None
    hash_ids: Sequence[int] = ()
    prompt: Tokens | None = None
    """Token ids of the prompt."""
    identity: Tokens | None = None
    """What the prompt's blocks are made of where that is not ``prompt``: pieces drawn together to the scale of the logged lengths."""
    output: Tokens | None = None
    exact: bool = True
    """Whether those ids are the engine's own, or a tokenizer's."""
    cached_tokens: object = None
    ttft_s: float | None = None
    e2e_s: float | None = None
    session: str | int | None = None
    group: object = None


def whole(value: object) -> int | None:
    """A count, or none where it is no whole number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, float):
        return int(value) if isfinite(value) and value.is_integer() else None
    return value


def count(value: object) -> int | None:
    """A count of tokens that a request may have, 0 included; none where it is damaged."""
    found = whole(value)
    return found if found is not None and 0 <= found <= LONGEST_REQUEST else None


def seconds(value: object, unit_s: float = 1.0) -> float | None:
    """A duration in seconds; none where it is no number from 0 to 30 years."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) * unit_s if 0.0 <= value <= LONGEST_S / unit_s else None


def at(record: Mapping[str, object], path: str) -> object:
    """A value of a record by its name, dotted where it lies deeper; none where there is none."""
    found: object = record
    for name in path.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(name)
    return found


def named(value: object) -> str | None:
    """A value that can name a group or a session."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    return str(value)
