"""Slots with caches of their own: stretches of busy slots are counted as they fall, and a step is the sum of its passes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations, groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven import api
from breakeven.ledger.slots import passes, stretches
from breakeven.ledger.step import parts, pass_s, roofline_s, step_time
from breakeven.spec.calibration import Calibration, StepCurve

ROWS = {1.0: 0.013, 2.0: 0.035, 3.0: 0.047, 4.0: 0.046, 8.0: 0.058}


def lengths(busy: tuple[int, ...]) -> list[int]:
    return [len(list(of)) for _, of in groupby(enumerate(busy), lambda pair: pair[1] - pair[0])]


@pytest.mark.parametrize("slots", [1, 2, 3, 5, 8])
def test_stretches_are_those_of_every_choice_of_busy_slots(slots: int) -> None:
    for busy in range(1, slots + 1):
        chosen = list(combinations(range(slots), busy))
        counted = Counter(length for choice in chosen for length in lengths(choice))
        expected = [counted[length] / len(chosen) for length in range(1, slots + 1)]
        np.testing.assert_allclose(stretches(slots)[busy - 1], expected, rtol=1e-12)
        assert float(passes(busy, slots)) == pytest.approx(sum(expected))


@given(slots=st.integers(1, 128))
def test_every_busy_slot_is_in_one_stretch(slots: int) -> None:
    each = np.arange(1.0, slots + 1)
    np.testing.assert_allclose(stretches(slots) @ each, each, rtol=1e-9)
    np.testing.assert_allclose(stretches(slots).sum(axis=1), passes(each, slots), rtol=1e-9)


def llama(build, batch, slots: int, **rest):
    settings = {"name": "llamacpp", "max_num_seqs": slots, "version": "b9000", **rest}
    return build(batch=batch, context_tokens=500.0, engine=settings)


def test_one_slot_and_all_slots_take_what_one_cache_takes(build) -> None:
    batch = np.array([1.0, 8.0])
    own, shared = (api.evaluate(llama(build, batch, 8, kv_unified=unified)).step_s for unified in (False, True))
    np.testing.assert_allclose(own, shared, rtol=1e-12)


def test_between_them_the_weights_are_read_once_a_pass(build) -> None:
    cost = api.evaluate(llama(build, 4.0, 8, kv_unified=False)).cost
    assert float(roofline_s(cost, 4.0)) == pytest.approx(2.5 * float(pass_s(cost, 4.0 / 2.5)), rel=1e-12)
    assert sum(float(one) for one in parts(cost, 4.0).values()) == pytest.approx(float(step_time(cost, 4.0)), rel=1e-9)


def test_a_mixture_reads_in_each_pass_the_experts_that_its_own_sequences_wake(build) -> None:
    def books(batch: float, slots: int, unified: bool):
        settings = {"name": "llamacpp", "max_num_seqs": slots, "version": "b9000", "kv_unified": unified}
        return api.advise(build("qwen3-30b-a3b", batch=batch, context_tokens=500.0, engine=settings), draws=16).ledgers.bandwidth

    apart = books(4.0, 8, False)  # 2.5 passes of 1.6 sequences
    whole = books(1.6, 8, True)
    assert apart.expert_coverage == pytest.approx(whole.expert_coverage)
    assert (apart.expert_bytes, apart.weight_bytes) == (pytest.approx(2.5 * whole.expert_bytes), pytest.approx(2.5 * whole.weight_bytes))
    assert books(4.0, 64, False).mbu < 1.0, "many passes, and no step below its own roofline"


def test_a_curve_of_one_pass_is_dealt_out_though_another_with_gaps_stands_before_it(build) -> None:
    d = llama(build, 2.0, 4, kv_unified=False)
    shape = {"model": d.model, "rows": tuple(ROWS), "step_s": tuple(ROWS.values())}
    own, gaps = (
        StepCurve(engine=replace(d.engine, kv_unified=one), context_tokens=at, **shape) for one, at in ((True, 500.0), (False, 100.0))
    )
    found, alone = (api.evaluate(replace(d, calibration=Calibration(values={}, curves=curves))) for curves in ((gaps, own), (own,)))
    assert float(found.step_s) == pytest.approx(float(alone.step_s), rel=1e-12)


def test_measured_passes_are_summed_over_the_stretches(build) -> None:
    d = llama(build, 2.0, 4, kv_unified=False)
    own = StepCurve(
        model=d.model, engine=replace(d.engine, kv_unified=True), context_tokens=500.0, rows=tuple(ROWS), step_s=tuple(ROWS.values())
    )
    found = api.evaluate(replace(d, calibration=Calibration(values={}, curves=(own,))))
    apart, together = 3 / 6, 3 / 6  # of six choices of two slots of four, three are neighbours
    expected = apart * 2 * ROWS[1.0] + together * ROWS[2.0]
    assert float(found.step_s / found.time_factor) == pytest.approx(expected, rel=1e-9)
    cost = found.cost
    assert sum(float(one) for one in parts(cost, 2.0).values()) == pytest.approx(float(step_time(cost, 2.0)), rel=1e-9)


def test_more_slots_than_are_busy_make_the_step_longer(build) -> None:
    times = [float(api.evaluate(llama(build, 4.0, slots, kv_unified=False)).step_s) for slots in (4, 5, 8, 16)]
    assert times == sorted(times)
    assert times[-1] > 1.8 * times[0]


def test_a_stated_number_of_slots_has_a_cache_each_unless_it_is_said_otherwise(build) -> None:
    def unified(**engine):
        return api.engine("llamacpp", **engine).kv_unified

    assert unified(version="b9000"), "four slots and one cache"
    assert not unified(version="b9000", max_num_seqs=8)
    assert unified(version="b9000", max_num_seqs=8, kv_unified=True)
    assert unified(version="b5000", max_num_seqs=8), "before streams of the cache"
    assert api.engine("vllm", max_num_seqs=8).kv_unified


def test_gaps_between_slots_are_told_with_what_closes_them(build) -> None:
    def told(batch: float, **engine) -> list[str]:
        found = api.advise(llama(build, batch, 8, **engine), draws=16)
        return [one.key for one in found.warnings if one.key == "judge.warn_slots_apart"]

    assert told(4.0, kv_unified=False)
    assert not told(8.0, kv_unified=False) and not told(1.0, kv_unified=False) and not told(4.0, kv_unified=True)
