"""What a step reads and multiplies: weight bytes, cache bytes, FLOP, and the ridge."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from breakeven.advice import Line
from breakeven.arithmetic import added, byte_rate, count, flop, flop_rate, grouped, line, middle, number, size
from breakeven.demand import shape
from breakeven.draws import MEDIAN
from breakeven.evaluator import Point
from breakeven.explanations.memory import read_terms
from breakeven.kernels import by_family, matmul_rate
from breakeven.ledger import compute, memory
from breakeven.ledger.bandwidth import coverage, effective_tokens
from breakeven.ledger.experts import expected_maximum
from breakeven.ledger.step import attention_flop, expert_rows
from breakeven.spec.deployment import Deployment
from breakeven.spec.model import Experts, Model
from breakeven.statement import (
    covered,
    pass_batch,
    passes,
    read_bytes,
    ridge_batch,
    ridge_experts,
    ridge_rows,
    routed_in_a_pass,
    stage_batch,
    step_flop,
)

READ = ("attention", "mlp", "other", "head")
MULTIPLIED = ("attention", "mlp", "head")


def lines(p: Point, d: Deployment) -> list[Line]:
    """Bytes and FLOP of a step."""
    return [*_context(p, d), *_passes(p), *_bytes(p), *_flop(p), *_ridge(p, d)]


def counts(p: Point) -> dict[str, float]:
    """Parameters by tensor class as a step uses them: a tied head is the embedding."""
    model = p.shard.model
    return {**memory.counts_by_class(model), "head": compute.head_parameters(model)}


def _context(p: Point, d: Deployment) -> list[Line]:
    load = p.demand
    if d.workload.batch is not None and d.workload.context_tokens is not None:
        numbers = number(load.context_tokens)
    else:
        cross, square, _ = shape(d.workload)
        numbers = f"{number(load.input_tokens)}·{number(cross)} + {number(load.output_tokens)}·{number(square)}/2"
    return [line("c", "bandwidth.context", "E[I·O]/E[O] + E[O²]/(2·E[O])", numbers, load.context_tokens, "number")]


def _passes(p: Point) -> list[Line]:
    """How often a step reads the weights, where slots have caches of their own."""
    if not p.cost.slots:
        return []
    batch, slots = number(np.clip(p.batch, 1.0, p.cost.slots)), p.cost.slots
    return [line("passes", "bandwidth.passes", "b·(N − b + 1)/N", f"{batch}·({slots} − {batch} + 1)/{slots}", passes(p), "number")]


def _bytes(p: Point) -> list[Line]:
    s, b = p.shard, middle(stage_batch(p))
    weights, kv = (middle(x) for x in read_bytes(p))
    by_bytes = grouped((s.kernels[name].bytes, counts(p)[name]) for name in READ)
    dense = f"({added(f'{count(n)}·{number(w)} B' for w, n in by_bytes.items())})/{s.tensor_parallel}"
    found = []
    experts = s.model.experts
    if experts is not None:
        found += _coverage(p, experts)
        dense += f" + {size(s.expert_bytes)}·{number(covered(p))}"
    formula = "Σ N·w/TP + experts·coverage"
    if p.cost.slots:
        formula, dense = f"passes·({formula})", f"{number(passes(p))}·({dense})"
    return [
        *found,
        line("W", "bandwidth.w", formula, dense, weights, "bytes"),
        line("K(c)", "bandwidth.sequence", "Σ κ·min(c, window)", read_terms(p, p.demand.context_tokens), kv / b, "bytes"),
        line("KV", "bandwidth.kv", "b·K(c)", f"{number(b)}·{size(kv / b)}", kv, "bytes"),
        line("s", "bandwidth.s", "KV/(W + KV)", f"{size(kv)}/({size(weights)} + {size(kv)})", kv / (weights + kv), "percent"),
    ]


def _coverage(p: Point, experts: Experts) -> list[Line]:
    """Share of the experts that a step reads; of expert parallelism, what the busiest device reads of its own."""
    staged, sharing, devices = middle(routed_in_a_pass(p)), middle(p.efficiencies.expert_sharing), p.shard.layout.expert_parallel
    awake = middle(coverage(effective_tokens(staged, p.rows, sharing), experts.top_k, experts.count))
    numbers = f"1 − (1 − {experts.top_k}/{experts.count})^({number(staged)}·(1 + {number(sharing)}·({p.rows} − 1)))"
    found = [line("coverage", "bandwidth.coverage", "1 − (1 − top_k/E)^(b·(1 + ν·(r − 1)))", numbers, awake, "number")]
    if devices > 1:
        seen = number(middle(p.efficiencies.expert_imbalance))
        spread = f"{seen}·{number(expected_maximum(devices))}·({number(awake)}·(1 − {number(awake)})·{devices}/{experts.count})^0.5"
        formula = "min(1, p + u·m(G)·√(p·(1 − p)·G/E)), p = coverage"
        found.append(line("busiest", "bandwidth.busiest", formula, f"min(1, {number(awake)} + {spread})", covered(p), "number"))
        found.append(_load(p, experts, staged))
    return found


def _load(p: Point, experts: Experts, staged: float) -> Line:
    """Rows of the busiest device over the mean."""
    devices, rows = p.shard.layout.expert_parallel, staged * p.rows
    seen = number(middle(p.efficiencies.expert_imbalance))
    spread = f"{seen}·{number(expected_maximum(devices))}·(({devices} − 1)/({number(rows)}·{experts.top_k}))^0.5"
    numbers = f"min({devices}, {number(p.shard.expert_skew)}·(1 + {spread}))"
    formula = "min(G, s·(1 + u·m(G)·√((G − 1)/(n·top_k))))"
    return line("load", "bandwidth.load", formula, numbers, middle(expert_rows(p.cost, staged)) / rows, "number")


def row_share(p: Point) -> float:
    """Rows that the experts' FLOP are counted for, over those of one rank."""
    return middle(expert_rows(p.cost, routed_in_a_pass(p)) / (pass_batch(p) * p.rows))


