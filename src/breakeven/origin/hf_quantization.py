"""How a checkpoint stores its weights and wants its KV cache: the common forms of ``quantization_config``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from breakeven.errors import InputError, NotModelledError
from breakeven.messages import Message
from breakeven.origin.config_fields import Fields, table
from breakeven.origin.hf_modules import Held, Role
from breakeven.origin.hf_rules import Rules, Written
from breakeven.origin.hf_weight_formats import SIXTEEN_BIT_BYTES, Format, float4
from breakeven.origin.quantizations.bitsandbytes import bitsandbytes
from breakeven.origin.quantizations.compressed_tensors import compressed_tensors
from breakeven.origin.quantizations.float8 import fp8, mistral, mxfp4
from breakeven.origin.quantizations.grouped_integers import auto_round, awq, eetq, gptq, hqq
from breakeven.origin.quantizations.mlx import mlx
from breakeven.origin.quantizations.modelopt import modelopt
from breakeven.origin.quantizations.quark import quark
from breakeven.origin.quantizations.torchao import torchao
from breakeven.origin.values import shown

_METHODS: Mapping[str, Callable[[Written], Rules]] = {
    "fp8": fp8,
    "fbgemm_fp8": fp8,
    "mxfp4": mxfp4,
    "bitsandbytes": bitsandbytes,
    "modelopt": modelopt,
    "modelopt_fp4": modelopt,
    "modelopt_mixed": modelopt,
    "compressed-tensors": compressed_tensors,
    "gptq": gptq,
    "gptqmodel": gptq,
    "awq": awq,
    "auto-round": auto_round,
    "auto_round": auto_round,
    "intel/auto-round": auto_round,
    "hqq": hqq,
    "eetq": eetq,
    "quark": quark,
    "torchao": torchao,
    "mlx": mlx,
    "mistral": mistral,
}
"""By ``quant_method``. What is not here (AQLM, EXL2, QuIP#, VPTQ, SpQR, HIGGS, …) is refused by its name."""


@dataclass(frozen=True, kw_only=True)
class Storage:
    """Formats by tensor class, their bytes, and the KV format the checkpoint asks for."""

    stored: Mapping[str, str]
    """A class with several formats has that of its larger part; 16 bit is not listed."""
    kv_scheme: str | None
    stored_bytes: Mapping[str, float] = field(default_factory=dict)
    """Of the classes that hold anything but 16 bit, part by part; ``mtp`` too."""
    remarks: tuple[Message, ...] = ()


def storage(written: object, fields: Fields, name: str, held: Held) -> Storage:
    """Read a ``quantization_config`` (or MLX's ``quantization``); nothing written means the model's own dtype."""
    if written is None:
        return Storage(stored={}, kv_scheme=None)
    config = _flattened(table(written, "quantization_config", fields.where), fields)
    method = _method(config, fields)
    known = Written(config=config, fields=fields, name=name)
    if method not in _METHODS:
        raise known.refused(method)
    rules = _with_expert_format(_METHODS[method](known), fields)
    parts = _parts(rules, held)
    stored = {kind: _largest(found) for kind, found in parts.items() if kind != "mtp"}
    return Storage(
        stored={kind: found.name for kind, found in stored.items() if found is not None},
        kv_scheme=_kv_scheme(known),
        stored_bytes={kind: _bytes(found) for kind, found in parts.items() if any(found)},
        remarks=(*rules.remarks, *_narrower(stored, fields)),
    )


def _flattened(config: Mapping[str, object], fields: Fields) -> Mapping[str, object]:
    # ModelOpt's own hf_quant_config.json nests everything one level down, without a quant_method.
    if "producer" in config and "quantization" in config:
        return {"quant_method": "modelopt", **table(config["quantization"], "quantization", fields.where)}
    return config


def _method(config: Mapping[str, object], fields: Fields) -> str:
    method = config.get("quant_method")
    if isinstance(method, str):
        return method.lower()
    producer = config.get("producer")
    if config.get("quant_algo") is not None or (isinstance(producer, dict) and producer.get("name") == "modelopt"):
        return "modelopt"
    if "qformat_weight" in config:
        return "mistral"
    if config.get("config_groups") is not None:
        return "compressed-tensors"
    if "bits" in config and "group_size" in config and not {"sym", "desc_act", "zero_point", "version"} & set(config):
        return "mlx"
    raise InputError("config_missing_fields", where=fields.where, model_type=fields.model_type, fields="quantization_config.quant_method")


def _with_expert_format(rules: Rules, fields: Fields) -> Rules:
    """DeepSeek-V4 writes the format of the experts beside a quantisation of all else."""
    found = float4(32)
    if fields.raw("expert_dtype") != "fp4" or "expert" not in rules.by_role or found is None:
        return rules
    experts: Mapping[Role, Format] = {role: found for role in rules.by_role if role in ("expert", "mtp_expert")}
    return replace(rules, by_role={**rules.by_role, **experts})


Parts = Mapping[Format | None, int]
"""Parameters by format; None is 16 bit."""


def _parts(rules: Rules, held: Held) -> Mapping[str, Parts]:
    """What each class holds in each format; what is no matrix with a name stays at 16 bits."""
    found: dict[str, dict[Format | None, int]] = defaultdict(lambda: defaultdict(int))
    for module in held.modules:
        found[module.kind][rules.format_of(module)] += module.parameters
    for kind, parts in found.items():
        parts[None] += max(0, held.counts.get(kind, 0) - sum(parts.values()))
    return found


def _largest(parts: Parts) -> Format | None:
    return max(parts, key=lambda found: parts[found])


def _bytes(parts: Parts) -> float:
    return sum(count * (found.bytes if found else SIXTEEN_BIT_BYTES) for found, count in parts.items())


def _narrower(stored: Mapping[str, Format | None], fields: Fields) -> tuple[Message, ...]:
    if not any(found is not None and found.narrower for found in stored.values()):
        return ()
    return (Message("warning.activations_narrower", {"where": fields.where}),)


def _kv_scheme(written: Written) -> str | None:
    config = written.config
    asked = next((config[name] for name in ("kv_cache_quant_algo", "kv_cache_scheme") if config.get(name) is not None), None)
    if asked is None:
        return _quark_kv(written)
    if isinstance(asked, dict):
        scheme = written.at(asked, "kv_cache_scheme")
        return _kv_format(scheme.number("num_bits"), str(asked.get("type", "float")), asked, written)
    plain = {"FP8": "fp8", "INT8": "int8", "NVFP4": "nvfp4"}.get(str(asked).upper())
    if plain is None and str(asked).upper() != "NONE":
        raise NotModelledError("kv_format_not_modelled", where=written.fields.where, written=shown(asked))
    return plain


def _kv_format(bits: int | None, kind: str, asked: object, written: Written) -> str:
    found = {(8, "float"): "fp8", (8, "int"): "int8", (4, "float"): "nvfp4"}.get((bits or 0, kind))
    if found is None:
        raise NotModelledError("kv_format_not_modelled", where=written.fields.where, written=shown(asked))
    return found


def _quark_kv(written: Written) -> str | None:
    """Quark writes what becomes of the outputs of the key and value projections."""
    layers = written.inner("kv_cache_quant_config").config
    outputs = [written.at(own, "kv_cache_quant_config").config.get("output_tensors") for own in layers.values()]
    dtypes = {str(written.at(output, "output_tensors").config.get("dtype")).lower() for output in outputs if output is not None}
    if not dtypes:
        return None
    dtype = sorted(dtypes)[0]
    return _kv_format(8 if "8" in dtype else None, "float" if dtype.startswith("fp8") else "int", dtype, written)
