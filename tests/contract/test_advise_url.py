"""``advise --url``: a running engine observed for a few seconds, and all that it tells taken as measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from telling_engine import Stub, serving

from breakeven.cli import run

MACHINE = ("--hardware", "h100-sxm", "--draws", "16")


@pytest.fixture
def engine(shared: Path) -> Stub:
    page = (shared / "snapshots/vllm_metrics_load.txt").read_text().replace('num_gpu_blocks="728"', 'num_gpu_blocks="3000"')
    answers = {
        "/v1/models": {"object": "list", "data": [{"id": "chat", "root": "meta-llama/Llama-3.1-8B-Instruct", "max_model_len": 4608}]},
        "/version": {"version": "0.32.0+cpu"},
    }
    return Stub(page=page.replace('kv_cache_size_tokens="93184"', 'kv_cache_size_tokens="384000"'), seconds=30.0, answers=answers)


def test_everything_that_the_engine_tells_is_measured(engine: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(engine):
        assert run(["advise", "--url", engine.url, "--for", "3s", "--json", *MACHINE]) == 0
    written = capsys.readouterr()
    document = json.loads(written.out)
    told = ("model", "engine.name", "engine.version", "engine.block_size", "engine.gpu_memory_utilization", "engine.enable_prefix_caching")
    counted = ("workload.input_tokens", "workload.output_tokens", "workload.request_rate", "workload.prefix_hit_rate")
    assert {document["provenance"][path] for path in (*told, *counted)} == {"measured"}
    asked = document["deployment"]["workload"]
    assert asked["input_tokens"] == pytest.approx(30264 / 116, rel=0.01) and asked["output_tokens"] == pytest.approx(1776 / 116, rel=0.01)
    assert asked["request_rate"] == pytest.approx(116 / 30.0, rel=0.1)
    assert asked["prefix_hit_rate"] == pytest.approx(11520 / 30328, rel=0.01)
    assert document["deployment"]["engine"]["version"] == "0.32.0" and document["observed"]["target"] == engine.url
    assert document["ledgers"]["memory"]["kv_pool_tokens"] == pytest.approx(384_000, abs=128)


def test_it_is_only_read_and_seldom(engine: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(engine):
        assert run(["advise", "--url", engine.url, "--for", "3s", "--json", *MACHINE]) == 0
    assert engine.asked.count("/metrics") <= 5
    others = [path for path in engine.asked if path != "/metrics"]
    assert len(others) == len(set(others)), "each of its other pages is asked for once"


def test_a_secret_reaches_the_engine_and_nothing_else(
    engine: Stub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ENGINE_AUTH", "Bearer very-secret-token")
    with serving(engine):
        url = engine.url.replace("http://", "http://ann:hunter2@")
        assert run(["advise", "--url", url, "--for", "2s", "--header", "Authorization=ENGINE_AUTH", "-v", *MACHINE]) == 0
    written = capsys.readouterr()
    assert "Bearer very-secret-token" in engine.headers
    assert not any(secret in written.out + written.err for secret in ("very-secret-token", "hunter2", "ann:"))


def test_an_alias_asks_for_the_model_in_one_line(engine: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    engine.answers = {"/v1/models": {"data": [{"id": "m", "root": "m"}]}}
    with serving(engine):
        assert run(["advise", "--url", engine.url, "--for", "2s", *MACHINE]) == 2
        complaint = capsys.readouterr().err.splitlines()[-1]
        assert "its model m" in complaint and "--model" in complaint
        assert run(["advise", "--url", engine.url, "--for", "2s", "--model", "llama-3.1-8b", "--json", *MACHINE]) == 0
    assert json.loads(capsys.readouterr().out)["observed"]["corrects"]


def test_the_engine_that_is_named_is_that_of_a_page_which_does_not_tell(engine: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    """NIM's names have no prefix."""
    engine.page = engine.page.replace("vllm:", "")
    with serving(engine):
        assert run(["advise", "--url", engine.url, "--engine", "vllm", "--for", "2s", "--json", *MACHINE]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["provenance"]["model"] == document["provenance"]["engine.version"] == "measured"
    assert "/v1/models" in engine.asked and document["observed"]["corrects"]


def test_another_engine_than_the_one_that_runs_may_be_asked_about(engine: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(engine):
        assert run(["advise", "--url", engine.url, "--engine", "sglang", "--for", "2s", "--json", *MACHINE]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["deployment"]["engine"]["name"] == "sglang" and not document["observed"]["corrects"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--for", "3s"], "--for goes with --url"),
        (["--header", "A=B"], "--header goes with --url"),
        (["--url", "http://127.0.0.1:9", "--evidence", "e.json"], "not both"),
        (["--url", "http://127.0.0.1:9", "--for", "soon"], "soon"),
    ],
)
def test_what_does_not_go_together_is_said(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["advise", *arguments, *MACHINE]) == 2
    assert said in capsys.readouterr().err


def test_a_server_that_is_not_there_is_said_with_its_own_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["advise", "--url", "http://127.0.0.1:9", "--for", "2s", *MACHINE]) == 3
    assert "127.0.0.1:9" in capsys.readouterr().err


def test_replicas_and_an_exporter_of_devices_are_observed_together(engine: Stub, shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    devices = Stub(page=(Path(__file__).parent / "pages/dcgm/4.txt").read_text(), seconds=30.0)
    second = Stub(page=engine.page, seconds=30.0, answers=engine.answers)
    with serving(engine), serving(second), serving(devices):
        addresses = [word for stub in (engine, second, devices) for word in ("--url", stub.url)]
        assert run(["advise", *addresses, "--for", "3s", "--json", "--draws", "16", "--hardware", "h100-sxm:2", "-dp", "2"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert all(stub.url in document["observed"]["target"] for stub in (engine, second, devices))
    # One replica would be half of it; how near it comes is the machine's, which dates the pages.
    assert document["deployment"]["workload"]["request_rate"] == pytest.approx(2 * 116 / 30.0, rel=0.3)
    assert document["deployment"]["workload"]["input_tokens"] == pytest.approx(30264 / 116, rel=0.01)
    assert all(stub.asked for stub in (engine, second, devices))


def test_one_address_twice_is_a_mistake(engine: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(engine):
        assert run(["advise", "--url", engine.url, "--url", engine.url, *MACHINE]) == 2
    assert "named twice" in capsys.readouterr().err


def test_a_version_that_the_engine_does_not_tell_stands_as_assumed_in_the_header(engine: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    for answers, said in ((engine.answers, "vLLM 0.32.0"), ({"/v1/models": engine.answers["/v1/models"]}, "assumed: it tells none")):
        engine.answers = answers
        with serving(engine):
            assert run(["advise", "--url", engine.url, "--for", "2s", *MACHINE]) == 0
        head = " ".join(capsys.readouterr().out.splitlines()[:2])
        assert said in head and ("assumed" in head) is ("assumed" in said)
