"""``simulate`` of loads that are no ordinary traffic: a batch job, a single request, all of it rejected, a pinned batch, groups."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import breakeven as be
from breakeven import api, cli
from breakeven.document import json_schema
from breakeven.errors import InputError
from breakeven.messages import text

DEPLOYED = ("--model", "llama-3.1-8b", "--hardware", "h100-sxm")
MADE_UP = ("--output", "100", "--rate", "4", "--requests", "80")


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BREAKEVEN_LANG", "en")
    monkeypatch.setenv("COLUMNS", "160")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(["simulate", *DEPLOYED, *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code, out, err = run(capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    told: dict[str, Any] = json.loads(out)
    jsonschema.validate(told, json_schema("simulation-1.schema.json"))
    return told


def table(name: str, rows: list[str], columns: str = "arrival_s,input_tokens,output_tokens") -> str:
    Path(name).write_text("\n".join((columns, *rows)) + "\n")
    return name


def batch_job(requests: int) -> str:
    return table("job.csv", [f"5,{800 + n},100" for n in range(requests)])


@pytest.mark.parametrize(
    ("given", "reason"), [(("--input", "800", "--max-model-len", "100"), r"max_model_len \(100 "), (("--input", "2000000"), "KV pool")]
)
def test_where_all_are_rejected_the_reason_is_said_and_nothing_else(
    capsys: pytest.CaptureFixture[str], given: tuple[str, ...], reason: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = document(capsys, *given, *MADE_UP)
    [note] = [note for note in told["notes"] if "rejected" in note]
    assert note.startswith("rejected: 80 requests") and re.search(reason, note)
    assert not any("without effect" in note for note in told["notes"]), "the limit is why"


def test_each_reason_of_a_rejection_has_its_count(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{n},{(800, 2_000_000, 3_000_000)[n % 3]},100" for n in range(30)]
    told = document(capsys, "--trace", table("three.csv", rows), "--max-model-len", "2500000")
    [note] = [note for note in told["notes"] if "rejected" in note]
    assert "10 requests are longer than max_model_len (2,500,000" in note and "10 are larger than the KV pool" in note
    assert told["figures"]["counts"]["done"] == 10 and told["figures"]["counts"]["rejected"] == 20


def test_a_batch_job_is_served_though_it_tells_no_rate(capsys: pytest.CaptureFixture[str]) -> None:
    told = document(capsys, "--trace", batch_job(40), "--levers", "kv_quant", "--jobs", "1")
    assert told["figures"]["counts"]["done"] == 40 and told["figures"]["batch"]["most"] == 40
    assert told["notes"][0].startswith("the trace's 40 requests all come at one moment")
    pressed = document(capsys, "--trace", "job.csv", "--speed", "1e9")
    assert pressed["figures"]["times"] == told["figures"]["times"], "there is nothing to press together"


def test_the_batch_job_of_a_deployment_file_lies_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    Path("deep").mkdir()
    Path(batch_job(12)).rename("deep/job.csv")
    Path("deep/d.yaml").write_text("model: llama-3.1-8b\nhardware: h100-sxm\nworkload:\n  trace: job.csv\n")
    assert cli.run(["simulate", "deep/d.yaml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["figures"]["counts"]["done"] == 12


def test_a_single_request_is_served_alone(capsys: pytest.CaptureFixture[str]) -> None:
    told = document(capsys, "--trace", batch_job(1))
    assert told["figures"]["counts"]["done"] == 1 and told["figures"]["batch"]["most"] == 1
    assert told["notes"][0] == "the trace has a single request, which tells no rate: it is served alone"


def test_a_pinned_batch_beside_a_trace_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "--trace", batch_job(8), "--batch", "8", "--context", "1000")
    assert (code, out) == (2, "") and err.count("\n") == 1 and "job.csv" in err and "--batch" in err


class TestOfALoadedDeployment:
    def loaded(self, trace: object) -> be.Deployment:
        return be.load(flags={"model": "llama-3.1-8b", "hardware": "h100-sxm", "trace": trace})[0]

    def test_its_own_trace_is_served(self) -> None:
        name = table("own.csv", [f"{n / 4},{800 + n},100" for n in range(60)])
        d = self.loaded(name)
        found, given = api.simulate(d), api.simulate(d, name)
        assert found.source == "own.csv" and found.summary == given.summary and found.summary.counts.offered == 60

    def test_one_named_by_a_file_is_found_from_there(self) -> None:
        Path("deep").mkdir()
        table("deep/own.csv", [f"{n / 4},{800 + n},100" for n in range(60)])
        Path("deep/d.yaml").write_text("model: llama-3.1-8b\nhardware: h100-sxm\nworkload:\n  trace: own.csv\n")
        assert api.simulate(be.load(file="deep/d.yaml")[0]).summary.counts.offered == 60

    def test_one_that_is_gone_is_refused_by_name(self) -> None:
        d = self.loaded(table("own.csv", [f"{n / 4},{800 + n},100" for n in range(60)]))
        Path("own.csv").unlink()
        with pytest.raises(InputError) as refused:
            api.simulate(d)
        assert text(refused.value.message).startswith("own.csv: the trace that the deployment was loaded with is not there")


class TestGroups:
    ROWS = tuple(f"{n / 50},4000,60,{'ab'[n % 2]}" for n in range(400))
    COLUMNS = "arrival_s,input_tokens,output_tokens,tenant"

    def test_each_group_has_its_figures_in_the_order_of_priority(self, capsys: pytest.CaptureFixture[str]) -> None:
        told = document(capsys, "--trace", table("g.csv", [*self.ROWS], self.COLUMNS), "--policy", "priority")
        first, second = told["groups"]
        assert (first["name"], first["offered"], second["name"], second["done"]) == ("a", 200, "b", 200)
        assert first["ttft_p99_s"] < 0.5 * second["ttft_p99_s"], "the second group waits for the first"
        mean = told["figures"]["times"]["e2e"]["mean"]
        assert (first["e2e_mean_s"] + second["e2e_mean_s"]) / 2 == pytest.approx(mean)

    @pytest.mark.parametrize("form", [(), ("--markdown",)])
    def test_a_page_tells_them(self, capsys: pytest.CaptureFixture[str], form: tuple[str, ...]) -> None:
        page = run(capsys, "--trace", table("g.csv", [*self.ROWS], self.COLUMNS), "--policy", "priority", *form)[1]
        assert re.search(r"Group.*served.*TTFT p50.*TTFT p99", page) and len(re.findall(r"^\W*[ab]\W+200/200", page, re.M)) == 2

    @pytest.mark.parametrize("groups", [1, 13])
    def test_one_group_and_more_than_a_page_holds_stand_in_the_document_alone(
        self, capsys: pytest.CaptureFixture[str], groups: int
    ) -> None:
        rows = [f"{n / 4},400,20,t{n % groups}" for n in range(52)]
        said = ("--trace", table("g.csv", rows, self.COLUMNS))
        assert len(document(capsys, *said)["groups"]) == groups
        assert "200/200" not in run(capsys, *said)[1] and "Group" not in run(capsys, *said)[1]

    def test_of_requests_none_of_which_is_served_there_is_no_time(self, capsys: pytest.CaptureFixture[str]) -> None:
        rows = [f"{n / 4},{(400, 5000)[n % 2]},20,t{n % 2}" for n in range(40)]
        told = document(capsys, "--trace", table("g.csv", rows, self.COLUMNS), "--max-model-len", "1000")
        assert told["groups"][1] == {
            "name": "t1",
            "offered": 20,
            "done": 0,
            "ttft_p50_s": None,
            "ttft_p99_s": None,
            "tpot_mean_s": None,
            "e2e_mean_s": None,
        }
