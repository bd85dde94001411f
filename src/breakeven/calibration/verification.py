"""What verifying drafts costs on measured steps: a step of b sequences with k + 1 rows each over a plain one of b."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from breakeven.draws import MEDIAN
from breakeven.evaluator import Noise, prepare
from breakeven.ledger.step import parts
from breakeven.spec.calibration_file import Curve
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Speculative
from breakeven.spec.workload import Workload

DRAFTED = (1, 2, 3, 4, 5, 7)


@dataclass(frozen=True, kw_only=True)
class Verified:
    """One batch at one context: t(b·(k + 1))/t(b) by k; None where so many rows are beyond the widest step that was measured."""

    context_tokens: float
    batch: float
    ratios: tuple[tuple[int, float | None], ...]


def verified(d: Deployment, curves: Sequence[Curve]) -> tuple[Verified, ...]:
    """For every curve and each of its widths that leaves room for a draft; ``d`` has the calibration of the curves."""
    found = [_at(d, curve, batch) for curve in curves for batch in curve.rows if 2 * batch <= curve.rows[-1]]
    return tuple(found)


def _at(d: Deployment, curve: Curve, batch: float) -> Verified:
    plain = _seconds(d, curve, batch, 0)
    ratios = [(k, _seconds(d, curve, batch, k) / plain if batch * (k + 1) <= curve.rows[-1] else None) for k in DRAFTED]
    return Verified(context_tokens=curve.context_tokens, batch=batch, ratios=tuple(ratios))


def _seconds(d: Deployment, curve: Curve, batch: float, drafted: int) -> float:
    """A forward pass alone: what else a round costs (drafting, the host) is not the step's."""
    speculative = Speculative(method="ngram", num_speculative_tokens=drafted) if drafted else None
    engine = replace(d.engine, speculative=speculative, max_num_seqs=max(d.engine.max_num_seqs, int(batch)))
    pinned = replace(d, engine=engine, workload=Workload(batch=batch, context_tokens=curve.context_tokens))
    setting = prepare(pinned, MEDIAN, Noise())
    spent = parts(setting.cost, np.array([batch]))
    return float(sum(np.max(np.asarray(seconds)) for name, seconds in spent.items() if name != "speculation"))
