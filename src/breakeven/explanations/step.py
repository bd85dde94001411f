"""The seconds of a step, part by part, with the constants that were put in."""

from __future__ import annotations

from breakeven.advice import Line
from breakeven.arithmetic import byte_rate, flop, flop_rate, line, middle, number, size, span
from breakeven.evaluator import Point
from breakeven.explanations.traffic import (
    expert_read_expression,
    expert_row_expression,
    read_expression,
    row_expression,
)
from breakeven.ledger import memory, wire
from breakeven.ledger.step import attention_flop, attention_launches_s, expert_rows, extra_context, measured_factor, parts, roofline_s
from breakeven.spec.deployment import Deployment
from breakeven.statement import covered, pass_batch, passes, routed_batch, routed_in_a_pass, stage_batch

FORMULAS = {
    "dense": "smoothmax((Σ bytes/φ)/(BW·η), n·(Σ FLOP·δ/F)/η_f)",
    "experts": "smoothmax(coverage·bytes/φ/(BW·η_x), n·FLOP·δ/F/η_f)",
    "attention": "b·smoothmax(K(c)/(BW·η_kv·φ), FLOP_att/(F·η_fa))·(1 + ρ_w·(r − 1))",
    "communication": "n·(2·L·4·h·(TP − 1)/TP + 2·h·(PP − 1))/(link·η_link)",
    "fixed": "t_host + L·t_layer + L_moe·t_x + (2·L·log2(TP) + PP − 1)·t_ar + b·(t_seq + r·V·s_b/TP/BW)",
    "speculation": "o₀ + b·(o_seq + k·K_d(c)/(BW·η_kv·φ)) + k·(t_pass + smoothmax(bytes/(BW·η·η_d), b·FLOP/(F·η_f)))",
}


def lines(p: Point, d: Deployment) -> list[Line]:
    """The parts of a step and their sum."""
    share = {name: middle(p.time_factor * value) for name, value in parts(p.cost, p.batch).items()}
    written = {
        "dense": _dense,
        "experts": _experts,
        "attention": _attention,
        "communication": _communication,
        "fixed": _fixed,
        "speculation": _speculation,
    }
    found = []
    if middle(p.time_factor) != 1.0:
        kept = f"1 + {number(middle(p.time_factor) - 1)}"
        found.append(line("u", "step.factor", "1 + bookkeeping of prefix caching", kept, p.time_factor, "number"))
    if p.cost.widths is not None:
        found.append(_measured(p))
    for name, seconds in share.items():
        if seconds > 0:
            factors, formula = factors_of(p, name), _formula(p, name)
            formula = f"{'·'.join(factors)}·({formula})" if factors else formula
            numbers = written[name](p, d)
            numbers = f"{'·'.join(factors.values())}·({numbers})" if factors else numbers
            found.append(line(f"t_{name}", f"step.t_{name}", formula, numbers, seconds, "time"))
    found += _sent(p)
    total = " + ".join(span(seconds) for seconds in share.values() if seconds > 0)
    return [*found, line("t_step", "step.t_step", "Σ parts", total, p.step_s, "time")]


def _sent(p: Point) -> list[Line]:
    """Bytes of a row that are sent to whole experts and back, by their formula."""
    s, kinds = p.shard, wire.wire(p.shard)
    if "all_to_all" not in kinds or s.model.experts is None:
        return []
    layers, hidden, group = wire.mixture_layers(s), s.model.hidden, s.layout.expert_shards
    if s.layout.expert_parallel > 1:
        hit = f"{group}·(1 − (1 − 1/{group})^{s.model.experts.top_k})·(1 − 1/{group})"
        numbers = f"{layers}·{hit}·{hidden}·({number(wire.dispatch_bytes(s))} B + 2 B)/{s.tensor_parallel}"
        formula = "L_moe·hit·h·(w_d + 2)/TP, hit = G·(1 − (1 − 1/G)^top_k)·(1 − 1/G)"
    else:
        formula, numbers = "L_moe·4·h·(DP − 1)", f"{layers}·4·{hidden} B·({s.layout.ranks} − 1)"
    return [line("exchange/row", "interconnect.exchange", formula, numbers, kinds["all_to_all"].bytes, "bytes")]


