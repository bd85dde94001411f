"""Two pools: prompts have devices of their own, and their cache is sent to the devices that decode."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from breakeven.demand import Demand, shape
from breakeven.draws import Draws
from breakeven.efficiencies import drawn_range, prior
from breakeven.ledger import memory, prefill
from breakeven.ledger.room import room
from breakeven.ledger.shard import Shard, network_bytes_per_s, shard
from breakeven.pages import state_element_bytes
from breakeven.spec.deployment import Deployment
from breakeven.spec.disaggregation import prefill_engine
from breakeven.stats import Array, Flags
from breakeven.steady import places_wait


@dataclass(frozen=True, kw_only=True)
class Pool:
    """The prefill pool as numbers: what a prompt takes there, how many it has in work, and what sending its cache takes."""

    deployment: Deployment
    """The pool as a deployment of its own."""
    shard: Shard
    alone_s: Array | float
    """A prompt that runs alone."""
    busy_s: Array | float
    """A prompt where all ranks have one."""
    servers: int
    """Prompts in work at once: replicas, times their ranks and stages."""
    variability: float
    """(1 + C²)/2, C the deviation of a prompt's time over its mean: 1/2 for prompts of one length."""
    transfer_bytes: Array | float
    transfer_bytes_per_s: Array | float
    pairs: int
    """Transfers at a time: ranks of the pool that has fewer of them."""
    exposed_share: Array | float
    """What of a transfer is not hidden behind the computing of its prompt."""
    exposed_s: Array | float
    """What a first token waits for the transfer."""
    max_rate: Array | float
    """Requests a second that the pool and the link keep up with."""
    fits: Flags
    """Whether the weights and one prompt fit a replica of the pool."""

    @property
    def transfer_s(self) -> Array | float:
        """Seconds that sending the cache of one prompt takes."""
        return self.transfer_bytes / self.transfer_bytes_per_s

    def wait_s(self, rate: Array) -> Array:
        """Mean wait of Poisson arrivals for a place: that of M/M/c times (1 + C²)/2 (exact for one place: Pollaczek and Khinchine)."""
        busy = rate * self.busy_s / self.servers
        wait = places_wait(np.minimum(busy, 1 - 1e-9), np.asarray(float(self.servers)), np.asarray(self.busy_s)) * self.variability
        return np.where(rate >= self.max_rate, np.inf, wait)

    def queue_s(self, prompts: Array, replicas: int) -> Array:
        """Mean wait behind ``prompts`` of the clients of one of the decode pool's replicas, which share the places evenly."""
        places = self.servers / replicas
        return np.asarray(np.maximum(prompts + 1.0 - places, 0.0) / places * self.busy_s * self.variability)


def prefill_side(d: Deployment) -> Deployment:
    """The prefill pool as a deployment of its own: the same model, workload and formats, other devices and another split."""
    if d.disaggregation is None:
        return d
    given = d.disaggregation.prefill
    engine = prefill_engine(d.engine, given)
    hardware = replace(d.hardware, device=given.device or d.hardware.device, count=given.count)
    return replace(d, engine=engine, hardware=hardware, disaggregation=None)


def transfer_bytes(s: Shard, prompt_tokens: Array | float, element_bytes: float) -> Array | float:
    """Bytes of the cache of one prompt, hits included, and its states, each head once: K(I) + S at TP 1."""
    return memory.kv_bytes(s.model, s.kv, prompt_tokens) + memory.state_bytes(s.model, element_bytes)


def transfer_rate(d: Deployment, s: Shard, sender: Shard, draws: Draws) -> Array | float:
    """Bytes a second between a rank of each pool: as stated, else the network of the fewer devices times what is achieved of it."""
    if d.disaggregation is not None and d.disaggregation.transfer_bytes_per_s is not None:
        return d.disaggregation.transfer_bytes_per_s
    lanes = min(one.layout.devices // one.layout.ranks for one in (s, sender))
    return lanes * network_bytes_per_s(d, draws) * prior(d.engine, d.calibration).network_efficiency


def exposed_s(transfer_s: Array | float, prompt_s: Array | float, share: Array | float) -> Array | float:
    """What the transfer adds to the first token: the share that is not overlapped, and at least what is longer than the prompt.

    >>> round(float(exposed_s(0.1, 1.0, 0.2)), 6), float(exposed_s(3.0, 1.0, 0.2))
    (0.02, 2.0)
    """
    return np.maximum(share * transfer_s, transfer_s - prompt_s)


def pool(d: Deployment, s: Shard, load: Demand, factor: Array | float, draws: Draws) -> Pool | None:
    """The prefill pool of a deployment; none where it has one pool, or the workload states no prompt. ``s`` is the decode pool's."""
    if d.disaggregation is None or load.input_tokens is None:
        return None
    side, e = prefill_side(d), prior(d.engine, d.calibration)
    sender = shard(side, draws)
    new = load.new_tokens * load.input_tokens / load.attention_input
    alone = factor * prefill.alone_s(sender, e, new, load.input_tokens)
    busy = factor * prefill.alone_s(sender, e, new, load.input_tokens, sender.layout.ranks)
    sent = transfer_bytes(s, load.input_tokens, state_element_bytes(d.model, d.engine))
    rate = transfer_rate(d, s, sender, draws)
    servers = side.replicas * sender.layout.ranks * sender.pipeline_parallel
    pairs = min(side.replicas * sender.layout.ranks, d.replicas * s.layout.ranks)
    _, _, square = shape(d.workload)
    share = draws.log_uniform("transfer_exposed", *drawn_range("parallel", "transfer_exposed"))
    return Pool(
        deployment=side,
        shard=sender,
        alone_s=alone,
        busy_s=busy,
        servers=servers,
        variability=(1.0 + max(square - 1.0, 0.0)) / 2.0,
        transfer_bytes=sent,
        transfer_bytes_per_s=rate,
        pairs=pairs,
        exposed_share=share,
        exposed_s=exposed_s(sent / rate, alone, share),
        max_rate=np.minimum(servers / busy, pairs * rate / sent),
        fits=np.asarray(np.asarray(room(side, sender, load.input_tokens).fits_sequences) >= 1.0),
    )
