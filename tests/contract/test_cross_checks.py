"""Figures held against each other: a pipeline's idle stages, Little's law within its edges, histograms of several servers."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from breakeven import api
from breakeven.adapter import Alias
from breakeven.observation import histograms, utilisation
from breakeven.observation.quantities import Quantities
from breakeven.observation.summary import summarised
from breakeven.observation.timeline import Part, Series, Timeline
from breakeven.spec.deployment import Deployment
from breakeven.spec.evidence import Evidence, Figure, Told
from breakeven.spec.workload import Workload
from breakeven.statement import ledgers

EVERY_S, READINGS = 2.0, 31
WINDOW_S = EVERY_S * (READINGS - 1)


def made(quantity: str, last: float, *, part: Part = "", le: float | None = None, source: str = "a", first: float = 0.0) -> Series:
    """A series that goes straight from its first value to its last."""
    times = np.arange(READINGS) * EVERY_S
    alias = Alias(family=f"made:{quantity}")
    values = np.linspace(first, last, READINGS)
    return Series(quantity=quantity, part=part, le=le, source=source, alias=alias, times=times, values=values)


def timeline(*some: Series) -> Timeline:
    return Timeline(engine="vllm", series=some, start_s=0.0, end_s=WINDOW_S, readings=READINGS, every_s=EVERY_S)


def evidence(*some: Series) -> Evidence:
    return summarised(timeline(*some), Told(engine="vllm"), target="made", source="live")


def deployment(stages: int) -> Deployment:
    return Deployment(
        model=api.model("llama-3.1-8b"),
        hardware=api.hardware("h100-sxm", stages),
        engine=api.engine("vllm", pipeline_parallel_size=stages),
        workload=Workload(batch=1.0, context_tokens=1000.0),
    )


class TestPipeline:
    @pytest.mark.parametrize(
        ("stages", "batch", "working"), [(4, 1.0, 0.25), (4, 2.0, 0.5), (4, 4.0, 1.0), (4, 16.0, 1.0), (2, 1.0, 0.5), (1, 1.0, 1.0)]
    )
    def test_fewer_sequences_than_stages_leave_the_others_idle_and_mbu_and_mfu_say_so(
        self, stages: int, batch: float, working: float
    ) -> None:
        d, step_s = deployment(stages), 0.02
        found = {
            "effective_batch": Figure(value=batch, sure="derived", how="observed.how_rate"),
            "context_tokens": Figure(value=1000.0, sure="counted", how="observed.how_context_lengths"),
            "step_s": Figure(value=step_s, sure="counted", how="observed.how_rate"),
        }
        told = utilisation.figures(Quantities(timeline(made("running", batch, first=batch))), d, found)
        assert told["mbu"].value == pytest.approx(working * told["bytes_per_step"].value / (step_s * 3.35e12), rel=1e-9)
        assert told["mfu"].value == pytest.approx(working * told["flop_per_step"].value / (step_s * 989.4e12), rel=1e-3)

    @pytest.mark.parametrize(("batch", "working"), [(1.0, 0.25), (3.0, 0.75), (4.0, 1.0), (32.0, 1.0)])
    def test_the_ledgers_of_a_pinned_batch_count_idle_stages_too(self, batch: float, working: float) -> None:
        d = replace(deployment(4), workload=Workload(batch=batch, context_tokens=1000.0))
        point = api.evaluate(d)
        books = ledgers(point, d).bandwidth
        assert books.mbu == pytest.approx(working * books.bytes_per_step / (float(point.step_s) * 3.35e12), rel=1e-9)


def little(mean_s: float, apart: float) -> Evidence:
    """10 requests run by the gauge; by rate × latency of ``mean_s`` they are so much of that fewer."""
    count = 10.0 * (1.0 - apart) * WINDOW_S / mean_s
    whole = [made("e2e", count * mean_s, part="sum"), made("e2e", count, part="count")]
    return evidence(made("running", 10.0, first=10.0), *whole)


class TestLittlesLaw:
    @pytest.mark.parametrize(("mean_s", "allowed"), [(0.6, 0.11), (6.0, 0.2), (18.0, 0.4)])
    def test_two_sides_may_lie_apart_by_a_tenth_and_by_the_requests_that_the_edges_cut(self, mean_s: float, allowed: float) -> None:
        within, beyond = little(mean_s, allowed - 0.005), little(mean_s, allowed + 0.005)
        assert [one.key for one in within.checks] == [one.key for one in beyond.checks] == ["observed.check_requests"]
        assert within.checks[0].values["allowed"] == pytest.approx(allowed)
        assert within.checks[0].values["left"] == pytest.approx(10.0 * (1.0 - allowed + 0.005))
        assert "observed.warn_requests" not in {one.key for one in within.warnings}
        assert "observed.warn_requests" in {one.key for one in beyond.warnings}

    def test_it_does_not_matter_which_side_is_the_larger(self) -> None:
        larger = little(6.0, -0.3)  # 13 by rate × latency: 3 of 13 apart, and 0.2 is let pass
        assert "observed.warn_requests" in {one.key for one in larger.warnings}
        assert "observed.warn_requests" not in {one.key for one in little(6.0, -0.24).warnings}

    def test_requests_of_over_half_the_window_are_not_checked(self) -> None:
        assert [one.key for one in little(29.0, 0.9).checks] == ["observed.check_requests"]
        assert [one.key for one in little(31.0, 0.9).checks] == ["observed.check_too_short"]


FINE = histograms.histogram([(1.0, 2.0), (2.0, 6.0), (inf, 8.0)], 14.0, 8.0)
COARSE = histograms.histogram([(1.5, 1.0), (4.0, 5.0), (inf, 5.0)], 12.0, 5.0)


class TestMergedHistograms:
    def test_unlike_bounds_become_their_union_and_a_bound_that_one_lacks_counts_its_next_lower(self) -> None:
        both = histograms.merged([FINE, COARSE])
        assert both.bounds == (1.0, 1.5, 2.0, 4.0, inf)
        assert both.counts == (2.0, 3.0, 7.0, 11.0, 13.0)
        assert (both.total, both.count, both.mean, both.unlike) == (26.0, 13.0, 2.0, True)
        assert histograms.merged([COARSE, FINE]) == both

    def test_like_bounds_are_added_bound_by_bound(self) -> None:
        both = histograms.merged([FINE, FINE])
        assert (both.bounds, both.counts, both.unlike) == (FINE.bounds, (4.0, 12.0, 16.0), False)
        assert histograms.quantile(both, 0.5) == histograms.quantile(FINE, 0.5) == 1.5

    def test_a_sum_and_a_count_without_buckets_move_the_mean_and_no_bound(self) -> None:
        both = histograms.merged([FINE, histograms.histogram([], 10.0, 2.0)])
        assert (both.bounds, both.counts, both.mean, both.unlike) == (FINE.bounds, FINE.counts, 2.4, False)

    def test_two_servers_of_unlike_bounds_are_one_latency(self) -> None:
        some = [
            series
            for source, one in (("a", FINE), ("b", COARSE))
            for series in (
                *(made("ttft", count, part="bucket", le=le, source=source) for le, count in zip(one.bounds, one.counts, strict=True)),
                made("ttft", one.total, part="sum", source=source),
                made("ttft", one.count, part="count", source=source),
            )
        ]
        told = evidence(*some).latencies["ttft"]
        assert (told.count, told.mean) == (13.0, pytest.approx(2.0))
        assert told.p50 == pytest.approx(1.5 + 0.5 * (6.5 - 3.0) / 4.0)
