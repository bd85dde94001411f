"""Formats of weights and cache as people write them, as kernel families; and a lever's setting as its two sides."""

from __future__ import annotations

import re

from breakeven.kernels import BY_QUANTIZATION, kv_names, weight_names
from breakeven.kernels import KV_WORDS as ENGINES_KV_WORDS
from breakeven.measured.words._spelling import ARROW, part_of, plain, refused, stated, table, without_remarks
from breakeven.spec.model import Model

BITS = re.compile(r"(\d+(?:\.\d+)?)\s*(?:bpw|bits? per weight)\b", re.IGNORECASE)
KV_BEFORE = re.compile(r"^(?:kv(?:[ _-]?(?:cache|type|dtype))?)[\s=:]+", re.IGNORECASE)


def setting(text: str) -> tuple[str, str]:
    """The two sides of a setting: ``F16 (12.55 GiB)->Q8_0`` is F16 and Q8_0. The first is empty where only the second is stated."""
    phrase = KV_BEFORE.sub("", stated(text, "setting"))
    sides = [without_remarks(side) for side in ARROW.split(phrase)]
    if len(sides) > 2 or not sides[-1]:
        raise refused("not_two_sides", field="setting", text=phrase)
    return ("", sides[0]) if len(sides) == 1 else (sides[0], sides[1])


def bits_per_weight(text: str) -> float | None:
    """Bits per weight where a side states them: ``IQ2_M(2.93 bpw)``."""
    found = BITS.search(plain(text, "weight_format"))
    return float(found[1]) if found else None


def weight_format(text: str, engine: str = "", model: Model | None = None) -> str:
    """The kernel family of a weight format as written.

    ``engine`` decides words that engines use differently (``int8`` of gpt-fast are weights only), ``model`` which 4-bit floats ``fp4`` are.
    """
    phrase = part_of(stated(text, "weight_format"), "weights", "target")
    if ARROW.search(phrase):
        raise refused("two_named", field="weight_format", text=phrase)
    known = table("formats")
    word = _word(phrase, known["weights"]["drop"])
    by_engine = known["weights"]["by_engine"].get(engine, {})
    found = by_engine.get(word) or known["weights"]["called"].get(word) or BY_QUANTIZATION.get(word)
    if word in ("fp4", "4-bit float"):
        found = "mxfp4" if model is not None and "mxfp4" in model.stored.values() else "nvfp4"
    found = found or (word if word in weight_names() and word not in known["weights"]["not_clear"] else None)
    if "weight-only" in phrase.lower() and found in known["weights"]["weights_only"]:
        found = known["weights"]["weights_only"][found]
    if found is None:
        raise refused("weight_format_unknown", field="weight_format", text=phrase)
    return str(found)


def kv_format(text: str) -> str:
    """The family that reads a cache format as written."""
    phrase = KV_BEFORE.sub("", part_of(stated(text, "kv_format"), "kv"))
    if ARROW.search(phrase):
        raise refused("two_named", field="kv_format", text=phrase)
    known = table("formats")["kv"]
    word = _word(phrase, known["drop"])
    found = known["called"].get(word) or ENGINES_KV_WORDS.get(word) or (word if word in kv_names() else None)
    if found is None:
        raise refused("kv_format_unknown", field="kv_format", text=phrase, known=", ".join(kv_names()))
    return str(found)


def _word(phrase: str, drop: list[str]) -> str:
    """The format's own word: lower case, without remarks and without what says nothing of the format."""
    word = without_remarks(phrase).lower()
    for pattern in drop:
        word = re.sub(pattern, " ", word)
    return " ".join(word.split()).strip(" -,+;")
