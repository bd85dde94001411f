"""The tensors of a GGUF file by class: parameters, bytes, and the type most of a class is stored in; MTP layers apart."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from breakeven.errors import InputError, NotModelledError
from breakeven.kernels import BY_STORED, weight_names
from breakeven.origin.gguf_head import Head, Tensor
from breakeven.origin.values import shown
from breakeven.spec.model import TENSOR_CLASSES, Parameters

BLOCK = re.compile(r"blk\.(\d{1,5})\.(.+)")
_HEAD = "output.weight"
_EMBEDDINGS = ("token_embd.weight", "per_layer_token_embd.weight")
"""Looked up, not multiplied. Gemma 3n keeps a second table, a row a token and layer."""
_COPIES = ("nextn.embed_tokens.", "nextn.shared_head_head.")
"""An MTP layer's own embedding and head: copies of the model's."""
_MIXERS = ("attn_", "ssm_", "shortconv.", "time_mix_", "indexer.")
_INNER = ("ffn_", "channel_mix_", "laurel_", "altup_", "inp_gate.", "proj.", "exp_probs_b")
_EXPERTS = re.compile(r"ffn_\w+_(ch)?exps\.")
# Norms over the hidden width stand between mixers and MLPs; those of a head, of a latent or of a state belong to their mixer.
_NORM = re.compile(
    r"(attn_norm|attn_norm_2|attn_output_norm|ffn_norm|ffn_norm_exps|layer_output_norm|\w*post\w*|pre_ffw\w*|\w+router_norm)\."
)


@dataclass(frozen=True, kw_only=True)
class Stored:
    """What the files hold."""

    parameters: Parameters
    bytes: Mapping[str, float]
    kinds: Mapping[str, str]
    """Class to the ggml type, in lower case, that holds most of its bytes."""
    mtp_parameters: int
    layers: Mapping[int, Mapping[str, Tensor]]
    """Layer to its tensors, by the name within the layer; MTP layers included."""
    outside: Mapping[str, Tensor]


def stored(heads: Iterable[Head], layers: int) -> Stored:
    """All tensors, counted; ``layers`` are the model's own, those after them are MTP."""
    inside: dict[int, dict[str, Tensor]] = defaultdict(dict)
    outside: dict[str, Tensor] = {}
    for head in heads:
        for tensor in head.tensors:
            found = BLOCK.fullmatch(tensor.name)
            place, name = (inside[int(found[1])], found[2]) if found else (outside, tensor.name)
            if name in place:
                raise InputError("gguf_tensor_twice", where=head.where, tensor=shown(tensor.name))
            place[name] = tensor
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    ours = {**outside, **{f"{index}.{name}": tensor for index in inside if index < layers for name, tensor in inside[index].items()}}
    for tensor in ours.values():
        kind = class_of(tensor.name)
        counts[kind] += tensor.elements
        sizes[kind] += tensor.bytes
        kinds[kind][tensor.kind.lower()] += tensor.bytes
    drafts = [t for index in inside if index >= layers for name, t in inside[index].items() if not name.startswith(_COPIES)]
    return Stored(
        parameters=Parameters(**{kind: counts[kind] for kind in TENSOR_CLASSES}),
        bytes={kind: float(size) for kind, size in sizes.items()},
        kinds={kind: found.most_common(1)[0][0] for kind, found in kinds.items()},
        mtp_parameters=sum(tensor.elements for tensor in drafts),
        layers=inside,
        outside=outside,
    )


def class_of(name: str) -> str:
    """The class of a tensor by its name.

    >>> [class_of(n) for n in ("token_embd.weight", "blk.3.attn_q_norm.weight", "blk.3.ffn_gate_inp.weight", "blk.3.ffn_up_exps.weight")]
    ['embedding', 'attention', 'mlp', 'experts']
    >>> [class_of(n) for n in ("output.weight", "blk.0.ssm_in.weight", "blk.0.post_attention_norm.weight", "rope_freqs.weight")]
    ['head', 'attention', 'other', 'other']
    """
    if name in _EMBEDDINGS:
        return "embedding"
    if name == _HEAD:
        return "head"
    found = BLOCK.fullmatch(name)
    inner = found[2] if found else ""
    if not found:
        return "mlp" if name.startswith(("per_layer_model_proj", "altup_")) else "other"
    if _NORM.match(inner):
        return "other"
    if _EXPERTS.match(inner):
        return "experts"
    if inner.startswith(_MIXERS):
        return "attention"
    return "mlp" if inner.startswith(_INNER) else "other"


def kernel_formats(found: Stored, where: str) -> Mapping[str, str]:
    """Class to the name of its format; a type that no kernel family runs is refused by name."""
    formats = {kind: _FORMATS.get(name, name) for kind, name in found.kinds.items()}
    for kind, name in formats.items():
        if BY_STORED.get(name, name) not in weight_names():
            raise NotModelledError("gguf_type_not_modelled", where=where, type=found.kinds[kind].upper(), part=kind)
    return formats


_FORMATS: Mapping[str, str] = {"f16": "fp16", "mxfp4": "mxfp4_gguf", "nvfp4": "nvfp4_gguf"}
