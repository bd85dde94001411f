"""The text half of a configuration of vision, sound and text, however deep it lies and whatever it is called."""

from __future__ import annotations

from collections.abc import Mapping

from breakeven.errors import InputError
from breakeven.origin.config_fields import HIDDEN, LAYERS, Fields, table
from breakeven.origin.values import shown

_NESTS = (
    "text_config",
    "llm_config",
    "language_config",
    "thinker_config",
    "language_model_config",
    "text_model",
    "llm",
    "lm_config",
)
_OTHER_HALVES = ("vision", "audio", "speech", "image", "visual", "talker", "code", "projector", "encoder", "draft", "mtp")
_DEEPEST = 6
# A wrapper of vision and text may leave out the type of its text half: it follows from its own.
_TEXT_TYPE_OF = {
    "gemma3": "gemma3_text",
    "gemma4": "gemma4_text",
    "gemma3n": "gemma3n_text",
    "kimi_k3": "kimi_linear",
    "kimi_k25": "kimi_k2",
    "llama4": "llama4_text",
    "llava": "llama",
    "minimax_m3_vl": "minimax_m3_vl_text",
    "mistral3": "mistral",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text",
    "step3_vl": "step3_text",
    "step3p7": "step3p5",
}


def text_fields(config: Mapping[str, object], where: str) -> Fields:
    """The fields of the language model, with the type that its rules follow."""
    outer = config.get("model_type")
    inner = _innermost(config, where)
    inferred = _TEXT_TYPE_OF.get(outer) if isinstance(outer, str) and inner is not config else None
    model_type = inner.get("model_type", inferred if inner is not config else outer)
    if not isinstance(model_type, str) or not model_type:
        raise InputError("config_no_model_type", where=where)
    return Fields(config=inner, where=where, model_type=shown(model_type))


def _innermost(config: Mapping[str, object], where: str) -> Mapping[str, object]:
    """Down through the wrappers: by their usual names, else the one object that has layers and a width."""
    inner = config
    for _ in range(_DEEPEST):
        name = next((name for name in _NESTS if inner.get(name) is not None), None) or _renamed(inner)
        if name is None:
            break
        inner = table(inner[name], name, where)
    return inner


def _renamed(config: Mapping[str, object]) -> str | None:
    """The one object that looks like a language model, where the configuration itself does not."""
    if _looks_like_a_model(config):
        return None
    found = [
        name
        for name, value in config.items()
        if not any(half in name for half in _OTHER_HALVES) and isinstance(value, dict) and _looks_like_a_model(value)
    ]
    return found[0] if len(found) == 1 else None


def _looks_like_a_model(value: Mapping[str, object]) -> bool:
    return all(any(value.get(name) is not None for name in names) for names in (LAYERS, HIDDEN))
