"""A stand-in for a Prometheus server: series in memory, its HTTP API as far as it is asked, and answers that are wrong on purpose."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import numpy as np

LOOKBACK_S = 300.0
MATCHER = re.compile(r'(\w+)(=~|!~|!=|=)"((?:[^"\\]|\\.)*)"')
Raw = tuple[int, str, bytes]


@dataclass
class Kept:
    """A series: when it was scraped, and what stood there; it is marked stale at its end where its target went."""

    labels: dict[str, str]
    times: np.ndarray
    values: np.ndarray
    stale_s: float = float("inf")
    native: list[dict[str, object]] | None = None


@dataclass
class Stub:
    """What the server has, what it answers wrongly, and what it was asked."""

    series: list[Kept] = field(default_factory=list)
    wrong: dict[str, Callable[[], Raw]] = field(default_factory=dict)
    """By endpoint (``query_range``), or ``*``."""
    warnings: list[str] = field(default_factory=list)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    most_points: int = 11_000
    no_stamps: bool = False
    url: str = ""


def matched(selector: str, labels: dict[str, str]) -> bool:
    for name, sign, quoted in MATCHER.findall(selector):
        value = labels.get(name, "")
        wanted = quoted.replace('\\"', '"').replace("\\\\", "\\")
        same = value == wanted if sign in ("=", "!=") else re.fullmatch(wanted, value) is not None
        if same != (sign in ("=", "=~")):
            return False
    return True


def at(kept: Kept, times: np.ndarray) -> np.ndarray:
    """Which reading holds at each time; -1 where none does: it is older than the lookback, or the target had gone."""
    spots = np.searchsorted(kept.times, times, side="right") - 1
    old = times - kept.times[np.maximum(spots, 0)] >= LOOKBACK_S
    return np.where((spots < 0) | old | (times >= kept.stale_s), -1, spots)


def query_range(stub: Stub, asked: dict[str, str]) -> Raw:
    start, end, step = (float(asked[name]) for name in ("start", "end", "step"))
    if (end - start) / step > stub.most_points:
        return refused("exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)")
    stamped = asked["query"].startswith("timestamp(")
    if stamped and stub.no_stamps:
        return refused("unknown function with name timestamp")
    times = start + np.arange(int((end - start) / step + 1e-9) + 1) * step
    found: list[dict[str, object]] = []
    by = re.match(r"count by \(([\w, ]+)\)", asked["query"])
    for kept in stub.series:
        if not matched(asked["query"], kept.labels):
            continue
        spots = at(kept, times)
        here = [(time, spot) for time, spot in zip(times.tolist(), spots.tolist(), strict=True) if spot >= 0]
        if not here:
            continue
        labels = {name: value for name, value in kept.labels.items() if not (stamped and name == "__name__")}
        if by is not None:
            labels = {name: labels[name] for name in by[1].split(", ") if name in labels}
        if kept.native is not None and not stamped:
            found.append({"metric": labels, "histograms": [[time, kept.native[spot]] for time, spot in here]})
        else:
            values = kept.times if stamped else kept.values
            found.append({"metric": labels, "values": [[time, written(float(values[spot]))] for time, spot in here]})
    return answered(stub, {"resultType": "matrix", "result": found})


def query(stub: Stub, asked: dict[str, str]) -> Raw:
    end, span = float(asked["time"]), float(re.findall(r"\[(\d+)s\]$", asked["query"])[0])
    found = []
    for kept in stub.series:
        inside = (kept.times > end - span) & (kept.times <= end)
        if matched(asked["query"], kept.labels) and inside.any():
            values = [[time, written(value)] for time, value in zip(kept.times[inside].tolist(), kept.values[inside].tolist(), strict=True)]
            found.append({"metric": kept.labels, "values": values})
    return answered(stub, {"resultType": "matrix", "result": found})


def series(stub: Stub, asked: dict[str, str]) -> Raw:
    return answered(stub, [kept.labels for kept in stub.series if matched(asked["match[]"], kept.labels)])


def label_values(stub: Stub, asked: dict[str, str]) -> Raw:
    return answered(stub, sorted({kept.labels["__name__"] for kept in stub.series if matched(asked["match[]"], kept.labels)}))


def written(value: float) -> str:
    return {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}.get(str(value), f"{value:.17g}")


def answered(stub: Stub, data: object) -> Raw:
    body = {"status": "success", "data": data, **({"warnings": stub.warnings} if stub.warnings else {})}
    return 200, "application/json", json.dumps(body).encode()


def refused(reason: str, status: int = 400, kind: str = "bad_data") -> Raw:
    return status, "application/json", json.dumps({"status": "error", "errorType": kind, "error": reason}).encode()


API = {"query_range": query_range, "query": query, "series": series, "label/__name__/values": label_values}


@contextmanager
def serving(stub: Stub) -> Iterator[Stub]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            name = parts.path.partition("/api/v1/")[2]
            asked = {key: values[0] for key, values in parse_qs(parts.query).items()}
            stub.asked.append((name, asked))
            stub.headers.append(dict(self.headers))
            wrong = stub.wrong.get(name) or stub.wrong.get("*")
            status, kind, body = wrong() if wrong is not None else API[name](stub, asked) if name in API else (404, "text/plain", b"404")
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def engine(
    instance: str = "10.0.0.1:8000",
    *,
    start: float = 0.0,
    end: float = 86_400.0,
    every: float = 15.0,
    model: str = "m",
    rate: Callable[[np.ndarray], np.ndarray] | None = None,
    restarts: tuple[float, ...] = (),
    stale: bool = True,
    **labels: str,
) -> list[Kept]:
    """A vLLM engine's series: requests at a rate (by time), 100 tokens each, and as many running as a request of 10 s makes."""
    times = np.arange(start, end, every)
    per_s = np.full(len(times), 2.0) if rate is None else rate(times)
    requests = np.cumsum(per_s * every)
    for restart in restarts:
        begun = times >= restart
        if begun.any():
            requests[begun] -= requests[np.argmax(begun)]
    common = {"instance": instance, "job": "vllm", "model_name": model, "engine": "0", **labels}
    gone = end if stale else float("inf")

    def kept(name: str, values: np.ndarray, **more: str) -> Kept:
        return Kept(labels={"__name__": name, **common, **more}, times=times, values=values, stale_s=gone)

    return [
        kept("vllm:num_requests_running", per_s * 10.0),
        kept("vllm:num_requests_waiting", per_s * 0.0),
        kept("vllm:generation_tokens_total", requests * 100.0),
        kept("vllm:request_success_total", requests * 0.75, finished_reason="stop"),
        kept("vllm:request_success_total", requests * 0.25, finished_reason="length"),
    ]
