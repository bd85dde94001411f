"""The use cases, one function each: load, evaluate, advise, explain, boundary."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from breakeven import advice as results
from breakeven import registry
from breakeven.advice import Advice, Axis, LeverAdvice, Metric
from breakeven.advisor import BOUNDARY_DRAWS, Question, advise_lever, best_arms
from breakeven.boundaries import boundary as boundary_of
from breakeven.checklist import checklist
from breakeven.draws import Draws
from breakeven.errors import InputError, UnknownNameError
from breakeven.evaluator import Point
from breakeven.evaluator import evaluate as evaluate_point
from breakeven.explanation import explain as explain_lever
from breakeven.judge import default_objective, metric_of
from breakeven.lattice import Choice, best
from breakeven.lever import Lever
from breakeven.messages import Message
from breakeven.rules import rules
from breakeven.spec.deployment import Deployment
from breakeven.spec.hardware import Hardware
from breakeven.spec.model import Model
from breakeven.standing import how_sure, operating_point
from breakeven.standing import warnings as warnings_of
from breakeven.statement import check, ledgers

THRESHOLD = 0.10
DRAWS = 512
LATTICE_DRAWS = 128
ORDER = ("weight_quant", "speculation", "prefix_cache", "kv_quant", "batching")
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


@cache
def levers() -> Mapping[str, Lever]:
    """The levers by name, in the order they are told: the files of ``levers/``."""
    found = registry.names("levers")
    ordered = [name for name in ORDER if name in found] + [name for name in found if name not in ORDER]
    return {name: registry.module("levers", name).LEVER for name in ordered}


def load(**sources: object) -> tuple[Deployment, tuple[Message, ...]]:
    """A deployment from a file, flags and a launch command, with what there is to say about them."""
    from breakeven.origin.resolve import resolve

    resolved = resolve(**sources)  # type: ignore[arg-type]
    return resolved.deployment, resolved.warnings


def model(name: str) -> Model:
    """A model by catalogue name, Hugging Face id, or path of a ``config.json`` or its folder."""
    from breakeven import catalog

    path = Path(name)
    if path.exists():
        from breakeven.origin.huggingface import load_config

        return load_config(path)
    return catalog.load("models", name)


def hardware(name: str, count: int = 1) -> Hardware:
    """Devices by catalogue name."""
    from breakeven import catalog

    return Hardware(device=catalog.load("hardware", name), count=count)


def evaluate(deployment: Deployment, *, draws: int = 0, seed: int = 0, exact: bool = True) -> Point:
    """One operating point in the median world, or ``draws`` of them; arrays in a field give arrays out.

    ``exact`` False takes the open loop's fast form (within a few per cent): for maps and for arrays of 100,000 points and more.
    """
    return evaluate_point(deployment, Draws(draws, seed), exact=exact)


def lever_named(name: str) -> Lever:
    """A lever by its name."""
    known = levers()
    if name not in known:
        raise UnknownNameError("lever", name, known)
    return known[name]


def _metric(objective: str) -> Metric:
    if objective not in OBJECTIVES:
        raise UnknownNameError("objective", objective, OBJECTIVES)
    return OBJECTIVES[objective]


def _question(d: Deployment, lever: str, threshold: float, draws: Draws) -> tuple[Lever, Question]:
    objective, _ = default_objective(d, evaluate_point(d))
    return lever_named(lever), Question(metric=objective, threshold=threshold, draws=draws)


def boundary(
    lever: str, deployment: Deployment, axis: Axis, *, threshold: float = THRESHOLD, draws: int = BOUNDARY_DRAWS, seed: int = 0
) -> results.Boundary:
    """Break-evens of a lever along an axis, and where it pays."""
    if axis not in results.AXES:
        raise UnknownNameError("axis", axis, results.AXES)
    chosen, question = _question(deployment, lever, threshold, Draws(draws, seed))
    judged = best_arms(chosen, deployment, question)
    if judged is None:
        raise InputError("lever_not_supported", lever=lever)
    found = boundary_of(judged[0], axis, question.metric, threshold, question.draws)
    if found is None:
        raise InputError("axis_without_meaning", axis=axis, lever=lever)
    return found


def explain(deployment: Deployment, lever: str, *, setting: str | None = None) -> results.Explanation:
    """The arithmetic of a lever, line by line, in the median world; of its best supported setting unless one is named."""
    chosen, question = _question(deployment, lever, THRESHOLD, Draws(LATTICE_DRAWS))
    if setting is None:
        found = best_arms(chosen, deployment, question)
        if found is None:
            raise InputError("lever_not_supported", lever=lever)
        setting = found[0].setting
    return explain_lever(chosen, deployment, setting)


def advise(
    deployment: Deployment,
    *,
    objective: str | None = None,
    threshold: float = THRESHOLD,
    draws: int = DRAWS,
    seed: int = 0,
    warnings: tuple[Message, ...] = (),
) -> Advice:
    """Where the deployment stands, which levers pay, by how much and up to where, and what to measure next."""
    _check_arguments(threshold, draws)
    world = Draws(draws, seed)
    point = evaluate_point(deployment, world)
    check(point, deployment)
    middle = evaluate_point(deployment)
    check(middle, deployment)
    default, reason = default_objective(deployment, middle)
    metric = _asked(objective, deployment, middle) if objective else default
    question = Question(metric=metric, threshold=threshold, draws=world, priced=deployment.price is not None)
    reason = Message("judge.objective_asked", {}) if objective else reason
    books = ledgers(middle, deployment)
    found: dict[str, LeverAdvice] = {}
    choices: list[Choice] = []
    for name, lever in levers().items():
        advised, choice = advise_lever(lever, deployment, question)
        found[name] = advised
        if choice is not None:
            choices.append(choice)
    middles = {name: value.metrics[metric].gain or 1.0 for name, value in found.items() if metric in value.metrics}
    return Advice(
        deployment=deployment,
        objective=objective or {"e2e": "latency"}.get(metric, metric),
        objective_reason=reason,
        threshold=threshold,
        operating_point=operating_point(point, middle, deployment),
        ledgers=books,
        levers=found,
        best=best(deployment, choices, metric, Draws(min(draws, LATTICE_DRAWS), seed)),
        checklist=checklist(deployment, books.bandwidth.kv_share),
        rules=rules(middle, middles),
        warnings=(*warnings, *warnings_of(deployment, middle)),
        how_sure=how_sure(deployment),
        draws=draws,
        seed=seed,
    )


def _check_arguments(threshold: float, draws: int) -> None:
    if not 0.0 <= threshold < 10.0:
        raise InputError("threshold_out_of_range", value=threshold)
    if not 16 <= draws <= 100_000:
        raise InputError("draws_out_of_range", value=draws)


def _asked(objective: str, d: Deployment, point: Point) -> Metric:
    """The metric of an objective the user names, which the workload has to define."""
    metric = _metric(objective)
    if metric == "cost" and d.price is None:
        raise InputError("cost_without_price")
    if metric_of(point, metric) is None:
        raise InputError("objective_undefined", objective=objective)
    return metric
