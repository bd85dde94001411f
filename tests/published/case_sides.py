"""The stated points on both sides of a reported boundary: where the gain has to lie on which side of 1.

Each reader knows one way in which people write a boundary, not a row. A side is a deployment moved to a stated point and what is said
of it there: ``pays``, ``hurts``, or weaker: ``gains`` (above 1), ``no_gain`` (does not pay, or a loss).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from case_arms import Arm, NotEncodable
from case_words import DEVICES, Row, all_named, text_of, tokens

from breakeven.advice import Metric
from breakeven.axes import move
from breakeven.evaluator import evaluate
from breakeven.spec.deployment import Deployment
from breakeven.spec.hardware import with_memory
from breakeven.spec.workload import Acceptance, Workload
from breakeven.stats import Range

SHORT_CONTEXT = 1024.0
NEAR_THE_TOP = 0.95
LOW_RATE = 1.0
DECREASES, LOSS, LITTLE = 1.05, 0.98, 1.0
Move = Callable[[Deployment], Deployment]


def stay(d: Deployment) -> Deployment:
    return d


@dataclass(frozen=True, kw_only=True)
class Side:
    """A point of a boundary."""

    label: str
    want: str
    moved: Move = stay
    metric: Metric | None = None
    device: str | None = None
    setting: str | None = None


def want_of(gain: float) -> str:
    """A measured gain in the words of the mapping."""
    return "pays" if gain >= DECREASES else "hurts" if gain < LOSS else "no_gain"


def sides_of(row: Row) -> list[Side]:
    """The points of both sides, as the first reader that knows the row's way of writing has them."""
    for reader in READERS:
        found = reader(row)
        if found:
            return found
    raise NotEncodable("no point on either side of the boundary is stated")


def arms_at(row: Row, arms: list[Arm]) -> list[Arm]:
    """The arms of a boundary at the points of its sides, on the devices that can run all of them: the report ran."""
    sides = sides_of(row)
    each = [[at for side in sides for at in _at(arm, side)] for arm in arms]
    found = [at for points in each if all(evaluate(at.off).fits for at in points) for at in points]
    if not found:
        raise NotEncodable("it fits on none of the devices, at the formats and lengths that are stated")
    return found


def _at(arm: Arm, side: Side) -> Iterator[Arm]:
    if side.device and side.device != arm.off.hardware.device.name:
        return
    label = f"{arm.label} {side.label}"
    setting = arm.setting if side.setting is None else side.setting
    yield replace(arm, label=label, want=side.want, metric=side.metric, off=side.moved(arm.off), setting=setting)


def by_device(row: Row) -> list[Side]:
    """``pays on M1, does not pay on A100``"""
    found = re.match(r"pays on ([\w ]+), does not pay on ([\w ]+)", str(row["verdict"]))
    if not found:
        return []
    names = [(all_named(DEVICES, found[1])[0], "pays"), (all_named(DEVICES, found[2])[0], "no_gain")]
    return [Side(label="", want=want, device=device) for device, want in names]


def by_setting(row: Row) -> list[Side]:
    """``FP8 pays (1.69x), W4A8 hurts (0.91x)``"""
    found = re.findall(r"(\w+) (pays|hurts) \([\d.]+x\)", str(row["verdict"]))
    return [Side(label="", want=want, setting=setting.lower()) for setting, want in found] if len(found) > 1 else []


def by_metric(row: Row) -> list[Side]:
    """``decode +21%, prefill -12%``; ``TPOT 7x, TTFT lower``"""
    text = str(dict(row["observed"])["on"])  # type: ignore[call-overload]
    two = re.search(r"decode \+(\d+)%, prefill -(\d+)%", text)
    if two:
        return [
            Side(label="decode", want=want_of(1 + float(two[1]) / 100), metric="tpot"),
            Side(label="prefill", want=want_of(1 / (1 + float(two[2]) / 100)), metric="ttft"),
        ]
    if re.search(r"TPOT \d+x, TTFT lower", text):
        return [Side(label="TPOT", want="hurts", metric="tpot"), Side(label="TTFT", want="gains", metric="ttft")]
    return []


def by_rate(row: Row) -> list[Side]:
    """``QPS1: 1.5x …; high QPS: 1/1.4``; high is near the most that plain decoding serves."""
    if not re.search(r"QPS1: .*; high QPS: 1/", text_of(row, "observed")):
        return []

    def high(d: Deployment) -> Deployment:
        top = float(np.median(np.asarray(evaluate(move(d, "request_rate", 0.01)).max_request_rate)))
        return move(d, "request_rate", NEAR_THE_TOP * top)

    return [
        Side(label="QPS 1", want="pays", moved=lambda d: move(d, "request_rate", LOW_RATE), metric="e2e"),
        Side(label="high QPS", want="hurts", moved=high, metric="e2e"),
    ]


def by_context(row: Row) -> list[Side]:
    """``ctx 400: 2139.8 (0.79x); … longer contexts pass 1``: the batch is pinned, its prefix is one and shared."""
    text = str(dict(row["observed"])["on"])  # type: ignore[call-overload]
    points = re.findall(r"ctx (\d+): [\d.]+ \(([\d.]+)x\)", text)
    sides = [Side(label=f"ctx {c}", want=want_of(float(gain)), moved=pinned_at(float(c)), metric="tpot") for c, gain in points]
    if sides and "longer contexts pass 1" in text:
        sides.append(Side(label="longest", want="gains", moved=longest, metric="tpot"))
    shared = "1 prefix" in str(row["workload"])
    return [replace(side, moved=held_once(side.moved)) for side in sides] if shared else sides


