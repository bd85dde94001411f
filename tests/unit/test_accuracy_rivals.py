"""What the page of accuracy holds the model against: a bare roofline, rules of thumb, and the model without one of its parts."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from accuracy import roofline
from accuracy.exchange import exchanged, gain_by
from accuracy.figures import rounded, sizes
from accuracy.parts import Part, nothing, parts, stacked
from accuracy.rivals import RULES, by_roofline, rules

from breakeven import catalog, evaluator
from breakeven.draws import MEDIAN
from breakeven.evaluator import Noise, evaluate
from breakeven.measured import speeds
from breakeven.measured.pair import Pair
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine, Speculative
from breakeven.spec.hardware import Hardware
from breakeven.spec.workload import Acceptance, Workload


def deployment(model: str = "llama-3.1-8b", **workload: float) -> Deployment:
    engine = Engine(name="vllm", version="0.11", max_num_seqs=64, kv_cache_dtype="bf16", enable_prefix_caching=False)
    device = catalog.load("hardware", "h100-sxm")
    return Deployment(model=catalog.load("models", model), hardware=Hardware(device=device), engine=engine, workload=Workload(**workload))


def pair(lever: str, off: Deployment, on: Deployment, speed: speeds.Quantity = speeds.THROUGHPUT) -> Pair:
    return Pair(id="x", where="x:1", lever=lever, regime="x", group="x", quality="A", measured=1.0, off=off, on=on, speed=speed)


def changed(d: Deployment, **engine: object) -> Deployment:
    return replace(d, engine=replace(d.engine, **engine))  # type: ignore[arg-type]


def test_one_stream_reads_its_weights_at_the_sheet_s_bandwidth() -> None:
    d = deployment(batch=1.0, context_tokens=1.0)
    weights = d.model.parameters.total - d.model.parameters.embedding
    assert float(roofline.point(d).tpot_s) == pytest.approx(2 * weights / d.hardware.device.bandwidth_bytes_per_s, rel=1e-3)


def test_a_large_batch_computes_at_the_sheet_s_rate() -> None:
    d = changed(deployment(batch=4096.0, context_tokens=1.0), max_num_seqs=4096)
    row = 2.0 * (d.model.parameters.total - d.model.parameters.embedding)
    assert float(roofline.point(d).step_s) == pytest.approx(4096 * row / d.hardware.device.matmul_flops["bf16"], rel=1e-2)


@pytest.mark.parametrize("clients", [1.0, 16.0, 500.0])
def test_the_roofline_is_never_slower_than_the_model(clients: float) -> None:
    d = deployment(concurrency=clients, input_tokens=1000.0, output_tokens=200.0)
    bare, model = roofline.point(d), evaluate(d)
    assert float(bare.tpot_s) < float(model.tpot_s) and float(np.asarray(bare.ttft_s)) < float(np.asarray(model.ttft_s))
    assert float(bare.throughput) > float(model.throughput)


def test_rules_are_given_what_the_row_states() -> None:
    d = deployment(concurrency=1.0, input_tokens=1000.0, output_tokens=200.0, prefix_hit_rate=0.75)
    assert rules(pair("prefix_cache", d, changed(d, enable_prefix_caching=True)))["hits"] == pytest.approx(4.0)
    whole = replace(d, workload=replace(d.workload, prefix_hit_rate=1.0))
    assert rules(pair("prefix_cache", whole, changed(whole, enable_prefix_caching=True)))["hits"] == inf
    few, many = (replace(d, workload=replace(d.workload, concurrency=c)) for c in (4.0, 256.0))
    assert rules(pair("batching", few, many))["linear"] == pytest.approx(64 / 4)
    eights = rules(pair("weight_quant", d, changed(d, quantization="fp8")))["bytes"]
    assert 1.6 < eights < 2.0
    drafted = changed(d, speculative=Speculative(method="eagle3", num_speculative_tokens=3))
    drafted = replace(drafted, workload=replace(drafted.workload, acceptance=Acceptance(length=2.4)))
    found = rules(pair("speculation", d, drafted))
    assert found["length"] == pytest.approx(2.4) and found["length_over_1.6"] == pytest.approx(1.5)


def test_a_cache_of_half_the_bytes_saves_half_of_its_share() -> None:
    d = deployment(batch=32.0, context_tokens=8000.0)
    gain = rules(pair("kv_quant", d, changed(d, kv_cache_dtype="fp8"), speeds.DECODE))["bytes"]
    assert 1.3 < gain < 2.0
    assert by_roofline(pair("kv_quant", d, changed(d, kv_cache_dtype="fp8"), speeds.DECODE)) == pytest.approx(gain, rel=1e-3)


def test_every_lever_has_a_rule() -> None:
    assert set(RULES) == {"weight_quant", "kv_quant", "prefix_cache", "speculation", "batching"}


def test_the_evaluator_is_put_back_whatever_happens() -> None:
    d = deployment(batch=1.0, context_tokens=1.0)
    with pytest.raises(ZeroDivisionError), exchanged(lambda *_, **__: 1 / 0):
        speeds.DECODE(d, MEDIAN, Noise())
    assert speeds.evaluate is evaluator.evaluate
    gain_by(pair("batching", d, d, speeds.DECODE), roofline.point)
    assert speeds.evaluate is evaluator.evaluate


@pytest.mark.parametrize("part", parts(), ids=lambda part: part.name)
def test_a_part_that_is_switched_off_is_missed(part: Part) -> None:
    d = changed(deployment(concurrency=16.0, input_tokens=2000.0, output_tokens=200.0), quantization="int4", kv_cache_dtype="fp8")
    d = changed(d, tensor_parallel_size=4, speculative=Speculative(method="eagle3", num_speculative_tokens=3))
    d = replace(d, hardware=replace(d.hardware, count=4))
    with_it, without = evaluate(d), evaluate(part.without(d))
    times = [(float(p.tpot_s), float(np.asarray(p.ttft_s))) for p in (with_it, without)]
    assert (times[0] == times[1]) == (part.name == "none")


def test_parts_side_by_side_say_what_each_says_alone() -> None:
    d = changed(deployment(concurrency=16.0, input_tokens=2000.0, output_tokens=200.0), quantization="int4", kv_cache_dtype="fp8")
    together = evaluate(replace(d, calibration=stacked()))
    alone = [evaluate(part.without(d)) for part in parts()]
    assert np.asarray(together.tpot_s) == pytest.approx([float(p.tpot_s) for p in alone])
    assert np.asarray(together.ttft_s) == pytest.approx([float(np.asarray(p.ttft_s)) for p in alone])


def test_without_all_of_its_parts_the_model_is_nearly_the_roofline() -> None:
    d = deployment(batch=8.0, context_tokens=1000.0)
    assert float(evaluate(nothing().without(d)).step_s) == pytest.approx(float(roofline.point(d).step_s), rel=0.1)


def test_sizes_count_groups_once_and_what_has_no_bound_as_wrong() -> None:
    found = sizes([("a", 1.0, 1.0)] * 9 + [("b", 2.0, 1.0), ("c", 0.5, inf)], signed=True)
    assert (found["rows"], found["groups"]) == (11, 3)
    assert found["group_median_error"] == pytest.approx(np.log(2)) and found["median_error"] == 0.0
    assert found["sign_agreement"] == 0.0
    assert rounded({"x": inf, "y": [0.123456, 3]}) == {"x": None, "y": [0.1235, 3]}
