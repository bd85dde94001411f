"""A small sound file of each benchmark, made up for the tests: no figure in it was measured."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

MODEL = "meta-llama/Llama-3.1-8B"
VLLM: dict[str, Any] = {
    "date": "20261130-140000",
    "endpoint_type": "vllm",
    "model_id": MODEL,
    "tokenizer_id": MODEL,
    "num_prompts": 64,
    "request_rate": "inf",
    "burstiness": 1.0,
    "max_concurrency": 16,
    "duration": 33.7,
    "completed": 64,
    "total_input_tokens": 32768,
    "total_output_tokens": 16384,
    "request_throughput": 1.9,
    "output_throughput": 486.2,
    "mean_ttft_ms": 120.0,
    "median_ttft_ms": 110.0,
    "mean_tpot_ms": 32.5,
    "median_tpot_ms": 32.0,
    "mean_itl_ms": 32.4,
    "max_concurrent_requests": 19,
}
ALONE = VLLM | {
    "max_concurrency": 1,
    "num_prompts": 16,
    "completed": 16,
    "duration": 136.0,
    "total_input_tokens": 8192,
    "total_output_tokens": 4096,
}
THROUGHPUT = {
    "elapsed_time": 30.0,
    "num_requests": 1000,
    "total_num_tokens": 413539,
    "requests_per_second": 33.3,
    "tokens_per_second": 13784.0,
}


def latency(output: int, seconds: float) -> dict[str, Any]:
    args = {"model": MODEL, "batch_size": 8, "input_len": 32, "output_len": output, "tensor_parallel_size": 1}
    return {
        "benchmark": {"name": "vLLM benchmark", "extra_info": {"args": args}},
        "model": {"name": MODEL},
        "metric": {"name": "latency", "benchmark_values": [seconds, seconds], "extra_info": {"percentiles": {}}},
    }


SGLANG: dict[str, Any] = {
    "backend": "sglang",
    "dataset_name": "sharegpt",
    "request_rate": "inf",
    "max_concurrency": 16,
    "server_info": {"model_path": MODEL, "version": "0.5.4", "tp_size": 1, "kv_cache_dtype": "auto"},
    "duration": 34.0,
    "completed": 64,
    "total_input_tokens": 32768,
    "total_output_tokens": 16384,
    "total_output_tokens_retokenized": 16390,
    "request_throughput": 1.88,
    "mean_e2e_latency_ms": 8400.0,
    "mean_ttft_ms": 120.0,
    "mean_tpot_ms": 32.5,
    "mean_itl_ms": 32.4,
    "concurrency": 15.8,
    "accept_length": None,
}


def of_statuses(mean: float) -> dict[str, Any]:
    return {status: {"mean": mean if status == "successful" else 0.0, "median": mean} for status in ("successful", "errored", "total")}


GUIDELLM_RUN: dict[str, Any] = {
    "type_": "generative_benchmark",
    "config": {"strategy": {"type_": "concurrent", "streams": 16}, "backend": {"model": MODEL}},
    "metrics": {
        "request_totals": {"successful": 64, "errored": 0, "incomplete": 3, "total": 67},
        "requests_per_second": of_statuses(1.88),
        "request_concurrency": of_statuses(15.9),
        "request_latency": of_statuses(8.4),
        "prompt_token_count": of_statuses(512.0),
        "output_token_count": of_statuses(256.0),
        "time_to_first_token_ms": of_statuses(120.0),
        "time_per_output_token_ms": of_statuses(33.0),
        "inter_token_latency_ms": of_statuses(32.4),
        "output_tokens_per_iteration": of_statuses(1.0),
    },
    "requests": {
        "successful": [
            {"request_id": "a", "inter_token_latency_ms": 32.6, "prompt_tokens": 512, "cached_tokens": 0, "output_tokens": 256},
            {"request_id": "b", "inter_token_latency_ms": 32.4, "prompt_tokens": 512, "cached_tokens": 0, "output_tokens": 256},
        ],
        "errored": [],
    },
}
GUIDELLM: dict[str, Any] = {"metadata": {"version": 2, "guidellm_version": "0.7.0"}, "config": {}, "benchmarks": [GUIDELLM_RUN]}


def metric(value: float, unit: str) -> dict[str, Any]:
    return {"unit": unit, "avg": value, "p50": value, "min": value, "max": value}


METRICS: dict[str, Any] = {
    "request_throughput": metric(1.88, "requests/sec"),
    "request_latency": metric(8.4, "sec"),
    "request_count": metric(64, "requests"),
    "time_to_first_token": metric(120.0, "ms"),
    "inter_token_latency": metric(32_500_000.0, "ns"),
    "output_sequence_length": metric(256.0, "tokens"),
    "input_sequence_length": metric(512.0, "tokens"),
}
AIPERF: dict[str, Any] = {
    "aiperf_version": "0.10.0",
    **METRICS,
    "was_cancelled": False,
    "start_time": "2026-11-30T14:00:00",
    "input_config": {"endpoint": {"model_names": [MODEL]}, "loadgen": {"concurrency": 16}},
}
GENAI_PERF: dict[str, Any] = {**METRICS, "input_config": {"model": [MODEL], "concurrency": 16}}
AIPERF_CSV = """Metric,avg,min,max,p99,p50
Time to First Token (ms),120.00,100.0,140.0,139.0,120.0
Inter Token Latency (ms),32.50,32.0,33.0,33.0,32.5
Request Latency (ms),"8,400.00",8000,8800,8790,8400
Output Sequence Length (tokens),256.00,256,256,256,256
Input Sequence Length (tokens),512.00,512,512,512,512

