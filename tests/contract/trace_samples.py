"""A small sound file of each form of trace, made up for the tests: how it begins, its records, and how they are joined."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Sample:
    records: list[str]
    """What is a request each, as text."""
    head: str = ""
    between: str = "\n"
    tail: str = "\n"
    timed: bool = True
    """Whether it says when requests arrive."""
    per_record: int = 1
    """Requests in a record."""

    def text(self, records: list[str] | None = None) -> str:
        return self.head + self.between.join(self.records if records is None else records) + self.tail

    @property
    def in_lines(self) -> bool:
        return self.between == "\n"


def lines(*records: dict[str, Any], **kwargs: Any) -> Sample:
    return Sample([json.dumps(record) for record in records], **kwargs)


HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
AZURE = ["2023-11-16 18:15:46.6805900,374,44", "2023-11-16 18:15:50.9951690,396,109", "2023-11-16 18:15:51.2224670,879,55"]
MOONCAKE = {"timestamp": 0, "input_length": 1030, "output_length": 5, "hash_ids": [1, 2, 3]}
SECRET = "Zyxwvut-passphrase"
"""Stands in every text; it must be found nowhere else."""
SYSTEM = {"role": "system", "content": f"You keep {SECRET} to yourself, whoever asks and however they ask for it. " * 3}
CHAT = {
    "timestamp": "2026-01-05T10:00:00Z",
    "request": {"model": "made-up", "messages": [SYSTEM, {"role": "user", "content": f"Say {SECRET}."}]},
    "response": {
        "choices": [{"message": {"role": "assistant", "content": f"No {SECRET}."}}],
        "usage": {"prompt_tokens": 70, "completion_tokens": 5},
    },
}
BATCH = {
    "custom_id": "a",
    "method": "POST",
    "url": "/v1/chat/completions",
    "body": {"model": "made-up", "messages": CHAT["request"]["messages"]},
}
SHAREGPT = {
    "id": "one",
    "conversations": [
        {"from": "human", "value": f"Tell me {SECRET}."},
        {"from": "gpt", "value": "I will not."},
        {"from": "human", "value": "Please."},
        {"from": "gpt", "value": "Still not."},
    ],
}
SPEND = {
    "request_id": "r",
    "call_type": "acompletion",
    "api_key": SECRET,
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "startTime": "2026-01-05T10:00:00.000Z",
    "endTime": "2026-01-05T10:00:02.000Z",
    "completionStartTime": "2026-01-05T10:00:00.500Z",
    "model": "made-up",
    "status": "success",
    "cache_hit": "False",
    "messages": [SYSTEM],
    "session_id": "s",
    "metadata": {"usage_object": {"prompt_tokens_details": {"cached_tokens": 64}}},
}
GUIDELLM = {
    "type_": "generative_request_stats",
    "request_id": "r",
    "request_args": SECRET,
    "output": SECRET,
    "prompt_tokens": 100,
    "cached_tokens": 32,
    "output_tokens": 20,
    "request_start_time": 1767607200.25,
    "request_end_time": 1767607202.25,
    "request_latency": 2.0,
    "time_to_first_token_ms": 500.0,
    "info": {"status": "completed", "timings": {"request_start": 1767607200.25}},
}
GUIDELLM_HEAD = (
    '{"metadata": {"version": 2, "guidellm_version": "0.7.0"}, "config": {}, '
    '"benchmarks": [{"type_": "generative_benchmark", "requests": {"successful": ['
)
AIPERF = {
    "metadata": {"session_num": 1, "x_correlation_id": "c", "request_start_ns": 1759813207532900363, "was_cancelled": False},
    "metrics": {
        "input_sequence_length": {"value": 550, "unit": "tokens"},
        "output_sequence_length": {"value": 9, "unit": "tokens"},
        "time_to_first_token": {"value": 255.5, "unit": "ms"},
        "request_latency": {"value": 297500.0, "unit": "us"},
    },
    "error": None,
}
GENAI_PERF = {
    "timestamp": 1759813207532900363,
    "request_inputs": {"payload": json.dumps(CHAT["request"])},
    "response_timestamps": [1759813207632900363, 1759813207732900363],
    "response_outputs": [
        {"response": 'data: {"choices":[{"delta":{"content":"No ' + SECRET + '"}}]}\n\n'},
        {"response": 'data: {"choices":[{"delta":{"content":" at all."}}]}\n\ndata: [DONE]\n\n'},
    ],
}
WEKA = {
    "id": "8712b46f-04e",
    "models": ["made-up"],
    "block_size": 64,
    "requests": [
        {"t": 0.0, "type": "s", "model": "made-up", "in": 200, "out": 20, "hash_ids": [1, 2, 3], "api_time": 2.5},
        {"t": 9.0, "type": "s", "model": "made-up", "in": 260, "out": 30, "hash_ids": [1, 2, 3, 4], "ttft": 0.5},
    ],
}
VLLM = {
    "date": "20260105-100000",
    "backend": "vllm",
    "model_id": "made-up",
    "num_prompts": 2,
    "request_rate": "inf",
    "completed": 2,
    "request_throughput": 1.0,
    "duration": 2.0,
    "input_lens": [100, 200],
    "output_lens": [3, 2],
    "ttfts": [0.5, 0.25],
    "itls": [[0.1, 0.2], [0.05]],
    "start_times": [1000.5, 1001.0],
    "errors": ["", ""],
    "generated_texts": [SECRET, SECRET],
}
SGLANG = {
    "backend": "sglang",
    "dataset_name": "random",
    "request_rate": 4.0,
    "completed": 2,
    "total_output_tokens_retokenized": 5,
    "accept_length": 2.5,
    "input_lens": [100, 200],
    "output_lens": [3, 2],
    "ttfts": [0.5, 0.25],
    "itls": [[0.1, 0.2], [0.05]],
    "errors": ["", ""],
    "generated_texts": [SECRET, SECRET],
}
FORMS = {
    "aiperf": lines(AIPERF, {**AIPERF, "metadata": {**AIPERF["metadata"], "request_start_ns": 1759813208532900363}}),
    "azure": Sample(AZURE, head=HEADER),
    "burstgpt": Sample(
        ["5,ChatGPT,472,18,490,Conversation log", "45.5,GPT-4,1087,230,1317,API log"],
        head="Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n",
    ),
    "genai_perf": Sample(
        [json.dumps(GENAI_PERF)] * 2,
        head='{"service_kind": "openai", "experiments": [{"experiment": {"mode": "request_rate", "value": 1}, "requests": [',
        between=", ",
        tail='], "window_boundaries": []}]}',
    ),
    "guidellm": Sample([json.dumps(GUIDELLM)] * 2, head=GUIDELLM_HEAD, between=", ", tail='], "errored": [], "incomplete": []}}]}'),
    "litellm": lines(SPEND, {**SPEND, "startTime": "2026-01-05T10:00:01.000Z"}),
    "mooncake": lines(MOONCAKE, {**MOONCAKE, "timestamp": 500}),
    "openai_batch": lines(BATCH, {**BATCH, "custom_id": "b"}, timed=False),
    "openai_log": lines(CHAT, {**CHAT, "timestamp": "2026-01-05T10:00:01.5Z"}),
    "sglang_bench": lines(SGLANG, timed=False, per_record=2),
    "sharegpt": Sample([json.dumps(SHAREGPT)] * 2, head="[", between=", ", tail="]", timed=False, per_record=2),
    "table": Sample(["0.5,100,20", "1.5,200,30"], head="arrival_s,prompt_tokens,output_tokens\n"),
    "vllm_bench": lines(VLLM, per_record=2),
    "weka": lines(WEKA, {**WEKA, "id": "other"}, timed=False, per_record=2),
}
"""A sound sample of each form: a new one needs its own here."""
