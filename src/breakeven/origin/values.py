"""Raw values, as files and command lines hold them, to typed ones: one clear line for each that cannot be used."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from math import exp, isfinite
from reprlib import Repr

from breakeven.errors import InputError
from breakeven.stats import Q95, Range, Spread, Value

LARGEST = 1e18
SPREAD_LIMIT = exp(Q95**2 / 2)
"""The largest p95/mean a log-normal can have."""

_WRITER = Repr()
_WRITER.maxstring = _WRITER.maxother = _WRITER.maxlong = 40
Parser = Callable[[object, str], object]


def shown(raw: object, longest: int = 80) -> str:
    """A value as the user wrote it, short enough for one line."""
    written = raw if isinstance(raw, str) else _WRITER.repr(raw)
    cut = written if len(written) <= longest else f"{written[:longest]}…"
    line = "".join(sign if sign.isprintable() else "�" for sign in cut)
    return line or "''"


def number(raw: object, path: str) -> float:
    """A finite number; text that spells one counts."""
    value = _as_number(raw, path)
    if not isfinite(value):
        raise InputError("not_finite", path=path, value=shown(raw))
    if abs(value) > LARGEST:
        raise InputError("too_large", path=path, value=shown(raw))
    return value


def _as_number(raw: object, path: str) -> float:
    if isinstance(raw, (int, float, str)) and not isinstance(raw, bool):
        try:
            return float(raw)
        except (ValueError, OverflowError):
            pass
    raise InputError("not_a_number", path=path, value=shown(raw))


def positive(raw: object, path: str) -> float:
    """A number above 0."""
    value = number(raw, path)
    if value <= 0:
        raise InputError("not_positive", path=path, value=shown(raw))
    return value


def share(raw: object, path: str) -> float:
    """A number from 0 to 1."""
    value = number(raw, path)
    if not 0 <= value <= 1:
        raise InputError("outside", path=path, value=shown(raw), low="0", high="1")
    return value


def utilization(raw: object, path: str) -> float:
    """A share of the device's memory, above 0 and at most 1."""
    value = number(raw, path)
    if not 0 < value <= 1:
        raise InputError("outside_open", path=path, value=shown(raw), low="0", high="1")
    return value


def count(raw: object, path: str) -> int:
    """A whole number of at least 1."""
    value = number(raw, path)
    if value != int(value):
        raise InputError("not_whole", path=path, value=shown(raw))
    if value < 1:
        raise InputError("below_one", path=path, value=shown(raw))
    return int(value)


def tokens(raw: object, path: str) -> int:
    """A count that may be written as vLLM reads it: ``8k`` is 8,000 and ``8K`` is 8,192."""
    scales = {"k": 10**3, "K": 2**10, "m": 10**6, "M": 2**20, "g": 10**9, "G": 2**30}
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)([kKmMgG])", raw.strip()) if isinstance(raw, str) else None
    return count(raw if found is None else int(float(found[1]) * scales[found[2]]), path)


def optional_tokens(raw: object, path: str) -> int | None:
    """A count of tokens; ``auto`` and -1 leave it to the engine."""
    return None if raw in (None, "auto", "-1", -1) else tokens(raw, path)


def switch(raw: object, path: str) -> bool:
    """True or false, in any of their usual spellings."""
    words = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
    found = words.get(str(raw).strip().lower()) if isinstance(raw, (bool, str, int)) else None
    if found is None:
        raise InputError("not_a_switch", path=path, value=shown(raw))
    return found


def word(raw: object, path: str) -> str:
    """Text that is not empty."""
    if isinstance(raw, (int, float)) and not isinstance(raw, bool):
        return str(raw)
    if not isinstance(raw, str) or not raw.strip():
        raise InputError("not_text", path=path, value=shown(raw))
    if "\0" in raw or len(raw) > 4096:
        raise InputError("not_text", path=path, value=shown(raw))
    return raw.strip()


def one_of(names: Sequence[str], aliases: Mapping[str, str] | None = None) -> Parser:
    """A parser for a word of a closed list, in any case."""

    def parse(raw: object, path: str) -> str:
        given = word(raw, path).lower()
        given = (aliases or {}).get(given, given)
        if given not in names:
            near = get_close_matches(given, names, n=3, cutoff=0.5) or names
            raise InputError("not_one_of", path=path, value=shown(raw), names=", ".join(near))
        return given

    return parse


def uncertain(check: Callable[[object, str], float]) -> Parser:
    """A parser for a number, ``{low, high}``, ``{mean, p95}`` or the text ``low..high``, each bound checked."""

    def parse(raw: object, path: str) -> Value:
        if isinstance(raw, str) and ".." in raw:
            low, _, high = raw.partition("..")
            return _range(check(low, f"{path}.low"), check(high, f"{path}.high"), path)
        if not isinstance(raw, Mapping):
            return check(raw, path)
        if set(raw) == {"low", "high"}:
            return _range(check(raw["low"], f"{path}.low"), check(raw["high"], f"{path}.high"), path)
        if set(raw) == {"mean", "p95"}:
            return _spread(check(raw["mean"], f"{path}.mean"), check(raw["p95"], f"{path}.p95"), path)
        raise InputError("not_uncertain", path=path, value=shown(sorted(str(key) for key in raw)))

    return parse


def _range(low: float, high: float, path: str) -> Value:
    if low > high:
        raise InputError("range_order", path=path, low=shown(low), high=shown(high))
    return low if low == high else Range(low=low, high=high)


def _spread(mean: float, p95: float, path: str) -> Value:
    if mean <= 0:
        raise InputError("not_positive", path=f"{path}.mean", value=shown(mean))
    if not mean <= p95 <= mean * SPREAD_LIMIT:
        raise InputError("spread", path=path, mean=shown(mean), p95=shown(p95), limit=f"{mean * SPREAD_LIMIT:.4g}")
    return mean if p95 == mean else Spread(mean=mean, p95=p95)


def shares(raw: object, path: str) -> tuple[float, ...]:
    """A list of numbers from 0 to 1; text with commas counts."""
    given = raw.split(",") if isinstance(raw, str) else raw
    if not isinstance(given, Sequence) or not given or len(given) > 1024:
        raise InputError("not_shares", path=path, value=shown(raw))
    return tuple(share(value, f"{path}[{place}]") for place, value in enumerate(given))


def refuse_unknown(keys: object, known: Sequence[str], prefix: str = "") -> None:
    """Refuse the first key that is not known, with the nearest one."""
    for key in keys if isinstance(keys, (Mapping, Sequence)) else ():
        if key in known:
            continue
        near = get_close_matches(str(key).lower(), known, n=1, cutoff=0.6)
        path = f"{prefix}{shown(str(key))}"
        if near:
            raise InputError("unknown_key_near", path=path, near=f"{prefix}{near[0]}")
        raise InputError("unknown_key", path=path, known=", ".join(known))