def _formula(p: Point, name: str) -> str:
    """A part's formula, with the terms that this layout has."""
    s = p.shard
    if name == "communication" and (
        s.layout.prompt_ranks > 1 or s.layout.cache_shards > 1 or s.layout.devices > (s.link_domain or s.layout.devices)
    ):
        return "n·Σ link bytes/(link·η_link) + n·Σ network bytes/(network·η_net)"
    if name == "attention" and s.layout.ranks > 1:
        return FORMULAS[name].replace("b·", "(b + m(DP)·c_v·√b)·", 1)
    return FORMULAS[name]


def factors_of(p: Point, name: str) -> dict[str, str]:
    """The factors on a part's formula, by their symbols: the bookkeeping on all time, what was measured on a plain step, and its passes."""
    found = {} if middle(p.time_factor) == 1.0 else {"u": number(p.time_factor)}
    if name == "speculation":
        return found
    if p.cost.widths is not None:
        found["ρ"] = number(measured_factor(p.cost, p.batch))
    if p.cost.slots:
        found["passes"] = number(passes(p))
    return found


def _measured(p: Point) -> Line:
    """The measured step over the roofline's, which divides it up."""
    roofline = middle(roofline_s(p.cost, p.batch))
    measured = roofline * middle(measured_factor(p.cost, p.batch))
    formula = "T(n)/t_roofline, n = b·r; beyond the widths measured as at their end"
    return line("ρ", "step.measured", formula, f"{span(measured)}/{span(roofline)}", measured / roofline, "number")


def _rows(p: Point) -> str:
    return number(middle(pass_batch(p)) * p.rows)


def _dense(p: Point, d: Deployment) -> str:
    s, read = p.shard, read_expression(p, d)
    if s.dense_dequantised_bytes and middle(pass_batch(p)) * p.rows > 1:
        read += f" + {size(s.dense_dequantised_bytes)}/({byte_rate(s.bandwidth_bytes_per_s)}·{number(p.efficiencies.bandwidth_dense)})"
    return f"smoothmax({read}, {_rows(p)}·{row_expression(p, d)})"


def _experts(p: Point, d: Deployment) -> str:
    rows = number(expert_rows(p.cost, routed_in_a_pass(p)))
    return f"smoothmax({number(covered(p))}·{expert_read_expression(p)}, {rows}·{expert_row_expression(p, d)})"


def _attention(p: Point, d: Deployment) -> str:
    s, e, context = p.shard, p.efficiencies, p.demand.context_tokens
    cache = memory.kv_read_bytes(s.model, s.kv, context, tensor_parallel=s.tensor_parallel) / s.layout.cache_shards
    more = f" + {number(extra_context(p.cost, pass_batch(p)))}" if s.layout.ranks > 1 else ""
    sequences = f"({number(pass_batch(p))}{more})" if more else number(pass_batch(p))
    rate = f"{byte_rate(s.bandwidth_bytes_per_s)}·{number(e.bandwidth_kv)}"
    read = f"{size(cache)}/({rate}·{number(s.kv_phi)})" + (f" + 2·{size(s.state_bytes)}/({rate})" if s.state_bytes else "")
    made = f"{flop(attention_flop(s, context, p.rows))}/({flop_rate(s.flops_16_bit)}·{number(e.prefill_mfu_attention)})"
    return f"{sequences}·smoothmax({read}, {made})·(1 + {number(e.width_penalty)}·({p.rows} − 1))"


def wire_expression(p: Point, tokens: str, *, prompt: bool = False) -> str:
    """Seconds that the exchange of so many rows takes."""
    s, e = p.shard, p.efficiencies
    kinds = wire.wire(s, prompt=prompt)
    if any(kind not in ("all_reduce", "pipeline") or sent.network for kind, sent in kinds.items()) or s.layout.prompt_ranks > 1:
        return _kinds_expression(p, kinds, tokens)
    tp, pp, hidden = s.tensor_parallel, s.pipeline_parallel, s.model.hidden
    sent = f"2·{s.model.layers}·4·{hidden}·({tp} − 1)/{tp}" + (f" + 2·{hidden}·({pp} − 1)" if pp > 1 else "")
    return f"{tokens}·({sent})/({byte_rate(s.link_bytes_per_s)}·{number(e.link_efficiency)})"


