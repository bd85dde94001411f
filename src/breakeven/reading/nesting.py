"""Where the objects and arrays of a JSON text begin and end at one depth, found without decoding it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from breakeven.compiled import compiled

DEPTH, IN_STRING, ESCAPED = 0, 1, 2
"""Places in the state that goes from one piece of the text to the next."""
QUOTE, BACKSLASH = ord('"'), ord("\\")
OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY = ord("{"), ord("}"), ord("["), ord("]")


def new_state() -> NDArray[np.int64]:
    """The state before the first piece."""
    return np.zeros(3, dtype=np.int64)


@compiled
def scan(piece: NDArray[np.uint8], state: NDArray[np.int64], wanted: int, ends: NDArray[np.int64]) -> int:
    """Writes where containers inside ``wanted`` others begin (the place) and end (minus the place after them); returns how many."""
    depth, in_string, escaped = state[0], state[1], state[2]
    found = 0
    for place in range(len(piece)):
        sign = piece[place]
        if in_string:
            if escaped:
                escaped = 0
            elif sign == BACKSLASH:
                escaped = 1
            elif sign == QUOTE:
                in_string = 0
        elif sign == QUOTE:
            in_string = 1
        elif sign in (OPEN_OBJECT, OPEN_ARRAY):
            if depth == wanted:
                ends[found] = place
                found += 1
            depth += 1
        elif sign in (CLOSE_OBJECT, CLOSE_ARRAY) and depth > 0:
            depth -= 1
            if depth == wanted:
                ends[found] = -(place + 1)
                found += 1
    state[0], state[1], state[2] = depth, in_string, escaped
    return found
