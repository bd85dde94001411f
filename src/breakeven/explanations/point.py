"""The operating point: how many decode together, time per token, time to first token, and the most that can be served."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breakeven.advice import Line
from breakeven.arithmetic import added, line, middle, number, span
from breakeven.demand import lumps_of
from breakeven.draws import MEDIAN
from breakeven.evaluator import Point, curve, evaluate
from breakeven.ledger.step import step_time
from breakeven.lumps import held_back, lump_excess
from breakeven.pools import Pool
from breakeven.rate_groups import RateGroups
from breakeven.spec.deployment import Deployment
from breakeven.stats import Array

SEEN_S = 1e-8
"""A time below this is shown as nothing."""


@dataclass(frozen=True, kw_only=True)
class Median:
    """One replica's operating point as plain numbers."""

    rate: float
    output: float
    tau: float
    cap: float
    batch: float
    share: float
    step_s: float
    tpot_s: float
    ttft_s: float
    """Without the wait for a place."""
    wait_s: float

    @property
    def decode_s(self) -> float:
        """D, seconds a request decodes."""
        return max(self.output - 1.0, 0.0) * self.tpot_s


def median(p: Point) -> Median:
    """The numbers of a point in the median world."""
    wait = middle(p.wait_s)
    before = middle(p.prompt_wait_s)
    ttft = middle(p.ttft_s) if p.ttft_s is not None else 0.0
    return Median(
        rate=middle(p.request_rate) / p.replicas if p.request_rate is not None else 0.0,
        output=middle(p.demand.output_tokens) if p.demand.output_tokens is not None else 1.0,
        tau=middle(p.tau),
        cap=middle(p.cap),
        batch=middle(p.batch),
        share=middle(p.prefill_share),
        step_s=middle(p.step_s),
        tpot_s=middle(p.tpot_s),
        ttft_s=ttft - wait - before if wait < float("inf") else float("inf"),
        wait_s=wait,
    )


def step_at(p: Point, batch: float) -> float:
    """Seconds of a step with so many sequences."""
    return middle(p.time_factor * step_time(p.cost, batch))


def batch_lines(p: Point, d: Deployment) -> list[Line]:
    """The effective batch, by how requests arrive."""
    m = median(p)
    if p.demand.mode == "pinned":
        return [line("b", "operating_point.b", "as given", number(m.batch), m.batch, "number")]
    if p.demand.mode == "closed":
        return [_closed_batch(p, m)]
    if middle(p.saturated):
        return [line("b", "operating_point.b", "b_cap", number(m.cap), m.batch, "number")]
    if p.rate_groups is not None:
        return [_batch_of_groups(p, p.rate_groups, m)]
    chain = f"λ {number(m.rate)}/s, O {number(m.output)}, τ {number(m.tau)}, ρ {number(m.share)}, cap {number(m.cap)}, "
    chain += f"t_step(1) {span(step_at(p, 1.0))}, t_step({number(m.batch)}) {span(m.step_s)}"
    return [line("b", "operating_point.b", *_levels(d, m, chain), m.batch, "number"), _fast(d)]


def _lumps(d: Deployment, m: Median) -> tuple[float, float]:
    """What lumps of prompts add to the batch's variance, and what they hold back."""
    lumps = lumps_of(d)
    return float(lump_excess(m.share, lumps)), float(held_back(m.share, lumps))


def _levels(d: Deployment, m: Median, numbers: str) -> tuple[str, str]:
    """The sum over states, and its numbers; without lumps it is of births and deaths."""
    x, held = _lumps(d, m)
    if x == 0.0:
        return "Σ min(i, cap)·π_i with π_i ∝ Π over j ≤ i of λ·O·t_step(j)/(j·τ·(1 − ρ))", numbers
    formula = "Σ min(i, cap)·π_i + held with π_i ∝ r_i·Π over j < i of (θ + r_j), r_j = (1 − θ)·λ·O·t_step(j)/(j·τ·(1 − ρ)), θ = x/(1 + x)"
    return formula, f"{numbers}, x {number(x)}, held {number(held)}"


