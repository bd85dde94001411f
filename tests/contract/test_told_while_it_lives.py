"""What an engine told while it lived is kept, whatever becomes of it before the window ends."""

from __future__ import annotations

import json
import os
import signal

from composed_pages import Counting, vllm
from hostile_server import Answering, Handler, Server, serving, status, to_the_end, whole

import breakeven
from breakeven.observation.tellings.vllm import INFO, MODELS, VERSION

LONG = {"for_s": 600.0, "every_s": 0.1}
MOST_PAGES = 60
OTHERS = (MODELS, VERSION, INFO)


def telling(version: str) -> dict[str, Answering]:
    models = {"data": [{"id": "m", "root": "Qwen/Qwen3-8B", "max_model_len": 4608}]}
    said = {MODELS: models, VERSION: {"version": version}}
    return {path: whole(json.dumps(page), "application/json") for path, page in said.items()}


def first_then(path: str, first: Answering, later: Answering) -> Answering:
    """One answer to the first question, another to those after it."""

    def answer(handler: Handler) -> None:
        chosen = first if handler.state.asked.count(path) == 1 else later
        chosen(handler)

    return answer


class Killed:
    """It answers until its other pages were asked for, and then closes every connection; the third time the reader is ended."""

    def __init__(self, server: Server) -> None:
        self.server, self.counting, self.left = server, Counting(), 3

    def is_dead(self) -> bool:
        asked = self.server.asked
        return (set(OTHERS) <= set(asked) and asked.count("/metrics") > 3) or asked.count("/metrics") > MOST_PAGES

    def page(self, handler: Handler) -> None:
        if not self.is_dead():
            self.counting(handler)
            return
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)

    def other(self, answer: Answering) -> Answering:
        return lambda handler: None if self.is_dead() and handler.state.asked.count(handler.path) > 1 else answer(handler)


def test_of_an_engine_that_is_killed_meanwhile_the_evidence_has_version_and_model() -> None:
    with serving({}) as server:
        killed = Killed(server)
        server.pages |= {"/metrics": killed.page, **{path: killed.other(answer) for path, answer in telling("0.12.0").items()}}
        evidence = breakeven.observe(f"{server.url}/metrics", **LONG)
    assert evidence.missed > 0 and any(one.key == "observe.note_died" for one in evidence.warnings)
    assert (evidence.told.version, evidence.told.model) == ("0.12.0", "Qwen/Qwen3-8B")
    assert evidence.told.settings["max_model_len"] == 4608 and evidence.told.sources["version"] == VERSION
    assert server.asked.count("/metrics") < MOST_PAGES, "it was asked before it died"


def test_an_engine_that_goes_on_is_asked_for_each_page_once() -> None:
    with serving({"/metrics": Counting(), **telling("0.12.0")}) as server:
        evidence = breakeven.observe(f"{server.url}/metrics", for_s=0.5, every_s=0.1)
    others = [path for path in server.asked if path != "/metrics"]
    assert sorted(others) == sorted(OTHERS) and evidence.told.version == "0.12.0"


def test_one_that_began_anew_is_asked_again_and_what_it_tells_no_more_stands() -> None:
    pages = to_the_end(*(whole(vllm(tokens)) for tokens in (500, 600, 10, 20)))
    with serving({"/metrics": pages, **telling("0.12.0")}) as server:
        server.pages[MODELS] = first_then(MODELS, server.pages[MODELS], status(404))
        server.pages[VERSION] = first_then(VERSION, server.pages[VERSION], telling("0.13.0")[VERSION])
        evidence = breakeven.observe(f"{server.url}/metrics", **LONG)
    assert any(one.key == "observe.note_restart" for one in evidence.warnings)
    assert server.asked.count(MODELS) == server.asked.count(VERSION) == 2
    assert (evidence.told.version, evidence.told.model) == ("0.13.0", "Qwen/Qwen3-8B") and MODELS not in evidence.told.silent


def test_what_it_had_no_time_for_is_asked_again_at_the_end() -> None:
    with serving({"/metrics": Counting(), **telling("0.12.0")}) as server:
        server.pages[VERSION] = first_then(VERSION, status(503), server.pages[VERSION])
        evidence = breakeven.observe(f"{server.url}/metrics", for_s=0.3, every_s=0.1)
    assert evidence.told.version == "0.12.0" and VERSION not in evidence.told.silent
    assert server.asked.count(VERSION) == 2 and server.asked.count(MODELS) == 1
