"""Acceptance: one curve under all the forms people have it in."""

from __future__ import annotations

from math import exp, isclose

import numpy as np
import pytest
from hypothesis import given as draw
from hypothesis import strategies as st

from breakeven.acceptance import Curve, decay_of_length, given, prior, tokens_per_round
from breakeven.draws import MEDIAN, Draws
from breakeven.spec.workload import Acceptance
from breakeven.stats import Range, Spread

ALPHAS = st.floats(0.02, 0.98)
KS = st.integers(1, 8)


def tau(acceptance: Acceptance, k: int, exponent: float = 1.0, *, measured_at: int | None = None) -> float:
    return float(tokens_per_round(given(acceptance, measured_at or k, exponent, MEDIAN), k))


@draw(alpha=ALPHAS, k=KS)
def test_all_five_forms_tell_the_same_curve(alpha: float, k: int) -> None:
    cumulative = tuple(alpha**i for i in range(1, k + 1))
    length = 1 + sum(cumulative)
    closed = (1 - alpha ** (k + 1)) / (1 - alpha)
    forms = (
        Acceptance(alpha=alpha),
        Acceptance(cumulative=cumulative),
        Acceptance(conditional=(alpha,) * k),
        Acceptance(length=length),
        Acceptance(rate=(length - 1) / k),
    )
    for form in forms:
        assert isclose(tau(form, k), closed, rel_tol=1e-6), form
    for form in forms:
        assert isclose(tau(form, k + 3, measured_at=k), (1 - alpha ** (k + 4)) / (1 - alpha), rel_tol=1e-5), form


@draw(alpha=st.floats(0.05, 0.9))
def test_endless_drafting_emits_the_geometric_sum(alpha: float) -> None:
    assert isclose(tau(Acceptance(alpha=alpha), 2000), 1 / (1 - alpha), rel_tol=1e-9)


@draw(share=st.floats(0.001, 0.999), k=KS, g=st.sampled_from([0.45, 0.8, 1.0, 1.2]))
def test_the_curve_of_a_length_has_that_length(share: float, k: int, g: float) -> None:
    length = 1 + share * k
    curve = Curve(decay=decay_of_length(length, k, g), exponent=g)
    assert isclose(float(tokens_per_round(curve, k)), length, rel_tol=1e-6)
    positions = [float(curve.cumulative(i)) for i in range(1, k + 4)]
    assert positions == sorted(positions, reverse=True)


def test_a_length_at_either_end_is_all_or_nothing() -> None:
    assert isclose(tau(Acceptance(length=4.0), 3), 4.0, rel_tol=1e-6)
    assert isclose(tau(Acceptance(length=1.0), 3), 1.0, rel_tol=1e-6)
    assert tau(Acceptance(cumulative=(1.0, 1.0)), 2) == 3.0
    assert isclose(tau(Acceptance(cumulative=(0.5, 0.0)), 5), 1.5, rel_tol=1e-6)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "acceptance",
    [
        Acceptance(length=Spread(mean=3.0, p95=3.9)),
        Acceptance(length=Spread(mean=1.1, p95=2.0)),
        Acceptance(rate=Spread(mean=0.6, p95=0.98)),
        Acceptance(alpha=Spread(mean=0.7, p95=0.99)),
        Acceptance(length=4.2),
    ],
)
def test_no_draw_emits_more_than_its_round_verifies_or_less_than_one(acceptance: Acceptance, seed: int) -> None:
    found = tokens_per_round(given(acceptance, 3, 1.2, Draws(512, seed)), 3)
    assert np.all((found >= 1.0 - 1e-6) & (found <= 4.0 + 1e-6))


def test_the_k_it_was_measured_at_goes_before_the_k_in_force() -> None:
    assert isclose(tau(Acceptance(length=3.0, k=4), 4, 1.2), 3.0, rel_tol=1e-6)
    assert tau(Acceptance(length=3.0, k=4), 2, 1.2) < 3.0
    assert tau(Acceptance(length=3.0, k=4), 7, 1.2) > 3.0


