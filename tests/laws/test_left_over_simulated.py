"""The hit rate in what running sequences leave over, against the simulation that follows every block of every request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from breakeven import reuse, traces
from breakeven.simulation.arrays import Load, Requests
from breakeven.simulation.costs import costs_of, engine_of
from breakeven.simulation.kernel import simulate
from breakeven.spec.deployment import Deployment
from breakeven.trace import Trace, arrivals, lengths, make_trace, outputs, request_rate
from breakeven.traffic.left_over import hit_rate_of

Build = Callable[..., Deployment]


def stretched(trace: Trace, longer: int, slower: float) -> Trace:
    """The same prompts with outputs so many times as long, so many times as rare."""
    return make_trace(replace(trace, arrival_s=arrivals(trace) * slower, output_tokens=outputs(trace) * longer))


def simulated(d: Deployment, trace: Trace, chained: reuse.Chains) -> float:
    requests = Requests(
        arrival_s=arrivals(trace),
        input_tokens=trace.input_tokens,
        output_tokens=outputs(trace),
        chain_ids=chained.ids.astype(np.int64),
        chain_offsets=chained.offsets,
        chain_tokens=chained.block_tokens,
    )
    found = simulate(requests, engine_of(d), costs_of(d), Load(replicas=d.replicas))
    return found.hits / found.lookups


@pytest.mark.parametrize(("longer", "slower"), [(1, 1.0), (8, 1.7), (20, 3.0)])
@pytest.mark.parametrize("cache", ["bf16", "fp8"])
@pytest.mark.parametrize(("model", "devices", "engine"), [("llama-3.1-8b", 8, 1), ("llama-3.1-70b", 4, 8)])
def test_it_is_within_a_twentieth_of_the_simulation(
    build: Build, shared: Path, model: str, devices: int, engine: int, cache: str, longer: int, slower: float
) -> None:
    """With short outputs and long ones, and with a batch that takes a hundredth of the pool or nearly all of it."""
    trace = stretched(traces.read(shared / "data/traces/mooncake_conversation.jsonl"), longer, slower)
    moments = lengths(trace)
    d = build(
        model,
        replicas=devices,
        engine={"enable_prefix_caching": True, "tensor_parallel_size": engine, "kv_cache_dtype": cache},
        request_rate=request_rate(trace),
        input_tokens=moments.mean_input,
        output_tokens=moments.mean_output,
        lengths=moments,
    )
    chained = reuse.chains(trace, 512)
    found = hit_rate_of(d, reuse.curve(reuse.dealt(chained, d.replicas)))
    assert found.hit_rate == pytest.approx(simulated(d, trace, chained), rel=0.05)
