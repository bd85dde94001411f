"""What an engine adapter is: which of an engine's metrics tell which quantity, from which version on, in which unit, and what it hides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from breakeven.messages import Message

Kind = Literal["counter", "gauge", "histogram", "info"]
QUANTITIES: Mapping[str, Kind] = {
    "running": "gauge",  # sequences in the running batch
    "waiting": "gauge",
    "running_prefill": "gauge",  # those of them whose prompt is computed
    "running_decode": "gauge",
    "swapped": "gauge",
    "max_running": "gauge",
    "kv_usage": "gauge",  # share, 0 to 1
    "kv_used_tokens": "gauge",
    "kv_total_tokens": "gauge",
    "kv_used_blocks": "gauge",
    "kv_total_blocks": "gauge",
    "kv_block_tokens": "gauge",  # tokens of a block
    "decode_context_tokens": "gauge",  # Σ cached tokens of the sequences that decode
    "decode_output_tokens": "gauge",  # Σ output tokens so far of the sequences that decode
    "hit_rate_gauge": "gauge",  # of the engine's last window
    "accept_length_gauge": "gauge",  # bonus token included
    "accept_rate_gauge": "gauge",  # accepted over drafted
    "spec_efficiency_gauge": "gauge",  # emitted over the most that could be: k accepted and a bonus token each round
    "busy_per_step": "gauge",  # sequences per step since the engine started
    "prompt_tokens": "counter",  # logical: cached ones among them
    "prompt_tokens_computed": "counter",
    "prompt_tokens_cached": "counter",
    "prompt_tokens_by_source": "counter",  # split by where they came from; adds up to prompt_tokens
    "prompt_tokens_recomputed": "counter",  # of them: computed a second time
    "output_tokens": "counter",
    "decode_tokens": "counter",  # output tokens without the first of each answer
    "requests_finished": "counter",
    "requests_failed": "counter",
    "preemptions": "counter",
    "prefix_queries": "counter",  # tokens looked up
    "prefix_hits": "counter",  # tokens found
    "steps": "counter",  # forward passes of the whole batch
    "busy_sequence_steps": "counter",  # sequences summed over the steps
    "prompt_seconds": "counter",
    "decode_seconds": "counter",  # summed over sequences
    "drafts": "counter",  # rounds that drafted
    "draft_tokens": "counter",
    "accepted_tokens": "counter",
    "emitted_tokens": "counter",  # of rounds that drafted: accepted and bonus tokens
    "accepted_at": "counter",  # split by position from 0
    "ttft": "histogram",  # seconds
    "itl": "histogram",  # seconds between outputs of a sequence
    "tpot": "histogram",  # seconds per token of a request, amortised
    "e2e": "histogram",
    "queue": "histogram",
    "prefill_time": "histogram",
    "decode_time": "histogram",
    "step_tokens": "histogram",  # tokens of a step, prompt tokens among them
    "step_time": "histogram",
    "prefill_step_time": "histogram",  # of steps that compute prompts only, where the engine has such
    "input_tokens": "histogram",  # of finished requests
    "generated_tokens": "histogram",
    "cache_config": "info",
    "model_config": "info",
    "device_dram_active": "gauge",
    "device_tensor_active": "gauge",
    "device_memory_used_bytes": "gauge",
    "device_memory_free_bytes": "gauge",
    "device_power_w": "gauge",
    "device_info": "info",  # what it is called, as labels
    "device_busy": "gauge",  # share of the time a kernel ran: says nothing of bandwidth
}
"""Every quantity that an engine may tell, and how it is counted. SI units; shares from 0 to 1."""

AVERAGED = frozenset(
    (
        *("kv_usage", "hit_rate_gauge", "accept_length_gauge", "accept_rate_gauge", "spec_efficiency_gauge", "busy_per_step"),
        *("kv_block_tokens", "device_dram_active", "device_tensor_active", "device_busy"),
    )
)
"""Gauges whose mean over series means something; all others are added up."""


@dataclass(frozen=True, kw_only=True)
class Alias:
    """One name of a quantity on a page."""

    family: str
    """The metric's name, e.g. ``vllm:num_requests_running``: of a counter with or without ``_total``, of a histogram without ``_bucket``.

    What a histogram's sum or count says alone is a counter by its whole name (``vllm:iteration_tokens_total_count``).
    """
    scale: float = 1.0
    """Times the value on the page is the quantity in SI units."""
    where: Mapping[str, str] = field(default_factory=dict)
    """Labels a sample must carry to be counted; ``a|b``: either value, ``*``: any but none."""
    split: str = ""
    """The label that splits the quantity (``position``, ``finished_reason``); kept, and not summed over."""
    since: str = ""
    before: str = ""
    """First version that has it, and the first that has not (empty: always)."""
    sense: str = ""
    """What exactly it is, as a key of ``locale/*/adapter.toml`` (when a TTFT begins, what an ITL lies between, what is double-counted)."""
    biased: bool = False
    """Whether it is known to count wrongly in some version; ``sense`` says how. Taken only where nothing better is there."""


@dataclass(frozen=True, kw_only=True)
class NotExposed:
    """A quantity that an engine does not tell, and what to do instead."""

    quantity: str
    instead: Message


@dataclass(frozen=True, kw_only=True)
class Adapter:
    """One engine's page: a file of ``adapters/`` has it as ``ADAPTER``."""

    engine: str
    """The engine's name in the catalogue (``vllm``); of a router or of a device's exporter: empty."""
    role: Literal["engine", "router", "device"] = "engine"
    prefixes: tuple[str, ...]
    """What its families begin with: the first as the aliases write it, the others as it is also written (``sglang_``, ``ray_vllm_``)."""
    form: Literal["text", "json"] = "text"
    """Prometheus text, or a list of iterations in JSON, whose fields are the families (``kvCacheStats.usedNumBlocks``)."""
    marks: tuple[str, ...] = ()
    """Names that only its pages have: where none is on the page, it is none of its own. Needed where others have its names too."""
    quantities: Mapping[str, tuple[Alias, ...]]
    """Key of ``QUANTITIES`` to its names, the best first: the first that is on the page is taken, and said."""
    rank_labels: tuple[str, ...] = ()
    """Labels that tell ranks or replicas apart (``engine``, ``dp_rank``); all other labels but these and ``split`` are summed over."""
    copy_labels: tuple[str, ...] = ()
    """Labels of ranks that tell the same again (``tp_rank``): only the first of them is taken."""
    model_label: str = "model_name"
    not_exposed: tuple[NotExposed, ...] = ()


def meaning(sense: str) -> Message:
    """What a number is, in words, by the sense of its alias."""
    return Message(f"adapter.{sense}")
