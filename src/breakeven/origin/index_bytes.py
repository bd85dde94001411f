"""The bytes that the index of a model's weight files says they hold, against those that its configuration makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from breakeven.kernels import BY_STORED, weight_kernel
from breakeven.messages import Message
from breakeven.origin.snapshot import index_file, read_index
from breakeven.spec.model import TENSOR_CLASSES, Model

AGREES = 0.01
LIKELY = 0.10
"""A single format's bytes a parameter are taken from the index within this share of the nominal ones: scales, zeros, padding."""
PLAIN_BYTES = 2
LARGEST_TOTAL = 1e18


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Bytes of the language model as its configuration makes them."""

    plain: float
    """Of the classes in 16 bits."""
    packed: float
    """Of the classes in a format: what the configuration makes them, else at the format's nominal bytes."""
    mtp: float
    tied: float
    """Of a tied head, where files hold a copy of it."""

    @property
    def language(self) -> float:
        """Without MTP layers and copies."""
        return self.plain + self.packed

    @property
    def totals(self) -> tuple[float, ...]:
        """What files may add up to: with and without the MTP layers and a copy of the tied head; at 32 bits, double."""
        all_ = tuple(self.language + mtp + tied for mtp in {0.0, self.mtp} for tied in {0.0, self.tied})
        return all_ if self.packed else (*all_, *(2 * total for total in all_))


def with_index_bytes(model: Model, config: Mapping[str, object], folder: Path) -> Model:
    """The model with what the index beside its configuration says: bytes of a single format, or a warning where the two differ."""
    file = index_file(folder)
    total = None if file is None else _total(read_index(file))
    if total is None:
        return model
    counted = _counted(model)
    measured = None if _has_towers(config) else _of_one_format(model, counted, total)
    if measured is not None:
        said = "from the total_size of the index, beside the classes in 16 bits"
        return replace(model, stored_bytes=measured, sources={**model.sources, "stored": said})
    if min(abs(total - expected) / expected for expected in counted.totals) <= AGREES:
        return model
    values = {"where": str(file), "total": total, "counted": counted.language}
    more = total > counted.language
    return replace(model, remarks=(*model.remarks, Message("warning.index_more" if more else "warning.index_less", values)))


def _total(index: Mapping[str, object]) -> float | None:
    metadata = index.get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    return float(total) if isinstance(total, (int, float)) and not isinstance(total, bool) and 0 < total < LARGEST_TOTAL else None


def _has_towers(config: Mapping[str, object]) -> bool:
    """Whether the configuration has a table for parts that see or hear: their bytes are in the total, and not counted here."""
    return any(word in key for key, value in config.items() if value for word in ("vision", "visual", "image", "audio", "speech"))


def _counted(model: Model) -> Counted:
    counts = {name: getattr(model.parameters, name) for name in TENSOR_CLASSES}
    return Counted(
        plain=float(sum(model.stored_bytes.get(name, PLAIN_BYTES * count) for name, count in counts.items() if name not in model.stored)),
        packed=sum(_packed(model, name) for name in counts if name in model.stored),
        mtp=model.stored_bytes.get(
            "mtp", model.mtp_parameters * (_nominal(next(iter(model.stored.values()))) if model.stored else PLAIN_BYTES)
        ),
        tied=float(PLAIN_BYTES * model.hidden * model.vocabulary) if model.tied else 0.0,
    )


def _packed(model: Model, name: str) -> float:
    """Bytes of a class in a format, before the index is asked."""
    return model.stored_bytes.get(name, _nominal(model.stored[name]) * getattr(model.parameters, name))


def _nominal(stored: str) -> float:
    return weight_kernel(BY_STORED.get(stored, stored)).bytes


def _of_one_format(model: Model, counted: Counted, total: float) -> Mapping[str, float] | None:
    """Bytes of the classes that are stored in the one format there is; None where the total cannot be divided up."""
    if len(set(model.stored.values())) != 1 or model.mtp_parameters or not counted.packed:
        return None
    beside = min((counted.plain, counted.plain + counted.tied), key=lambda plain: abs(total - plain - counted.packed))
    share = (total - beside) / counted.packed
    if abs(share - 1) > LIKELY:
        return None
    return {**model.stored_bytes, **{name: share * _packed(model, name) for name in model.stored}}
