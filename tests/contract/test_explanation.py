"""The arithmetic can be done again by hand: the numbers that a line shows give the value it shows, within their rounding."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import cache

import pytest
from model_configs import hybrid

from breakeven import api
from breakeven.advice import Explanation, Line
from breakeven.arithmetic import number, span
from breakeven.efficiencies import prior
from breakeven.messages import LANGUAGES, text
from breakeven.spec.deployment import Deployment
from breakeven.spec.disaggregation import Disaggregation, PrefillPool
from breakeven.spec.engine import Engine, Speculative
from breakeven.spec.model import Model
from breakeven.spec.parallel import layout
from breakeven.spec.workload import Acceptance, ArrivalRates, Workload
from breakeven.words import line_value

UNITS = {
    "%": 1e-2, "": 1.0, "TB": 1e12, "GB": 1e9, "MB": 1e6, "kB": 1e3, "B": 1.0, "PFLOP": 1e15, "TFLOP": 1e12, "GFLOP": 1e9, "MFLOP": 1e6,
    "FLOP": 1.0, "h": 3600.0, "min": 60.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6,
}  # fmt: skip
NUMBER = re.compile(
    r"(?<![\w.])(\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?)(?: (TB|GB|MB|kB|B|PFLOP|TFLOP|GFLOP|MFLOP|FLOP|min|ms|µs|s|h|%)(?:/s)?(?!\w))?"
)
NAMES = {
    "smoothmax": lambda a, b: (a**4 + b**4) ** 0.25, "max": max, "min": min, "floor": math.floor, "log2": math.log2,
}  # fmt: skip
NOT_PLAIN = {("b", "open")}
"""The birth–death chain is no formula for a calculator; its line shows what goes into it, and the fast form stands beside it."""

OPEN = {"input_tokens": 2000.0, "output_tokens": 300.0, "request_rate": 3.0, "prefix_hit_rate": 0.3}


def build(
    model: str,
    device: str,
    *,
    engine: dict[str, object],
    domain: int | None = None,
    pools: Disaggregation | None = None,
    **workload: object,
) -> Deployment:
    settings, shape = Engine(**engine), api.model(model)
    hardware = api.hardware(device, layout(shape, settings).devices)
    if domain is not None:
        hardware = replace(hardware, device=replace(hardware.device, link_domain=domain))
    return Deployment(model=shape, hardware=hardware, engine=settings, workload=Workload(**workload), disaggregation=pools)


def of(model: Model, workload: dict[str, float]) -> Deployment:
    return Deployment(model=model, hardware=api.hardware("h100-sxm", 1), engine=Engine(version="0.30"), workload=Workload(**workload))


WINDOWS = ArrivalRates(factors=(0.2, 0.8, 5.2), weights=(0.4, 0.5, 0.1), window_s=60.0, windows=60, spill=((1.0, 60.0), (5.2, 0.0)))
CLOSED = {"input_tokens": 2000.0, "output_tokens": 300.0, "concurrency": 48.0, "prefix_hit_rate": 0.3}
DRAFTED = {"speculative": Speculative(method="eagle3", num_speculative_tokens=3)}
WHOLE = {"enable_expert_parallel": True}
SLOTS = {"name": "llamacpp", "version": "b9000", "max_num_seqs": 8, "kv_unified": False}
POOLS = Disaggregation(prefill=PrefillPool(count=8, tensor_parallel_size=4), transfer_bytes_per_s=40e9)
DEPLOYMENTS = {
    "open": build("llama-3.1-8b", "h100-sxm", engine={}, **OPEN),
    "windows": build("llama-3.1-8b", "h100-sxm", engine={}, arrivals=WINDOWS, **OPEN),
    "bursts": build("llama-3.1-8b", "h100-sxm", engine={"max_num_seqs": 16}, arrivals=WINDOWS, **OPEN),
    "saturated": build("llama-3.1-8b", "l4", engine={"max_num_seqs": 8}, **{**OPEN, "request_rate": 9.0}),
    "closed": build("llama-3.1-70b", "h100-sxm", engine={"tensor_parallel_size": 4, "max_num_seqs": 32}, **CLOSED),
    "pinned": build("gemma-2-9b", "a100-sxm-80", engine={}, batch=32.0, context_tokens=6000.0),
    "drafted": build("llama-3.1-8b", "h100-sxm", engine=DRAFTED, acceptance=Acceptance(cumulative=(0.75, 0.6, 0.45)), **OPEN),
    "mixture": build("deepseek-v3", "h200-sxm", engine={"tensor_parallel_size": 8}, **CLOSED),
    "eager": build("qwen3-30b-a3b", "h200-sxm", engine={"enforce_eager": True, "kv_cache_dtype": "fp8"}, **CLOSED),
    "staged": build(
        "llama-3.1-70b", "a100-sxm-80", engine={"version": "0.20", "tensor_parallel_size": 2, "pipeline_parallel_size": 2}, **OPEN
    ),
    "llama.cpp": build("qwen2.5-7b", "m3-max-40c", engine={"name": "llamacpp", "max_num_seqs": 4}, **{**OPEN, "request_rate": 0.02}),
    "slots": build("qwen2.5-7b", "m3-max-40c", engine=SLOTS, batch=4.0, context_tokens=800.0),
    "slots, mixture": build("qwen3-30b-a3b", "h100-sxm", engine=SLOTS, **{**CLOSED, "concurrency": 3.0}),
    "hybrid": of(hybrid("kimi_linear"), CLOSED),
    "blocks": of(hybrid("nemotron_h"), OPEN),
    "compressed": of(hybrid("deepseek_v4"), CLOSED),
    "shared": of(hybrid("gemma3n_text"), CLOSED),
    "towers": of(replace(api.model("llama-3.1-8b"), beside_bytes=1.2e9), CLOSED),
    "stateful": of(hybrid("rwkv6"), CLOSED),
    "ranks": build("deepseek-v3", "h200-sxm", engine={"data_parallel_size": 16, **WHOLE}, domain=8, **CLOSED),
    "gathered": build("qwen3-30b-a3b", "h100-sxm", engine={"tensor_parallel_size": 2, "data_parallel_size": 2}, **CLOSED),
    "whole": build("qwen3-30b-a3b", "h100-sxm", engine={"tensor_parallel_size": 4, **WHOLE}, **OPEN),
    "dealt": build("deepseek-v3", "h200-sxm", engine={"tensor_parallel_size": 8, "decode_context_parallel_size": 4}, **CLOSED),
    "cut": build("llama-3.1-70b", "h100-sxm", engine={"tensor_parallel_size": 4, "prefill_context_parallel_size": 2}, domain=4, **OPEN),
    "pools": build("llama-3.1-70b", "h100-sxm", engine={"tensor_parallel_size": 4}, pools=POOLS, **OPEN),
    "pools, closed": build("llama-3.1-70b", "h100-sxm", engine={"tensor_parallel_size": 4}, pools=POOLS, **CLOSED),
    "unchunked": build("llama-3.1-8b", "a100-sxm-80", engine={"enable_chunked_prefill": False}, **OPEN),
}
MIXED = {
    "embedding": ("q8_0", 1.0625),
    "head": ("q6_k", 0.8203),
    "attention": ("q4_k", 0.5921),
    "mlp": ("q4_k", 0.6117),
    "other": ("f32", 4.0),
}
DEPLOYMENTS["mixed file"] = replace(
    DEPLOYMENTS["llama.cpp"],
    model=replace(
        DEPLOYMENTS["llama.cpp"].model,
        stored={part: kind for part, (kind, _) in MIXED.items()},
        stored_bytes={part: getattr(DEPLOYMENTS["llama.cpp"].model.parameters, part) * wide for part, (_, wide) in MIXED.items()},
    ),
)
LEVERS = tuple(api.levers())


@cache
def explanation(where: str, lever: str) -> Explanation:
    return api.explain(DEPLOYMENTS[where], lever, draws=32)


def half_place(number: float, unit: str) -> float:
    """Half of the last place that a number is written to: four figures, three with a unit, two of minutes, hours and per cent."""
    figures = 2 if unit in ("min", "h", "%") else 3 if unit else 4
    return 0.5 * 10.0 ** min(math.floor(math.log10(number)) + 1 - figures, 0 if figures > 2 else 1) if number else 0.0


def calculated(expression: str) -> tuple[float, float]:
    """The value of a line's numbers, and how far their rounding may have moved it."""
    found: list[tuple[float, float]] = []

    def taken(match: re.Match[str]) -> str:
        unit, digits = match[2] or "", match[1].replace(",", "")
        mantissa, _, exponent = digits.partition("e")
        scale = UNITS[unit] * 10.0 ** int(exponent or 0)
        found.append((float(mantissa) * scale, half_place(float(mantissa), unit) * scale))
        return f"x[{len(found) - 1}]"

    code = NUMBER.sub(taken, expression).replace("·", "*").replace("−", "-").replace("^", "**")
    assert re.fullmatch(r"[\sx\[\]\d+*/(),.-]*", re.sub(r"\b(smoothmax|max|min|floor|log2)\b", "", code)), code

    def value(numbers: list[float]) -> float:
        return float(eval(code, {"__builtins__": {}}, {**NAMES, "x": numbers}))

    exact = [number for number, _ in found]
    moved = (value([*exact[:i], number + half, *exact[i + 1 :]]) for i, (number, half) in enumerate(found))
    return value(exact), sum(abs(other - value(exact)) for other in moved)