Metric,Value
Request Throughput (requests/sec),1.88
Request Count (requests),64.00
"""


def request(number: int) -> dict[str, Any]:
    start = 1_790_000_000_000_000_000 + number * 500_000_000
    return {
        "metadata": {"session_num": number, "request_start_ns": start, "request_end_ns": start + 8_400_000_000, "was_cancelled": False},
        "metrics": {
            "input_sequence_length": {"value": 512, "unit": "tokens"},
            "output_sequence_length": {"value": 256, "unit": "tokens"},
            "time_to_first_token": {"value": 120.0, "unit": "ms"},
            "inter_token_latency": {"value": 32500.0, "unit": "us"},
            "request_latency": {"value": 8.4, "unit": "s"},
        },
        "error": None,
    }


def llama_bench(prompt: int, output: int, depth: int, ns: float, ubatch: int = 512) -> dict[str, Any]:
    return {
        "build_commit": "0000000",
        "build_number": 6000,
        "cpu_info": "AMD EPYC 9654 96-Core Processor",
        "gpu_info": "NVIDIA L40S",
        "backends": "CUDA",
        "model_filename": "/models/Llama-3.1-8B-Q8_0.gguf",
        "model_type": "llama 8B Q8_0",
        "n_ubatch": ubatch,
        "type_k": "f16",
        "type_v": "f16",
        "n_gpu_layers": 99,
        "n_prompt": prompt,
        "n_gen": output,
        "n_depth": depth,
        "avg_ns": ns,
        "avg_ts": (prompt + output) / ns * 1e9,
    }


LLAMA_BENCH = [
    llama_bench(512, 0, 0, 1.0e8),
    llama_bench(0, 128, 0, 2.0e9),
    llama_bench(0, 128, 8192, 2.6e9),
    llama_bench(256, 0, 0, 2.1e9, ubatch=2),
    llama_bench(256, 0, 0, 1.1e9, ubatch=4),
    llama_bench(256, 0, 0, 6.0e8, ubatch=8),
]
LLAMA_BENCH_MARKDOWN = """| model                 |     size |  params | backend | ngl |           test |            t/s |
| --------------------- | -------: | ------: | ------- | --: | -------------: | -------------: |
| llama 8B Q8_0         | 7.95 GiB |  8.03 B | CUDA    |  99 |          pp512 | 5120.00 ± 1.00 |
| llama 8B Q8_0         | 7.95 GiB |  8.03 B | CUDA    |  99 |          tg128 |   64.00 ± 0.12 |
| llama 8B Q8_0         | 7.95 GiB |  8.03 B | CUDA    |  99 |  tg128 @ d8192 |   49.23 ± 0.10 |

