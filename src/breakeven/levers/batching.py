"""Batching: raise the cap on running sequences to what the pool holds and the ridge is worth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from breakeven.evaluator import Point, evaluate
from breakeven.lever import DRAFTING, Candidate, Lever, Sigma, candidate, sigma_of
from breakeven.messages import Message
from breakeven.spec.deployment import Deployment
from breakeven.statement import limited_by, ridge_batch

FULL_SIGMA_AT = float(np.log(2.0))
"""ln of the growth in batch at which the table's sigma applies in full; no growth, no error."""


def target(d: Deployment) -> int:
    """min(what the pool holds, the ridge), of one rank, as the cap is; never below the cap in force.

    Past the ridge more sequences only wait for each other; past the pool they do not fit.
    """
    point = evaluate(d, exact=False)
    reach = min(float(np.median(point.room.fits_sequences)), float(np.median(ridge_batch(point))))
    return max(d.engine.max_num_seqs, int(reach / point.cost.ranks))


def setting_on(d: Deployment) -> str | None:
    """The cap in force, when it already reaches the target."""
    return str(d.engine.max_num_seqs) if target(d) <= d.engine.max_num_seqs else None


def candidates(d: Deployment) -> tuple[Candidate, ...]:
    """The cap at the target."""
    return (candidate("batching", str(target(d)), d),)


def apply(d: Deployment, setting: str) -> Deployment:
    """Set the cap."""
    return d if str(d.engine.max_num_seqs) == setting else replace(d, engine=replace(d.engine, max_num_seqs=int(setting)))


def remove(d: Deployment) -> Deployment:
    """The cap as it is: there is no lower one to go back to."""
    return d


def sigma(d: Deployment, off: Point, on: Point) -> Sigma:
    """In proportion to how far the batch moves: a cap that changes nothing has no error."""
    moved = abs(float(np.log(np.median(on.batch) / np.median(off.batch))))
    return Sigma(step=sigma_of("batching", "step", d) * min(1.0, moved / FULL_SIGMA_AT))


def because(d: Deployment, off: Point, on: Point) -> tuple[Message, ...]:
    """What limits the batch."""

    batch = float(np.median(off.batch))
    # Off, the cap as set is below what fits (the target is not), so it is the point's; in force, it is the deployment's.
    cap = float(d.engine.max_num_seqs * off.cost.ranks) if on is off else float(np.median(off.cap))
    limit = limited_by(off)
    lines = [Message(f"lever.batching_{limit}", {"batch": batch, "cap": cap, "fits": float(np.median(off.room.fits_sequences))})]
    if batch < 4 and limit == "demand":
        lines.append(Message("lever.batching_under_4", {"batch": batch}))
    return tuple(lines)


LEVER = Lever(
    name="batching",
    ledger="memory",
    # A pinned batch has no cap to raise, so the batch is no axis of the cap.
    axes=("context_tokens", "request_rate", "output_tokens", "prefix_hit_rate", *DRAFTING),
    setting_on=setting_on,
    candidates=candidates,
    apply=apply,
    remove=remove,
    sigma=sigma,
    because=because,
    accuracy=Message("lever.accuracy_exact"),
)
