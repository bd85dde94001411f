"""Every model of the catalogue: it reads, its counts follow from its shape, and each value has a source."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from make_model_entries import further

from breakeven import catalog
from breakeven.errors import InputError
from breakeven.origin.huggingface import parse_config
from breakeven.origin.model_entry import SOURCE_OF, parse_entry
from breakeven.spec.model import Model

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED_FIGURES = ("bloom-176b", "qwen2-72b")
"""Of medium confidence, and what published measurements are about."""
OTHER_PROJECTIONS = ("gemma4_text", "step3p5")
"""Keys serve as values in some layers, or a gate is a projection more: the parser counts them."""
FILES = sorted((ROOT / "src/breakeven/catalog/models").glob("*.toml"))


def table(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def rows(shared: Path) -> Mapping[str, dict[str, Any]]:
    lines = (shared / "reference/models.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["name"]: row for row in (*map(json.loads, lines), *further())}


def plain_attention(model: Model) -> int:
    """Projections alone, from the shape of the entry: h·(q·k + kv·k + kv·v + q·v) a layer."""
    return sum(
        group.layers
        * model.hidden
        * (group.q_heads * group.k_dim + group.kv_heads * (group.k_dim + group.v_dim) + group.q_heads * group.v_dim)
        for group in model.attention
    )


def test_the_catalogue_holds_every_model_of_high_confidence(rows: Mapping[str, dict[str, Any]]) -> None:
    entered = {path.stem for path in FILES}
    assert {name for name, row in rows.items() if row["confidence"] == "high"} <= entered


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
class TestEachEntry:
    def test_reads(self, path: Path) -> None:
        assert parse_entry(table(path), path.stem).name == path.stem

    def test_has_a_source_for_every_value(self, path: Path) -> None:
        found = table(path)
        assert {SOURCE_OF[key] for key in found if key in SOURCE_OF} <= set(found["sources"])
        assert set(found) - set(SOURCE_OF) <= {"sources", "confidence", "notes", "aliases"}

    def test_attention_follows_from_the_shape(self, path: Path) -> None:
        model = parse_entry(table(path), path.stem)
        if (
            all(group.kind not in ("mla", "compressed") for group in model.attention)
            and not model.states
            and model.family not in OTHER_PROJECTIONS
        ):
            assert model.parameters.attention == pytest.approx(plain_attention(model), rel=2e-3)

    def test_experts_are_whole_matrices_of_the_hidden_size(self, path: Path) -> None:
        model = parse_entry(table(path), path.stem)
        assert (model.experts is None) == (model.parameters.experts == 0)
        if model.experts is not None and model.family != "gpt_oss":  # whose experts have biases
            assert model.parameters.experts % (model.experts.count * model.experts.layers * 3 * model.hidden) == 0

    def test_is_what_the_parser_reads_from_the_published_configuration(self, path: Path, rows: Mapping[str, dict[str, Any]]) -> None:
        row, model = rows[path.stem], parse_entry(table(path), path.stem)
        if any(isinstance(value, str) and value.startswith("see ") for value in row["hf_config"].values()):
            assert model.parameters.total == row["total_params"]  # the table keeps this configuration without its blocks
            assert sum(g.layers * g.kv_heads * (g.k_dim + g.v_dim) * 2 for g in model.attention) == row["kv_bytes_per_token_bf16"]
            return
        read = parse_config(row["hf_config"], name=path.stem, where=path.stem)
        shape = (
            "family",
            "layers",
            "hidden",
            "vocabulary",
            "attention",
            "parameters",
            "experts",
            "tied",
            "max_context",
            "mtp_layers",
            "mtp_parameters",
        )
        assert {key: getattr(model, key) for key in shape} == {key: getattr(read, key) for key in shape}
        assert model.parameters.total == pytest.approx(row["total_params"], rel=1e-3)

    def test_is_of_high_confidence_and_its_ids_are_of_unaltered_weights(self, path: Path) -> None:
        found = table(path)
        assert found["confidence"] == ("medium" if path.stem in PUBLISHED_FIGURES else "high") and found["hf_ids"]
        assert not [name for name in found["hf_ids"] if name.upper().endswith(("FP8", "FP4", "AWQ", "INT4"))]


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("meta-llama/Llama-3.1-70B-Instruct", "llama-3.1-70b"),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"),
        ("mixtral-8x7b-instruct-v0.1", "mixtral-8x7b"),
    ],
)
def test_a_model_is_found_by_the_id_that_people_type(typed: str, name: str) -> None:
    assert catalog.load("models", typed).name == name


def test_no_id_belongs_to_two_entries() -> None:
    names = [name.lower() for path in FILES for name in table(path)["hf_ids"]]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("deepseek-v3", dict.fromkeys(("attention", "mlp", "experts"), "fp8")),
        ("deepseek-r1", dict.fromkeys(("attention", "mlp", "experts"), "fp8")),
        ("kimi-k2", dict.fromkeys(("attention", "mlp", "experts"), "fp8")),
        ("gpt-oss-20b", {"experts": "mxfp4"}),
        ("gpt-oss-120b", {"experts": "mxfp4"}),
        ("llama-3.1-70b", {}),
    ],
)
def test_weights_are_stored_as_published(name: str, stored: dict[str, str]) -> None:
    path = ROOT / "src/breakeven/catalog/models" / f"{name}.toml"
    assert parse_entry(table(path), name).stored == stored


def good() -> dict[str, Any]:
    return table(ROOT / "src/breakeven/catalog/models/llama-3.1-8b.toml")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"layer": 3}, "layers"),
        ({"layers": 31}, "32 layers of 31"),
        ({"hidden": -1}, "hidden"),
        ({"tied": True}, "head"),
        ({"sources": {"shape": "x"}}, "source"),
        ({"dtype": "float8"}, "bfloat16"),
        ({"attention": []}, "attention"),
        ({"parameters": 3}, "parameters"),
        ({"stored": {"mlp": "int3"}}, "int4_g128"),
        ({"experts": {"count": 4, "top_k": 8, "layers": 1}}, "8 of 4"),
        ({"kv_scheme": "fp8"}, "source"),
    ],
)
def test_a_faulty_entry_is_one_line_that_says_where(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_entry({**good(), **change}, "mine")
    assert said in str(caught.value) and "mine" in str(caught.value) and "\n" not in str(caught.value)


def test_a_lacking_key_is_named() -> None:
    with pytest.raises(InputError, match=r"mine\.vocabulary"):
        parse_entry({key: value for key, value in good().items() if key != "vocabulary"}, "mine")
