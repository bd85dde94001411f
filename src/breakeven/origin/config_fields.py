"""Reading one configuration dictionary: aliases, defaults of the class, and numbers that make sense."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from breakeven.errors import InputError
from breakeven.origin.values import shown

LAYERS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers")
HIDDEN = ("hidden_size", "n_embd", "n_embed", "d_model")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "num_attention_groups", "kv_n_heads")
HEAD_DIM = ("head_dim", "attention_head_dim", "kv_channels")
VOCABULARY = ("vocab_size", "padded_vocab_size")
MLP_WIDTH = ("intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner", "block_ff_dim")
CONTEXT = ("max_position_embeddings", "n_positions", "seq_length", "max_seq_len", "model_max_length", "max_position_embedding")
EXPERTS = ("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts")
TOP_K = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk", "moe_k", "moe_top_k", "top_k_experts")
SHARED_EXPERTS = ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts")
SHARED_WIDTH = (
    "shared_expert_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "share_expert_dim",
    "shared_intermediate_size",
)

# Ten times the largest value published so far, and more: above it a figure is a slip, not a model.
_LIMITS: Mapping[str, int] = {
    **dict.fromkeys(LAYERS, 2_000),
    **dict.fromkeys(HIDDEN, 1_000_000),
    **dict.fromkeys(HEADS, 10_000),
    **dict.fromkeys(KV_HEADS, 10_000),
    **dict.fromkeys(HEAD_DIM, 16_384),
    **dict.fromkeys(VOCABULARY, 20_000_000),
    **dict.fromkeys(EXPERTS, 100_000),
    **dict.fromkeys(TOP_K, 100_000),
    **dict.fromkeys(SHARED_EXPERTS, 1_000),
    **dict.fromkeys(CONTEXT, 2_000_000_000),
}
LARGEST = 10_000_000
_MISSING = object()


@dataclass(frozen=True, kw_only=True)
class Fields:
    """One configuration, the defaults its class has for absent fields, and where it was read (for the error lines)."""

    config: Mapping[str, object]
    where: str
    model_type: str
    defaults: Mapping[str, object] = field(default_factory=dict)

    def raw(self, *names: str) -> object:
        """The first of the names that is there and not null, else the class's default, else None."""
        for source in (self.config, self.defaults):
            for name in names:
                if source.get(name) is not None:
                    return source[name]
        return None

    def named(self, *names: str) -> str:
        """Which of the names the value is read from."""
        return next((name for name in names if self.config.get(name) is not None), names[0])

    def is_null(self, name: str) -> bool:
        """True where the field is written as null (which for some means off, while absent means the default)."""
        return self.config.get(name, _MISSING) is None

    def optional_count(self, *names: str, low: int = 1) -> int | None:
        """A whole number, or None where no name is there."""
        value = self.raw(*names)
        if value is None:
            return None
        name = self.named(*names)
        return whole_number(value, name, self.where, low=low, high=_LIMITS.get(name, LARGEST))

    def count(self, *names: str, low: int = 1) -> int:
        """A whole number that has to be there."""
        value = self.optional_count(*names, low=low)
        if value is None:
            raise InputError("config_missing_fields", where=self.where, model_type=self.model_type, fields=names[0])
        return value

    def uniform(self, *names: str, low: int = 1) -> int | None:
        """A whole number that may be written once per layer, if all layers agree."""
        value = self.raw(*names)
        if not isinstance(value, list):
            return self.optional_count(*names, low=low)
        name = self.named(*names)
        found = {whole_number(item, name, self.where, low=low, high=_LIMITS.get(name, LARGEST)) for item in value}
        if len(found) != 1:
            raise InputError("config_not_uniform", where=self.where, field=name)
        return found.pop()

    def flag(self, name: str, default: bool = False) -> bool:
        """A true or false."""
        value = self.raw(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise InputError("config_bad_flag", where=self.where, field=name, value=shown(value))
        return value

    def words(self, name: str) -> Sequence[str] | None:
        """A list of words, or None where the field is absent."""
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise InputError("config_bad_list", where=self.where, field=name, value=shown(value))
        return value

    def numbers(self, name: str) -> Sequence[int] | None:
        """A list of whole numbers from 0, or None where the field is absent."""
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, list):
            raise InputError("config_bad_list", where=self.where, field=name, value=shown(value))
        return [whole_number(item, name, self.where, low=0, high=LARGEST) for item in value]

    def require(self, needed: Mapping[str, tuple[str, ...]]) -> None:
        """Name every needed field that is absent, all at once."""
        missing = [name for name, names in needed.items() if self.raw(*names) is None]
        if missing:
            raise InputError("config_missing_fields", where=self.where, model_type=self.model_type, fields=", ".join(missing))


def whole_number(value: object, name: str, where: str, *, low: int, high: int) -> int:
    """The value, if it is a whole number within bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InputError("config_bad_number", where=where, field=name, value=shown(value), low=low, high=high)
    return value


def inner(fields: Fields, name: str) -> Fields:
    """The fields of an object within the configuration, empty where it is absent."""
    return replace(fields, config=table(fields.raw(name) or {}, name, fields.where), defaults={})


def table(value: object, name: str, where: str) -> Mapping[str, object]:
    """The value, if it is an object with named fields."""
    if not isinstance(value, dict):
        raise InputError("config_bad_object", where=where, field=name, value=shown(value))
    return value
