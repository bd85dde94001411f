"""What the page calls levels of knowledge, kinds of answers and rivals."""

from __future__ import annotations

from collections.abc import Mapping

LEVELS: Mapping[str, str] = {
    "left_out": "its group left out of the fit",
    "source_left_out": "its whole source left out",
    "rows_1": "one row of its group known",
    "rows_3": "three rows of its group known",
    "rows_5": "five rows of its group known",
    "rows_10": "ten rows of its group known",
    "calibrated": "its group calibrated",
    "shipped": "as shipped",
}
KINDS: Mapping[str, str] = {
    "weight_quant": "weight quantisation",
    "kv_quant": "KV quantisation",
    "prefix_cache": "prefix caching",
    "speculation": "speculation",
    "batching": "batching",
    "tpot": "TPOT",
    "ttft": "TTFT",
}
RIVALS: Mapping[str, str] = {
    "model": "**the model, as shipped**",
    "roofline": "bare roofline: max(bytes/BW, FLOP/F), sheet rates",
    "bytes": "bytes off over bytes on (weights; of the cache: of a whole step, the cache's kernel free)",
    "hits": "1/(1 − hit rate)",
    "length": "S = acceptance length",
    "length_over_1.6": "S = acceptance length / 1.6",
    "linear": "linear in the batch, up to the cap",
}
