"""One run, written down by every tool in its own units, is one row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.measured.benchmark import Loop, Record
from breakeven.measured.benchmark_files import readers
from breakeven.measured.step_forms import StepReading

TIMES = st.floats(1e-4, 2.0)
LENGTHS = st.integers(2, 100_000)
STREAMS = st.integers(1, 1024)


def statuses(mean: float) -> dict[str, Any]:
    return {"successful": {"mean": mean}}


def written(clients: int, prompt: int, output: int, tpot: float, ttft: float) -> dict[str, dict[str, Any]]:
    """The same run as four tools tell it: milliseconds, nanoseconds, seconds; totals or means."""
    requests = 10 * clients
    e2e = ttft + tpot * (output - 1)
    duration = requests / clients * e2e
    totals = {
        "completed": requests,
        "duration": duration,
        "total_input_tokens": requests * prompt,
        "total_output_tokens": requests * output,
    }
    means = {"mean_tpot_ms": tpot * 1e3, "mean_ttft_ms": ttft * 1e3, "mean_itl_ms": 7.0, "request_throughput": requests / duration}
    named = {
        "inter_token_latency": {"avg": tpot * 1e9, "unit": "ns"},
        "time_to_first_token": {"avg": ttft * 1e6, "unit": "us"},
        "request_latency": {"avg": e2e, "unit": "sec"},
        "input_sequence_length": {"avg": prompt, "unit": "tokens"},
        "output_sequence_length": {"avg": output, "unit": "tokens"},
        "request_throughput": {"avg": requests / duration, "unit": "requests/sec"},
    }
    metrics = {
        "request_concurrency": statuses(clients),
        "requests_per_second": statuses(requests / duration),
        "request_latency": statuses(e2e),
        "prompt_token_count": statuses(prompt),
        "output_token_count": statuses(output),
        "time_to_first_token_ms": statuses(ttft * 1e3),
        "inter_token_latency_ms": statuses(tpot * 1e3),
        "time_per_output_token_ms": statuses(e2e / output * 1e3),
    }
    retokenized = {"backend": "sglang", "dataset_name": "sharegpt", "total_output_tokens_retokenized": requests * output}
    return {
        "vllm_serve": {**totals, **means, "num_prompts": requests, "max_concurrency": clients, "model_id": "m"},
        "sglang_bench": {**totals, **means, **retokenized, "max_concurrency": clients},
        "aiperf": {**named, "was_cancelled": False, "input_config": {"loadgen": {"concurrency": clients}}},
        "genai_perf": {**named, "input_config": {"concurrency": clients}},
        "guidellm": {
            "metadata": {"guidellm_version": "0.7"},
            "benchmarks": [{"config": {"strategy": {"type_": "concurrent", "streams": clients}}, "metrics": metrics}],
        },
    }


def read(name: str, record: dict[str, Any]) -> Loop | StepReading:
    found = [one.measured for one in readers()[name].read((Record(where="f", fields=json.loads(json.dumps(record))),))]
    assert len(found) == 1 and found[0] is not None, name
    return found[0]


@given(clients=STREAMS, prompt=LENGTHS, output=LENGTHS, tpot=TIMES, ttft=TIMES)
def test_a_run_is_the_same_whoever_wrote_it_down(clients: int, prompt: int, output: int, tpot: float, ttft: float) -> None:
    for name, record in written(clients, prompt, output, tpot, ttft).items():
        loop = read(name, record)
        assert isinstance(loop, Loop)
        told = (loop.concurrency, loop.input_tokens, loop.output_tokens, loop.tpot_s, loop.ttft_s)
        assert told == pytest.approx((clients, prompt, output, tpot, ttft), rel=1e-9), name


@given(streams=STREAMS, prompt=st.integers(0, 100_000), output=st.integers(1, 10_000), step=TIMES)
def test_a_step_is_the_same_from_either_bench_of_llama_cpp(streams: int, prompt: int, output: int, step: float) -> None:
    batched = read("llama_batched_bench", {"pp": prompt, "tg": output, "pl": streams, "t_pp": 1.0, "t_tg": step * output})
    assert isinstance(batched, StepReading)
    assert (batched.width, batched.context_tokens, batched.step_s) == pytest.approx((streams, prompt + output / 2, step))
    timed = {"model_filename": "m.gguf", "n_prompt": 0, "n_gen": output, "n_depth": prompt, "avg_ns": step * output * 1e9}
    single = read("llama_bench", timed)
    assert isinstance(single, StepReading)
    assert (single.width, single.context_tokens, single.step_s) == pytest.approx((1.0, prompt + output / 2, step))


def test_steps_that_were_published_are_the_same_from_the_table_of_a_bench(shared: Path) -> None:
    """Token times of Splitwise's data, written as llama-batched-bench would: so many seconds for so many tokens of so many streams."""
    from breakeven.measured.lines import read_table
    from breakeven.measured.row import NotUnderstood
    from breakeven.measured.step_forms import form_of

    table = read_table(shared / "data" / "step_time_splitwise.csv")
    form = form_of(table.columns)
    assert form is not None
    compared = 0
    for row in table.rows:
        try:
            known = form.read(row)
        except NotUnderstood:
            continue
        output = 2 * (known.context_tokens - float(row.fields["prompt_size"]))
        bench = {"pp": float(row.fields["prompt_size"]), "tg": output, "pl": known.width, "t_pp": 1.0, "t_tg": known.step_s * output}
        found = read("llama_batched_bench", bench)
        assert isinstance(found, StepReading)
        assert (found.width, found.context_tokens, found.step_s) == pytest.approx((known.width, known.context_tokens, known.step_s))
        compared += 1
    assert compared > 50


def test_public_serving_runs_are_the_same_as_results_of_a_bench(shared: Path) -> None:
    """Runs of vLLM in the shared data, as ``vllm bench serve`` would have saved them, in the catalogue's own names."""
    from breakeven.measured.benchmark import Outcome
    from breakeven.measured.benchmark_rows import rows_of
    from breakeven.measured.files import read as read_rows
    from breakeven.measured.steps import Stated

    runs = [run for run in read_rows([shared / "data" / "silicon_e2e.csv"]).sound.runs if run.deployment.engine.name == "vllm"][:40]
    assert len(runs) == 40
    for run in runs:
        d, w = run.deployment, run.deployment.workload
        load = [float(value) for value in (w.concurrency, w.input_tokens, w.output_tokens)]  # type: ignore[arg-type]
        record = written(round(load[0]), round(load[1]), round(load[2]), run.tpot_s, run.ttft_s or 0.1)["vllm_serve"]
        (measured,) = (read("vllm_serve", record),)
        outcome = Outcome(where="f", id="f", measured=measured)
        found = rows_of([outcome], Stated(model=d.model.name, device=d.hardware.device.name, engine=f"vllm {d.engine.version}"))
        for one in found.runs:
            assert one.tpot_s == pytest.approx(run.tpot_s) and one.group.split(" | ")[1:] == run.group.split(" | ")[1:]
            assert [float(x) for x in (one.deployment.workload.concurrency, one.deployment.workload.input_tokens)] == load[:2]  # type: ignore[arg-type]
