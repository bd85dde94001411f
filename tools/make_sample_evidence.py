"""Writes examples/made-up-evidence.json: what `breakeven observe` would keep of an engine that is made up, step by step.

Run from the root, with PYTHONPATH=tests/contract: `.venv/bin/python tools/make_sample_evidence.py`. The same seed gives the same bytes.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from synthetic_engine import Engine, Request, run

from breakeven import api, streams
from breakeven.adapters.vllm import ADAPTER
from breakeven.observation.summary import summarised
from breakeven.observation.timeline import Series, Timeline
from breakeven.renderers import json
from breakeven.spec.evidence import Told

START_S, SECONDS, WARM_S, EVERY_S = 1_767_600_000.0, 300.0, 60.0, 2.0
RATE, HITS, SEED = 9.0, 0.3, 7
MODEL, DEVICE, POOL = "meta-llama/Llama-3.1-8B-Instruct", "h100-sxm", 411_000
TOLD = Told(
    engine="vllm",
    version="0.11.0",
    model=MODEL,
    settings={"block_size": 16, "max_num_seqs": 256, "enable_prefix_caching": True, "gpu_memory_utilization": 0.9},
    kv_tokens=POOL,
    sources={"version": "/version", "model": "/v1/models", "block_size": "vllm:cache_config_info", "kv_tokens": "vllm:cache_config_info"},
)


def requests(draw: random.Random) -> list[Request]:
    came, found = 0.0, []
    while came < WARM_S + SECONDS:
        came += draw.expovariate(RATE)
        found.append(Request(came=came, prompt=round(draw.lognormvariate(6.8, 0.5)), output=max(2, round(draw.expovariate(1 / 240)))))
    return found


def timeline() -> Timeline:
    engine = Engine(step_s=lambda batch: 0.0074 + 0.00011 * batch, pool_tokens=float(POOL))
    watch = run(engine, requests(random.Random(SEED)), WARM_S + SECONDS, every_s=EVERY_S, warm=WARM_S)
    made = watch.timeline()
    known = [replace(one, alias=ADAPTER.quantities[one.quantity][0]) for one in made.series if one.quantity in ADAPTER.quantities]
    known += [cached(one) for one in known if one.quantity == "prompt_tokens"]
    moved = [replace(one, times=one.times + START_S) for one in known]
    return replace(made, series=tuple(moved), start_s=made.start_s + START_S, end_s=made.end_s + START_S)


def cached(prompts: Series) -> Series:
    """A part of the prompt tokens, in whole blocks, as served from the prefix cache."""
    name = "prompt_tokens_cached"
    return replace(prompts, quantity=name, alias=ADAPTER.quantities[name][0], values=prompts.values * HITS // 16 * 16)


def main() -> None:
    seen = timeline()
    first = summarised(seen, TOLD, target="http://localhost:8000", source="live")
    deployment, _ = api.load(evidence=first, flags={"hardware": DEVICE})
    evidence = summarised(seen, TOLD, target="http://localhost:8000", source="live", deployment=deployment)
    streams.write_file(Path("examples/made-up-evidence.json"), json.render(evidence))


if __name__ == "__main__":
    main()
