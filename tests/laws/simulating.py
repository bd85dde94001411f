"""What the laws of the simulation share: costs of a made-up replica, requests, and the kernel without its compiler."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from functools import cache
from types import ModuleType

import numpy as np

from breakeven import compiled
from breakeven.simulation import kernel
from breakeven.simulation.arrays import Costs, Engine, Requests

CONTEXTS = np.array([0.0, 8.0, 64.0, 256.0, 4096.0])


def costs(cap: int, *, speculation: bool = False, scale: float = 1.0, **fields: object) -> Costs:
    """A step of fixed and per-sequence time and of the cache, bent once; prompts beside it and alone."""
    b = np.arange(cap + 1)[:, None]
    seen = np.minimum(CONTEXTS, 64.0) + CONTEXTS / 4
    decode = scale * np.where(b > 0, 0.01 + 0.0005 * b + 2e-6 * b * seen, 0.0)
    attention = scale * 1e-7 * seen
    given = Costs(
        contexts=CONTEXTS,
        decode_s=decode,
        speculation_s=decode / 4 if speculation else np.zeros_like(decode),
        token_s=scale * 1e-4,
        attention_s=attention,
        alone_token_s=scale * 1.3e-4,
        alone_attention_s=1.3 * attention,
        alone_read_s=scale * 0.004,
        alone_fixed_s=scale * 0.003,
        start_s=0.0,
    )
    return replace(given, **fields)


def constant(cap: int, step_s: float) -> Costs:
    """Steps of one length whatever they hold, and prompts for nothing."""
    flat = np.where(np.arange(cap + 1)[:, None] > 0, step_s, 0.0) + 0.0 * CONTEXTS
    nothing = dict.fromkeys(("token_s", "alone_token_s", "alone_read_s", "alone_fixed_s"), 0.0)
    curves = {"attention_s": 0.0 * CONTEXTS, "alone_attention_s": 0.0 * CONTEXTS}
    return costs(cap, decode_s=flat, **nothing, **curves)


def engine(**fields: object) -> Engine:
    """A small replica with room for everything."""
    return replace(Engine(cap=8, token_budget=64, rows=1, blocks=10_000, block_tokens=4), **fields)


def requests(rate: float, inputs: object, outputs: object, seed: int = 0, **fields: object) -> Requests:
    """Poisson arrivals."""
    outputs = np.asarray(outputs, dtype=np.int64)
    gaps = np.random.default_rng(seed).exponential(1.0 / rate, len(outputs))
    lengths = np.broadcast_to(np.asarray(inputs, dtype=np.int64), outputs.shape)
    return Requests(arrival_s=np.cumsum(gaps), input_tokens=lengths, output_tokens=outputs, **fields)


@cache
def interpreted() -> ModuleType:
    """The kernel's source with nothing compiled."""
    kept = compiled.compiled, compiled.bare, compiled.inlined
    compiled.compiled = compiled.bare = compiled.inlined = lambda function: function
    try:
        spec = importlib.util.spec_from_file_location("interpreted_kernel", kernel.__file__)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    finally:
        compiled.compiled, compiled.bare, compiled.inlined = kept
    return module
