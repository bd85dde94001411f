"""vLLM on the CPU, observed while a client of known requests uses it: counters are equal, means near. One server, which drafts n-grams."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from live_client import Answer, Prompt, closed_loop, prompt_lookup, streaming, within, words
from live_observation import moment, observing

pytestmark = pytest.mark.live
NEAR = 0.10
BLOCK = 128
"""Tokens of a block of vLLM's cache on a CPU."""


def test_prompt_generated_and_finished_equal_what_the_client_sent_and_got(vllm: Any, tmp_path: Path) -> None:
    prompts = [words(40 + number, f"count {number}") for number in range(6)]
    with observing(vllm.url, tmp_path) as seen:
        answers = closed_loop(vllm.url, "vllm", prompts, 20, clients=3)
    assert seen.counted("requests_finished") == 6
    assert seen.counted("prompt_tokens") == sum(map(len, prompts))
    assert seen.counted("output_tokens") == sum(len(answer.tokens) for answer in answers) == 6 * 20
    assert seen.counted("step_tokens_sum") == sum(map(len, prompts)) + 6 * 20
    assert seen.figure("input_tokens") == pytest.approx(42.5)
    assert seen.figure("output_tokens") == pytest.approx(20)


def test_prefix_hits_are_tokens_of_whole_blocks_and_never_of_the_last(vllm: Any, tmp_path: Path) -> None:
    shared, whole = words(2 * BLOCK + 40, "prefix"), words(2 * BLOCK, "whole")
    prompts = [*(shared + words(20, f"end {number}") for number in range(3)), whole, whole, words(100, "short"), words(100, "short")]
    with observing(vllm.url, tmp_path) as seen:
        closed_loop(vllm.url, "vllm", prompts, 4, clients=1)
    # Of 296 shared tokens two blocks; of a prompt of two blocks that was there before, one; of 100 tokens none.
    hits = 2 * (2 * BLOCK) + BLOCK
    assert seen.counted("prompt_tokens_cached") == hits
    assert seen.counted("prefix_hits") == hits
    assert seen.counted("prefix_queries") == seen.counted("prompt_tokens") == sum(map(len, prompts))
    assert seen.counted("prompt_tokens_computed") == sum(map(len, prompts)) - hits
    assert seen.figure("prefix_hit_rate") == pytest.approx(hits / sum(map(len, prompts)))


def rounds(answer: Answer, further: Prompt) -> list[tuple[int, int]]:
    """Drafted and accepted tokens of each round, found by drafting here as vLLM does; ``further``: the tokens, and what would have come."""
    found, done = [], 1  # the first token comes of the prompt
    while done < len(answer.tokens):
        draft = prompt_lookup(answer.prompt + further[:done], 4, 2, 3)
        right = next((n for n, (a, b) in enumerate(zip(draft, further[done:], strict=False)) if a != b), len(draft))
        found.append((len(draft), right))
        done += right + 1
    return found


def test_n_gram_drafts_on_greedy_text_are_counted_as_the_client_knows_them(vllm: Any, tmp_path: Path) -> None:
    prompts = [*(words(20, f"again {number}") * 6 for number in range(3)), words(100, "plain")]
    longer = closed_loop(vllm.url, "vllm", prompts, 72, clients=1)
    with observing(vllm.url, tmp_path) as seen:
        answers = closed_loop(vllm.url, "vllm", prompts, 64, clients=1)
    known = [one for answer, more in zip(answers, longer, strict=True) for one in rounds(answer, more.tokens)]
    assert all(answer.tokens == more.tokens[:64] for answer, more in zip(answers, longer, strict=True))
    assert seen.counted("itl_count") == len(known)
    known = [(drafted, right) for drafted, right in known if drafted]
    drafted, accepted = sum(drafted for drafted, _ in known), sum(right for _, right in known)
    assert accepted > 40
    assert (seen.counted("drafts"), seen.counted("draft_tokens"), seen.counted("accepted_tokens")) == (len(known), drafted, accepted)
    assert seen.figure("acceptance_rate") == pytest.approx(accepted / drafted)
    assert seen.figure("acceptance_length") == pytest.approx(1 + accepted / len(known))
    at = [sum(right > place for _, right in known) / len(known) for place in range(3)]
    assert seen.evidence["acceptance_cumulative"] == pytest.approx(at)


def test_the_effective_batch_is_the_number_of_streams_that_decode(vllm: Any, tmp_path: Path) -> None:
    streams = 4
    prompts = [words(40, f"stream {number}") for number in range(streams)]
    with streaming(vllm.url, "vllm", prompts, 3000) as answers, observing(vllm.url, tmp_path) as seen:
        time.sleep(5)
    start, end = moment(seen.evidence["start"]), moment(seen.evidence["end"])
    tokens = within(answers, start, end)
    assert seen.figure("effective_batch") == pytest.approx(streams, rel=NEAR)
    assert seen.figure("batch_in_step") == pytest.approx(streams, rel=NEAR)
    assert seen.counted("output_tokens") == pytest.approx(tokens, rel=NEAR)
    assert seen.figure("tpot_s") == pytest.approx(streams * (end - start) / tokens, rel=NEAR)
    chunks = sum(start < chunk.at <= end for answer in answers for chunk in answer.chunks)
    assert seen.figure("step_s") == pytest.approx(streams * (end - start) / chunks, rel=NEAR)
    assert seen.evidence["levels"]["running"]["values"] == [streams]


def test_the_time_between_chunks_is_not_the_time_per_token_where_drafts_are_accepted(vllm: Any, tmp_path: Path) -> None:
    prompts = [words(20, f"chunked {number}") * 6 for number in range(4)]
    with observing(vllm.url, tmp_path) as seen:
        answers = closed_loop(vllm.url, "vllm", prompts, 80, clients=2)
    tpot = sum(answer.tpot for answer in answers) / len(answers)
    itl = sum(answer.chunks[-1].at - answer.chunks[0].at for answer in answers) / sum(len(answer.chunks) - 1 for answer in answers)
    assert itl > 1.3 * tpot
    assert seen.figure("tpot_s") == pytest.approx(tpot, rel=NEAR)
    assert seen.evidence["latencies"]["itl"]["mean"] == pytest.approx(itl, rel=NEAR)
    assert seen.evidence["latencies"]["itl"]["sense"] != seen.evidence["latencies"]["tpot"]["sense"]


def test_the_pool_is_the_one_that_the_engine_wrote_into_its_log(vllm: Any, engines: Any, tmp_path: Path) -> None:
    with observing(vllm.url, tmp_path) as seen:
        pass
    line = next(line for line in vllm.log.read_text(encoding="utf-8", errors="replace").splitlines() if "KV cache size:" in line)
    assert seen.evidence["told"]["kv_tokens"] == int(line.split("KV cache size:")[1].split()[0].replace(",", ""))
    assert seen.evidence["told"]["version"] == "0.32.0"
    assert seen.evidence["told"]["model"] == engines["vllm"]["model"]
