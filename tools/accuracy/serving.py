"""Serving runs by how much is known of the deployment: nothing, some of its rows, four fifths of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from breakeven.adaptation import correction
from breakeven.calibration.adapt import QUANTILE, learn, rows_of
from breakeven.calibration.answer import SERVING, Answer, Estimate
from breakeven.calibration.leave_out import LeftOut
from breakeven.measured.run import Run
from breakeven.measured.twins import settings
from breakeven.spec.correction import TIMES, Rows, Scales, Time
from breakeven.stats import Array

KNOWN = (1, 3, 5, 10)
ROUNDS = 6
"""Times that the known rows of a group are drawn anew; a row is scored in every round in which it is not known."""
FOLDS = 5
SEED = 0
Learned = Mapping[Time, Scales]
Levels = dict[str, list[Answer]]


def fold(runs: Sequence[Run], left: LeftOut, number: int) -> Levels:
    """Some of the groups: how far deployments lie from a fit is learned from all the others."""
    groups = [places for places in by_group(runs).values() if known(runs, places).size]
    nothing_known = [places for places in by_group(runs).values() if not known(runs, places).size]
    others = [places for at, places in enumerate(groups) if at % FOLDS != number]
    learned = learn([known_rows(runs, left, places) for places in others])
    rng = np.random.default_rng([SEED, number])
    found: Levels = defaultdict(list)
    for places in (groups + nothing_known)[number::FOLDS]:
        for name, answered, given in draws(runs, places, rng):
            found[name] += answers(runs, left, learned, answered, given)
    return dict(found)


def by_group(runs: Sequence[Run]) -> dict[str, Array]:
    """Places of the runs of each group."""
    found: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        found.setdefault(run.group, []).append(place)
    return {group: np.array(places) for group, places in sorted(found.items())}


def known(runs: Sequence[Run], places: Array) -> Array:
    """Those that may be known: nothing speaks against them."""
    return np.array([place for place in places if runs[place].doubt is None], dtype=int)


def known_rows(runs: Sequence[Run], left: LeftOut, places: Array) -> Rows:
    """What a fit without the group missed of those of its rows that may be known."""
    own = known(runs, places)
    return rows_of([runs[place] for place in own], left.tpot[own], left.ttft[own])


def draws(runs: Sequence[Run], places: Array, rng: np.random.Generator) -> Iterator[tuple[str, Array, Array]]:
    """Level, places that are answered and places that are known, for one group; no run is answered whose very settings are known."""
    yield "left_out", places, np.zeros(0, dtype=int)
    own = known(runs, places)
    same = np.unique([repr(settings(runs[place])) for place in places], return_inverse=True)[1]
    which = dict(zip(places.tolist(), same.tolist(), strict=True))
    for count in KNOWN:
        for _ in range(ROUNDS):
            given = first_of_each(rng.permutation(own), which)[:count]
            yield f"rows_{count}", np.array([place for place in places if which[place] not in {which[each] for each in given}]), given
    folds = dict(zip(rng.permutation(same.max() + 1).tolist(), np.arange(same.max() + 1) % FOLDS, strict=True))
    for fold in range(FOLDS):
        held = [place for place in places if folds[which[place]] == fold]
        yield "calibrated", np.array(held, dtype=int), np.array([place for place in own if folds[which[place]] != fold], dtype=int)


def first_of_each(order: Array, which: Mapping[int, int]) -> Array:
    """Places in their order, one of each settings."""
    found = {which[place]: place for place in reversed(order.tolist())}
    kept = set(found.values())
    return np.array([place for place in order if place in kept], dtype=int)


def answers(runs: Sequence[Run], left: LeftOut, learned: Learned, answered: Array, given: Array) -> list[Answer]:
    """The rows that are not known, corrected by those that are."""
    if not len(answered):
        return []
    some = [runs[place] for place in answered]
    at = rows_of(some, left.tpot[answered], left.ttft[answered]).place
    rows = rows_of([runs[place] for place in given], left.tpot[given], left.ttft[given]) if len(given) else None
    missed = {"tpot": left.tpot[answered], "ttft": left.ttft[answered]}
    told = {time: correction(learned[time], rows, time, at) for time in TIMES}
    found = []
    for place, run in enumerate(some):
        tpot, ttft = (estimate(run, time, missed[time][place], told[time][0][place], told[time][1][place]) for time in TIMES)
        found.append(replace(blank(run), tpot=tpot, ttft=ttft))
    return found


def estimate(run: Run, time: Time, missed: float, mean: float, deviation: float) -> Estimate | None:
    """A time by the fit, its correction on it, and the interval that goes with it."""
    measured = run.tpot_s if time == "tpot" else run.ttft_s
    if measured is None or not np.isfinite(missed):
        return None
    predicted = measured * float(np.exp(mean - missed))
    spread = float(np.exp(QUANTILE * deviation))
    return Estimate(predicted=predicted, low=predicted / spread, high=predicted * spread, measured=measured)


def blank(run: Run) -> Answer:
    """An answer without its numbers."""
    d = run.deployment
    return Answer(
        id=run.id,
        where=run.where,
        lever=SERVING,
        hardware=d.hardware.device.name,
        engine=d.engine.name,
        model=d.model.name,
        group=run.group,
        doubt=run.doubt,
    )
