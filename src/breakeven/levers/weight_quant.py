"""Weight quantisation: fewer bytes per weight, and perhaps another compute rate, by kernel family."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from breakeven import support
from breakeven.evaluator import Point
from breakeven.kernels import SIXTEEN_BIT, WITHOUT_UNIT, runs_on, sixteen_bit, weight_kernel, weight_kernels, weight_names
from breakeven.lever import DRAFTING, Candidate, Lever, Sigma, candidate, sigma_of
from breakeven.messages import Message
from breakeven.spec.deployment import Deployment
from breakeven.statement import limited_by, read_bytes


def setting_on(d: Deployment) -> str | None:
    """The kernel family that most weights run in, unless that is 16 bit."""
    kernels = weight_kernels(d.model, d.engine, d.hardware.device)
    counts = {"attention": d.model.parameters.attention, "mlp": d.model.parameters.mlp, "experts": d.model.parameters.experts}
    largest = max(counts, key=lambda name: counts[name])
    found = kernels[largest].name
    return None if found in (*SIXTEEN_BIT, "f32") else found


def candidates(d: Deployment) -> tuple[Candidate, ...]:
    """Families the engine has; a format without a matrix unit is offered as the family that computes in 16 bits."""
    known, device = support.engine_settings(d.engine.name, "weight_quant"), d.hardware.device
    instead = {name for name in known if name in WITHOUT_UNIT.values() and runs_on(weight_kernel(_native_of(name)), device)}
    return tuple(candidate("weight_quant", name, d) for name in weight_names() if name in known and name not in instead)


def _native_of(name: str) -> str:
    return next(native for native, instead in WITHOUT_UNIT.items() if instead == name)


def apply(d: Deployment, setting: str) -> Deployment:
    """Quantise attention, dense and expert matrices; head and embedding stay as they are (GGUF formats take them along)."""
    if setting_on(d) == setting:
        return d
    as_filed = replace(d, engine=replace(d.engine, quantization=None))
    if d.model.stored_bytes and setting_on(as_filed) == setting:
        return as_filed
    return replace(d, engine=replace(d.engine, quantization=setting))


def remove(d: Deployment) -> Deployment:
    """All weights in 16 bit, as if the checkpoint stored them so.

    Where the files were read they stay known: the lever put on again is the files as they are, to the byte.
    """
    if d.model.stored_bytes:
        return replace(d, engine=replace(d.engine, quantization=sixteen_bit(d.model, d.engine)))
    return replace(d, engine=replace(d.engine, quantization=None), model=replace(d.model, stored={}))


def sigma_row(d: Deployment, off: Point, on: Point) -> str:
    """The row of the sigma table: by kernel; weight-only kernels are better known at batch 1, nothing well where the pool binds."""
    if limited_by(off) == "kv_pool":
        return "capacity_bound"
    kernels = on.shard.kernels
    row = (kernels["experts"] if d.model.experts else kernels["mlp"]).sigma
    return "weight_only_batch_1" if row == "weight_only" and float(np.median(on.batch)) <= 1.5 else row


def sigma(d: Deployment, off: Point, on: Point) -> Sigma:
    """Of the row that applies, on steps and prompts alike."""
    found = sigma_of("weight_quant", sigma_row(d, off, on), d)
    return Sigma(step=found, prefill=found)


def because(d: Deployment, off: Point, on: Point) -> tuple[Message, ...]:
    """The weights' share of the bytes, the roof in force, and what does not shrink."""
    weights, kv = read_bytes(off if off.fits else on)
    lines = [Message("lever.weights_share_of_traffic", {"share": float(np.median(weights / (weights + kv)))})]
    kernel = on.shard.kernels["experts"] if d.model.experts else on.shard.kernels["mlp"]
    if kernel.delta_decode_range is not None:
        low, high = kernel.delta_decode_range
        lines.append(Message("lever.weights_kernel_unnamed", {"low": low, "high": high}))
    else:
        lines.append(Message("lever.weights_kernel", {"kernel": kernel.title, "compute": kernel.compute}))
    freed = off.room.weight_bytes - on.room.weight_bytes
    lines.append(Message("lever.weights_freed", {"freed": freed}))
    return tuple(lines)


LEVER = Lever(
    name="weight_quant",
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
