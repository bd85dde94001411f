"""The prefill pool of a disaggregated deployment, as files and flags give it: ``disaggregation.prefill`` and the link between pools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from breakeven import catalog
from breakeven.errors import InputError
from breakeven.origin.layers import PREFILL, Table
from breakeven.origin.values import Parser, count, positive, switch, word
from breakeven.spec import parallel
from breakeven.spec.deployment import Provenance
from breakeven.spec.disaggregation import Disaggregation, PrefillPool
from breakeven.spec.model import Model

FIELDS: Final[Mapping[str, Parser]] = {
    "count": count,
    "tensor_parallel_size": count,
    "pipeline_parallel_size": count,
    "data_parallel_size": count,
    "enable_expert_parallel": switch,
    "prefill_context_parallel_size": count,
}


def disaggregation_of(merged: Table, model: Model, dirs: Sequence[Path], provenance: dict[str, Provenance]) -> Disaggregation | None:
    """The pools, where a prefill pool is given; a tensor parallel size that is not stated takes all that the sizes stated leave."""
    given = {path: value for path, value in merged.items() if path.startswith("disaggregation.")}
    if not given:
        return None
    values: dict[str, Any] = {}
    for name, parser in FIELDS.items():
        stated = merged.get(f"{PREFILL}{name}")
        if stated is not None:
            values[name] = parser(stated.value, _path(name))
            provenance[_path(name)] = stated.origin
    if "count" not in values:
        raise InputError("missing_key", path=_path("count"))
    if "tensor_parallel_size" not in values:
        values["tensor_parallel_size"] = _tensor(values, model)
        provenance[_path("tensor_parallel_size")] = "assumed"
    device = merged.get(f"{PREFILL}device")
    if device is not None:
        values["device"] = catalog.load("hardware", word(device.value, _path("device")), tuple(dirs))
        provenance[_path("device")] = "catalogue"
    rate = merged.get("disaggregation.transfer_bytes_per_s")
    provenance["disaggregation.transfer_bytes_per_s"] = "assumed" if rate is None else rate.origin
    sent = None if rate is None else positive(rate.value, "disaggregation.transfer_bytes_per_s")
    return Disaggregation(prefill=PrefillPool(**values), transfer_bytes_per_s=sent)


def _path(name: str) -> str:
    return f"disaggregation.prefill.{name}"


def _tensor(values: Mapping[str, Any], model: Model) -> int:
    names = ("pipeline_parallel_size", "data_parallel_size", "prefill_context_parallel_size")
    taken = 1
    for name in names:
        taken *= int(values.get(name, 1))
    share = 1 if values["count"] % taken else values["count"] // taken
    return parallel.assumed_tensor_parallel(model, int(share))
