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
from dataclasses import replace
from pathlib import Path
from typing import Any

from breakeven.errors import BreakevenError, InputError
from breakeven.origin.huggingface import parse_config
from breakeven.origin.model_entry import parse_entry
from breakeven.spec.model import TENSOR_CLASSES, Attention, Model, Parameters, States

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("BREAKEVEN_SHARED") or ROOT.parent / "shared")
FOLDER = ROOT / "src/breakeven/catalog/models"
FURTHER = ROOT / "tools/further_models.toml"

# Entry to the ids that serve the same weights at the same context, beyond those of the table.
MORE_IDS: Mapping[str, tuple[str, ...]] = {
    "llama-3.1-8b": ("meta-llama/Meta-Llama-3.1-8B", "meta-llama/Meta-Llama-3.1-8B-Instruct"),
    "llama-3.1-70b": ("meta-llama/Llama-3.1-70B-Instruct", "meta-llama/Meta-Llama-3.1-70B", "meta-llama/Meta-Llama-3.1-70B-Instruct"),
    "llama-3.1-405b": ("meta-llama/Llama-3.1-405B-Instruct", "meta-llama/Meta-Llama-3.1-405B", "meta-llama/Meta-Llama-3.1-405B-Instruct"),
    "llama-3.2-1b": ("meta-llama/Llama-3.2-1B-Instruct",),
    "llama-3.2-3b": ("meta-llama/Llama-3.2-3B-Instruct",),
    "llama-3-8b": ("meta-llama/Meta-Llama-3-8B-Instruct",),
    "llama-3-70b": ("meta-llama/Meta-Llama-3-70B-Instruct",),
    "llama-2-13b": ("meta-llama/Llama-2-13b-chat-hf",),
    "llama-2-70b": ("meta-llama/Llama-2-70b-chat-hf",),
    "deepseek-v3": ("deepseek-ai/DeepSeek-V3-Base",),
    "deepseek-r1": ("deepseek-ai/DeepSeek-R1-Zero",),
    "deepseek-v2-lite": ("deepseek-ai/DeepSeek-V2-Lite-Chat",),
    "gemma-2-9b": ("google/gemma-2-9b-it",),
    "gemma-3-27b": ("google/gemma-3-27b-pt",),
    "smollm2-135m": ("HuggingFaceTB/SmolLM2-135M-Instruct",),
    "falcon-7b": ("tiiuae/falcon-7b-instruct",),
    "codellama-34b": ("codellama/CodeLlama-34b-Instruct-hf",),
    "qwen2.5-coder-7b": ("Qwen/Qwen2.5-Coder-7B-Instruct",),
    "qwen2.5-coder-14b": ("Qwen/Qwen2.5-Coder-14B-Instruct",),
    "qwen2.5-coder-32b": ("Qwen/Qwen2.5-Coder-32B-Instruct",),
    "gemma-2b": ("google/gemma-2b-it",),
    "gemma-7b": ("google/gemma-7b-it",),
    "gemma-2-27b": ("google/gemma-2-27b-it",),
    "gemma-3-1b": ("google/gemma-3-1b-pt",),
    "gemma-3-4b": ("google/gemma-3-4b-pt",),
    "gemma-3-12b": ("google/gemma-3-12b-pt",),
    "mistral-7b-v0.1": ("mistralai/Mistral-7B-Instruct-v0.1",),
    "smollm2-360m": ("HuggingFaceTB/SmolLM2-360M-Instruct",),
    "smollm2-1.7b": ("HuggingFaceTB/SmolLM2-1.7B-Instruct",),
    "falcon-40b": ("tiiuae/falcon-40b-instruct",),
    "falcon-180b": ("tiiuae/falcon-180B-chat",),
    "falcon3-7b": ("tiiuae/Falcon3-7B-Instruct",),
    "falcon3-10b": ("tiiuae/Falcon3-10B-Instruct",),
    "olmo-2-7b": ("allenai/OLMo-2-1124-7B-Instruct",),
    "olmo-2-32b": ("allenai/OLMo-2-0325-32B-Instruct",),
    "yi-34b": ("01-ai/Yi-34B-Chat",),
    "qwen1.5-moe-a2.7b": ("Qwen/Qwen1.5-MoE-A2.7B-Chat",),
    "deepseek-v2": ("deepseek-ai/DeepSeek-V2-Chat",),
    "baichuan2-7b": ("baichuan-inc/Baichuan2-7B-Chat",),
}
# Rows below high confidence that published measurements are about.
MEDIUM: tuple[str, ...] = ("bloom-176b", "qwen2-72b")
# Ids of the table's rows whose context length is not the entry's.
OTHER_CONTEXT: Mapping[str, str] = {
    "Qwen/Qwen3-4B-Instruct-2507": "qwen3-4b",
    "Qwen/Qwen3-Coder-30B-A3B-Instruct": "qwen3-30b-a3b",
    "microsoft/Phi-4-reasoning": "phi-4",
}
REQUANTISED = re.compile(r"-(NV)?FP[48]$")
CONFIRMED = "confirmed in public repositories"


