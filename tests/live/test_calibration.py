"""Calibrated by load on a running engine: what is sent is what the engine counts, and a point that was not driven is predicted, roughly."""

from __future__ import annotations

import json
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from live_client import streaming, within, words
from live_observation import said

pytestmark = pytest.mark.live
PROCESSOR = """
title = "Some processor"
vendor = "none"
family = "cpu"
memory_bytes = 16e9
bandwidth_bytes_per_s = 25e9
native_formats = ["bf16", "fp16"]
weight_only_formats = ["int8", "int4"]
confidence = "derived only"

[matmul_flops]
bf16 = 1e11
fp16 = 1e11

[sources]
memory_bytes = "made up"
bandwidth_bytes_per_s = "made up"
matmul_flops = "made up"
formats = "made up"
"""
GRID = ("--concurrency-grid", "1,2,4", "--context-grid", "64,512", "--requests", "6", "--seconds", "40", "--total-seconds", "240")
WIDE = 2.5
"""Other programs use the machine too: only an error in kind shows."""


def counters(url: str) -> dict[str, float]:
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as page:
        lines = page.read().decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}


def test_load_that_was_allowed_is_counted_by_the_engine_and_predicts_other_points(llama: Any, models: Path, tmp_path: Path) -> None:
    (tmp_path / "some-processor.toml").write_text(PROCESSOR, encoding="utf-8")
    model, made = ("--model", str(models / "smol-Q4_0.gguf")), tmp_path / "made/calibration.toml"
    made.parent.mkdir()
    deployed = (*model, "--hardware", "some-processor", "--catalog", str(tmp_path))
    with llama("-np", "4", "-c", "8192") as server:
        before = counters(server.url)
        load = ("--url", server.url, "--allow-load", *GRID, "--out", str(made), "--json")
        found = json.loads(said("calibrate", *load, *deployed))
        after = counters(server.url)
        with streaming(server.url, "llama", [words(200, f"held out {number}") for number in range(3)], 1700) as answers:
            start = time.time()
            time.sleep(5)
            end = time.time()
    computed = after["llamacpp:prompt_tokens_total"] - before["llamacpp:prompt_tokens_total"]
    cached = after["llamacpp:prompt_tokens_cached_total"] - before["llamacpp:prompt_tokens_cached_total"]
    assert found["load"]["input_tokens"] == computed + cached
    assert found["load"]["output_tokens"] <= after["llamacpp:tokens_predicted_total"] - before["llamacpp:tokens_predicted_total"]
    tokens = within(answers, start, end)
    context = 200 + tokens // 6
    point = ("--batch", "3", "--context", str(context), "--engine", "llamacpp", "--calibration", str(made))
    advice = json.loads(said("advise", *point, *deployed, "--json"))
    assert 1 / WIDE < advice["operating_point"]["step_s"] / (3 * (end - start) / tokens) < WIDE
