"""What a prompt costs: the tokens computed, beside decode steps and alone, and the share of the time that prompts take."""

from __future__ import annotations

from dataclasses import replace

from breakeven.advice import Line
from breakeven.arithmetic import byte_rate, flop_rate, grouped, line, middle, number, size, span
from breakeven.demand import shape
from breakeven.evaluator import Point
from breakeven.explanations.step import messages_expression, wire_expression
from breakeven.explanations.traffic import compute_terms, counts
from breakeven.kernels import by_family, matmul_rate
from breakeven.ledger import compute, prefill
from breakeven.spec.deployment import Deployment
from breakeven.spec.model import Attention


def stretched(p: Point, expression: str) -> str:
    """An expression times the factor on all time, where there is one."""
    return expression if middle(p.time_factor) == 1.0 else f"{number(p.time_factor)}·({expression})"


def lines(p: Point, d: Deployment) -> list[Line]:
    """A prompt, line by line, on the devices that compute it; none where the workload states no prompt."""
    if p.demand.input_tokens is None:
        return []
    if p.pool is not None:
        side = replace(p, shard=p.pool.shard, pool=None)
        return [*_tokens(side, d), _alone(side, p.pool.deployment), *_transfer(p)]
    beside = d.engine.enable_chunked_prefill or d.engine.mixes_prompts
    return [*_tokens(p, d), *([_mixed(p, d)] if beside else []), _alone(p, d), _taken(p, beside)]


def _tokens(p: Point, d: Deployment) -> list[Line]:
    load, block = p.demand, d.engine.block_size
    length = middle(load.attention_input)
    least = middle(prefill.new_tokens(length, 1.0, block))
    _, _, square = shape(d.workload)
    return [
        line("I₂", "step.prompt_length", "E[I²]/E[I]", f"{number(load.input_tokens)}·{number(square)}", length, "number"),
        line(
            "I_new",
            "step.prompt_new",
            "max(I₂·(1 − h), last block)",
            f"max({number(length)}·(1 − {number(load.hit_rate)}), {number(least)})",
            load.new_tokens,
            "number",
        ),
    ]


def _linear(p: Point, d: Deployment, new: float, prompts: int) -> str:
    """Seconds that the matrices of a prompt take: dense and expert classes each at their own MFU."""
    s = p.shard
    dense, routed = _per_token(p, d)
    plain = s.layout.expert_shards == s.tensor_parallel and s.layout.expert_parallel == 1
    if plain:
        return f"{number(new)}·({dense} + {routed})" if routed else f"{number(new)}·{dense}"
    cut = f"{number(new)}/{s.layout.prefill_context}·{dense}"
    return f"({cut} + {number(prefill.expert_rows_of(s, p.efficiencies, new, prompts))}·{routed})" if routed else cut


def _per_token(p: Point, d: Deployment) -> tuple[str, str]:
    """Seconds of one token's dense matrices, and of its experts'."""
    s, e, device = p.shard, p.efficiencies, d.hardware.device
    kernels = {name: s.kernels[name] for name in ("attention", "mlp")}
    dense = grouped(
        ((by_family(k.delta_prefill, device.family), matmul_rate(device, k.compute)), 2.0 * counts(p)[name] / s.tensor_parallel)
        for name, k in kernels.items()
    )
    found = f"({compute_terms(dense)})/{number(e.prefill_mfu_dense)}"
    if not s.expert_flop_per_row:
        return found, ""
    kernel = s.kernels["experts"]
    pair = (by_family(kernel.delta_prefill, device.family), matmul_rate(device, kernel.compute))
    return found, f"({compute_terms({pair: s.expert_flop_per_row})})/{number(e.prefill_mfu_experts)}"


def _attention(p: Point, new: float, length: float) -> str:
    s, e = p.shard, p.efficiencies
    terms = [f"{g.layers}·{number(compute.prefill_flop_per_token_seen(g))}·{_pairs(new, length, g)}" for g in s.model.attention]
    terms += [
        f"{s.tensor_parallel}·{g.layers}·{number(compute.index_flop_per_entry(g))}·{number(compute.pairs_indexed(g, new, length))}"
        for g in s.model.attention
        if g.index_dim
    ]
    terms += [f"{number(new)}·{number(compute.state_flop_per_token(s.model))}"] if s.model.states else []
    over = f"/{s.layout.prefill_context}" if s.layout.prefill_context > 1 else ""
    return f"({' + '.join(terms)})/{s.tensor_parallel}{over}/({flop_rate(s.flops_16_bit)}·{number(e.prefill_mfu_attention)})"