def main() -> None:
    """Write the entry of every row that is well founded and that the parser reads; say which are left out, and why."""
    rows = [json.loads(line) for line in (SHARED / "reference/models.jsonl").read_text(encoding="utf-8").splitlines()]
    rows += further()
    chosen = [row for row in rows if row["confidence"] == "high" or row["name"] in MEDIUM]
    written = {row["name"] for row in chosen if _write(row)}
    for old in FOLDER.glob("*.toml"):
        if old.stem not in written:
            old.unlink()
    print(f"{len(written)} entries, {len(chosen) - len(written)} left out, {len(rows) - len(chosen)} not well founded")


def further() -> list[dict[str, Any]]:
    """Rows that the table lacks, in its form."""
    plain = {"quantization_config": None, "draft_heads": [], "draft_heads_basis": "", "confidence": "high"}
    return [{"name": name, **plain, **row} for name, row in tomllib.loads(FURTHER.read_text(encoding="utf-8")).items()]


def _write(row: Mapping[str, Any]) -> bool:
    """Write one entry and read it back; False where the parser refuses the model."""
    name = row["name"]
    try:
        text = "\n".join(_lines(row, MORE_IDS.get(name, ()))) + "\n"
        parse_entry(tomllib.loads(text), name)
    except BreakevenError as refusal:
        print(f"left out: {refusal}")
        return False
    (FOLDER / f"{name}.toml").write_text(text, encoding="utf-8")
    return True


def configuration(row: Mapping[str, Any]) -> dict[str, Any]:
    """The published configuration, with the dtype and the quantisation that the table keeps beside it."""
    config = dict(row["hf_config"])
    if row["quantization_config"]:
        config["quantization_config"] = row["quantization_config"]
    if not {"torch_dtype", "dtype"} & set(config):
        config["torch_dtype"] = "float16" if row["native_dtype"] == "float16" else "bfloat16"
    return config


def _model(row: Mapping[str, Any]) -> Model:
    """The model of a row, by the parser; what the table cut short comes from the row's own columns."""
    if _cut_short(row):
        return _from_columns(row)
    written, config = row["quantization_config"] or {}, configuration(row)
    if written.get("format") != "pack-quantized" or "config_groups" in written:
        return parse_config(config, name=row["name"], where=row["name"])
    # The table keeps the method and not its groups; what is packed, and how wide, stands in another column.
    if not str(row["native_dtype"]).startswith("int4 experts"):
        raise InputError("not_a_table", path=f"{row['name']}.quantization_config.config_groups")
    plain = parse_config({key: value for key, value in config.items() if key != "quantization_config"}, name=row["name"], where=row["name"])
    return replace(plain, stored={"experts": "int4_g32"})


def _cut_short(row: Mapping[str, Any]) -> bool:
    return any(isinstance(value, str) and value.startswith("see ") for value in row["hf_config"].values())


