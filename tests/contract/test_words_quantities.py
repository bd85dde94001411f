"""Numbers, lengths, loads, metrics and shares as reports write them; levers, and what is said back."""

from __future__ import annotations

import pytest
from words_refusals import why_not

from breakeven.measured import words
from breakeven.messages import LANGUAGES, text
from breakeven.stats import Range


def test_numbers_are_read_as_people_write_them() -> None:
    assert [words.number(each) for each in ("", "~100", "1,024", "4.37e-05", "87%", "-1.5")] == [None, 100.0, 1024.0, 4.37e-5, 0.87, -1.5]
    assert {why_not(words.number, each) for each in ("fast", "1e999", "nan", "12 ms", "1.2.3")} == {"no_number"}


def test_lengths_are_numbers_ranges_or_what_is_assumed_of_named_prompts() -> None:
    assert [words.tokens(each) for each in ("2048", "1K", "20k", "~1024 (2048/2048-type test)", "1,024 tokens")] == [
        2048,
        1024,
        20000,
        1024,
        1024,
    ]
    assert words.tokens("256..125k sweep") == Range(low=256.0, high=125000.0)
    assert words.tokens("LongSpecBench 4K-64K") == Range(low=4096.0, high=65536.0)
    assert (words.tokens("ShareGPT"), words.tokens("ShareGPT-like (profile_throughput)", "output")) == (230.0, 240.0)
    assert isinstance(words.tokens("MT-bench", "output"), Range)
    assert why_not(words.tokens, "exponential, capped to 1536") == why_not(words.tokens, "long") == "no_tokens"


def test_named_prompts_tell_the_task() -> None:
    assert [words.task(each) for each in ("gsm8k", "HumanEval", "MT-Bench", "CNN/DailyMail", "1024")] == [
        "math",
        "code",
        "chat",
        "summarization",
        None,
    ]


@pytest.mark.parametrize(
    ("phrase", "kind", "off", "on"),
    [
        ("8", "count", 8, 8),
        ("~100", "count", 100, 100),
        ("42 (max; constant across batch)", "count", 42, 42),
        ("batch 8", "batch", 8, 8),
        ("concurrency 4 -> 64", "clients", 4, 64),
        ("batch 1 -> 32", "batch", 1, 32),
        ("128 (fp16) / 256 (quant)", "count", 128, 256),
        ("QPS 15", "rate", 15, 15),
        ("0.5 req/s", "rate", 0.5, 0.5),
        ("12031 requests", "requests", 12031, 12031),
        ("16 clients", "clients", 16, 16),
        ("8 concurrent requests", "clients", 8, 8),
        ("32 concurrent users", "clients", 32, 32),
        ("single stream", "clients", 1, 1),
        ("concurrency=16", "clients", 16, 16),
        ("C=64", "clients", 64, 64),
        ("bs 4", "batch", 4, 4),
        ("~100 (all requests submitted at once)", "at_once", 100, 100),
        ("max that fits", "most", None, None),
        ("saturating", "most", None, None),
    ],
)
def test_a_load_is_told_by_its_kind(phrase: str, kind: str, off: float | None, on: float | None) -> None:
    found = words.load(phrase)
    assert (found.kind, found.off, found.on) == (kind, off, on)
    assert found.about == phrase.startswith("~")


def test_one_after_the_other_then_all_at_once_has_two_kinds() -> None:
    found = words.load("sequential requests -> all requests at once")
    assert (found.kind, found.off, found.on_kind, found.on) == ("clients", 1.0, "at_once", None)


def test_what_states_no_load_is_refused() -> None:
    assert {why_not(words.load, each) for each in ("trace", "10 nodes", "equal latency", "up to 4x larger batch")} == {"load_unknown"}
    assert why_not(words.load, "") == "not_stated"


@pytest.mark.parametrize(
    ("phrase", "unit", "kind", "inverts"),
    [
        ("output throughput = conc*osl/(ttft+tpot*(osl-1))", "tok/s", "output_throughput", False),
        ("output throughput (off = sequential rate from interactive TTFT and TPOT p50)", "tok/s", "output_throughput", False),
        ("total throughput (prompt+generated tokens)/time, batch 1", "tok/s", "total_throughput", False),
        ("throughput", "req/s", "request_throughput", False),
        ("throughput", "ratio", "output_throughput", False),
        ("median ITL", "ms", "tpot", True),
        ("mean TTFT", "s", "ttft", True),
        ("first token time", "s", "ttft", True),
        ("ITL slope vs input length", "ms/token", "itl_slope", True),
        ("ITL intercept", "ms", "itl_intercept", True),
        ("prefill GPU time", "ratio", "prefill_time", True),
        ("prefill speed pp1024", "tok/s", "prefill_throughput", False),
        ("decode speed tg128", "tok/s", "decode_speed", False),
        ("end-to-end request latency", "s", "e2e", True),
        ("end-to-end run time speed-up", "ratio", "e2e", False),
        ("speed-up", "ratio", "speed_up", False),
        ("GEMM speed-up", "ratio", "gemm", False),
        ("batch latency, relative (1 = BF16)", "ratio", "batch_latency", True),
        ("block hit rate", "fraction", "hit_rate", False),
        ("throughput, method B / method A", "ratio", "methods_compared", False),
    ],
)
def test_throughput_is_looked_for_before_the_latencies_in_its_formula(phrase: str, unit: str, kind: str, inverts: bool) -> None:
    found = words.metric(phrase, unit)
    assert (found.kind, found.inverts) == (kind, inverts)


