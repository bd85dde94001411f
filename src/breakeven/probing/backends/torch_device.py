"""A device as torch reaches it: the same works as on the processor, and copies to the next device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from breakeven.probing.backend import Backend, Work

WORD = 4
S = 3.0
FORMATS: Mapping[str, str] = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
CACHE_BYTES = 128 * 2**20
"""Of a device that does not tell its last cache: more than any of NVIDIA's has (H200: 60 MB)."""
LAST_OF_AMD = 256e6
"""Infinity Cache of the MI300 series, behind the L2 that is told (AMD CDNA 3 white paper)."""
FAMILIES: Mapping[tuple[int, int], str] = {(8, 0): "ampere", (8, 6): "ampere", (8, 7): "ampere", (8, 9): "ada", (9, 0): "hopper"}
BLACKWELL = 10


def torch_device(torch: Any, kind: str, *, memory_bytes: float, free_bytes: float, count: int = 1) -> Backend:
    """The first device of a kind (``cuda``, ``xpu``, ``mps``; ``cpu`` is the processor by torch's own kernels)."""
    place = kind if kind in ("cpu", "mps") else f"{kind}:0"
    name, vendor, family, capability, cache = _told(torch, kind)
    return Backend(
        name=f"torch {place}",
        device=name,
        vendor=vendor,
        family=family,
        architecture="",
        compute_capability=capability,
        memory_bytes=memory_bytes,
        free_bytes=free_bytes,
        cache_bytes=cache,
        threads=torch.get_num_threads() if kind == "cpu" else 0,
        formats=tuple(FORMATS),
        read=lambda size: _read(torch, place, size),
        triad=lambda size: _triad(torch, place, size),
        product=lambda size, form: _product(torch, place, size, form),
        wait=_waiting(torch, kind),
        copy=(lambda size: _copy(torch, kind, size)) if count > 1 else None,
        devices=count,
        libraries={"torch": str(torch.__version__)},
    )


def _told(torch: Any, kind: str) -> tuple[str, str, str, str, float]:
    """Name, vendor, family, compute capability and cache of the first device."""
    if kind != "cuda":
        return {"cpu": "CPU", "mps": "Apple GPU"}.get(kind, kind), "other", "apple" if kind == "mps" else "other", "", float(CACHE_BYTES)
    told = torch.cuda.get_device_properties(0)
    amd = getattr(torch.version, "hip", None) is not None
    cache = float(getattr(told, "L2_cache_size", 0) or CACHE_BYTES)
    if amd:
        return told.name, "AMD", "cdna", str(getattr(told, "gcnArchName", "")).partition(":")[0], max(cache, LAST_OF_AMD)
    family = "blackwell" if told.major >= BLACKWELL else FAMILIES.get((told.major, told.minor), "other")
    return told.name, "NVIDIA", family, f"sm_{told.major}{told.minor}", cache


def _waiting(torch: Any, kind: str) -> Work:
    if kind == "cpu":
        return lambda: None
    done: Work = getattr(torch, kind).synchronize
    return done


def _read(torch: Any, place: str, size: int) -> Work:
    values = torch.ones(size // WORD, dtype=torch.float32, device=place)
    total: Work = values.sum
    return total


def _triad(torch: Any, place: str, size: int) -> Work:
    a, b, c = (torch.ones(size // WORD // 3, dtype=torch.float32, device=place) for _ in range(3))
    return lambda: torch.add(b, c, alpha=S, out=a)


def _product(torch: Any, place: str, size: int, form: str) -> Work:
    left, right, out = (torch.full((size, size), 0.5, dtype=getattr(torch, FORMATS[form]), device=place) for _ in range(3))
    return lambda: torch.matmul(left, right, out=out)


def _copy(torch: Any, kind: str, size: int) -> Work:
    """From the first device to the second; the processor stands for both where it is tried without any."""
    places = ("cpu", "cpu") if kind == "cpu" else (f"{kind}:0", f"{kind}:1")
    source, target = (torch.ones(size // WORD, dtype=torch.float32, device=place) for place in places)
    return lambda: target.copy_(source, non_blocking=True)
