"""A device probed: bandwidth of memory, rates of matrix products and of the link, each within its seconds and its share of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Literal

from breakeven.probing.backend import Backend, Work
from breakeven.probing.machine import Machine
from breakeven.probing.sampling import Clock, Sampled, sampled

Quantity = Literal["read", "triad", "product", "link"]
LEAST_BYTES, MOST_BYTES = 2**26, 2**30
BEYOND_CACHE = 8
"""A working set is so many times the last cache: less than an eighth of it can be found there."""
PART_OF_FREE = 8
"""And no more than this part of the memory that is free."""
SIZES = (512, 1024, 2048, 4096, 8192)
BUDGET_S = 20.0
"""Of all works together; each has the same part of it, and a product stops growing where the next size would not fit into its own."""
BUSY = 0.5
"""Processes that want to run, for each core, from which a figure says more of them than of the machine."""
GROWTH = 8.0
"""Twice the size is eight times the work."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One rate that was reached: bytes or FLOP a second."""

    quantity: Quantity
    form: str
    """Of a product: what was multiplied."""
    size: int
    """Bytes of the working set; rows of the matrices."""
    best: float
    median: float
    spread: float
    repeats: int


@dataclass(frozen=True, kw_only=True)
class Probed:
    """What a device reached, and on what it was measured."""

    machine: Machine
    backend: Backend
    figures: tuple[Figure, ...]
    seconds: float
    cached: bool
    """Whether memory had no room for a working set well beyond the cache: then the bandwidth is partly the cache's."""

    def best(self, quantity: Quantity, form: str = "") -> Figure | None:
        """The highest rate of a kind; of bandwidths that of the largest working set."""
        of = [one for one in self.figures if one.quantity == quantity and one.form == form]
        return max(of, key=lambda one: one.best if quantity == "product" else one.size) if of else None

    @property
    def disturbed(self) -> bool:
        """Whether so much else was running that the figures say more of that than of the machine."""
        load = self.machine.load
        return self.cached or (load is not None and load[0] > BUSY * self.machine.cores)

    @property
    def bandwidth(self) -> float:
        """Bytes a second read from memory: of read and triad the faster, as each is at most what the memory gives."""
        return max(figure.best for figure in self.figures if figure.quantity in ("read", "triad"))


def probed(
    backend: Backend, machine: Machine, *, budget_s: float = BUDGET_S, sizes: tuple[int, ...] = SIZES, clock: Clock = perf_counter
) -> Probed:
    """A device measured within a budget of seconds."""
    began = clock()
    part = budget_s / (2 + len(backend.formats) + (backend.copy is not None))
    room = _room(backend)
    figures = [_stream(backend, "read", room, part, clock), _stream(backend, "triad", room, part, clock)]
    for form in backend.formats:
        figures += _products(backend, form, sizes, part, clock)
    if backend.copy is not None:
        figures.append(_figure("link", "", room, room, sampled(backend.copy(room), backend.wait, part, clock)))
    cached = room < 2 * backend.cache_bytes
    return Probed(machine=machine, backend=backend, figures=tuple(figures), seconds=clock() - began, cached=cached)


def _room(backend: Backend) -> int:
    """Bytes of a working set."""
    wanted = min(max(LEAST_BYTES, BEYOND_CACHE * backend.cache_bytes), MOST_BYTES)
    return int(max(min(wanted, backend.free_bytes / PART_OF_FREE), 2**20))


def _stream(backend: Backend, name: Literal["read", "triad"], size: int, budget_s: float, clock: Clock) -> Figure:
    work: Callable[[int], Work] = getattr(backend, name)
    return _figure(name, "", size, size, sampled(work(size), backend.wait, budget_s, clock))


def _products(backend: Backend, form: str, sizes: tuple[int, ...], budget_s: float, clock: Clock) -> Iterator[Figure]:
    """Products of rising size while the budget and the memory last."""
    left, longest = budget_s, 0.0
    for size in sizes:
        enough = longest * GROWTH * 5 < left and 3 * 4 * size**2 < backend.free_bytes / PART_OF_FREE
        if longest and not enough:
            return
        began = clock()
        found = sampled(backend.product(size, form), backend.wait, left / 4, clock)
        left, longest = left - (clock() - began), found.median_s
        yield _figure("product", form, size, 2 * size**3, found)


def _figure(quantity: Quantity, form: str, size: int, work: float, found: Sampled) -> Figure:
    """Work over time: 2·n³ FLOP of a product, the bytes of a stream."""
    return Figure(
        quantity=quantity,
        form=form,
        size=size,
        best=work / found.best_s,
        median=work / found.median_s,
        spread=found.spread,
        repeats=found.repeats,
    )