def _batch_of_groups(p: Point, groups: RateGroups, m: Median) -> Line:
    """The mean over groups of windows; one that asks for more than λ_max runs the full batch for longer."""
    most = middle(p.max_request_rate) / p.replicas
    stretched = np.ravel(groups.batch) * np.maximum(
        np.ravel(groups.factors) * m.rate / most, np.where(np.ravel(groups.saturated), 1.0, 0.0)
    )
    each = np.where(np.ravel(groups.saturated), stretched, np.ravel(groups.batch))
    numbers = added(f"{number(w)}·{number(b)}" for w, b in zip(np.ravel(groups.weights), each, strict=True))
    return line("b", "operating_point.b", "Σ w_i·b(λ_i)", numbers, m.batch, "number")


def _over_groups(groups: RateGroups, values: Array) -> str:
    """Values by groups, in proportion to their requests."""
    shares = np.ravel(groups.weights * groups.factors)
    return added(
        f"{number(share)}·{span(value if value >= SEEN_S else 0.0)}" for share, value in zip(shares, np.ravel(values), strict=True)
    )


def _fast(d: Deployment) -> Line:
    """The open loop in the form that a calculator can follow: within a few per cent of the chain."""
    p = evaluate(d, exact=False)
    m = median(p)
    x, held = _lumps(d, m)
    even = (m.batch - held) / (1.0 - held / m.cap) if held < m.cap else m.cap
    numbers = (
        f"{number(m.rate)}·{number(m.output)}·{span(step_at(p, min(1.0 + x + even, m.cap)))}/({number(m.tau)}·(1 − {number(m.share)}))"
    )
    if x == 0.0:
        return line("b (fast)", "operating_point.fast", "λ·O·t_step(1 + b)/(τ·(1 − ρ))", numbers, m.batch, "number")
    formula = "b₀ + held·(1 − b₀/cap), b₀ = λ·O·t_step(1 + x + b₀)/(τ·(1 − ρ))"
    return line(
        "b (fast)", "operating_point.fast", formula, f"{numbers} + {number(held)}·(1 − {number(even)}/{number(m.cap)})", m.batch, "number"
    )


def _active(p: Point, m: Median) -> float:
    clients = middle(p.demand.clients) if p.demand.clients is not None else 1.0
    return min(clients, m.cap)


def _closed_batch(p: Point, m: Median) -> Line:
    numbers = f"{number(_active(p, m))}·{span(m.decode_s)}/({span(m.decode_s)} + {span(m.ttft_s)})"
    return line("b", "operating_point.b", "C_act·D/(D + TTFT₀), C_act = min(C, cap)", numbers, m.batch, "number")


def lines(p: Point, d: Deployment) -> list[Line]:
    """Tokens a round, and the figures of the point."""
    found = []
    accepted = curve(d, p.demand.context_tokens, MEDIAN)
    if accepted is not None and d.engine.speculative is not None:
        positions = [accepted.cumulative(i) for i in range(1, d.engine.speculative.num_speculative_tokens + 1)]
        found.append(line("τ", "speculation.tau", "1 + Σ p_i", " + ".join(["1", *map(number, positions)]), p.tau, "number"))
    m = median(p)
    if p.demand.input_tokens is not None and p.demand.output_tokens is not None:
        taken = f"{number(m.rate)}·{span(p.interference_s)}"
        found.append(line("ρ", "operating_point.rho", "λ·T_taken", taken, m.share, "percent"))
    found.append(_tpot(p, m))
    found += _first_token(p, m)
    if p.e2e_s is not None:
        latency = f"{span(p.ttft_s)} + ({number(m.output)} − 1)·{span(m.tpot_s)}" if m.wait_s < float("inf") else ""
        found.append(line("latency", "operating_point.latency", "TTFT + (O − 1)·TPOT", latency, p.e2e_s, "time"))
    return [*found, *_most(p, m)]


