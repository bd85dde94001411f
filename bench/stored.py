"""A day of metrics history from a local stand-in for a Prometheus server, read in a process of its own; see README.md."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from figure import Figure, at_most, ran

DAY_S, STEP_S = 86_400, 15
NAMES = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "generation_tokens_total", "prompt_tokens_total")
REPLICAS = 4
"""Of five series each: twenty."""


def made_series() -> list[dict[str, str]]:
    return [
        {"__name__": f"vllm:{name}", "instance": f"10.0.0.{replica}:8000", "job": "vllm", "model_name": "m", "engine": "0"}
        for replica in range(REPLICAS)
        for name in NAMES
    ]


def answer(path: str, asked: dict[str, str]) -> object:
    """What the server says; counters rise, gauges go up and down."""
    series = made_series()
    if path.endswith("/values"):
        return [f"vllm:{name}" for name in NAMES]
    if path.endswith("/series"):
        return series
    if path.endswith("/query"):
        end = float(asked["time"])
        return {"resultType": "matrix", "result": [{"metric": series[0], "values": [[end - 30, "1"], [end - 15, "2"], [end, "1"]]}]}
    start, end, step = (int(float(asked[name])) for name in ("start", "end", "step"))
    times = range(start, end + 1, step)
    if asked["query"].startswith("timestamp("):
        found = [{name: value for name, value in one.items() if name != "__name__"} for one in series[:: len(NAMES)]]
        return {"resultType": "matrix", "result": [{"metric": one, "values": [[time, f"{time}.25"] for time in times]} for one in found]}
    return {"resultType": "matrix", "result": [{"metric": one, "values": values(one["__name__"], times)} for one in series]}


def values(name: str, times: range) -> list[list[object]]:
    if name.endswith("_total"):
        return [[time, str((time - times[0]) * 1234 + time % 7)] for time in times]
    return [[time, repr((time // 60 % 40) / 41)] for time in times]


@contextmanager
def serving() -> Iterator[str]:
    """The stand-in on a port of this process; an answer is made once."""
    made: dict[str, bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if self.path not in made:
                asked = {key: found[0] for key, found in parse_qs(parts.query).items()}
                made[self.path] = json.dumps({"status": "success", "data": answer(parts.path, asked)}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(made[self.path])))
            self.end_headers()
            self.wfile.write(made[self.path])

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def read(url: str) -> dict[str, float]:
    """A day read and summed up as evidence, imports included."""
    began = time.perf_counter()
    from breakeven.endpoint import Endpoint
    from breakeven.observation import history
    from breakeven.observation.prometheus import Server
    from breakeven.observation.summary import summarised
    from breakeven.spec.evidence import Told

    end = 1_790_035_200.0
    asked = history.HistoryQuery(match='{job="vllm"}', start_s=end - DAY_S, end_s=end - 1, step_s=float(STEP_S))
    timeline = history.read(Server(endpoint=Endpoint(url=url)), asked)
    evidence = summarised(timeline, Told(engine=timeline.engine), target=url, source="history")
    points = sum(len(one.times) for one in timeline.series)
    windows = 0 if evidence.windows is None else len(evidence.windows.output_tokens)
    return {"seconds": time.perf_counter() - began, "points": points, "series": len(timeline.series), "windows": windows}


def measure_day() -> list[Figure]:
    """Best of three, in seconds of the processor: what the server and other programs take is not in it."""
    with serving() as url:
        runs = [ran([sys.executable, str(Path(__file__).resolve()), url]) for _ in range(3)]
    found = [json.loads(run.out) for run in runs]
    if found[0]["points"] != len(NAMES) * REPLICAS * DAY_S // STEP_S:
        sys.exit(f"bench: {found[0]['points']} points came back")
    return [
        at_most("history", min(run.processor_s for run in runs), "s", 2.0),
        at_most("history-memory", min(run.resident_bytes for run in runs) / 1e6, "MB", 200.0),
    ]


BENCHES: dict[str, Callable[[], Figure | list[Figure]]] = {"history": measure_day}

if __name__ == "__main__":
    print(json.dumps(read(sys.argv[1])))
