"""Which levers pay on a deployment, by how much and up to where."""

from __future__ import annotations

from collections.abc import Collection

from breakeven.advice import Advice, LeverAdvice
from breakeven.advisor import Question, advise_lever
from breakeven.checklist import checklist
from breakeven.draws import Draws
from breakeven.evaluator import Point
from breakeven.evaluator import evaluate as evaluate_point
from breakeven.lattice import Choice, best
from breakeven.messages import Message
from breakeven.rules import rules
from breakeven.spec.check import check_deployment
from breakeven.spec.deployment import Deployment
from breakeven.standing import how_sure, impossible, operating_point, overload
from breakeven.standing import warnings as warnings_of
from breakeven.statement import check, ledgers
from breakeven.use_cases.arguments import DRAWS, THRESHOLD, checked_seed
from breakeven.use_cases.levers import levers, without_the_impossible
from breakeven.use_cases.question import median_point, question_of

LATTICE_DRAWS = 128


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
    check_deployment(deployment)
    possible, refused = without_the_impossible(deployment)
    middle = median_point(possible, threshold, draws)
    check(middle, possible)
    question, reason = question_of(possible, middle, objective, threshold, Draws(draws, checked_seed(seed)))
    metric = question.metric
    point = evaluate_point(possible, question.draws)
    check(point, possible)
    books = ledgers(middle, possible)
    found, choices = _advised(deployment, possible, refused, question, point)
    chosen = best(possible, choices, metric, threshold, Draws(min(draws, LATTICE_DRAWS), seed))
    middles = {name: value.metrics[metric].gain or 1.0 for name, value in found.items() if metric in value.metrics}
    return Advice(
        deployment=deployment,
        objective=objective or {"e2e": "latency"}.get(metric, metric),
        objective_reason=reason,
        threshold=threshold,
        operating_point=operating_point(point, middle, possible),
        ledgers=books,
        levers=found,
        best=chosen,
        checklist=checklist(deployment, books.bandwidth.kv_share),
        rules=rules(middle, possible, middles),
        warnings=(*warnings, *impossible(possible, books), *refused.values(), *warnings_of(possible, middle), *overload(chosen, middle)),
        how_sure=how_sure(deployment),
        draws=draws,
        seed=seed,
    )


def _advised(
    deployment: Deployment, possible: Deployment, refused: Collection[str], question: Question, point: Point
) -> tuple[dict[str, LeverAdvice], list[Choice]]:
    """Each lever's advice, and the settings that may go together; of one that cannot be there the deployment as it was given is asked."""
    found: dict[str, LeverAdvice] = {}
    choices: list[Choice] = []
    for name, lever in levers().items():
        asked, here = (deployment, None) if name in refused else (possible, point)
        found[name], choice = advise_lever(lever, asked, question, here)
        if choice is not None:
            choices.append(choice)
    return found, choices
