"""How a checkpoint stores its weights and wants its KV cache: the common forms of ``quantization_config``."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from breakeven.errors import InputError, NotModelledError
from breakeven.origin.config_fields import Fields, table, whole_number
from breakeven.origin.values import shown

_MODULES: Mapping[str, tuple[str, ...]] = {
    "attention": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "self_attn.qkv_proj"),
    "mlp": ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", "mlp.shared_experts.down_proj"),
    "experts": ("mlp.experts.0.gate_proj", "mlp.experts.0.up_proj", "mlp.experts.0.down_proj"),
}
"""Names that stand for a tensor class when a list says which modules are left as they are."""
_PREFIXES = re.compile(r"^(model\.|language_model\.|transformer\.)+")


@dataclass(frozen=True, kw_only=True)
class Storage:
    """Formats by tensor class, and the KV format the checkpoint asks for."""

    stored: Mapping[str, str]
    kv_scheme: str | None


def storage(written: object, fields: Fields, name: str, *, layers: int, classes: Sequence[str]) -> Storage:
    """Read a ``quantization_config`` (or MLX's ``quantization``); nothing written means the model's own dtype."""
    if written is None:
        return Storage(stored={}, kv_scheme=None)
    config = _flattened(table(written, "quantization_config", fields.where), fields)
    method = _method(config, fields)
    reader = _METHODS.get(method)
    weights = reader(config, fields) if reader else None
    if weights is None:
        shape = ", ".join(f"{key}={shown(config[key])}" for key in ("bits", "w_bit", "group_size", "quant_algo", "format") if key in config)
        raise NotModelledError("weight_format_not_modelled", where=fields.where, name=name, method=f"{shown(method)} {shape}".strip())
    kept, targets = _kept(config, fields), _targets(config, fields)
    # The mxfp4 method converts experts only, whatever else its list of exceptions leaves unsaid.
    chosen = ("experts",) if method == "mxfp4" else tuple(_MODULES)
    stored = {
        kind: weights
        for kind in chosen
        if kind in classes and not _mostly(kind, kept, layers, fields) and (not targets or _mostly(kind, targets, layers, fields))
    }
    if config.get("lm_head") is True or method == "mlx":
        stored |= {kind: weights for kind in ("head",) if kind in classes}
    if method == "mlx":
        stored["embedding"] = weights
    return Storage(stored=stored, kv_scheme=_kv_scheme(config, fields))


def _flattened(config: Mapping[str, object], fields: Fields) -> Mapping[str, object]:
    # ModelOpt's own hf_quant_config.json nests everything one level down, without a quant_method.
    if "producer" in config and "quantization" in config:
        return {"quant_method": "modelopt", **table(config["quantization"], "quantization", fields.where)}
    return config


def _method(config: Mapping[str, object], fields: Fields) -> str:
    method = config.get("quant_method")
    if isinstance(method, str):
        return method.lower()
    if "quant_algo" in config:
        return "modelopt"
    if "bits" in config and "group_size" in config and set(config) <= {"bits", "group_size", "mode"}:
        return "mlx"
    raise InputError("config_missing_fields", where=fields.where, model_type=fields.model_type, fields="quantization_config.quant_method")


def _integer_format(config: Mapping[str, object], fields: Fields) -> str | None:
    bits = _number(config, fields, "bits", "w_bit", "num_bits")
    group = _number(config, fields, "group_size", "q_group_size")
    if bits == 8:
        return "int8"
    return f"int4_g{group}" if bits == 4 and group in (32, 64, 128) else None


def _number(config: Mapping[str, object], fields: Fields, *names: str) -> int | None:
    for name in names:
        if config.get(name) is not None:
            return whole_number(config[name], f"quantization_config.{name}", fields.where, low=-1, high=1_000_000)
    return None


def _fp8(config: Mapping[str, object], fields: Fields) -> str | None:
    return "fp8"


def _mxfp4(config: Mapping[str, object], fields: Fields) -> str | None:
    return "mxfp4"


def _bitsandbytes(config: Mapping[str, object], fields: Fields) -> str | None:
    if config.get("load_in_8bit") is True:
        return "int8"
    four = config.get("load_in_4bit") is True or config.get("_load_in_4bit") is True
    return "nf4" if four and config.get("bnb_4bit_quant_type", "fp4") == "nf4" else None


def _modelopt(config: Mapping[str, object], fields: Fields) -> str | None:
    algorithm = str(config.get("quant_algo", "")).upper()
    plain = {"FP8": "fp8", "FP8_PER_CHANNEL_PER_TOKEN": "fp8", "NVFP4": "nvfp4", "W4A16_NVFP4": "nvfp4", "NVFP4_AWQ": "nvfp4"}
    if algorithm in ("W4A16_AWQ", "INT4_AWQ"):
        return _integer_format({"bits": 4, "group_size": config.get("group_size", 128)}, fields)
    return plain.get(algorithm)


def _compressed_tensors(config: Mapping[str, object], fields: Fields) -> str | None:
    by_format = {"float-quantized": "fp8", "int-quantized": "int8", "nvfp4-pack-quantized": "nvfp4", "mxfp4-pack-quantized": "mxfp4"}
    groups = config.get("config_groups")
    if groups is None:
        return by_format.get(str(config.get("format")))
    found = {_group_format(group, fields) for group in table(groups, "quantization_config.config_groups", fields.where).values()}
    return found.pop() if len(found) == 1 else None


def _group_format(group: object, fields: Fields) -> str | None:
    weights = table(table(group, "config_groups", fields.where).get("weights"), "config_groups.weights", fields.where)
    if weights.get("type") != "float":
        return _integer_format(weights, fields)
    bits, size = _number(weights, fields, "num_bits"), _number(weights, fields, "group_size")
    if bits == 8:
        return "fp8"
    return {16: "nvfp4", 32: "mxfp4"}.get(size or 0) if bits == 4 else None


_METHODS: Mapping[str, Callable[[Mapping[str, object], Fields], str | None]] = {
    "fp8": _fp8,
    "fbgemm_fp8": _fp8,
    "mxfp4": _mxfp4,
    "bitsandbytes": _bitsandbytes,
    "modelopt": _modelopt,
    "modelopt_fp4": _modelopt,
    "compressed-tensors": _compressed_tensors,
    "gptq": _integer_format,
    "awq": _integer_format,
    "auto-round": _integer_format,
    "mlx": _integer_format,
}


def _kept(config: Mapping[str, object], fields: Fields) -> tuple[str, ...]:
    """Patterns of the modules left in the model's own dtype."""
    kept: list[str] = []
    for name in ("modules_to_not_convert", "ignore", "exclude_modules", "llm_int8_skip_modules", "ignored_layers"):
        patterns = config.get(name)
        if patterns is None:
            continue
        if not isinstance(patterns, list) or not all(isinstance(item, str) for item in patterns):
            raise InputError("config_bad_list", where=fields.where, field=f"quantization_config.{name}", value=shown(patterns))
        kept += patterns
    return tuple(kept)


def _targets(config: Mapping[str, object], fields: Fields) -> tuple[str, ...]:
    """Patterns of the modules to convert, or none where whole layer classes (``Linear``) are."""
    groups = config.get("config_groups")
    found: list[str] = []
    for group in table(groups, "quantization_config.config_groups", fields.where).values() if groups is not None else ():
        targets = table(group, "config_groups", fields.where).get("targets") or ["Linear"]
        if not isinstance(targets, list) or not all(isinstance(item, str) for item in targets):
            raise InputError("config_bad_list", where=fields.where, field="config_groups.targets", value=shown(targets))
        found += targets
    return () if any("." not in target and not target.startswith("re:") for target in found) else tuple(found)


def _mostly(kind: str, patterns: Sequence[str], layers: int, fields: Fields) -> bool:
    """Whether the patterns name most of a class: a class has one format, so the larger part decides."""
    if not patterns:
        return False
    written = [_PREFIXES.sub("", pattern) for pattern in patterns if not pattern.startswith("re:")]
    plain = {pattern for pattern in written if not _is_glob(pattern)}
    globs = [pattern for pattern in written if _is_glob(pattern)]
    expressions = [_expression(pattern, fields) for pattern in patterns if pattern.startswith("re:")]
    names = [f"layers.{layer}.{module}" for layer in range(layers) for module in _MODULES[kind]]
    return 2 * sum(_named(name, plain, globs, expressions) for name in names) > len(names)


def _is_glob(pattern: str) -> bool:
    return any(mark in pattern for mark in "*?[")


def _named(name: str, plain: Collection[str], globs: Sequence[str], expressions: Sequence[re.Pattern[str]]) -> bool:
    """Whether a module is meant: by a run of its dotted parts, by a wildcard, or by a regular expression."""
    parts = name.split(".")
    if any(".".join(parts[start:end]) in plain for start in range(len(parts)) for end in range(start + 1, len(parts) + 1)):
        return True
    if any(fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.*") for pattern in globs):
        return True
    return any(expression.match(f"model.{name}") for expression in expressions)


def _expression(pattern: str, fields: Fields) -> re.Pattern[str]:
    try:
        return re.compile(pattern[3:])
    except (re.error, RecursionError, OverflowError) as fault:
        raise InputError("config_bad_pattern", where=fields.where, value=shown(pattern)) from fault


def _kv_scheme(config: Mapping[str, object], fields: Fields) -> str | None:
    written = config.get("kv_cache_quant_algo", config.get("kv_cache_scheme"))
    if written is None:
        return None
    if isinstance(written, dict):
        found = {(8, "float"): "fp8", (8, "int"): "int8", (4, "float"): "nvfp4"}.get(
            (_number(written, fields, "num_bits") or 0, str(written.get("type", "float")))
        )
    else:
        found = {"FP8": "fp8", "INT8": "int8", "NVFP4": "nvfp4"}.get(str(written).upper())
    if found is None:
        raise NotModelledError("kv_format_not_modelled", where=fields.where, written=shown(written))
    return found
