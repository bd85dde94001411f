"""A sheet figure that is less well founded widens what is said of a device, moves no median, and is named."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import log

import numpy as np
import pytest

import breakeven as be
from breakeven import api, catalog
from breakeven.advice import Advice
from breakeven.draws import MEDIAN, Draws
from breakeven.efficiencies import table
from breakeven.errors import InputError, NotModelledError
from breakeven.ledger.shard import shard
from breakeven.messages import text
from breakeven.sheet import sheet_factor
from breakeven.spec.deployment import Deployment
from breakeven.spec.hardware import CONFIDENCES, Device, Hardware, with_memory

DRAWS = 256
MANY = 2048


def deployment(device: Device, batch: float = 48) -> Deployment:
    return be.Deployment(
        model=be.model("llama-3.1-8b"),
        hardware=Hardware(device=device, count=1),
        engine=be.engine("vllm", "0.11", device),
        workload=be.Workload(input_tokens=1000, output_tokens=300, concurrency=batch),
    )


def less_sure(device: Device, confidence: str) -> Device:
    return replace(device, confidence=confidence, confidence_bandwidth=confidence, confidence_compute=confidence)


@pytest.fixture(scope="module")
def h100() -> Device:
    return catalog.load("hardware", "h100-sxm")


@pytest.fixture(scope="module")
def answers(h100: Device) -> dict[str, Advice]:
    return {name: api.advise(deployment(less_sure(h100, name)), objective="tpot", draws=DRAWS) for name in CONFIDENCES}


def widths(advice: Advice) -> dict[tuple[str, str], float]:
    gains = {(name, metric): gain for name, lever in advice.levers.items() for metric, gain in lever.metrics.items()}
    return {key: log(gain.high / gain.low) for key, gain in gains.items() if gain.low and gain.high}


def test_two_sources_change_nothing_bit_for_bit(h100: Device) -> None:
    seen = shard(deployment(h100), Draws(DRAWS))
    assert seen.bandwidth_bytes_per_s == h100.bandwidth_bytes_per_s and seen.flops_16_bit == h100.matmul_flops["bf16"]


def test_the_median_world_is_the_sheet(h100: Device) -> None:
    seen = shard(deployment(less_sure(h100, "recalled")), MEDIAN)
    assert seen.bandwidth_bytes_per_s == h100.bandwidth_bytes_per_s and seen.flops_16_bit == h100.matmul_flops["bf16"]


def test_a_quantity_has_the_same_factor_wherever_it_is_looked_at(h100: Device) -> None:
    unsure, draws = less_sure(h100, "recalled"), Draws(DRAWS, 3)
    assert (sheet_factor(unsure, "bandwidth", draws) == sheet_factor(unsure, "bandwidth", draws)).all()  # type: ignore[union-attr]
    assert (sheet_factor(unsure, "bandwidth", draws) != sheet_factor(unsure, "compute", draws)).any()  # type: ignore[union-attr]


def spread_of_gain(lever: str, setting: str, device: Device, batch: float) -> float:
    """Standard deviation of ln(off/on) of TPOT over the draws, before the lever's own model-form error."""
    off = replace(deployment(device), workload=be.Workload(batch=batch, context_tokens=1000))
    on = api.levers()[lever].apply(off, setting)
    gains = be.evaluate(off, draws=MANY, exact=False).tpot_s / be.evaluate(on, draws=MANY, exact=False).tpot_s
    return float(np.std(np.log(gains)))


@pytest.mark.parametrize("lever", sorted(api.levers()))
def test_the_gain_of_no_lever_is_surer_on_a_device_that_is_less_sure(lever: str, h100: Device) -> None:
    settings = [one.setting for one in api.levers()[lever].candidates(deployment(h100)) if one.refused is None]
    for setting in settings:
        told = [spread_of_gain(lever, setting, less_sure(h100, name), 64) for name in CONFIDENCES]
        assert all(less >= surer - 1e-3 for surer, less in pairwise(told)), (setting, told)


@pytest.mark.parametrize(("lever", "setting"), [("weight_quant", "int4_marlin"), ("weight_quant", "int8"), ("speculation", "eagle3 k=3")])
def test_the_gain_of_a_lever_that_moves_along_the_ridge_is_less_sure_the_less_sure_the_sheet(
    lever: str, setting: str, h100: Device
) -> None:
    told = [spread_of_gain(lever, setting, less_sure(h100, name), 192) for name in CONFIDENCES]
    assert all(less > surer + 1e-4 for surer, less in pairwise(told)), told


def test_the_interval_that_is_told_of_a_lever_does_not_narrow(answers: dict[str, Advice]) -> None:
    surer, less = widths(answers["2 sources"]), widths(answers["recalled"])
    # The 90 % interval is read off 256 draws, of which the model-form error is the larger part: its ends jitter by about 2 %.
    assert all(less[key] >= surer[key] - 0.02 for key in surer.keys() & less.keys())


def test_the_operating_point_is_less_sure_too_and_its_median_stays(answers: dict[str, Advice]) -> None:
    sure, unsure = answers["2 sources"].operating_point, answers["recalled"].operating_point
    assert sure.tpot_s == unsure.tpot_s
    low, high = unsure.tpot_interval.low, unsure.tpot_interval.high
    assert low is not None and high is not None and sure.tpot_interval.low is not None and sure.tpot_interval.high is not None
    assert high / low > sure.tpot_interval.high / sure.tpot_interval.low


@pytest.mark.parametrize(("language", "words"), [("en", ("memory bandwidth", "recalled")), ("zh", ("显存带宽", "凭记忆"))])
def test_what_is_unsure_is_named_in_a_warning_and_in_how_sure(answers: dict[str, Advice], language: str, words: tuple[str, ...]) -> None:
    advice = answers["recalled"]
    told = [text(message, language) for message in advice.warnings]
    assert any(all(word in line for word in words) for line in told)
    assert "H100 SXM" in text(advice.how_sure, language)
    assert not [line for line in (text(message, language) for message in answers["2 sources"].warnings) if words[0] in line]


def test_spreads_grow_as_confidence_falls() -> None:
    for quantity in ("bandwidth", "compute", "link"):
        spreads = [table("sheet")[quantity][name] for name in CONFIDENCES]
        assert spreads == sorted(spreads) and spreads[0] == 0.0 < spreads[-1]


@pytest.mark.parametrize("name", catalog.names("hardware"))
def test_every_device_is_judged_or_says_what_it_needs(name: str) -> None:
    device = catalog.load("hardware", name)
    known = device if device.memory_bytes is not None else with_memory(device, 64e9)
    if not device.matmul_flops:
        with pytest.raises(NotModelledError, match="matmul_flops"):
            be.evaluate(deployment(known, 4))
        return
    if known is not device:
        with pytest.raises(InputError, match="--device-memory"):
            be.evaluate(replace(deployment(known, 4), hardware=Hardware(device=device)))
    point = be.evaluate(deployment(known, 4), draws=16)
    assert not point.fits or (np.asarray(point.step_s) > 0).all()


@pytest.mark.parametrize("name", catalog.names("models"))
def test_every_model_is_judged(name: str, h100: Device) -> None:
    d = replace(deployment(h100, 4), model=be.model(name))
    assert be.evaluate(d).room.weight_bytes > 0
