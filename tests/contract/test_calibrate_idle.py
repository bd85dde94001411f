"""``calibrate`` of an engine that is stopped, gone or idle: the line says which, and what is to be done about that."""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile_server import free_port, serving, slowly
from observations import observation, written

from breakeven import cli
from breakeven.use_cases import running_engine

pytestmark = pytest.mark.usefixtures("english")
DESCRIBED = ("--model", "llama-3.1-8b", "--hardware", "h100-sxm")
IDLE = {"effective_batch": 0.0, "output_tokens_per_s": 0.0, "request_rate_per_s": 0.0}


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = cli.run(["calibrate", *arguments])
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    return code, err


@pytest.mark.parametrize("named", [(), ("--engine", "vllm")])
def test_a_server_that_takes_connections_and_hangs_is_to_be_looked_after(
    named: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = running_engine.scrape.targets
    monkeypatch.setattr(running_engine.scrape, "targets", lambda *given, **more: targets(*given, **more, timeout_s=0.3))
    with serving({path: slowly(b"", b"", 0.02) for path in ("/metrics", "/prometheus/metrics")}) as server:
        code, err = ran(capsys, "--url", server.url, *DESCRIBED, *named)
    assert code == 3 and "start it again" in err and "--for" not in err and "--allow-load" not in err


@pytest.mark.parametrize("named", [(), ("--engine", "vllm")])
def test_a_server_that_is_not_there_is_said_not_to_be(named: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, err = ran(capsys, "--url", f"http://127.0.0.1:{free_port()}", "--hardware", "h100-sxm", *named)
    assert code == 3 and "nothing listens there" in err and "start the server" in err


def test_an_observation_in_which_nothing_ran_asks_for_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "evidence.json"
    path.write_bytes(written(observation(measured=IDLE)))
    code, err = ran(capsys, str(path))
    assert code == 2 and "nothing ran on the engine" in err and "--allow-load" in err and "5m" not in err


def test_a_saved_page_of_metrics_is_said_to_be_one(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, err = ran(capsys, str(shared / "snapshots/vllm_metrics_load.txt"))
    assert code == 2 and "sums since it began" in err and "breakeven observe" in err
