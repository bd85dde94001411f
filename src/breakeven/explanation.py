"""The arithmetic of a lever, line by line: symbol, formula, the numbers put in, the value, the formula's name and source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from breakeven.advice import Explanation, Line
from breakeven.evaluator import Point, evaluate
from breakeven.judge import ratio
from breakeven.ledger.step import parts
from breakeven.lever import Lever
from breakeven.messages import Message
from breakeven.spec.deployment import Deployment
from breakeven.statement import covered, read_bytes, ridge_batch, stage_batch, step_flop
from breakeven.units import WRITERS, significant

SOURCES: Mapping[str, str] = {
    "memory": "Kwon et al. 2023 (paged KV); docs/theory/memory.md",
    "bandwidth": "Pope et al. 2022 (bytes per step); docs/theory/bandwidth.md",
    "compute": "Williams et al. 2009 (roofline, ridge point); docs/theory/compute.md",
    "step": "Williams et al. 2009 (roofline), fixed costs from fits of public runs; docs/theory/step.md",
    "operating_point": "Little 1961, birth–death equilibrium; docs/theory/operating-point.md",
    "speculation": "Leviathan et al. 2023, equation 1; docs/theory/speculation.md",
    "levers": "definition; docs/theory/levers.md",
}
"""Where the formulas of a page come from."""


class Part(NamedTuple):
    """A number in a formula: its value and the unit it is written in."""

    value: float
    unit: str = "number"


def _middle(value: object) -> float:
    return float(np.median(np.asarray(value)))


def _text(part: Part | float) -> str:
    if isinstance(part, Part):
        return WRITERS[part.unit](part.value)
    return significant(part)


def line(symbol: str, formula: str, value: object, unit: str, page: str, *numbers: Part | float, template: str = "") -> Line:
    """One line; ``template`` holds a {} for each number put into the formula."""
    return Line(
        symbol=symbol,
        formula=formula,
        substituted=template.format(*(_text(n) for n in numbers)),
        value=_middle(value),
        unit=unit,
        name=Message(f"formula.{page}_{_key(symbol)}", {}),
        source=SOURCES[page],
    )


def _key(symbol: str) -> str:
    plain = {"κ": "kappa", "τ": "tau", "λ": "lambda", "ρ": "rho", "η": "eta"}
    return "".join(plain.get(c, c) for c in symbol).lower().replace(" ", "_").replace("*", "_star").replace("(", "_").replace(")", "")


def memory_lines(p: Point, d: Deployment) -> list[Line]:
    """Weights, κ, the pool and what fits."""
    capacity, use = d.hardware.device.memory_bytes, d.engine.gpu_memory_utilization
    r = p.room
    weights = Part(r.weight_bytes + r.draft_bytes, "bytes")
    return [
        line("weights", "Σ N·w / (TP·PP)", r.weight_bytes, "bytes", "memory"),
        line("κ", "Σ layers·heads·(k + v)·bytes", r.kv_bytes_per_token, "bytes", "memory"),
        line(
            "pool",
            "capacity·utilisation − weights − reserve",
            r.pool_bytes,
            "bytes",
            "memory",
            Part(capacity, "bytes"),
            use,
            weights,
            Part(r.reserve_bytes, "bytes"),
            template="{}·{} − {} − {}",
        ),
        line(
            "fits",
            "pool / K(tokens held)",
            r.fits_sequences,
            "number",
            "memory",
            Part(r.pool_bytes, "bytes"),
            Part(_middle(r.sequence_bytes), "bytes"),
            template="{} / {}",
        ),
    ]


def traffic_lines(p: Point) -> list[Line]:
    """Bytes and FLOP of a step."""
    return [*byte_lines(p), *flop_lines(p)]


def byte_lines(p: Point) -> list[Line]:
    """Bytes a step reads: weights, cache, and the cache's share."""
    s, b = p.shard, _middle(stage_batch(p))
    weights, kv = (_middle(x) for x in read_bytes(p))
    return [
        line("b", "mean sequences decoding", p.batch, "number", "operating_point"),
        line(
            "W",
            "dense + experts·coverage",
            weights,
            "bytes",
            "bandwidth",
            Part(s.dense_bytes, "bytes"),
            Part(s.expert_bytes, "bytes"),
            Part(_middle(covered(p)), "percent"),
            template="{} + {}·{}",
        ),
        line("KV", "b·K(c)", kv, "bytes", "bandwidth", b, Part(kv / b, "bytes"), template="{}·{}"),
        line(
            "s",
            "KV/(W + KV)",
            kv / (weights + kv),
            "percent",
            "bandwidth",
            Part(kv, "bytes"),
            Part(weights + kv, "bytes"),
            template="{} / {}",
        ),
    ]


