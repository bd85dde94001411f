"""Up to where a lever pays."""

from __future__ import annotations

from breakeven import advice as results
from breakeven.advice import Axis
from breakeven.boundaries import boundary as boundary_of
from breakeven.draws import Draws
from breakeven.errors import InputError, UnknownNameError
from breakeven.spec.deployment import Deployment
from breakeven.use_cases.arguments import DRAWS, THRESHOLD, checked_seed
from breakeven.use_cases.levers import without_the_impossible
from breakeven.use_cases.question import chosen_arms, median_point, question_of


def boundary(
    lever: str,
    deployment: Deployment,
    axis: Axis,
    *,
    objective: str | None = None,
    threshold: float = THRESHOLD,
    draws: int = DRAWS,
    seed: int = 0,
) -> results.Boundary:
    """Break-evens of a lever along an axis, and where it pays."""
    if axis not in results.AXES:
        raise UnknownNameError("axis", axis, results.AXES)
    possible, _ = without_the_impossible(deployment)
    question, _ = question_of(possible, median_point(possible, threshold, draws), objective, threshold, Draws(draws, checked_seed(seed)))
    found = boundary_of(chosen_arms(possible, lever, question), axis, question.metric, threshold, question.thin)
    if found is None:
        raise InputError("axis_without_meaning", axis=axis, lever=lever)
    return found
