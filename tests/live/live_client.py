"""The tests' own client, which shares nothing with what it tests: it knows what it sent, and what came back when."""

from __future__ import annotations

import json
import random
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

Engine = Literal["llama", "vllm"]
Prompt = tuple[int, ...]
FIRST, LAST = 1000, 40_000
"""Token ids between these are plain words of the model."""


@dataclass(frozen=True, kw_only=True)
class Chunk:
    at: float
    tokens: tuple[int, ...]
    timings: dict[str, Any] = field(default_factory=dict)
    """llama.cpp's own count of this request so far."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One request: what was asked, and each piece of the stream with its time."""

    prompt: Prompt
    sent: float
    ended: float
    chunks: tuple[Chunk, ...]

    @property
    def tokens(self) -> Prompt:
        return tuple(token for chunk in self.chunks for token in chunk.tokens)

    @property
    def tpot(self) -> float:
        return (self.chunks[-1].at - self.chunks[0].at) / (len(self.tokens) - len(self.chunks[0].tokens))


def words(count: int, seed: str) -> Prompt:
    """So many tokens that no other seed begins with."""
    drawn = random.Random(seed)
    return tuple(drawn.randrange(FIRST, LAST) for _ in range(count))


def ask(url: str, engine: Engine, prompt: Prompt, output: int, *, begun: threading.Semaphore, stop: threading.Event) -> Answer:
    """One stream, greedy, and never ended by the engine before ``output``: read to its end, or until it is to stop."""
    common = {"prompt": list(prompt), "temperature": 0, "seed": 1, "ignore_eos": True, "stream": True}
    own = (
        {"n_predict": output, "return_tokens": True, "timings_per_token": True}
        if engine == "llama"
        else {"model": "smol", "max_tokens": output, "return_token_ids": True}
    )
    path = "/completion" if engine == "llama" else "/v1/completions"
    body = json.dumps(common | own).encode()
    sent, chunks = time.time(), []
    with urllib.request.urlopen(urllib.request.Request(url + path, body, {"Content-Type": "application/json"}), timeout=300) as stream:
        for event in events(stream):
            ids = event.get("tokens") if engine == "llama" else next((one["token_ids"] for one in event["choices"]), None)
            if ids:
                chunks.append(Chunk(at=time.time(), tokens=tuple(ids), timings=event.get("timings", {})))
                begun.release()
            if stop.is_set():
                break
    return Answer(prompt=prompt, sent=sent, ended=time.time(), chunks=tuple(chunks))


def events(stream: Any) -> Iterator[dict[str, Any]]:
    for line in stream:
        if line.startswith(b"data: {"):
            yield json.loads(line[6:])


def closed_loop(url: str, engine: Engine, prompts: Sequence[Prompt], output: int, clients: int) -> tuple[Answer, ...]:
    """So many clients, each with its share of the prompts, one after another; all answers in the order of the prompts."""
    found: dict[int, Answer] = {}
    begun, stop = threading.Semaphore(0), threading.Event()

    def client(own: int) -> None:
        for number in range(own, len(prompts), clients):
            found[number] = ask(url, engine, prompts[number], output, begun=begun, stop=stop)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(found) != len(prompts):
        raise RuntimeError(f"{len(prompts) - len(found)} of {len(prompts)} requests have no answer")
    return tuple(found[number] for number in range(len(prompts)))


@contextmanager
def streaming(url: str, engine: Engine, prompts: Sequence[Prompt], output: int) -> Iterator[list[Answer]]:
    """A stream of each prompt, all under way when the block begins, and stopped when it ends; filled then."""
    found: list[Answer] = []
    begun, stop = [threading.Semaphore(0) for _ in prompts], threading.Event()

    def client(own: int) -> None:
        found.append(ask(url, engine, prompts[own], output, begun=begun[own], stop=stop))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(len(prompts))]
    for thread in threads:
        thread.start()
    try:
        for one in begun:
            if not one.acquire(timeout=120):
                raise TimeoutError("a stream has not begun within 120 s")
        yield found
        if not all(thread.is_alive() for thread in threads):
            raise RuntimeError("a stream has ended before the block; make it longer")
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@contextmanager
def going_round(url: str, engine: Engine, requests: Iterator[tuple[Prompt, int]], clients: int) -> Iterator[list[Answer]]:
    """So many clients that ask one request after the other until the block ends; what was answered, filled meanwhile."""
    found: list[Answer] = []
    lock, begun, stop = threading.Lock(), threading.Semaphore(0), threading.Event()

    def client() -> None:
        while not stop.is_set():
            with lock:
                prompt, output = next(requests)
            found.append(ask(url, engine, prompt, output, begun=begun, stop=stop))

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield found
        if not all(thread.is_alive() for thread in threads):
            raise RuntimeError("a client has ended before the block")
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def waited_for(found: Sequence[Answer], more: int, within_s: float) -> None:
    """Until so many more were answered."""
    until, wanted = time.time() + within_s, len(found) + more
    while len(found) < wanted:
        if time.time() > until:
            raise TimeoutError(f"{wanted - len(found)} of {more} requests were not answered within {within_s:.0f} s")
        time.sleep(0.1)


def decoded_s(answers: Sequence[Answer], start: float, end: float) -> float:
    """Seconds between two moments that streams spent from their first token to their last, added up."""
    spans = [(one.chunks[0].at, one.chunks[-1].at) for one in answers if one.chunks]
    return sum(max(min(last, end) - max(first, start), 0.0) for first, last in spans)


def within(answers: Sequence[Answer], start: float, end: float) -> int:
    """Tokens that came between two moments."""
    return sum(len(chunk.tokens) for answer in answers for chunk in answer.chunks if start < chunk.at <= end)


def prompt_lookup(context: Prompt, longest: int, shortest: int, count: int) -> Prompt:
    """What n-gram speculation drafts: what followed the first place of the longest end that was there before."""
    for size in range(longest, shortest - 1, -1):
        end = context[-size:]
        for place in range(len(context) - size):
            if context[place : place + size] == end:
                return context[place + size : place + size + count]
    return ()
