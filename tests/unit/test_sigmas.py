"""A lever's own error: the sigma that is found covers nine tenths of what it was made of, and a held group says nothing of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from breakeven.calibration.lever_errors import source_of
from breakeven.calibration.sigmas import LEAST, MOST, SHARE, Miss, covering, factor, left_out_sigmas, sigma_for
from breakeven.stats import Q95


def misses(sigma: float, *, groups: int = 40, rows: int = 5, drawn: float = 0.0, row: str = "fp8", seed: int = 4) -> list[Miss]:
    """Normal errors of a known sigma beside draws of a known spread."""
    rng = np.random.default_rng(seed)
    wide = float(np.hypot(sigma, drawn))
    return [
        Miss(lever="weight_quant", row=row, group=f"{row} {group}", error=wide * float(error), drawn=drawn, stated=0.2)
        for group in range(groups)
        for error in rng.standard_normal(rows)
    ]


def covered(found: list[Miss], sigma: float) -> float:
    return float(np.mean([abs(one.error) <= Q95 * np.hypot(one.drawn, sigma) for one in found]))


@pytest.mark.parametrize("sigma", [0.05, 0.2, 0.6])
@pytest.mark.parametrize("drawn", [0.0, 0.1])
def test_the_sigma_of_made_errors_is_found_and_covers_nine_tenths_of_new_ones(sigma: float, drawn: float) -> None:
    found = covering(misses(sigma, drawn=drawn, groups=200))
    assert found == pytest.approx(sigma, rel=0.2)
    assert covered(misses(sigma, drawn=drawn, groups=400, seed=9), found) == pytest.approx(SHARE, abs=0.03)


def test_it_is_the_least_that_covers() -> None:
    found = misses(0.2)
    sigma = covering(found)
    assert covered(found, sigma * 1.0001) >= SHARE > covered(found, sigma * 0.97)


def test_where_the_draws_alone_cover_the_least_is_left() -> None:
    assert covering([replace(one, drawn=10.0) for one in misses(0.2)]) == LEAST
    assert covering([replace(one, error=100.0) for one in misses(0.2)]) == MOST


def test_many_rows_of_one_group_weigh_less_than_as_many_groups() -> None:
    """100 rows of one group weigh as ten, beside forty groups of one row."""
    far = [replace(one, group="far", error=1.0) for one in misses(0.2, groups=20)]
    spread = [replace(one, group=f"far {i}") for i, one in enumerate(far)]
    near = misses(0.05, groups=300, rows=1)
    assert covering([*near, *far]) < covering([*near, *spread])


def test_the_factor_on_what_is_stated() -> None:
    found = misses(0.4, groups=200)
    assert factor(found) == pytest.approx(2.0, rel=0.2)
    assert factor([replace(one, stated=0.4) for one in found]) == pytest.approx(factor(found) / 2, rel=1e-6)


def test_a_held_groups_own_errors_do_not_move_its_sigma() -> None:
    found = misses(0.2, groups=8)
    held = found[0].group
    moved = [replace(one, error=one.error * 50) if one.group == held else one for one in found]
    own = [i for i, one in enumerate(found) if one.group == held]
    others = [i for i in range(len(found)) if i not in own]
    before, after = left_out_sigmas(found), left_out_sigmas(moved)
    assert after[own].tobytes() == before[own].tobytes()
    assert (after[others] > before[others]).all()


def test_a_kind_of_few_groups_takes_what_the_lever_needs_together() -> None:
    known, rare = misses(0.4, groups=60), misses(0.01, groups=2, row="nvfp4")
    assert sigma_for(rare[0], [*known, *rare]) == pytest.approx(0.2 * factor([*known, *rare]))
    assert sigma_for(rare[0], rare) == rare[0].stated
    third = misses(0.01, groups=3, row="nvfp4")
    assert sigma_for(third[0], [*known, *third]) == covering(third) < 0.05


def test_another_lever_says_nothing() -> None:
    other = [replace(one, lever="kv_quant") for one in misses(1.0)]
    assert sigma_for(misses(0.2)[0], other) == 0.2


def test_rows_of_one_source_are_told_by_the_head_of_their_group() -> None:
    pair = type("Named", (), {"group": "vendor blog::llama::h100"})()
    assert source_of(pair) == "vendor blog"
