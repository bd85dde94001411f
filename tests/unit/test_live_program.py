"""How the tests of running engines use the program: what it says when it ends is said at once, and nothing of it is left open."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import pytest
from advancing_engine import RecordedEngine, served
from live_observation import observing
from live_program import Ended, started

PAGE = """# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3
# TYPE vllm:generation_tokens counter
vllm:generation_tokens_total{engine="0",model_name="m"} 100
"""


def test_a_program_that_ends_by_itself_is_not_waited_for_and_its_code_and_words_are_said(tmp_path: Path) -> None:
    began = time.monotonic()
    with (
        served(RecordedEngine("<html></html>")) as other,
        pytest.raises(Ended, match=r"(?s)observe ended by itself with 2; no page was read since.*a page for people came back"),
        observing(f"http://127.0.0.1:{other.port}", tmp_path) as seen,
    ):
        seen.read_anew()
    assert time.monotonic() - began < 60.0


def test_a_test_that_fails_leaves_no_process_and_nothing_open(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        with (
            served(RecordedEngine(PAGE)) as engine,
            pytest.raises(ZeroDivisionError),
            observing(f"http://127.0.0.1:{engine.port}", tmp_path) as seen,
        ):
            raise ZeroDivisionError
    assert seen.program is not None and seen.program.process.poll() is not None


def test_what_it_prints_needs_no_reader_and_is_handed_over_when_it_ends(tmp_path: Path) -> None:
    with served(RecordedEngine(PAGE)) as engine, observing(f"http://127.0.0.1:{engine.port}", tmp_path) as seen:
        seen.read_anew()
    assert seen.counted("output_tokens") > 0.0 and seen.figure("running") == 3.0
    assert seen.figure("output_tokens_per_s") == pytest.approx(seen.counted("output_tokens") / seen.evidence["seconds"])
    assert "reading" in seen.stderr and seen.evidence["readings"] >= 3


def test_a_command_that_hangs_is_given_up_with_its_words(tmp_path: Path) -> None:
    with served(RecordedEngine(PAGE)) as engine:
        url = f"http://127.0.0.1:{engine.port}"
        with started(tmp_path, "observe", url, "--for", "60s") as program, pytest.raises(TimeoutError, match=r"nothing came within 0\.2 s"):
            program.until(lambda: False, lambda: "nothing came", within_s=0.2)
