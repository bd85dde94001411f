"""What is typed to ``breakeven observe``, what it writes, and that no secret comes out."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from composed_pages import Counting
from hostile_server import Server, free_port, in_turn, serving, status, whole
from typed_observe import run

from breakeven import endpoint
from breakeven.observation import scrape

pytestmark = pytest.mark.usefixtures("english")

USER, SECRET = "ann-of-nowhere", "s3cr3t-of-nobody"
HIDDEN = "|".join((USER, SECRET, base64.b64encode(USER.encode()).decode()[:16]))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no server is named"),
        (["http://h", "--for", "5x"], "--for = 5x: not a duration; write a number and its unit: 500ms, 90s, 5m, 1h"),
        (["http://h", "--for", "-5s"], "not a duration"),
        (["http://h", "--every", "1ms"], "--every = 1ms: not between 100 ms and 1 h"),
        (["http://h", "--for", "2d"], "--for = 2d: not between"),
        (["http://h", "--for", "1s"], "--for 1s holds not two readings at --every 2s"),
        (["http://h", "--for", "1d", "--every", "100ms"], "864,000 readings are more than"),
        (["http://h", "--header", "Authorization"], "NAME=VARIABLE"),
        (["http://h", "--header", f"Authorization=Bearer {SECRET}"], "NAME=VARIABLE"),
        (["http://h", "--header", "Authorization=NOT_SET_ANYWHERE"], "the environment variable NOT_SET_ANYWHERE is not set"),
        (["http://h", "--out", "/no/such/folder/x.json"], "its folder is not there"),
        (["http://h", "http://h"], "named twice"),
        (["h:80", "http://H/"], "named twice"),
        (["http://h/metrics?key=1", "h/metrics?key=1"], "named twice"),
        (["http://h", "--evidence", "x.json"], "URL and --evidence are both given"),
        (["ftp://h"], "only http and https"),
        (["http://h", "--model", "llama-3.1-8b", "--hardware", "h1000"], "h1000"),
        (["http://h", "--model", "llama-9", "--hardware", "h100-sxm"], "llama-9"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_before_anything_is_read(capsys: pytest.CaptureFixture[str], arguments: Sequence[str], words: str) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert words in err and err.count("\n") == 1 and SECRET not in err


def test_a_file_that_is_no_evidence_is_not_written_over(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    mine = tmp_path / "notes.json"
    mine.write_text('{"schema": "of mine"}')
    code, _, err = run(capsys, "http://127.0.0.1:1", "--out", str(mine))
    assert code == 2 and "is no evidence" in err and mine.read_text() == '{"schema": "of mine"}'


def test_a_server_that_does_not_answer_is_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, f"http://127.0.0.1:{free_port()}", "--for", "200ms", "--every", "100ms")
    assert (code, out) == (3, "") and "nothing listens there" in err.splitlines()[-1]


def quick(server: Server, *more: str) -> list[str]:
    return [server.url, "--for", "300ms", "--every", "100ms", *more]


def test_evidence_is_written_printed_and_written_over_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    kept = tmp_path / "evidence.json"
    with serving({"/metrics": Counting()}) as server:
        for _ in range(2):
            code, out, err = run(capsys, *quick(server, "--out", str(kept)))
            assert code == 0, err
    assert "vLLM" in out and "reading" in err
    found = json.loads(kept.read_text())
    assert found["schema"] == "breakeven.evidence/1" and found["target"] == server.url
    assert found["counts"]["output_tokens"] == 10.0 * (found["readings"] - 1)


def test_a_secret_is_in_nothing_that_comes_out(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "evidence.json"
    monkeypatch.setenv("ENGINE_KEY", f"Bearer {SECRET}")
    with serving({"/metrics": in_turn(Counting(), Counting(), status(500), Counting())}) as server:
        url = server.url.replace("://", f"://{USER}:{SECRET}@") + f"/metrics?key={SECRET}"
        options = ["--header", "X-Key=ENGINE_KEY", "--for", "500ms", "--every", "100ms", "--out", str(kept)]
        said = [
            *run(capsys, url, *options)[1:],
            *run(capsys, url, *options, "--json", "-v")[1:],
            *run(capsys, url, *options, "--watch")[1:],
        ]
    assert server.headers[0]["x-key"] == f"Bearer {SECRET}" and server.headers[0]["authorization"].startswith("Basic ")
    assert server.asked[0] == f"/metrics?key={SECRET}"
    shown = server.url.partition("://")[2]
    assert shown in kept.read_text() and sum(shown in words for words in said) >= 4
    for words in (*said, kept.read_text()):
        assert not re.search(HIDDEN, words)


def test_a_secret_is_in_no_complaint(capsys: pytest.CaptureFixture[str]) -> None:
    for pages in (
        {},
        {"/metrics": status(403)},
        {"/metrics": status(500)},
        {"/metrics": whole("{")},
        {"/metrics": status(302, Location="http://127.0.0.1:1/")},
    ):
        with serving(pages) as server:
            url = server.url.replace("://", f"://{USER}:{SECRET}@") + f"/metrics?key={SECRET}"
            code, out, err = run(capsys, url, "--for", "200ms", "--every", "100ms")
        assert code in (2, 3) and out == "" and not re.search(HIDDEN, err)


def test_a_view_that_is_no_terminal_is_plain_lines_and_then_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    with serving({"/metrics": Counting(step=100)}) as server:
        code, out, err = run(capsys, *quick(server, "--watch"))
    assert code == 0 and "\x1b" not in out + err
    assert "tok/s out" in err.splitlines()[-1] and "vLLM" in out


def test_addresses_and_headers_of_the_observation_are_in_no_representation() -> None:
    [target] = scrape.targets([f"http://ann:{SECRET}@h/metrics?key={SECRET}"], {"X-Key": SECRET})
    assert SECRET not in repr(target) and SECRET not in repr(endpoint.Endpoint(url=f"http://h?{SECRET}"))
