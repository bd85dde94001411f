"""Moving a deployment along an axis moves that axis and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from breakeven import api
from breakeven.advice import AXES
from breakeven.axes import POINTS, grid, move
from breakeven.draws import MEDIAN
from breakeven.evaluator import evaluate
from breakeven.judge import Arms, arms
from breakeven.lever import Sigma
from breakeven.levers.speculation import LEVER
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine, Speculative
from breakeven.spec.workload import Acceptance, Lengths, Workload

SPEC = Speculative(method="eagle3", num_speculative_tokens=3)
OPEN = {"input_tokens": 2000.0, "output_tokens": 300.0, "request_rate": 4.0}


def build(engine: dict[str, object] | None = None, **workload: object) -> Deployment:
    settings = {"enable_prefix_caching": True, **(engine or {})}
    return Deployment(
        model=api.model("llama-3.1-8b"), hardware=api.hardware("h100-sxm"), engine=Engine(**settings), workload=Workload(**workload)
    )


def test_a_pinned_batch_is_pinned_in_any_mode() -> None:
    for workload in (OPEN, {"input_tokens": 2000.0, "output_tokens": 300.0, "concurrency": 9.0}, {"batch": 3.0, "context_tokens": 500.0}):
        p = evaluate(move(build(**workload), "batch", 24.0))
        assert p.demand.mode == "pinned"
        assert float(p.batch) == 24


def test_context_is_moved_by_the_prompt_and_the_output_stays() -> None:
    moved = evaluate(move(build(**OPEN), "context_tokens", 6000.0))
    assert float(moved.demand.context_tokens) == 6000
    assert float(moved.demand.output_tokens) == 300
    assert float(moved.demand.input_tokens) == 5850
    bare = evaluate(move(build(batch=8.0, context_tokens=100.0), "context_tokens", 6000.0))
    assert float(bare.demand.context_tokens) == 6000


def test_output_moves_the_context_it_adds() -> None:
    assert float(evaluate(move(build(**OPEN), "output_tokens", 1000.0)).demand.context_tokens) == 2500


def test_a_rate_opens_any_loop() -> None:
    p = evaluate(move(build(input_tokens=2000.0, output_tokens=300.0, concurrency=9.0), "request_rate", 2.0))
    assert p.demand.mode == "open"
    assert float(p.request_rate) == 2


def test_hits_and_acceptance_and_k_are_what_was_asked() -> None:
    d = build({"speculative": SPEC}, **OPEN)
    assert float(evaluate(move(d, "prefix_hit_rate", 0.4)).demand.hit_rate) == 0.4
    assert float(evaluate(move(d, "acceptance_length", 2.5)).tau) == pytest.approx(2.5)
    assert evaluate(move(d, "draft_tokens", 6.0)).rows == 7
    assert move(build(**OPEN), "draft_tokens", 6.0) == build(**OPEN)


def drafted(d: Deployment) -> Arms:
    """The arms of the drafting in force."""
    return arms(LEVER, LEVER.remove(d), LEVER.setting_on(d) or "", MEDIAN)


@pytest.mark.parametrize("axis", AXES)
def test_a_grid_covers_where_the_deployment_stands(axis: str) -> None:
    d = build({"speculative": SPEC}, **OPEN)
    found = grid(drafted(d), axis)
    assert found is not None
    assert found.axis == axis
    assert len(found.values) == (10 if axis == "draft_tokens" else POINTS)
    assert np.all(np.diff(found.values) > 0)
    assert found.values[0] <= found.here <= found.values[-1]


def test_axes_that_mean_nothing_have_no_grid() -> None:
    bare = build(batch=8.0, context_tokens=1000.0)
    undrafted = Arms(
        lever="kv_quant",
        setting="fp8",
        off=bare,
        on=bare,
        sigma=Sigma(),
        point_off=evaluate(bare),
        point_on=evaluate(bare),
        fits_off=True,
        fits_on=True,
    )
    for axis in ("output_tokens", "request_rate", "prefix_hit_rate", "acceptance_length", "draft_tokens"):
        assert grid(undrafted, axis) is None
    for axis in ("batch", "context_tokens"):
        assert grid(undrafted, axis) is not None


def test_every_point_of_every_grid_can_be_evaluated() -> None:
    for accepted in (None, Acceptance(length=2.4, k=3), Acceptance(cumulative=(0.7, 0.5, 0.3))):
        d = build({"speculative": SPEC}, acceptance=accepted, **OPEN)
        for axis in AXES:
            found = grid(drafted(d), axis)
            assert found is not None
            for values in [found.values] if axis != "draft_tokens" else found.values:
                assert np.all(np.isfinite(evaluate(move(d, axis, values), exact=False).tpot_s))


def test_the_moments_of_a_trace_keep_their_shape_when_the_mean_moves() -> None:
    moments = Lengths(
        requests=10, mean_input=1000.0, mean_output=100.0, mean_input_squared=3e6, mean_output_squared=2e4, mean_input_output=1e5
    )
    d = build(input_tokens=1000.0, output_tokens=100.0, request_rate=1.0, lengths=moments)
    p = evaluate(d)
    assert float(p.demand.context_tokens) == 1000 + 100 * 2 / 2
    assert float(p.demand.attention_input) == 3000
    assert float(evaluate(move(d, "output_tokens", 200.0)).demand.context_tokens) == 1000 + 200 * 2 / 2
