"""Batching: raise the cap on running sequences to what the ridge is worth, the pool holds and demand asks."""

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


WORTH = 0.1
"""What a cap past the ridge has to serve beyond one at the ridge to be offered beside it: every sequence waits longer for a token."""

KEPT = 0.98
"""Of an objective, what a cap found by the fast form may come to: the draws of the exact one have their median within 2 % of it."""


def caps(d: Deployment) -> tuple[int, ...]:
    """Caps above the one in force, of one rank, as it is: the smaller of ridge and pool, and past the ridge what demand or pool asks.

    Up to the ridge a sequence more costs a step little. Past it gains flatten but do not end, as long as the cap is what binds; past
    the pool, or the tokens that go into a step, it binds no longer. An objective of time per token that is kept stays kept.
    """
    point = evaluate(d, exact=False)
    now = d.engine.max_num_seqs
    if point.demand.unwaited:
        return ()
    near = _kept(d, point, min(_most(d, point), int(float(np.median(ridge_batch(point))) / point.cost.ranks)))
    if near <= now:
        return _past(d, point)
    if limited_by(point) != "max_num_seqs":
        return (near,)
    at = apply(d, str(near))
    served = evaluate(at, exact=False)
    worth = float(np.median(served.throughput)) * (1.0 + WORTH)
    return near, *(far for far in _past(at, served) if float(np.median(evaluate(apply(at, str(far)), exact=False).throughput)) >= worth)


def _most(d: Deployment, p: Point) -> int:
    """Sequences of one rank that the pool holds and whose tokens go into one step."""
    return min(int(float(np.median(p.room.fits_sequences)) / p.cost.ranks), d.engine.max_num_batched_tokens // p.rows)


def _past(d: Deployment, p: Point) -> tuple[int, ...]:
    """The cap that no longer binds, where the one in force does: what clients ask for, or as many as can run."""
    if limited_by(p) != "max_num_seqs":
        return ()
    clients = p.demand.clients if p.demand.mode == "closed" else None
    asked = np.inf if clients is None else float(np.ceil(np.median(clients) / p.cost.ranks))
    far = _kept(d, p, int(min(_most(d, p), asked)))
    return (far,) if far > d.engine.max_num_seqs else ()


def _kept(d: Deployment, p: Point, cap: int) -> int:
    """The largest cap up to this one that keeps the objective of time per token, where the one in force does: it only grows."""
    limit = d.slo.tpot_s
    low, high = d.engine.max_num_seqs, cap
    if limit is None or cap <= low or float(np.median(p.tpot_s)) > limit or _tpot(d, cap) <= limit:
        return cap
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _tpot(d, middle) <= limit * KEPT else (low, middle)
    return low


def _tpot(d: Deployment, cap: int) -> float:
    return float(np.median(evaluate(apply(d, str(cap)), exact=False).tpot_s))


def setting_on(d: Deployment) -> str | None:
    """The cap in force, when no larger one is to be tried."""
    return None if caps(d) else str(d.engine.max_num_seqs)


def candidates(d: Deployment) -> tuple[Candidate, ...]:
    """The larger caps, else the one in force."""
    return tuple(candidate("batching", str(cap), d) for cap in caps(d) or (d.engine.max_num_seqs,))


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
    # Off, the cap as set is below what fits (a larger one is not), so it is the point's; in force, it is the deployment's.
    cap = float(d.engine.max_num_seqs * off.cost.ranks) if on is off else float(np.median(off.cap))
    limit = limited_by(off)
    values = {"batch": batch, "cap": cap, "fits": float(np.median(off.room.fits_sequences)), "tokens": d.engine.max_num_batched_tokens}
    lines = [Message(f"lever.batching_{_untried(d, off) if on is off and limit == 'max_num_seqs' else limit}", values)]
    if batch < 4 and limit == "demand":
        lines.append(Message("lever.batching_under_4", {"batch": batch}))
    return tuple(lines)


def _untried(d: Deployment, p: Point) -> str:
    """Why no larger cap was tried where the one in force binds."""
    if _most(d, p) > d.engine.max_num_seqs:
        return "slo" if limited_by(evaluate(d, exact=False)) == "max_num_seqs" else "hardly"
    return "full_step" if (d.engine.max_num_seqs + 1) * p.rows > d.engine.max_num_batched_tokens else "full_pool"


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
