"""Whether this machine's devices can be those of a server at localhost: behind a tunnel or a container's port it may be anywhere.

An engine fills its device: with the model's weights at least, and most reserve a share of the memory for their cache at the start.
"""

from __future__ import annotations

from dataclasses import replace

from breakeven.errors import InputError
from breakeven.observation.devices import Found
from breakeven.origin.model_source import load_told
from breakeven.spec.evidence import Said, Told

LEAST_BYTES = 0.5
"""Of a parameter: weights are hardly kept in less than four bits."""
RESERVED, PART = "gpu_memory_utilization", 0.5
"""The share that an engine reserves, and the part of it that has to be in use."""
SHARE = 0.5
"""Of the memory, where neither the model nor the share it reserves is known."""


def occupied(found: Found, told: Told) -> Found:
    """The devices where what is in use of them is plausible for the engine; else what was read, and why it is not taken."""
    if not found.name or found.trouble is not None:
        return found
    if not found.memory:
        return _not_taken(found, Said(key="observe.told_device_unread", values={"name": found.name}))
    used, whole = sum(each for each, _ in found.memory), sum(each for _, each in found.memory)
    needed = _needed(found, told)
    if used >= needed:
        return found
    return _not_taken(
        found, Said(key="observe.told_device_idle", values={"name": found.name, "used": used, "whole": whole, "needed": needed})
    )


def _needed(found: Found, told: Told) -> float:
    """Bytes that one engine takes on some of these devices."""
    one = max(whole for _, whole in found.memory)
    weights, reserved = _weights(told.model), told.settings.get(RESERVED)
    share = PART * reserved if isinstance(reserved, float) else SHARE if weights is None else 0.0
    return max(share * one, weights or 0.0)


def _weights(name: str) -> float | None:
    """Bytes of the weights at the least; None of a model that is not known by what the engine calls it."""
    try:
        return LEAST_BYTES * load_told(name).parameters.total if name else None
    except InputError:
        return None


def _not_taken(found: Found, why: Said) -> Found:
    return replace(Found(), seen=found.seen, source=found.source, trouble=why)
