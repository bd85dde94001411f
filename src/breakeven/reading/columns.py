"""One quantity of many requests, packed as they come in; what no request says takes no room."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

NO_TIME, NONE = -(2**63), -1
"""Stand for what a request does not say, in columns of times and of counts; in those of durations NaN does."""


class Column:
    """Values of one machine type, one entry a request."""

    def __init__(self, kind: str, empty: Any) -> None:
        self.kind, self.empty = kind, empty
        self.values = array(kind)
        self.unsaid = 0
        """Entries before the first that says something."""

    def __len__(self) -> int:
        return self.unsaid + len(self.values)

    def append(self, value: Any) -> None:
        """The value of one more request, or that it says none."""
        if value is None and not self.values:
            self.unsaid += 1
        else:
            self.values.append(self.empty if value is None else value)

    def extend(self, values: NDArray[Any] | None, size: int) -> None:
        """Values of so many requests at once, or that none of them says any."""
        if values is not None:
            self.values.frombytes(values.astype(self.kind).tobytes())
        elif self.values:
            self.values.frombytes(np.full(size, self.empty, dtype=self.kind).tobytes())
        else:
            self.unsaid += size

    def taken(self) -> NDArray[Any] | None:
        """All values, the column given up; none where no request says any."""
        values, unsaid, self.values, self.unsaid = self.values, self.unsaid, array(self.kind), 0
        if not values:
            return None
        found = np.frombuffer(values, dtype=self.kind)
        return np.concatenate((np.full(unsaid, self.empty, dtype=self.kind), found)) if unsaid else found


COLUMNS: dict[str, tuple[str, float]] = {
    "arrival": ("q", NO_TIME),
    "input": ("i", NONE),
    "output": ("i", NONE),
    "cached": ("i", NONE),
    "session": ("i", NONE),
    "group": ("i", NONE),
    "ttft": ("d", float("nan")),
    "e2e": ("d", float("nan")),
}
"""Per request: the type it is kept in, and what stands for nothing."""
RAGGED = {"hash": "q", "prompt": "i", "completion": "i"}
"""Lists of ids of requests, one after another, and the type of an id."""


def columns() -> dict[str, Column]:
    """Empty columns of all quantities, of all lists of ids, and of the lengths of those (``hash_size`` …)."""
    lists = {name: Column(kind, 0) for name, kind in RAGGED.items()}
    return {**{name: Column(*kind) for name, kind in COLUMNS.items()}, **lists, **{f"{name}_size": Column("i", 0) for name in RAGGED}}
