"""A trace as a workload: what it says is used where nothing else is said, and what it lacks is asked for by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deployment_tables import BARE
from trace_samples import BATCH, CHAT, FORMS, SHAREGPT, VLLM, lines

from breakeven.errors import InputError
from breakeven.origin.resolve import Resolved, resolve_table
from breakeven.spec.workload import Acceptance

STATED = {"spec_decode_per_position_acceptance_rates": [0.8, 0.5]}


def resolved(folder: Path, content: str, **workload: Any) -> Resolved:
    path = folder / "trace"
    path.write_text(content)
    return resolve_table({**BARE, "workload": {"trace": str(path), **workload}})


def test_one_without_outputs_needs_the_output_and_gives_its_prompts(tmp_path: Path) -> None:
    content = lines(BATCH).text()
    with pytest.raises(InputError, match="--output"):
        resolved(tmp_path, content, concurrency=8)
    found = resolved(tmp_path, content, concurrency=8, output_tokens=100).deployment
    assert found.workload.output_tokens == 100 and found.workload.input_tokens == pytest.approx(63, abs=5)
    assert found.workload.lengths is None and found.provenance["workload.input_tokens"] == "file"


def test_one_without_times_needs_the_load_and_gives_its_lengths(tmp_path: Path) -> None:
    content = lines(SHAREGPT).text()
    with pytest.raises(InputError, match=r"no arrival times; give --rate, --concurrency"):
        resolved(tmp_path, content)
    found = resolved(tmp_path, content, request_rate=2.0).deployment
    assert found.workload.lengths is not None and found.workload.request_rate == 2.0


def test_acceptance_that_a_benchmark_states_is_used_and_gives_way_to_what_is_said(tmp_path: Path) -> None:
    content = lines({**VLLM, **STATED}).text()
    found = resolved(tmp_path, content).deployment
    assert found.workload.acceptance == Acceptance(cumulative=(0.8, 0.5), k=2) and found.provenance["workload.acceptance"] == "file"
    said = resolved(tmp_path, content, acceptance_alpha=0.6).deployment
    assert said.workload.acceptance == Acceptance(alpha=0.6) and said.provenance["workload.acceptance"] == "declared"
    assert resolved(tmp_path, lines(VLLM).text()).deployment.provenance["workload.acceptance"] == "prior"


def test_cached_tokens_are_the_hit_rate_where_any_were(tmp_path: Path) -> None:
    found = resolved(tmp_path, FORMS["litellm"].text()).deployment
    assert found.workload.prefix_hit_rate == pytest.approx(0.64) and found.provenance["workload.prefix_hit_rate"] == "file"
    assert resolved(tmp_path, FORMS["litellm"].text(), prefix_hit_rate=0.2).deployment.workload.prefix_hit_rate == 0.2
    usage = {"prompt_tokens": 70, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 0}}
    none = lines({**CHAT, "response": {**CHAT["response"], "usage": usage}}).text()
    assert resolved(tmp_path, none, concurrency=1).deployment.workload.prefix_hit_rate is None


def test_what_there_is_to_say_of_a_file_is_said(tmp_path: Path) -> None:
    keys = [warning.key for warning in resolved(tmp_path, FORMS["table"].text() + "x,1\n").warnings]
    assert "warning.trace_damaged_one" in keys and "trace.guessed" in keys
