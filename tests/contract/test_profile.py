"""``profile``: what real traces hold, by figures that were counted otherwise; the verb, its schema, both languages, bad input."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from breakeven import api, cli
from breakeven.document import json_schema
from breakeven.simulation import offered

AZURE, MOONCAKE = "data/traces/azure_2023_conv.csv", "data/traces/mooncake_conversation.jsonl"
SMALL = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:{minute:02d}:{second:02d}.0000000,{100 + second},{20 + minute}\n" for minute in range(30) for second in range(0, 60, 10)
)


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BREAKEVEN_LANG", "en")
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = tmp_path / "small.csv"
    path.write_text(SMALL)
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(["profile", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    code, out, err = run(capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    told: dict[str, object] = json.loads(out)
    jsonschema.validate(told, json_schema("profile-1.schema.json"))
    return told


def test_the_azure_trace_has_the_figures_of_a_plain_reading(shared: Path) -> None:
    """Counted line by line with the csv module: see the sums beside each."""
    found = api.profile(shared / AZURE)
    assert found.trace.requests == 19_366 and found.arrivals is not None and found.lengths.output is not None
    lines = (shared / AZURE).read_text().splitlines()[1:]
    prompts, outputs = ([int(line.split(",")[column]) for line in lines if line] for column in (1, 2))
    seconds = [60 * int(line[14:16]) + float(line[17:27]) + 3600 * int(line[11:13]) for line in lines if line]
    span = max(seconds) - min(seconds)
    assert found.lengths.prompt.mean == pytest.approx(sum(prompts) / len(prompts), rel=1e-12)
    assert found.lengths.output.mean == pytest.approx(sum(outputs) / len(outputs), rel=1e-12)
    assert found.lengths.prompt.most == max(prompts) and found.lengths.prompt.p50 == sorted(prompts)[len(prompts) // 2]
    assert found.arrivals.span_s == pytest.approx(span, abs=1e-6)
    assert found.arrivals.rate == pytest.approx((len(prompts) - 1) / span, rel=1e-9)
    minutes = [0] * int(span // 60)
    for second in seconds:
        place = int((second - min(seconds)) // 60)
        if place < len(minutes):
            minutes[place] += 1
    mean = sum(minutes) / len(minutes)
    index = sum((count - mean) ** 2 for count in minutes) / (len(minutes) - 1) / mean
    at_a_minute = next(one for one in found.arrivals.dispersions if one.window_s == 60.0)
    assert at_a_minute.index == pytest.approx(index, rel=1e-9) and at_a_minute.kind == "bursty"
    assert list(found.arrivals.counts) == minutes
    assert round(index, 1) == 16.4 and round(mean / 60, 2) == 5.55


def test_the_mooncake_trace_comes_in_bunches(shared: Path) -> None:
    found = api.profile(shared / MOONCAKE)
    rows = [json.loads(line) for line in (shared / MOONCAKE).read_text().splitlines()]
    assert found.arrivals is not None and found.lengths.output is not None
    same = sum(a["timestamp"] == b["timestamp"] for a, b in zip(rows[1:], rows[:-1], strict=True))
    assert found.arrivals.at_once == pytest.approx(same / (len(rows) - 1), abs=1e-12)
    assert round(found.arrivals.at_once, 3) == 0.902
    assert found.lengths.prompt.mean == pytest.approx(sum(row["input_length"] for row in rows) / len(rows), rel=1e-12)
    assert {one.question for one in found.unanswered} == {"draft_acceptance", "effective_batch"}


def test_azure_holds_no_prompts_and_that_is_said_with_what_would_answer(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = document(capsys, str(shared / AZURE))
    questions = {one["question"]: one for one in told["unanswered"]}
    assert {"prefix_reuse", "draft_acceptance"} <= set(questions)
    assert "block hashes" in questions["prefix_reuse"]["how"]
    _, out, _ = run(capsys, str(shared / AZURE))
    assert "Not enough information" in out


def test_the_page_says_how_far_from_poisson_in_words(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, small)
    assert code == 0 and "steadier than Poisson" in out and "▇" not in out.split("Prompt tokens")[0].replace("█", "")
    assert "180 requests" in out


def test_it_speaks_chinese(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, small, "--lang", "zh", "-v")
    assert code == 0 and "信息不足" in out and "到达" in out


def test_the_same_input_gives_the_same_bytes(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, small, "--json", "--seed", "3") == run(capsys, small, "--json", "--seed", "3")


def test_damaged_lines_are_counted_and_named(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    with Path(small).open("a") as handle:
        handle.write("not a line\n")
    told = document(capsys, small)
    assert told["file"]["damaged"] == 1 and told["file"]["damaged_lines"] == [182]
    assert "line 182" in run(capsys, small)[1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--window", "0"], "--window"),
        (["--window", "90000"], "--window"),
        (["--window", "1e-9"], "--window"),
        (["--window", "soon"], "--window"),
        (["--seed", "x"], "--seed"),
    ],
)
def test_bad_input_is_one_line(small: str, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, small, *arguments)
    assert code == 2 and out == "" and says in err and len(err.splitlines()) == 1


def test_a_file_that_is_no_trace_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, content in (("a.txt", "hello"), ("empty.csv", ""), ("no.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n")):
        path = tmp_path / name
        path.write_text(content)
        code, _, err = run(capsys, str(path))
        assert code == 2 and len(err.splitlines()) == 1 and name in err


DEPLOYED = ("--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--engine-version", "0.24")


class TestOnADeployment:
    def test_the_batch_over_time_is_a_distribution_with_the_mean_of_the_advice(
        self, shared: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        told = document(capsys, str(shared / AZURE), *DEPLOYED)
        batch = told["batches"]["by_windows"]
        assert batch["p5"] <= batch["p10"] <= batch["p50"] <= batch["p90"] <= batch["p99"]
        assert batch["mean"] < batch["seen_by_a_token"] and 0.0 < batch["share_below_four"] < 0.05
        assert len(told["batches"]["batches"]) == 58 and "effective_batch" not in {one["question"] for one in told["unanswered"]}
        assert cli.run(["advise", "--trace", str(shared / AZURE), *DEPLOYED, "--json"]) == 0
        advice = json.loads(capsys.readouterr().out)
        assert advice["operating_point"]["effective_batch"] == pytest.approx(batch["mean"], rel=0.01)
        over_time = advice["operating_point"]["batch_over_time"]
        assert over_time["seen_by_a_token"] == pytest.approx(batch["seen_by_a_token"], rel=0.05)
        assert over_time["windows"] == 58 and "10–90 %" in over_time["sentence"]
        k_by_batch = next(one for one in advice["levers"] if one["lever"] == "speculation")["extra"]["k_by_batch"]
        assert k_by_batch[0]["first"] == 1 and k_by_batch[0]["k"] > 0 and k_by_batch[-1]["k"] == 0

    def test_a_schedule_of_k_is_told_in_words_and_as_the_engine_s_setting(self, shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
        code, out, _ = run(capsys, str(shared / AZURE), *DEPLOYED)
        words = " ".join(out.split())
        assert code == 0 and "drafting with eagle3: k=" in words and "off above" in words
        assert "num_speculative_tokens_per_batch_size" in words

    def test_a_trace_without_lengths_of_outputs_is_profiled_without_the_deployment(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "prompts.csv"
        path.write_text("when,prompt\n" + "".join(f"{second},{100 + second}\n" for second in range(100)))
        told = document(capsys, str(path), "--columns", "arrival=when,input=prompt", *DEPLOYED)
        questions = {one["question"]: one["reason"] for one in told["unanswered"]}
        assert told["batches"] is None and {"output_tokens", "effective_batch"} <= set(questions)

    def test_one_that_does_not_fit_is_said(self, shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
        told = document(capsys, str(shared / AZURE), "--model", "llama-3.1-70b", "--hardware", "l4")
        assert told["batches"] is None and "fit" in next(o["reason"] for o in told["unanswered"] if o["question"] == "effective_batch")

    def test_the_trace_is_named_once(self, small: str, capsys: pytest.CaptureFixture[str]) -> None:
        code, _, err = run(capsys, small, "--trace", small, *DEPLOYED)
        assert code == 2 and "--trace" in err

    def test_an_unknown_model_is_an_error_and_not_an_open_question(self, small: str, capsys: pytest.CaptureFixture[str]) -> None:
        code, _, err = run(capsys, small, "--model", "no-such-model", "--hardware", "h100-sxm")
        assert code == 2 and "no-such-model" in err


class TestReuse:
    def test_the_shared_conversation_trace_has_its_published_figures(self, shared: Path) -> None:
        """36.6 % of its blocks repeat where last partial blocks are counted; by the engine's rule 38.2 %."""
        partial = api.profile(shared / MOONCAKE, block_tokens=512, count_partial=True).reuse
        engine = api.profile(shared / MOONCAKE, block_tokens=512).reuse
        assert partial is not None and engine is not None and engine.divergence is not None
        assert partial.curve.unbounded_blocks == pytest.approx(0.366, abs=5e-4)
        assert engine.curve.unbounded_blocks == pytest.approx(0.382, abs=5e-4)
        rates = [one.hit_rate for one in engine.capacities]
        assert rates == sorted(rates) and rates[-1] == pytest.approx(engine.curve.unbounded)
        shares = engine.divergence
        assert shares.reused + shares.diverged + shares.extended + shares.tails == pytest.approx(1.0)

    def test_is_told_with_what_the_cache_takes_on_the_deployment(self, shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
        told = document(capsys, str(shared / MOONCAKE), *DEPLOYED)
        last = told["reuse"]["capacities"][-1]
        assert last["cache_bytes"] == pytest.approx(last["tokens"] * 131_072)

    def test_advice_takes_the_hit_rate_from_the_trace_s_own_prompts(self, shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.run(["advise", "--trace", str(shared / MOONCAKE), "--rate", "1", *DEPLOYED, "--json"]) == 0
        advice = json.loads(capsys.readouterr().out)
        assert advice["provenance"]["workload.prefix_hit_rate"] == "file"
        assert 0.03 < advice["deployment"]["workload"]["prefix_hit_rate"] < 0.05
        assert any("running sequences leave to prompts" in warning for warning in advice["warnings"])
        stated = ["advise", "--trace", str(shared / MOONCAKE), "--rate", "1", *DEPLOYED, "--prefix-hit-rate", "0.2", "--json"]
        assert cli.run(stated) == 0
        advice = json.loads(capsys.readouterr().out)
        assert advice["provenance"]["workload.prefix_hit_rate"] == "declared"
        assert advice["deployment"]["workload"]["prefix_hit_rate"] == 0.2 and "reuse" not in advice["deployment"]["workload"]


class TestReplay:
    def test_prompt_lookup_on_logged_tokens_is_told_by_k(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Outputs that repeat what the prompt says are drafted; ids are made up."""
        said = [{"role": "user", "content": "x"}]
        rows = [
            {
                "timestamp": float(i),
                "messages": said,
                "prompt_token_ids": list(range(40)),
                "output_token_ids": list(range(10, 30)),
                "usage": {"prompt_tokens": 40, "completion_tokens": 20},
            }
            for i in range(12)
        ]
        path = tmp_path / "log.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        told = document(capsys, str(path), "--replay", "ngram", *DEPLOYED)
        by_k = told["drafts"]["by_k"]
        assert [row["k"] for row in by_k] == list(range(1, 9))
        assert by_k[-1]["acceptance_length"] > by_k[0]["acceptance_length"] > 1.0
        assert told["drafts"]["best_k"] is not None


def test_without_a_trace_nothing_of_a_trace_stands_in_the_advice(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        cli.run(
            ["advise", "--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--rate", "2", "--input", "500", "--output", "100", "--json"]
        )
        == 0
    )
    advice = json.loads(capsys.readouterr().out)
    assert "batch_over_time" not in advice["operating_point"]
    assert {"arrivals", "reuse"} & set(advice["deployment"]["workload"]) == set()


def test_a_trace_too_long_to_be_simulated_is_profiled_by_windows(small: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offered, "MOST_REQUESTS", 100)
    found = api.profile(small, api.load(flags={"model": "llama-3.1-8b", "hardware": "h100-sxm", "trace": small})[0]).batches
    assert found is not None and found.simulated is None and found.best is found.occupancy


@pytest.mark.parametrize("limit", ["50", "800"])
def test_requests_that_the_deployment_rejects_are_counted_and_no_figure_is_nan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], limit: str
) -> None:
    rows = "".join(f"{at},{700 + at},60\n" for at in range(100))
    (tmp_path / "long.csv").write_text(f"arrival_s,input_tokens,output_tokens\n{rows}")
    given = ("profile", str(tmp_path / "long.csv"), "--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--max-model-len", limit)
    assert cli.run([*given, "--json", "--lang", "en"]) == 0
    told = capsys.readouterr().out
    [note] = [one for one in json.loads(told)["warnings"] if "rejected" in one]
    assert note.startswith(f"rejected: {100 if limit == '50' else 59} requests")
    assert "without effect" not in told and "NaN" not in told
