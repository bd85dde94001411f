"""``calibrate --url`` on a real engine: what it says that it sent is what the engine counted, and points not in the fit come out near.

Steps of a shared machine vary; the ratio is therefore wide here, and ``make cpu-accuracy`` tells the errors on a quiet one.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from cpu_accuracy.held_out import Grid, held_out

from breakeven.driving.grid import Bounds
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


def counted(url: str) -> dict[str, float]:
    target = scrape.targets((url,), {}, engine="llamacpp")[0]
    _, read = scrape.first(target)
    return {reading.quantity: reading.value for reading in read.page.readings if not reading.part}


def test_a_load_sends_what_it_says_and_predicts_a_point_it_has_not_seen(llama, models: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices/here.toml").write_text(DEVICE, encoding="utf-8")
    with llama("-c", "4096", "-np", "4") as server:
        before = counted(server.url)
        found = held_out(
            server.url,
            {"model": str(models / "smol-Q4_0.gguf"), "hardware": "here", "engine": "llamacpp"},
            tmp_path,
            fit=Grid(widths=(1, 2, 4), contexts=(48, 128)),
            held=Grid(widths=(3,), contexts=(80,)),
            bounds=Bounds(requests=4, seconds=120.0, total_seconds=300.0),
            name="own",
        )
        after = counted(server.url)
    sent = found.calibrated.document.sent
    assert sent is not None and sent.engine == "llamacpp"
    told = {name: after[name] - before[name] for name in ("output_tokens", "prompt_tokens_computed")}
    assert told["output_tokens"] == sent.output_tokens + found.held_output_tokens
    assert told["prompt_tokens_computed"] == sent.input_tokens + found.held_input_tokens
    (point,) = found.compared
    assert 1 / WIDE < point.predicted_s / point.measured_s < WIDE, point
