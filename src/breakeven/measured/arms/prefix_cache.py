"""Prompts served from the cache: the device time of a prompt, and what a server reaches."""

from __future__ import annotations

import re

from breakeven.measured import speeds, strings
from breakeven.measured.conditions import Arms, base, set_engine, text, under
from breakeven.measured.row import Row

LATENCIES = ("TTFT", "mean request latency", "first token time")


def arms(row: Row) -> Arms:
    """No prefix kept, against prefixes kept at the row's rate of hits."""
    setting, metric = text(row, "lever_setting"), text(row, "metric")
    share = re.search(r"(\d+)%\)?$", setting)
    if share is None or "hit rate" in metric or metric in LATENCIES:
        raise strings.refused("hits_unknown", written=f"{metric}, {setting}")
    hits, prompt = float(share[1]) / 100, strings.number(text(row, "context_or_input_len"), "prompt")
    # The paper's shape ran on 8 devices of a node.
    parallelism = "TP8" if text(row, "parallelism") == "see paper" else ""
    engine = "vLLM V1" if text(row, "engine").startswith("Mooncake") else text(row, "engine").split(" +")[0]
    d = base(row, engine=engine, parallelism=parallelism)
    rate = re.match(r"QPS (\d+)", text(row, "batch_or_concurrency"))
    if rate:
        output = strings.number(text(row, "output_len"), "output")
        off = under(d, request_rate=float(rate[1]), input_tokens=prompt, output_tokens=output, prefix_hit_rate=hits)
        speed, regime, sigma = speeds.REQUEST_RATE, "throughput", "step"
    else:
        off = under(d, concurrency=1.0, input_tokens=prompt, output_tokens=2.0, prefix_hit_rate=hits)
        speed, regime, sigma = speeds.PROMPT_WORK, "prefill work", "prefill"
    return Arms(off=off, on=set_engine(off, enable_prefix_caching=True), speed=speed, regime=regime, sigma_row=sigma)
