"""What to measure next: the one quantity whose knowledge would settle most, by value of information."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from breakeven import catalog
from breakeven.advice import MeasureNext, Metric, Verdict
from breakeven.draws import Draws
from breakeven.efficiencies import lever_sigma, table
from breakeven.evaluator import Noise, acceptance_known, evaluate
from breakeven.judge import HIGH, LOW, Arms, gain_draws, quantile, verdict_of
from breakeven.ledger.draft import method_of
from breakeven.lever import Sigma, called
from breakeven.messages import Message
from breakeven.stats import Array, is_uncertain

BINS = 16
OUTCOMES = (-1.282, -0.524, 0.0, 0.524, 1.282)
"""Standard normal quantiles at 10, 30, 50, 70 and 90 %: how a lever's own error may turn out."""
CHEAPER = 0.05
"""A dearer measurement has to leave this much less undecided than a cheaper one told before it."""
OF_THE_PROMPTS = ("speculation", "prefix_cache")
"""Levers whose gain hangs on what the prompts say: random ones would measure another traffic."""
FEWEST_PROMPTS, ROUNDS = 64, 8
"""A run has this many prompts, or this many times its concurrency: with fewer the batch is never reached."""
USUAL_TOKENS = 256
SMALLEST, LARGEST = 0.05, 20.0
"""Gains beyond these are said as these: an arm that is saturated in some draws has no finite interval."""


@dataclass(frozen=True, kw_only=True)
class Unknown:
    """A quantity that could be measured: the draws that would then be known, and the lever's own error that remains."""

    quantity: str
    draws: tuple[Array, ...]
    sentence: Message
    command: str
    remaining_sigma: float = 0.0
    knows_sigma: bool = False
    """Whether the lever itself is measured: then of its error only ``remaining_sigma`` is left."""


def unknowns(a: Arms, draws: Draws) -> tuple[Unknown, ...]:
    """What is not known about a lever here, each with the command that finds it out."""
    offset = np.asarray(draws.normal("offset:tpot"))
    run = Unknown(
        quantity="one_run",
        draws=(offset,),
        knows_sigma=True,
        remaining_sigma=_sigma_here(a),
        sentence=Message("judge.measure_run", {"setting": called(a.lever, a.setting)}),
        command=command(a, "bench_prompts" if a.lever in OF_THE_PROMPTS else "bench"),
    )
    points = Unknown(quantity="two_points", draws=(offset,), sentence=Message("judge.measure_two_points", {}), command=command(a, "bench"))
    return (*_own(a, draws), *([run] if a.sigma != Sigma() else []), points, *_lengths(a, draws))


def _own(a: Arms, draws: Draws) -> tuple[Unknown, ...]:
    """What belongs to one lever only."""
    d = a.on
    spec, hits, kernel = d.engine.speculative, d.workload.prefix_hit_rate, a.point_on.shard.kernels["mlp"]
    if a.lever == "speculation" and spec is not None and not acceptance_known(d):
        z = np.asarray(draws.normal(f"acceptance:{method_of(spec)}"))
        return (
            Unknown(
                quantity="acceptance_length",
                draws=(z,),
                sentence=Message("judge.measure_acceptance", {}),
                command=command(a, "acceptance"),
            ),
            Unknown(
                quantity="one_round",
                draws=(z,),
                knows_sigma=True,
                remaining_sigma=_sigma_here(a),
                sentence=Message("judge.measure_round", {"setting": called(a.lever, a.setting)}),
                command=command(a, "bench_prompts"),
            ),
        )
    if a.lever == "prefix_cache" and hits is not None and is_uncertain(hits) and "hits" in catalog.commands(d.engine.name):
        known = np.asarray(draws.value("prefix_hit_rate", hits))
        return (
            Unknown(
                quantity="prefix_hit_rate",
                draws=(known,),
                sentence=Message("judge.measure_hits", {}),
                command=command(a, "hits"),
            ),
        )
    if a.lever == "weight_quant" and kernel.delta_decode_range is not None and "kernel" in catalog.commands(d.engine.name):
        delta = np.asarray(kernel.delta(d.hardware.device.family, draws))
        return (Unknown(quantity="kernel", draws=(delta,), sentence=Message("judge.measure_kernel", {}), command=command(a, "kernel")),)
    return ()


def _lengths(a: Arms, draws: Draws) -> tuple[Unknown, ...]:
    uncertain = {
        name: value
        for name in ("input_tokens", "output_tokens", "request_rate", "concurrency")
        if is_uncertain(value := getattr(a.on.workload, name))
    }
    return tuple(
        Unknown(
            quantity=name,
            draws=(np.asarray(draws.value(name, value)),),
            sentence=Message("judge.measure_workload", {"name": name}),
            command=command(a, "tokens" if name.endswith("tokens") else "requests"),
        )
        for name, value in uncertain.items()
    )


