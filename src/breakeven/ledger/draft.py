"""What a round of speculation adds to a step: the draft's own passes, and the host's bookkeeping."""

from __future__ import annotations

from dataclasses import replace

from breakeven.efficiencies import Efficiencies
from breakeven.errors import InputError
from breakeven.ledger import memory
from breakeven.ledger.compute import head_parameters
from breakeven.ledger.shard import Shard
from breakeven.ledger.step import StepCost
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import HEADS, LOOKUPS, Speculative, method_named
from breakeven.spec.model import Model
from breakeven.spec.parallel import layout
from breakeven.stats import Array

EAGLE3_VOCABULARY = 32_000


def method_of(speculative: Speculative) -> str:
    """The method of a setting, by its own name."""
    return method_named(speculative.method)


def draft_model(deployment: Deployment, speculative: Speculative) -> Model:
    """The draft model that the settings name."""
    found = deployment.drafts.get(speculative.model or "")
    if found is None:
        raise InputError("draft_unknown", name=speculative.model or "")
    return found


def draft_parameters(deployment: Deployment, speculative: Speculative) -> float:
    """Dense parameters one draft pass reads: a head of 13.5·d² and its vocabulary, an MTP layer, or a whole model."""
    model, method = deployment.model, method_of(speculative)
    if method in LOOKUPS:
        return 0.0
    if method == "draft_model":
        draft = draft_model(deployment, speculative)
        return draft.parameters.total - draft.parameters.lookup - (0 if draft.tied else draft.parameters.embedding)
    if method in HEADS:
        vocabulary = EAGLE3_VOCABULARY if method == "eagle3" else model.vocabulary
        return 13.5 * model.hidden**2 + vocabulary * model.hidden
    return (model.parameters.attention + model.parameters.mlp) / model.launch_layers + head_parameters(model)


def mtp_expert_share(model: Model) -> float:
    """Share of the MTP layers' parameters that are routed experts, one mixture layer's for each; 0 where the layers are dense."""
    if model.experts is None or not model.mtp_parameters:
        return 0.0
    routed = model.mtp_layers * model.parameters.experts / model.experts.layers
    return routed / model.mtp_parameters if routed < model.mtp_parameters else 0.0


def draft_weight_bytes(deployment: Deployment) -> float:
    """Bytes of draft weights one device holds, in 16 bit; 0 without speculation."""
    speculative = deployment.engine.speculative
    if speculative is None:
        return 0.0
    model, tp = deployment.model, deployment.engine.tensor_parallel_size
    if method_of(speculative) == "mtp":
        counted = model.mtp_parameters * (1.0 if model.stored.get("mlp") == "fp8" else 2.0)
        routed = mtp_expert_share(model)
        return model.stored_bytes.get("mtp", counted) * ((1.0 - routed) / tp + routed / layout(model, deployment.engine).expert_shards)
    if method_of(speculative) == "draft_model":
        return 2.0 * draft_model(deployment, speculative).parameters.total / tp
    return 2.0 * draft_parameters(deployment, speculative) / tp


def draft_kv_bytes_per_token(d: Deployment, s: Shard) -> float:
    """Cache bytes a token adds for the draft: its own layers, or for a head one target layer that keeps a cache."""
    speculative = d.engine.speculative
    if speculative is None or method_of(speculative) in LOOKUPS:
        return 0.0
    if method_of(speculative) == "draft_model":
        return memory.kv_bytes_per_token(draft_model(d, speculative), s.kv, tensor_parallel=s.tensor_parallel)
    layers = sum(group.layers for group in d.model.attention if not group.shares_kv)
    return memory.kv_bytes_per_token(d.model, s.kv, tensor_parallel=s.tensor_parallel) / layers if layers else 0.0


def with_speculation(cost: StepCost, deployment: Deployment, s: Shard, e: Efficiencies, context_tokens: Array | float) -> StepCost:
    """The step cost of a round: verification rows are in it already; drafting and o₀ + o_seq·b are added here.

    k passes of the draft, each its weights at a share of the bandwidth or its FLOP, and a pass (head) or layers (model) of launches. A
    draft model's layers cost what the target's do, since both run in one engine: a 30-layer draft is no cheap draft for 24 layers.
    Every pass reads the draft's own cache too. An MTP layer is stored as the target's layers are.
    """
    speculative = deployment.engine.speculative
    if speculative is None:
        return cost
    method, k = method_of(speculative), speculative.num_speculative_tokens
    fixed = e.round_s + (e.tree_s if speculative.topk > 1 else 0.0)
    per_token = draft_kv_bytes_per_token(deployment, s) / s.layout.cache_shards
    cache = k * per_token * context_tokens / (s.bandwidth_bytes_per_s * e.bandwidth_kv * s.kv_phi)
    seconds = replace(cost, draft_fixed_s=fixed, draft_per_sequence_s=e.round_sequence_s + cache)
    if method in LOOKUPS:
        return replace(seconds, draft_launch_s=e.lookup_s)
    passes = k * (draft_model(deployment, speculative).layers * e.layer_s if method == "draft_model" else e.draft_pass_s)
    parameters = draft_parameters(deployment, speculative)
    bandwidth = s.bandwidth_bytes_per_s * e.bandwidth_dense * e.draft_bandwidth
    experts = s.model.experts
    width = s.kernels["mlp"].bytes if method == "mtp" else 2.0
    return replace(
        seconds,
        draft_launch_s=passes,
        draft_read_s=k * width * parameters / s.tensor_parallel / bandwidth,
        draft_compute_s=k * speculative.topk * 2.0 * parameters / s.tensor_parallel / (s.flops_16_bit * e.mfu_decode),
        draft_experts_read_s=k * s.expert_effective_bytes / experts.layers / bandwidth if experts and method == "mtp" else 0.0,
    )
