"""A streaming server with a known law of its steps: llama.cpp's pages and streams, one token of every running sequence a step."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from typing import Any

Law = Callable[[int, float], float]
"""Seconds of a step of so many sequences at a mean context."""


@dataclass
class Sequence:
    tokens: int
    """Cached so far."""
    left: int
    out: SimpleQueue[int | None] = field(default_factory=SimpleQueue)


class Engine:
    """Steps one after another, as long as something runs."""

    def __init__(self, law: Law, *, slots: int = 8, length: int = 4096, prompt_s_per_token: float = 0.0, fault: str = "") -> None:
        self.law, self.slots, self.length, self.prompt_s, self.fault = law, slots, length, prompt_s_per_token, fault
        self.lock = threading.Condition()
        self.running: list[Sequence] = []
        self.waiting: list[Sequence] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.asked: list[str] = []
        self.steps = 0
        self.tokens = 0
        self.others = 0
        """Tokens a step that somebody else's requests take."""
        self.build = "b6100-0123abc"
        self.closes = False
        """Whether it closes the connection behind each answer, and says so."""
        self.says_it_drafts = False
        self.drafted = 0
        """Tokens that it drafts in a step."""
        self.most_running = 0
        self.over = False
        self.thread = threading.Thread(target=self._work, daemon=True)

    def put(self, body: dict[str, Any], headers: dict[str, str]) -> Sequence:
        one = Sequence(tokens=len(body["prompt"]), left=int(body["n_predict"]))
        with self.lock:
            self.bodies.append(body)
            self.headers.append(headers)
            self.waiting.append(one)
            self.lock.notify_all()
        return one

    def _work(self) -> None:
        due = time.perf_counter()
        while not self.over:
            with self.lock:
                if not self.running and not self.waiting:
                    self.lock.wait(0.1)
                    due = time.perf_counter()
                    continue
                taken = self.waiting[: self.slots - len(self.running)]
                self.waiting = self.waiting[len(taken) :]
                self.running += taken
                batch = list(self.running)
                self.most_running = max(self.most_running, len(batch))
            due += sum(one.tokens for one in taken) * self.prompt_s
            due += self.law(len(batch), sum(one.tokens for one in batch) / len(batch))
            time.sleep(max(due - time.perf_counter(), 0.0))
            self._emit(batch)

    def _emit(self, batch: list[Sequence]) -> None:
        self.steps += 1
        self.tokens += len(batch)
        for one in batch:
            one.tokens, one.left = one.tokens + 1, one.left - 1
            one.out.put(1)
            if one.left == 0:
                one.out.put(None)
        with self.lock:
            self.running = [one for one in self.running if one.left > 0]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Stub

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        engine = self.server.engine
        pages: dict[str, object] = {
            "/props": {
                "default_generation_settings": {"n_ctx": engine.length},
                "total_slots": engine.slots,
                "model_path": "stub.gguf",
                "build_info": engine.build,
            },
            "/v1/models": {"data": [{"id": "stub"}]},
            "/slots": [{"id": 0, "n_ctx": engine.length, "speculative": engine.says_it_drafts}],
        }
        if self.path == "/metrics":
            counted = {"n_decode_total": engine.steps, "tokens_predicted_total": engine.tokens + engine.others * engine.steps}
            counted["spec_decode_num_draft_tokens_total"] = engine.drafted * engine.steps
            text = "".join(f"# TYPE llamacpp:{name} counter\nllamacpp:{name} {value}\n" for name, value in counted.items())
            self._answer(200, text.encode(), "text/plain; version=0.0.4")
        elif self.path in pages:
            self._answer(200, json.dumps(pages[self.path]).encode(), "application/json")
        else:
            self._answer(404, b"{}", "application/json")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        engine = self.server.engine
        engine.asked.append(self.path)
        if engine.fault == "status":
            self._answer(500, b'{"error":{"code":500}}', "application/json")
            return
        if engine.fault == "redirect":
            self.send_response(307)
            self.send_header("Location", "http://127.0.0.1:9/completion")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        one = engine.put(body, dict(self.headers))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        if engine.closes:
            self.send_header("Connection", "close")
        self.end_headers()
        if engine.fault == "endless":
            for _ in range(3):
                self._chunk(b"data: " + b"a" * 2**20)
        elif engine.fault != "empty":
            self._stream(one, int(body["n_predict"]), len(body["prompt"]))
        self._chunk(b"")

    def _stream(self, one: Sequence, asked: int, prompt: int) -> None:
        sent = 0
        while one.out.get() is not None:
            sent += 1
            self._event({"content": "a", "tokens": [1], "stop": False, "tokens_predicted": sent, "tokens_evaluated": prompt})
            if self.server.engine.fault == "dies" and sent == asked // 2:
                self.close_connection = True
                self.connection.close()
                return
        timings = {"cache_n": 0, "prompt_n": prompt, "predicted_n": sent}
        self._event({"content": "", "tokens": [], "stop": True, "tokens_predicted": sent, "tokens_evaluated": prompt, "timings": timings})

    def _event(self, said: dict[str, object]) -> None:
        self._chunk(b"data: " + json.dumps(said).encode() + b"\n\n")

    def _chunk(self, piece: bytes) -> None:
        try:
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            self.wfile.flush()
        except OSError:
            self.close_connection = True

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Stub(ThreadingHTTPServer):
    daemon_threads = True
    engine: Engine

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has left is no fault of the server."""


@contextmanager
def serving(engine: Engine) -> Iterator[Stub]:
    server = Stub(("127.0.0.1", 0), Handler)
    server.engine = engine
    engine.thread.start()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        engine.over = True
        server.shutdown()
        server.server_close()
