"""``observe --prometheus`` and ``observe --export`` as they are typed: mistakes in a line, a clean end, no secret anywhere."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from advancing_engine import RecordedEngine, served
from prometheus_stub import Stub, engine, serving
from test_exporter import free_port, until, value

from breakeven.cli import run

SECRET = "s3cr3t"
PAGE = """# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3
# TYPE vllm:generation_tokens counter
vllm:generation_tokens_total{engine="0",model_name="m"} 100
"""


def typed(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "breakeven", "observe", *arguments]


def test_an_exporter_is_ended_by_ctrl_c_and_shows_no_secret() -> None:
    port = free_port()
    with served(RecordedEngine(PAGE)) as recorded:
        url = f"http://ann:{SECRET}@127.0.0.1:{recorded.port}/metrics?key={SECRET}"
        command = typed(url, "--header", "X-Scope=SCOPE", "--export", f":{port}", "--for", "1s", "--every", "250ms")
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "SCOPE": SECRET, "BREAKEVEN_LANG": "en"}
        )
        try:
            shown = f"http://127.0.0.1:{port}/metrics"
            assert until(lambda: b"\nbreakeven_output_tokens_per_second " in urllib.request.urlopen(shown).read(), 60)
            body = urllib.request.urlopen(shown).read()
        finally:
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
    # Three run whenever it looks; 100 tokens a second are as many only where both ends of the window are dated to the millisecond.
    assert value(body, "breakeven_effective_batch") == 3.0 and value(body, "breakeven_output_tokens_per_second") > 0.0
    assert value(body, "breakeven_up", target=f"http://127.0.0.1:{recorded.port}/metrics") == 1.0
    assert (process.returncode, out) == (0, "") and "ended" in err and "Traceback" not in err
    assert SECRET not in body.decode() + err
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(shown)


def test_a_history_is_republished_too() -> None:
    port, now = free_port(), time.time()
    with serving(Stub(engine(start=now - 3600, end=now + 5))) as stub:
        command = typed("--prometheus", stub.url, "--match", '{job="vllm"}', "--range", "30m", "--export", f":{port}")
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            shown = f"http://127.0.0.1:{port}/metrics"
            assert until(lambda: b"breakeven_requests_per_second 2" in urllib.request.urlopen(shown).read(), 60)
            assert value(urllib.request.urlopen(shown).read(), "breakeven_up", target=stub.url) == 1.0
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0


def test_evidence_of_a_history_is_kept_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROM_AUTH", f"Bearer {SECRET}")
    kept, end = tmp_path / "day.json", 1_789_948_800.0 + 86_400
    with serving(Stub(engine(start=end - 86_400, end=end))) as stub:
        url = stub.url.replace("http://", f"http://ann:{SECRET}@") + f"/?key={SECRET}"
        arguments = [
            "--prometheus",
            url,
            "--match",
            '{job="vllm"}',
            "--header",
            "Authorization=PROM_AUTH",
            "--end",
            str(end),
            "--out",
            str(kept),
        ]
        assert run(["observe", *arguments]) == 0
    assert {headers["Authorization"] for headers in stub.headers} == {f"Bearer {SECRET}"}
    evidence = json.loads(kept.read_text(encoding="utf-8"))
    assert (evidence["source"], evidence["target"], evidence["seconds"]) == ("history", stub.url + "/", 86_385.0)
    said = capsys.readouterr()
    assert SECRET not in kept.read_text(encoding="utf-8") + said.out + said.err


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--match", "{}"], "--match is of a metrics history"),
        (["--prometheus", "http://p:9090", "http://a:8000"], "--prometheus and URL"),
        (["--prometheus", "http://p:9090", "--watch"], "--prometheus and --watch"),
        (["--prometheus", "http://p:9090", "--for", "60s"], "--prometheus and --for"),
        (["--prometheus", "http://p:9090", "--match", "vllm"], "--match vllm"),
        (["--prometheus", "http://p:9090", "--range", "soon"], "--range"),
        (["--prometheus", "http://p:9090", "--step", "-1s"], "--step"),
        (["--prometheus", "http://p:9090", "--end", "yesterday"], "--end yesterday"),
        (["--prometheus", "http://p:9090", "--end", "2999-01-01"], "ahead of now"),
        (["--prometheus", "ftp://p:9090"], "only http and https"),
        (["http://a:8000", "--export", "9877"], "--export 9877"),
        (["http://a:8000", "--export", ":9877", "--watch"], "--export and --watch"),
        (["http://a:8000", "--export", ":9877", "--out", "x.json"], "--export and --out"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], wanted: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["observe", *arguments]) == 2
    said = capsys.readouterr()
    assert wanted in said.err and said.err.count("\n") == 1 and said.out == ""
