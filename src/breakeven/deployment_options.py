"""The options that describe a deployment, for every verb that is about one: a file, a launch command, a log, and a flag for each field."""

# No `from __future__ import annotations`: typer reads the annotations of a verb.
import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any, get_args

import typer

from breakeven.errors import InputError
from breakeven.spec.evidence import Evidence
from breakeven.verb import Folders, option

Number = Annotated[str | None, typer.Option(metavar="NUMBER", show_default=False)]
Switch = bool | None
Deployed = Mapping[str, Any]
"""What ``breakeven.api.load`` takes, as it was typed."""
SOURCES = ("file", "launch", "log", "evidence", "catalog_dirs")
"""Of the options, those that are no field."""


def _described(
    file: Annotated[str | None, typer.Argument(metavar="FILE", show_default=False)] = None,
    model: Annotated[str | None, option("--model", metavar="NAME|FILE")] = None,
    hardware: Annotated[str | None, option("--hardware", metavar="DEVICE[:COUNT]")] = None,
    device_memory: Annotated[str | None, option("--device-memory", metavar="SIZE")] = None,
    launch: Annotated[str | None, option("--launch", metavar="COMMAND")] = None,
    log: Annotated[str | None, option("--log", metavar="FILE")] = None,
    evidence: Annotated[str | None, option("--evidence", metavar="FILE")] = None,
    calibration: Annotated[str | None, option("--calibration", metavar="FILE")] = None,
    engine: Annotated[str | None, option("--engine", metavar="NAME")] = None,
    engine_version: Annotated[str | None, option("--engine-version", metavar="VERSION")] = None,
    tensor_parallel_size: Annotated[str | None, option("--tensor-parallel-size", "-tp", metavar="NUMBER")] = None,
    pipeline_parallel_size: Annotated[str | None, option("--pipeline-parallel-size", "-pp", metavar="NUMBER")] = None,
    data_parallel_size: Annotated[str | None, option("--data-parallel-size", "-dp", metavar="NUMBER")] = None,
    enable_expert_parallel: Annotated[Switch, option("--enable-expert-parallel/--no-enable-expert-parallel")] = None,
    decode_context_parallel_size: Annotated[str | None, option("--decode-context-parallel-size", "-dcp", metavar="NUMBER")] = None,
    prefill_context_parallel_size: Annotated[str | None, option("--prefill-context-parallel-size", "-pcp", metavar="NUMBER")] = None,
    network_bytes_per_s: Annotated[str | None, option("--network-bytes-per-s", metavar="BYTES/S")] = None,
    prefill_count: Annotated[str | None, option("--prefill-count", metavar="NUMBER")] = None,
    prefill_tensor_parallel_size: Annotated[str | None, option("--prefill-tensor-parallel-size", metavar="NUMBER")] = None,
    prefill_device: Annotated[str | None, option("--prefill-device", metavar="NAME")] = None,
    transfer_bytes_per_s: Annotated[str | None, option("--transfer-bytes-per-s", metavar="BYTES/S")] = None,
    max_num_seqs: Number = None,
    max_num_batched_tokens: Number = None,
    max_model_len: Number = None,
    dtype: Annotated[str | None, option("--dtype", metavar="TYPE")] = None,
    quantization: Annotated[str | None, option("--quantization", "-q", metavar="METHOD")] = None,
    kv_cache_dtype: Annotated[str | None, option("--kv-cache-dtype", metavar="TYPE")] = None,
    block_size: Number = None,
    gpu_memory_utilization: Number = None,
    enable_prefix_caching: Annotated[Switch, option("--enable-prefix-caching/--no-enable-prefix-caching")] = None,
    enable_chunked_prefill: Annotated[Switch, option("--enable-chunked-prefill/--no-enable-chunked-prefill")] = None,
    kv_unified: Annotated[Switch, option("--kv-unified/--no-kv-unified")] = None,
    enforce_eager: Annotated[Switch, option("--enforce-eager/--no-enforce-eager")] = None,
    speculative: Annotated[str | None, option("--speculative", "--speculative-config", metavar="JSON")] = None,
    input_tokens: Annotated[str | None, option("--input", metavar="TOKENS")] = None,
    output_tokens: Annotated[str | None, option("--output", metavar="TOKENS")] = None,
    rate: Annotated[str | None, option("--rate", metavar="REQ/S")] = None,
    concurrency: Number = None,
    batch: Number = None,
    context: Annotated[str | None, option("--context", metavar="TOKENS")] = None,
    trace: Annotated[str | None, option("--trace", metavar="FILE")] = None,
    prefix_hit_rate: Annotated[str | None, option("--prefix-hit-rate", metavar="SHARE")] = None,
    acceptance: Annotated[str | None, option("--acceptance", metavar="SHARE,SHARE,…")] = None,
    acceptance_length: Annotated[str | None, option("--acceptance-length", metavar="TOKENS")] = None,
    acceptance_rate: Annotated[str | None, option("--acceptance-rate", metavar="SHARE")] = None,
    acceptance_alpha: Annotated[str | None, option("--acceptance-alpha", metavar="SHARE")] = None,
    task: Annotated[str | None, option("--task", metavar="NAME")] = None,
    slo_ttft: Annotated[str | None, option("--slo-ttft", metavar="SECONDS")] = None,
    slo_tpot: Annotated[str | None, option("--slo-tpot", metavar="SECONDS")] = None,
    price: Annotated[str | None, option("--price", metavar="NUMBER")] = None,
    currency: Annotated[str | None, option("--currency", metavar="CODE")] = None,
    catalog_dirs: Folders = None,
) -> None:
    """A signature alone: the options in the order that help tells them."""


