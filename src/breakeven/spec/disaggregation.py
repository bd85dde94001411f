"""Prefill and decode as two pools of devices, with the cache of each prompt sent from the one to the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from breakeven.spec.engine import Engine
from breakeven.spec.hardware import Device


@dataclass(frozen=True, kw_only=True)
class PrefillPool:
    """The devices that prompts are computed on, and how they are split. What is not said here is as the deployment's engine has it."""

    count: int
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1
    enable_expert_parallel: bool = False
    prefill_context_parallel_size: int = 1
    device: Device | None = None
    """None: the device of the decode pool."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Field of ``Engine`` to what the engine does of itself on that device, where it is another: memory it keeps, kernels, type."""


@dataclass(frozen=True, kw_only=True)
class Disaggregation:
    """A prefill pool beside the decode pool, and the link between a rank of each (a replica, but for attention data parallelism)."""

    prefill: PrefillPool
    transfer_bytes_per_s: float | None = None
    """What the cache of one prompt is sent at; None: the network of the devices that send, or of those that receive if they are fewer."""


def prefill_engine(engine: Engine, pool: PrefillPool) -> Engine:
    """The settings of the prefill pool: those of the deployment with the pool's own sizes; it drafts nothing and decodes nothing."""
    return replace(
        engine,
        tensor_parallel_size=pool.tensor_parallel_size,
        pipeline_parallel_size=pool.pipeline_parallel_size,
        data_parallel_size=pool.data_parallel_size,
        enable_expert_parallel=pool.enable_expert_parallel,
        prefill_context_parallel_size=pool.prefill_context_parallel_size,
        decode_context_parallel_size=1,
        speculative=None,
        **pool.settings,
    )
