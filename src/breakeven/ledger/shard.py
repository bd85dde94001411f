"""What one device holds and does, as numbers: the deployment seen through its kernels and its parallelism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from breakeven.draws import Draws
from breakeven.kernels import KvKernel, WeightKernel, by_family, kv_format, kv_kernel, matmul_rate, sixteen_bit, weight_kernels
from breakeven.ledger.compute import active_expert_parameters, head_parameters
from breakeven.ledger.memory import counts_by_class, state_bytes
from breakeven.pages import state_element_bytes
from breakeven.sheet import sheet_factor
from breakeven.spec.deployment import Deployment
from breakeven.spec.hardware import Device
from breakeven.spec.model import Model
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
    kernels: Mapping[str, WeightKernel]
    kv: KvKernel
    narrow_heads: bool
    state_bytes: float
    """Bytes of constant state a sequence keeps (linear and state-space layers)."""
    bandwidth_bytes_per_s: Array | float
    flops_16_bit: Array | float
    link_bytes_per_s: Array | float
    compute_factor: Array | float
    """The true compute rate over the sheet's."""
    dense_bytes: float
    dense_effective_bytes: float
    dense_dequantised_bytes: float
    dense_flop_per_row: float
    dense_decode_compute_s: Array | float
    dense_prefill_compute_s: Array | float
    head_flop_per_row: float
    expert_bytes: float
    expert_effective_bytes: float
    expert_flop_per_row: float
    expert_decode_compute_s: Array | float
    expert_prefill_compute_s: Array | float

    @property
    def kv_phi(self) -> float:
        """Share of the 16-bit KV bandwidth that the cache's kernel reaches at this head width."""
        return self.kv.phi_narrow if self.narrow_heads else self.kv.phi


def shard(deployment: Deployment, draws: Draws) -> Shard:
    """The deployment as one device sees it."""
    model, engine, device = deployment.model, deployment.engine, deployment.hardware.device
    tp = engine.tensor_parallel_size
    kernels = weight_kernels(model, engine, device)
    counts = {**counts_by_class(model), "head": head_parameters(model)}
    bandwidth, compute, link = (sheet_factor(device, name, draws) for name in ("bandwidth", "compute", "link"))
    if model.tied:
        kernels["head"] = kernels["embedding"]

    def compute_s(name: str, count: float, *, prefill: bool) -> Array | float:
        delta = _delta(kernels[name], device, draws, prefill=prefill)
        return 2.0 * count / tp * delta / (matmul_rate(device, kernels[name].compute) * compute)

    read = {name: counts[name] * kernels[name].bytes / tp for name in counts}
    phi = {name: by_family(kernels[name].phi, device.family) for name in counts}
    active = active_expert_parameters(model)
    return Shard(
        model=model,
        tensor_parallel=tp,
        pipeline_parallel=engine.pipeline_parallel_size,
        kernels=kernels,
        kv=kv_kernel(kv_format(model, engine)),
        narrow_heads=min((g.k_dim for g in model.attention), default=128) < 128,
        state_bytes=state_bytes(model, state_element_bytes(model, engine), tensor_parallel=tp),
        bandwidth_bytes_per_s=device.bandwidth_bytes_per_s * bandwidth,
        flops_16_bit=matmul_rate(device, sixteen_bit(model, engine)) * compute,
        compute_factor=compute,
        link_bytes_per_s=(device.link_bytes_per_s or float("inf")) * link,
        dense_bytes=sum(read[name] for name in READ_CLASSES),
        dense_effective_bytes=sum(read[name] / phi[name] for name in READ_CLASSES),
        dense_dequantised_bytes=sum(counts[name] * kernels[name].dequantised_bytes / tp for name in READ_CLASSES),
        dense_flop_per_row=sum(2.0 * counts[name] / tp for name in ("attention", "mlp")),
        dense_decode_compute_s=sum(compute_s(name, counts[name], prefill=False) for name in ("attention", "mlp", "head")),
        dense_prefill_compute_s=sum(compute_s(name, counts[name], prefill=True) for name in ("attention", "mlp")),
        head_flop_per_row=2.0 * counts["head"] / tp,
        expert_bytes=read["experts"],
        expert_effective_bytes=read["experts"] / (kernels["experts"].phi_experts or phi["experts"]),
        expert_flop_per_row=2.0 * active / tp,
        expert_decode_compute_s=compute_s("experts", active, prefill=False) if active else 0.0,
        expert_prefill_compute_s=compute_s("experts", active, prefill=True) if active else 0.0,
    )


def _delta(kernel: WeightKernel, device: Device, draws: Draws, *, prefill: bool) -> Array | float:
    return by_family(kernel.delta_prefill, device.family) if prefill else kernel.delta(device.family, draws)