OPTIONS = tuple(inspect.signature(_described).parameters.values())


def takes_deployment(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the options that describe a deployment: it is called with ``deployed``, which is all that ``api.load`` takes."""

    @wraps(verb)
    def called(**params: Any) -> None:
        given = {one.name: params.pop(one.name) for one in OPTIONS}
        verb(deployed=_sources(given), **params)

    own = [one for one in inspect.signature(verb).parameters.values() if one.name != "deployed"]
    keyword = inspect.Parameter.KEYWORD_ONLY
    first = [one for one in own[1:] if _is_argument(one)]
    ordered = (own[0], *first, *OPTIONS, *(one for one in own[1:] if one not in first))
    signature = inspect.Signature([one.replace(kind=keyword) for one in ordered])
    setattr(called, "__signature__", signature)  # noqa: B010 - no attribute of a function, as mypy knows it
    return called


def _is_argument(parameter: inspect.Parameter) -> bool:
    """Whether a verb's own parameter stands by its place: then it comes before the deployment's file."""
    return any(type(one).__name__ == "ArgumentInfo" for one in get_args(parameter.annotation))


def _sources(given: Mapping[str, Any]) -> Deployed:
    fields = {name: value for name, value in given.items() if value is not None and name not in SOURCES}
    if isinstance(speculative := fields.get("speculative"), str) and speculative.startswith("{"):
        fields["speculative"] = _json(speculative, "--speculative")
    return {**{name: given[name] for name in SOURCES}, "catalog_dirs": given["catalog_dirs"] or (), "flags": fields}


def typed(deployed: Deployed) -> list[str]:
    """The words that describe a deployment, as they are typed again: its file first, then every option that was given."""
    flags = deployed["flags"]
    given = {one.name: flags.get(one.name, deployed.get(one.name)) for one in OPTIONS}
    found = [str(given["file"])] if given["file"] is not None else []
    for one in OPTIONS:
        value = given[one.name]
        if one.name == "file" or value is None or isinstance(value, Evidence):
            continue
        for each in value if isinstance(value, (list, tuple)) else (value,):
            found += _typed(one, each)
    return found


def _typed(one: inspect.Parameter, value: object) -> list[str]:
    """An option with its value; a switch by the name that says which way it is."""
    import json

    option = next(each for each in get_args(one.annotation) if hasattr(each, "param_decls"))
    # typer keeps the first name that is given to it in an annotation as a default.
    name = option.default if isinstance(option.default, str) else f"--{one.name.replace('_', '-')}"
    if isinstance(value, bool):
        return [name.split("/")[0 if value else 1]]
    if one.name == "launch":
        from breakeven.origin.launch_command import without_secrets

        return [name, without_secrets(str(value))]
    return [name, value if isinstance(value, str) else json.dumps(value)]


def _json(given: str, name: str) -> object:
    import json

    try:
        return json.loads(given)
    except (json.JSONDecodeError, RecursionError):
        raise InputError("launch_json", path=name, value=given[:60]) from None
