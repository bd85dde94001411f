"""Two arms and their draws become gains, intervals and verdicts. Everything a lever is judged by is here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from breakeven.advice import METRICS, Gain, Interval, Metric, Verdict
from breakeven.draws import Draws
from breakeven.evaluator import Noise, Point, evaluate
from breakeven.lever import Lever, Sigma, measured_prompt_share
from breakeven.messages import Message
from breakeven.spec.deployment import Deployment
from breakeven.statement import check, limited_by
from breakeven.stats import Array

SURE, UNLIKELY = 0.9, 0.1
NOTHING, ROUNDING = 0.005, 1e-9
LOW, HIGH = 0.05, 0.95
APART, SOME_HITS = 2.0, 0.01
"""Times by which a measured share may differ from the model's; hits below which it is all the same."""
TIMES = ("tpot", "ttft", "e2e", "cost")


@dataclass(frozen=True, kw_only=True)
class Arms:
    """A lever's two deployments with their draws: off, and on with the lever's model-form error in it."""

    lever: str
    setting: str
    off: Deployment
    on: Deployment
    sigma: Sigma
    point_off: Point
    point_on: Point
    fits_off: bool
    fits_on: bool
    unanswered: bool = False
    """Whether the load has none of what the lever works on, so that nothing is known of its gain."""
    contradicted: bool = False
    """Whether what it works on was measured to take another share of the time than the model has it take."""


def noise_of(lever: str, sigma: Sigma, draws: Draws) -> Noise:
    """A lever's model-form error as factors on its arm: the same draws wherever the lever is on."""
    z = draws.normal(f"sigma:{lever}")
    return Noise(step=np.exp(sigma.step * z), prefill=np.exp(sigma.prefill * z))


def combined(*noises: Noise) -> Noise:
    """Errors of several levers together: independent, so they multiply draw by draw."""
    step, prompt = np.ones(()), np.ones(())
    for noise in noises:
        step, prompt = step * noise.step, prompt * noise.prefill
    return Noise(step=step, prefill=prompt)


def arms(
    lever: Lever,
    off: Deployment,
    setting: str,
    draws: Draws,
    *,
    point_off: Point | None = None,
    middle_off: Point | None = None,
    exact: bool = True,
    in_force: bool = False,
) -> Arms:
    """Evaluate both arms of a lever; equal deployments are one arm, with no error between them.

    The arm without it need not be evaluated again where its point is at hand, over the draws and by the fast form in the median world.
    ``in_force`` says that what is asked about has the setting: then it is the arm with it that an observation is of.
    """
    on = lever.apply(off, setting)
    base = point_off or evaluate(off, draws, exact=exact)
    check(base, off)
    one = Arms(
        lever=lever.name,
        setting=setting,
        off=off,
        on=on,
        sigma=Sigma(),
        point_off=base,
        point_on=base,
        fits_off=base.fits,
        fits_on=base.fits,
        unanswered=lever.of_prompts and not base.demand.prompted,
    )
    if on is off:
        return one
    sigma = lever.sigma(on, middle_off or evaluate(off, exact=False), evaluate(on, exact=False))
    point = evaluate(on, draws, noise=noise_of(lever.name, sigma, draws), exact=exact)
    check(point, on)
    contradicted = lever.of_prompts and prompts_contradicted(on, point if in_force else base, point.demand.hit_rate)
    return replace(one, sigma=sigma, point_on=point, fits_on=point.fits, contradicted=contradicted)


def prompts_contradicted(d: Deployment, ran: Point, hit_rate: Array | float) -> bool:
    """Whether steps that read prompts were measured to take less than half of what prefill takes by the model, or over twice as much.

    ``ran`` is the arm that was observed: with the cache off all prompts were computed, whatever hits it would have. What else is in such a
    step, a decode step of its own, is let pass; so is all of it where no prompt token would come from the cache.
    """
    measured = measured_prompt_share(d)
    if measured is None or ran.request_rate is None or float(np.median(hit_rate)) < SOME_HITS:
        return False
    share = float(np.median(ran.prefill_share))
    beside = float(np.median(ran.request_rate)) / ran.replicas * float(np.median(ran.step_s))
    return not share / APART <= measured <= APART * (share + beside)


def metric_of(point: Point, metric: Metric) -> Array | None:
    """A metric's draws: seconds, tokens a second, sequences, device-seconds a token; None where the workload does not define it."""
    if metric == "tpot":
        return point.tpot_s
    if metric == "ttft":
        return point.ttft_s
    if metric == "e2e":
        return point.e2e_s
    if metric == "throughput":
        return point.throughput
    if metric == "capacity":
        return point.capacity
    return 1.0 / point.throughput


def ratio(off: Array, on: Array, *, time: bool) -> Array:
    """Gain, above 1 better: off/on of times, on/off of rates. Both unbounded, or both nothing, is no difference."""
    better, worse = (off, on) if time else (on, off)
    better, worse = np.broadcast_arrays(np.asarray(better, dtype=float), np.asarray(worse, dtype=float))
    same = (np.isinf(better) & np.isinf(worse)) | ((better == 0.0) & (worse == 0.0))
    none = np.isinf(worse) | (worse == 0.0)
    bare = np.where(np.isinf(worse), 0.0, np.inf)
    return np.where(same, 1.0, np.where(none, bare, better / np.where(none, 1.0, worse)))


