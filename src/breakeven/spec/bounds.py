"""What a number of a specification may be: one rule for each kind of number, and one line for each that breaks it."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

import numpy as np

from breakeven.errors import InputError
from breakeven.stats import SPREAD_LIMIT, Range, Spread

LARGEST = 1e18
Rule = Callable[[float, str], None]
"""Takes a number and the path it stands at; raises where the number cannot be."""


def _written(value: float) -> str:
    return f"{value:.12g}"


def finite(value: float, path: str) -> None:
    """A number that is one, and not absurdly large."""
    if not isfinite(value):
        raise InputError("not_finite", path=path, value=_written(value))
    if abs(value) > LARGEST:
        raise InputError("too_large", path=path, value=_written(value))


def positive(value: float, path: str) -> None:
    """Above 0: rates, seconds, prices."""
    finite(value, path)
    if value <= 0:
        raise InputError("not_positive", path=path, value=_written(value))


def not_negative(value: float, path: str) -> None:
    """From 0."""
    finite(value, path)
    if value < 0:
        raise InputError("negative", path=path, value=_written(value))


def at_least_one(value: float, path: str) -> None:
    """From 1: tokens, sequences."""
    finite(value, path)
    if value < 1:
        raise InputError("below_one", path=path, value=_written(value))


def whole(value: float, path: str) -> None:
    """A whole number from 1."""
    finite(value, path)
    if value != int(value):
        raise InputError("not_whole", path=path, value=_written(value))
    at_least_one(value, path)


def share(value: float, path: str) -> None:
    """From 0 to 1."""
    finite(value, path)
    if not 0 <= value <= 1:
        raise InputError("outside", path=path, value=_written(value), low="0", high="1")


def part(value: float, path: str) -> None:
    """Above 0 and at most 1."""
    finite(value, path)
    if not 0 < value <= 1:
        raise InputError("outside_open", path=path, value=_written(value), low="0", high="1")


def shown(value: object) -> str:
    """A value as Python writes it, on one line and short."""
    return " ".join(repr(value).split())[:80]


def check_number(value: object, path: str, rule: Rule) -> None:
    """A rule over a field that holds one plain number."""
    if isinstance(value, (Range, Spread, np.ndarray)):
        raise InputError("not_one_number", path=path, value=shown(value))
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
        raise InputError("not_a_number", path=path, value=shown(value))
    rule(_as_float(value, path), path)


def check_value(value: object, path: str, rule: Rule) -> None:
    """A rule over all that a field may hold: a number, both bounds of an uncertain one, or every number of an array."""
    if isinstance(value, Range):
        check_number(value.low, f"{path}.low", rule)
        check_number(value.high, f"{path}.high", rule)
        if value.low > value.high:
            raise InputError("range_order", path=path, low=_written(value.low), high=_written(value.high))
    elif isinstance(value, Spread):
        check_number(value.mean, f"{path}.mean", rule)
        check_number(value.p95, f"{path}.p95", rule)
        _spread(value.mean, value.p95, path)
    elif isinstance(value, np.ndarray) and value.size and value.dtype.kind in "fiu":
        rule(float(value.min()), path)
        rule(float(value.max()), path)
    elif isinstance(value, np.ndarray):
        raise InputError("not_a_number", path=path, value=shown(value))
    else:
        check_number(value, path, rule)


def _as_float(value: float | np.integer | np.floating, path: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise InputError("too_large", path=path, value="…") from None


def _spread(mean: float, p95: float, path: str) -> None:
    if mean <= 0:
        raise InputError("not_positive", path=f"{path}.mean", value=_written(mean))
    if not mean <= p95 <= mean * SPREAD_LIMIT:
        raise InputError("spread", path=path, mean=_written(mean), p95=_written(p95), limit=_written(float(f"{mean * SPREAD_LIMIT:.4g}")))


def highest(value: object) -> float:
    """The largest number a checked field states: a bound, a 95th percentile, or the largest of an array."""
    if isinstance(value, Range):
        return value.high
    if isinstance(value, Spread):
        return value.p95
    return float(np.max(np.asarray(value, dtype=float)))
