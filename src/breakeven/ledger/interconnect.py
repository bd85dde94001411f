"""Interconnect ledger: what tensor and pipeline parallelism send."""

from __future__ import annotations

from math import log2


def allreduce_bytes_per_row(hidden: int, tensor_parallel: int) -> float:
    """Bytes one device sends for one all-reduce of one row in 16 bit: 2·2·h·(TP − 1)/TP (reduce-scatter and all-gather).

    >>> allreduce_bytes_per_row(8192, 4)
    24576.0
    """
    return 4.0 * hidden * (tensor_parallel - 1) / tensor_parallel


def bytes_per_row(layers: int, hidden: int, tensor_parallel: int, pipeline_parallel: int = 1) -> float:
    """Bytes one device sends for one row of a step: two all-reduces a layer, one hop between stages."""
    return 2.0 * layers * allreduce_bytes_per_row(hidden, tensor_parallel) + 2.0 * hidden * (pipeline_parallel - 1)


def latency_s(layers: int, tensor_parallel: int, pipeline_parallel: int, allreduce_s: float) -> float:
    """Time of a step's messages of no length: 2·L·t_ar·log2(TP), and a hop between stages."""
    return allreduce_s * (2.0 * layers * log2(tensor_parallel) + (pipeline_parallel - 1))
