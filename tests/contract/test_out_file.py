"""``--out``: a place that cannot be written is said before anything is measured; what was measured is never lost with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from composed_pages import Counting
from hostile_server import Server, serving

from breakeven import api, cli
from breakeven.origin.calibration_file import read_calibration
from breakeven.origin.evidence_file import read_evidence

FULL = Path("/dev/full")
on_linux = pytest.mark.skipif(not FULL.exists(), reason="no device here that is always full")
pytestmark = pytest.mark.usefixtures("english")
LEVER = Path("examples/measured-cases.csv")


@pytest.fixture
def engine() -> Iterator[Server]:
    with serving({"/metrics": Counting()}) as server:
        yield server


@pytest.fixture
def spare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the system has its temporary files."""
    folder = tmp_path / "spare"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def observe(engine: Server, out: object, *more: str) -> list[str]:
    return ["observe", engine.url, "--for", "300ms", "--every", "100ms", "--out", str(out), *more]


def ran(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> tuple[int, str, str]:
    code = cli.run(arguments)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("place", ["gone/new.json", "n" * 300, "~nobody-of-that-name/new.json", "file/new.json", "."])
def test_an_engine_is_not_read_for_a_place_that_cannot_be_written(
    place: str, engine: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("", encoding="utf-8")
    code, out, err = ran(capsys, observe(engine, place))
    assert (code, out, err.count("\n")) == (2, "", 1) and err.startswith(f"breakeven: {place}: ")
    assert engine.asked == [] and [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "words",
    [
        ["calibrate", "--probe"],
        ["calibrate", str(LEVER)],
        ["calibrate", "--url", "http://127.0.0.1:9", "--allow-load", "--engine", "vllm", "--model", "llama-3.1-8b"],
    ],
)
def test_nothing_is_calibrated_for_a_place_that_cannot_be_written(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    for name in ("probe", "calibrate", "calibrate_engine"):
        monkeypatch.setattr(api, name, measured)
    code, out, err = ran(capsys, [*words, "--out", "n" * 300])
    assert (code, out, err.count("\n")) == (2, "", 1) and "cannot be written" in err


def test_a_run_that_fails_leaves_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving({}) as nothing:
        code, _, _ = ran(capsys, observe(nothing, tmp_path / "new.json"))
    assert code == 2 and list(tmp_path.iterdir()) == []


@on_linux
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_an_observation_that_cannot_be_written_is_shown_and_kept_elsewhere(
    more: tuple[str, ...], engine: Server, spare: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ran(capsys, observe(engine, FULL, *more))
    (kept,) = spare.iterdir()
    last = err.splitlines()[-1]
    assert code == 2 and f"{FULL}: cannot be written (No space left on device)" in last and str(kept) in last
    found = read_evidence(kept)
    assert found.target == engine.url and kept.stat().st_mode & 0o077 == 0
    assert (json.loads(out)["readings"] == found.readings) if more else ("vLLM" in out)


@on_linux
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_calibration_that_cannot_be_written_is_shown_and_kept_elsewhere(
    more: tuple[str, ...], root: Path, spare: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ran(capsys, ["calibrate", str(root / LEVER), "--out", str(FULL), *more])
    (kept,) = spare.iterdir()
    assert code == 2 and err.count("\n") == 1 and str(kept) in err
    assert read_calibration(kept).parameters and "Written to" not in out
    assert (json.loads(out)["written"] is None) if more else ("Fitted to" in out)


@on_linux
def test_where_no_place_is_left_the_file_is_printed_after_the_rest(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/no/such/folder")
    code, out, err = ran(capsys, ["calibrate", str(root / LEVER), "--out", str(FULL)])
    assert code == 2 and err.count("\n") == 1 and "cannot be written" in err
    page, sign, rest = out.partition("schema = ")
    assert "Fitted to" in page and tomllib.loads(sign + rest)["parameters"]


@on_linux
@pytest.mark.parametrize("stdout", ["full", "left"])
def test_where_a_file_is_kept_is_said_even_where_nothing_can_be_shown(stdout: str, root: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "breakeven", "calibrate", str(root / LEVER), "--out", str(FULL)]
    reading, writing = os.pipe()
    os.close(reading)
    with FULL.open("wb") as full:
        out = full.fileno() if stdout == "full" else writing
        ran = subprocess.run(words, stdout=out, stderr=subprocess.PIPE, text=True, check=False, env={**os.environ, "TMPDIR": str(tmp_path)})
    os.close(writing)
    (kept,) = tmp_path.iterdir()
    assert ran.returncode == 2 and ran.stderr.count("\n") == 1 and str(kept) in ran.stderr


def test_a_link_that_leads_nowhere_is_one_line(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    link = tmp_path / "link"
    link.symlink_to(link)
    code, out, err = ran(capsys, ["calibrate", str(root / LEVER), "--out", str(link)])
    assert (code, out, err.count("\n")) == (2, "", 1) and "cannot be written" in err
