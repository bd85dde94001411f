"""What a device is: sheet numbers, dense, with their sources. Fitted numbers live in calibrations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from breakeven.errors import InputError, NotModelledError

Quantity = Literal["memory", "bandwidth", "compute", "link"]
QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)
CONFIDENCES = ("2 sources", "1 source", "derived only", "recalled")
"""How well a figure is founded, best first; a figure is recalled where nothing was read for it."""


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
    memory_bytes: float | None
    """None where it is the machine's and not the device's: the user states it."""
    bandwidth_bytes_per_s: float
    matmul_flops: Mapping[str, float]
    """Dense FLOP/s (op/s) by dtype computed in: ``bf16``, ``fp16``, ``fp8``, ``int8``, ``fp4``. One missing: not native; all: not known."""
    link_type: str
    link_bytes_per_s: float | None
    """None where no link between devices is known: then a replica is one device."""
    native_formats: tuple[str, ...]
    weight_only_formats: tuple[str, ...]
    unsupported_formats: tuple[str, ...] = ()
    link_domain: int | None = None
    """The most devices that the link joins; beyond them the network carries what is sent. None: not known, no limit is counted."""
    tdp_watts: float | None = None
    price_per_hour_low: float | None = None
    price_per_hour_high: float | None = None
    confidence: str = "2 sources"
    """The weakest of memory, bandwidth and compute."""
    confidence_memory: str = "2 sources"
    confidence_bandwidth: str = "2 sources"
    confidence_compute: str = "2 sources"
    confidence_link: str = "2 sources"
    software_devices: int = 1
    """How many devices the software sees in one: dies of a module."""
    notes: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Value name to where it was read."""

    @property
    def capacity_bytes(self) -> float:
        """The bytes of memory, which have to be known to say what fits."""
        if self.memory_bytes is None:
            raise InputError("device_memory_missing", device=self.name)
        return self.memory_bytes

    def confidence_of(self, quantity: Quantity) -> str:
        """How well founded a quantity is."""
        return {
            "memory": self.confidence_memory,
            "bandwidth": self.confidence_bandwidth,
            "compute": self.confidence_compute,
            "link": self.confidence_link,
        }[quantity]


def with_memory(device: Device, memory_bytes: float) -> Device:
    """The device with the memory that the user states: that of the machine, or what the system leaves to it."""
    sources = {**device.sources, "memory_bytes": "stated by the user"}
    return replace(device, memory_bytes=memory_bytes, confidence_memory=CONFIDENCES[0], sources=sources)


def check_known(device: Device) -> None:
    """Refuse a device of which something is not known that nothing can be judged without."""
    if device.memory_bytes is None:
        raise InputError("device_memory_missing", device=device.name)
    if not device.matmul_flops:
        raise NotModelledError("device_without_rate", device=device.name)


def check_device(device: Device, devices: int) -> None:
    """Refuse a device that is not known well enough to judge ``devices`` of them in one replica."""
    check_known(device)
    if devices > 1 and device.link_bytes_per_s is None:
        raise InputError("device_without_link", device=device.name, count=devices)


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """Devices alike, and how many of them the deployment has in all."""

    device: Device
    count: int = 1
    network_bytes_per_s: float | None = None
    """Bytes a second and direction that the network carries for one device, beyond the link's domain; None takes the prior."""
