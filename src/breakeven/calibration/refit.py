"""Fits of a user's own measurements, anew for each part of them: runs determine the step, pairs the kernels and rounds on top of it."""

from __future__ import annotations

from collections.abc import Callable

from breakeven.calibration.evidence import Values
from breakeven.calibration.leave_out import fit_runs
from breakeven.calibration.lever_fit import fit_pairs, values_at, without
from breakeven.measured.files import Measured
from breakeven.measured.pair import Pair
from breakeven.measured.run import Run
from breakeven.spec.calibration import Calibration


def _shipped(pair: Pair) -> Values:
    """Pairs are fitted on the step as it is shipped: what a held group of runs says of it must not reach them."""
    return {}


def _loops(measured: Measured) -> list[Run]:
    """Runs of a load: a step that is pinned has no first token, and is only predicted here."""
    return [run for run in measured.runs if run.deployment.workload.concurrency is not None]


def refit(measured: Measured) -> Callable[[Measured], Calibration]:
    """A fit to a part of some measurements, which begins where the fit to all of them ended; rows in doubt are in neither.

    Of the part only the kind of rows is fitted from which some are missing: a held group is runs or pairs. Of nothing it is as shipped.
    """
    sound = measured.sound
    runs = fit_runs(_loops(sound)) if _loops(sound) else None
    pairs = fit_pairs(sound.pairs, _shipped) if sound.pairs else None

    def of(part: Measured) -> Calibration:
        values: dict[str, object] = {}
        kept = {row.where for row in part.sound.pairs}
        held = [i for i, pair in enumerate(sound.pairs) if pair.where not in kept]
        if runs is not None and _loops(part.sound) and not held:
            values |= fit_runs(_loops(part.sound), runs.values, runs.parameters).values
        if pairs is not None and held and kept:
            values |= values_at(pairs.parameters, without(pairs, held))
        return Calibration(values=values)  # type: ignore[arg-type]

    return of
