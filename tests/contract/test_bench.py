"""The benchmarks themselves, on sizes too small to time anything."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import rivals  # noqa: E402
import scrape as scraping  # noqa: E402
import traffic  # noqa: E402
import work  # noqa: E402

VERSIONS = {"vidur": "0.0.26", "sched-sim": "0.2.1", "vllm-sr-sim": "0.1.0.dev20260713123629", "kvcache-simulator": "0.1.3"}


@pytest.mark.parametrize("rival", rivals.RIVALS)
def test_a_rival_is_pinned_with_all_it_needs_and_has_a_driver(rival: str) -> None:
    lines = (BENCH / f"rival/{rival}.txt").read_text(encoding="utf-8").split()
    assert all(line.count("==") == 1 for line in lines)
    assert rivals.pinned(rival) == VERSIONS[rival]
    assert (BENCH / f"rival/{rival.replace('-', '_')}_run.py").exists()


def test_made_up_chains_are_as_many_as_asked_and_an_id_stands_for_all_before_it() -> None:
    offsets, ids, unique = work.chains_made(5000)
    assert 5000 <= len(ids) == offsets[-1] < 5000 + 128
    assert ids.max() < unique
    before: dict[int, int] = {}
    for start, end in pairwise(offsets.tolist()):
        chain = ids[start:end].tolist()
        assert all(before.setdefault(one, other) == other for one, other in zip(chain, [-1, *chain], strict=False))
    assert len(set(ids.tolist())) < len(ids)


def test_requests_like_azures_are_the_same_for_the_same_seed_and_in_order() -> None:
    first, again = work.azure_like(500, seed=3), work.azure_like.__wrapped__(500, seed=3)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert first[0][0] == 0.0
    assert np.all(np.diff(first[0]) >= 0)
    assert min(first[1].min(), first[2].min()) >= 1


def test_rows_that_are_made_are_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from breakeven import traces

    monkeypatch.setattr(work, "work_folder", lambda: tmp_path)
    trace = traces.read(work.azure_file(300))
    assert trace.requests == 300
    assert np.array_equal(trace.input_tokens, work.azure_like(300)[1])
    assert np.allclose(trace.arrival_s, work.azure_like(300)[0], atol=1e-6)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in traffic.RUNS if name != "file"])
def test_a_benchmark_runs_in_a_process_of_its_own(name: str) -> None:
    done = subprocess.run([sys.executable, str(BENCH / "traffic.py"), name, "100"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["seconds"] > 0


def test_the_table_of_rivals_says_requests_a_second_and_their_ratio() -> None:
    row = rivals.Row(
        rival="vidur", version="0.0.26", work="some", requests=100, rival_s=2.0, our_s=0.001, ratio=2000.0, rival_says={}, we_say={}
    )
    assert "| vidur 0.0.26 | some | 100 | 2.000 | 0.0010 | 50 | 100,000 | 2,000 |" in rivals.table([row])


def test_the_page_that_is_timed_has_the_lines_of_interest_that_are_said() -> None:
    from breakeven.observation import page as pages

    body = scraping.page()
    found = pages.read(body, "text/plain; version=0.0.4")
    assert body.count(b"\n") == scraping.LINES
    assert body.count(b"vllm:") == scraping.OF_INTEREST == len(found.readings)
    figure = scraping.measure_scrape()
    assert figure.limit == 60.0 and figure.value > 0.0
