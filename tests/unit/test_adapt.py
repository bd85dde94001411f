"""How corrections spread: scales that made groups are found again, and widened intervals hold nine tenths of what was left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from breakeven.adaptation import correction, covariance
from breakeven.calibration.adapt import CALIBRATED, LEVELS, _pooled_quantile, parts, scales, taken, widened
from breakeven.spec.correction import Place, Rows, Scales

TRUE = Scales(offset=0.3, format=0.02, version=0.02, trend=0.02, local=0.1, noise=0.05, lengths=(1.0, 1.0, 1.0, 1.0), widening={})


def groups(s: Scales = TRUE, *, count: int = 40, rows: int = 12, seed: int = 5, tails: float = 0.0) -> list[Rows]:
    """Groups whose misses are a draw of the process itself; ``tails`` is the share of groups that lie three times as far off."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        logs = np.log(np.stack([2.0 ** rng.integers(0, 8, rows), 2.0 ** rng.integers(7, 13, rows), np.full(rows, 256.0), np.ones(rows)], 1))
        place = Place(logs=logs, versions=("1",) * rows, formats=("",) * rows)
        whole = covariance(s, place, place) + s.noise**2 * np.eye(rows)
        missed = np.linalg.cholesky(whole) @ rng.standard_normal(rows) * (3.0 if rng.random() < tails else 1.0)
        found.append(Rows(place=place, residuals={"tpot": missed, "ttft": np.full(rows, np.nan)}))
    return found


@pytest.fixture(scope="module")
def learnt() -> Scales:
    return scales(groups(), "tpot")


def test_scales_are_roughly_found_again(learnt) -> None:
    whole = (learnt.offset**2 + learnt.format**2 + learnt.version**2) ** 0.5
    assert whole == pytest.approx(0.3, rel=0.3), "of one version and format the three are one"
    assert learnt.local == pytest.approx(0.1, rel=0.4)
    assert learnt.noise == pytest.approx(0.05, rel=0.25)


def test_the_same_groups_give_the_same_scales(learnt) -> None:
    assert scales(groups(), "tpot") == learnt


def test_rows_that_measured_nothing_of_it_change_nothing(learnt) -> None:
    silent = [replace(one, residuals={"tpot": np.full(12, np.nan), "ttft": one.residuals["tpot"]}) for one in groups(seed=9)]
    assert scales([*groups(), *silent], "tpot").noise == pytest.approx(learnt.noise, rel=0.05)


def covered(s: Scales, new: list[Rows], known: int) -> float:
    inside = []
    for rows in new:
        order = np.arange(len(rows.residuals["tpot"]))
        held, given = order[known:], order[:known]
        mean, deviation = correction(s, taken(rows, given) if known else None, "tpot", taken(rows, held).place)
        inside.append(np.mean(np.abs(rows.residuals["tpot"][held] - mean) <= 1.6449 * deviation))
    return float(np.mean(inside))


@pytest.mark.parametrize("tails", [0.0, 0.3])
@pytest.mark.parametrize("known", [0, 3])
def test_widened_intervals_hold_nine_tenths_of_groups_that_were_not_seen(tails, known) -> None:
    seen, new = groups(count=80, rows=8, tails=tails), groups(count=160, rows=8, tails=tails, seed=77)
    wide = widened(seen, TRUE, "tpot")
    assert covered(wide, new, known) == pytest.approx(0.9, abs=0.05)
    assert tails == 0.0 or covered(TRUE, new, known) < 0.87, "without the factor they would not"


def test_made_of_the_process_itself_nothing_has_to_be_widened() -> None:
    wide = widened(groups(count=120), TRUE, "tpot").widening
    assert set(wide) == {*LEVELS[:-1], CALIBRATED}, "ten known of twelve leave too few"
    assert all(0.85 < factor < 1.15 for factor in wide.values())


def test_a_row_is_answered_or_known_never_both() -> None:
    order = np.random.default_rng(1).permutation(23)
    for known in (*LEVELS, CALIBRATED):
        for held, given in parts(order, known):
            assert set(held) & set(given) == set()
            assert len(held) + len(given) == 23
    assert sorted(np.concatenate([held for held, _ in parts(order, CALIBRATED)])) == list(range(23))
    assert parts(order[:5], 3) == [] and parts(order[:9], CALIBRATED) == []


def test_rows_of_one_group_weigh_together_as_their_root() -> None:
    """100 errors of 3 in one group weigh 10, beside 90 groups of one error of 1."""
    errors = [np.full(100, 3.0), *[np.ones(1)] * 90]
    assert _pooled_quantile(errors, 0.85) == pytest.approx(1.0)
    assert _pooled_quantile(errors, 0.95) == pytest.approx(3.0)
