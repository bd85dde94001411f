"""Kernel families for weights and for the KV cache: bytes, share of bandwidth, compute overhead, and where they exist."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any

from breakeven.draws import Draws
from breakeven.errors import NotModelledError, UnknownNameError
from breakeven.messages import Message
from breakeven.spec.engine import Engine, dtype_named, version_key
from breakeven.spec.hardware import Device
from breakeven.spec.model import TENSOR_CLASSES, Model
from breakeven.spec.support import cuda_capability
from breakeven.stats import Array

QUANTISED_CLASSES = ("attention", "mlp", "experts")
SIXTEEN_BIT = ("bf16", "fp16")
BY_QUANTIZATION: Mapping[str, str] = {
    "fbgemm_fp8": "fp8",
    "modelopt": "fp8",
    "awq": "int4",
    "gptq": "int4",
    "awq_marlin": "int4_marlin",
    "gptq_marlin": "int4_marlin",
    "bitsandbytes": "nf4",
    "bnb": "nf4",
    "modelopt_fp4": "nvfp4",
    "w8a8_int8": "int8",
    "w8a8": "int8",
}
"""Engines' words for ``quantization`` to the kernel family each runs (before the device decides); a family's own name is a word too."""
FROM_CHECKPOINT = ("compressed-tensors", "compressed_tensors", "gguf")
"""Words that leave the format to the checkpoint."""
KV_WORDS: Mapping[str, str] = {
    "bfloat16": "bf16",
    "float16": "bf16",
    "fp16": "bf16",
    "f16": "bf16",
    "half": "bf16",
    "fp8_e4m3": "fp8",
    "fp8_e4m3fn": "fp8",
    "fp8_e5m2": "fp8",
    "fp8_inc": "fp8",
}
"""Engines' words for ``kv_cache_dtype`` to the family that reads the cache; a family's own name is a word too."""
BY_STORED: Mapping[str, str] = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "int4_g128": "int4",
    "int4_g64": "int4",
    "int4_g32": "int4",
    "nvfp4_weight_only": "mxfp4_weight_only",
    "q4_k": "q4_k_m",
}
"""Checkpoint format to kernel family; a family's own name is a format too. Q4_K_M is what files with Q4_K tensors are called."""
BY_KERNEL: Mapping[str, str] = {"int4_marlin": "int4", "fp16": "bf16"}
"""Kernel families that read the format of another."""
WITHOUT_UNIT: Mapping[str, str] = {"fp8": "fp8_weight_only", "mxfp4": "mxfp4_weight_only", "nvfp4": "mxfp4_weight_only"}
"""What runs where the device has no matrix unit for the format."""


@dataclass(frozen=True, kw_only=True)
class WeightKernel:
    """A family of matrix kernels. ``phi`` scales the achieved bandwidth, ``delta_*`` the compute time, both relative to 16 bit."""

    name: str
    bytes: float
    compute: str
    phi: Mapping[str, Array | float]
    delta_decode: Mapping[str, Array | float]
    delta_prefill: Mapping[str, Array | float]
    sigma: str
    source: str
    delta_decode_range: tuple[float, float] | None = None
    first: Mapping[str, Any] | None = None
    """Overhead on prompts of a family's first kernels: the engine, the version before which they ran, and where that is from."""
    delta_decode_spread: float | None = None
    """Of a fitted overhead of kernels that are not named: how many times less or more one of them may have."""
    phi_experts: Array | float | None = None
    dequantised_bytes: float = 0.0
    needs: str | None = None
    weight_only: str | None = None
    min_capability: int | None = None
    all_classes: bool = False
    keeps_attention_of_moe: bool = False

    @property
    def title(self) -> Message:
        """How the family is called."""
        return Message(f"kernel.weight_{self.name}")

    def delta(self, family: str, draws: Draws) -> float | Array:
        """Compute overhead in decode; drawn where the family of kernels is not named."""
        if self.delta_decode_range is not None:
            return draws.log_uniform(f"kernel:{self.name}", *self.delta_decode_range)
        found = by_family(self.delta_decode, family)
        if self.delta_decode_spread is None or not draws.size:
            return found
        return found * draws.log_uniform(f"kernel:{self.name}", 1.0 / self.delta_decode_spread, self.delta_decode_spread)


@dataclass(frozen=True, kw_only=True)
class KvKernel:
    """A family of attention kernels by the format they read the cache in."""

    name: str
    bytes: float
    phi: Array | float
    phi_narrow: Array | float
    layer_s: Array | float
    prefill: Array | float
    sigma: str
    source: str
    layer_s_by_engine: Mapping[str, Array | float] = field(default_factory=dict)

    @property
    def title(self) -> Message:
        """How the family is called."""
        return Message(f"kernel.kv_{self.name}")