def _tpot(p: Point, m: Median) -> Line:
    if p.demand.mode == "pinned":
        formula, numbers = "t_step/τ", f"{span(m.step_s)}/{number(m.tau)}"
    elif p.demand.mode == "closed":
        f = m.decode_s / (m.decode_s + m.ttft_s) if m.decode_s else 0.0
        formula = "t_step/τ + T_taken·(C_act − 1)·f/(O − 1), f = D/(D + TTFT₀)"
        others = f"{span(p.interference_s)}·({number(_active(p, m))} − 1)·{number(f)}/({number(m.output)} − 1)"
        numbers = f"{span(m.step_s)}/{number(m.tau)}" + (f" + {others}" if m.output > 1 else "")
    elif middle(p.saturated):
        formula, numbers = "t_step/(τ·(1 − ρ))", f"{span(m.step_s)}/({number(m.tau)}·(1 − {number(m.share)}))"
    else:
        formula, numbers = "b/(λ·O)", f"{number(m.batch)}/({number(m.rate)}·{number(m.output)})"
    return line("TPOT", "operating_point.tpot", formula, numbers, m.tpot_s, "time")


def _first_token(p: Point, m: Median) -> list[Line]:
    if p.ttft_s is None:
        return []
    if m.wait_s == float("inf"):
        return [line("TTFT", "operating_point.ttft", "without bound: the queue grows", "", p.ttft_s, "time")]
    e, ranks = p.efficiencies, p.shard.layout.ranks
    if p.rate_groups is not None:
        return _first_token_of_groups(p, p.rate_groups, m)
    if p.pool is not None:
        return _first_token_of_pools(p, p.pool, m)
    whole = m.decode_s + m.ttft_s
    f = 1.0 if p.demand.mode == "pinned" else m.decode_s / whole
    others = {"open": m.rate * whole, "closed": max(_active(p, m) - 1.0, 0.0), "pinned": max(m.batch - 1.0, 0.0)}[p.demand.mode]
    others /= ranks
    busy = f"1 + {number(e.ttft_burst)}·{number(others)}/2 + {number(e.ttft_queue)}·{number(others)}·(1 − {number(f)})"
    numbers = f"{span(e.ttft_start_s)} + {number(e.ttft_steps)}·{span(m.step_s)} + {span(p.prefill_alone_s)}·({busy})"
    formula = "t₀ + t_w·t_step + T_pf·(1 + β·others/2 + μ·others·(1 − f))"
    if p.demand.mode == "closed":
        floor = f"{number(_active(p, m))}·{span(p.interference_s)} − {span(m.decode_s)}"
        formula, numbers = f"max({formula}, C_act·T_taken − D)", f"max({numbers}, {floor})"
    found = [line("TTFT₀", "operating_point.ttft_served", formula, numbers, m.ttft_s, "time")]
    return [
        *found,
        *_waits(p, m),
        line("TTFT", "operating_point.ttft", "TTFT₀ + wait", f"{span(m.ttft_s)} + {span(m.wait_s)}", p.ttft_s, "time"),
    ]


def _first_token_of_groups(p: Point, groups: RateGroups, m: Median) -> list[Line]:
    """TTFT of a varying rate: by requests over its groups, and what overloaded windows leave waiting."""
    served, waits = _over_groups(groups, groups.first_token_s), _over_groups(groups, groups.wait_s)
    total = f"{span(m.ttft_s)} + {span(p.prompt_wait_s)} + {span(m.wait_s)}"
    return [
        line("TTFT₀", "operating_point.ttft_served", "Σ w_i·f_i·TTFT₀(λ_i)", served, m.ttft_s, "time"),
        line("wait", "operating_point.wait", "Σ w_i·f_i·wait(λ_i) + spill", f"{waits} + {span(groups.spill_s)}", m.wait_s, "time"),
        line("TTFT", "operating_point.ttft", "TTFT₀ + pool wait + wait", total, p.ttft_s, "time"),
    ]


