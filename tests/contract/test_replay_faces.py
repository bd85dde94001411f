"""Replay as ``profile`` shows it: a log of token ids in, counts out; counters from a page; nothing by position for pieces of text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from replay_logs import made_up, trace_of

from breakeven import cli
from breakeven.replay.ngram import Ngram
from breakeven.replay.run import replay
from breakeven.replay.suffix import Suffix

DEPLOYED = ("--model", "llama-3.1-8b", "--hardware", "h100-sxm")
LOG = made_up(2, 60, 5)


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BREAKEVEN_LANG", "en")
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def logged(tmp_path: Path) -> str:
    """The made-up log as a gateway would write it, one second between requests."""
    records = [
        {
            "timestamp": f"2026-01-05T09:{i // 60:02d}:{i % 60:02d}Z",
            "model": f"m{i % 2}",
            "prompt_token_ids": prompt or [0],
            "response": {"choices": [{"token_ids": output or [0]}]},
        }
        for i, (prompt, output) in enumerate(LOG)
    ]
    path = tmp_path / "tokens.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(["profile", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code, out, err = run(capsys, *arguments, "--json")
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def test_a_log_of_token_ids_is_replayed_as_it_stands(capsys: pytest.CaptureFixture[str], logged: str) -> None:
    told = document(capsys, logged, "--replay", "suffix")
    drafts = told["drafts"]
    expected = replay(trace_of([(prompt or [0], output or [0]) for prompt, output in LOG]), Suffix())
    for row, one in zip(drafts["by_k"][:8], expected.total, strict=True):
        assert (row["k"], row["rounds"], row["drafted"], row["accepted"]) == (one.k, one.rounds, one.drafted, one.accepted)
        assert len(row["cumulative"]) == len(row["per_draft"]) == len(row["conditional"]) == one.k
    assert (drafts["approximate"], set(drafts["groups"]), drafts["best_k"]) == (False, {"m0", "m1"}, None)
    assert told["acceptance"] is None
    assert document(capsys, logged, "--replay", "suffix") == told


@pytest.mark.parametrize(("typed", "low", "high"), [("1:2", 1, 2), ("2", 2, 2)])
def test_a_window_of_prompt_lookup_is_the_one_that_is_replayed(
    capsys: pytest.CaptureFixture[str], logged: str, typed: str, low: int, high: int
) -> None:
    rows = document(capsys, logged, "--replay", "ngram", "--lookup", typed)["drafts"]["by_k"]
    log = trace_of([(prompt or [0], output or [0]) for prompt, output in LOG])
    expected = replay(log, Ngram(prompt_lookup_min=low, prompt_lookup_max=high)).total
    assert [(row["rounds"], row["accepted"]) for row in rows] == [(one.rounds, one.accepted) for one in expected]
    assert rows != document(capsys, logged, "--replay", "ngram")["drafts"]["by_k"]


@pytest.mark.parametrize(("typed", "replayed"), [("3:2", "ngram"), ("0", "ngram"), ("1:x", "ngram"), ("1:2", "suffix")])
def test_a_window_that_is_none_or_of_another_method_is_one_line(
    capsys: pytest.CaptureFixture[str], logged: str, typed: str, replayed: str
) -> None:
    code, out, err = run(capsys, logged, "--replay", replayed, "--lookup", typed)
    assert (code, out) == (2, "") and "lookup" in err and err.count("\n") == 1


def test_on_a_deployment_the_best_k_is_told_by_batch_and_by_group(capsys: pytest.CaptureFixture[str], logged: str) -> None:
    drafts = document(capsys, logged, "--replay", "ngram", *DEPLOYED)["drafts"]
    assert drafts["by_batch"][0]["batch"] == 1 and drafts["by_batch"][-1]["k"] == 0
    assert {row["batch"]: row for row in drafts["by_batch"]}[drafts["batch"]]["k"] == drafts["best_k"]
    assert set(drafts["group_k"]) == {"m0", "m1"}
    for language, word in (("en", "By how many decode: from 1"), ("zh", "按同时解码的序列数")):
        code, out, _ = run(capsys, logged, "--replay", "ngram", *DEPLOYED, "--lang", language)
        assert code == 0 and word in out


def test_each_group_has_its_own_best_k(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """One route says its prompts again, the other never says a token twice."""
    path, records = tmp_path / "routes.jsonl", []
    for i in range(40):
        prompt = list(range(1000 * i, 1000 * i + 60))
        output = prompt[:50] if i % 2 == 0 else list(range(1000 * i + 500, 1000 * i + 550))
        said = {"prompt_token_ids": prompt, "response": {"choices": [{"token_ids": output}]}}
        records.append({"timestamp": f"2026-01-05T09:00:{i:02d}Z", "model": ("again", "new")[i % 2], **said})
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    drafts = document(capsys, str(path), "--replay", "ngram", *DEPLOYED)["drafts"]
    assert drafts["group_k"] == {"again": 8, "new": 0}


def test_acceptance_of_a_head_comes_from_counters_else_from_its_prior(
    capsys: pytest.CaptureFixture[str], logged: str, tmp_path: Path
) -> None:
    headed = (*DEPLOYED, "--speculative", '{"method": "eagle3", "num_speculative_tokens": 2, "model": "a/head"}')
    prior = document(capsys, logged, *headed)["acceptance"]
    assert (prior["source"], prior["method"], prior["k"]) == ("prior", "eagle3", 2) and prior["low"] < prior["cumulative"] < prior["high"]
    page = tmp_path / "metrics.txt"
    counter = 'vllm:spec_decode_num_{}_total{{engine="0",model_name="m"{}}} {}\n'
    page.write_text(
        counter.format("drafts", "", 100)
        + counter.format("accepted_tokens_per_pos", ',position="0"', 80)
        + counter.format("accepted_tokens_per_pos", ',position="1"', 50)
    )
    counted = document(capsys, logged, *headed, "--metrics", str(page))["acceptance"]
    assert (counted["source"], counted["cumulative"]) == ("metrics", [0.8, 0.5])
    assert "100 drafts" in counted["provenance"]


def test_a_page_of_metrics_needs_a_deployment_that_names_the_method(capsys: pytest.CaptureFixture[str], logged: str, shared: Path) -> None:
    page = str(shared / "snapshots" / "vllm_metrics_spec_after_ngram_k3.txt")
    for arguments in ((), DEPLOYED):
        code, out, err = run(capsys, logged, *arguments, "--metrics", page)
        assert (code, out) == (2, "") and "do not name the draft method" in err


def test_text_without_a_tokenizer_tells_nothing_by_position(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    answer = "Returns are free for 30 days, repairs for two years, and spare parts are sent within the country."
    record = {
        "model": "m",
        "messages": [{"role": "user", "content": "How long?"}],
        "response": {"choices": [{"message": {"role": "assistant", "content": answer}}]},
    }
    path = tmp_path / "text.jsonl"
    path.write_text((json.dumps(record) + "\n") * 3)
    drafts = document(capsys, str(path), "--replay", "suffix")["drafts"]
    assert drafts["approximate"] and drafts["by_k"][-1]["acceptance_length"] > 2
    assert all(row["cumulative"] == row["per_draft"] == row["conditional"] == [] for row in drafts["by_k"])
    assert any("give --tokenizer" in note for note in drafts["notes"])
