"""Which layers of a GGUF model attend how and keep what state: the metadata says the shape, the tensors say which layers have it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from breakeven.errors import InputError, NotModelledError
from breakeven.origin.gguf_head import Listed, Tensor
from breakeven.origin.gguf_keys import Keys, Windows, known
from breakeven.origin.gguf_tensors import Stored
from breakeven.origin.values import shown
from breakeven.spec.model import Attention, StateKind, States

_STATES = ("ssm_", "shortconv.", "time_mix_")
_QUERIES = ("attn_q.weight", "attn_q_a.weight", "attn_kv_a_mqa.weight")
_KINDS: Mapping[str, StateKind] = {
    "gated_deltanet": "linear", "kda": "linear", "mamba1": "ssm", "mamba2": "ssm", "shortconv": "conv", "rwkv6": "recurrent",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class _Dims:
    """Widths of a key and a value in full and in sliding layers."""

    full: tuple[int, int]
    sliding: tuple[int, int]


def attention_groups(keys: Keys, found: Stored) -> tuple[Attention, ...]:
    """The groups of layers that attend alike, in the order in which they first appear."""
    layers = keys.layers
    attends = [_attends(found.layers[index]) for index in range(layers)]
    _check_kinds(keys, attends, [_keeps_state(found.layers[index]) for index in range(layers)])
    per_layer = [_one(keys, found, index) for index in range(layers) if attends[index]] if any(attends) else []
    return tuple(replace(layer, layers=count) for layer, count in Counter(per_layer).items())


def state_groups(keys: Keys, found: Stored) -> tuple[States, ...]:
    """The layers that keep a state; all of a model are alike."""
    count = sum(_keeps_state(found.layers[index]) for index in range(keys.layers))
    if not count:
        return ()
    mixer = known(keys.arch).mixer
    if mixer is None:
        raise NotModelledError("gguf_state_unknown", where=keys.where, architecture=keys.arch)
    state, conv, heads = _state_sizes(keys, mixer)
    return (States(kind=_KINDS[mixer], mixer=mixer, layers=count, state_elements=state, conv_elements=conv, heads=heads),)


def part_blocks(keys: Keys, found: Stored) -> int:
    """Layers that hold a mixer or an MLP and not both."""
    layers = [found.layers[index] for index in range(keys.layers)]
    return sum(
        (_attends(layer) or _keeps_state(layer)) != any(name.startswith(("ffn_", "channel_mix_")) and "norm" not in name for name in layer)
        for layer in layers
    )


def _attends(layer: Mapping[str, Tensor]) -> bool:
    """Kimi delta attention and gated deltanet have query tensors too, and keep no cache."""
    if "ssm_conv1d_q.weight" in layer:
        return False
    return any(name in layer for name in _QUERIES) or ("attn_qkv.weight" in layer and not _keeps_state(layer))


def _keeps_state(layer: Mapping[str, Tensor]) -> bool:
    return any(name.startswith(_STATES) for name in layer)


def _check_kinds(keys: Keys, attends: Sequence[bool], states: Sequence[bool]) -> None:
    """Metadata that lists the layers' kinds says what the tensors say."""
    layers = keys.layers
    if isinstance(keys.raw("attention.head_count_kv"), list):
        listed = keys.per_layer("attention.head_count_kv", layers)
        _compare(keys, "attention.head_count_kv", [heads > 0 for heads in listed], attends)
    if isinstance(keys.raw("attention.recurrent_layers"), list):
        listed = keys.per_layer("attention.recurrent_layers", layers)
        _compare(keys, "attention.recurrent_layers", [bool(kind) for kind in listed], states)
    interval = keys.optional("full_attention_interval", low=1)
    if interval is not None:
        _compare(keys, "full_attention_interval", [(index + 1) % interval == 0 for index in range(layers)], attends)