build: 0000000 (6000)
"""


def batched(streams: int, seconds: float) -> dict[str, Any]:
    return {
        "n_kv_max": 16384, "n_batch": 2048, "n_ubatch": 512, "flash_attn": 0, "is_pp_shared": 0, "n_gpu_layers": 99,
        "pp": 512, "tg": 128, "pl": streams, "n_kv": 640 * streams,
        "t_pp": 0.1 * streams, "speed_pp": 5120.0, "t_tg": seconds, "speed_tg": 128 * streams / seconds, "t": seconds, "speed": 1.0,
    }  # fmt: skip


BATCHED = [batched(1, 2.56), batched(4, 2.8), batched(16, 3.8)]
BATCHED_MARKDOWN = """
|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |
|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|
|   512 |    128 |    1 |    640 |    0.100 |  5120.00 |    2.560 |    50.00 |    2.660 |   240.60 |
|   512 |    128 |    4 |   2560 |    0.400 |  5120.00 |    2.800 |   182.86 |    3.200 |   800.00 |
"""


def figure(value: float) -> dict[str, Any]:
    return {"value": value, "sure": "counted", "how": "observe.made_up"}


EVIDENCE: dict[str, Any] = {
    "schema": "breakeven.evidence/1",
    "breakeven": "0.1.0",
    "source": "live",
    "target": "http://localhost:8000",
    "start": "2026-11-30T14:00:00Z",
    "end": "2026-11-30T14:01:00Z",
    "seconds": 60.0,
    "readings": 31,
    "every_s": 2.0,
    "told": {"engine": "vllm", "version": "0.11.0", "model": MODEL, "device": "l40s", "settings": {"tensor_parallel_size": 1}},
    "figures": {
        "effective_batch": figure(15.8),
        "batch_in_step": figure(15.9),
        "step_s": figure(0.0325),
        "ttft_s": figure(0.12),
        "input_tokens": figure(512.0),
        "output_tokens": figure(256.0),
        "context_tokens": figure(640.0),
    },
}


def sql_of(records: list[dict[str, Any]]) -> str:
    """As llama-bench prints it: every value in quotes, and a quote within one as it is."""
    names = list(records[0])
    table = ",\n".join(f"  {name} TEXT" for name in names)
    rows = (", ".join(f"'{record[name]}'" for name in names) for record in records)
    return f"CREATE TABLE IF NOT EXISTS llama_bench (\n{table}\n);\n\n" + "".join(
        f"INSERT INTO llama_bench ({', '.join(names)}) VALUES ({row});\n" for row in rows
    )


def response(predicted: int, ms: float, **more: Any) -> dict[str, Any]:
    """What llama.cpp's server answers, with the timings of the request."""
    timings = {"cache_n": 0, "prompt_n": 64, "prompt_ms": 120.0, "predicted_n": predicted, "predicted_ms": ms}
    return {"model": "/models/Llama-3.1-8B-Q8_0.gguf", "system_fingerprint": "b6123-1a2b3c", "content": "…", "timings": timings, **more}


def raw_request(start: int, tokens: int, *, usage: bool = True) -> dict[str, Any]:
    """A streamed request of genai-perf's raw export: 100 ms to the first token, 20 ms from one to the next."""
    times = [start + 100_000_000 + 20_000_000 * at for at in range(tokens)]
    chunks = [{"choices": [{"delta": {"content": "x"}}]} for _ in times]
    last = [{"choices": [], "usage": {"prompt_tokens": 512, "completion_tokens": tokens}}] if usage else []
    outputs = [{"response": f"data: {json.dumps(one)}\n\n"} for one in (*chunks, *last)] + [{"response": "data: [DONE]\n\n"}]
    stamps = [*times, *[times[-1] + 1_000_000] * (len(outputs) - len(times))]
    payload = {"payload": json.dumps({"model": MODEL, "stream": True})}
    return {"timestamp": start, "request_inputs": payload, "response_timestamps": stamps, "response_outputs": outputs}


