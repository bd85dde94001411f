"""The share of prompt tokens that a prefix cache served, as a setting states it."""

from __future__ import annotations

import re

from breakeven.measured.words._spelling import ARROW, refused, stated

COUNTED = re.compile(r"(\d{1,9})\s+of\s+(\d{1,9})(?:\s+\w+)*\s+tokens", re.IGNORECASE)
PERCENT = re.compile(r"(\d{1,3}(?:\.\d+)?)\s*%")
SHARE = re.compile(r"\b(?:share|hit[_ ]?rate|ratio)\s*[=:]\s*(\d{1,3}(?:\.\d+)?)(?![\d.]|\s*%)", re.IGNORECASE)


def hit_rate(text: str) -> float:
    """The share that a setting states: tokens counted before a rounded per cent, the last of several per cents.

    >>> hit_rate("prefix ratio 0% -> 95%"), hit_rate("cache=on;share=50")
    (0.95, 0.5)
    """
    phrase = stated(text, "hit_rate")
    if found := COUNTED.search(phrase):
        return _share(float(found[1]), float(found[2]), phrase)
    last = ARROW.split(phrase)[-1]
    percents = PERCENT.findall(last)
    if len(percents) == 1:
        return _share(float(percents[0]), 100.0, phrase)
    if not percents and (found := SHARE.search(last)):
        # A share above 1 is in per cent: "share=50".
        return _share(float(found[1]), 100.0 if float(found[1]) > 1.0 else 1.0, phrase)
    raise refused("no_share", field="hit_rate", text=phrase)


def _share(part: float, whole: float, phrase: str) -> float:
    if not 0.0 <= part <= whole or whole == 0.0:
        raise refused("no_share", field="hit_rate", text=phrase)
    return part / whole
