"""The fields of a row as the normaliser reads them, with what was understood and what was assumed kept to be said back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from breakeven.measured import words
from breakeven.measured.row import NotUnderstood, Row
from breakeven.messages import Message
from breakeven.spec.hardware import Device
from breakeven.spec.model import Model


def refused(key: str, **values: object) -> NotUnderstood:
    """The reason why a row is not answered."""
    return NotUnderstood(Message(f"pair.{key}", values))


@dataclass(frozen=True, kw_only=True)
class RowReading:
    """A row, and its notes as they grow."""

    row: Row
    notes: dict[str, Message] = field(default_factory=dict)
    read: dict[str, Any] = field(default_factory=dict)
    """What was read already."""

    def text(self, column: str) -> str:
        """A field as it is written, empty where it is absent."""
        return self.row.fields.get(column, "").strip()

    def understood(self, name: str, column: str, meaning: object) -> None:
        """Keep what a field was understood as; ``name`` is the kind of field by the normaliser's own word."""
        _, sentence = words.said(name, self.text(column), meaning)
        self.notes[column] = sentence

    def assumed(self, name: str, **values: object) -> None:
        """Keep what the row does not state and was taken."""
        self.notes[f"assumed_{name}"] = Message(f"pair.assumed_{name}", values)

    @property
    def devices(self) -> int | None:
        """Devices as the row counts them; None where it does not."""
        text = self.text("n_gpus")
        return int(text) if text.isdigit() else None

    def device(self) -> Device:
        """The device."""
        if "device" not in self.read:
            self.read["device"] = words.device(self.text("hardware"), self.devices)
            self.understood("device", "hardware", self.read["device"])
        found: Device = self.read["device"]
        return found

    def model(self) -> Model:
        """The model."""
        if "model" not in self.read:
            self.read["model"] = words.model(self.text("model"))
            self.understood("model", "model", self.read["model"])
        found: Model = self.read["model"]
        return found

    def engine(self) -> tuple[str, str]:
        """The class of engine and its version."""
        found = words.engine(self.text("engine"))
        self.understood("engine", "engine", found)
        return found

    def split(self) -> words.Split:
        """How the model lies on the devices; one device where nothing but their number is stated, and it is one."""
        found = words.parallelism(self.text("parallelism"), self.devices)
        self.understood("parallelism", "parallelism", found)
        return found

    def metric(self) -> words.Metric:
        """What was measured."""
        if "metric" not in self.read:
            self.read["metric"] = words.metric(self.text("metric"), self.text("unit"))
            self.understood("metric", "metric", self.read["metric"])
        found: words.Metric = self.read["metric"]
        return found

    def stated(self, column: str) -> bool:
        """Whether a field says anything."""
        text = self.text(column).lower()
        return bool(text) and "not stated" not in text
