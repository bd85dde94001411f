"""How a serving run was spread over devices, read from labels that four exporters write in four ways."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

NODE = 8
"""Devices of a node."""
WIDEST = 16
"""Above this, one tensor group of a run in one pool is the devices of several workers together."""


@dataclass(frozen=True, kw_only=True)
class Split:
    """Devices and how they are divided; ``total`` where the label can only be the sum over several workers."""

    tensor: int
    data: int = 1
    whole_experts: bool = False
    total: bool = False

    @property
    def devices(self) -> int:
        """Of one replica."""
        return self.tensor * self.data


def split(tensor: int, data: int | None, expert_tensor: int, expert_parallel: int, *, mixture: bool) -> Split | None:
    """The split of a label; None where it makes no sense.

    The labels of tp 64 with experts 8 × 8 are 8 devices; of tp 4, dp 4 with experts 1 × 16 plain TP 4 on 4 devices (runs of the same
    settings written the other way agree to half a per cent). Where the ranks of data are stated, a width that two equal widths of experts
    multiply to counts their splits twice (ids of the same runs say tp 2, ep 2 for 4 with 2 × 2).

    >>> split(64, 1, 8, 8, mixture=True), split(1, 64, 8, 8, mixture=True).data, split(4, 4, 1, 16, mixture=True).devices
    (Split(tensor=8, data=1, whole_experts=True, total=False), 8, 4)
    """
    experts = max(expert_tensor, 1) * max(expert_parallel, 1)
    whole = expert_parallel > 1
    if not mixture:
        return Split(tensor=tensor, total=tensor > WIDEST)
    side = isqrt(experts)
    doubled = data is not None and expert_tensor == expert_parallel == side > 1 and experts in (tensor, data)
    if doubled:
        return Split(tensor=side if experts == tensor else 1, data=side if experts == data else 1, whole_experts=True)
    ranks = data or 1
    if ranks <= 1 and experts in (1, tensor):
        return Split(tensor=tensor, whole_experts=whole, total=tensor > NODE and expert_tensor == tensor)
    if ranks <= 1 and data is None and experts > tensor and experts % tensor == 0:
        return Split(tensor=tensor, data=experts // tensor, whole_experts=whole)
    if tensor == ranks and experts == tensor * ranks:
        return Split(tensor=tensor, whole_experts=whole)
    return Split(tensor=tensor, data=ranks, whole_experts=whole) if tensor * ranks == experts else None
