"""The wire of a deployment: bytes of a row by kind, and the seconds that rows and messages take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log2

from breakeven.efficiencies import Efficiencies
from breakeven.ledger import experts, interconnect, memory
from breakeven.ledger.shard import Shard
from breakeven.spec.model import Attention
from breakeven.stats import Array

EIGHT_BIT_DISPATCH = 1.0 + 4.0 / 128
"""Bytes of an element sent in 8 bits with a scale for each 128 (DeepSeek-V3 report 2024, section 3.3.2)."""
NARROW = ("fp8", "int8", "fp4")
"""Types that experts compute in and that rows are sent to them in."""


@dataclass(frozen=True, kw_only=True)
class Sent:
    """Bytes one device sends for a row of its own: over its link, and over the network beyond the link's domain."""

    link: float = 0.0
    network: float = 0.0

    @property
    def bytes(self) -> float:
        """Both together: a sum beyond the domain goes within it, across, and within again, one after the other."""
        return self.link + self.network


Wire = Mapping[str, Sent]
"""Kind (``all_reduce``, ``all_to_all``, ``context``, ``pipeline``) to what is sent."""


def wire(s: Shard, *, prompt: bool = False) -> Wire:
    """What a device sends for a row of its rank, in decoding or in a prompt; kinds without bytes are left out."""
    ranks = s.layout.prompt_ranks if prompt else s.layout.ranks
    found = {
        "all_reduce": _all_reduce(s, ranks, prompt),
        "all_to_all": _exchange(s, ranks) if ranks > 1 and s.model.experts is not None else Sent(),
        "context": _keys(s) if prompt else _context(s),
        "pipeline": _pipeline(s),
    }
    return {kind: sent for kind, sent in found.items() if sent.bytes}


def mixture_layers(s: Shard) -> int:
    """Layers that hold a mixture."""
    return s.model.experts.layers if s.model.experts is not None else 0


def dispatch_bytes(s: Shard) -> float:
    """Bytes of an element on its way to an expert: 8 bits and a scale where the experts compute in 8 bits or fewer, else 16 bits."""
    return EIGHT_BIT_DISPATCH if s.kernels["experts"].compute in NARROW else 2.0


def summed_layers(s: Shard, ranks: int) -> float:
    """All-reduces a row takes in the TP group: two a layer, 1.5 in mixture layers whose rows are sent out and come back cut."""
    sent_out = ranks > 1 and s.layout.expert_parallel > 1
    return 2.0 * s.model.launch_layers - (0.5 * mixture_layers(s) if sent_out else 0.0)


def _all_reduce(s: Shard, ranks: int, prompt: bool) -> Sent:
    """Sums over the tensor-parallel group; where decoding repeats rows over PCP, sums of experts over its devices as well."""
    tp, hidden = s.tensor_parallel, s.model.hidden
    members = s.link_domain or 1
    link = summed_layers(s, ranks) * interconnect.allreduce_bytes_per_row(hidden, tp)
    network = interconnect.over_network(link, tp, s.link_domain, members)
    if not prompt and s.layout.prefill_context > 1:
        group = tp * s.layout.prefill_context
        wider = mixture_layers(s) * (interconnect.allreduce_bytes_per_row(hidden, group) - interconnect.allreduce_bytes_per_row(hidden, tp))
        link += wider
        network += interconnect.over_network(wider, group, s.link_domain, members)
    return Sent(link=link, network=network)


def _exchange(s: Shard, ranks: int) -> Sent:
    """Rows to the experts and back: to the devices that hold them, or gathered from all ranks where each holds a part of every expert."""
    layers, hidden, tp, group = mixture_layers(s), s.model.hidden, s.tensor_parallel, s.layout.expert_shards
    if s.layout.expert_parallel > 1 and s.model.experts is not None:
        hit = experts.devices_hit(s.model.experts.top_k, group)
        sent = layers * interconnect.alltoall_bytes_per_row(hidden, hit, dispatch_bytes(s), tp)
        far = interconnect.beyond_domain(group, s.link_domain)
        return Sent(link=sent * (1.0 - far), network=sent * far)
    sent = layers * interconnect.gather_bytes_per_row(hidden, ranks)
    return Sent(link=sent, network=interconnect.over_network(sent, group, s.link_domain, (s.link_domain or 1) // tp))


def _heads(g: Attention, s: Shard) -> float:
    return max(1.0, g.q_heads / s.tensor_parallel)


def _context(s: Shard) -> Sent:
    """Decoding over a cache that is dealt out: queries and partial outputs."""
    dcp, pcp = s.layout.decode_context, s.layout.prefill_context
    if s.layout.cache_shards == 1:
        return Sent()
    sent = sum(
        g.layers * interconnect.context_bytes_per_row(_heads(g, s), g.k_dim, g.latent_rank or g.v_dim or g.k_dim, dcp, pcp)
        for g in s.model.attention
    )
    group = s.tensor_parallel * pcp
    return Sent(link=sent, network=interconnect.over_network(sent, group, s.link_domain, s.link_domain or 1))


def _keys(s: Shard) -> Sent:
    """A prompt cut over PCP devices: each sends the keys and values of its rows to the others."""
    pcp = s.layout.prefill_context
    sent = (pcp - 1) * memory.kv_bytes_per_token(s.model, s.kv, tensor_parallel=s.tensor_parallel)
    group = s.tensor_parallel * pcp
    return Sent(link=sent, network=interconnect.over_network(sent, group, s.link_domain, (s.link_domain or 1) // s.tensor_parallel))


def _pipeline(s: Shard) -> Sent:
    """A row on its way from stage to stage."""
    far = interconnect.hops_between_nodes(s.layout.devices, s.pipeline_parallel, s.link_domain)
    return Sent(link=2.0 * s.model.hidden * (s.pipeline_parallel - 1 - far), network=2.0 * s.model.hidden * far)


def rows_s(s: Shard, e: Efficiencies, rows: Array | float, *, prompt: bool = False) -> Array | float:
    """Seconds that sending so many rows takes: n·link bytes/(link·η_link) + n·network bytes/(network·η_net)."""
    sent = wire(s, prompt=prompt).values()
    link, network = sum(one.link for one in sent), sum(one.network for one in sent)
    seconds = rows * link / (s.link_bytes_per_s * e.link_efficiency) if link else 0.0 * rows
    return seconds + rows * network / (s.network_bytes_per_s * e.network_efficiency) if network else seconds


def message_s(s: Shard, e: Efficiencies, *, prompt: bool = False) -> Array | float:
    """Seconds of a step's messages of no length: all-reduces, two exchanges a mixture layer, two collectives a layer of a dealt cache."""
    found = interconnect.latency_s(s.model.launch_layers, s.tensor_parallel, s.pipeline_parallel, e.allreduce_s)
    ranks = s.layout.prompt_ranks if prompt else s.layout.ranks
    if ranks > 1:
        whole = s.layout.expert_parallel > 1
        found = found + 2.0 * mixture_layers(s) * (e.alltoall_s if whole else e.allreduce_s * log2(ranks))
    shards = s.layout.prefill_context if prompt else s.layout.cache_shards
    if shards > 1:
        found = found + 2.0 * sum(g.layers for g in s.model.attention) * e.allreduce_s * log2(shards)
    return found
