"""A trace that keeps token ids knows its blocks as one that does not: reuse is the same whether drafts are replayed or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from breakeven import cli, reuse, traces
from breakeven.traces import Reading

WORDS = ("the", "queue", "of", "prefix", "caches", "holds", "blocks", "which", "requests", "share", "until", "they", "are", "evicted")


def text_of(seed: int, words: int) -> str:
    return " ".join(WORDS[(seed * 7 + n * (seed % 5 + 1)) % len(WORDS)] + str(seed * n % 97) for n in range(words))


def log_of(path: Path) -> Path:
    """Requests of two prompts of the system, whose logged lengths are not what the fixed rule makes of their text."""
    records = []
    for n in range(60):
        prompt = text_of(n % 2, 400) + " " + text_of(n + 5, 60)
        usage = {"prompt_tokens": round(len(prompt.split()) * 1.7) + 9, "completion_tokens": 40}
        body = {"model": "m", "messages": [{"role": "user", "content": prompt}]}
        answer = {"choices": [{"message": {"role": "assistant", "content": text_of(n, 30)}}], "usage": usage}
        records.append({"timestamp": 1767607200 + n, "request": body, "response": answer})
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_the_blocks_of_a_log_of_text_are_those_it_has_without_tokens(tmp_path: Path) -> None:
    path = log_of(tmp_path / "log.jsonl")
    plain, kept = traces.read(path), traces.read(path, Reading(keep_tokens=True))
    assert plain.prompt_ids is None and kept.prompt_ids is not None and kept.output_ids is not None
    assert np.array_equal(plain.hash_ids, kept.hash_ids) and np.array_equal(plain.hash_offsets, kept.hash_offsets)  # type: ignore[arg-type]
    assert plain.block_tokens == kept.block_tokens and plain.notes == kept.notes
    assert any(note.key == "trace.scaled" for note in kept.notes)


def test_the_tokens_that_are_replayed_are_not_drawn_together(tmp_path: Path) -> None:
    """They are what the text makes without any length to go by, but for the end that is cut or filled up."""
    logged, unsaid = log_of(tmp_path / "log.jsonl"), tmp_path / "unsaid.jsonl"
    records = [json.loads(line) for line in logged.read_text().splitlines()]
    for record in records:
        del record["response"]["usage"]
    unsaid.write_text("".join(json.dumps(record) + "\n" for record in records))
    kept, plain = (traces.read(path, Reading(keep_tokens=True)) for path in (logged, unsaid))
    assert kept.prompt_ids is not None and plain.prompt_ids is not None
    assert np.array_equal(kept.prompt_ids[:700], plain.prompt_ids[:700]) and len(plain.prompt_ids) > 700 * plain.requests


def profiled(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert cli.run(["profile", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("more", [(), ("--block-size", "32"), ("--model", "llama-3.1-8b", "--hardware", "h100-sxm")])
def test_reuse_is_the_same_with_and_without_a_replay(capsys: pytest.CaptureFixture[str], tmp_path: Path, more: tuple[str, ...]) -> None:
    path = str(log_of(tmp_path / "log.jsonl"))
    plain, replayed = profiled(capsys, path, *more), profiled(capsys, path, *more, "--replay", "ngram")
    assert plain["reuse"] is not None and plain["reuse"] == replayed["reuse"]
    assert replayed["drafts"] is not None and plain["drafts"] is None


def test_logged_token_ids_have_the_chains_that_their_tokens_have(tmp_path: Path) -> None:
    path = tmp_path / "ids.jsonl"
    rows = [[n % 3, *range(200), n] for n in range(20)]
    lines = [{"created": 1767607200 + n, "prompt_token_ids": ids, "choices": [{"token_ids": [8, 9]}]} for n, ids in enumerate(rows)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = reuse.chains(traces.read(path, Reading(keep_tokens=True)), 16)
    assert found.unique == 3 * (202 // 16) and found.ids.tolist()[:12] == list(range(12))
