"""Reported figures that are arithmetic: what a row states, computed with the product's own functions.

Rows of the class ``fixture``, and the notes of other rows that call themselves one. Two of them are about counters of a running engine,
which nothing of the product reads yet: ``NEEDS_OBSERVE`` says the identity that a reader has to keep.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from case_score import read_cases
from case_words import Row, text_of
from published_models import ModelOf

from breakeven import catalog
from breakeven.acceptance import given, tokens_per_round
from breakeven.draws import MEDIAN
from breakeven.evaluator import Point, evaluate
from breakeven.kernels import kv_kernel
from breakeven.ledger import bandwidth, draft, memory, prefill
from breakeven.ledger.unified_pages import unified_bytes_per_token
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Speculative
from breakeven.spec.hardware import Hardware
from breakeven.spec.workload import Acceptance, Workload

NEEDS_OBSERVE: Mapping[str, str] = {
    "m-prefix-preempt": "hit rate = (hits − tokens computed again after a preemption) / queries; 0 where all prompts are distinct",
    "p-aic-prefix": "the sharing that a prediction assumed = hits / queries of the run that tests it; else the run tests another traffic",
}
"""Fixtures of counters, and what a reader of them has to keep."""


@pytest.fixture(scope="module")
def cases(shared: Path) -> dict[str, Row]:
    return {str(row["id"]): row for row in read_cases(shared)}


def figures(row: Row, pattern: str, *fields: str) -> list[float]:
    """The figures that a pattern finds in a row; a row that has lost them fails here."""
    found = re.search(pattern, text_of(row, *(fields or ("observed", "note", "title", "config", "workload"))))
    assert found is not None, pattern
    return [float(group.replace(",", "")) for group in found.groups()]


def point(device: str, model: str, model_of: ModelOf, workload: Workload, *, count: int = 1, **settings: object) -> Point:
    found, shape = catalog.load("hardware", device), model_of(model)
    assert shape is not None
    engine = replace(catalog.engine("vllm", "main", found), tensor_parallel_size=count, **settings)  # type: ignore[arg-type]
    bare = replace(shape, stored={}, stored_bytes={})
    return evaluate(Deployment(model=bare, hardware=Hardware(device=found, count=count), engine=engine, workload=workload))


def drafting(length: float, model_of: ModelOf) -> Point:
    """A deployment that drafts, at so many tokens a round."""
    k = int(np.ceil(length)) + 1
    workload = Workload(batch=1.0, input_tokens=1000.0, output_tokens=500.0, acceptance=Acceptance(length=length, method="ngram", k=k))
    spec = Speculative(method="ngram", num_speculative_tokens=k)
    return point("h100-sxm", "qwen3-14b", model_of, workload, speculative=spec)


def test_time_between_chunks_over_tokens_a_round_is_the_time_a_token(cases: dict[str, Row], model_of: ModelOf) -> None:
    (chunk, throughput), (token,) = figures(cases["m-itl-spec"], r"ITL ([\d.]+) ms at (\d+) tok/s"), figures(
        cases["m-itl-spec"], r"'on': '([\d.]+) ms after division"
    )  # fmt: skip
    drafted = drafting(chunk / token, model_of)
    assert float(drafted.step_s) / float(drafted.tpot_s) == pytest.approx(chunk / token, rel=1e-6)
    # One stream's rate is the inverse of the time a token, and three times that of the time a chunk.
    assert 1e3 / token == pytest.approx(throughput, rel=0.08)
    assert 1e3 / chunk < throughput / 2


def test_a_speed_from_time_between_chunks_is_low_by_the_tokens_of_a_chunk(cases: dict[str, Row], model_of: ModelOf) -> None:
    row = cases["m-itl-preset"]
    (true,), (reported,), (chunk_ms,) = (
        figures(row, r"true ~(\d+) tok/s"), figures(row, r"([\d.]+) reported"), figures(row, r"mean (\d+) ms", "mechanism")
    )  # fmt: skip
    assert 1e3 / chunk_ms == pytest.approx(reported, rel=0.01)
    drafted = drafting(true / reported, model_of)
    assert float(1.0 / drafted.tpot_s) / float(1.0 / drafted.step_s) == pytest.approx(true / reported, rel=1e-6)


def test_time_a_token_has_no_first_token_in_it(cases: dict[str, Row], model_of: ModelOf) -> None:
    formula = text_of(cases["m-guidellm-tpot"], "observed")
    assert "(e2e-TTFT)/(n-1)" in formula
    assert "(last_token - request_start)/n" in formula
    n = 250.0
    p = point("h100-sxm", "qwen3-14b", model_of, Workload(concurrency=8.0, input_tokens=4000.0, output_tokens=n))
    assert p.ttft_s is not None
    assert p.e2e_s is not None
    ours = (p.e2e_s - p.ttft_s) / (n - 1)
    assert float(ours) == pytest.approx(float(p.tpot_s), rel=1e-9)
    theirs = p.e2e_s / n
    assert float(theirs - ours) == pytest.approx(float((p.ttft_s - ours) / n), rel=1e-6)
    assert float(theirs) > 1.01 * float(ours)


def test_the_sharing_assumed_explains_a_third_more_of_ttft_and_nothing_of_tpot(cases: dict[str, Row], model_of: ModelOf) -> None:
    row = cases["p-aic-prefix"]
    (prompt, output, shared), (least, _) = figures(row, r"isl (\d+) osl (\d+) prefix (\d+)"), figures(row, r"measured (\d+)-(\d+)x higher")
    both = [
        point(
            "h200-sxm", "qwen3-32b", model_of, count=8, quantization="fp8", enable_prefix_caching=True,
            workload=Workload(batch=1.0, input_tokens=prompt, output_tokens=output, prefix_hit_rate=hits),
        )
        for hits in (shared / prompt, 0.0)
    ]  # fmt: skip
    with_hits, without = both
    assert with_hits.ttft_s is not None
    assert without.ttft_s is not None
    ratio = float(without.ttft_s / with_hits.ttft_s)
    assert 1.0 < ratio < prompt / (prompt - shared)
    assert ratio < least / 2, "what was measured is not the sharing alone"
    assert float(with_hits.tpot_s) == pytest.approx(float(without.tpot_s), rel=1e-9)


def test_little_tells_how_many_requests_ran(cases: dict[str, Row], model_of: ModelOf) -> None:
    row = cases["p-aic-kimi"]
    (throughput, speed), (asked,), (told,) = (
        figures(row, r"'on': '(\d+) tok/s/GPU, ([\d.]+) tok/s/user"), figures(row, r"concurrency (\d+)"), figures(row, r"= (\d+) requests")
    )  # fmt: skip
    (devices,) = figures(row, r"(\d+)x B200", "hardware")
    assert round(throughput * devices / speed) == told < asked / 10
    workload = Workload(concurrency=asked, input_tokens=8192.0, output_tokens=1024.0)
    p = point("b200-sxm", "kimi-k2.5", model_of, workload, count=8, quantization="nvfp4", max_num_seqs=1024)
    assert p.request_rate is not None
    assert p.e2e_s is not None
    assert float(p.request_rate * p.e2e_s) == pytest.approx(asked, rel=1e-6), "N = λ·W over the clients"
    assert float(p.request_rate * 1023 * p.tpot_s) == pytest.approx(float(p.batch), rel=1e-6), "b = λ·(O − 1)·TPOT over those that decode"
    assert float(p.batch) < asked / 2, "the pool holds fewer than are asked for"


def test_a_start_up_line_counts_every_layer_as_if_its_window_were_none(cases: dict[str, Row], model_of: ModelOf) -> None:
    row = cases["k-gptoss-kv"]
    (tokens, pool), (growing,), (told,) = (
        figures(row, r"([\d,]+) tokens in ([\d.]+) GiB"), figures(row, r"calculator: ([\d,]+) B"), figures(row, r"engine: ([\d,]+) B")
    )  # fmt: skip
    model, kv = model_of("gpt-oss-120b"), kv_kernel("bf16")
    assert model is not None
    assert memory.kv_bytes_per_token(model, kv) == told
    assert unified_bytes_per_token(model, kv, tensor_parallel=1) == told
    assert float(memory.kv_bytes(model, kv, 10_001.0) - memory.kv_bytes(model, kv, 10_000.0)) == growing
    assert tokens * told / 2**30 == pytest.approx(pool, abs=0.005)


def test_a_hit_rate_is_taken_for_work_saved_so_that_what_was_computed_again_has_to_be_taken_off(cases: dict[str, Row]) -> None:
    (shown,), (true,) = figures(cases["m-prefix-preempt"], r"reported ([\d.]+)%"), figures(cases["m-prefix-preempt"], r"true ~([\d.]+)%")
    (prompt, _) = figures(cases["m-prefix-preempt"], r"x (\d+)/(\d+) random")
    saved = [1.0 - float(prefill.new_tokens(prompt, rate / 100, 16)) / prompt for rate in (true, shown)]
    assert saved == pytest.approx([true / 100, shown / 100], abs=1e-9), "a rate read as it stands is taken for work saved"
    assert saved[1] > 100 * saved[0], "so the tokens computed again have to be taken off first"
    assert set(NEEDS_OBSERVE) <= set(cases)
    assert all("hits" in identity and "queries" in identity for identity in NEEDS_OBSERVE.values())


def test_tokens_a_round_and_the_rate_are_two_ways_to_say_accepted_over_drafts(cases: dict[str, Row]) -> None:
    row = cases["sd-eagle3-al-regression"]
    ((length, drafts, drafted, accepted),) = [
        figures(row, r"length ([\d.]+) \(num_drafts (\d+), draft_tokens (\d+), accepted (\d+)\)"),
    ]
    (rate,), (k,) = figures(row, r"accepted/draft_tokens=([\d.]+)"), figures(row, r"k=(\d+)")
    assert drafted / drafts == k
    exact = Acceptance(rate=accepted / drafted, k=int(k))
    assert float(tokens_per_round(given(exact, int(k), 1.2, MEDIAN), int(k))) == pytest.approx(1 + accepted / drafts, abs=1e-6)
    assert accepted / drafted == pytest.approx(rate, abs=5e-4)
    assert 1 + accepted / drafts == pytest.approx(length, abs=0.01)


def test_a_pool_of_so_many_tokens_runs_so_many_sequences_of_that_length(cases: dict[str, Row], model_of: ModelOf) -> None:
    row = cases["cb-a10g-qwen2.5-7b"]
    (pool, running, length) = figures(row, r"(\d+)/(\d+)=(\d+) tokens per sequence")
    workload = Workload(concurrency=256.0, input_tokens=length - 64, output_tokens=128.0)
    p = point("a10g", "qwen2.5-7b", model_of, workload, kv_cache_tokens=int(pool))
    assert float(p.cap) == pytest.approx(running, abs=1.0)
    assert float(p.batch) < float(p.cap) + 1e-6 < 256


def test_a_tree_of_drafts_wakes_nearly_all_experts(cases: dict[str, Row]) -> None:
    row = cases["sd-eagle3-a3b-angelslim"]
    (tokens, top_k, experts), (woken, alone) = figures(row, r"for (\d+) tokens top(\d+) of (\d+)"), figures(row, r"=(\d+) vs (\d+)")
    assert round(float(bandwidth.coverage(tokens, int(top_k), int(experts))) * experts) == woken
    assert round(float(bandwidth.coverage(1.0, int(top_k), int(experts))) * experts) == alone


def test_a_draft_of_more_layers_than_its_target_is_not_cheap(cases: dict[str, Row], model_of: ModelOf) -> None:
    (parameters, layers) = figures(cases["sd-draft-smollm2"], r"by parameters \(([\d.]+)\).* by layers \(([\d.]+)\)")
    target, small = model_of("smollm2-1.7b"), model_of("smollm2-135m")
    assert target is not None
    assert small is not None
    assert small.layers / target.layers == layers
    assert small.parameters.total / target.parameters.total == pytest.approx(parameters, abs=0.005)
    workload = Workload(batch=1.0, context_tokens=300.0)
    plain = point("a100-sxm-80", "smollm2-1.7b", model_of, workload)
    spec = Speculative(method="draft_model", num_speculative_tokens=1, model="smollm2-135m")
    d = Deployment(
        model=target, hardware=Hardware(device=catalog.load("hardware", "a100-sxm-80"), count=1), drafts={"smollm2-135m": small},
        engine=replace(catalog.engine("vllm", "0.7"), speculative=spec), workload=workload,
    )  # fmt: skip
    drafted = draft.with_speculation(plain.cost, d, plain.shard, evaluate(d).efficiencies, 300.0)
    assert float(drafted.draft_fixed_s) / float(plain.step_s) > 3 * parameters, "a draft's launches, not its bytes"


def test_eight_bit_caches_save_what_they_are_of_the_bytes_read(cases: dict[str, Row], model_of: ModelOf) -> None:
    row = cases["kv-fp8-l4-qwen3-4b"]
    (weights, cache, ratio) = figures(row, r"\(([\d.]+)\+([\d.]+)\)/\(8\.0\+2\.4\)=([\d.]+)")
    model = model_of("qwen3-4b")
    assert model is not None
    held = float(memory.kv_bytes(model, kv_kernel("bf16"), 32768.0))
    assert held / 1e9 == pytest.approx(cache, abs=0.005)
    assert 2.0 * (model.parameters.total) / 1e9 == pytest.approx(weights, abs=0.06)
    halved = float(memory.kv_bytes(model, kv_kernel("fp8"), 32768.0))
    assert (weights * 1e9 + held) / (weights * 1e9 + halved) == pytest.approx(ratio, abs=0.005)


def test_every_fixture_of_the_file_has_its_test(cases: dict[str, Row]) -> None:
    here = Path(__file__).read_text(encoding="utf-8")
    fixtures = [name for name, row in cases.items() if row["verdict_class"] == "fixture"]
    assert fixtures
    assert not [name for name in fixtures if f'cases["{name}"]' not in here]
