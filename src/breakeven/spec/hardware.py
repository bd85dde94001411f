"""What a device is: sheet numbers, dense, with their sources. Fitted numbers live in calibrations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Device:
    """One device as its vendor describes it. Rates are dense peaks; ``link`` is one direction, per device."""

    name: str
    title: str
    vendor: str
    architecture: str
    compute_capability: str
    """``sm_90``, ``gfx942``, ``metal`` …"""
    family: str
    """Class of fitted numbers: ``ampere``, ``ada``, ``hopper``, ``blackwell``, ``cdna``, ``apple``, ``cpu``, ``other``.

    A trailing ``-ws`` marks consumer and workstation cards.
    """
    memory_bytes: float
    bandwidth_bytes_per_s: float
    matmul_flops: Mapping[str, float]
    """Dense FLOP/s (or op/s) by dtype computed in: ``bf16``, ``fp16``, ``fp8``, ``int8``, ``fp4``. Missing: no native rate."""
    link_type: str
    link_bytes_per_s: float
    native_formats: tuple[str, ...]
    weight_only_formats: tuple[str, ...]
    unsupported_formats: tuple[str, ...] = ()
    link_domain: int | None = None
    """The most devices that the link joins; beyond them the network carries what is sent. None: not known, no limit is counted."""
    tdp_watts: float | None = None
    price_per_hour_low: float | None = None
    price_per_hour_high: float | None = None
    confidence: str = "2 sources"
    notes: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Value name to where it was read."""


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """Devices alike, and how many of them the deployment has in all."""

    device: Device
    count: int = 1
    network_bytes_per_s: float | None = None
    """Bytes a second and direction that the network carries for one device, beyond the link's domain; None takes the prior."""
