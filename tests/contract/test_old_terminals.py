"""Streams that know only ASCII, or an encoding of their own: English in signs that are there, Chinese in UTF-8."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from breakeven.messages import catalogue

DESCRIBED = (
    "--model",
    "llama-3.1-8b",
    "--hardware",
    "h100-sxm:1",
    "--input",
    "1500..2500",
    "--output",
    "300",
    "--rate",
    "2",
    "--draws",
    "16",
)
STEERING = ("LC_ALL", "LC_MESSAGES", "LANG", "LANGUAGE", "BREAKEVEN_LANG", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONCOERCECLOCALE")
ASCII = {"PYTHONIOENCODING": "ascii"}
OLD = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
HAN = re.compile("[\u4e00-\u9fff]")


def program(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    left = {name: value for name, value in os.environ.items() if name not in STEERING}
    command = [sys.executable, "-m", "breakeven", *arguments]
    return subprocess.run(command, capture_output=True, check=False, env={**left, "COLUMNS": "100", **environment})


@pytest.mark.parametrize("environment", [ASCII, OLD, {"PYTHONIOENCODING": "latin-1"}], ids=["ascii", "old locale", "latin-1"])
def test_chinese_is_written_in_utf_8_where_the_stream_cannot_hold_it(environment: dict[str, str]) -> None:
    done, wrong = (program(*words, "--lang", "zh", **environment) for words in (("advise", *DESCRIBED), ("catalog", "nothing")))
    assert done.returncode == 0, done.stderr
    plain = program("advise", *DESCRIBED, "--lang", "zh", PYTHONUTF8="1")
    assert done.stdout == plain.stdout and HAN.search(done.stdout.decode())
    assert wrong.returncode == 2 and HAN.search(wrong.stderr.decode()) and b"?" not in wrong.stderr


def test_chinese_stays_in_an_encoding_that_has_it() -> None:
    done = program("--help", "--lang", "zh", PYTHONIOENCODING="gb18030")
    assert done.returncode == 0 and HAN.search(done.stdout.decode("gb18030"))


@pytest.mark.parametrize("environment", [ASCII, OLD], ids=["ascii", "old locale"])
@pytest.mark.parametrize(
    "words",
    [
        ("advise", *DESCRIBED, "-v"),
        *(("advise", *DESCRIBED, "--explain", lever) for lever in ("batching", "speculation", "prefix_cache")),
        ("catalog", "hardware", "h100-sxm"),
        ("advise", "--help"),
    ],
    ids=lambda words: " ".join(words[-2:]),
)
def test_english_is_written_in_signs_that_ascii_has(words: tuple[str, ...], environment: dict[str, str]) -> None:
    done = program(*words, BREAKEVEN_LANG="en", **environment)
    assert done.returncode == 0, done.stderr
    assert max(done.stdout) < 128
    lost = [line for line in done.stdout.decode().splitlines() if "?" in line]
    assert lost == [], lost


def test_a_product_is_no_bar() -> None:
    done = program("advise", *DESCRIBED, "--explain", "batching", BREAKEVEN_LANG="en", **ASCII)
    assert b"sum N*w/(TP*PP)" in done.stdout, done.stdout.decode()


def test_every_sign_of_the_english_messages_has_one_in_ascii() -> None:
    signs = {sign for words in catalogue("en").values() for sign in words if ord(sign) > 127}
    script = "import sys; from breakeven import streams; streams.prepare(); sys.stdout.write(sys.argv[1])"
    written = subprocess.run(
        [sys.executable, "-c", script, " ".join(sorted(signs))],
        capture_output=True,
        check=True,
        env={**os.environ, **ASCII, "LC_ALL": "C.UTF-8"},
    )
    assert b"?" not in written.stdout, written.stdout
