"""The parser of config.json against every published configuration of the reference table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from model_configs import kv_bytes, parts

from breakeven.errors import InputError
from breakeven.ledger.memory import state_bytes
from breakeven.origin.huggingface import parse_config
from breakeven.spec.model import Model

PLACEHOLDER = "nemotron-super-49b"
"""Its configuration is kept with a word in place of its 80 blocks; test_model_quirks_layers.py reads it with blocks."""
PROMISED = "nemotron-3.5-lightning-30b-a3b"
"""Its configuration promises an MTP layer that its checkpoint does not hold: no configuration can tell."""
KINDS = {
    "full": "full", "sliding": "sliding", "chunked": "chunked", "mla": "mla", "mla+dsa": "mla", "block-sparse": "full",
    "full||mamba2": "full", "v4-sliding": "compressed", "v4-csa": "compressed", "v4-hca": "compressed",
}  # fmt: skip
"""The table's kinds of attention, and ours."""
MIXERS = ("gated_deltanet", "kda", "lightning", "mamba1", "mamba2", "shortconv", "rwkv6")


def as_ours(group: dict[str, Any]) -> tuple[str, int, int, int, bool]:
    window, indexed = group.get("window") or 0, group.get("indexer_elems_per_token") or 0
    return KINDS[group["kind"]], group["n"], window, indexed, bool(group.get("kv_shared_with_earlier_layer"))


@pytest.fixture(scope="module")
def rows(shared: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (shared / "reference/models.jsonl").read_text(encoding="utf-8").splitlines()]


def each_read(rows: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], Model]]:
    for row in rows:
        if row["name"] != PLACEHOLDER:
            yield row, parse_config(row["hf_config"], name=row["name"], where=row["name"])


class TestTheReferenceTable:
    def test_every_line_is_read_but_one_whose_blocks_are_not_there(self, rows: list[dict[str, Any]]) -> None:
        refused = {}
        for row in rows:
            try:
                parse_config(row["hf_config"], name=row["name"], where=row["name"])
            except InputError as error:  # any other exception fails the test
                refused[row["name"]] = str(error)
        assert list(refused) == [PLACEHOLDER]
        assert "a list of 80 blocks is expected" in refused[PLACEHOLDER] and "\n" not in refused[PLACEHOLDER]

    def test_constant_states_agree_exactly(self, rows: list[dict[str, Any]]) -> None:
        for row, model in each_read(rows):
            found, written = parts(model), row["state_elems_per_seq"]
            if isinstance(written, dict):
                assert found == (written["recurrent"], written["conv"]), row["name"]
                in_bytes = row["state_bytes_per_seq"]
                assert state_bytes(model, 4.0) == in_bytes["fp32_recurrent_bf16_conv"], row["name"]
                assert state_bytes(model, 2.0) == in_bytes["all_bf16"], row["name"]
                assert model.state_dtype == in_bytes["config_says"], row["name"]
            else:
                assert sum(found) == (written or 0), row["name"]

    def test_parameters_agree_within_a_thousandth(self, rows: list[dict[str, Any]]) -> None:
        counted = [(row, model) for row, model in each_read(rows) if row["total_params"]]
        far = {row["name"]: model.parameters.total / row["total_params"] for row, model in counted}
        assert len(rows) - len(counted) == 2  # the placeholder, and RWKV-6 of which the table has no total
        assert {name: ratio for name, ratio in far.items() if abs(ratio - 1) > 1e-3} == {}

    def test_each_class_of_parameters_agrees_within_a_thousandth_of_the_model(self, rows: list[dict[str, Any]]) -> None:
        for row, model in each_read(rows):
            if row["param_breakdown"] is None:
                continue
            ours, theirs, slack = model.parameters, row["param_breakdown"], 1e-3 * row["total_params"]
            assert ours.embedding == theirs["embed"] and ours.head == theirs["lm_head"], row["name"]
            assert abs(ours.attention - theirs["attention_and_mixers"]) <= slack, row["name"]
            fed, beside = ours.mlp + ours.experts, ours.other + ours.lookup
            if model.parameters.lookup:  # what turns per-layer inputs is multiplied, and so MLP here and "other" in the table
                assert abs(fed + beside - theirs["dense_mlp"] - theirs["norms_and_other"]) <= slack, row["name"]
                continue
            assert abs(fed - theirs["dense_mlp"] - theirs["moe"]) <= slack, row["name"]
            assert abs(beside - theirs["norms_and_other"]) <= slack, row["name"]

    def test_kv_bytes_per_token_agree_exactly(self, rows: list[dict[str, Any]]) -> None:
        apart = {row["name"]: kv_bytes(model) - (row["kv_bytes_per_token_bf16"] or 0) for row, model in each_read(rows)}
        assert {name: far for name, far in apart.items() if far} == {}

    def test_layers_attend_as_the_table_says(self, rows: list[dict[str, Any]]) -> None:
        for row, model in each_read(rows):
            ours = sorted((group.kind, group.layers, group.window or 0, group.index_dim, group.shares_kv) for group in model.attention)
            theirs = [group for group in row["attention"] if group["kind"] in KINDS]
            assert ours == sorted(map(as_ours, theirs)), row["name"]

    def test_layers_keep_states_as_the_table_says(self, rows: list[dict[str, Any]]) -> None:
        for row, model in each_read(rows):
            theirs = [(group["kind"].split("||")[-1], group.get("n", 32)) for group in row["attention"]]
            kept = {(kind, layers) for kind, layers in theirs if kind in MIXERS}
            assert {(group.mixer, group.layers) for group in model.states} == kept, row["name"]

    def test_experts_are_those_of_the_table(self, rows: list[dict[str, Any]]) -> None:
        for row, model in each_read(rows):
            moe, ours = row["moe"], model.experts
            found = None if ours is None else (ours.count, ours.top_k, ours.layers)
            assert found == (None if moe is None else (moe["n_routed_experts"], moe["top_k"], moe["n_moe_layers"])), row["name"]

    def test_mtp_layers_agree_but_for_copies_of_the_embedding_and_head(self, rows: list[dict[str, Any]]) -> None:
        for row, model in each_read(rows):
            if row["name"] == PROMISED:
                assert model.mtp_layers == row["hf_config"]["num_nextn_predict_layers"] == 1
                continue
            assert model.mtp_layers == (row["mtp_layers"] if row["mtp_params"] else 0), row["name"]
            copies = model.mtp_layers * model.vocabulary * model.hidden
            apart = min(abs((row["mtp_params"] or 0) - model.mtp_parameters - count * copies) for count in (0, 1, 2))
            assert apart <= 1e-3 * model.mtp_parameters, row["name"]
