"""Ranks of data parallelism behind one server: their counts add up, and the ledgers are of one copy of the model."""

from __future__ import annotations

import numpy as np
import pytest

from breakeven import api
from breakeven.observation import page as pages
from breakeven.observation.record import Record
from breakeven.observation.scrape import Read
from breakeven.observation.summary import summarised
from breakeven.spec.deployment import Deployment
from breakeven.spec.evidence import Evidence, Told

RUNNING, STEP_S, INPUT, OUTPUT = 10, 0.02, 8000, 200


def page(ranks: int, at_s: float, *, ended: bool) -> bytes:
    """A vLLM of so many ranks, each with ten sequences that take a step of 20 ms."""
    tokens = RUNNING * int(at_s / STEP_S)
    requests = tokens / OUTPUT if ended else 0.0
    told = {
        "num_requests_running": RUNNING,
        "num_requests_waiting": 0,
        "generation_tokens_total": tokens,
        "iteration_tokens_total_sum": tokens,
        "iteration_tokens_total_count": tokens / RUNNING,
        "inter_token_latency_seconds_sum": tokens * STEP_S,
        "inter_token_latency_seconds_count": tokens,
        "prompt_tokens_total": requests * INPUT,
        "request_success_total": requests,
        "time_to_first_token_seconds_count": requests,
        "time_to_first_token_seconds_sum": requests * 0.1,
        "request_prompt_tokens_sum": requests * INPUT,
        "request_prompt_tokens_count": requests,
        "request_generation_tokens_sum": requests * OUTPUT,
        "request_generation_tokens_count": requests,
    }
    return "".join(f'vllm:{name}{{engine="{rank}"}} {value}\n' for rank in range(ranks) for name, value in told.items()).encode()


def deployed(ranks: int, **more: str) -> Deployment:
    flags = {"model": "llama-3.1-8b", "hardware": f"h100-sxm:{ranks}", "data_parallel_size": f"{ranks}", "engine_version": "0.11.0"}
    return api.load(flags={**flags, "batch": "10", "context": "8100", **more})[0]


def evidence(ranks: int, *, ended: bool = True, deployment: Deployment | None = None) -> Evidence:
    record = Record(every_s=2.0)
    for at in range(40):
        record.add(Read(source="a", at_s=1e9 + 2.0 * at, page=pages.read(page(ranks, 100 + 2.0 * at, ended=ended))))
    told = Told(engine="vllm", version="0.11.0")
    return summarised(record.timeline(), told, target="a", source="live", deployment=deployment)


def test_two_ranks_of_a_dense_model_use_their_devices_as_far_as_one_does_its_own() -> None:
    one, two = (evidence(ranks, deployment=deployed(ranks)) for ranks in (1, 2))
    for name in ("mbu", "mfu", "mfu_with_prompts", "kv_share", "bytes_per_step", "predicted_step_s"):
        assert two.figures[name].value == pytest.approx(one.figures[name].value), name
    for name in ("effective_batch", "output_tokens_per_s", "request_rate_per_s"):
        assert two.figures[name].value == pytest.approx(2 * one.figures[name].value), name


def test_advice_compares_the_batch_of_one_copy_with_that_of_the_model() -> None:
    flags = {"model": "llama-3.1-8b"}
    found = []
    for ranks in (1, 2):
        more = {"hardware": f"h100-sxm:{ranks}", "data_parallel_size": f"{ranks}"}
        found.append(api.load(flags={**flags, **more}, evidence=evidence(ranks))[0])
    one, two = found
    assert one.observed is not None and two.observed is not None
    assert two.observed.effective_batch == pytest.approx(RUNNING) and two.observed.mbu == pytest.approx(one.observed.mbu)
    assert np.median(api.evaluate(two).batch) == pytest.approx(np.median(api.evaluate(one).batch))


def test_a_batch_that_stands_in_for_a_rate_is_of_one_copy_too() -> None:
    flags = {"model": "llama-3.1-8b", "hardware": "h100-sxm:2", "data_parallel_size": "2", "context": "8100"}
    found, _ = api.load(flags=flags, evidence=evidence(2, ended=False))
    assert found.provenance["workload.batch"] == "measured" and found.workload.batch == pytest.approx(RUNNING)
    typed, _ = api.load(flags={**flags, "batch": "7"}, evidence=evidence(2, ended=False))
    assert typed.workload.batch == 7.0


def test_the_ranks_of_a_mixture_of_experts_are_one_copy() -> None:
    flags = {
        "model": "qwen3-30b-a3b",
        "hardware": "h100-sxm:2",
        "data_parallel_size": "2",
        "context": "8100",
        "enable_expert_parallel": "true",
    }
    found, _ = api.load(flags=flags, evidence=evidence(2, ended=False))
    assert found.replicas == 1 and found.workload.batch == pytest.approx(2 * RUNNING)
