"""k by batch, and hits by capacity: what the schedule says is what evaluating each k says; a larger pool never hits less."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import breakeven as be
from breakeven import api, schedule
from breakeven.draws import Draws
from breakeven.errors import InputError
from breakeven.evaluator import evaluate
from breakeven.lever import Sigma
from breakeven.levers import speculation
from breakeven.spec.deployment import Deployment
from breakeven.spec.workload import ReuseRates

REUSE = ReuseRates(capacity_tokens=(0.0, 1e4, 1e5, 3e5, 1e6), hit_rates=(0.0, 0.05, 0.2, 0.5, 0.6))


def deployment(version: str = "0.24", **workload: object) -> Deployment:
    asked = {"input_tokens": 1200.0, "output_tokens": 250.0, "request_rate": 4.0, **workload}
    return be.Deployment(
        model=be.model("llama-3.1-8b"),
        hardware=be.hardware("h100-sxm"),
        engine=be.engine("vllm", version),
        workload=be.Workload(**asked),
    )


class TestStretches:
    @pytest.mark.parametrize("method", ["eagle3", "ngram"])
    def test_cover_every_batch_once_and_fall(self, method: str) -> None:
        d = deployment()
        found = schedule.stretches(d, method, Draws(32), Sigma(step=0.1))
        assert found[0].first == 1 and found[-1].to == schedule.largest(d)
        assert all(b.first == a.to + 1 for a, b in pairwise(found))
        assert [one.k for one in found] == sorted((one.k for one in found), reverse=True)

    @pytest.mark.parametrize("method", ["eagle3", "ngram"])
    def test_each_k_is_within_two_hundredths_of_the_best_in_the_middle_of_its_stretch(self, method: str) -> None:
        d = deployment()
        for one in schedule.stretches(d, method, Draws(16), Sigma()):
            there = speculation.pinned(d, np.array([float((one.first * one.to) ** 0.5)]))
            times = [evaluate(there).tpot_s, *(evaluate(speculation.apply(there, f"{method} k={k}")).tpot_s for k in range(1, 9))]
            values = [float(np.ravel(time)[0]) for time in times]
            assert values[one.k] <= min(values) * 1.02, (one, values)

    def test_a_border_lies_where_the_two_times_meet(self) -> None:
        d = deployment()
        first, second = schedule.stretches(d, "ngram", Draws(16), Sigma())[:2]
        at = np.array([float(first.to)])
        before, after = (
            float(np.ravel(evaluate(speculation.apply(speculation.pinned(d, at), f"ngram k={one.k}")).tpot_s)[0]) for one in (first, second)
        )
        assert before / after == pytest.approx(speculation.FLAT, abs=4e-3)

    def test_what_is_less_sure_has_wider_borders(self) -> None:
        known = be.Acceptance(cumulative=(0.6, 0.4, 0.3), k=3, method="ngram")
        d = deployment(acceptance=known)
        wide, narrow = (
            next(one for one in schedule.stretches(d, "ngram", Draws(128), Sigma(step=sigma)) if one.to_low is not None)
            for sigma in (0.1, 0.01)
        )
        assert narrow.to_low is not None and wide.to_low is not None and narrow.to_low >= wide.to_low
        assert narrow.to_low <= narrow.to + 1

    def test_the_engine_s_own_setting_is_given_where_it_takes_one(self) -> None:
        """vLLM takes inclusive ranges from 0.24 on; before, and elsewhere, the schedule is words."""
        d = deployment()
        found = schedule.stretches(d, "ngram", Draws(16), Sigma())
        told = json.loads(schedule.setting(found, d) or "{}")
        ranges = told["num_speculative_tokens_per_batch_size"]
        assert told["num_speculative_tokens"] == max(k for _, _, k in ranges)
        assert ranges[0][0] == 1 and all(low <= high for low, high, _ in ranges)
        assert schedule.setting(found, deployment("0.11")) is None
        assert schedule.setting(found, replace(d, engine=be.engine("sglang", "0.5"))) is None


class TestHitsOfATrace:
    def hits(self, d: Deployment) -> float:
        return float(np.asarray(evaluate(d).demand.hit_rate))

    def test_are_those_of_the_room_that_running_sequences_leave_to_prompts(self) -> None:
        point = evaluate(d := deployment(reuse=REUSE, prefix_hit_rate=0.4))
        beside = float(point.room.sequence_bytes) / point.room.kv_bytes_per_token - 1200.0
        wanted = float(np.interp(point.room.pool_tokens - float(point.batch) * beside, REUSE.capacity_tokens, REUSE.hit_rates))
        assert self.hits(d) == pytest.approx(wanted, rel=0.05)

    def test_a_larger_pool_hits_no_less_and_that_is_how_a_smaller_cache_format_gains_twice(self) -> None:
        d = deployment(reuse=REUSE, prefix_hit_rate=0.4, request_rate=6.0)
        wide = replace(d, engine=replace(d.engine, kv_cache_dtype="fp8"))
        assert self.hits(wide) > self.hits(d) + 0.05
        advised = api.advise(d, draws=64)
        fixed = api.advise(replace(d, workload=replace(d.workload, reuse=None, prefix_hit_rate=self.hits(d))), draws=64)
        assert advised.levers["kv_quant"].metrics["ttft"].gain > fixed.levers["kv_quant"].metrics["ttft"].gain

    def test_without_the_cache_nothing_is_hit(self) -> None:
        d = deployment(reuse=REUSE, prefix_hit_rate=0.4)
        assert self.hits(replace(d, engine=replace(d.engine, enable_prefix_caching=False))) == 0.0

    def test_a_flat_curve_is_a_stated_hit_rate(self) -> None:
        flat = ReuseRates(capacity_tokens=(0.0, 1e9), hit_rates=(0.3, 0.3))
        one, other = evaluate(deployment(reuse=flat, prefix_hit_rate=0.3)), evaluate(deployment(prefix_hit_rate=0.3))
        assert float(one.tpot_s) == pytest.approx(float(other.tpot_s), rel=1e-12)

    def test_along_the_axis_of_the_hit_rate_the_curve_is_left_aside(self) -> None:
        one = api.boundary("prefix_cache", deployment(reuse=REUSE, prefix_hit_rate=0.4), "prefix_hit_rate", draws=32)
        other = api.boundary("prefix_cache", deployment(prefix_hit_rate=0.4), "prefix_hit_rate", draws=32)
        assert one.pays_on == other.pays_on

    @pytest.mark.parametrize(
        "reuse",
        [
            ReuseRates(capacity_tokens=(0.0, 1.0), hit_rates=(0.4, 0.1)),
            ReuseRates(capacity_tokens=(5.0, 1.0), hit_rates=(0.1, 0.4)),
            ReuseRates(capacity_tokens=(1.0,), hit_rates=(0.1, 0.4)),
            ReuseRates(capacity_tokens=(), hit_rates=()),
            ReuseRates(capacity_tokens=(0.0, 1.0), hit_rates=(0.1, 1.4)),
        ],
    )
    def test_a_curve_that_cannot_be_is_refused(self, reuse: ReuseRates) -> None:
        with pytest.raises(InputError, match="reuse"):
            api.advise(deployment(reuse=reuse, prefix_hit_rate=0.1))
