"""The processor: compiled loops over memory on all cores, and the matrix products of numpy's BLAS; 16 bit through torch if present."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from breakeven.probing import streams
from breakeven.probing.backend import Backend, Work
from breakeven.probing.machine import Machine

WORD = 8
S = 3.0


def host(machine: Machine, torch: Any = None) -> Backend:
    """The machine's own processor; ``torch``: the module, where it may multiply in 16 bit."""
    pool = ThreadPoolExecutor(max_workers=machine.cores)
    return Backend(
        name="numpy" if torch is None else "numpy, torch",
        device=machine.processor,
        vendor=machine.vendor,
        family="cpu",
        architecture="",
        compute_capability="",
        memory_bytes=machine.memory_bytes,
        free_bytes=machine.free_bytes,
        cache_bytes=machine.cache_bytes,
        threads=machine.cores,
        formats=("fp32",) if torch is None else ("fp32", "bf16"),
        read=lambda size: _read(pool, machine.cores, size),
        triad=lambda size: _triad(pool, machine.cores, size),
        product=lambda size, form: _product(size, form, torch),
        wait=lambda: None,
        libraries={"numpy": np.__version__} | ({} if torch is None else {"torch": str(torch.__version__)}),
    )


def _all(pool: ThreadPoolExecutor, works: Sequence[Work]) -> Work:
    """All works at once, waited for."""

    def together() -> None:
        for done in [pool.submit(work) for work in works]:
            done.result()

    return together


def _read(pool: ThreadPoolExecutor, threads: int, size: int) -> Work:
    # Written before it is read: pages that nobody wrote to are all one page of zeros.
    parts = [np.arange(size // WORD // threads, dtype=np.int64) for _ in range(threads)]
    return _all(pool, [_of(streams.read, part) for part in parts])


def _of(read: Callable[[Any], object], part: Any) -> Work:
    return lambda: read(part)


def _triad(pool: ThreadPoolExecutor, threads: int, size: int) -> Work:
    length = size // WORD // 3 // threads
    parts = [(np.ones(length), np.ones(length), np.ones(length)) for _ in range(threads)]

    def of(part: tuple[Any, Any, Any]) -> Work:
        return lambda: streams.triad(*part, S)

    return _all(pool, [of(part) for part in parts])


def _product(size: int, form: str, torch: Any) -> Work:
    if form == "bf16":
        left, right = (torch.full((size, size), 0.5, dtype=torch.bfloat16) for _ in range(2))
        return lambda: left @ right
    a, b = (np.full((size, size), 0.5, dtype=np.float32) for _ in range(2))
    out = np.empty_like(a)
    return lambda: np.matmul(a, b, out=out)
