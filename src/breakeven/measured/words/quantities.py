"""Numbers and lengths in tokens as people write them."""

from __future__ import annotations

import re
from math import isfinite

from breakeven.measured.words._spelling import plain, refused, stated, table, without_remarks
from breakeven.stats import Range, Value

NUMBER = re.compile(r"[~≈]?\s*([+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d{1,3})?|[+-]?\.\d+)\s*(%)?", re.IGNORECASE)
COUNT = re.compile(r"[~≈]?\s*(\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)\s*([kKmM])?(?:i)?(?:\s*(?:tokens?|tok))?", re.IGNORECASE)
SPAN = re.compile(r"\s*(?:\.\.+|-|–|\bto\b)\s*")
PREFIXED = re.compile(r"^(?:isl|osl|in(?:put)?|out(?:put)?|prompt|context|tg|pp)\s*[=:]?\s*(?=\d)", re.IGNORECASE)
SIZES = {"": 1.0, "K": 1024.0, "k": 1000.0, "M": 1024.0**2, "m": 1e6}
"""1K of context is 1,024 tokens, 20k of a report's prose 20,000."""


def number(text: str) -> float | None:
    """The number a field holds; None where the field is empty. ``~100`` is 100, ``87%`` is 0.87."""
    phrase = plain(text, "number")
    if not phrase:
        return None
    found = NUMBER.fullmatch(phrase)
    value = float(found[1].replace(",", "")) / (100.0 if found[2] else 1.0) if found else float("nan")
    if not isfinite(value):
        raise refused("no_number", field="number", text=phrase)
    return value


def tokens(text: str, side: str = "input") -> Value:
    """Tokens of a prompt or an answer (``side`` is ``input`` or ``output``): a number, a range, or what is assumed of a named set."""
    phrase = stated(text, "tokens")
    if (known := dataset(phrase)) is not None:
        low, high = (float(end) for end in known[side])
        return low if low == high else Range(low=low, high=high)
    bare = PREFIXED.sub("", without_remarks(phrase).replace("sweep", "").strip())
    ends = [_count(part) for part in SPAN.split(bare)] if bare else []
    if not 1 <= len(ends) <= 2 or None in ends:
        raise refused("no_tokens", field="tokens", text=phrase)
    values = [end for end in ends if end is not None]
    if len(values) == 1:
        return values[0]
    if not 0 < values[0] < values[1]:
        raise refused("no_tokens", field="tokens", text=phrase)
    return Range(low=values[0], high=values[1])


def task(text: str) -> str | None:
    """Which acceptance prior a named set of prompts is: ``gsm8k`` is math. None where the text names none."""
    known = dataset(plain(text, "tokens"))
    return str(known["task"]) if known and known.get("task") else None


def dataset(phrase: str) -> dict[str, list[float]] | None:
    """What is assumed of a named set of prompts."""
    word = re.sub(r"[\s_/.-]+", "", without_remarks(phrase).lower())
    for name, known in table("datasets").items():
        if any(word.startswith(each) for each in (name, *known.get("called", ()))):
            return dict(known)
    return None


def _count(part: str) -> float | None:
    found = COUNT.fullmatch(part.strip())
    return float(found[1].replace(",", "")) * SIZES[found[2] or ""] if found else None
