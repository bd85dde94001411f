"""The one reader of what people write of their measurements: a phrase, and what it means; or one clear line why it is not understood.

Names are the catalogue's own wherever they can be; further words are tables in ``catalog/words``. Nothing is guessed: each function raises
:class:`breakeven.measured.row.NotUnderstood` and nothing else.
"""

from __future__ import annotations

from breakeven.measured.words.dates import days_apart
from breakeven.measured.words.devices import device
from breakeven.measured.words.drafts import acceptance, speculative
from breakeven.measured.words.engines import engine
from breakeven.measured.words.formats import bits_per_weight, kv_format, setting, weight_format
from breakeven.measured.words.hits import hit_rate
from breakeven.measured.words.lever_names import lever
from breakeven.measured.words.loads import Load, load
from breakeven.measured.words.metrics import Metric, metric
from breakeven.measured.words.models import model
from breakeven.measured.words.quantities import number, task, tokens
from breakeven.measured.words.said import FIELDS, said
from breakeven.measured.words.splits import Split, parallelism, split_of

__all__ = [
    "FIELDS",
    "Load",
    "Metric",
    "Split",
    "acceptance",
    "bits_per_weight",
    "days_apart",
    "device",
    "engine",
    "hit_rate",
    "kv_format",
    "lever",
    "load",
    "metric",
    "model",
    "number",
    "parallelism",
    "said",
    "setting",
    "speculative",
    "split_of",
    "task",
    "tokens",
    "weight_format",
]
