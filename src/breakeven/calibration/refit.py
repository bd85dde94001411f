"""Everything that files of measurements say, in one fit: what is held against a group that was left out of it."""

from __future__ import annotations

from collections.abc import Callable

from breakeven.calibration.evidence import Values, of_pairs, of_runs
from breakeven.calibration.fit import fit
from breakeven.calibration.parameters import neutral
from breakeven.measured.files import Measured
from breakeven.spec.calibration import Calibration


def refit(measured: Measured, start: Values | None = None) -> Calibration:
    """A fit to runs and pairs together; to nothing it is what is shipped."""
    evidence = [of_runs(measured.runs)] if measured.runs else []
    evidence += [of_pairs(measured.pairs)] if measured.pairs else []
    if not evidence:
        return Calibration(values={})
    engines = [run.deployment.engine.name for run in measured.runs] + [pair.off.engine.name for pair in measured.pairs]
    parameters = neutral(engines)
    known = None if start is None else {p.name: start.get(p.name, p.centre) for p in parameters}
    return Calibration(values=fit(evidence, parameters, known).values)


def from_whole(measured: Measured) -> Callable[[Measured], Calibration]:
    """A fit that begins where the fit to all of the measurements ended: the answer is the same, and sooner there."""
    whole = refit(measured.sound).values
    return lambda part: refit(part, whole)
