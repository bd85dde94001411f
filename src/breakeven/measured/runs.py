"""Rows of whole serving runs (the columns of ``silicon_e2e.csv``) as deployments with their measured times."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from breakeven import catalog
from breakeven.errors import BreakevenError
from breakeven.measured.row import NotUnderstood, Row, Skipped
from breakeven.measured.run import Run
from breakeven.measured.widths import Split, split
from breakeven.messages import Message
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine
from breakeven.spec.hardware import Device, Hardware
from breakeven.spec.model import Model
from breakeven.spec.workload import Workload

NEEDED = ("silicon_tpot_ms", "concurrency", "isl", "osl", "model_path", "system", "backend")
WEIGHTS: Mapping[str, str | None] = {
    "fp8": "fp8",
    "fp8_block": "fp8",
    "nvfp4": "nvfp4",
    "fp4": "nvfp4",
    "int4": "int4_marlin",
    "int4_wo": "int4_marlin",
    "bf16": None,
    "bfloat16": None,
    "float16": None,
    "": None,
}
NO_CAP = 4096
USED = 0.93
"""Share of the device that serving engines of these runs were given, and their fixed reserve, as their queues show."""
RESERVE_BYTES = 3e9


def _number(row: Row, name: str) -> float | None:
    text = row.fields.get(name, "").strip()
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        raise NotUnderstood(Message("runs.not_a_number", {"column": name, "written": text})) from None


def _needed(row: Row, name: str) -> float:
    found = _number(row, name)
    if found is None or found <= 0.0:
        raise NotUnderstood(Message("runs.not_stated", {"column": name}))
    return found


def _count(row: Row, name: str) -> int | None:
    found = _number(row, name)
    return None if found is None else int(found)


def catalog_model(row: Row) -> Model:
    """The model as the catalogue has it."""
    name = re.sub(r"(-(FP8|NVFP4|FP4|AWQ|GPTQ-Int4))+$", "", row.fields["model_path"].split("/")[-1], flags=re.IGNORECASE)
    try:
        found: Model = catalog.load("models", name)
    except BreakevenError:
        raise NotUnderstood(Message("runs.model_unknown", {"written": row.fields["model_path"]})) from None
    return found


def model_of(row: Row) -> Model:
    """The model's shape; the format of the weights stands in a column of its own."""
    return replace(catalog_model(row), stored={}, stored_bytes={}, kv_scheme=None)


def device_of(row: Row) -> Device:
    """The device of a system's name."""
    name = row.fields["system"].replace("_", "-")
    try:
        return catalog.load("hardware", name)
    except BreakevenError:
        raise NotUnderstood(Message("runs.device_unknown", {"written": row.fields["system"]})) from None


def split_of(row: Row, model: Model) -> Split:
    """How the run was spread over devices."""
    widths = [_count(row, name) for name in ("tp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")]
    found = split(widths[0] or 1, widths[1], widths[2] or 1, widths[3] or 1, mixture=model.experts is not None)
    if found is None:
        raise NotUnderstood(Message("runs.split_unknown", {"written": "/".join(str(width) for width in widths)}))
    return found


def weights_of(row: Row) -> str | None:
    """The kernel family of the weights."""
    written = (row.fields.get("gemm_quant_mode") or row.fields.get("precision") or "").strip().lower()
    if "mxfp4" in catalog_model(row).stored.values():
        return "mxfp4"
    if written not in WEIGHTS:
        raise NotUnderstood(Message("runs.format_unknown", {"written": written}))
    return WEIGHTS[written]


def deployment_of(row: Row) -> Deployment:
    """The row as a deployment in a closed loop. Not recorded: the cache's format; 8 bits with 8- and 4-bit weights is what room shows."""
    for name in NEEDED:
        if not row.fields.get(name, "").strip():
            raise NotUnderstood(Message("runs.not_stated", {"column": name}))
    model, device = model_of(row), device_of(row)
    found, weights = split_of(row, model), weights_of(row)
    backend = row.fields["backend"]
    engine = Engine(
        name=backend,
        version=_version(row),
        tensor_parallel_size=found.tensor,
        data_parallel_size=found.data,
        enable_expert_parallel=found.whole_experts,
        max_num_seqs=NO_CAP,
        quantization=weights,
        kv_cache_dtype="bf16" if weights in (None, "int4_marlin") else "fp8",
        enable_prefix_caching=False,
        enable_chunked_prefill=True,
        kv_reserve="whole" if backend == "trtllm" else "grow",
        gpu_memory_utilization=USED,
        runtime_reserve_bytes=RESERVE_BYTES,
    )
    return Deployment(
        model=model,
        hardware=Hardware(device=device, count=found.devices),
        engine=engine,
        workload=Workload(input_tokens=_needed(row, "isl"), output_tokens=_needed(row, "osl"), concurrency=_needed(row, "concurrency")),
    )


def _version(row: Row) -> str:
    written = row.fields.get("backend_version", "").strip()
    return written if re.match(r"v?\d", written) else "main"


def shape_of(model: Model) -> str:
    """What two names of one shape share: layers, width and parameters (R1 and V3 are one model in two exports)."""
    experts = f" {model.experts.count}×{model.experts.top_k}" if model.experts is not None else ""
    return f"{model.family} {model.layers}×{model.hidden}{experts} {model.parameters.total / 1e9:.0f}B"


def run_of(row: Row) -> Run:
    """A row understood."""
    d = deployment_of(row)
    ttft = _number(row, "silicon_ttft_ms")
    group = f"{shape_of(d.model)} | {d.hardware.device.name} | {d.engine.name}"
    return Run(
        id=row.id,
        where=row.where,
        deployment=d,
        group=group,
        batch_of_runs=f"{group} | {row.fields.get('backend_version', '')} | {row.fields.get('measured_date', '')}",
        tpot_s=_needed(row, "silicon_tpot_ms") * 1e-3,
        ttft_s=None if ttft is None or ttft <= 0 else ttft * 1e-3,
        total=split_of(row, d.model).total,
    )


def runs_of(rows: Iterable[Row]) -> tuple[list[Run], list[Skipped]]:
    """Rows of one pool as runs, and those that are not answered with their reasons."""
    runs, skipped = [], []
    for row in rows:
        try:
            if row.fields.get("mode", "agg") not in ("agg", ""):
                raise NotUnderstood(Message("runs.two_pools", {}))
            runs.append(run_of(row))
        except NotUnderstood as reason:
            skipped.append(Skipped(id=row.id, where=row.where, reason=reason.message, fields=row.fields))
    return runs, skipped
