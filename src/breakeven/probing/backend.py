"""What can be probed: a place with memory and arithmetic, and the three works by which both are measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

Work = Callable[[], object]
"""Done once for each call; not waited for."""


@dataclass(frozen=True, kw_only=True)
class Backend:
    """One device as a library reaches it."""

    name: str
    """The library and its device: ``numpy``, ``torch cuda:0``."""
    device: str
    """What the device is called by its own system."""
    vendor: str
    family: str
    """Class of fitted numbers, as in a device's entry."""
    architecture: str
    compute_capability: str
    memory_bytes: float
    free_bytes: float
    cache_bytes: float
    """The last cache before memory: what a working set has to leave behind."""
    threads: int
    formats: tuple[str, ...]
    """What matrices are multiplied in: ``fp32``, ``bf16``, ``fp16``."""
    read: Callable[[int], Work]
    """So many bytes read once, and next to nothing written."""
    triad: Callable[[int], Work]
    """a = b + s·c over so many bytes of the three together (McCalpin's STREAM)."""
    product: Callable[[int, str], Work]
    """A product of two square matrices of that size, in a format."""
    wait: Work
    """Until all that was asked for is done."""
    copy: Callable[[int], Work] | None = None
    """So many bytes to the next device of the same kind; None where there is no other."""
    devices: int = 1
    libraries: dict[str, str] = field(default_factory=dict)
    """Names and versions of what did the work."""