def plain_lines(where: str, lever: str) -> list[tuple[str, Line]]:
    found = explanation(where, lever)
    mode = "open" if DEPLOYMENTS[where].workload.request_rate is not None else "other"
    every = [("off", line) for line in found.off] + [("on", line) for line in found.on] + [("result", line) for line in found.result]
    return [(arm, line) for arm, line in every if (line.symbol, mode) not in NOT_PLAIN or where == "saturated"]


@pytest.mark.parametrize("lever", LEVERS)
@pytest.mark.parametrize("where", DEPLOYMENTS)
def test_the_numbers_of_a_line_give_its_value(where: str, lever: str) -> None:
    wrong = []
    for arm, line in plain_lines(where, lever):
        if not line.substituted:
            assert not math.isfinite(line.value) or line.symbol.startswith("gain"), line
            continue
        value, off = calculated(line.substituted)
        # An open loop's TTFT takes three rounds towards its own fixed point, which the line writes down as reached.
        near = 1e-2 if line.symbol == "TTFT₀" else 2e-3
        if not math.isclose(value, line.value, rel_tol=near, abs_tol=off * 1.05 + 1e-12):
            wrong.append((arm, line.symbol, line.substituted, value, line.value, off))
    assert not wrong


@pytest.mark.parametrize("lever", LEVERS)
def test_every_line_shows_numbers_a_name_and_a_source_in_both_languages(lever: str) -> None:
    for where in DEPLOYMENTS:
        found = explanation(where, lever)
        for line in (*found.off, *found.on):
            assert line.substituted or not math.isfinite(line.value), line
            assert line.formula and line.source
            assert line_value(line_of(line))
            assert all(text(line.name, language) for language in LANGUAGES)


