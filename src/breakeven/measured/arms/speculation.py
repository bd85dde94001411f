"""Drafting: no drafts against the row's method, with its acceptance where it is stated and the prior's where it is not."""

from __future__ import annotations

import re
from dataclasses import replace
from math import inf, log

from breakeven.errors import BreakevenError
from breakeven.evaluator import evaluate
from breakeven.measured import speeds, strings
from breakeven.measured.conditions import Arms, base, text
from breakeven.measured.measures import closed
from breakeven.measured.row import Row
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Speculative
from breakeven.spec.workload import Acceptance

BENCHMARK_TOKENS = 500.0
"""Prompt and answer where a row names a benchmark only."""
SPLITS = (1, 2, 4, 8)
BUNDLE = re.compile(r"EAGLE3 steps=(\d+) topk=(\d+) draft_tokens=(\d+); accept_length=([\d.]+)")


def arms(row: Row) -> Arms:
    """Plain decoding against drafting."""
    found = BUNDLE.match(text(row, "lever_setting"))
    if found is None:
        raise strings.refused("method_unknown", written=text(row, "lever_setting"))
    k, topk, nodes, length = int(found[1]), int(found[2]), int(found[3]), float(found[4])
    clients = strings.number(text(row, "batch_or_concurrency"), "clients")
    off = closed(clients, BENCHMARK_TOKENS, BENCHMARK_TOKENS)(base(row, parallelism="TP1"))
    off = nearest_split(off, float(text(row, "value_off")))
    spec = Speculative(method="eagle3", num_speculative_tokens=k, topk=topk, verify_tokens=nodes)
    on = replace(
        off,
        engine=replace(off.engine, speculative=spec),
        workload=replace(off.workload, acceptance=Acceptance(length=length)),
    )
    return Arms(off=off, on=on, speed=speeds.THROUGHPUT, regime="acceptance given", sigma_row="graph")


def split(d: Deployment, tp: int) -> Deployment:
    """The deployment over so many devices."""
    return replace(d, engine=replace(d.engine, tensor_parallel_size=tp), hardware=replace(d.hardware, count=tp))


def nearest_split(d: Deployment, plain: float) -> Deployment:
    """The tensor parallelism whose plain throughput is nearest the row's own, where the row does not say on how many devices it ran."""

    def miss(tp: int) -> float:
        try:
            point = evaluate(split(d, tp))
        except BreakevenError:
            return inf
        return abs(log(float(point.throughput) / plain)) if point.fits else inf

    return split(d, min(SPLITS, key=miss))