def gain_draws(off: Point, on: Point, metric: Metric) -> Array | None:
    """Draws of a metric's gain. What does not fit serves nothing: an arm that fits is all against one that does not.

    Where both arms are saturated both queues grow without bound, the n-th request waiting n·(1/λ_max − 1/λ): the ratio of the waits
    is then at least that of λ_max, which is taken.
    """
    a, b = metric_of(off, metric), metric_of(on, metric)
    if a is None or b is None:
        return None
    if off is on:
        return np.ones(np.broadcast_shapes(a.shape, b.shape))
    gained = ratio(a, b, time=metric in TIMES)
    if metric in ("ttft", "e2e"):
        gained = np.where(np.asarray(off.saturated) & np.asarray(on.saturated), ratio(off.throughput, on.throughput, time=False), gained)
    fits_off, fits_on = off.fitting, on.fitting
    gained = np.where(fits_on & ~fits_off, np.inf, gained)
    return np.where(fits_off & ~fits_on, 0.0, np.where(~fits_off & ~fits_on, 1.0, gained))


def quantile(draws: Array, q: float) -> float:
    """A quantile that is a draw or between two finite ones (an infinite neighbour does not become a NaN)."""
    flat = np.sort(np.ravel(draws))
    place = q * (len(flat) - 1)
    low, high = flat[int(np.floor(place))], flat[int(np.ceil(place))]
    if not np.isfinite(low) or not np.isfinite(high):
        return float(low if place % 1 < 0.5 else high)
    return float(low + (high - low) * (place % 1))


def interval(draws: Array | float) -> Interval:
    """Median and 90 % interval; unbounded ends are None."""
    found = (quantile(np.asarray(draws), q) for q in (0.5, LOW, HIGH))
    median, low, high = (value if np.isfinite(value) else None for value in found)
    return Interval(median=median, low=low, high=high)


def verdict_of(gain: Array, threshold: float) -> Verdict:
    """First match: hurts P(gain < 1) ≥ 0.9, does not pay P(gain ≥ 1 + threshold) ≤ 0.1, pays P(gain ≥ 1 + threshold) ≥ 0.9, undecided.

    A loss below half a per cent is not called one, and no change at all never pays, however low the threshold.

    >>> [verdict_of(np.array(gain), 0.1) for gain in ([1.0], [0.9], [1.2], [1.0, 1.2])]
    ['does_not_pay', 'hurts', 'pays', 'undecided']
    """
    if float(np.mean(gain < 1.0 - NOTHING)) >= SURE:
        return "hurts"
    enough = float(np.mean((gain >= 1.0 + threshold) & (gain > 1.0 + ROUNDING)))
    if enough <= UNLIKELY:
        return "does_not_pay"
    return "pays" if enough >= SURE else "undecided"


def gain(off: Point, on: Point, metric: Metric, threshold: float) -> Gain | None:
    """A metric's gain with its interval and verdict; None where the workload does not define the metric."""
    draws = gain_draws(off, on, metric)
    if draws is None:
        return None
    found = interval(draws)
    note = Message("judge.unbounded_off", {}) if found.median is None else None
    if found.median == 0.0 and on.fits:
        note = Message("judge.unbounded_on", {})
    return Gain(gain=found.median, low=found.low, high=found.high, verdict=verdict_of(draws, threshold), note=note)


def gains(a: Arms, threshold: float, *, priced: bool) -> Mapping[Metric, Gain]:
    """All metrics of a lever's two arms; cost only with a price, and none where the load does not ask."""
    if a.unanswered and a.fits_on and a.fits_off:
        return {}
    wanted = [metric for metric in METRICS if metric != "cost" or priced]
    found = {metric: gain(a.point_off, a.point_on, metric, threshold) for metric in wanted}
    return {metric: value for metric, value in found.items() if value is not None}


def lever_verdict(a: Arms, metrics: Mapping[Metric, Gain], objective: Metric) -> Verdict:
    """The verdict for the objective; an arm that does not fit has its own word, and being the one that fits pays."""
    if not a.fits_on:
        return "does_not_fit"
    if not a.fits_off:
        return "pays"
    if a.unanswered or a.contradicted:
        return "undecided"
    return metrics[objective].verdict


def default_objective(d: Deployment, point: Point) -> tuple[Metric, Message]:
    """Mean request latency where demand limits or the batch is pinned; throughput in a closed loop, at the cap, or saturated."""
    limit = limited_by(point)
    if bool(np.median(point.saturated)):
        return "throughput", Message("judge.objective_saturated", {})
    if limit == "demand":
        return "e2e", Message("judge.objective_demand", {})
    if limit == "pinned":
        return ("e2e" if point.e2e_s is not None else "tpot"), Message("judge.objective_pinned", {})
    return "throughput", Message("judge.objective_full", {})
