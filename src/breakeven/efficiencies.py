"""The fitted numbers the ledgers take as arguments: priors by engine and era, acceptance priors, model-form sigmas."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from breakeven.spec.engine import Engine, version_key

GRAPH_VERSION = (0, 8)
"""vLLM from 0.8 on runs its V1 engine with CUDA graphs."""


@dataclass(frozen=True, kw_only=True)
class Efficiencies:
    """Shares of sheet rates that are achieved, and fixed costs in seconds. Names as in the theory pages."""

    bandwidth_dense: float
    bandwidth_experts: float
    bandwidth_kv: float
    mfu_decode: float
    layer_s: float
    mla_layer_s: float
    moe_layer_s: float
    sequence_s: float
    host_s: float
    allreduce_s: float
    link_efficiency: float
    alltoall_s: float
    network_efficiency: float
    logit_bytes: float
    prefill_mfu_dense: float
    prefill_mfu_experts: float
    prefill_mfu_attention: float
    interference: float
    ttft_start_s: float
    ttft_steps: float
    ttft_layer_s: float
    ttft_burst: float
    ttft_queue: float
    round_s: float
    round_sequence_s: float
    tree_s: float
    draft_pass_s: float
    draft_bandwidth: float
    lookup_s: float
    width_penalty: float
    expert_sharing: float
    prefix_bookkeeping: float
    tpot_between: float
    tpot_within: float
    ttft_between: float
    ttft_within: float
    eager: bool


@cache
def table(name: str) -> Mapping[str, Any]:
    """One file of ``catalog/calibrations``, read once."""
    return tomllib.loads(resources.files("breakeven").joinpath("catalog", "calibrations", f"{name}.toml").read_text(encoding="utf-8"))


def is_eager(engine: Engine) -> bool:
    """Whether the engine launches kernels one by one (no CUDA graphs): asked for, or of the era before them.

    A version without a number (``main``, ``nightly``) is a new one.
    """
    return engine.enforce_eager or (engine.name == "vllm" and version_key(engine.version) < GRAPH_VERSION)


def prior(engine: Engine) -> Efficiencies:
    """The efficiencies before anything is measured on the deployment."""
    return _prior(engine.name, is_eager(engine))


def _values(section: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(entry["value"]) for name, entry in section.items()}


@cache
def _prior(engine: str, eager: bool) -> Efficiencies:
    sheet = table("prior")
    step, prefill, ttft, spec, offset = (_values(sheet[name]) for name in ("step", "prefill", "ttft", "speculation", "offset"))
    by_engine = sheet["ttft_by_engine"].get(engine, {})
    layer = _values(sheet["eager"])["layer_factor"] if eager else 1.0
    for name in ("layer_s", "mla_layer_s", "moe_layer_s"):
        step[name] *= layer
    rounds = ("eager_round_s", "eager_round_sequence_s") if eager else ("round_s", "round_sequence_s")
    wide = sheet["parallel"]
    return Efficiencies(
        **step,
        alltoall_s=float(wide["alltoall_s"]["value"]),
        network_efficiency=float(wide["network_efficiency"]["value"]),
        prefill_mfu_dense=prefill["mfu_dense"],
        prefill_mfu_experts=prefill["mfu_experts"],
        prefill_mfu_attention=prefill["mfu_attention"],
        interference=prefill["interference"],
        **{f"ttft_{name}": value * by_engine.get(name, 1.0) for name, value in ttft.items()},
        round_s=spec[rounds[0]],
        round_sequence_s=spec[rounds[1]],
        tree_s=spec["tree_s"],
        draft_pass_s=spec["draft_pass_s"] * layer,
        draft_bandwidth=spec["draft_bandwidth"],
        lookup_s=spec["lookup_s"],
        width_penalty=spec["width_penalty"],
        expert_sharing=spec["expert_sharing"],
        prefix_bookkeeping=_values(sheet["prefix"])["bookkeeping"],
        tpot_between=offset["tpot_between"],
        tpot_within=offset["tpot_within"],
        ttft_between=offset["ttft_between"],
        ttft_within=offset["ttft_within"],
        eager=eager,
    )


def drawn_range(section: str, name: str) -> tuple[float, float]:
    """The bounds of a prior that is drawn."""
    entry = table("prior")[section][name]
    return float(entry["low"]), float(entry["high"])


def level(engine: Engine, family: str) -> str:
    """How well the model-form is known here: ``family`` when the fits held this engine on this class of device, else ``foreign``."""
    return "family" if f"{engine.name} {family}" in table("sigma")["known"] else "foreign"