def _compare(keys: Keys, key: str, written: Sequence[bool], held: Sequence[bool]) -> None:
    odd = next((index for index, pair in enumerate(zip(written, held, strict=True)) if pair[0] != pair[1]), None)
    if odd is not None:
        raise InputError("gguf_layer_disagrees", where=keys.where, field=f"{keys.arch}.{key}", layer=odd)


def _one(keys: Keys, found: Stored, index: int) -> Attention:
    if keys.raw("attention.compress_ratios") is not None:
        return _compressed(keys, found, index)
    if keys.raw("attention.kv_lora_rank") is not None and keys.raw("attention.key_length_mla") is not None:
        return _sparse(keys, found, index, _latent(keys, index))
    layers = keys.layers
    q = _nonzero(keys, "attention.head_count", index)
    kv = _nonzero(keys, "attention.head_count_kv", index, q)
    dims, window, chunked = _dims(keys, index), _window(keys, index), _windows(keys).chunked
    k, v = dims.full if window is None else dims.sliding
    if q % kv:
        raise InputError("config_heads_not_divisible", where=keys.where, heads=q, kv_heads=kv)
    _check_heads(keys, found.layers[index], index, kv * k, kv * v)
    shares = index >= layers - _shared_layers(keys)
    kind = "full" if window is None else "chunked" if chunked else "sliding"
    layer = Attention(kind=kind, layers=1, q_heads=q, kv_heads=kv, k_dim=k, v_dim=v, window=window, shares_kv=shares)  # type: ignore[arg-type]
    return _sparse(keys, found, index, layer)


def _nonzero(keys: Keys, key: str, index: int, default: int | None = None) -> int:
    value = keys.per_layer(key, keys.layers, default)[index]
    if not 0 < value <= 10_000:
        raise InputError("gguf_bad_key", where=keys.where, field=f"{keys.arch}.{key}", value=shown(value))
    return value


def _dims(keys: Keys, index: int) -> _Dims:
    """Key and value widths; absent ones follow from the embedding and the heads."""
    k, v = keys.optional("attention.key_length", low=1), keys.optional("attention.value_length", low=1)
    if k is None or v is None:
        hidden, q = keys.count("embedding_length"), _nonzero(keys, "attention.head_count", index)
        if hidden % q:
            raise InputError("config_hidden_not_divisible", where=keys.where, hidden=hidden, heads=q)
        k, v = k or hidden // q, v or hidden // q
    local = keys.optional("attention.key_length_swa", low=1) or k, keys.optional("attention.value_length_swa", low=1) or v
    return _Dims(full=(k, v), sliding=local)


def _check_heads(keys: Keys, layer: Mapping[str, Tensor], index: int, keys_wide: int, values_wide: int) -> None:
    for name, width in (("attn_k.weight", keys_wide), ("attn_v.weight", values_wide)):
        tensor = layer.get(name)
        if tensor is not None and (len(tensor.dims) < 2 or tensor.dims[1] != width):
            raise InputError("gguf_shape_disagrees", where=keys.where, tensor=tensor.name, shape=_times(tensor), wanted=width)


def _times(tensor: Tensor) -> str:
    return " × ".join(map(str, tensor.dims))


def _windows(keys: Keys) -> Windows:
    return known(keys.arch).windows or Windows()


def _window(keys: Keys, index: int) -> int | None:
    """The window of a layer, or None where it looks all the way back."""
    ours, written = _windows(keys), keys.optional("attention.sliding_window")
    if known(keys.arch).plain or written == 0 or (ours.needs_key and written is None):
        return None
    if ours.only_layers is not None and keys.layers != ours.only_layers:
        return None
    pattern = keys.raw("attention.sliding_window_pattern")
    if isinstance(pattern, (list, Listed)):
        slides = bool(keys.per_layer("attention.sliding_window_pattern", keys.layers)[index])
    else:
        period = keys.optional("attention.sliding_window_pattern") or ours.period
        slides = bool(period) and (index % period != 0 if ours.dense_first else index % period < period - 1)
        if not period and written is not None:
            raise InputError("gguf_no_key", where=keys.where, field=f"{keys.arch}.attention.sliding_window_pattern")
    if not slides:
        return None
    return (ours.window if ours.chunked else None) or written or ours.window or keys.count("attention.sliding_window")


