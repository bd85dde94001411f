"""``calibrate --url`` on real engines: what it says that it sent is what the engine counted, and points not in the fit come out near.

Steps of a shared machine vary; the ratio is therefore wide here, and ``make cpu-accuracy`` tells the errors on a quiet one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cpu_accuracy.held_out import Grid, held_out
from live_program import said

from breakeven import driving
from breakeven.driving.grid import Bounds
from breakeven.endpoint import Endpoint
from breakeven.observation import scrape

pytestmark = pytest.mark.live
DEVICE = """
title = "Two cores of the tests"
vendor = "none"
family = "cpu"
memory_bytes = 16e9
bandwidth_bytes_per_s = 60e9
matmul_flops = {bf16 = 3e11, fp16 = 3e11}
sources = {memory_bytes = "a guess of the tests", bandwidth_bytes_per_s = "above what it reaches", matmul_flops = "above what it reaches"}
"""
WIDE = 3.0


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices/here.toml").write_text(DEVICE, encoding="utf-8")
    return tmp_path / "devices"


def counted(url: str, engine: str) -> Mapping[str, float]:
    """What the engine has counted so far, over all its labels."""
    _, read = scrape.first(scrape.targets((url,), {}, engine=engine)[0])
    found: dict[str, float] = {}
    for reading in read.page.readings:
        if not reading.part:
            found[reading.quantity] = found.get(reading.quantity, 0.0) + reading.value
    return found


def rose(before: Mapping[str, float], after: Mapping[str, float], *quantities: str) -> tuple[float, ...]:
    return tuple(after[name] - before.get(name, 0.0) for name in quantities)


def test_a_load_sends_what_it_says_and_predicts_a_point_it_has_not_seen(llama: Any, models: Path, catalog: Path) -> None:
    with llama("-c", "4096", "-np", "4") as server:
        before = counted(server.url, "llamacpp")
        found = held_out(
            server.url,
            {"model": str(models / "smol-Q4_0.gguf"), "hardware": "here", "engine": "llamacpp"},
            catalog.parent,
            fit=Grid(widths=(1, 2, 4), contexts=(48, 128)),
            held=Grid(widths=(3,), contexts=(80,)),
            bounds=Bounds(requests=12, seconds=120.0, total_seconds=300.0),  # three rounds of the widest: one alone may be any
            name="own",
        )
        after = counted(server.url, "llamacpp")
    sent = found.calibrated.document.sent
    assert sent is not None and sent.engine == "llamacpp"
    both = (sent.output_tokens + found.held_output_tokens, sent.input_tokens + found.held_input_tokens)
    assert rose(before, after, "output_tokens", "prompt_tokens_computed") == both
    (point,) = found.compared
    assert 1 / WIDE < point.predicted_s / point.measured_s < WIDE, (point, found.drift)


def test_the_command_keeps_a_calibration_that_advise_takes(llama: Any, models: Path, catalog: Path, tmp_path: Path) -> None:
    made = tmp_path / "made.toml"
    deployed = ("--model", str(models / "smol-Q4_0.gguf"), "--hardware", "here", "--catalog", str(catalog), "--engine", "llamacpp")
    grid = ("--concurrency-grid", "1,2", "--context-grid", "48,96", "--requests", "2", "--seconds", "60", "--total-seconds", "200")
    with llama("-c", "1024", "-np", "2") as server:
        before = counted(server.url, "llamacpp")
        found = json.loads(said("calibrate", "--url", server.url, "--allow-load", *grid, "--out", str(made), "--json", *deployed))
        after = counted(server.url, "llamacpp")
    assert rose(before, after, "output_tokens", "prompt_tokens") == (found["load"]["output_tokens"], found["load"]["input_tokens"])
    asked = ("advise", "--batch", "2", "--context", "64", *deployed, "--json")
    own, shipped = json.loads(said(*asked, "--calibration", str(made))), json.loads(said(*asked))
    assert own["operating_point"]["step_s"] > 0 and own["operating_point"]["step_s"] != shipped["operating_point"]["step_s"]


def test_vllm_counts_what_a_load_sends_and_what_comes_back(vllm: Any) -> None:
    load = driving.Load(concurrency=3, prompt_tokens=40, output_tokens=12, requests=6, seconds=120.0, salt="counted by vLLM")
    before = counted(vllm.url, "vllm")
    sent = driving.run(Endpoint(url=vllm.url), driving.dialect_of("vllm"), load, model="smol")
    after = counted(vllm.url, "vllm")
    assert sent.ended == "all_sent" and (sent.prompt_tokens, sent.output_tokens) == (6 * 40, 6 * 12)
    assert rose(before, after, "prompt_tokens", "output_tokens", "requests_finished") == (6 * 40, 6 * 12, 6)
