"""Where a deployment stands: one operating point, in the median world or in many."""

from __future__ import annotations

from breakeven.draws import Draws
from breakeven.errors import InputError
from breakeven.evaluator import Point
from breakeven.evaluator import evaluate as evaluate_point
from breakeven.spec.check import check_deployment, check_draw_axis
from breakeven.spec.deployment import Deployment
from breakeven.use_cases.arguments import checked_seed


def evaluate(deployment: Deployment, *, draws: int = 0, seed: int = 0, exact: bool = True) -> Point:
    """One operating point in the median world, or ``draws`` of them; arrays in a field give arrays out.

    ``exact`` False takes the open loop's fast form (within a few per cent): for maps and for arrays of 100,000 points and more.
    """
    check_deployment(deployment)
    if draws < 0:
        raise InputError("draws_out_of_range", value=draws)
    check_draw_axis(deployment, draws)
    return evaluate_point(deployment, Draws(draws, checked_seed(seed)), exact=exact)
