"""Made-up logs of token ids, as traces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from breakeven.trace import Trace

Log = Sequence[tuple[Sequence[int], Sequence[int]]]


def trace_of(log: Log, groups: Sequence[int] | None = None, names: tuple[str, ...] = ()) -> Trace:
    """A trace of prompts and outputs without times."""
    prompts, outputs = [list(p) for p, _ in log], [list(o) for _, o in log]
    return Trace(
        name="log",
        form="made-up",
        arrival_s=None,
        input_tokens=np.array([len(p) for p in prompts], np.int64),
        output_tokens=np.array([len(o) for o in outputs], np.int64),
        prompt_ids=np.array([t for p in prompts for t in p], np.int32),
        prompt_offsets=np.cumsum([0, *map(len, prompts)]).astype(np.int64),
        output_ids=np.array([t for o in outputs for t in o], np.int32),
        output_offsets=np.cumsum([0, *map(len, outputs)]).astype(np.int64),
        groups=None if groups is None else np.array(groups, np.int32),
        group_names=names,
    )


def made_up(seed: int, requests: int, words: int) -> Log:
    """A log that repeats itself: phrases out of a small stock, with stray tokens; the same for the same seed, whatever the library."""
    state = seed

    def below(n: int) -> int:
        nonlocal state
        state = (state * 1103515245 + 12345) % 2**31
        return (state >> 12) % n

    stock = [[below(words) for _ in range(3 + below(9))] for _ in range(6)]

    def text(pieces: int) -> list[int]:
        return [token for _ in range(pieces) for token in (stock[below(6)] if below(3) else [below(words) for _ in range(1 + below(4))])]

    return [(text(below(5)), text(below(7))) for _ in range(requests)]
