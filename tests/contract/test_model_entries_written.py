"""What the tool writes into the catalogue reads back as what the parser read, whatever kind of layers the model has."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from make_model_entries import _lines, configuration

from breakeven.origin.huggingface import parse_config
from breakeven.origin.model_entry import parse_entry


def unquantised(row: dict[str, Any]) -> dict[str, Any]:
    def plain(config: dict[str, Any]) -> dict[str, Any]:
        kept = {key: value for key, value in config.items() if key not in ("quantization_config", "expert_dtype")}
        return {key: plain(value) if key == "text_config" else value for key, value in kept.items()}

    return {**row, "quantization_config": None, "hf_config": plain(row["hf_config"])}


def test_every_model_of_the_table_survives_its_entry(shared: Path) -> None:
    rows = [json.loads(line) for line in (shared / "reference/models.jsonl").read_text(encoding="utf-8").splitlines()]
    told = {"confidence", "sources", "hf_ids", "draft_heads"}
    rows = [unquantised(row) for row in rows if not isinstance(row["hf_config"].get("block_configs"), str)]  # storage is read elsewhere
    for row in rows:
        read = parse_config(configuration(row), name=row["name"], where=row["name"])
        entry = parse_entry(tomllib.loads("\n".join(_lines(row, ()))), row["name"])
        plain = {key: getattr(entry, key) for key in told}
        assert replace(read, **plain, kv_scheme=None) == replace(entry, kv_scheme=None), row["name"]