def _flop(p: Point) -> list[Line]:
    s, b, model = p.shard, stage_batch(p), p.shard.model
    linear, attention = (middle(x) for x in step_flop(p))
    row = s.dense_flop_per_row + s.expert_flop_per_row * row_share(p) + s.head_flop_per_row
    own = middle(attention_flop(s, p.demand.context_tokens, p.rows))
    seen = added(_seen(model, s.tensor_parallel, middle(p.demand.context_tokens)))
    numbers = f"2·{count(compute.linear_parameters(model) + compute.head_parameters(model))}/{s.tensor_parallel}"
    formula, over = "2·(N_act + N_head)/TP", f"{s.tensor_parallel}"
    if s.layout.expert_shards != s.tensor_parallel or s.layout.expert_parallel > 1:
        formula = "2·(N_dense + N_head)/TP + FLOP_experts·(rows of the experts)/(b·r)"
        numbers = f"{flop(s.dense_flop_per_row + s.head_flop_per_row)} + {flop(s.expert_flop_per_row)}·{number(row_share(p))}"
    if s.layout.prefill_context > 1:
        over = f"({s.tensor_parallel}·{s.layout.prefill_context})"
    return [
        line("FLOP/row", "compute.row", formula, numbers, row, "flop"),
        line("FLOP_att", "compute.attention", "r·Σ layers·FLOP·min(c, window)/TP", f"{p.rows}·({seen})/{over}", own, "flop"),
        line(
            "FLOP",
            "compute.flop",
            "b·r·FLOP/row + b·FLOP_att",
            f"{number(b)}·{p.rows}·{flop(row)} + {number(b)}·{flop(own)}",
            linear + attention,
            "flop",
        ),
    ]


