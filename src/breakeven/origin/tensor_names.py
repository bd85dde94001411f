"""Which tensor class a tensor of a checkpoint belongs to, by its name, over the spellings of many families."""

from __future__ import annotations

import re

TOWERS = frozenset(
    [
        "visual",
        "vision_tower",
        "vision_model",
        "vision_backbone",
        "vision_encoder",
        "vision_embed_tokens",
        "image_encoder",
        "img_processor",
        "vpm",
        "resampler",
        "audio_tower",
        "audio_model",
        "audio_encoder",
        "audio_embed",
        "multi_modal_projector",
        "mm_projector",
        "embed_vision",
        "embed_audio",
        "vision_language_adapter",
        "pre_mm_projector_norm",
        "patch_merger",
        "patch_conv",
        "talker",
        "token2wav",
        "code2wav",
        "aligner",
        "image_newline",
        "speech_encoder",
    ]
)
MTP = frozenset(("mtp", "mtp_layers", "mtp_block", "mtp_emb", "nextn"))
_EMBEDDINGS = frozenset(
    [
        "embed_tokens",
        "wte",
        "word_embeddings",
        "embed_in",
        "embeddings",
        "tok_embeddings",
        "embed",
        "embed_tokens_per_layer",
    ]
)
_HEADS = frozenset(("lm_head", "embed_out", "output", "output_layer", "head", "ff_out"))
_EXPERTS = frozenset(("experts", "input_linear", "output_linear"))
_SHARED = frozenset(["shared_expert", "shared_experts", "share_expert", "shared_mlp", "residual_mlp", "shared_expert_gate"])
_ROUTERS = frozenset(("router", "gate", "wg", "router_bias", "e_score_correction_bias"))
_MLP = (
    frozenset(
        [
            "mlp",
            "feed_forward",
            "ffn",
            "block_sparse_moe",
            "moe",
            "mlp_block",
            "fc1",
            "fc2",
            "w1",
            "w2",
            "w3",
            "channel_mix",
            "ff_proj",
            "ff_out",
        ]
    )
    | _SHARED
)
_PROJECTIONS = frozenset(("gate_proj", "up_proj", "down_proj", "fc1_latent_proj", "fc2_latent_proj"))
_ATTENTION = frozenset(
    [
        "self_attn",
        "attn",
        "attention",
        "self_attention",
        "mixer",
        "mamba",
        "linear_attn",
        "temporal_block",
        "conv",
        "short_conv",
        "time_mix",
        "attn_block",
        "att_proj",
        "attn_out",
        "norm_attn_norm",
    ]
)
_STEP3_EXPERTS = re.compile(r"\.moe\.(gate|up|down)_proj\b")
_NORM = re.compile(r"norm|^ln_|^ln\d?$|layer_?norm")
_OTHER = re.compile(r"^(embed_positions|wpe|position_embeddings?|project_in|project_out|altup.*|laurel|per_layer.*|hc_.*|rotary_emb)$")
_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks|block|layer)\.(\d+)\.")
_BUFFER = re.compile(r"(rotary_emb\.inv_freq|\.(attn|attention)\.(bias|masked_bias))$")
_SCALE = re.compile(
    r"(^|[._])(scales?|scale_inv|scale_2|scales_and_zeros|qzeros|zeros|zero_point|g_idx|weight_shape"
    r"|absmax|nested_absmax|quant_map|nested_quant_map|bitsandbytes__\w+|SCB|weight_format|global_scale|biases|scale_offset|input_amax)$"
)


def is_buffer(name: str) -> bool:
    """Whether an engine makes the tensor itself: causal masks of GPT-2, frequencies of old checkpoints."""
    return _BUFFER.search(name) is not None


def is_scale(name: str) -> bool:
    """Whether a tensor holds scales, zeros or the like of quantised weights: bytes, and no parameters."""
    return _SCALE.search(name) is not None


def tensor_class(name: str, layers: int) -> str | None:
    """The class of a tensor: one of the model's, ``mtp`` (layers beyond the last), ``tower`` (vision, audio), or None.

    >>> tensor_class("model.layers.3.block_sparse_moe.experts.5.w1.weight", 32), tensor_class("model.layers.61.eh_proj.weight", 61)
    ('experts', 'mtp')
    """
    parts = name.split(".")
    present = set(parts)
    if present & TOWERS:
        return "tower"
    layer = _LAYER.search(name)
    if present & MTP or (layer is not None and int(layer[1]) >= layers):
        return "mtp"
    return _in_layer(name, parts) if layer is not None else _outside(parts)


def _outside(parts: list[str]) -> str | None:
    if any(_OTHER.search(part) for part in parts):
        return "other"
    if any(_NORM.search(part) for part in parts):
        return "other"
    if set(parts) & _HEADS:
        return "head"
    return "embedding" if set(parts) & _EMBEDDINGS else None


def _in_layer(name: str, parts: list[str]) -> str | None:
    present = set(parts)
    if not present & _SHARED and (present & _EXPERTS or _STEP3_EXPERTS.search(name)):
        return "experts"
    if present & (_ROUTERS | _MLP | _PROJECTIONS) and not present & {"self_attn", "attn", "attention", "self_attention"}:
        return "mlp"
    if present & _ATTENTION:
        return "attention"
    return "other" if any(_NORM.search(part) or _OTHER.search(part) for part in parts) else None