def _pairs(new: float, length: float, group: Attention) -> str:
    reach = group.window if group.selected is None else group.selected
    if group.kind == "compressed" or (reach is not None and reach < length):
        return number(compute.pairs_attended(group, new, length))
    return f"{number(new)}·({number(length)} − {number(new)}/2)"


def _wire(p: Point, new: float) -> str:
    pcp = p.shard.layout.prefill_context
    rows = f"{number(new)}/{pcp}" if pcp > 1 else number(new)
    return f" + {wire_expression(p, rows, prompt=True)}" if p.shard.layout.devices > 1 else ""


def _mixed(p: Point, d: Deployment) -> Line:
    s, load = p.shard, p.demand
    new, length, mean = middle(load.new_tokens), middle(load.attention_input), middle(load.input_tokens)
    work = f"{_linear(p, d, new, s.layout.ranks)} + {_attention(p, new, length)}"
    numbers = f"{number(mean)}/{number(length)}·({number(s.kv.prefill)}·({work}){_wire(p, new)})"
    seconds = middle(p.interference_s) * s.pipeline_parallel * s.layout.ranks / p.efficiencies.interference
    formula = "I/I₂·(δ_kv·(I_new·Σ FLOP·δ/(F·η_p) + FLOP_att/(F·η_fa)) + exchange)"
    return line("T_mix", "step.t_mix", formula, stretched(p, numbers), seconds, "time")


def _alone(p: Point, d: Deployment) -> Line:
    s, e, load = p.shard, p.efficiencies, p.demand
    mean = middle(load.input_tokens)
    new = middle(load.new_tokens) * mean / middle(load.attention_input)
    read = f"{size(s.dense_effective_bytes)}/{number(e.bandwidth_dense)}"
    if s.expert_effective_bytes:
        read = f"({read} + {size(s.expert_effective_bytes)}/{number(e.bandwidth_experts)})"
    work = f"smoothmax({_linear(p, d, new, 1)}, {read}/{byte_rate(s.bandwidth_bytes_per_s)}) + {_attention(p, new, mean)}"
    launches = f"{number(s.model.launch_layers)}·{span(e.ttft_layer_s)} + {messages_expression(p, prompt=True)}"
    numbers = f"{number(s.kv.prefill)}·({work}){_wire(p, new)} + {launches}"
    formula = "δ_kv·(smoothmax(I_new·Σ FLOP·δ/(F·η_p), (Σ bytes/φ)/(BW·η)) + FLOP_att/(F·η_fa)) + exchange + L·t_prompt layer"
    return line("T_pf", "step.t_pf", formula, stretched(p, numbers), p.prefill_alone_s, "time")


def _taken(p: Point, beside: bool) -> Line:
    s, e = p.shard, p.efficiencies
    over, named = f"{s.pipeline_parallel}", "PP"
    if s.layout.ranks > 1:
        over, named = f"({s.pipeline_parallel}·{s.layout.ranks})", "(PP·DP)"
    whole = middle(p.interference_s) * s.pipeline_parallel * s.layout.ranks
    if beside:
        numbers = f"{number(e.interference)}·{span(whole / e.interference)}/{over}"
        return line("T_taken", "step.t_taken", f"ξ·T_mix/{named}", numbers, p.interference_s, "time")
    return line("T_taken", "step.t_taken", f"T_pf/{named}", f"{span(whole)}/{over}", p.interference_s, "time")


def _transfer(p: Point) -> list[Line]:
    """The cache of a prompt on its way from pool to pool, and the most prompts that the pool and the link deliver."""
    pool = p.pool
    if pool is None:
        return []
    sent, rate = size(pool.transfer_bytes), byte_rate(middle(pool.transfer_bytes_per_s))
    share, seconds, alone = middle(pool.exposed_share), span(pool.transfer_s), span(pool.alone_s)
    exposed = f"max({number(share)}·{seconds}, {seconds} − {alone})"
    limit = f"min({pool.servers}/{span(pool.busy_s)}, {pool.pairs}/{seconds})"
    return [
        line("T_send", "interconnect.transfer", "K(I)/link between pools", f"{sent}/{rate}", pool.transfer_s, "time"),
        line("exposed", "interconnect.exposed", "max(x·T_send, T_send − T_pf)", exposed, pool.exposed_s, "time"),
        line("λ_pool", "interconnect.pool_rate", "min(places/T_pf, pairs/T_send)", limit, pool.max_rate, "number"),
    ]
