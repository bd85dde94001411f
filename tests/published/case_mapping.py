"""From gains to the words of reported cases, and which of the inputs that a row itself calls for it lacks."""

from __future__ import annotations

import re

from case_words import Row, text_of, words_of

PAYS, HURTS = 1.05, 0.98
MEETS = {
    "pays": ("pays",),
    "hurts": ("hurts",),
    "does_not_pay": ("does_not_pay",),
    "no_gain": ("does_not_pay", "hurts"),
}
"""A wanted word to the classes that meet it; ``gains`` is met by a gain above 1."""


def class_of(gain: float) -> str:
    """pays from 1.05, hurts below 0.98, does not pay between.

    >>> [class_of(gain) for gain in (1.05, 1.0, 0.97)]
    ['pays', 'does_not_pay', 'hurts']
    """
    return "pays" if gain >= PAYS else "hurts" if gain < HURTS else "does_not_pay"


def meets(want: str, gain: float) -> bool:
    """Whether a gain is what is said of it.

    >>> meets("gains", 1.01), meets("no_gain", 0.9), meets("pays", 1.01)
    (True, True, False)
    """
    return gain > 1.0 if want == "gains" else class_of(gain) in MEETS[want]


STATED: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (r"histogram|distribution|overlap", r"histogram|distribution", ("workload",)),
    (
        r"acceptance|accepted",
        r"\bAL \d|acceptance length \d|\d% acceptance|acceptance \d|accepted \d|at position 1 falls",
        ("observed", "title", "note"),
    ),
    (r"draft TP", r"draft.*TP\d", ("config", "hardware")),
    (r"draft (layers|parameters)|layers of draft", r"\d", ("arch",)),
    (r"^k$|k schedule", r"k ?= ?\d|schedule", ("config",)),
    (r"E/top-k|experts, top-k", r"E\d+ ?top", ("arch",)),
    (r"active (parameters|bytes)|total and active", r"active", ("arch",)),
    (r"number of layers with growing KV|head_dim", r"hd\d+", ("arch",)),
    (
        r"step time|cost of width|width curve|kernel cost|kernel time|host overhead|draft step",
        r"\bms\b.*(step|token\b|width)|w2 \d",
        ("observed", "note"),
    ),
    (r"kernel|attention backend", r"marlin|FA3|gemm|-fa on|turboquant", ("config", "hardware")),
    (r"GPU type|^GPU$|GPU FP8|format support|kernel path on this GPU|ridge", r"", ("hardware",)),
    (r"engine version", r"\d", ("engine",)),
    (r"QPS|arrival", r"QPS|request.?rate|\d req/s", ("workload",)),
    (r"hit rate", r"% hit|block reuse|% hit", ("title", "observed")),
    (r"distinct prefixes|shared prefix", r"\d+ (distinct )?prefix", ("workload", "config")),
    (r"prefill share|prefill/decode|in/out ratio|lengths|live length", r"\d+ ?[Kk]?(/|->| in)", ("workload", "config")),
    (r"concurrency|batch|running", r"concurren|stream|batch|\bbs \d|c=\d|max_num_seqs|num_prompts|closed loop", ("workload", "config")),
    (r"context", r"context|ctx|prompt|\d in\b|/\d", ("workload", "observed")),
    (r"TTFT limit", r"TTFT <=", ("config",)),
    (r"TP$", r"TP\d", ("hardware",)),
    (r"KV pool|pool|capacity ratio|free KV", r"KV \d|pool \d", ("hardware", "observed", "config")),
    (r"KV bytes|weights bytes|bytes", r"L\d+", ("arch",)),
    (r"tree size", r"draft tokens \d", ("config",)),
    (r"block size", r"block \d+", ("model", "config")),
)
"""An input that a row may call for, what states it, and in which of the row's fields; what no line knows is not stated."""


def stated(needed: str, row: Row) -> bool:
    """Whether a row states an input that it calls for."""
    for asked, states, fields in STATED:
        if re.search(asked, needed, re.IGNORECASE):
            if fields == ("hardware",) and not states:
                return words_of(row).device_named
            return re.search(states, text_of(row, *fields), re.IGNORECASE) is not None
    return False


def absent(row: Row) -> tuple[str, ...]:
    """The inputs that the row itself calls for and does not state."""
    needed = row["inputs_needed"]
    return tuple(name for name in needed if not stated(str(name), row)) if isinstance(needed, list) else ()


def is_binding(row: Row) -> bool:
    """High or medium confidence, a device and a model named, and a verdict (fixtures are exact tests of their own)."""
    words = words_of(row)
    return row["confidence"] != "low" and words.device_named and words.model_named and row["verdict_class"] != "fixture"
