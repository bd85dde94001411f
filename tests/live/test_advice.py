"""From a running engine to advice: what it tells and shows is all taken as measured."""

from __future__ import annotations

import json
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from live_client import going_round, streaming, waited_for, words
from live_observation import observing
from live_program import said

pytestmark = pytest.mark.live
DEVICE = ("--hardware", "epyc-9654", "--device-memory", "24GB")
"""Some device: which one this runs on cannot be read."""
ADDED = {"hardware.device.memory_bytes", "hardware.device", "hardware.count", "model"}


def advised(*arguments: str) -> dict[str, Any]:
    return json.loads(said("advise", *arguments, *DEVICE, "--json"))  # type: ignore[no-any-return]


def measured(advice: dict[str, Any]) -> set[str]:
    return {name for name, origin in advice["provenance"].items() if origin == "measured"}


def declared(advice: dict[str, Any]) -> set[str]:
    return {name for name, origin in advice["provenance"].items() if origin in ("declared", "file")}


@pytest.fixture(scope="module")
def decoding(llama: Any) -> Any:
    """llama.cpp's server with three of its four slots decoding."""
    prompts = [words(64, f"advised {number}") for number in range(3)]
    with llama("-np", "4", "-c", "16384") as server, streaming(server.url, "llama", prompts, 3900):
        yield server


def test_advice_about_llamacpp_needs_its_address_a_model_file_and_a_device(decoding: Any, models: Path) -> None:
    advice = advised("--url", decoding.url, "--model", str(models / "smol-Q4_0.gguf"))
    told = {"engine.name", "engine.max_num_seqs", "engine.max_model_len", "workload.batch", "workload.context_tokens"}
    assert told <= measured(advice)
    assert declared(advice) <= ADDED
    assert advice["operating_point"]["effective_batch"] == pytest.approx(3, rel=0.1)
    assert advice["deployment"]["engine"]["max_num_seqs"] == 4
    assert 64 < advice["operating_point"]["mean_context_tokens"] < 2048
    assert advice["operating_point"]["prefill_share"] is None, "no prompt was read meanwhile"
    assert {one["lever"]: one["verdict"] for one in advice["levers"]}["prefix_cache"] == "undecided"


def test_advice_about_what_was_observed_of_llamacpp_is_about_that_batch(decoding: Any, models: Path, tmp_path: Path) -> None:
    with observing(decoding.url, tmp_path) as seen:
        time.sleep(3)
    advice = advised("--evidence", str(seen.file), "--model", str(models / "smol-Q4_0.gguf"))
    assert advice["operating_point"]["effective_batch"] == pytest.approx(seen.figure("batch_in_step"), rel=0.01)
    assert seen.figure("batch_in_step") == pytest.approx(3, rel=0.1)
    status = {item["id"]: item["status"] for item in advice["checklist"]}
    assert status["effective_batch_measured"] == "done"


def test_advice_about_llamacpp_under_requests_that_come_and_go_is_about_their_rate_and_lengths(
    llama: Any, models: Path, tmp_path: Path
) -> None:
    requests = ((words(200, f"come {number}"), 30) for number in count())
    with llama("-np", "4", "-c", "4096") as server, going_round(server.url, "llama", requests, clients=3) as answers:
        waited_for(answers, 3, within_s=120)
        with observing(server.url, tmp_path) as seen:
            waited_for(answers, 21, within_s=240)
    advice = advised("--evidence", str(seen.file), "--model", str(models / "smol-Q4_0.gguf"))
    assert {"workload.request_rate", "workload.input_tokens", "workload.output_tokens", "workload.prefix_hit_rate"} <= measured(advice)
    assert advice["deployment"]["workload"]["batch"] is None
    assert advice["operating_point"]["prefill_share"] > 0.0
    assert any("the engine counts no requests" in line for line in advice["warnings"])
    assert advice["observed"]["prompt_share"] == pytest.approx(seen.figure("prompt_share"), rel=0.01)


def test_advice_about_vllm_needs_its_address_a_model_and_a_device(vllm: Any, engines: Any) -> None:
    prompts = [words(64, f"vllm advised {number}") for number in range(3)]
    with streaming(vllm.url, "vllm", prompts, 3500):
        advice = advised("--url", vllm.url, "--model", engines["vllm"]["model"])
    told = {"engine.name", "engine.version", "engine.block_size", "engine.max_model_len", "workload.batch"}
    assert told <= measured(advice)
    assert declared(advice) <= ADDED
    assert advice["deployment"]["engine"]["version"] == "0.32.0"
    assert advice["operating_point"]["effective_batch"] == pytest.approx(3, rel=0.1)
    # The gigabyte that it was started with, at 23,040 bytes a token, in whole blocks of 128.
    assert advice["ledgers"]["memory"]["kv_pool_tokens"] == pytest.approx(2**30 // (23_040 * 128) * 128, abs=128)