@cache
def _sheet(name: str) -> Mapping[str, Any]:
    return tomllib.loads(resources.files("breakeven").joinpath("catalog", "kernels", f"{name}.toml").read_text(encoding="utf-8"))


@cache
def weight_kernel(name: str) -> WeightKernel:
    """A weight kernel family by name."""
    sheet = _sheet("weights")
    if name not in sheet:
        raise UnknownNameError("weight_format", name, sheet)
    entry = dict(sheet[name])
    if "delta_decode_range" in entry:
        entry["delta_decode_range"] = tuple(entry["delta_decode_range"])
    return WeightKernel(name=name, **entry)


@cache
def kv_kernel(name: str) -> KvKernel:
    """A KV kernel family by name."""
    sheet = _sheet("kv")
    if name not in sheet:
        raise UnknownNameError("kv_format", name, sheet)
    return KvKernel(name=name, **sheet[name])


def weight_names() -> tuple[str, ...]:
    """All weight kernel families."""
    return tuple(_sheet("weights"))


def kv_names() -> tuple[str, ...]:
    """All KV kernel families."""
    return tuple(_sheet("kv"))


def quantization_words() -> tuple[str, ...]:
    """What ``quantization`` may be: engines' words, the families themselves, and what leaves it to the checkpoint."""
    return tuple(sorted({*BY_QUANTIZATION, *weight_names(), *FROM_CHECKPOINT} - set(SIXTEEN_BIT)))


def quantization_named(word: str) -> str | None:
    """The family a word for ``quantization`` stands for; None where the checkpoint says it."""
    plain = word.strip().lower()
    if plain in FROM_CHECKPOINT:
        return None
    found = BY_QUANTIZATION.get(plain, plain)
    if found not in weight_names():
        raise NotModelledError("quantization_not_modelled", quantization=word, known=", ".join(quantization_words()))
    return found


def kv_words() -> tuple[str, ...]:
    """What ``kv_cache_dtype`` may be beside ``auto``."""
    return tuple(sorted({*KV_WORDS, *kv_names()}))


def kv_named(word: str) -> str:
    """The family a word for ``kv_cache_dtype`` stands for."""
    plain = word.strip().lower()
    found = KV_WORDS.get(plain, plain)
    if found not in kv_names():
        raise NotModelledError("kv_cache_not_modelled", written=word, known=", ".join(("auto", *kv_words())))
    return found


def by_family(values: Mapping[str, Array | float], family: str) -> Array | float:
    """The value for a device family, else the class without ``-ws``, else the default."""
    return values.get(family, values.get(family.removesuffix("-ws"), values["default"]))


def fitted_weights(kernel: WeightKernel, found: Mapping[str, Array | float]) -> WeightKernel:
    """A weight kernel with what a calibration found: ``weights.fp8.phi`` for all devices, ``weights.fp8.phi.hopper`` for a family."""
    prefix = f"weights.{kernel.name}."
    if not any(name.startswith(prefix) for name in found):
        return kernel
    changes: dict[str, Any] = {}
    for each in ("phi", "delta_decode", "delta_prefill"):
        values = _families(f"{prefix}{each}", found)
        # A value for all devices stands for every one: what the catalogue has of single families was not fitted with it.
        changes[each] = values if "default" in values else {**getattr(kernel, each), **values}
    if f"{prefix}delta_decode" in found and kernel.delta_decode_range is not None:
        low, high = kernel.delta_decode_range
        changes |= {"delta_decode_range": None, "delta_decode_spread": (high / low) ** 0.5}
    if f"{prefix}phi_experts" in found:
        changes["phi_experts"] = found[f"{prefix}phi_experts"]
    return replace(kernel, **changes)


def of_its_time(kernel: WeightKernel, engine: Engine) -> WeightKernel:
    """A weight kernel as an engine of that version had it: its first ones with their overhead on prompts."""
    first = kernel.first
    if first is None or engine.name != first["engine"] or version_key(engine.version) >= version_key(first["before"]):
        return kernel
    return replace(kernel, delta_prefill={"default": float(first["delta_prefill"])})


def _families(prefix: str, found: Mapping[str, Array | float]) -> dict[str, Array | float]:
    """Values of one quantity: ``default`` for the bare name, a family for a name that ends in one."""
    return {name[len(prefix) + 1 :] or "default": value for name, value in found.items() if name == prefix or name.startswith(f"{prefix}.")}


