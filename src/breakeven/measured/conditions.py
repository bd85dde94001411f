"""What a row says of model, device and engine, as a deployment with no lever on; and whether an arm fits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from breakeven.evaluator import evaluate
from breakeven.measured import strings
from breakeven.measured.pair import Speed
from breakeven.measured.row import Row
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine
from breakeven.spec.hardware import Hardware
from breakeven.spec.workload import Workload

NO_CAP = 4096
"""Benchmarks raise the cap on sequences; none of them says where it stood."""


@dataclass(frozen=True, kw_only=True)
class Arms:
    """Two deployments that differ by the lever alone, and what was measured on both."""

    off: Deployment
    on: Deployment
    speed: Speed
    regime: str
    sigma_row: str
    notes: Mapping[str, str] = field(default_factory=dict)


def text(row: Row, name: str) -> str:
    """A field as it is written, empty where it is absent."""
    return row.fields.get(name, "").strip()


def devices_used(parallelism: str) -> int:
    """Tensor parallelism of a label; labels of mixtures lie (TP64 with moe 8 × 8 are 8 devices)."""
    match = re.match(r"TP(\d+)(?: moe_tp(\d+) moe_ep(\d+) dp(\d+))?", parallelism)
    if match is None:
        if parallelism in ("none", "layer split") or "TP1 ->" in parallelism:
            return 1
        raise strings.refused("parallelism_unknown", written=parallelism)
    tp, moe_tp, moe_ep, dp = (int(x) if x else 1 for x in match.groups())
    if dp > 1 and tp != dp:
        raise strings.refused("parallelism_unknown", written=parallelism)
    return moe_tp if moe_tp == moe_ep and tp > 8 else tp


def base(row: Row, *, engine: str = "", parallelism: str = "") -> Deployment:
    """The row's model, device and engine; weights and cache in 16 bit, no lever on."""
    device = strings.device(text(row, "hardware"))
    model = strings.model(text(row, "model"))
    name, version = strings.engine(engine or text(row, "engine"))
    tp = devices_used(parallelism or text(row, "parallelism") or "TP1")
    if name == "llamacpp" and device.memory_bytes is not None:
        # Layers split over cards: the memory of all of them, the speed of one.
        device = replace(device, memory_bytes=device.memory_bytes * int(text(row, "n_gpus") or 1))
    settings = Engine(
        name=name,
        version=version,
        tensor_parallel_size=tp,
        max_num_seqs=NO_CAP,
        kv_cache_dtype="bf16",
        enable_prefix_caching=False,
        kv_reserve="whole" if name == "trtllm" else "grow",
        gpu_memory_utilization=0.93 if name != "llamacpp" else 1.0,
        runtime_reserve_bytes=3e9 if name != "llamacpp" else 0.5e9,
    )
    return Deployment(
        model=replace(model, stored={}, stored_bytes={}, kv_scheme=None),
        hardware=Hardware(device=device, count=tp),
        engine=settings,
        workload=Workload(),
    )


def set_engine(d: Deployment, **changes: object) -> Deployment:
    """The deployment with settings of its engine changed."""
    return replace(d, engine=replace(d.engine, **changes))  # type: ignore[arg-type]


def under(d: Deployment, **workload: object) -> Deployment:
    """The deployment under a workload."""
    return replace(d, workload=Workload(**workload))  # type: ignore[arg-type]


def room_for(d: Deployment) -> float:
    """Sequences that fit in the median world."""
    return float(np.median(evaluate(d, exact=False).room.fits_sequences))


def check_fits(d: Deployment) -> None:
    """Refuse an arm that the memory ledger has no room for."""
    if room_for(d) < 1.0:
        raise strings.refused("does_not_fit", device=d.hardware.device.name, model=d.model.name)
