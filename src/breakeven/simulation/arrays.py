"""What the simulation's kernel is given and what it gives back: plain arrays and numbers, in seconds and tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bytes = NDArray[np.int8]
Router = Literal["round_robin", "least_loaded", "prefix_aware"]
Policy = Literal["fcfs", "priority"]
WAITING, RUNNING, DONE, REJECTED = 0, 1, 2, 3
"""Where a request stands when the simulation ends. Rejected: it can never fit the pool, or is longer than ``max_model_len``."""


@dataclass(frozen=True, kw_only=True)
class Costs:
    """The ledgers' coefficients of one replica, as numbers: seconds of every step that can occur."""

    contexts: Floats
    """Tokens of mean context at which steps are tabulated, ascending from 0; straight between them (exact for full attention)."""
    decode_s: Floats
    """Seconds of a decode step, or a whole round of speculation, of b sequences: shape (cap + 1, contexts); row 0 is 0."""
    speculation_s: Floats
    """What of ``decode_s`` is speculation's: drafting and the verification's extra rows; zeros without. The same shape."""
    token_s: float
    """Linear work and communication of one prompt token that rides with a decode step, ξ included."""
    attention_s: Floats
    """Attention of one prompt token at each position of ``contexts``, ξ included; straight between them."""
    alone_token_s: float
    """The same linear work in a step without decoding sequences (no ξ)."""
    alone_attention_s: Floats
    alone_read_s: float
    """Weight reads of such a step: its linear time is smoothmax₄(tokens·alone_token_s, alone_read_s)."""
    alone_fixed_s: float
    """Launches and messages of such a step."""
    start_s: float
    """What passes before an arrival reaches the scheduler, outside the device."""
    ranks: int = 1
    """Ranks of attention data parallelism: prompts of one step are dealt out to them, ``token_s`` and attention being of the fullest."""
    expert_token_s: float = 0.0
    """Several ranks: the experts' time of one prompt token, whichever rank has it (else in ``token_s``)."""
    alone_expert_token_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Engine:
    """How one replica schedules."""

    cap: int
    """Most sequences running."""
    token_budget: int
    """Rows a step may hold: decodes first, then prompt chunks."""
    rows: int
    """Rows of a decoding sequence in a step: 1, or k + 1."""
    blocks: int
    """Blocks of the KV pool."""
    block_tokens: int
    reserve_whole: bool = False
    """Whether admission takes room for prompt and output at once (TensorRT-LLM), so that nothing is preempted."""
    mixes_prompts: bool = True
    """Chunks ride with decode steps; else a step holds prompts or decodes, prompts first, each whole."""
    prefix_cache: bool = False
    sequence_blocks: int = 0
    """Blocks' worth of memory that a running sequence takes beside its tokens (states of constant size)."""
    max_model_len: int = 0
    """Tokens of prompt and output beyond which a request is refused; 0 for no limit."""
    static_batch: bool = False
    """Static batching: ``cap`` requests begin together and the next begin when the last of them ends."""
    policy: Policy = "fcfs"


@dataclass(frozen=True, kw_only=True)
class Requests:
    """What arrives, in order of arrival; the arrays are as long as there are requests."""

    arrival_s: Floats
    """In a closed loop ignored: the next request begins when a client is free."""
    input_tokens: Ints
    output_tokens: Ints
    priority: Ints | None = None
    """Lower first."""
    chain_ids: Ints | None = None
    """Chained ids of the blocks of prompts (:mod:`breakeven.reuse`): dense from 0, equal where the whole prefix is."""
    chain_offsets: Ints | None = None
    chain_tokens: int = 0
    """Tokens that a chained id stands for; a multiple of the pool's blocks."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """How the requests are offered."""

    clients: int = 0
    """Clients of a closed loop, each with one request in flight; 0 for an open loop."""
    replicas: int = 1
    router: Router = "round_robin"
    acceptance: tuple[float, ...] = ()
    """Cumulative acceptance by position; a round's tokens are drawn from it, the same for the same seed, request and round."""
    seed: int = 0
    until_s: float = float("inf")
    """Arrivals are offered and steps begun before this; what is left is waiting or running."""
    bins: int = 512
    """Entries of the series over time."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What happened, request by request and over time."""

    state: Bytes
    """WAITING, RUNNING, DONE or REJECTED."""
    replica: NDArray[np.int32]
    arrival_s: Floats
    """As given, or in a closed loop as it came about."""
    start_s: Floats
    """When it was first scheduled; NaN for never."""
    first_s: Floats
    last_s: Floats
    hit_tokens: Ints
    """Prompt tokens taken from the prefix cache at its (last) admission."""
    preemptions: Ints
    emitted: Ints
    """Tokens emitted; of one that is done its output."""
    end_s: float
    steps: int
    prefill_s: float
    """Device time, all replicas: of prompts, of decoding, and what speculation added to it."""
    decode_s: float
    speculation_s: float
    batch_s: Floats
    """Seconds (all replicas) during which b sequences decoded together: entry b; entry 0 is idle or prompts alone."""
    batch_tokens: Floats
    """Tokens emitted in steps of b sequences."""
    bin_s: float
    running: Floats
    """Time-weighted means over each bin of the run, summed over replicas: sequences running …"""
    waiting: Floats
    kv_blocks: Floats
    """… blocks held by running sequences …"""
    cached_blocks: Floats
    """… and blocks that only the prefix cache holds."""
    lookups: int
    """Prompt tokens looked up and found, first admissions only."""
    hits: int
    faults: int = 0
    """Boundaries at which the blocks did not add up (looked at in an audit only)."""
