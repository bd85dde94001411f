"""Several engines behind one address: a proxy that asks them in turn, and llama.cpp's router before its models."""

from __future__ import annotations

import json

import pytest
from hostile_server import Server, in_turn, serving, status, whole

import breakeven as be
from breakeven.errors import InputError


def llama(tokens: int) -> str:
    told = {"tokens_predicted_total": tokens, "tokens_predicted_seconds_total": tokens / 20, "n_decode_total": tokens / 2}
    told |= {"requests_processing": 0, "n_busy_slots_per_decode": 2, "prompt_tokens_total": 3 * tokens}
    return "".join(f"llamacpp:{name} {value}\n" for name, value in told.items())


def observed(server: Server, readings: int) -> object:
    return be.observe(f"{server.url}/metrics", for_s=0.05 * readings, every_s=0.05)


def test_engines_of_llamacpp_that_answer_in_turn_are_refused_by_what_their_counters_do() -> None:
    pages = [whole(llama(first + 10 * place)) for place in range(4) for first in (50_000, 20_000)]
    with serving({"/metrics": in_turn(*pages)}) as server, pytest.raises(InputError, match="several engines answer there in turn"):
        observed(server, 8)


def test_one_that_begins_anew_again_and_again_is_no_two() -> None:
    counts = [4000, 4200, 10, 900, 2500, 4300, 20, 1500, 3100, 4400]
    with serving({"/metrics": in_turn(*(whole(llama(count)) for count in counts))}) as server:
        found = observed(server, 9)
    assert found is not None


class TestRouter:
    PROPS = json.dumps({"role": "router", "max_instances": 4, "model_path": "none"})
    MODELS = json.dumps({"data": [{"id": "qwen"}, {"id": "gemma"}, {"object": "none"}]})

    def test_names_its_models_and_how_one_is_asked_for_without_loading_it(self) -> None:
        pages = {
            "/metrics": status(400),
            "/props": whole(self.PROPS, "application/json"),
            "/v1/models": whole(self.MODELS, "application/json"),
        }
        with serving(pages) as server, pytest.raises(InputError) as caught:
            be.observe(server.url, for_s=0.1, every_s=0.05)
        line = str(caught.value)
        assert "?model=NAME&autoload=false" in line and "qwen, gemma" in line and "\n" not in line

    @pytest.mark.parametrize("props", ["", "[]", "{", '{"role": "model"}', '{"role": ["router"]}'])
    def test_a_server_that_is_none_is_refused_for_what_it_said(self, props: str) -> None:
        pages = {"/metrics": status(400), "/props": whole(props, "application/json")}
        with serving(pages) as server, pytest.raises(InputError, match="status 400"):
            be.observe(server.url, for_s=0.1, every_s=0.05)

    def test_a_model_that_is_named_is_read(self) -> None:
        with serving({"/metrics": whole(llama(100))}) as server:
            be.observe(f"{server.url}/metrics?model=qwen&autoload=false", for_s=0.1, every_s=0.05)
            assert "/metrics?model=qwen&autoload=false" in server.asked
            assert "/props?model=qwen&autoload=false" in server.asked
