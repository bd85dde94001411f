"""What SGLang's launch command and its start-up log say in the same words: settings, formats, ranks, and how it speculates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from breakeven.errors import InputError
from breakeven.origin.speculative import speculative_of
from breakeven.origin.values import shown
from breakeven.spec.engine import Speculative

FIELDS: Mapping[str, str] = {
    "tp_size": "tensor_parallel_size",
    "pp_size": "pipeline_parallel_size",
    "mem_fraction_static": "gpu_memory_utilization",
    "max_total_tokens": "kv_cache_tokens",
    "page_size": "block_size",
    "dtype": "dtype",
    "context_length": "max_model_len",
    "mamba_ssm_dtype": "mamba_ssm_cache_dtype",
}
"""Its arguments that are fields of ``Engine`` by another name."""
QUANTIZATION: Mapping[str, str] = {
    "modelopt_fp8": "modelopt",
    "w8a8_fp8": "fp8",
    "marlin": "int4_marlin",
    "blockwise_int8": "int8",
    "unquant": "none",
}
"""Its words for formats to those that are known."""
METHODS: Mapping[str, str] = {"eagle": "eagle", "eagle3": "eagle3", "nextn": "mtp", "standalone": "draft_model", "ngram": "ngram"}
OWN_HEAD_STEPS = 3
"""Steps of a model's own head where none are stated: auto_choose_speculative_params, (3, 1, 4) for DeepSeek."""
NGRAM_TOKENS = 12
"""Draft tokens of NGRAM where none are stated: server_args.py."""


def speculation_of(algorithm: str, draft: str | None, steps: int | None, topk: int | None, rows: int | None) -> Speculative | None:
    """Steps are drafted tokens, draft tokens are the rows verified; a head without a draft of its own is the model's MTP."""
    given = algorithm.strip().lower()
    method = "mtp" if given == "eagle" and draft is None else METHODS.get(given, given)
    table: dict[str, Any] = {"method": method}
    if draft is not None and method not in ("mtp", "ngram"):
        table["model"] = draft
    if method == "ngram":
        table["num_speculative_tokens"] = max(1, (rows or NGRAM_TOKENS) - 1)
        return speculative_of(table, "--speculative-algorithm")[0]
    steps = steps or (OWN_HEAD_STEPS if method == "mtp" else None)
    if steps is None:
        raise InputError("launch_speculative_steps", algorithm=shown(given.upper()))
    # With one branch the engine verifies steps + 1 rows whatever is stated.
    table |= {"num_speculative_tokens": steps, "topk": topk or 1} | ({"verify_tokens": rows} if rows and (topk or 1) > 1 else {})
    return speculative_of(table, "--speculative-algorithm")[0]


def ranks_of(tensor: int, ranks: int, experts: int, *, attention: bool) -> dict[str, object]:
    """Data-parallel attention splits the devices of ``--tp`` among the ranks of ``--dp``; without it the ranks are replicas."""
    found: dict[str, object] = {"enable_expert_parallel": True} if experts > 1 else {}
    if ranks == 1:
        return found
    found["data_parallel_size"] = ranks
    if not attention:
        return found
    if tensor % ranks:
        raise InputError("launch_attention_ranks", tensor=tensor, ranks=ranks)
    return found | {"tensor_parallel_size": tensor // ranks}
