"""The two forms of a measured row, told by their columns: a lever's two arms, or absolute times of one deployment."""

from __future__ import annotations

from collections.abc import Collection, Mapping

PAIR_NEEDED = ("lever", "hardware", "engine", "model")
PAIR_GAINS: tuple[tuple[str, ...], ...] = (("value_off", "value_on"), ("ratio_on_over_off",), ("gain_gt1_is_better",))
"""A pair states its two values, their ratio, or the gain: one of them is enough."""
RUN_NEEDED = ("model_path", "system", "backend", "isl", "osl", "concurrency", "silicon_tpot_ms")
PAIR_COLUMNS = (
    "case_id",
    "source",
    "n_gpus",
    "parallelism",
    "weight_dtype",
    "kv_dtype",
    "lever_setting",
    "batch_or_concurrency",
    "context_or_input_len",
    "output_len",
    "metric",
    "unit",
    "notes",
    "how_read",
    "group",
    "quality",
)
RUN_COLUMNS = ("id", "precision", "mode", "silicon_ttft_ms", "tp_size", "backend_version", "measured_date")
KNOWN = frozenset((*PAIR_NEEDED, *(name for names in PAIR_GAINS for name in names), *RUN_NEEDED, *PAIR_COLUMNS, *RUN_COLUMNS))


def named(header: str) -> str:
    """A column's name: a known one however its case is, any other as it is written."""
    bare = header.strip()
    return bare.lower() if bare.lower() in KNOWN else bare


def missing_for_pairs(columns: Collection[str]) -> tuple[str, ...]:
    """Columns that pairs need and the file has not."""
    missing = tuple(name for name in PAIR_NEEDED if name not in columns)
    stated = any(set(names) <= set(columns) for names in PAIR_GAINS)
    return missing if stated else (*missing, *PAIR_GAINS[0])


def missing_for_runs(columns: Collection[str]) -> tuple[str, ...]:
    """Columns that absolute rows need and the file has not."""
    return tuple(name for name in RUN_NEEDED if name not in columns)


def is_pair(fields: Mapping[str, str]) -> bool:
    """Whether a row is a lever's two arms: in a file of both forms, where it names a lever."""
    return bool(fields.get("lever")) or not any(fields.get(name) for name in RUN_NEEDED)
