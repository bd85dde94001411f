"""What reading an engine costs us: processor time for one reading of a large page, from the request to the series."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from figure import Figure, at_most

LINES, OF_INTEREST, READINGS = 10_000, 200, 15
LABELS = 'engine="0",model_name="meta-llama/Llama-3.1-70B-Instruct"'
HISTOGRAMS = ("time_to_first_token_seconds", "inter_token_latency_seconds", "e2e_request_latency_seconds", "request_queue_time_seconds")


def page(lines: int = LINES, of_interest: int = OF_INTEREST) -> bytes:
    """A vLLM page: counters, gauges and histograms that are read, among families of the process and of a web framework that are not."""
    counters, gauges = ("generation_tokens_total", "prompt_tokens_total"), ("num_requests_running", "num_requests_waiting")
    mine = [f"vllm:{name}{{{LABELS}}} 12.0" for name in (*counters, *gauges)]
    buckets = (of_interest - len(mine)) // len(HISTOGRAMS) - 2
    for name in HISTOGRAMS:
        mine += [f'vllm:{name}_bucket{{le="{0.001 * 1.3**at:.6f}",{LABELS}}} {at * 10}.0' for at in range(buckets - 1)]
        mine += [f'vllm:{name}_bucket{{le="+Inf",{LABELS}}} {buckets * 10}.0']
        mine += [f"vllm:{name}_sum{{{LABELS}}} 345.6", f"vllm:{name}_count{{{LABELS}}} {buckets * 10}.0"]
    others = [
        f'http_request_duration_seconds_bucket{{handler="/v1/chat/completions",le="{at}.0",method="POST",status="2xx"}} {at}.0'
        for at in range(lines - len(mine))
    ]
    return ("\n".join(mine[:100] + others + mine[100:]) + "\n").encode()


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, body: bytes, *given: Any) -> None:
        self.body = body
        super().__init__(*given)

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def served(body: bytes) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, body))
    Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()


def measure_scrape() -> Figure:
    """Of this thread: what the server takes, which is ours only here, is not in it."""
    from breakeven.observation import scrape
    from breakeven.observation.record import Record

    record = Record(every_s=1.0)
    taken = []
    with served(page()) as url:
        [target] = scrape.targets([url])
        for _ in range(READINGS):
            began = time.thread_time()
            record.add(scrape.scrape(target))
            taken.append(time.thread_time() - began)
    return at_most("scrape", statistics.median(taken[1:]) * 1e3, "ms", 60.0)


BENCHES: dict[str, Callable[[], Figure | list[Figure]]] = {"scrape": measure_scrape}