def held_once(moved: Move) -> Move:
    """A prefix that all sequences share is held once, where the pool counts it for each: memory is no question there."""

    def with_room(d: Deployment) -> Deployment:
        there = moved(d)
        return replace(there, hardware=replace(there.hardware, device=with_memory(there.hardware.device, 1e13)))

    return with_room


def pinned(d: Deployment, batch: float, context: float) -> Deployment:
    w = d.workload
    return replace(d, workload=Workload(batch=batch, context_tokens=context, acceptance=w.acceptance, task=w.task))


def pinned_at(context: float) -> Move:
    return lambda d: pinned(d, clients(d), context)


def clients(d: Deployment) -> float:
    return float(d.workload.concurrency) if isinstance(d.workload.concurrency, float) else 1.0


def longest(d: Deployment) -> Deployment:
    """The model length that is set."""
    return pinned(d, clients(d), float(d.engine.max_model_len or d.model.max_context or 8192))


def by_acceptance(row: Row) -> list[Side]:
    """``acceptance at position 1 falls 93.5% -> 72.1%`` from short to long, within the native length"""
    falls = re.search(r"acceptance at position 1 falls ([\d.]+)% -> ([\d.]+)%", text_of(row, "observed"))
    if not falls:
        return []

    def at(accepted: str, context: Callable[[Deployment], float]) -> Move:
        given = Acceptance(cumulative=(float(accepted) / 100,), method="mtp")
        return lambda d: pinned(replace(d, workload=replace(d.workload, acceptance=given)), 1.0, context(d))

    return [
        Side(label="short", want="pays", moved=at(falls[1], lambda d: SHORT_CONTEXT), metric="tpot"),
        Side(label="long", want="hurts", moved=at(falls[2], lambda d: float(d.model.max_context or 131_072)), metric="tpot"),
    ]


def by_cached_tokens(row: Row) -> list[Side]:
    """``pays above ~7k tokens of context``: the ends of the measured range, and a load that is stated beside it"""
    text = text_of(row, "workload")
    ends = re.search(r"(\d+)\.\.(\d+k?) in", text)
    if not re.search(r"pays above ~?\d+k tokens", str(row["verdict"])) or not ends:
        return []
    low, high = tokens(ends[1]), tokens(ends[2])
    sides = [
        Side(label=f"{low:g} cached", want="no_gain", moved=lambda d: pinned(d, 1.0, low), metric="tpot"),
        Side(label=f"{high:g} cached", want="pays", moved=lambda d: pinned(d, 1.0, high), metric="tpot"),
    ]
    loads = re.search(r"c=(\d+) (\d+k)/(\d+k)", text)
    gain = re.search(r"output tok/s \+([\d.]+)%", text_of(row, "observed"))
    if loads and gain:
        served = Workload(concurrency=float(loads[1]), input_tokens=tokens(loads[2]), output_tokens=tokens(loads[3]))
        want = want_of(1 + float(gain[1]) / 100)
        sides.append(Side(label=f"c={loads[1]}", want=want, moved=lambda d: replace(d, workload=served), metric="throughput"))
    return sides


def by_batch(row: Row) -> list[Side]:
    """``slightly better <=32; 0.5x at 256`` · ``<1 at batch >=8`` · ``+14.7% at batch 1; none at batch >1``"""
    text = str(dict(row["observed"])["on"])  # type: ignore[call-overload]
    found: list[tuple[float, str]] = []
    better = re.search(r"slightly better <=(\d+); ([\d.]+)x at (\d+)", text)
    if better:
        found = [(1.0, "gains"), (float(better[1]), "gains"), (float(better[3]), want_of(float(better[2])))]
    below = re.search(r"<1 at batch >=(\d+)", text)
    if below:
        found = [(1.0, "gains"), (float(below[1]), "hurts")]
    alone = re.search(r"\+([\d.]+)% at batch 1; none at batch >1", text)
    if alone:
        found = [(1.0, want_of(1 + float(alone[1]) / 100)), (2.0, "no_gain"), (0.0, "no_gain")]
    several = re.search(r"1 stream (\d+)x; parallel <1", text)
    if several:
        found = [(1.0, want_of(float(several[1]))), (0.0, "hurts")]
    return [Side(label=f"batch {b:g}" if b else "at the cap", want=want, moved=_batch(b), metric="tpot") for b, want in found]


def _batch(batch: float) -> Move:
    """A pinned batch at the row's lengths, the shortest where they are open and no longer ones fit; 0 is the cap on sequences."""

    def pin(d: Deployment) -> Deployment:
        there = move(d, "batch", batch or float(d.engine.max_num_seqs))
        return there if evaluate(there).fits else shortest(there)

    return pin


def shortest(d: Deployment) -> Deployment:
    """The low ends of lengths that are open."""
    w = d.workload
    ends = {name: value.low for name in ("input_tokens", "output_tokens") if isinstance(value := getattr(w, name), Range)}
    return replace(d, workload=replace(w, **ends))


READERS = (by_device, by_setting, by_metric, by_rate, by_context, by_acceptance, by_cached_tokens, by_batch)
