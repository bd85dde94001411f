"""The prefix hit rate from a trace's own prompts: its reuse curve, looked up by every arm at the capacity it leaves over."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from breakeven.messages import Message
from breakeven.reuse.dealing import dealt
from breakeven.reuse.hit_rates import ReuseCurve, curve, hit_rate
from breakeven.reuse.identity import blocks_of, chains
from breakeven.reuse.sampling import MOST_BLOCKS, curve_of
from breakeven.spec.deployment import Deployment
from breakeven.spec.parallel import layout
from breakeven.spec.workload import ReuseRates
from breakeven.trace import Trace
from breakeven.traffic.left_over import hit_rate_of

POINTS = 97


def with_hits(d: Deployment, trace: Trace | None) -> tuple[Deployment, tuple[Message, ...]]:
    """The deployment with the reuse curve of its trace, and the hit rate it comes to there; as it is where a hit rate is stated.

    Replicas and ranks have caches of their own, to which requests are taken to be dealt in turn; a sample of blocks cannot be dealt.
    """
    w = d.workload
    known = trace is not None and (trace.hash_ids is not None or trace.prompt_ids is not None)
    if trace is None or not known or w.prefix_hit_rate is not None or d.disaggregation is not None:
        return d, ()
    caches = d.replicas * layout(d.model, d.engine).ranks
    sampled = int(blocks_of(trace, d.engine.block_size, False, False).counts.sum()) > MOST_BLOCKS
    if caches > 1 and sampled:
        return d, (Message("warning.hits_of_replicas", {"path": trace.name}),)
    found = curve_of(trace, d.engine.block_size) if sampled else curve(dealt(chains(trace, d.engine.block_size), caches))
    traced = replace(d, workload=replace(w, prefix_hit_rate=0.0, reuse=rates(found)))
    # Solved to its end here: what every evaluation adds to it is a few steps from there.
    hits = hit_rate_of(replace(d, engine=replace(d.engine, enable_prefix_caching=True)), found).hit_rate
    provenance = {**d.provenance, "workload.prefix_hit_rate": "file"}
    said = Message("warning.hits_of_trace", {"path": trace.name, "hits": hits, "most": found.unbounded})
    return replace(traced, workload=replace(traced.workload, prefix_hit_rate=hits), provenance=provenance), (*found.notes, said)


def rates(found: ReuseCurve) -> ReuseRates:
    """The curve at capacities evenly spaced in their logarithm, from none to that beyond which nothing is gained."""
    most = float(found.unique * found.block_tokens)
    capacities = np.concatenate(([0.0], np.unique(np.geomspace(found.block_tokens, max(most, found.block_tokens), POINTS).round())))
    hits = np.maximum.accumulate(hit_rate(found, capacities))
    return ReuseRates(capacity_tokens=tuple(float(x) for x in capacities), hit_rates=tuple(float(x) for x in hits))
