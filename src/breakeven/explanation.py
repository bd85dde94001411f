"""The arithmetic of a lever: both arms line by line, and the gains that come of them."""

from __future__ import annotations

from math import isfinite

from breakeven.advice import METRICS, Explanation, Line, Metric
from breakeven.arithmetic import line, middle, number, span
from breakeven.evaluator import Point, evaluate
from breakeven.explanations import memory, point, prompt, step, traffic
from breakeven.judge import TIMES, gain_draws, metric_of
from breakeven.lever import Lever
from breakeven.spec.deployment import Deployment

NAMES: dict[Metric, str] = {"tpot": "TPOT", "ttft": "TTFT", "e2e": "latency", "throughput": "throughput", "capacity": "capacity"}


def arm_lines(p: Point, d: Deployment) -> tuple[Line, ...]:
    """One arm, from its bytes to its seconds."""
    return (
        *memory.lines(p, d),
        *point.batch_lines(p, d),
        *traffic.lines(p, d),
        *step.lines(p, d),
        *prompt.lines(p, d),
        *point.lines(p, d),
    )


def result_lines(off: Point, on: Point) -> tuple[Line, ...]:
    """The gains, at the median."""
    found = []
    for metric in METRICS:
        gained, a, b = gain_draws(off, on, metric), metric_of(off, metric), metric_of(on, metric)
        if metric not in NAMES or gained is None or a is None or b is None:
            continue
        name, write = NAMES[metric], span if metric in TIMES else number
        formula = f"{name} off / on" if metric in TIMES else f"{name} on / off"
        over, under = (a, b) if metric in TIMES else (b, a)
        plain = isfinite(middle(over)) and isfinite(middle(under)) and middle(under) > 0 and off.fits == on.fits
        numbers = f"{write(over)}/{write(under)}" if plain else ""
        found.append(line(f"gain {name}", f"levers.gain_{metric}", formula, numbers, gained, "gain"))
    return tuple(found)


def explain(lever: Lever, d: Deployment, setting: str) -> Explanation:
    """A lever's arithmetic in the median world: off, on, and what comes of it."""
    off = lever.remove(d) if lever.setting_on(d) is not None else d
    on = lever.apply(off, setting)
    a, b = evaluate(off), evaluate(on)
    return Explanation(lever=lever.name, setting=setting, off=arm_lines(a, off), on=arm_lines(b, on), result=result_lines(a, b))