def fitted_kv(kernel: KvKernel, found: Mapping[str, Array | float]) -> KvKernel:
    """A KV kernel with what a calibration found: ``kv.fp8.layer_s``, and ``kv.fp8.layer_s.trtllm`` for an engine."""
    prefix = f"kv.{kernel.name}."
    changes: dict[str, Any] = {
        each: found[f"{prefix}{each}"] for each in ("phi", "phi_narrow", "layer_s", "prefill") if f"{prefix}{each}" in found
    }
    engines = {name.removeprefix(f"{prefix}layer_s."): value for name, value in found.items() if name.startswith(f"{prefix}layer_s.")}
    if engines:
        changes["layer_s_by_engine"] = {**kernel.layer_s_by_engine, **engines}
    return replace(kernel, **changes) if changes else kernel


def runs_on(kernel: WeightKernel, device: Device) -> bool:
    """Whether the device has what the kernel family needs."""
    if kernel.min_capability is not None and (cuda_capability(device) or 0) < kernel.min_capability:
        return False
    if kernel.needs is not None:
        return kernel.needs in device.native_formats and kernel.compute in device.matmul_flops
    if kernel.weight_only is not None:
        return kernel.weight_only in device.weight_only_formats or kernel.weight_only in device.native_formats
    return True


def on_device(name: str, device: Device) -> WeightKernel:
    """The kernel family that runs a format on a device: its own, or the one that computes in 16 bits."""
    kernel = weight_kernel(name)
    return kernel if runs_on(kernel, device) else weight_kernel(WITHOUT_UNIT.get(name, name))


def sixteen_bit(model: Model, engine: Engine) -> str:
    """The 16-bit format computed in: the engine's ``dtype`` where set, else the model's."""
    asked = dtype_named(engine.dtype)
    return "fp16" if (model.dtype if asked == "auto" else asked) == "float16" else "bf16"


def as_stored(kernel: WeightKernel, model: Model, name: str) -> WeightKernel:
    """The kernel of a tensor class at the bytes its files hold, where they were read: scales, mixtures of types and padding included."""
    count, size = getattr(model.parameters, name), model.stored_bytes.get(name)
    return replace(kernel, bytes=size / count) if size and count else kernel


def weight_kernels(model: Model, engine: Engine, device: Device) -> dict[str, WeightKernel]:
    """The kernel family of each tensor class, from the engine's setting and what the checkpoint stores.

    A class that runs in the format it is stored in has the bytes of its files, where those were read.
    """
    stored = _stored_kernels(model, engine, device)
    classes = _set_kernels(stored, model, engine, device)
    return {name: as_stored(kernel, model, name) if _reads(kernel, stored[name]) else kernel for name, kernel in classes.items()}


def _stored_kernels(model: Model, engine: Engine, device: Device) -> dict[str, WeightKernel]:
    classes = {name: weight_kernel(sixteen_bit(model, engine)) for name in TENSOR_CLASSES}
    for name, stored in model.stored.items():
        family = BY_STORED.get(stored, stored)
        classes[name] = on_device(engine.checkpoint_kernels.get(family, family), device)
    return classes


def _reads(kernel: WeightKernel, stored: WeightKernel) -> bool:
    """Whether a kernel reads weights as they are stored: one family, or two that read one format."""
    return BY_KERNEL.get(kernel.name, kernel.name) == BY_KERNEL.get(stored.name, stored.name)


def _set_kernels(stored: Mapping[str, WeightKernel], model: Model, engine: Engine, device: Device) -> dict[str, WeightKernel]:
    classes = dict(stored)
    if engine.quantization is None:
        return classes
    wanted = quantization_named(engine.quantization)
    if wanted is None:
        if not model.stored_bytes and all(kernel.name in SIXTEEN_BIT for kernel in classes.values()):
            raise NotModelledError("quantization_without_format", quantization=engine.quantization, name=model.name)
        return classes
    kernel = on_device(wanted, device)
    for name in classes if kernel.all_classes or wanted in SIXTEEN_BIT else QUANTISED_CLASSES:
        if name == "attention" and kernel.keeps_attention_of_moe and model.experts is not None:
            continue
        classes[name] = kernel
    return classes


def kv_format(model: Model, engine: Engine) -> str:
    """The cache format: as set, else the checkpoint's scheme, else 16 bit."""
    if engine.kv_cache_dtype != "auto":
        return kv_named(engine.kv_cache_dtype)
    if model.kv_scheme is not None and model.kv_scheme not in kv_names():
        raise NotModelledError("checkpoint_kv_not_modelled", name=model.name, written=model.kv_scheme, known=", ".join(kv_names()))
    return model.kv_scheme or "bf16"


def matmul_rate(device: Device, dtype: str) -> float:
    """Dense FLOP/s of the dtype computed in; 16-bit formats stand in for each other."""
    rates = device.matmul_flops
    if dtype in rates:
        return rates[dtype]
    for other in SIXTEEN_BIT:
        if other in rates:
            return rates[other]
    raise NotModelledError("device_without_rate", device=device.name)
