"""Write ``catalog/models/*.toml`` from the reference table of models: ``BREAKEVEN_SHARED=../shared python tools/make_model_entries.py``.

The shape and the counts of an entry are those that the parser reads from the published configuration; the table adds where the
configuration was found, the published draft heads, and the dtype where a configuration leaves it out.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from breakeven.origin.huggingface import parse_config
from breakeven.origin.model_entry import parse_entry
from breakeven.spec.model import TENSOR_CLASSES, Attention, Model, States

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("BREAKEVEN_SHARED") or ROOT.parent / "shared")
FOLDER = ROOT / "src/breakeven/catalog/models"

# Entry to the ids that serve the same weights at the same context, beyond those of the table.
MODELS: Mapping[str, tuple[str, ...]] = {
    "llama-3.1-8b": ("meta-llama/Meta-Llama-3.1-8B", "meta-llama/Meta-Llama-3.1-8B-Instruct"),
    "llama-3.1-70b": ("meta-llama/Llama-3.1-70B-Instruct", "meta-llama/Meta-Llama-3.1-70B", "meta-llama/Meta-Llama-3.1-70B-Instruct"),
    "llama-3.1-405b": ("meta-llama/Llama-3.1-405B-Instruct", "meta-llama/Meta-Llama-3.1-405B", "meta-llama/Meta-Llama-3.1-405B-Instruct"),
    "llama-3.3-70b": (),
    "llama-3.2-1b": ("meta-llama/Llama-3.2-1B-Instruct",),
    "llama-3.2-3b": ("meta-llama/Llama-3.2-3B-Instruct",),
    "llama-3-8b": ("meta-llama/Meta-Llama-3-8B-Instruct",),
    "llama-3-70b": ("meta-llama/Meta-Llama-3-70B-Instruct",),
    "llama-2-13b": ("meta-llama/Llama-2-13b-chat-hf",),
    "llama-2-70b": ("meta-llama/Llama-2-70b-chat-hf",),
    "llama-4-scout": (),
    "qwen2.5-0.5b": (),
    "qwen2.5-1.5b": (),
    "qwen2.5-7b": (),
    "qwen2.5-32b": (),
    "qwen2.5-72b": (),
    "qwen3-0.6b": (),
    "qwen3-4b": (),
    "qwen3-14b": (),
    "qwen3-32b": (),
    "qwen3-30b-a3b": (),
    "qwen3-235b-a22b": (),
    "mistral-7b-v0.3": (),
    "mistral-nemo-12b": (),
    "mistral-large-123b": (),
    "mixtral-8x7b": (),
    "mixtral-8x22b": (),
    "deepseek-v3": ("deepseek-ai/DeepSeek-V3-Base",),
    "deepseek-r1": ("deepseek-ai/DeepSeek-R1-Zero",),
    "deepseek-v2-lite": ("deepseek-ai/DeepSeek-V2-Lite-Chat",),
    "kimi-k2": (),
    "gpt-oss-20b": (),
    "gpt-oss-120b": (),
    "gemma-2-9b": ("google/gemma-2-9b-it",),
    "gemma-3-27b": ("google/gemma-3-27b-pt",),
    "phi-4": (),
    "smollm2-135m": ("HuggingFaceTB/SmolLM2-135M-Instruct",),
    "falcon-7b": ("tiiuae/falcon-7b-instruct",),
    "opt-6.7b": (),
}
# Ids of the table whose context length is not the entry's.
OTHER_CONTEXT = {"Qwen/Qwen3-4B-Instruct-2507", "Qwen/Qwen3-Coder-30B-A3B-Instruct", "microsoft/Phi-4-reasoning"}
REQUANTISED = re.compile(r"-(NV)?FP[48]$")
CONFIRMED = "confirmed in public repositories"


def main() -> None:
    """Write every entry, and read it back."""
    rows = {row["name"]: row for row in map(json.loads, (SHARED / "reference/models.jsonl").read_text(encoding="utf-8").splitlines())}
    for name, more in MODELS.items():
        text = "\n".join(_lines(rows[name], more)) + "\n"
        (FOLDER / f"{name}.toml").write_text(text, encoding="utf-8")
        parse_entry(tomllib.loads(text), name)
    print(f"{len(MODELS)} entries")


def configuration(row: Mapping[str, Any]) -> dict[str, Any]:
    """The published configuration, with the dtype and the quantisation that the table keeps beside it."""
    config = dict(row["hf_config"])
    if row["quantization_config"]:
        config["quantization_config"] = row["quantization_config"]
    if not {"torch_dtype", "dtype"} & set(config):
        config["torch_dtype"] = "float16" if row["native_dtype"] == "float16" else "bfloat16"
    return config


def _lines(row: Mapping[str, Any], more: tuple[str, ...]) -> Iterator[str]:
    model = parse_config(configuration(row), name=row["name"], where=row["name"])
    ids = [name for name in row["hf_ids"] if not REQUANTISED.search(name) and name not in OTHER_CONTEXT]
    heads = _draft_heads(row)
    yield f"family = {_word(model.family)}"
    yield f"hf_ids = {_list([*ids, *more])}"
    short = dict.fromkeys(name.split("/")[1].lower() for name in [*ids, *more])
    yield f"aliases = {_list([name for name in short if name != row['name']])}"
    yield f"layers = {model.layers}"
    yield f"hidden = {model.hidden}"
    yield f"vocabulary = {model.vocabulary}"
    yield f"tied = {str(model.tied).lower()}"
    yield f"dtype = {_word(model.dtype)}"
    if model.max_context:
        yield f"max_context = {model.max_context}"
    if model.mtp_layers:
        yield f"mtp_layers = {model.mtp_layers}"
        yield f"mtp_parameters = {model.mtp_parameters}  # with the embedding and the head of the model, not copies of them"
    if heads:
        yield f"draft_heads = {_list(heads)}"
    yield f"confidence = {_word(row['confidence'])}"
    if model.state_dtype:
        yield f"state_dtype = {_word(model.state_dtype)}"
    if model.part_blocks:
        yield f"part_blocks = {model.part_blocks}"
    for group in model.attention:
        yield from _attention(group)
    for states in model.states:
        yield from _states(states)
    yield from _counts(model)
    yield from _sources(row, model, bool(heads))


def _attention(group: Attention) -> Iterator[str]:
    yield from ("", "[[attention]]", f"kind = {_word(group.kind)}")
    for key in ("layers", "q_heads", "kv_heads", "k_dim", "v_dim", "window", "latent_rank", "rope_dim", "nope_dim", "value_dim"):
        if getattr(group, key) is not None:
            yield f"{key} = {getattr(group, key)}"
    yield from (f"{key} = {getattr(group, key)}" for key in ("selected", "index_dim", "index_heads", "compression") if getattr(group, key))
    if group.shares_kv:
        yield "shares_kv = true"


def _states(states: States) -> Iterator[str]:
    yield from ("", "[[states]]", f"kind = {_word(states.kind)}", f"mixer = {_word(states.mixer)}")
    yield from (f"{key} = {getattr(states, key)}" for key in ("layers", "state_elements", "conv_elements", "heads"))


def _counts(model: Model) -> Iterator[str]:
    yield from ("", f"[parameters]  # {model.parameters.total:,} in all")
    kinds = (kind for kind in TENSOR_CLASSES if kind != "lookup" or model.parameters.lookup)
    yield from (f"{kind} = {getattr(model.parameters, kind)}" for kind in kinds)
    if model.experts:
        yield from ("", "[experts]", f"count = {model.experts.count}", f"top_k = {model.experts.top_k}", f"layers = {model.experts.layers}")
    if model.stored:
        yield from ("", "[stored]", *(f"{kind} = {_word(written)}" for kind, written in model.stored.items()))


def _sources(row: Mapping[str, Any], model: Model, heads: bool) -> Iterator[str]:
    found = [re.sub(r"stored index file id \d+ \((.*)\)", r"\1", source) for source in dict.fromkeys(row["source"])]
    yield from ("", "[sources]")
    yield f"shape = {_word('config.json as published, kept in: ' + ' | '.join(s for s in found if 'instantiation' not in s))}"
    counted = next((source for source in found if "instantiation" in source), None)
    yield f"parameters = {_word('counted from the shape (language model only)' + (f'; {counted}' if counted else ''))}"
    named = {"torch_dtype", "dtype"} & {*row["hf_config"], *row["hf_config"].get("text_config", {})}
    yield f"dtype = {_word('torch_dtype of config.json' if named else 'dtype of the published checkpoint')}"
    yield 'hf_ids = "the publisher\'s model pages"'
    if model.stored:
        yield f"stored = {_word('quantization_config of config.json: ' + json.dumps(row['quantization_config']))}"
    if model.mtp_layers:
        inner = row["hf_config"].get("text_config") or row["hf_config"]
        field = "mtp_num_hidden_layers" if "mtp_num_hidden_layers" in inner else "num_nextn_predict_layers"
        yield f'mtp = "{field} of config.json; parameters counted from the shape of one layer"'
    if heads:
        yield f"draft_heads = {_word(row['draft_heads_basis'])}"


def _draft_heads(row: Mapping[str, Any]) -> list[str]:
    if not str(row["draft_heads_basis"]).startswith(CONFIRMED):
        return []
    named = (re.fullmatch(r"(EAGLE-3|EAGLE|DFlash|DSpark) (\S+/\S+)(?: \(.*\))?", head) for head in row["draft_heads"])
    return [f"{match[1].lower().replace('-', '')} {match[2]}" for match in named if match]


def _word(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _list(words: list[str]) -> str:
    return (
        "[" + ", ".join(_word(word) for word in words) + "]"
        if len(words) < 3
        else "[\n" + "".join(f"  {_word(word)},\n" for word in words) + "]"
    )


if __name__ == "__main__":
    main()
