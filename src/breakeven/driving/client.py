"""Clients in a closed loop: each sends a request, reads its stream to the end, and sends the next."""

from __future__ import annotations

import http.client
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields, replace
from threading import Event, Lock, Thread

from breakeven.driving.dialect import Ask, Dialect, Piece
from breakeven.driving.load import Load, prompt_ids, prompt_text
from breakeven.driving.outcome import FAILED, Chunk, Driven, End, Request
from breakeven.driving.stream import ACCEPT, Broken, Stream
from breakeven.endpoint import Endpoint, asked

LOOK_S = 0.05
LEAVE_S = 5.0
"""Time that clients are given to leave after their streams were ended."""


def run(endpoint: Endpoint, dialect: Dialect, load: Load, *, model: str = "") -> Driven:
    """The load, driven to its end: all requests answered, its seconds over, a request failed, or Ctrl-C."""
    return _Loop(endpoint, dialect, load, model).run()


class _Loop:
    """What the clients of one load share."""

    def __init__(self, endpoint: Endpoint, dialect: Dialect, load: Load, model: str) -> None:
        self.asked, self.dialect, self.load, self.model = asked(endpoint, dialect.path, ACCEPT), dialect, load, model
        self.lock, self.over = Lock(), Event()
        self.done: list[Request] = []
        self.streams: dict[int, Stream] = {}
        self.next = 0
        self.start = time.perf_counter()

    def run(self) -> Driven:
        started = time.time()
        threads = [Thread(target=self._client, args=(number,), daemon=True) for number in range(self.load.concurrency)]
        interrupted = False
        try:
            for thread in threads:
                thread.start()
            self._wait(threads)
        except KeyboardInterrupt:
            interrupted = True
        timed_out = any(thread.is_alive() for thread in threads) and not self.over.is_set()
        self._end(threads)
        requests = tuple(sorted(self.done, key=lambda one: one.number))
        failed = any(one.end in FAILED for one in requests)
        ended = "interrupted" if interrupted else "failed" if failed else "seconds" if timed_out else "all_sent"
        return Driven(requests=requests, start_unix_s=started, seconds=self.now(), ended=ended)  # type: ignore[arg-type]

    def now(self) -> float:
        return time.perf_counter() - self.start

    def _wait(self, threads: Sequence[Thread]) -> None:
        while any(thread.is_alive() for thread in threads) and not self.over.is_set() and self.now() < self.load.seconds:
            self.over.wait(LOOK_S)

    def _end(self, threads: Sequence[Thread]) -> None:
        """No further request, and streams under way ended."""
        self.over.set()
        with self.lock:
            for stream in self.streams.values():
                stream.end()
        until = time.perf_counter() + LEAVE_S
        for thread in threads:
            if thread.ident is not None:
                thread.join(max(until - time.perf_counter(), 0.0))

    def _take(self) -> int | None:
        """The next request's number; None where there is no more to send."""
        with self.lock:
            if self.over.is_set() or self.next >= self.load.requests:
                return None
            self.next += 1
            return self.next - 1

    def _client(self, client: int) -> None:
        while (number := self._take()) is not None:
            stream = Stream(self.asked, self.load.silence_s)
            with self.lock:
                self.streams[client] = stream
            found = self._request(stream, number, client)
            stream.close()
            with self.lock:
                self.done.append(found)
                if found.end in FAILED:
                    self.over.set()

    def _request(self, stream: Stream, number: int, client: int) -> Request:
        ids = prompt_ids(self.load, number)
        prompt = ids if self.dialect.takes_ids else prompt_text(self.load, number)
        sent = Request(
            number=number,
            client=client,
            prompt_tokens=len(ids),
            asked_tokens=self.load.output_tokens,
            sent_s=self.now(),
            ended_s=0.0,
            end="unreachable",
        )
        read = _Read(sent)
        slot = client if self.load.placed else None
        end: End = "unreachable"
        with suppress(ConnectionError, OSError, http.client.HTTPException, Broken):
            end = self._read(stream, read, Ask(prompt=prompt, output_tokens=self.load.output_tokens, model=self.model, slot=slot))
        return read.closed(self.now(), "stopped" if stream.ended else end)

    def _read(self, stream: Stream, read: _Read, ask: Ask) -> End:
        stream.connect()
        body = self.dialect.body(ask)
        read.sent(self.now())
        try:
            status = stream.send(body)
            read.status(status)
            if status >= 300:
                return "status"
            for event in stream.events():
                read.event(self.dialect.read(event), self.now())
        except TimeoutError:
            return "silent"
        except (Broken, http.client.HTTPException):
            return "cut" if read.tokens else "not_understood"
        except OSError:
            return "cut"
        return read.end()


class _Read:
    """A request while its stream is read."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.chunks: list[Chunk] = []
        self.tokens = 0
        self.failed = False
        self.told = Piece()

    def sent(self, at_s: float) -> None:
        self.request = replace(self.request, sent_s=at_s)

    def status(self, status: int) -> None:
        self.request = replace(self.request, status=status)

    def event(self, piece: Piece, at_s: float) -> None:
        self.failed = self.failed or piece.failed
        new = piece.total - self.tokens if piece.total is not None else piece.new or 0
        if new > 0:
            self.tokens += new
            self.chunks.append(Chunk(at_s=at_s, tokens=new))
        told = {field.name: getattr(piece, field.name) for field in fields(Piece)}
        self.told = replace(self.told, **{name: value for name, value in told.items() if value is not None})

    def end(self) -> End:
        if self.failed:
            return "cut" if self.tokens else "empty"
        return "done" if self.tokens >= self.request.asked_tokens else "cut" if self.tokens else "empty"

    def closed(self, at_s: float, end: End) -> Request:
        told = self.told
        return replace(
            self.request,
            ended_s=at_s,
            end=end,
            chunks=tuple(self.chunks),
            told_prompt_tokens=told.prompt_tokens,
            told_output_tokens=told.total,
            cached_tokens=told.cached_tokens,
            drafted_tokens=told.drafted_tokens,
            accepted_tokens=told.accepted_tokens,
        )
