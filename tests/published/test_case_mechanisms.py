"""Mechanisms that reports have taught, each on deployments of no report: they hold by kind of engine, device and model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from published_models import ModelOf

from breakeven import api, catalog, support
from breakeven.draws import Draws
from breakeven.evaluator import evaluate
from breakeven.judge import arms, gain_draws
from breakeven.kernels import kv_kernel, kv_names
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine, Speculative
from breakeven.spec.hardware import Hardware
from breakeven.spec.workload import Workload

LOAD = Workload(concurrency=8.0, input_tokens=2000.0, output_tokens=200.0)
SHORT_SLOT = {"turboquant_k8v4": 196, "turboquant_4bit_nc": 136, "turboquant_k3v4_nc": 120, "turboquant_3bit_nc": 104}
"""Bytes of a key and a value of 128 elements, as the pull request that brought them lists them."""


def built(model: str, device: str, engine: str, version: str, *, count: int = 1, load: Workload = LOAD, **settings: object) -> Deployment:
    found = catalog.load("hardware", device)
    shape = api.model(model)
    base: Engine = replace(catalog.engine(engine, version, found), tensor_parallel_size=count, **settings)  # type: ignore[arg-type]
    there = replace(base, block_size=support.block_size(shape, base, found) or base.block_size)
    return Deployment(model=shape, hardware=Hardware(device=found, count=count), engine=there, workload=load)


@pytest.mark.parametrize(
    ("model", "device", "build", "has"),
    [
        ("gemma-3-12b", "rtx-4090", "b5000", False),
        ("gemma-3-12b", "rx-7900-xtx", "b6603", False),
        ("gemma-3-12b", "rtx-4090", "b6700", True),
        ("llama-3.1-8b", "rtx-4090", "b5000", True),
        ("gemma-3-12b", "m3-max-40c", "b5000", True),
    ],
)
def test_llama_cpp_read_quantised_caches_on_the_device_at_one_head_size_before(model: str, device: str, build: str, has: bool) -> None:
    found = support.support("kv_quant", "q8_0", built(model, device, "llamacpp", build))
    assert found.supported is has
    assert has or (found.reason is not None and found.reason.key == "lever.kv_no_head_size")


@pytest.mark.parametrize(
    ("device", "build", "has"), [("rtx-3090", "b1500", False), ("rtx-3090", "b3000", True), ("m2-ultra-76c", "b1500", True)]
)
def test_llama_cpp_had_no_kernel_for_a_few_rows_on_cards_before(device: str, build: str, has: bool) -> None:
    assert support.support("speculation", "draft_model", built("llama-2-13b", device, "llamacpp", build)).supported is has


@pytest.mark.parametrize(("version", "drafts", "block"), [("0.20", False, 16384), ("0.26", False, 4096), ("0.26", True, 8192)])
def test_a_prefix_of_a_compressed_cache_is_found_in_blocks_of_all_its_groups(version: str, drafts: bool, block: int) -> None:
    spec = Speculative(method="mtp", num_speculative_tokens=1) if drafts else None
    d = built("deepseek-v4-flash", "ascend-910c", "vllm", version, count=8, speculative=spec)
    assert d.engine.block_size == block
    on_a_card = built("deepseek-v4-flash", "h200-sxm", "vllm", version, count=8)
    assert on_a_card.engine.block_size < 4096


def test_prompts_shorter_than_a_block_gain_nothing_from_a_prefix_cache() -> None:
    gains = {}
    for prompt in (4000.0, 9000.0):
        load = Workload(concurrency=8.0, input_tokens=prompt, output_tokens=100.0, prefix_hit_rate=0.9)
        off = built("deepseek-v4-flash", "ascend-910c", "vllm", "0.26", count=8, load=load, enable_prefix_caching=False)
        on = replace(off, engine=replace(off.engine, enable_prefix_caching=True))
        gains[prompt] = float(evaluate(off).ttft_s / evaluate(on).ttft_s)  # type: ignore[operator]
    assert gains[4000.0] <= 1.0
    assert gains[9000.0] > 1.3


@pytest.mark.parametrize("name", SHORT_SLOT)
def test_caches_unpacked_in_software_hold_more_and_decode_slower(name: str, model_of: ModelOf) -> None:
    outer, layers = 4, 36
    slot = ((layers - outer) * SHORT_SLOT[name] / 256 + outer * 2.0) / layers
    assert kv_kernel(name).bytes == pytest.approx(slot, abs=0.001)
    d = built("qwen3-14b", "h100-sxm", "vllm", "0.24", load=Workload(concurrency=16.0, input_tokens=1000.0, output_tokens=200.0))
    off, on = evaluate(d), evaluate(replace(d, engine=replace(d.engine, kv_cache_dtype=name)))
    assert float(on.capacity / off.capacity) == pytest.approx(2.0 / kv_kernel(name).bytes, rel=0.02)
    assert float(off.tpot_s / on.tpot_s) < 1.0


def test_a_format_of_a_later_version_is_no_news_of_this_one() -> None:
    lever = api.lever_named("kv_quant")
    early, late = (built("qwen3-14b", "h100-sxm", "vllm", version) for version in ("0.11", "0.24"))
    assert not set(SHORT_SLOT) & {c.setting for c in lever.candidates(early)}
    assert set(SHORT_SLOT) <= {c.setting for c in lever.candidates(late) if c.refused is None} <= set(kv_names())
    asked = replace(early, engine=replace(early.engine, kv_cache_dtype="turboquant_3bit_nc"))
    (refused,) = [c.refused for c in lever.candidates(asked) if c.setting == "turboquant_3bit_nc"]
    assert refused is not None
    assert refused.key == "lever.kv_no_version"


def spread(device: str) -> tuple[float, list[str]]:
    """ln of the 90 % range of a gain by drafting, and why."""
    lever = api.lever_named("speculation")
    load = Workload(batch=4.0, input_tokens=2000.0, output_tokens=200.0)
    both = arms(lever, built("qwen3-32b", device, "vllm", "0.19", count=2, load=load), "ngram k=3", Draws(256))
    gain = gain_draws(both.point_off, both.point_on, "tpot")
    assert gain is not None
    low, high = np.quantile(gain, (0.05, 0.95))
    return float(np.log(high / low)), [message.key for message in lever.because(both.on, both.point_off, both.point_on)]


def test_drafting_where_nobody_has_shown_its_fast_path_is_hardly_known() -> None:
    known, because = spread("h100-sxm")
    unproven, warned = spread("ascend-910b3")
    assert unproven > 1.5 * known
    assert "lever.spec_unproven" in warned
    assert "lever.spec_unproven" not in because
