"""The workloads that are measured: requests like Azure's, the shared conversations, made-up chains; and the one deployment they run on."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from figure import DEVICE, MODEL, SHARED, work_folder

AZURE = SHARED / "traces/azure_2023_conv.csv"
CONVERSATION = SHARED / "traces/mooncake_conversation.jsonl"


def deployment(replicas: int = 1, **engine: Any) -> Any:
    """Llama-3.1-8B in vLLM on so many H100s, each a replica."""
    import breakeven as be

    return be.Deployment(
        model=be.model(MODEL),
        hardware=be.hardware(DEVICE, count=replicas),
        engine=be.Engine(**engine),
        workload=be.Workload(input_tokens=1155.0, output_tokens=211.0, request_rate=5.5),
    )


@cache
def azure_like(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arrivals, prompts and outputs: pairs of lengths and gaps drawn with repetition from the Azure conversations of 2023.

    Where those are not at hand, from log-normal lengths and exponential gaps of the same means.
    """
    rng = np.random.default_rng(seed)
    if AZURE.exists():
        from breakeven import traces

        trace = traces.read(AZURE)
        place = rng.integers(trace.requests, size=count)
        gaps = np.diff(trace.arrival_s)[rng.integers(trace.requests - 1, size=count)]
        prompts, outputs = trace.input_tokens[place], trace.output_tokens[place]
    else:
        gaps = rng.exponential(1 / 5.5, count)
        prompts, outputs = (np.minimum(rng.lognormal(np.log(mean) - 0.5, 1.0, count), 8000).astype(np.int64) for mean in (1155.0, 211.0))
    return np.cumsum(gaps) - gaps[0], np.maximum(prompts, 1), np.maximum(outputs, 1)


def azure_file(rows: int) -> Path:
    """So many rows in Azure's columns, its seven decimals and all; written once a machine."""
    path = work_folder() / f"azure-like-{rows}.csv"
    if not path.exists():
        arrival_s, prompts, outputs = azure_like(rows)
        ticks = np.datetime64("2023-11-16T18:15:46") + (arrival_s * 1e9).astype("timedelta64[ns]")
        stamps = (str(tick)[:-2].replace("T", " ") for tick in ticks)
        with path.open("w", newline="") as out:
            table = csv.writer(out)
            table.writerow(("TIMESTAMP", "ContextTokens", "GeneratedTokens"))
            table.writerows(zip(stamps, prompts.tolist(), outputs.tolist(), strict=True))
    return path


def conversation(requests: int | None = None) -> Any:
    """The shared conversation trace, or its first requests; without it, made-up conversations of as many."""
    from breakeven import traces

    if not CONVERSATION.exists():
        return made_up_conversations(requests or 12_031)
    if requests is None:
        return traces.read(CONVERSATION)
    path = work_folder() / f"conversation-{requests}.jsonl"
    with CONVERSATION.open() as whole:
        path.write_text("".join(line for _, line in zip(range(requests), whole, strict=False)))
    return traces.read(path)


def made_up_conversations(requests: int, block: int = 512, seed: int = 0) -> Any:
    """Turns that repeat all before them: about as long, and as often shared, as the published conversations."""
    from breakeven.trace import Trace, make_trace

    offsets, ids, _ = chains_made(requests * 23, seed=seed)
    count = len(offsets) - 1
    rng = np.random.default_rng(seed)
    return make_trace(
        Trace(
            name="made up",
            form="mooncake",
            arrival_s=np.cumsum(rng.exponential(0.3, count)),
            input_tokens=np.diff(offsets) * block,
            output_tokens=rng.integers(1, 680, count),
            hash_ids=ids.astype(np.int64),
            hash_offsets=offsets,
            block_tokens=block,
        )
    )


def chains_made(blocks: int, skew: float = 0.6, seed: int = 0) -> tuple[np.ndarray, np.ndarray, int]:
    """So many chained ids of conversations that grow by some blocks a turn, two turns each in the mean; popular ones have many more.

    Ids are dense and an id stands for all before it: block j of conversation c has the id start(c) + j.
    """
    rng = np.random.default_rng(seed)
    requests = blocks // 10
    conversations = max(requests // 2, 1)
    weight = 1.0 / np.arange(1, conversations + 1) ** skew
    whose = rng.choice(conversations, size=requests, p=weight / weight.sum())
    lengths = np.minimum(rng.integers(8, 32, conversations)[whose] + _occurrence(whose, conversations) * 4, 128)
    kept = min(int(np.searchsorted(np.cumsum(lengths), blocks)) + 1, requests)
    whose, lengths = whose[:kept], lengths[:kept]
    longest = np.zeros(conversations, dtype=np.int64)
    np.maximum.at(longest, whose, lengths)
    start = np.cumsum(longest) - longest
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    ids = np.repeat(start[whose] - offsets[:-1], lengths)
    ids += np.arange(offsets[-1])
    return offsets, ids, int(longest.sum())


def _occurrence(whose: np.ndarray, conversations: int) -> np.ndarray:
    """How often each came before."""
    order = np.argsort(whose, kind="stable")
    counts = np.bincount(whose, minlength=conversations)
    rank = np.empty(len(whose), dtype=np.int64)
    rank[order] = np.arange(len(whose)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rank


def logged_tokens(count: int, seed: int = 0) -> Any:
    """A log of so many generated tokens, 500 a request, that in part repeat what stood before them."""
    from breakeven.trace import Trace, make_trace

    rng = np.random.default_rng(seed)
    each, prompt = 500, 1000
    requests = max(count // each, 1)
    phrases = rng.integers(0, 32_000, (2000, 10))
    text = phrases[rng.integers(0, len(phrases), requests * (prompt + each) // 10)].reshape(requests, -1)
    noise = rng.random(text.shape) < 0.1
    text = np.where(noise, rng.integers(0, 32_000, text.shape), text).astype(np.int32)
    return make_trace(
        Trace(
            name="made up",
            form="openai_log",
            arrival_s=None,
            input_tokens=np.full(requests, prompt),
            output_tokens=np.full(requests, each),
            prompt_ids=text[:, :prompt].ravel(),
            prompt_offsets=np.arange(requests + 1) * prompt,
            output_ids=text[:, prompt:].ravel(),
            output_offsets=np.arange(requests + 1) * each,
        )
    )