def line_of(line: Line):
    from breakeven.document import Line as Written

    return Written(
        symbol=line.symbol,
        formula=line.formula,
        substituted=line.substituted,
        value=line.value,
        unit=line.unit,
        name="",
        source=line.source,
    )


def test_the_constants_that_go_in_are_shown() -> None:
    lines = {line.symbol: line.substituted for line in explanation("closed", "weight_quant").off}
    e = prior(Engine())
    dense, decode, taken = (number(x) for x in (e.bandwidth_dense, e.mfu_decode, e.interference))
    assert all(piece in lines["t_dense"] for piece in (f"3.35 TB/s·{dense}", "989 TFLOP/s", f"/{decode}"))
    layer, reduce_ = (span(x) for x in (e.layer_s, e.allreduce_s))
    assert f"80·({layer})" in lines["t_fixed"] and f"log2(4)·{reduce_}" in lines["t_fixed"].replace(")·", "·")
    assert f"{taken}·" in lines["T_taken"]
    assert {line.symbol: line.substituted for line in explanation("drafted", "speculation").on}["τ"] == "1 + 0.75 + 0.6 + 0.45"


def test_a_wrong_number_would_be_found() -> None:
    value, off = calculated("smoothmax(34.8 GB/(3.35 TB/s·0.92), 7.859·(34.8 GFLOP·1/989 TFLOP/s)/0.7)")
    assert math.isclose(value, 0.01129, rel_tol=2e-3) and off < 0.05 * value
    assert not math.isclose(calculated("35.8 GB/(3.35 TB/s·0.92)")[0], 0.01129, rel_tol=2e-3, abs_tol=off)


def test_the_explanation_is_of_the_setting_that_the_advice_chose() -> None:
    for where in ("closed", "mixture"):
        advice = api.advise(DEPLOYMENTS[where], draws=32)
        for lever in LEVERS:
            assert explanation(where, lever).setting == advice.levers[lever].setting
