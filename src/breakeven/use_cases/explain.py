"""The arithmetic of a lever, line by line."""

from __future__ import annotations

from breakeven import advice as results
from breakeven.draws import Draws
from breakeven.explanation import explain as explain_lever
from breakeven.spec.deployment import Deployment
from breakeven.use_cases.arguments import DRAWS, THRESHOLD, checked_seed
from breakeven.use_cases.levers import lever_named, without_the_impossible
from breakeven.use_cases.question import chosen_arms, median_point, question_of


def explain(
    deployment: Deployment,
    lever: str,
    *,
    setting: str | None = None,
    objective: str | None = None,
    threshold: float = THRESHOLD,
    draws: int = DRAWS,
    seed: int = 0,
) -> results.Explanation:
    """The arithmetic of a lever in the median world; of the setting that :func:`advise` would choose unless one is named."""
    possible, _ = without_the_impossible(deployment)
    question, _ = question_of(possible, median_point(possible, threshold, draws), objective, threshold, Draws(draws, checked_seed(seed)))
    return explain_lever(lever_named(lever), possible, setting or chosen_arms(possible, lever, question).setting)