def _seen(model: Model, devices: int, at: float) -> Iterator[str]:
    """Layers · FLOP · entries of each group, of its indexer, and what the states take."""
    for g in model.attention:
        yield f"{g.layers}·{number(compute.decode_flop_per_token_seen(g))}·{number(memory.entries_attended(g, at))}"
        if g.index_dim:
            yield f"{devices}·{g.layers}·{number(compute.index_flop_per_entry(g))}·{number(memory.entries_indexed(g, at))}"
    if model.states:
        yield flop(compute.state_flop_per_token(model))


def read_expression(p: Point, d: Deployment) -> str:
    """Seconds that reading the dense weights takes: Σ bytes/φ over BW·η."""
    s = p.shard
    phi = grouped(
        (by_family(s.kernels[name].phi, d.hardware.device.family), counts(p)[name] * s.kernels[name].bytes / s.tensor_parallel)
        for name in READ
    )
    terms = added(f"{size(amount)}/{number(share)}" for share, amount in phi.items())
    return f"({terms})/({byte_rate(s.bandwidth_bytes_per_s)}·{number(p.efficiencies.bandwidth_dense)})"


def row_expression(p: Point, d: Deployment) -> str:
    """Seconds that multiplying one row takes: Σ FLOP·δ/F over η_f."""
    s, device = p.shard, d.hardware.device
    kernels = {name: s.kernels[name] for name in MULTIPLIED}
    by_rate = grouped(
        ((middle(k.delta(device.family, MEDIAN)), matmul_rate(device, k.compute)), 2.0 * counts(p)[name] / s.tensor_parallel)
        for name, k in kernels.items()
    )
    return f"({compute_terms(by_rate)})/{number(p.efficiencies.mfu_decode)}"


def compute_terms(by_rate: dict[object, float]) -> str:
    """FLOP·δ/F for each pair of overhead and rate."""
    return added(f"{flop(amount)}·{number(pair[0])}/{flop_rate(pair[1])}" for pair, amount in by_rate.items() if isinstance(pair, tuple))


def expert_read_expression(p: Point) -> str:
    """Seconds that reading all experts takes."""
    s = p.shard
    read = f"({size(s.expert_bytes)}/{number(s.expert_bytes / s.expert_effective_bytes)})"
    return f"{read}/({byte_rate(s.bandwidth_bytes_per_s)}·{number(p.efficiencies.bandwidth_experts)})"


def expert_row_expression(p: Point, d: Deployment) -> str:
    """Seconds that multiplying one row with its experts takes."""
    s, kernel = p.shard, p.shard.kernels["experts"]
    pair = (middle(kernel.delta(d.hardware.device.family, MEDIAN)), matmul_rate(d.hardware.device, kernel.compute))
    return f"({compute_terms({pair: s.expert_flop_per_row})})/{number(p.efficiencies.mfu_decode_experts)}"


def _ridge(p: Point, d: Deployment) -> list[Line]:
    rows, read, row = ridge_rows(p), read_expression(p, d), row_expression(p, d)
    formula = "(bytes/φ/(BW·η))/(FLOP·δ/(F·η_f))"
    if p.shard.model.experts is not None:
        awake, met = ridge_experts(p)
        formula = "(bytes/φ/(BW·η) + coverage(n*)·bytes_x/φ/(BW·η_x))/(FLOP·δ/(F·η_f) + rows_x/n*·FLOP_x·δ/(F·η_fx))"
        read = f"{read} + {number(awake)}·{expert_read_expression(p)}"
        row = f"{row} + {number(met)}·{expert_row_expression(p, d)}"
    return [line("n*", "compute.ridge", formula, f"({read})/({row})", rows, "number"), _ridge_batch(p, middle(rows))]


def _ridge_batch(p: Point, rows: float) -> Line:
    ranks = p.shard.layout.ranks
    numbers = f"{number(rows)}/{p.rows}·{p.shard.pipeline_parallel}" + (f"·{ranks}" if ranks > 1 else "")
    return line("b*", "compute.b_star", "n*/r·PP" + ("·DP" if ranks > 1 else ""), numbers, ridge_batch(p), "number")