def _first_token_of_pools(p: Point, pool: Pool, m: Median) -> list[Line]:
    """TTFT over two pools: the prompt, what of the transfer is not hidden, one step, and the waits for a place in either pool."""
    served = f"{span(p.efficiencies.ttft_start_s)} + {span(pool.alone_s)} + {span(pool.exposed_s)} + {span(m.step_s)}"
    formula = "t₀ + T_pf + exposed + t_step"
    found = []
    if p.demand.mode == "closed":
        others, f = max(_active(p, m) - 1.0, 0.0), m.decode_s / (m.decode_s + m.ttft_s) if m.decode_s else 0.0
        places = pool.servers / p.replicas
        behind = f"max({number(others)}·(1 − {number(f)}) + 1 − {number(places)}, 0)"
        queue = f"{behind}/{number(places)}·{span(pool.busy_s)}·{number(pool.variability)}"
        floor = f"{number(others + 1.0)}·{p.replicas}/{number(pool.max_rate)} − {span(m.decode_s)}"
        formula, served = f"max({formula} + queue, C_act·replicas/λ_pool − D)", f"max({served} + {queue}, {floor})"
    found.append(line("TTFT₀", "operating_point.ttft_served", formula, served, m.ttft_s, "time"))
    total = f"{span(m.ttft_s)} + {span(p.prompt_wait_s)} + {span(m.wait_s)}"
    return [
        *found,
        *_pool_wait(p, pool),
        *_waits(p, m),
        line("TTFT", "operating_point.ttft", "TTFT₀ + pool wait + wait", total, p.ttft_s, "time"),
    ]


def _pool_wait(p: Point, pool: Pool) -> list[Line]:
    if p.demand.mode != "open" or p.demand.rate is None:
        return []
    busy = middle(p.demand.rate) * p.replicas * middle(pool.busy_s) / pool.servers
    places = f"{number(busy)}^((2·({pool.servers} + 1))^0.5 − 1)/({pool.servers}·(1 − {number(busy)}))"
    numbers = f"{places}·{span(pool.busy_s)}·{number(pool.variability)}"
    formula = "ρ^(√(2(c + 1)) − 1)/(c·(1 − ρ))·T_pf·(1 + C²)/2"
    return [line("pool wait", "operating_point.pool_wait", formula, numbers, p.prompt_wait_s, "time")]


def _waits(p: Point, m: Median) -> list[Line]:
    if p.demand.mode != "closed" or p.demand.clients is None:
        return []
    active, clients = _active(p, m), middle(p.demand.clients)
    numbers = f"({number(clients)} − {number(active)})·({span(m.decode_s)} + {span(m.ttft_s)})/{number(active)}"
    return [line("wait", "operating_point.wait", "(C − C_act)·(D + TTFT₀)/C_act", numbers, m.wait_s, "time")]


def _most(p: Point, m: Median) -> list[Line]:
    if p.max_request_rate is None:
        numbers = f"{p.replicas}·{number(m.batch)}·{number(m.tau)}/{span(m.step_s)}"
        return [line("throughput", "operating_point.throughput", "replicas·b·τ/t_step", numbers, p.throughput, "number")]
    if p.demand.mode == "closed":
        formula = "replicas·C_act/(D + TTFT₀)"
        numbers = f"{p.replicas}·{number(_active(p, m))}/({span(m.decode_s)} + {span(m.ttft_s)})"
    else:
        full = m.batch if p.demand.mode == "pinned" else m.cap
        formula = "replicas·τ·b_cap/(t_step(b_cap)·O + τ·b_cap·T_taken)"
        top = f"{number(m.tau)}·{number(full)}"
        numbers = f"{p.replicas}·{top}/({span(step_at(p, full))}·{number(m.output)} + {top}·{span(p.interference_s)})"
        if p.pool is not None:
            formula, numbers = f"min({formula}, λ_pool)", f"min({numbers}, {number(p.pool.max_rate)})"
    return [
        line("λ_max", "operating_point.lambda_max", formula, numbers, p.max_request_rate, "number"),
        line(
            "throughput",
            "operating_point.throughput",
            "λ_max·O",
            f"{number(p.max_request_rate)}·{number(m.output)}",
            p.throughput,
            "number",
        ),
    ]
