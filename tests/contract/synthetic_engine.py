"""An engine made up step by step, whose batch is known at every moment: its counters are exact, its gauges are what stands at a reading."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from breakeven.adapter import QUANTITIES, Alias
from breakeven.observation.timeline import Part, Series, Timeline

BOUNDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, inf)
LENGTHS = (10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, inf)
GAUGES = ("running", "waiting", "kv_usage")


@dataclass
class Request:
    """One request: when it came, its prompt, the tokens it wants, and what it got so far."""

    came: float
    prompt: int
    output: int
    made: int = 0
    last: float = 0.0
    first: float = 0.0


@dataclass
class Engine:
    """Continuous batching: every step gives each running sequence ``emits`` tokens; a new one is read in the step it begins with."""

    step_s: Callable[[int], float] = lambda batch: 0.02 + 0.001 * batch
    cap: int = 10**6
    emits: int = 1
    pool_tokens: float = 100_000.0
    now: float = 0.0
    waiting: list[Request] = field(default_factory=list)
    running: list[Request] = field(default_factory=list)
    counters: dict[tuple[str, Part, float | None], float] = field(default_factory=dict)
    decoding_s: float = 0.0
    """∫ sequences that decode dt: the truth that estimators are held to."""

    def count(self, quantity: str, value: float = 1.0) -> None:
        self.counters[quantity, "", None] = self.counters.get((quantity, "", None), 0.0) + value

    def observe(self, quantity: str, value: float, bounds: Sequence[float] = BOUNDS) -> None:
        for part, more in (("sum", value), ("count", 1.0)):
            self.counters[quantity, part, None] = self.counters.get((quantity, part, None), 0.0) + more  # type: ignore[index]
        for bound in bounds:
            key: tuple[str, Part, float | None] = (quantity, "bucket", bound)
            self.counters[key] = self.counters.get(key, 0.0) + (value <= bound)

    def step(self) -> None:
        decoding = list(self.running)
        while self.waiting and len(self.running) < self.cap:
            self.running.append(self.waiting.pop(0))
        taken = self.step_s(len(self.running))
        self.now += taken
        self.decoding_s += len(decoding) * taken
        self.count("steps")
        for one in list(self.running):
            self._serve(one, begins=one not in decoding)

    def _serve(self, one: Request, *, begins: bool) -> None:
        more = 1 if begins else min(self.emits, one.output - one.made)
        if begins:
            one.first = self.now
            self.count("prompt_tokens", one.prompt)
            self.observe("ttft", self.now - one.came)
        else:
            self.observe("itl", self.now - one.last)
        one.made += more
        one.last = self.now
        self.count("output_tokens", more)
        if one.made >= one.output:
            self.running.remove(one)
            self._end(one)

    def _end(self, one: Request) -> None:
        self.count("requests_finished")
        self.observe("e2e", self.now - one.came)
        self.observe("decode_time", self.now - one.first)
        if one.output > 1:
            self.observe("tpot", (self.now - one.first) / (one.output - 1))
        self.observe("input_tokens", one.prompt, LENGTHS)
        self.observe("generated_tokens", one.output, LENGTHS)

    def gauges(self) -> dict[str, float]:
        held = sum(one.prompt + one.made for one in self.running)
        return {"running": len(self.running), "waiting": len(self.waiting), "kv_usage": held / self.pool_tokens}

    def restart(self) -> None:
        self.counters.clear()
        self.running.clear()
        self.waiting.clear()


@dataclass
class Watch:
    """Pages of an engine over time, as a timeline."""

    every_s: float = 1.0
    pages: list[tuple[float, dict[tuple[str, Part, float | None], float]]] = field(default_factory=list)

    def read(self, engine: Engine, at: float) -> None:
        page = dict(engine.counters)
        page.update({(name, "", None): value for name, value in engine.gauges().items()})
        self.pages.append((at, page))

    def series(self, source: str = "http://engine", rank: str = "") -> tuple[Series, ...]:
        keys = dict.fromkeys(key for _, page in self.pages for key in page)
        found = []
        for quantity, part, le in keys:
            told = [(at, page[quantity, part, le]) for at, page in self.pages if (quantity, part, le) in page]
            times, values = (np.array(some, dtype=float) for some in zip(*told, strict=True))
            alias = Alias(family=f"made:{quantity}")
            found.append(Series(quantity=quantity, source=source, rank=rank, part=part, le=le, alias=alias, times=times, values=values))
        assert all(one.quantity in QUANTITIES for one in found)
        return tuple(found)

    def timeline(self, *more: Series) -> Timeline:
        times = [at for at, _ in self.pages]
        return Timeline(
            engine="vllm",
            series=(*self.series(), *more),
            start_s=times[0],
            end_s=times[-1],
            readings=len(times),
            every_s=self.every_s,
        )


def run(
    engine: Engine, requests: Sequence[Request], until: float, *, every_s: float = 1.0, warm: float = 0.0, restarts: Sequence[float] = ()
) -> Watch:
    """Serve requests as they come, reading every so many seconds from ``warm`` on; at a restart all that runs is lost."""
    watch, coming, due = Watch(every_s=every_s), sorted(requests, key=lambda one: one.came), warm
    restarting = sorted(restarts)
    while due <= until + 1e-9:
        later = min([due, *(one.came for one in coming[:1]), *restarting[:1]])
        if engine.now < later and not engine.running and not engine.waiting:
            engine.now = later
        while coming and coming[0].came <= engine.now:
            engine.waiting.append(coming.pop(0))
        if restarting and restarting[0] <= engine.now:
            restarting.pop(0)
            engine.restart()
        while due <= engine.now + 1e-12 and due <= until + 1e-9:
            watch.read(engine, due)
            due += every_s
        if engine.running or engine.waiting:
            engine.step()
    return watch