def _shared_layers(keys: Keys) -> int:
    written, start = keys.optional("attention.shared_kv_layers"), _windows(keys).shared_from
    return written if written is not None else max(0, keys.layers - start) if start is not None else 0


def _latent(keys: Keys, index: int) -> Attention:
    """MLA as llama.cpp absorbs it: one latent and one rotary key a token, cached once."""
    rank, rope = keys.count("attention.kv_lora_rank"), keys.count("rope.dimension_count")
    wide = keys.count("attention.key_length_mla")
    if wide <= rope:
        raise InputError("gguf_bad_key", where=keys.where, field=f"{keys.arch}.attention.key_length_mla", value=wide)
    return Attention(
        kind="mla",
        layers=1,
        q_heads=_nonzero(keys, "attention.head_count", index),
        kv_heads=1,
        k_dim=rank + rope,
        v_dim=0,
        latent_rank=rank,
        rope_dim=rope,
        nope_dim=wide - rope,
        value_dim=keys.count("attention.value_length_mla"),
    )


def _sparse(keys: Keys, found: Stored, index: int, layer: Attention) -> Attention:
    """With DeepSeek's indexer, where the file has one; layers that reuse another's selection keep no key of their own."""
    selected = keys.optional("attention.indexer.top_k", low=1)
    if selected is None:
        return layer
    own = any(name.startswith("indexer.") for name in found.layers[index])
    wide, heads = keys.count("attention.indexer.key_length"), keys.count("attention.indexer.head_count")
    return replace(layer, selected=selected, index_dim=wide if own else 0, index_heads=heads if own else 0)


def _compressed(keys: Keys, found: Stored, index: int) -> Attention:
    """DeepSeek V4: a window, and beyond it one entry in so many tokens; only layers with an indexer choose among them."""
    ratio = keys.per_layer("attention.compress_ratios", keys.layers)[index]
    wide = keys.count("attention.key_length")
    layer = Attention(
        kind="compressed",
        layers=1,
        q_heads=_nonzero(keys, "attention.head_count", index),
        kv_heads=1,
        k_dim=wide,
        v_dim=0,
        value_dim=keys.optional("attention.value_length", low=1) or wide,
        window=keys.count("attention.sliding_window"),
        compression=ratio or None,
    )
    chooses = any(name.startswith("indexer") for name in found.layers[index])
    return _sparse(keys, found, index, layer) if chooses else layer


def _state_sizes(keys: Keys, mixer: str) -> tuple[int, int, int]:
    """Elements of state and of convolution window of one layer, and heads: as llama.cpp sizes its recurrent cache."""
    hidden = keys.count("embedding_length")
    if mixer == "shortconv":
        return 0, hidden * (keys.count("shortconv.l_cache") - 1), hidden
    if mixer == "rwkv6":
        size = keys.count("wkv.head_size")
        return hidden * size, hidden * (keys.optional("token_shift_count") or 2), max(1, hidden // size)
    kernel = keys.count("ssm.conv_kernel")
    if mixer == "kda":
        heads, wide = max(keys.per_layer("attention.head_count", keys.layers)), keys.count("kda.head_dim")
        return heads * wide * wide, 3 * (kernel - 1) * heads * wide, heads
    inner, state, groups = keys.count("ssm.inner_size"), keys.count("ssm.state_size"), keys.optional("ssm.group_count") or 0
    heads = inner if mixer == "mamba1" else keys.count("ssm.time_step_rank")
    if mixer == "mamba1":
        groups = 0
    return inner * state, (kernel - 1) * (inner + 2 * groups * state), heads
