"""A running engine that is to be driven: what the user says of it, and what it is found to be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from breakeven.driving.dialect import Dialect
from breakeven.driving.grid import Room
from breakeven.endpoint import Endpoint
from breakeven.messages import Message
from breakeven.spec.deployment import Deployment


@dataclass(frozen=True, kw_only=True)
class StatedEngine:
    """What is said of a running engine beside what it tells itself."""

    flags: Mapping[str, str] = field(default_factory=dict)
    """Of a deployment: ``model``, ``hardware``, ``engine``, ``kv_cache_dtype`` …"""
    launch: str | None = None
    """The command that started it."""
    model_name: str | None = None
    """What requests call the model."""


@dataclass(frozen=True, kw_only=True)
class RunningEngine:
    """A running engine, ready to be driven."""

    server: Endpoint
    address: str
    deployment: Deployment
    dialect: Dialect
    model: str
    """What requests call the model."""
    room: Room
    stated: StatedEngine = field(default_factory=StatedEngine)
    folders: Sequence[Path | str] = ()
    """Of the user's own catalogue."""
    warnings: tuple[Message, ...] = ()

    @property
    def placed(self) -> bool:
        """Whether streams are told their slots, so that they are neighbours: of one engine that has told how many it has."""
        told = self.deployment.provenance.get("engine.max_num_seqs") != "assumed"
        return self.dialect.places and self.deployment.replicas == 1 and told