def _kinds_expression(p: Point, kinds: wire.Wire, tokens: str) -> str:
    s, e = p.shard, p.efficiencies
    link, network = ([size(part) for part in parts if part] for parts in zip(*((x.link, x.network) for x in kinds.values()), strict=True))
    terms = [f"{tokens}·({' + '.join(link)})/({byte_rate(s.link_bytes_per_s)}·{number(e.link_efficiency)})"] if link else []
    if network:
        terms.append(f"{tokens}·({' + '.join(network)})/({byte_rate(middle(s.network_bytes_per_s))}·{number(e.network_efficiency)})")
    return f"({' + '.join(terms)})" if len(terms) > 1 else terms[0]


def _communication(p: Point, d: Deployment) -> str:
    return wire_expression(p, _rows(p))


def messages_expression(p: Point, *, prompt: bool = False) -> str:
    """Seconds of the messages of a step, whatever their length."""
    s = p.shard
    more = _more_messages(p, prompt)
    hops = f" + {s.pipeline_parallel} − 1" if s.pipeline_parallel > 1 else ""
    return f"(2·{s.model.layers}·log2({s.tensor_parallel}){hops})·{span(p.efficiencies.allreduce_s)}{more}"


def _more_messages(p: Point, prompt: bool) -> str:
    """Messages of exchanges between ranks, and of a cache that is dealt out."""
    s, e, found = p.shard, p.efficiencies, ""
    ranks = s.layout.prompt_ranks if prompt else s.layout.ranks
    shards = s.layout.prefill_context if prompt else s.layout.cache_shards
    if ranks > 1:
        each = span(e.alltoall_s) if s.layout.expert_parallel > 1 else f"{span(e.allreduce_s)}·log2({ranks})"
        found += f" + 2·{wire.mixture_layers(s)}·{each}"
    if shards > 1:
        found += f" + 2·{sum(g.layers for g in s.model.attention)}·{span(e.allreduce_s)}·log2({shards})"
    return found


def _fixed(p: Point, d: Deployment) -> str:
    s, e, model = p.shard, p.efficiencies, p.shard.model
    mla, penalty = attention_launches_s(s, e, d.engine.name)
    layer = " + ".join(span(seconds) for seconds in (e.layer_s, mla, penalty) if seconds)
    terms = [span(e.host_s), f"{number(model.launch_layers)}·({layer})"]
    if model.experts is not None:
        terms.append(f"{model.experts.layers}·{span(e.moe_layer_s)}")
    if s.layout.devices > 1:
        terms.append(messages_expression(p))
    sequence = [
        span(e.sequence_s),
        f"{p.rows}·{model.vocabulary}·{number(e.logit_bytes)} B/{s.tensor_parallel}/{byte_rate(s.bandwidth_bytes_per_s)}",
    ]
    return f"{' + '.join(terms)} + {number(pass_batch(p))}·({' + '.join(sequence)})"


def _speculation(p: Point, d: Deployment) -> str:
    s, e, cost, spec = p.shard, p.efficiencies, p.cost, d.engine.speculative
    k = spec.num_speculative_tokens if spec is not None else 1
    first = e.round_s + (e.tree_s if spec is not None and spec.topk > 1 else 0.0)
    passes = middle(cost.draft_launch_s)
    rate = s.bandwidth_bytes_per_s * e.bandwidth_dense * e.draft_bandwidth
    bandwidth = f"({byte_rate(s.bandwidth_bytes_per_s)}·{number(e.bandwidth_dense)}·{number(e.draft_bandwidth)})"
    cached = middle(cost.draft_per_sequence_s) - e.round_sequence_s
    each = f"({span(e.round_sequence_s)} + {span(cached)})" if cached > 1e-9 else span(e.round_sequence_s)
    head = f"{span(first)} + {number(stage_batch(p))}·{each}"
    if not middle(cost.draft_read_s):
        return f"{head} + {span(passes)}"
    read = f"{k}·{size(middle(cost.draft_read_s) * rate / k)}/{bandwidth}"
    made = (
        f"{k}·{flop(middle(cost.draft_compute_s) * s.flops_16_bit * e.mfu_decode / k)}/({flop_rate(s.flops_16_bit)}·{number(e.mfu_decode)})"
    )
    found = f"{head} + {k}·{span(passes / k)} + smoothmax({read}, {number(stage_batch(p))}·{made})"
    if middle(cost.draft_experts_read_s) and s.model.experts is not None:
        share = f"(1 − (1 − {s.model.experts.top_k}/{s.model.experts.count})^{number(routed_batch(p))})"
        found += f" + {k}·{share}·{size(middle(cost.draft_experts_read_s) * rate / k)}/{bandwidth}"
    return found
