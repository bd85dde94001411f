"""Raw values, as files and command lines hold them, to typed ones: one clear line for each that cannot be used."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from reprlib import Repr

from breakeven.errors import InputError
from breakeven.spec import bounds
from breakeven.stats import Range, Spread, Value

_WRITER = Repr()
_WRITER.maxstring = _WRITER.maxother = _WRITER.maxlong = 40
Parser = Callable[[object, str], object]
SMALLEST_MEMORY = 1e8
"""Bytes under which a memory is a count of GB that lost its unit."""
UNCERTAIN_KEYS = ("low", "high", "mean", "p95")


def shown(raw: object, longest: int = 80) -> str:
    """A value as the user wrote it, short enough for one line."""
    written = raw if isinstance(raw, str) else _WRITER.repr(raw)
    cut = written if len(written) <= longest else f"{written[:longest]}…"
    line = "".join(sign if sign.isprintable() else "�" for sign in cut)
    return line or "''"


def number(raw: object, path: str, rule: bounds.Rule = bounds.finite) -> float:
    """A number that keeps a rule; text that spells one counts."""
    value = _as_number(raw, path)
    rule(value, path)
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
    return number(raw, path, bounds.positive)


def utilization(raw: object, path: str) -> float:
    """A share of the device's memory, above 0 and at most 1."""
    return number(raw, path, bounds.part)


def count(raw: object, path: str) -> int:
    """A whole number of at least 1."""
    return int(number(raw, path, bounds.whole))


def tokens(raw: object, path: str) -> int:
    """A count that may be written as vLLM reads it: ``8k`` is 8,000 and ``8K`` is 8,192."""
    scales = {"k": 10**3, "K": 2**10, "m": 10**6, "M": 2**20, "g": 10**9, "G": 2**30}
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)([kKmMgG])", raw.strip()) if isinstance(raw, str) else None
    return count(raw if found is None else int(float(found[1]) * scales[found[2]]), path)


def size(raw: object, path: str) -> float:
    """Bytes of a memory: a number, or text that says its unit, GB being 10⁹ and GiB 2³⁰."""
    scales = {"": 1.0, "B": 1.0, "MB": 1e6, "GB": 1e9, "TB": 1e12, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
    by_case = {unit.lower(): scale for unit, scale in scales.items()}
    found = re.fullmatch(r"([\d.]+(?:[eE][+-]?\d+)?)\s*([A-Za-z]*)", raw.strip()) if isinstance(raw, str) else None
    if found is not None and found[2].lower() not in by_case:
        raise InputError("not_a_size", path=path, value=shown(raw))
    value = positive(raw if found is None else found[1], path) * (1.0 if found is None else by_case[found[2].lower()])
    if value < SMALLEST_MEMORY:
        raise InputError("memory_too_small", path=path, value=shown(raw))
    return value


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


def uncertain(rule: bounds.Rule) -> Parser:
    """A parser for a number, ``{low, high}``, ``{mean, p95}`` or the text ``low..high``."""

    def parse(raw: object, path: str) -> Value:
        value = _value(raw, path)
        bounds.check_value(value, path, rule)
        if isinstance(value, Range) and value.low == value.high:
            return value.low
        return value.mean if isinstance(value, Spread) and value.mean == value.p95 else value

    return parse


def _value(raw: object, path: str) -> Value:
    if isinstance(raw, str) and ".." in raw:
        low, _, high = raw.partition("..")
        raw = {"low": low, "high": high}
    if not isinstance(raw, Mapping):
        return _as_number(raw, path)
    numbers = {str(name): _as_number(value, f"{path}.{shown(str(name))}") for name, value in raw.items() if name in UNCERTAIN_KEYS}
    if set(raw) == {"low", "high"}:
        return Range(**numbers)
    if set(raw) == {"mean", "p95"}:
        return Spread(**numbers)
    raise InputError("not_uncertain", path=path, value=shown(sorted(str(key) for key in raw)))


def numbers(raw: object, path: str) -> tuple[float, ...]:
    """A list of numbers; text with commas counts."""
    given = raw.split(",") if isinstance(raw, str) else raw
    if not isinstance(given, Sequence) or not given or len(given) > 1024:
        raise InputError("not_shares", path=path, value=shown(raw))
    return tuple(number(value, f"{path}[{place}]") for place, value in enumerate(given))


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