def _prompts(a: Arms) -> MeasureNext:
    """Lengths, as the engine counts them: without them the load has no prompts."""
    nothing = (SMALLEST, LARGEST)
    settles: tuple[Verdict, ...] = ("pays", "does_not_pay")
    return MeasureNext(
        quantity="lengths", sentence=Message("judge.measure_lengths"), command=command(a, "tokens"), settles=settles, interval_after=nothing
    )


def command(a: Arms, name: str) -> str:
    """What to type on the engine of the deployment, at its lengths and its concurrency; empty on an engine we have no commands for."""
    model, point = a.on.model, a.point_off if a.fits_off else a.point_on
    prompt, output = (_whole(tokens, USUAL_TOKENS) for tokens in (point.demand.input_tokens, point.demand.output_tokens))
    if point.demand.input_tokens is None:
        prompt = _whole(point.demand.context_tokens, USUAL_TOKENS)
    concurrency = _whole(point.batch, 1)
    return (
        catalog.commands(a.on.engine.name)
        .get(name, "")
        .format(
            model=model.hf_ids[0] if model.hf_ids else model.name,
            input=prompt,
            output=output,
            concurrency=concurrency,
            prompts=max(FEWEST_PROMPTS, ROUNDS * concurrency),
            room=concurrency * (prompt + output),
        )
    )


def _whole(value: Array | float | None, otherwise: int) -> int:
    return otherwise if value is None else max(1, round(float(np.median(value))))


def _sigma_here(a: Arms) -> float:
    rows = [name for name, row in table("sigma")[a.lever].items() if isinstance(row, dict) and "here" in row]
    return max(lever_sigma(a.lever, row, "here") for row in rows)


def _parts(known: tuple[Array, ...], size: int) -> list[NDArray[np.intp]]:
    """Draws alike in what is known: equal bins of the first quantity, each cut into equal bins of the next."""
    parts: list[NDArray[np.intp]] = [np.arange(size)]
    for values in known:
        bins = round(BINS ** (1 / len(known)))
        parts = [cut for part in parts for cut in np.array_split(part[np.argsort(values[part], kind="stable")], bins)]
    return parts


def _runs(a: Arms, metric: Metric, draws: Draws) -> Callable[[float], list[Array]]:
    """Gains once the lever was run, by what is then left of its own error: one array for each way the run may come out, found once."""

    @cache
    def after(remaining: float) -> list[Array]:
        off = evaluate(a.off, draws, exact=False)
        left = np.asarray(draws.normal("left"))
        found = []
        for z in OUTCOMES:
            noise = Noise(
                step=np.exp(a.sigma.step * z + min(remaining, a.sigma.step) * left),
                prefill=np.exp(a.sigma.prefill * z + min(remaining, a.sigma.prefill) * left),
            )
            known = gain_draws(off, evaluate(a.on, draws, noise=noise, exact=False), metric)
            found += [known] if known is not None else []
        return found

    return after


def _outcomes(a: Arms, metric: Metric, unknown: Unknown, after: Callable[[float], list[Array]]) -> list[Array]:
    """Gains as they would be known after the measurement, one array for each way it could come out, all as likely."""
    gain = gain_draws(a.point_off, a.point_on, metric)
    if gain is None:
        return []
    known = after(unknown.remaining_sigma) if unknown.knows_sigma else [gain]
    return [one[part] for one in known for part in _parts(unknown.draws, len(one))]


def learned(
    a: Arms, metric: Metric, threshold: float, unknown: Unknown, after: Callable[[float], list[Array]]
) -> tuple[float, tuple[float, float], tuple[Verdict, ...]]:
    """After measuring: the share of outcomes with a firm verdict, the usual interval then, and the verdicts it could come to."""
    outcomes = _outcomes(a, metric, unknown, after)
    if not outcomes:
        return 0.0, (1.0, 1.0), ()
    firm = [verdict_of(part, threshold) for part in outcomes]
    ends = np.array([[np.clip(quantile(part, q), SMALLEST, LARGEST) for q in (LOW, 0.5, HIGH)] for part in outcomes])
    middle = ends[np.argsort(ends[:, 1], kind="stable")[len(ends) // 2]]
    settled = tuple(dict.fromkeys(v for v in firm if v != "undecided"))
    return sum(v != "undecided" for v in firm) / len(firm), (float(middle[0]), float(middle[2])), settled


def measure_next(a: Arms, metric: Metric, threshold: float, draws: Draws) -> MeasureNext | None:
    """The unknown that leaves the fewest outcomes undecided; a cheaper one, told first, wins unless a later settles clearly more."""
    if a.unanswered:
        return _prompts(a)
    best: MeasureNext | None = None
    decided_by_best = -1.0
    runs = _runs(a, metric, draws)
    for unknown in unknowns(a, draws):
        decided, after, settles = learned(a, metric, threshold, unknown, runs)
        if best is None or decided > decided_by_best + CHEAPER:
            decided_by_best = decided
            best = MeasureNext(
                quantity=unknown.quantity, sentence=unknown.sentence, command=unknown.command, settles=settles, interval_after=after
            )
    return best