def test_counters_of_a_real_run_give_its_length_and_rate() -> None:
    """12,208 accepted tokens in 4,816 rounds of 33,712 drafted: k is 7, 3.53 tokens a round, rate 0.362, α 0.744."""
    accepted, rounds, drafted = 12208, 4816, 33712
    k, rate = drafted // rounds, accepted / drafted
    assert (k, round(rate, 3)) == (7, 0.362)
    assert round(1 + accepted / rounds, 2) == 3.53
    assert round(tau(Acceptance(rate=rate), k), 2) == 3.53
    assert round(exp(-float(decay_of_length(1 + rate * k, k, 1.0))), 3) == 0.744
    assert round(tau(Acceptance(alpha=rate), k), 2) == 1.57


def test_positions_counted_are_cumulative() -> None:
    """MTP at k = 8, counted by position: 4.50 tokens a round; read as conditional they would give 2.63."""
    positions = (0.762, 0.616, 0.513, 0.424, 0.364, 0.309, 0.272, 0.237)
    assert round(tau(Acceptance(cumulative=positions), 8), 2) == 4.50
    assert round(tau(Acceptance(conditional=positions), 8), 2) == 2.63
    assert isclose(tau(Acceptance(alpha=positions[0]), 8), 3.83, abs_tol=0.01)
    conditional = tuple(b / a for a, b in zip((1.0, *positions), positions, strict=False))
    assert isclose(tau(Acceptance(conditional=conditional), 8), 1 + sum(positions), rel_tol=1e-12)


def test_a_rate_means_nothing_without_its_k() -> None:
    assert isclose(tau(Acceptance(rate=0.40), 3), 2.2, rel_tol=1e-6)
    assert isclose(tau(Acceptance(rate=0.40), 5), 3.0, rel_tol=1e-6)


def test_measured_positions_are_kept_and_the_curve_goes_on_through_the_last() -> None:
    curve = given(Acceptance(cumulative=(0.9, 0.5)), 2, 1.2, MEDIAN)
    assert [curve.cumulative(i) for i in (1, 2)] == [0.9, 0.5]
    assert isclose(float(curve.cumulative(3)), 0.5 ** ((3 / 2) ** 1.2), rel_tol=1e-9)
    assert float(curve.cumulative(3)) < 0.5


@pytest.mark.parametrize(("method", "task", "k", "published"), [
    ("eagle3", "chat", 3, 2.46), ("eagle3", "code", 3, 3.00), ("eagle3", "math", 3, 2.72), ("eagle3", "qa", 3, 2.25),
    ("mtp", "chat", 3, 2.63), ("mtp", "math", 3, 3.10), ("ngram", "chat", 3, 1.3), ("ngram", "summarization", 3, 2.9),
])  # fmt: skip
def test_priors_are_what_was_published(method: str, task: str, k: int, published: float) -> None:
    assert isclose(float(tokens_per_round(prior(method, task, 1000.0, k, MEDIAN), k)), published, rel_tol=0.15)


@pytest.mark.parametrize("method", ["eagle3", "eagle", "mtp", "draft_model", "ngram"])
def test_long_contexts_never_accept_more(method: str) -> None:
    contexts = np.array([100.0, 4096.0, 8192.0, 16384.0, 100000.0])
    found = tokens_per_round(prior(method, "chat", contexts, 3, MEDIAN), 3)
    assert np.all(np.diff(found) <= 1e-12)
    assert found[0] == found[1]
    assert found[3] == found[4]


def test_an_unknown_task_is_wider_than_a_known_one() -> None:
    world = Draws(512, 0)
    known, unknown = (np.std(np.log(tokens_per_round(prior("eagle3", task, 1000.0, 3, world), 3) - 1)) for task in ("chat", None))
    assert unknown > known
    assert isclose(float(known), 0.41, rel_tol=0.15)


def test_an_uncertain_acceptance_is_drawn() -> None:
    found = tokens_per_round(given(Acceptance(alpha=Range(low=0.5, high=0.9)), 3, 1.0, Draws(64, 0)), 3)
    assert found.shape == (64,)
    assert 1.875 < found.min() < found.max() < 3.44
