"""What a prompt costs: the tokens computed, beside decode steps and alone, and the share of the time that prompts take."""

from __future__ import annotations

from breakeven.advice import Line
from breakeven.arithmetic import byte_rate, flop_rate, grouped, line, middle, number, size, span
from breakeven.demand import shape
from breakeven.evaluator import Point
from breakeven.explanations.step import messages_expression, stretched, wire_expression
from breakeven.explanations.traffic import compute_terms, counts
from breakeven.kernels import by_family, matmul_rate
from breakeven.ledger import compute, prefill
from breakeven.spec.deployment import Deployment
from breakeven.spec.model import Attention


def lines(p: Point, d: Deployment) -> list[Line]:
    """A prompt, line by line; none where the workload states no prompt."""
    if p.demand.input_tokens is None:
        return []
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


def _linear(p: Point, d: Deployment) -> str:
    """Seconds that one prompt token's matrices take: dense and expert classes each at their own MFU."""
    s, e, device = p.shard, p.efficiencies, d.hardware.device
    kernels = {name: s.kernels[name] for name in ("attention", "mlp")}
    dense = grouped(
        ((by_family(k.delta_prefill, device.family), matmul_rate(device, k.compute)), 2.0 * counts(p)[name] / s.tensor_parallel)
        for name, k in kernels.items()
    )
    found = f"({compute_terms(dense)})/{number(e.prefill_mfu_dense)}"
    if not s.expert_flop_per_row:
        return found
    kernel = s.kernels["experts"]
    pair = (by_family(kernel.delta_prefill, device.family), matmul_rate(device, kernel.compute))
    return f"({found} + ({compute_terms({pair: s.expert_flop_per_row})})/{number(e.prefill_mfu_experts)})"


def _attention(p: Point, new: float, length: float) -> str:
    s, e = p.shard, p.efficiencies
    terms = [f"{g.layers}·{number(compute.prefill_flop_per_token_seen(g))}·{_pairs(new, length, g)}" for g in s.model.attention]
    terms += [
        f"{g.layers}·{number(compute.index_flop_per_entry(g))}·{number(compute.pairs_indexed(g, new, length))}"
        for g in s.model.attention
        if g.index_dim
    ]
    terms += [f"{number(new)}·{number(compute.state_flop_per_token(s.model))}"] if s.model.states else []
    return f"({' + '.join(terms)})/{s.tensor_parallel}/({flop_rate(s.flops_16_bit)}·{number(e.prefill_mfu_attention)})"


def _pairs(new: float, length: float, group: Attention) -> str:
    reach = group.window if group.selected is None else group.selected
    if group.kind == "compressed" or (reach is not None and reach < length):
        return number(compute.pairs_attended(group, new, length))
    return f"{number(new)}·({number(length)} − {number(new)}/2)"


def _wire(p: Point, new: float) -> str:
    return f" + {wire_expression(p, number(new))}" if p.shard.tensor_parallel * p.shard.pipeline_parallel > 1 else ""


def _mixed(p: Point, d: Deployment) -> Line:
    s, load = p.shard, p.demand
    new, length, mean = middle(load.new_tokens), middle(load.attention_input), middle(load.input_tokens)
    work = f"{number(new)}·{_linear(p, d)} + {_attention(p, new, length)}"
    numbers = f"{number(mean)}/{number(length)}·({number(s.kv.prefill)}·({work}){_wire(p, new)})"
    seconds = middle(p.interference_s) * s.pipeline_parallel / p.efficiencies.interference
    formula = "I/I₂·(δ_kv·(I_new·Σ FLOP·δ/(F·η_p) + FLOP_att/(F·η_fa)) + exchange)"
    return line("T_mix", "step.t_mix", formula, stretched(p, numbers), seconds, "time")


def _alone(p: Point, d: Deployment) -> Line:
    s, e, load = p.shard, p.efficiencies, p.demand
    mean = middle(load.input_tokens)
    new = middle(load.new_tokens) * mean / middle(load.attention_input)
    read = f"{size(s.dense_effective_bytes)}/{number(e.bandwidth_dense)}"
    if s.expert_effective_bytes:
        read = f"({read} + {size(s.expert_effective_bytes)}/{number(e.bandwidth_experts)})"
    work = f"smoothmax({number(new)}·{_linear(p, d)}, {read}/{byte_rate(s.bandwidth_bytes_per_s)}) + {_attention(p, new, mean)}"
    launches = f"{number(s.model.launch_layers)}·{span(e.ttft_layer_s)} + {messages_expression(p)}"
    numbers = f"{number(s.kv.prefill)}·({work}){_wire(p, new)} + {launches}"
    formula = "δ_kv·(smoothmax(I_new·Σ FLOP·δ/(F·η_p), (Σ bytes/φ)/(BW·η)) + FLOP_att/(F·η_fa)) + exchange + L·t_prompt layer"
    return line("T_pf", "step.t_pf", formula, stretched(p, numbers), p.prefill_alone_s, "time")


def _taken(p: Point, beside: bool) -> Line:
    stages, e = p.shard.pipeline_parallel, p.efficiencies
    if beside:
        mixed = middle(p.interference_s) * stages / e.interference
        return line("T_taken", "step.t_taken", "ξ·T_mix/PP", f"{number(e.interference)}·{span(mixed)}/{stages}", p.interference_s, "time")
    return line("T_taken", "step.t_taken", "T_pf/PP", f"{span(p.prefill_alone_s)}/{stages}", p.interference_s, "time")
