"""KV quantisation: fewer bytes per cached element. Two gains, traffic and room; prefill gets slower."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from breakeven import support
from breakeven.evaluator import Point
from breakeven.kernels import kv_format, kv_names
from breakeven.ledger import bandwidth
from breakeven.ledger.step import parts
from breakeven.lever import DRAFTING, FLOOR, Candidate, Lever, Sigma, candidate, in_part, sigma_of
from breakeven.messages import Message
from breakeven.spec.deployment import Deployment
from breakeven.statement import limited_by, read_bytes


def setting_on(d: Deployment) -> str | None:
    """The cache format below 16 bit, if one is in force."""
    found = kv_format(d.model, d.engine)
    return None if found == "bf16" else found


def candidates(d: Deployment) -> tuple[Candidate, ...]:
    """Formats the engine has, and at this version; fp8, and the format in force, with the reason where it has not."""
    asked = ("fp8", setting_on(d))
    known = (*support.engine_settings(d.engine.name, "kv_quant"), *asked)
    found = (candidate("kv_quant", name, d) for name in kv_names() if name != "bf16" and name in known)
    return tuple(c for c in found if c.setting in asked or not _of_another_version(c))


def _of_another_version(c: Candidate) -> bool:
    return c.refused is not None and c.refused.key == "lever.kv_no_version"


def apply(d: Deployment, setting: str) -> Deployment:
    """Set the cache format."""
    return d if setting_on(d) == setting else replace(d, engine=replace(d.engine, kv_cache_dtype=setting))


def remove(d: Deployment) -> Deployment:
    """Back to 16 bit."""
    return replace(d, engine=replace(d.engine, kv_cache_dtype="bf16"))


HARDWARE, NARROW = "kv_hardware", "kv_narrow"
IN_PART = (HARDWARE, NARROW)
"""Rows of formats that the attention kernel itself reads: only its time changes, and heads narrower than 128 are known worse."""


def sigma_row(d: Deployment, off: Point, on: Point) -> str:
    """The row of the sigma table: hardware formats are well known; formats unpacked in software are not; gains by room a little less."""
    row = on.shard.kv.sigma
    if row == HARDWARE and on.shard.narrow_heads:
        row = NARROW
    if limited_by(off) != "kv_pool":
        return row
    return max(("capacity_bound", row), key=lambda name: sigma_of("kv_quant", name, d))


def sigma(d: Deployment, off: Point, on: Point) -> Sigma:
    """Of the row that applies; of formats that hardware reads, in so far as attention has a part in the step."""
    row = sigma_row(d, off, on)
    found = sigma_of("kv_quant", row, d)
    return Sigma(step=in_part(found, exposure(row, off)), prefill=FLOOR) if row in IN_PART else Sigma(step=found, prefill=found)


def exposure(row: str, off: Point) -> float:
    """The share of the plain step that a row's error applies to: attention's, where only its reads change."""
    if row not in IN_PART:
        return 1.0
    pieces = parts(off.cost, off.batch)
    return float(np.median(np.asarray(pieces["attention"]) / sum(pieces.values(), 0.0)))


def because(d: Deployment, off: Point, on: Point) -> tuple[Message, ...]:
    """KV's share of the bytes read, whether the pool binds, and what a kernel costs."""

    weights, kv = read_bytes(off)
    share = float(np.median(bandwidth.kv_share_of_traffic(kv, weights)))
    lines = [Message("lever.kv_share_of_traffic", {"share": share})]
    used = float(np.median(off.batch * off.room.sequence_bytes)) / off.cost.ranks / off.room.pool_bytes if off.fits else 1.0
    binds = limited_by(off) == "kv_pool" or not off.fits
    lines.append(Message("lever.kv_pool_binds" if binds else "lever.kv_pool_free", {"used": used}))
    if on.shard.narrow_heads:
        lines.append(Message("lever.kv_narrow", {}))
    return tuple(lines)


LEVER = Lever(
    name="kv_quant",
    ledger="bandwidth",
    axes=("batch", "context_tokens", "request_rate", "output_tokens", "prefix_hit_rate", *DRAFTING),
    setting_on=setting_on,
    candidates=candidates,
    apply=apply,
    remove=remove,
    sigma=sigma,
    because=because,
    accuracy=Message("lever.accuracy_not_checked"),
)