def flop_lines(p: Point) -> list[Line]:
    """FLOP of a step, and the ridge."""
    linear, attention = (_middle(x) for x in step_flop(p))
    return [
        line(
            "FLOP",
            "linear + attention",
            linear + attention,
            "flop",
            "compute",
            Part(linear, "flop"),
            Part(attention, "flop"),
            template="{} + {}",
        ),
        line("b*", "n* / (k + 1)", ridge_batch(p), "number", "compute", _middle(ridge_batch(p)) * p.rows, p.rows, template="{} / {}"),
    ]


def time_lines(p: Point) -> list[Line]:
    """Seconds of a step by part, the round, and the time per token."""
    share = {name: _middle(p.time_factor * value) for name, value in parts(p.cost, p.batch).items()}
    formulas = {
        "dense": "smoothmax(bytes/(BW·η·φ), FLOP·δ/(F·η_f))",
        "experts": "smoothmax(coverage·bytes/(BW·η·φ), FLOP·δ/(F·η_f))",
        "attention": "b·smoothmax(K/(BW·η_kv), FLOP/(F·η_fa))·(1 + ρ·k)",
        "communication": "n·bytes per row/(link·η_link)",
        "fixed": "t_host + L·t_layer + b·t_seq + 2L·t_ar·log2(TP)",
        "speculation": "draft(b, k) + o₀",
    }
    lines = [line(f"t_{name}", formulas[name], seconds, "time", "step") for name, seconds in share.items() if seconds > 0]
    lines.append(
        line(
            "t_step",
            "Σ parts",
            p.step_s,
            "time",
            "step",
            *(Part(v, "time") for v in share.values() if v > 0),
            template=" + ".join(["{}"] * sum(v > 0 for v in share.values())),
        )
    )
    if p.rows > 1:
        lines.append(line("τ", "1 + Σ p_i", p.tau, "number", "speculation"))
    lines.append(line("ρ", "rate·ξ·T_mix", p.prefill_share, "percent", "operating_point"))
    lines.append(line("TPOT", _tpot_formula(p), p.tpot_s, "time", "operating_point"))
    if p.ttft_s is not None:
        lines.append(line("TTFT", "t₀ + t_w·t_step + T_pf·(1 + β·others/2 + μ·others·(1 − f)) + wait", p.ttft_s, "time", "operating_point"))
    if p.e2e_s is not None:
        lines.append(line("latency", "TTFT + (O − 1)·TPOT", p.e2e_s, "time", "operating_point"))
    if p.max_request_rate is not None:
        lines.append(line("λ_max", "τ·b_cap/(t_step·O + τ·b_cap·ξ·T_mix)", p.max_request_rate, "number", "operating_point"))
    return lines


def _tpot_formula(p: Point) -> str:
    return {"open": "b/(λ·O)", "closed": "t_step/τ + ξ·(C − 1)·f·T_mix/(O − 1)", "pinned": "t_step/τ"}[p.demand.mode]


def arm_lines(p: Point, d: Deployment) -> tuple[Line, ...]:
    """One arm, from its bytes to its seconds."""
    return (*memory_lines(p, d), *traffic_lines(p), *time_lines(p))


def result_lines(off: Point, on: Point) -> tuple[Line, ...]:
    """The gains, at the median."""
    lines = [
        line(
            "gain TPOT",
            "TPOT off / on",
            ratio(off.tpot_s, on.tpot_s, time=True),
            "gain",
            "levers",
            Part(_middle(off.tpot_s), "time"),
            Part(_middle(on.tpot_s), "time"),
            template="{} / {}",
        ),
        line(
            "gain throughput",
            "throughput on / off",
            ratio(off.throughput, on.throughput, time=False),
            "gain",
            "levers",
            _middle(on.throughput),
            _middle(off.throughput),
            template="{} / {}",
        ),
    ]
    if off.e2e_s is not None and on.e2e_s is not None:
        lines.append(
            line(
                "gain latency",
                "latency off / on",
                ratio(off.e2e_s, on.e2e_s, time=True),
                "gain",
                "levers",
                Part(_middle(off.e2e_s), "time"),
                Part(_middle(on.e2e_s), "time"),
                template="{} / {}",
            )
        )
    return tuple(lines)


def explain(lever: Lever, d: Deployment, setting: str) -> Explanation:
    """A lever's arithmetic in the median world: off, on, and what comes of it."""
    off = lever.remove(d) if lever.setting_on(d) is not None else d
    on = lever.apply(off, setting)
    a, b = evaluate(off), evaluate(on)
    return Explanation(lever=lever.name, setting=setting, off=arm_lines(a, off), on=arm_lines(b, on), result=result_lines(a, b))
