"""What one device holds and does, as numbers: the deployment seen through its kernels and its parallelism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from breakeven.draws import Draws
from breakeven.efficiencies import drawn_range, fitted_of
from breakeven.kernels import (
    KvKernel,
    WeightKernel,
    by_family,
    fitted_kv,
    fitted_weights,
    kv_format,
    kv_kernel,
    matmul_rate,
    of_its_time,
    sixteen_bit,
    weight_kernels,
)
from breakeven.ledger.compute import active_expert_parameters, head_parameters
from breakeven.ledger.memory import counts_by_class, state_bytes
from breakeven.pages import state_element_bytes
from breakeven.sheet import sheet_factor
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine
from breakeven.spec.hardware import Device
from breakeven.spec.model import Model
from breakeven.spec.parallel import Layout, layout
from breakeven.stats import Array

READ_CLASSES = ("attention", "mlp", "other", "head")


@dataclass(frozen=True, kw_only=True)
class Shard:
    """Per device, over all stages of a pipeline.

    ``*_effective_bytes`` are bytes/φ; ``*_compute_s`` are seconds a row at the full rate, δ included.
    """

    model: Model
    tensor_parallel: int
    pipeline_parallel: int
    layout: Layout
    kernels: Mapping[str, WeightKernel]
    kv: KvKernel
    narrow_heads: bool
    state_bytes: float
    """Bytes of constant state a sequence keeps (linear and state-space layers)."""
    bandwidth_bytes_per_s: Array | float
    flops_16_bit: Array | float
    compute_factor: Array | float
    """The true compute rate over the sheet's."""
    link_bytes_per_s: Array | float
    link_domain: int | None
    """Devices that the link joins; None where no limit is known."""
    network_bytes_per_s: Array | float
    """Beyond the link's domain, for one device: as stated, else the prior's."""
    expert_skew: Array | float
    """Rows of the busiest device of expert parallelism over the mean, with many rows."""
    dense_bytes: float
    dense_effective_bytes: Array | float
    dense_dequantised_bytes: float
    dense_flop_per_row: float
    dense_decode_compute_s: Array | float
    dense_prefill_compute_s: Array | float
    head_flop_per_row: float
    expert_bytes: float
    expert_effective_bytes: Array | float
    expert_flop_per_row: float
    expert_decode_compute_s: Array | float
    expert_prefill_compute_s: Array | float

    @property
    def kv_phi(self) -> Array | float:
        """Share of the 16-bit KV bandwidth that the cache's kernel reaches at this head width."""
        return self.kv.phi_narrow if self.narrow_heads else self.kv.phi


def network_bytes_per_s(deployment: Deployment, draws: Draws) -> Array | float:
    """What the network carries for one device, in one direction: as stated, else drawn from the prior."""
    stated = deployment.hardware.network_bytes_per_s
    return draws.log_uniform("network", *drawn_range("parallel", "network_bytes_per_s")) if stated is None else stated


def _compute_s(kernel: WeightKernel, device: Device, draws: Draws, flop: float, *, prefill: bool) -> Array | float:
    """Seconds of so many FLOP at the full rate of the type computed in, the kernel's overhead δ included."""
    delta = by_family(kernel.delta_prefill, device.family) if prefill else kernel.delta(device.family, draws)
    return flop * delta / matmul_rate(device, kernel.compute)


def _wires(deployment: Deployment, split: Layout, draws: Draws) -> dict[str, Any]:
    """How the devices lie, what joins them, and how unevenly routing loads them."""
    device, dealt = deployment.hardware.device, split.expert_parallel > 1
    return {
        "layout": split,
        "link_bytes_per_s": (device.link_bytes_per_s or float("inf")) * sheet_factor(device, "link", draws),
        "link_domain": device.link_domain,
        "network_bytes_per_s": network_bytes_per_s(deployment, draws),
        "expert_skew": draws.log_uniform("expert_skew", *drawn_range("parallel", "expert_skew")) if dealt else 1.0,
    }


def _drafted(engine: Engine) -> int:
    return engine.speculative.num_speculative_tokens if engine.speculative is not None else 0


def _kernels(d: Deployment) -> tuple[dict[str, WeightKernel], KvKernel]:
    """The kernel family of each tensor class and of the cache, with what a calibration found."""
    kernels = weight_kernels(d.model, d.engine, d.hardware.device)
    weights = {
        name: of_its_time(fitted_weights(kernel, fitted_of(f"weights.{kernel.name}", d.calibration)), d.engine)
        for name, kernel in kernels.items()
    }
    cache = kv_kernel(kv_format(d.model, d.engine))
    return weights, fitted_kv(cache, fitted_of(f"kv.{cache.name}", d.calibration))


def _first(own: Array | float | None, otherwise: Array | float) -> Array | float:
    return otherwise if own is None else own


def shard(deployment: Deployment, draws: Draws) -> Shard:
    """The deployment as one device sees it."""
    model, engine, device = deployment.model, deployment.engine, deployment.hardware.device
    tp, split = engine.tensor_parallel_size, layout(model, engine)
    kernels, cache = _kernels(deployment)
    counts = {**counts_by_class(model), "head": head_parameters(model)}
    bandwidth, compute = (sheet_factor(device, name, draws) for name in ("bandwidth", "compute"))
    if model.tied:
        kernels["head"] = kernels["embedding"]
    shards = {**dict.fromkeys(counts, tp), "experts": split.expert_shards}

    def compute_s(name: str, count: float, *, prefill: bool) -> Array | float:
        return _compute_s(kernels[name], device, draws, 2.0 * count / shards[name], prefill=prefill) / compute

    read = {name: counts[name] * kernels[name].bytes / shards[name] for name in counts}
    phi = {name: by_family(kernels[name].phi, device.family) for name in counts}
    active = active_expert_parameters(model)
    return Shard(
        model=model,
        tensor_parallel=tp,
        pipeline_parallel=engine.pipeline_parallel_size,
        kernels=kernels,
        kv=cache,
        narrow_heads=min((g.k_dim for g in model.attention), default=128) < 128,
        state_bytes=state_bytes(model, state_element_bytes(model, engine), tensor_parallel=tp, drafted=_drafted(engine)),
        bandwidth_bytes_per_s=device.bandwidth_bytes_per_s * bandwidth,
        flops_16_bit=matmul_rate(device, sixteen_bit(model, engine)) * compute,
        compute_factor=compute,
        **_wires(deployment, split, draws),
        dense_bytes=sum(read[name] for name in READ_CLASSES),
        dense_effective_bytes=sum((read[name] / phi[name] for name in READ_CLASSES), 0.0),
        dense_dequantised_bytes=sum(counts[name] * kernels[name].dequantised_bytes / tp for name in READ_CLASSES),
        dense_flop_per_row=sum(2.0 * counts[name] / tp for name in ("attention", "mlp")),
        dense_decode_compute_s=sum(compute_s(name, counts[name], prefill=False) for name in ("attention", "mlp", "head")),
        dense_prefill_compute_s=sum(compute_s(name, counts[name], prefill=True) for name in ("attention", "mlp")),
        head_flop_per_row=2.0 * counts["head"] / tp,
        expert_bytes=read["experts"],
        expert_effective_bytes=read["experts"] / _first(kernels["experts"].phi_experts, phi["experts"]),
        expert_flop_per_row=2.0 * active / split.expert_shards,
        expert_decode_compute_s=compute_s("experts", active, prefill=False) if active else 0.0,
        expert_prefill_compute_s=compute_s("experts", active, prefill=True) if active else 0.0,
    )
