"""What the levers of a deployment are asked: the metric that a user or the operating point names, and the arms that answer it."""

from __future__ import annotations

from collections.abc import Mapping

from breakeven.advice import Metric
from breakeven.advisor import Question, best_arms
from breakeven.draws import Draws
from breakeven.errors import InputError, UnknownNameError
from breakeven.evaluator import Point
from breakeven.evaluator import evaluate as evaluate_point
from breakeven.judge import Arms, default_objective, metric_of
from breakeven.messages import Message
from breakeven.spec.check import check_deployment, has_arrays
from breakeven.spec.deployment import Deployment
from breakeven.use_cases.arguments import check_arguments
from breakeven.use_cases.levers import lever_named

OBJECTIVES: Mapping[str, Metric] = {
    "latency": "e2e",
    "e2e": "e2e",
    "tpot": "tpot",
    "ttft": "ttft",
    "throughput": "throughput",
    "capacity": "capacity",
    "cost": "cost",
}
"""What a user may ask for, and the metric it is."""


def question_of(d: Deployment, middle: Point, objective: str | None, threshold: float, draws: Draws) -> tuple[Question, Message]:
    """What the levers are asked, and why: the objective named, else the default of the operating point."""
    default, reason = default_objective(d, middle)
    metric = default if objective is None else _asked(objective, d, middle)
    question = Question(metric=metric, threshold=threshold, draws=draws, priced=d.price is not None)
    return question, reason if objective is None else Message("judge.objective_asked", {})


def median_point(d: Deployment, threshold: float, draws: int) -> Point:
    """The median world of a deployment that has passed its checks. What is judged is one deployment: arrays are for ``evaluate``."""
    check_deployment(d)
    check_arguments(threshold, draws)
    if has_arrays(d):
        raise InputError("arrays_only_evaluate")
    return evaluate_point(d)


def chosen_arms(d: Deployment, lever: str, question: Question) -> Arms:
    """The deployment with and without a lever, at the setting that does best."""
    judged = best_arms(lever_named(lever), d, question)
    if judged is None:
        raise InputError("lever_not_supported", lever=lever)
    return judged[0]


def _asked(objective: str, d: Deployment, point: Point) -> Metric:
    """The metric of an objective the user names, which the workload has to define."""
    metric = _metric(objective)
    if metric == "cost" and d.price is None:
        raise InputError("cost_without_price")
    if metric_of(point, metric) is None:
        raise InputError("objective_undefined", objective=objective)
    return metric


def _metric(objective: str) -> Metric:
    if objective not in OBJECTIVES:
        raise UnknownNameError("objective", objective, OBJECTIVES)
    return OBJECTIVES[objective]
