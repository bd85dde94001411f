"""What rounds of looked-up drafts cost on a deployment, as a replay needs it: seconds by batch and rows, drafting off and on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from breakeven.draws import MEDIAN
from breakeven.evaluator import Noise, prepare
from breakeven.ledger.step import parts
from breakeven.levers import speculation
from breakeven.replay.gain import RoundCosts
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Speculative
from breakeven.stats import Array

LOOKUP = "ngram"
"""What any drafter without a model costs as: nothing says that a suffix tree is slower or quicker to ask than a search."""


def round_costs(d: Deployment, batches: Sequence[int], most: int) -> tuple[RoundCosts, ...]:
    """Steps at the deployment's mean context with 1 … most + 1 rows a sequence, drafting on, and the plain step, at every batch.

    A round in which nothing was drafted is a plain step and the host's part of a round: looking up, and counting what was accepted.
    """
    sizes = np.array(batches, float)
    pinned = speculation.pinned(speculation.remove(d), sizes)
    settings = [prepare(_with_rows(pinned, rows), MEDIAN, Noise()) for rows in range(2, most + 2)]
    plain = _over(prepare(pinned, MEDIAN, Noise()).step(sizes), sizes)
    rounds = [_over(setting.step(sizes), sizes) for setting in settings]
    host = _over(settings[0].factor * parts(settings[0].cost, sizes)["speculation"], sizes) if settings else 0.0 * sizes
    return tuple(
        RoundCosts(batch=int(batch), plain_s=float(plain[i]), round_s=(float(plain[i] + host[i]), *(float(row[i]) for row in rounds)))
        for i, batch in enumerate(batches)
    )


def _with_rows(d: Deployment, rows: int) -> Deployment:
    """Drafting so many rows a sequence less its own."""
    return replace(d, engine=replace(d.engine, speculative=Speculative(method=LOOKUP, num_speculative_tokens=rows - 1)))


def _over(found: Array | float, batches: Array) -> Array:
    return np.broadcast_to(np.asarray(found, float), batches.shape)
