"""Pages of metrics as a vLLM engine would have them, small, composed for tests."""

from __future__ import annotations

from hostile_server import Answering, Handler, whole

MODEL = "m"


def vllm(tokens: float | str, *, running: int = 2, started: float | None = None, engine: str = "0", more: str = "") -> str:
    """A page on which so many tokens were generated."""
    labels = f'{{engine="{engine}",model_name="{MODEL}"}}'
    began = "" if started is None else f"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds {started}\n"
    return f"""{began}# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{labels} {running}
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{labels} 0
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{labels} {tokens}
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{labels} {tokens}
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{labels} 0.25
{more}"""


def sglang(tokens: int) -> str:
    labels = '{model_name="m"}'
    return f"# TYPE sglang:num_running_reqs gauge\nsglang:num_running_reqs{labels} 1\nsglang:generation_tokens_total{labels} {tokens}\n"


class Counting:
    """An engine that generates some tokens between any two readings."""

    def __init__(self, first: int = 100, step: int = 10, started: float | None = None) -> None:
        self.tokens, self.step, self.started = first, step, started

    def __call__(self, handler: Handler) -> None:
        page = vllm(self.tokens, started=self.started)
        self.tokens += self.step
        answering: Answering = whole(page)
        answering(handler)
