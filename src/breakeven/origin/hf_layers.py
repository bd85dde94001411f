"""What each layer of a configuration holds (attention, a mixer with a state, an MLP, experts), however its family writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from breakeven.errors import InputError, NotModelledError
from breakeven.origin.architecture import Architecture
from breakeven.origin.config_fields import LAYERS, Fields, inner, table
from breakeven.origin.values import shown

Part = Literal["attention", "mixer", "mlp", "experts"]
Block = tuple[Part, ...]
"""The parts of one layer. ``mlp`` stands for an MLP of either sort where the rule of the mixture decides which it is."""

ATTENTION: Block = ("attention", "mlp")
MIXER: Block = ("mixer", "mlp")
BOTH: Block = ("attention", "mixer", "mlp")
_LETTERS: Mapping[str, Block] = {"M": ("mixer",), "*": ("attention",), "-": ("mlp",), "E": ("experts",)}
_BLOCK_TYPES: Mapping[str, Block] = {"mamba": ("mixer",), "attention": ("attention",), "mlp": ("mlp",), "moe": ("experts",)}
_MIXER_TYPES = ("linear_attention", "mamba", "mamba2", "conv", "kda")
_ATTENTION_TYPES = ("full_attention", "attention", "sliding_attention")


def layer_count(fields: Fields, arch: Architecture) -> int:
    """Layers of the model: as written, or as many as the list of blocks has."""
    if arch.layout == "pattern" and fields.raw(*LAYERS) is None:
        return len(_blocks_written(fields))
    return fields.count(*LAYERS) * arch.attentions_per_layer


def blocks(fields: Fields, arch: Architecture, layers: int) -> tuple[Block, ...]:
    """The parts of each layer."""
    return tuple(_LAYOUTS[arch.layout](fields, arch, layers))


def part_blocks(found: Sequence[Block]) -> int:
    """Parts that are not there: a layer has a mixer of tokens and an MLP, a block of one part lacks the other."""
    return sum(2 - int("attention" in block or "mixer" in block) - int("mlp" in block or "experts" in block) for block in found)


def cut(written: Sequence[object], name: str, fields: Fields, layers: int) -> None:
    """Refuse a list that is shorter than the model (a longer one goes on with the MTP layers)."""
    if len(written) < layers:
        raise InputError("config_layer_list", where=fields.where, field=name, entries=len(written), layers=layers)


def _plain(fields: Fields, arch: Architecture, layers: int) -> list[Block]:
    return [ATTENTION] * layers


def _parallel(fields: Fields, arch: Architecture, layers: int) -> list[Block]:
    return [BOTH] * layers


def _mixers_alone(fields: Fields, arch: Architecture, layers: int) -> list[Block]:
    return [("mixer",) if arch.norms == 1 else MIXER] * layers


def _listed(fields: Fields, arch: Architecture, layers: int) -> list[Block] | None:
    listed = fields.words("layer_types")
    if listed is None:
        return None
    cut(listed, "layer_types", fields, layers)
    for kind in listed:
        if kind not in (*_MIXER_TYPES, *_ATTENTION_TYPES):
            raise NotModelledError("layer_type_unknown", where=fields.where, model_type=fields.model_type, kind=shown(kind))
    return [MIXER if kind in _MIXER_TYPES else ATTENTION for kind in listed[:layers]]


def _interval(fields: Fields, arch: Architecture, layers: int) -> list[Block]:
    listed = _listed(fields, arch, layers)
    if listed is not None:
        return listed
    every = fields.count("full_attention_interval")
    return [ATTENTION if (index + 1) % every == 0 else MIXER for index in range(layers)]


def _softmax_list(fields: Fields, arch: Architecture, layers: int) -> list[Block]:
    listed = _listed(fields, arch, layers)
    if listed is not None:
        return listed
    kinds = fields.numbers("attn_type_list")  # 1 is softmax attention, 0 a linear layer
    if kinds is None:  # the class of the repacked checkpoints alternates
        return [ATTENTION if index % 2 == 0 else MIXER for index in range(layers)]
    cut(kinds, "attn_type_list", fields, layers)
    return [ATTENTION if softmax else MIXER for softmax in kinds[:layers]]


def _period(fields: Fields, arch: Architecture, layers: int) -> list[Block]:
    every, first = fields.count("attn_layer_period"), fields.count("attn_layer_offset", low=0)
    return [ATTENTION if index % every == first else MIXER for index in range(layers)]


def _indices(fields: Fields, arch: Architecture, layers: int) -> list[Block]:
    listed = _listed(fields, arch, layers)
    if listed is not None:
        return listed
    full = fields.numbers("full_attn_idxs")
    if full is None:
        full = fields.numbers("attn_layer_indices")
    if full is None:
        fields.require({"layer_types": ("layer_types",)})
    return [ATTENTION if index in set(full or ()) else MIXER for index in range(layers)]


def _one_based(fields: Fields, arch: Architecture, layers: int) -> list[Block]:
    listed = _listed(fields, arch, layers)
    if listed is not None:
        return listed
    written = inner(fields, "linear_attn_config")
    full, linear = (set(written.numbers(name) or ()) for name in ("full_attn_layers", "kda_layers"))
    if full & linear or full | linear != set(range(1, layers + 1)):
        raise InputError("config_layer_split", where=fields.where, field="linear_attn_config", layers=layers)
    return [ATTENTION if index + 1 in full else MIXER for index in range(layers)]


def _pattern(fields: Fields, arch: Architecture, layers: int) -> list[Block]:
    found = _blocks_written(fields)
    cut(found, "hybrid_override_pattern", fields, layers)
    return found[:layers]


def _blocks_written(fields: Fields) -> list[Block]:
    words = fields.words("layers_block_type")
    if words is not None:
        return [_known(_BLOCK_TYPES, word, fields) for word in words]
    letters = fields.raw("hybrid_override_pattern")
    if letters is None:
        fields.require({"hybrid_override_pattern": ("hybrid_override_pattern",)})
    if not isinstance(letters, str) or not letters:
        raise InputError("config_bad_list", where=fields.where, field="hybrid_override_pattern", value=shown(letters))
    return [_known(_LETTERS, letter, fields) for letter in letters]


def _known(kinds: Mapping[str, Block], word: str, fields: Fields) -> Block:
    if word not in kinds:
        raise NotModelledError("layer_type_unknown", where=fields.where, model_type=fields.model_type, kind=shown(word))
    return kinds[word]


def _chosen_by_search(fields: Fields, arch: Architecture, layers: int) -> list[Block]:
    found: list[Block] = []
    for attention, mlp in searched(fields, layers):
        parts: tuple[tuple[Part, bool], ...] = (
            ("attention", not _off(attention) and not attention.flag("replace_with_linear")),
            ("mlp", not _off(mlp) or attention.flag("replace_with_linear")),
        )
        found.append(tuple(part for part, there in parts if there))
    return found


def searched(fields: Fields, layers: int) -> list[tuple[Fields, Fields]]:
    """The attention and the MLP of each layer of ``block_configs``, which a search has chosen layer by layer."""
    written = fields.raw("block_configs")
    if written is None:
        fields.require({"block_configs": ("block_configs",)})
    if not isinstance(written, list):
        raise InputError("config_block_configs", where=fields.where, value=shown(written), layers=layers)
    cut(written, "block_configs", fields, layers)
    tables = [replace(fields, config=table(block, "block_configs", fields.where), defaults={}) for block in written[:layers]]
    return [(inner(block, "attention"), inner(block, "ffn")) for block in tables]


def _off(part: Fields) -> bool:
    return part.flag("no_op")


_LAYOUTS: Mapping[str, Callable[[Fields, Architecture, int], list[Block]]] = {
    "plain": _plain,
    "parallel": _parallel,
    "mixers": _mixers_alone,
    "interval": _interval,
    "softmax_list": _softmax_list,
    "period": _period,
    "indices": _indices,
    "one_based": _one_based,
    "pattern": _pattern,
    "block_configs": _chosen_by_search,
}