def raw_export(*requests: dict[str, Any], streams: int = 2) -> dict[str, Any]:
    run = {"experiment": {"mode": "concurrency", "value": streams}, "requests": list(requests), "window_boundaries": []}
    return {"service_kind": "openai", "endpoint": "v1/chat/completions", "experiments": [run], "version": "1.2.3"}


@dataclass(frozen=True)
class Sample:
    text: str
    reader: str
    measured: int
    """Outcomes that are measurements."""
    load: float = 0.0
    """Streams of the first of them."""
    tpot_s: float = 0.0
    """And its time per token."""


def lines(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def csv_of(records: list[dict[str, Any]]) -> str:
    head = list(records[0])
    rows = (",".join(f'"{record[name]}"' for name in head) for record in records)
    return "\n".join([",".join(head), *rows]) + "\n"


SAMPLES = {
    "vllm_serve": Sample(json.dumps(VLLM), "vllm_serve", 1, 16, 0.0325),
    "vllm_serve appended": Sample(lines(VLLM, ALONE), "vllm_serve", 2, 16, 0.0325),
    "vllm_throughput": Sample(json.dumps(THROUGHPUT), "vllm_throughput", 0),
    "vllm_latency": Sample(json.dumps([latency(32, 0.9), latency(160, 4.1)]), "vllm_latency", 1, 8, 0.025),
    "vllm_latency plain": Sample(json.dumps({"avg_latency": 1.0, "latencies": [1.0], "percentiles": {"50": 1.0}}), "vllm_latency", 0),
    "sglang_bench": Sample(lines(SGLANG), "sglang_bench", 1, 16, 0.0325),
    "guidellm": Sample(json.dumps(GUIDELLM, indent=1), "guidellm", 1, 16, 0.0325),
    "aiperf": Sample(json.dumps(AIPERF), "aiperf", 1, 16, 0.0325),
    "aiperf table": Sample(AIPERF_CSV, "aiperf", 1, 15.792, 0.0325),
    "aiperf requests": Sample(lines(*map(request, range(64))), "aiperf", 1, 13.474, 0.0325),
    "genai_perf": Sample(json.dumps(GENAI_PERF), "genai_perf", 1, 16, 0.0325),
    "llama_bench": Sample(json.dumps(LLAMA_BENCH), "llama_bench", 5, 1, 0.015625),
    "llama_bench lines": Sample(lines(*LLAMA_BENCH), "llama_bench", 5, 1, 0.015625),
    "llama_bench csv": Sample(csv_of(LLAMA_BENCH), "llama_bench", 5, 1, 0.015625),
    "llama_bench sql": Sample(sql_of(LLAMA_BENCH), "llama_bench", 5, 1, 0.015625),
    "llama_bench table": Sample(LLAMA_BENCH_MARKDOWN, "llama_bench", 2, 1, 0.015625),
    "llama_batched_bench": Sample(lines(*BATCHED), "llama_batched_bench", 3, 1, 2.56 / 128),
    "llama_batched_bench table": Sample(BATCHED_MARKDOWN, "llama_batched_bench", 2, 1, 2.56 / 128),
    "llama_timings": Sample(lines(*(response(101, 2000.0, concurrency=4) for _ in range(8))), "llama_timings", 1, 4, 0.02),
    "genai_perf_raw": Sample(
        json.dumps(raw_export(*(raw_request(at // 2 * 740_000_000, 33) for at in range(8)))), "genai_perf_raw", 1, 2, 0.02
    ),
    "evidence": Sample(json.dumps(EVIDENCE), "evidence", 1, 15.9, 0.0325),
}  # fmt: skip