def test_a_metric_tells_its_statistic_its_tokens_and_whether_it_is_per_device() -> None:
    assert [words.metric(each).statistic for each in ("median TTFT", "TPOT p50", "average TPOT", "ttft_max", "TPOT")] == [
        "median",
        "median",
        "mean",
        "max",
        "",
    ]
    assert words.metric("decode speed tg8192").tokens == 8192
    assert words.metric("output throughput per GPU", "tok/s/GPU").per_device
    assert words.metric("median ITL").of_chunks and not words.metric("mean TPOT").of_chunks
    assert why_not(words.metric, "MMLU") == "metric_unknown"


@pytest.mark.parametrize(
    ("phrase", "share"),
    [
        ("shared prefix 200 of 230 input tokens (87%)", 200 / 230),
        ("global KV pool, conversation, cache ratio 40%", 0.4),
        ("prefix ratio 0% -> 95%", 0.95),
        ("APC on, ~0% hits (ShareGPT)", 0.0),
        ("CPU-tier hit rate 100%", 1.0),
        ("cache=on;share=50", 0.5),
        ("hit_rate=0.5", 0.5),
    ],
)
def test_the_share_is_the_last_one_stated(phrase: str, share: float) -> None:
    assert words.hit_rate(phrase) == pytest.approx(share)


@pytest.mark.parametrize("phrase", ["cache capacity 1000 blocks", "hit rate 140%", "40% or 60%", "prefix caching on", "300 of 200 tokens"])
def test_a_setting_without_one_share_is_refused(phrase: str) -> None:
    assert why_not(words.hit_rate, phrase) == "no_share"


def test_levers_go_by_many_names() -> None:
    named = {
        "prefix_caching": "prefix_cache",
        "speculative_decoding": "speculation",
        "spec:eagle3": "speculation",
        "weight-quant:fp8": "weight_quant",
        "kv-quant:fp8": "kv_quant",
        "batching": "batching",
        "spec:ngram / temperature": "speculation",
    }
    assert {each: words.lever(each) for each in named} == named
    assert why_not(words.lever, "weight_quant+kv_quant") == "levers_together"
    assert why_not(words.lever, "tensor parallelism") == "lever_unknown"


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_was_understood_is_said_back(language: str) -> None:
    cases = [
        ("device", "NVIDIA H20 96GB", words.device("NVIDIA H20 96GB"), "h20-96"),
        ("engine", "SGLang 0.4.6.post1", words.engine("SGLang 0.4.6.post1"), "sglang 0.4.6.post1"),
        ("parallelism", "TP64 moe_tp8 moe_ep8 dp1", words.parallelism("TP64 moe_tp8 moe_ep8 dp1"), "tp=8, ep=8, devices=8"),
        ("tokens", "gsm8k", words.tokens("gsm8k"), "80–200"),
        ("load", "concurrency 4 -> 64", words.load("concurrency 4 -> 64"), "clients, off=4, on=64"),
        ("metric", "median TTFT", words.metric("median TTFT"), "ttft, inverts, statistic=median"),
        ("acceptance", "AL 2.4", words.acceptance("AL 2.4"), "length=2.4"),
        ("weight_format", "", "bf16", "bf16"),
    ]
    for field, written, meaning, shown in cases:
        assert field in words.FIELDS
        key, message = words.said(field, written, meaning)
        sentence = text(message, language)
        assert key == field and shown in sentence and (written in sentence)


def test_two_sides_measured_weeks_apart_are_told_by_their_dates() -> None:
    # More than 21 days are two versions: the same run went from 4.3 to 11.9 ms a token.
    assert words.days_apart("TPOT 10.00->7.30 ms; measured 2026-04-22/2026-04-22; same engine version: True") == 0
    assert words.days_apart("measured 2025-11-18/2026-03-25") == 127
    assert words.days_apart("no date") is words.days_apart("measured 2026-02-30/2026-03-01") is None
