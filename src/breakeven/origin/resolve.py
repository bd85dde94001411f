"""All that a user has, resolved into one deployment: defaults < catalogue < launch command < log < evidence < file < flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import prod
from pathlib import Path
from typing import Any

from breakeven import catalog, kernels, support
from breakeven.errors import InputError, NotModelledError, UnknownNameError
from breakeven.messages import Message
from breakeven.origin import gguf_engines
from breakeven.origin.calibrated import calibration_of
from breakeven.origin.deployment_file import read_deployment
from breakeven.origin.engine_fields import FIELDS, WITHOUT_EFFECT
from breakeven.origin.evidence_file import read_evidence
from breakeven.origin.evidence_layer import no_hardware, of_one_replica
from breakeven.origin.input_layers import check_arrivals, layers_of
from breakeven.origin.launch import LaunchSettings
from breakeven.origin.launch_command import parse_launch
from breakeven.origin.layers import Table, merge
from breakeven.origin.model_source import load_model, load_told
from breakeven.origin.pool_fields import disaggregation_of
from breakeven.origin.speculative import speculative_of, table_of
from breakeven.origin.startup_log import StartupLog, read_log
from breakeven.origin.values import count, positive, size, word
from breakeven.origin.workload_fields import price_of, slo_of, workload_of
from breakeven.spec import parallel
from breakeven.spec.check import check_deployment
from breakeven.spec.deployment import Deployment, Provenance
from breakeven.spec.disaggregation import prefill_engine
from breakeven.spec.engine import Engine, Speculative
from breakeven.spec.evidence import Evidence
from breakeven.spec.hardware import Device, Hardware, check_known, with_memory
from breakeven.spec.model import Model
from breakeven.spec.workload import Workload
from breakeven.trace import Trace

NATURE = ("kv_reserve", "mixes_prompts", "fills", "checkpoint_kernels", "runtime_reserve_bytes", "state_dtype")
"""What an engine is rather than how it is set: the catalogue says it."""


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """A deployment, and what is to be said of how it was read."""

    deployment: Deployment
    log: StartupLog | None = None
    """The start-up log, whose cache is yet to be put into the ledger."""
    evidence: Evidence | None = None
    """What was observed, whose cache and step time are yet to be put under the deployment."""
    warnings: tuple[Message, ...] = ()
    trace: Trace | None = None
    """The trace that the workload names, as it was read."""


def resolve(
    *,
    file: Path | str | None = None,
    flags: Mapping[str, object] | None = None,
    launch: str | LaunchSettings | None = None,
    log: Path | str | None = None,
    evidence: Path | str | Evidence | None = None,
    catalog_dirs: Sequence[Path] = (),
) -> Resolved:
    """One deployment from a file, a launch command, a start-up log, an observation and flags, in any mixture."""
    table = read_deployment(Path(file)) if file is not None else {}
    beside = Path(file).parent if file is not None else None
    return resolve_table(table, flags=flags, launch=launch, log=log, evidence=evidence, catalog_dirs=catalog_dirs, beside=beside)


def resolve_table(
    table: Mapping[str, object],
    *,
    flags: Mapping[str, object] | None = None,
    launch: str | LaunchSettings | None = None,
    log: Path | str | None = None,
    evidence: Path | str | Evidence | None = None,
    catalog_dirs: Sequence[Path] = (),
    beside: Path | None = None,
) -> Resolved:
    """One deployment from a table as a file would hold it; ``beside`` is the folder its paths start from."""
    command = parse_launch(launch) if isinstance(launch, str) else launch
    started = read_log(Path(log)) if log is not None else None
    seen = evidence if evidence is None or isinstance(evidence, Evidence) else read_evidence(Path(evidence))
    layers = layers_of(table, flags or {}, command, started, seen)
    merged = merge(layers.ordered)
    check_arrivals(seen, merged)
    dirs = tuple(catalog_dirs)
    provenance: dict[str, Provenance] = {}
    model = _model(merged, dirs, beside, provenance)
    device = _device(merged, dirs, provenance, seen)
    loaded = workload_of(merged, beside, seen.windows if seen is not None else None)
    provenance.update(loaded.provenance)
    built = _engine(merged, model, device, command, provenance)
    _check_device_layers(started.device_layers if started is not None else None, model)
    built = _kernel_of_log(built, model, device, started, provenance)
    deployment = Deployment(
        model=model,
        hardware=Hardware(device=device, count=built.devices, network_bytes_per_s=_network(merged, provenance)),
        engine=built.engine,
        workload=_workload(loaded.workload, merged, seen, model),
        slo=slo_of(merged, provenance),
        price=price_of(merged, provenance),
        disaggregation=disaggregation_of(merged, model, dirs, provenance),
        drafts=_drafts(built.engine.speculative, dirs, beside),
        provenance=dict(sorted(provenance.items())),
    )
    deployment = _with_pool_settings(deployment)
    check_deployment(deployment)
    deployment, fitted = calibration_of(deployment, merged.get("calibration"), beside)
    _check_kernels(deployment)
    told = (*(command.warnings if command is not None else ()), *(started.warnings if started is not None else ()))
    told += layers.told
    told += catalog.told_of_folders({"hardware": str(merged["hardware.device"].value), "models": str(merged["model"].value)}, dirs)
    return Resolved(
        deployment=deployment,
        log=started,
        evidence=seen,
        warnings=(*told, *loaded.warnings, *built.warnings, *fitted),
        trace=loaded.trace,
    )


def _workload(loaded: Workload, merged: Table, seen: Evidence | None, model: Model) -> Workload:
    """The workload, a batch that was observed as that of one replica."""
    given = merged.get("workload.batch")
    return loaded if seen is None or given is None or given.layer != "evidence" else of_one_replica(loaded, seen, model)


def _check_kernels(d: Deployment) -> None:
    """That every format has a kernel family, on the device of each pool."""
    kernels.kv_format(d.model, d.engine)
    kernels.weight_kernels(d.model, d.engine, d.hardware.device)
    if d.disaggregation is not None and d.disaggregation.prefill.device is not None:
        kernels.weight_kernels(d.model, d.engine, d.disaggregation.prefill.device)


def _model(merged: Table, dirs: tuple[Path, ...], beside: Path | None, provenance: dict[str, Provenance]) -> Model:
    given = merged.get("model")
    if given is None:
        raise InputError("no_model")
    if given.layer == "evidence":
        provenance["model"] = "measured"
        return load_told(word(given.value, "model"), dirs)
    model, provenance["model"] = load_model(word(given.value, "model"), dirs, beside if given.layer == "file" else None)
    return model


def _device(merged: Table, dirs: tuple[Path, ...], provenance: dict[str, Provenance], seen: Evidence | None) -> Device:
    given = merged.get("hardware.device")
    if given is None:
        raise no_hardware(seen)
    provenance["hardware.device"] = "measured" if given.layer == "evidence" else "catalogue"
    device = catalog.load("hardware", word(given.value, "hardware.device"), dirs)
    stated = merged.get("hardware.memory_bytes")
    if stated is not None:
        provenance["hardware.device.memory_bytes"] = stated.origin
        device = with_memory(device, size(stated.value, "hardware.memory_bytes"))
    check_known(device)
    return device


def _network(merged: Table, provenance: dict[str, Provenance]) -> float | None:
    given = merged.get("hardware.network_bytes_per_s")
    if given is None:
        return None
    provenance["hardware.network_bytes_per_s"] = given.origin
    return positive(given.value, "hardware.network_bytes_per_s")


@dataclass(frozen=True, kw_only=True)
class _Built:
    engine: Engine
    devices: int
    warnings: tuple[Message, ...] = ()


def _engine(merged: Table, model: Model, device: Device, command: LaunchSettings | None, provenance: dict[str, Provenance]) -> _Built:
    values = _stated(merged, provenance)
    name, read_by = _reader(values.pop("name", None), model)
    version = values.pop("version", None)
    speculative, unread = _speculative(merged, provenance)
    _check_device_layers(command.device_layers if command is not None else None, model)
    _spread(merged, values, command, model)
    devices, warnings = _devices(merged, values, model, provenance)
    values |= _left_to_the_server(merged, values, command, catalog.engine_defaults(name, version, device).settings)
    engine = catalog.engine(
        name, version, device, **values, speculative=speculative, unread={**(command.unread if command is not None else {}), **unread}
    )
    engine, told = _settle_dtype(engine, model, device)
    told += read_by
    engine = _settle_support(engine, model, device, values, provenance)
    for field in fields(Engine):
        provenance.setdefault(f"engine.{field.name}", "catalogue" if field.name in NATURE else "assumed")
    if engine.unread:
        provenance["engine.unread"] = "declared"
    warnings += told + ((Message("warning.flags_unread", {"flags": ", ".join(sorted(unread))}),) if unread else ())
    stated = {name: value for name, value in values.items() if not _from_log(merged, name)}
    return _Built(engine=engine, devices=devices, warnings=(*warnings, *_without_effect(stated)))


def _left_to_the_server(
    merged: Table, values: Mapping[str, Any], command: LaunchSettings | None, usual: Mapping[str, Any]
) -> dict[str, Any]:
    """That slots share one cache, where a running engine tells as many as it has by itself: then nobody need have stated them."""
    given = merged.get("engine.max_num_seqs")
    stated = command is not None and "max_num_seqs" in command.settings
    if given is None or given.layer != "evidence" or stated or "kv_unified" in values or given.value != usual.get("max_num_seqs"):
        return {}
    return {"kv_unified": True}


def _from_log(merged: Table, name: str) -> bool:
    given = merged.get(f"engine.{name}")
    return given is not None and given.layer in ("log", "evidence")


def _kernel_of_log(built: _Built, model: Model, device: Device, log: StartupLog | None, provenance: dict[str, Provenance]) -> _Built:
    """A 4-bit checkpoint whose kernels nobody has named runs those that the log names."""
    named = f"int4_{log.kernel}" if log is not None else ""
    if named not in kernels.weight_names() or all(
        kernel.name != "int4" for kernel in kernels.weight_kernels(model, built.engine, device).values()
    ):
        return built
    provenance["engine.quantization"] = "measured"
    return replace(built, engine=replace(built.engine, quantization=named))


def _reader(stated: object, model: Model) -> tuple[str, tuple[Message, ...]]:
    """The engine: as stated, else vLLM, or llama.cpp for a GGUF file; with what is to be said of an engine that reads GGUF badly or not."""
    if gguf_engines.SOURCE not in model.sources:
        return str(stated or "vllm"), ()
    if stated is None:
        return "llamacpp", (Message("warning.gguf_engine"),)
    name = catalog.engine_defaults(str(stated)).name
    if name in gguf_engines.READERS:
        return str(stated), ()
    if name not in gguf_engines.EXPERIMENTAL:
        raise NotModelledError("gguf_not_served", engine=catalog.engine_title(name), path=model.name)
    return str(stated), (Message("warning.gguf_experimental", {"engine": catalog.engine_title(name)}),)


def _without_effect(values: Mapping[str, Any]) -> tuple[Message, ...]:
    """The settings stated that change no figure, said once."""
    stated = [name for name in WITHOUT_EFFECT if values.get(name)]
    return (Message("warning.without_effect", {"settings": ", ".join(stated)}),) if stated else ()


def _stated(merged: Table, provenance: dict[str, Provenance]) -> dict[str, Any]:
    """Settings that were given, checked. ``quantization: none`` is a statement too."""
    values: dict[str, Any] = {}
    for name, parser in FIELDS.items():
        given = merged.get(f"engine.{name}")
        if given is not None:
            values[name] = parser(given.value, f"engine.{name}")
            provenance[f"engine.{name}"] = given.origin
    return values


def _speculative(merged: Table, provenance: dict[str, Provenance]) -> tuple[Speculative | None, dict[str, str]]:
    given = merged.get("engine.speculative")
    if given is None:
        return None, {}
    provenance["engine.speculative"] = given.origin
    if isinstance(given.value, Speculative):
        return given.value, {}
    if given.value in (False, "none", "off"):
        return None, {}
    table = table_of(given.value, "engine.speculative") if isinstance(given.value, str) else given.value
    if not isinstance(table, Mapping):
        raise InputError("not_a_table", path="engine.speculative")
    return speculative_of(table, "engine.speculative")


def _devices(merged: Table, values: dict[str, Any], model: Model, provenance: dict[str, Provenance]) -> tuple[int, tuple[Message, ...]]:
    """How many devices there are, with the tensor parallel size settled; what is not stated follows from what is."""
    given = merged.get("hardware.count")
    stated = None if given is None else count(given.value, "hardware.count")
    names = ("pipeline_parallel_size", "data_parallel_size", "prefill_context_parallel_size")
    taken = prod(int(values.get(name, 1)) for name in names)
    warnings: tuple[Message, ...] = ()
    if "tensor_parallel_size" not in values:
        share = 1 if stated is None or stated % taken else stated // taken
        values["tensor_parallel_size"] = parallel.assumed_tensor_parallel(model, share)
        if share > 1:
            warnings = (Message("warning.tensor_parallel_assumed", {"size": values["tensor_parallel_size"], "count": stated}),)
    provenance["hardware.count"] = "assumed" if given is None else given.origin
    return int(values["tensor_parallel_size"]) * taken if stated is None else stated, warnings


def _check_device_layers(given: int | None, model: Model) -> None:
    """Layers that are left to the host are not modelled."""
    if given is not None and given < model.layers:
        raise NotModelledError("launch_device_layers", given=given, layers=model.layers, name=model.name)


def _spread(merged: Table, values: dict[str, Any], command: LaunchSettings | None, model: Model) -> None:
    """An engine that takes all devices it sees splits layers over them like a pipeline, or rows as far as the heads allow."""
    given = merged.get("hardware.count")
    if command is None or command.spread is None or given is None or {"tensor_parallel_size", "pipeline_parallel_size"} & set(values):
        return
    devices = count(given.value, "hardware.count")
    if command.spread == "pipeline":
        values |= {"tensor_parallel_size": 1, "pipeline_parallel_size": devices}
    else:
        values["tensor_parallel_size"] = parallel.assumed_tensor_parallel(model, devices)


def _settle_dtype(engine: Engine, model: Model, device: Device) -> tuple[Engine, tuple[Message, ...]]:
    """A device without bf16 computes a bf16 model in fp16; asked for bf16 by name it refuses, as the engine does."""
    if "bf16" not in device.unsupported_formats:
        return engine, ()
    if engine.dtype == "bfloat16":
        raise InputError("dtype_unsupported", device=device.title)
    if engine.dtype != "auto" or model.dtype != "bfloat16":
        return engine, ()
    return replace(engine, dtype="float16"), (Message("warning.computes_in_fp16", {"device": device.title}),)


def _settle_support(
    engine: Engine, model: Model, device: Device, stated: Mapping[str, object], provenance: dict[str, Provenance]
) -> Engine:
    """What the catalogue of support says of this model on this device, where the user did not: prefix cache, memory kept, block."""
    chosen: dict[str, Any] = {}
    if "enable_prefix_caching" not in stated and support.keeps_prefixes(model, engine, device) is False:
        chosen["enable_prefix_caching"] = False
    chosen |= {name: value for name, value in support.reserves(model, engine, device).items() if name not in stated}
    block = support.block_size(model, engine, device)
    if "block_size" not in stated and block is not None:
        chosen["block_size"] = block
    provenance.update(dict.fromkeys((f"engine.{name}" for name in chosen), "catalogue"))
    return replace(engine, **chosen)


def _with_pool_settings(d: Deployment) -> Deployment:
    """The prefill pool with what the engine does of itself on the pool's device, where that is another and the user has not said it."""
    if d.disaggregation is None or d.disaggregation.prefill.device is None:
        return d
    given = d.disaggregation.prefill
    device, stated = d.disaggregation.prefill.device, ("declared", "file", "measured")
    own: dict[str, Any] = {"checkpoint_kernels": catalog.engine(d.engine.name, d.engine.version, device).checkpoint_kernels}
    kept = support.reserves(d.model, prefill_engine(d.engine, given), device)
    own |= {name: value for name, value in kept.items() if d.provenance.get(f"engine.{name}") not in stated}
    if "bf16" in device.unsupported_formats and d.model.dtype == "bfloat16" and d.provenance.get("engine.dtype") not in stated:
        own["dtype"] = "float16"
    return replace(d, disaggregation=replace(d.disaggregation, prefill=replace(given, settings=own)))


def _drafts(speculative: Speculative | None, dirs: tuple[Path, ...], beside: Path | None) -> Mapping[str, Model]:
    """The draft model named, loaded. A head that is not catalogued is left to the lever, which sizes it from the target."""
    if speculative is None or speculative.model is None:
        return {}
    try:
        return {speculative.model: load_model(speculative.model, dirs, beside, fetch=speculative.method == "draft_model")[0]}
    except (UnknownNameError, InputError) as error:
        unknown = isinstance(error, UnknownNameError) or error.message.key.startswith("error.unknown_model_id")
        if unknown and speculative.method != "draft_model":
            return {}
        raise
