"""The stated rule by which text without a tokenizer is cut: about as byte-pair vocabularies do, and alike for equal beginnings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from breakeven.compiled import compiled

MARK, LETTER, DIGIT, BLANK, LINE_END, TWO, THREE, FOUR = range(8)
"""Kinds of bytes: signs of ASCII, its letters …, and first bytes of characters of two, three and four bytes."""
LONGEST = np.array([3, 8, 3, 64, 8, 3, 1, 1], dtype=np.int64)
"""Characters of a kind that make one piece: a short word, three figures, a run of blanks, one ideograph."""
WIDTH = np.array([1, 1, 1, 1, 1, 2, 3, 4], dtype=np.int64)
SPACE = ord(" ")
BASIS, PRIME, KEPT = 2166136261, 16777619, 0x7FFFFFFF
"""FNV-1a over the bytes of a piece; 31 bits are kept, a token id being a positive 32-bit number."""


def _kinds() -> NDArray[np.int64]:
    kinds = np.full(256, MARK, dtype=np.int64)
    for first, last, kind in ((0x41, 0x5B, LETTER), (0x61, 0x7B, LETTER), (0x30, 0x3A, DIGIT), (0xC0, 0xE0, TWO), (0xE0, 0xF0, THREE)):
        kinds[first:last] = kind
    kinds[0xF0:0xF8] = FOUR
    kinds[[0x20, 0x09]] = BLANK
    kinds[[0x0A, 0x0D]] = LINE_END
    return kinds


KINDS = _kinds()


@compiled
def cut(text: NDArray[np.uint8], kinds: NDArray[np.int64], longest: NDArray[np.int64], width: NDArray[np.int64]) -> NDArray[np.int32]:
    """A number for each piece of a UTF-8 text: a run of one kind, no longer than its limit, with one space before a word or a sign."""
    found = np.empty(len(text), dtype=np.int32)
    pieces, place = 0, 0
    while place < len(text):
        start = place
        kind = kinds[text[place]]
        if text[place] == SPACE and place + 1 < len(text) and kinds[text[place + 1]] <= LETTER:
            place += 1
            kind = kinds[text[place]]
        signs = 0
        while place < len(text) and signs < longest[kind] and kinds[text[place]] == kind:
            place += width[kind]
            signs += 1
        place = min(place, len(text))
        name = np.int64(BASIS)
        for at in range(start, place):
            name = ((name ^ np.int64(text[at])) * PRIME) & 0xFFFFFFFF
        found[pieces] = name & KEPT
        pieces += 1
    return found[:pieces]