def _from_columns(row: Mapping[str, Any]) -> Model:
    """A plain decoder from the columns: layers that attend alike, those without attention as parts, and the counts by class."""
    counts, plain = row["param_breakdown"], [group for group in row["attention"] if group["kind"] == "full"]
    width = row["head_dim"]
    attention = tuple(
        Attention(
            kind="full",
            layers=group["n"],
            q_heads=row["num_attention_heads"],
            kv_heads=group["kv_elems_per_token"] // (2 * width),
            k_dim=width,
            v_dim=width,
        )
        for group in plain
    )
    layers = row["num_hidden_layers"]
    return Model(
        name=row["name"],
        family=row["model_type"],
        layers=layers,
        hidden=row["hidden_size"],
        vocabulary=row["vocab_size"],
        attention=attention,
        part_blocks=layers - sum(group["n"] for group in plain),
        parameters=Parameters(
            embedding=counts["embed"],
            head=counts["lm_head"],
            attention=counts["attention_and_mixers"],
            mlp=counts["dense_mlp"],
            experts=counts["moe"],
            other=counts["norms_and_other"],
        ),
        tied=row["tie_word_embeddings"],
        dtype=row["native_dtype"],
        max_context=row["max_position_embeddings"],
    )


def _lines(row: Mapping[str, Any], more: tuple[str, ...]) -> Iterator[str]:
    model = _model(row)
    ids = [name for name in row["hf_ids"] if not REQUANTISED.search(name) and OTHER_CONTEXT.get(name) != row["name"]]
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
    if model.part_blocks:
        yield f"part_blocks = {model.part_blocks}"
    if model.state_dtype:
        yield f"state_dtype = {_word(model.state_dtype)}"
    if model.kv_scheme:
        yield f"kv_scheme = {_word(model.kv_scheme)}"
    if model.max_context:
        yield f"max_context = {model.max_context}"
    if model.mtp_layers:
        yield f"mtp_layers = {model.mtp_layers}"
        yield f"mtp_parameters = {model.mtp_parameters}  # with the embedding and the head of the model, not copies of them"
    if heads:
        yield f"draft_heads = {_list(heads)}"
    yield f"confidence = {_word(row['confidence'])}"
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
    found = [_said(source) for source in dict.fromkeys(row["source"])]
    yield from ("", "[sources]")
    yield f"shape = {_word('config.json as published, kept in: ' + ' | '.join(s for s in found if 'instantiation' not in s))}"
    counted = next((source for source in found if "instantiation" in source), None)
    basis = "counts by tensor class published beside it" if _cut_short(row) else "counted from the shape (language model only)"
    yield f"parameters = {_word(basis + (f'; {counted}' if counted else ''))}"
    named = {"torch_dtype", "dtype"} & {*row["hf_config"], *row["hf_config"].get("text_config", {})}
    yield f"dtype = {_word('torch_dtype of config.json' if named else 'dtype of the published checkpoint')}"
    yield 'hf_ids = "the publisher\'s model pages"'
    if model.stored:
        packed = "; int4 experts, groups of 32 recalled" if model.stored.get("experts") == "int4_g32" else ""
        yield f"stored = {_word('quantization_config of config.json: ' + json.dumps(row['quantization_config']) + packed)}"
    if model.mtp_layers:
        inner = row["hf_config"].get("text_config") or row["hf_config"]
        field = "mtp_num_hidden_layers" if "mtp_num_hidden_layers" in inner else "num_nextn_predict_layers"
        yield f'mtp = "{field} of config.json; parameters counted from the shape of one layer"'
    if heads:
        yield f"draft_heads = {_word(row['draft_heads_basis'])}"


def _said(source: str) -> str:
    """A source without the record numbers of the table's makers."""
    plain = re.sub(r"stored index file id \d+ \((.*)\)", r"\1", source)
    return re.sub(r"(?:stored index )?(?:file )?\bids? \d{9,}(?:(?:, | and )\d{9,})*\s*", "", plain).strip(" ;,") or "a stored copy"


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
