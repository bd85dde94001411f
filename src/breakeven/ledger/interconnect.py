"""Interconnect ledger: what one device sends for a row, by kind, over its link and over the network."""

from __future__ import annotations

from math import ceil, log2

from breakeven.stats import Array


def allreduce_bytes_per_row(hidden: int, tensor_parallel: int) -> float:
    """Bytes one device sends for one all-reduce of one row in 16 bit: 2·2·h·(TP − 1)/TP (reduce-scatter and all-gather).

    >>> allreduce_bytes_per_row(8192, 4)
    24576.0
    """
    return 4.0 * hidden * (tensor_parallel - 1) / tensor_parallel


def latency_s(layers: float, tensor_parallel: int, pipeline_parallel: int, allreduce_s: Array | float) -> Array | float:
    """Time of a step's messages of no length: 2·L·t_ar·log2(TP), and a hop between stages."""
    return allreduce_s * (2.0 * layers * log2(tensor_parallel) + (pipeline_parallel - 1))


def alltoall_bytes_per_row(hidden: int, hit: float, dispatch_bytes: float, tensor_parallel: int) -> float:
    """Bytes one device sends for one row and mixture layer: hit·h·(w_d + 2)/TP, there at the dispatch's width and back in 16 bit.

    The TP devices of a rank hold the same rows and send a part of them each. DeepSeek-V3 sends 8 bits there (report 2024, section 3.3).

    >>> round(alltoall_bytes_per_row(7168, 7.86, 1.03, 1))
    170712
    """
    return hit * hidden * (dispatch_bytes + 2.0) / tensor_parallel


def gather_bytes_per_row(hidden: int, ranks: int) -> float:
    """Bytes one device sends where rows are gathered from all ranks and sums scattered back, in 16 bit: 2·2·h·(R − 1) for a row of its own.

    >>> gather_bytes_per_row(4096, 4)
    49152.0
    """
    return 4.0 * hidden * (ranks - 1)


def context_bytes_per_row(heads: float, key_width: int, value_width: int, decode_context: int, prefill_context: int) -> float:
    """Bytes one device sends for one row and layer whose cache is dealt out: queries gathered, partial outputs merged, in 16 bit.

    heads·(DCP − 1)·2·(k + v) within the group, and heads·2·(PCP − 1)/PCP·2·v where each of the others has the same heads; beside each
    head's output its log-sum-exp in 32 bits. The merge is exact (Dao 2023, flash decoding).
    """
    beside = 4.0
    within = heads * (decode_context - 1) * (2.0 * (key_width + value_width) + beside)
    across = heads * 2.0 * (prefill_context - 1) / prefill_context * (2.0 * value_width + beside)
    return within + across


def over_network(sent: float, group: int, domain: int | None, members: int) -> float:
    """Bytes of a ring over ``group`` devices that leave the link's domain, of which ``members`` in each share the way out.

    >>> over_network(16e3, 8, 8, 8), over_network(16e3, 16, 8, 8)
    (0.0, 2000.0)
    """
    return 0.0 if domain is None or group <= domain else sent / max(1, members)


def beyond_domain(devices: int, domain: int | None) -> float:
    """Share of a device's partners, all as likely, that lie beyond the link's domain: (G − D)/(G − 1).

    >>> beyond_domain(8, 8), round(beyond_domain(16, 8), 3), beyond_domain(16, None)
    (0.0, 0.533, 0.0)
    """
    return 0.0 if domain is None or devices <= domain else (devices - domain) / (devices - 1)


def hops_between_nodes(devices: int, pipeline_parallel: int, domain: int | None) -> int:
    """Hops between stages that cross from one domain to the next: ⌈devices/D⌉ − 1, and no more than there are hops."""
    return 0 if domain is None else min(pipeline_parallel - 1, ceil(devices / domain) - 1)
