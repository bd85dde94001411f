"""Two entries side by side: each figure of both, the second over the first, and what else differs."""

from __future__ import annotations

from collections.abc import Iterator

from breakeven.catalog_document import CatalogComparison, ComparedValue
from breakeven.compose import Language, figure
from breakeven.kernels import BY_STORED, kv_kernel, weight_kernel
from breakeven.ledger import memory
from breakeven.ledger.compute import active_expert_parameters
from breakeven.messages import say
from breakeven.spec.hardware import Device
from breakeven.spec.model import Model

Figure = tuple[str, str, float | None, float | None]
"""Name, unit, and the value of each."""
LONG = 32_768
STATE_BYTES = {"float32": 4.0}
DEVICE_TRAITS = ("family", "compute_capability", "link_type", "native_formats", "weight_only_formats", "unsupported_formats", "confidence")
MODEL_TRAITS = ("family", "dtype", "stored", "tied", "draft_heads", "confidence")


def compare_devices(first: Device, second: Device, language: Language = "en") -> CatalogComparison:
    """Two devices: memory, bandwidth, rates, ridge points, link, power, price."""
    return _comparison("hardware", first, second, _device_figures(first, second), DEVICE_TRAITS, language)


def compare_models(first: Model, second: Model, language: Language = "en") -> CatalogComparison:
    """Two models: parameters, bytes of weights, cache and states, shape."""
    return _comparison("models", first, second, _model_figures(first, second), MODEL_TRAITS, language)


def _comparison(
    kind: str, first: Device | Model, second: Device | Model, figures: Iterator[Figure], traits: tuple[str, ...], language: Language
) -> CatalogComparison:
    rows = [
        ComparedValue(name=name, title=_title(name, language), unit=unit, values=[figure(a), figure(b)], ratio=figure(_ratio(a, b)))
        for name, unit, a, b in figures
        if a or b
    ]
    for trait in traits:
        values = [_plain(getattr(entry, trait)) for entry in (first, second)]
        if values[0] != values[1]:
            rows.append(ComparedValue(name=trait, title=trait, unit="", values=values, ratio=None))
    return CatalogComparison(kind="hardware" if kind == "hardware" else "models", names=[first.name, second.name], rows=rows)


def _title(name: str, language: Language) -> str:
    """A figure that is worked out has a title; one that is an entry's own is called as it is there."""
    word, _, rest = name.partition(".")
    return (
        say(f"report.compare_{word}", language, format=rest) if word in ("ridge", "active", "weights", "kv", "kv_long", "state") else name
    )


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, dict) else value


def _ratio(first: float | None, second: float | None) -> float | None:
    return second / first if first and second is not None else None


def _device_figures(a: Device, b: Device) -> Iterator[Figure]:
    yield "memory_bytes", "B", a.memory_bytes, b.memory_bytes
    yield "bandwidth_bytes_per_s", "B/s", a.bandwidth_bytes_per_s, b.bandwidth_bytes_per_s
    formats = list(dict.fromkeys([*a.matmul_flops, *b.matmul_flops]))
    for name in formats:
        yield f"matmul_flops.{name}", "FLOP/s", a.matmul_flops.get(name), b.matmul_flops.get(name)
    for name in formats:
        yield f"ridge.{name}", "FLOP/B", ridge_point(a, name), ridge_point(b, name)
    yield "link_bytes_per_s", "B/s", a.link_bytes_per_s, b.link_bytes_per_s
    yield "tdp_watts", "W", a.tdp_watts, b.tdp_watts
    yield "price_per_hour_low", "USD/h", a.price_per_hour_low, b.price_per_hour_low
    yield "price_per_hour_high", "USD/h", a.price_per_hour_high, b.price_per_hour_high


def ridge_point(device: Device, name: str) -> float | None:
    """FLOP for a byte read at which compute takes as long as the memory, at the sheet's rates."""
    rate = device.matmul_flops.get(name)
    return None if rate is None else rate / device.bandwidth_bytes_per_s


def _model_figures(a: Model, b: Model) -> Iterator[Figure]:
    yield "parameters", "", a.parameters.total, b.parameters.total
    yield "active", "", active_parameters(a), active_parameters(b)
    yield "weights", "B", weight_bytes(a), weight_bytes(b)
    cache = kv_kernel("bf16")
    yield "kv", "B", memory.kv_bytes_per_token(a, cache), memory.kv_bytes_per_token(b, cache)
    yield "kv_long", "B", float(memory.kv_bytes(a, cache, LONG)), float(memory.kv_bytes(b, cache, LONG))
    yield "state", "B", state_bytes(a), state_bytes(b)
    for name in ("layers", "hidden", "vocabulary", "max_context", "mtp_layers"):
        yield name, "", getattr(a, name), getattr(b, name)
    for name in ("count", "top_k"):
        yield f"experts.{name}", "", getattr(a.experts, name, None), getattr(b.experts, name, None)


def active_parameters(model: Model) -> float:
    """Parameters that a token uses: all but the experts that it is not routed to."""
    return model.parameters.total - model.parameters.experts + active_expert_parameters(model)


def weight_bytes(model: Model) -> float:
    """Bytes of the weights as the checkpoint stores them, scales included."""
    stored = {name: weight_kernel(BY_STORED.get(written, written)).bytes for name, written in model.stored.items()}
    return sum(count * stored.get(name, 2.0) for name, count in memory.counts_by_class(model).items())


def state_bytes(model: Model) -> float | None:
    """Bytes of constant state of a sequence, in the type that the configuration asks for, else 16 bit."""
    return memory.state_bytes(model, STATE_BYTES.get(model.state_dtype or "", 2.0)) if model.states else None
