"""The client of a load: what it sends, when tokens came back, and that every bound of it holds."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from stub_engine import Engine, serving

from breakeven import driving
from breakeven.driving import client
from breakeven.driving.dialect import Ask
from breakeven.driving.grid import PROMPTS, Bounds, Room, plan
from breakeven.driving.load import prompt_ids
from breakeven.driving.outcome import Chunk, Driven, Request
from breakeven.driving.steps import stepped
from breakeven.driving.tour import tour
from breakeven.endpoint import Endpoint
from breakeven.errors import InputError
from breakeven.messages import text

LLAMA = driving.dialect_of("llamacpp")
SMALL = driving.Load(concurrency=2, prompt_tokens=16, output_tokens=6, requests=4, seconds=20.0)


def quick(b: int, c: float) -> float:
    return 0.004


class TestWhatIsSent:
    def test_every_request_has_its_tokens_counted_by_both_sides(self) -> None:
        with serving(Engine(quick)) as stub:
            found = driving.run(Endpoint(url=stub.url), LLAMA, SMALL)
        assert found.ended == "all_sent" and [one.end for one in found.requests] == ["done"] * 4
        assert (found.prompt_tokens, found.output_tokens) == (64, 24)
        assert all(one.told_prompt_tokens == 16 and one.told_output_tokens == one.output_tokens == 6 for one in found.requests)
        assert len(stub.engine.bodies) == 4 and stub.engine.most_running == 2

    def test_no_two_prompts_begin_alike_and_the_same_salt_sends_the_same(self) -> None:
        first = [prompt_ids(SMALL, number) for number in range(50)]
        assert len({prompt[:2] for prompt in first}) == 50
        assert first == [prompt_ids(SMALL, number) for number in range(50)]
        assert first[0] != prompt_ids(replace(SMALL, salt="1"), 0)

    def test_a_shared_beginning_is_exactly_as_long_as_asked_for(self) -> None:
        load = replace(SMALL, shared_tokens=8)
        one, two = prompt_ids(load, 0), prompt_ids(load, 1)
        assert one[:8] == two[:8] and one[8] != two[8] and len(one) == 16

    @pytest.mark.parametrize("engine", ["vllm", "sglang", "llamacpp", "trtllm", "tgi", "another"])
    def test_every_engine_is_asked_for_exactly_so_many_greedy_tokens(self, engine: str) -> None:
        dialect = driving.dialect_of(engine)
        body = dict(dialect.body(Ask(prompt=(5, 6, 7) if dialect.takes_ids else "a b c", output_tokens=9, model="m")))
        asked = {**body, **body.get("sampling_params", {})}  # type: ignore[dict-item]
        assert 9 in {asked.get(name) for name in ("max_tokens", "n_predict", "max_new_tokens")}
        assert asked["temperature"] == 0 and asked["ignore_eos"] is True and asked["stream"] is True
        assert [5, 6, 7] in (body.get("prompt"), body.get("input_ids")) or not dialect.takes_ids

    def test_a_password_of_the_address_is_sent_as_its_header_and_shown_nowhere(self) -> None:
        with serving(Engine(quick)) as stub:
            server = Endpoint(url=stub.url.replace("//", "//ann:s3cret@"), headers={"X-Key": "s3cret"})
            found = driving.run(server, LLAMA, SMALL)
        assert stub.engine.headers[0]["Authorization"].startswith("Basic ") and stub.engine.headers[0]["X-Key"] == "s3cret"
        assert "s3cret" not in repr(found) and "s3cret" not in repr(server)

    @pytest.mark.parametrize("beside", ["", "/metrics", "/prometheus/metrics", "/v1", "/v1/metrics"])
    def test_the_address_is_that_of_any_of_its_pages_and_its_query_goes_with_it(self, beside: str) -> None:
        with serving(Engine(quick)) as stub:
            found = driving.run(Endpoint(url=f"{stub.url}{beside}?key=s3cret"), LLAMA, SMALL)
        assert [one.end for one in found.requests] == ["done"] * 4
        assert {*stub.engine.asked} == {"/completion?key=s3cret"}

    def test_a_header_that_cannot_be_sent_is_refused_without_being_shown(self) -> None:
        with pytest.raises(InputError) as caught:
            driving.run(Endpoint(url="http://127.0.0.1:9", headers={"X-Key": "s3cret\nmore"}), LLAMA, SMALL)
        assert "X-Key" in str(caught.value) and "s3cret" not in str(caught.value)


class TestWhatComesBack:
    def test_steps_are_the_gaps_while_all_streams_decode(self) -> None:
        with serving(Engine(lambda b, c: 0.02 + 0.01 * b)) as stub:
            found = driving.run(Endpoint(url=stub.url), LLAMA, replace(SMALL, concurrency=3, requests=3, output_tokens=24))
        step = stepped(found, 3)
        assert step is not None
        assert 0.049 < step.step_s < 0.075
        assert 24 < step.context_tokens < 36

    def test_streams_that_never_all_decode_give_no_step(self) -> None:
        with serving(Engine(quick, slots=1)) as stub:
            found = driving.run(Endpoint(url=stub.url), LLAMA, replace(SMALL, requests=2))
        assert stepped(found, 2) is None

    def test_steps_before_the_last_stream_began_are_not_of_all_streams(self) -> None:
        def stream(number: int, begun: float, each: float, count: int) -> Request:
            chunks = tuple(Chunk(at_s=begun + each * at, tokens=1) for at in range(count))
            known = {"number": number, "client": number, "prompt_tokens": 10, "asked_tokens": count, "sent_s": 0.0, "end": "done"}
            return Request(**known, ended_s=chunks[-1].at_s, chunks=chunks)  # type: ignore[arg-type]

        alone, both = stream(0, 0.0, 0.01, 100), stream(1, 1.0, 0.02, 20)
        first = replace(alone, chunks=(*alone.chunks, *(Chunk(at_s=1.0 + 0.02 * at, tokens=1) for at in range(1, 20))))
        step = stepped(Driven(requests=(first, both), start_unix_s=0.0, seconds=2.0, ended="all_sent"), 2)
        assert step is not None and step.low_s == pytest.approx(0.02) and step.high_s == pytest.approx(0.02)

    def test_a_text_dialect_takes_the_count_of_the_usage(self) -> None:
        read = driving.dialect_of("tgi").read
        assert read({"choices": [{"text": "a"}]}).new == 1
        assert read({"choices": [], "usage": {"completion_tokens": 7, "prompt_tokens": 5}}).total == 7

    def test_a_chunk_of_several_tokens_counts_all_of_them(self) -> None:
        read = driving.dialect_of("sglang").read
        assert read({"text": "abc", "meta_info": {"completion_tokens": 4, "cached_tokens": 2}}).total == 4


class TestBounds:
    def test_no_request_is_sent_beyond_those_asked_for(self) -> None:
        with serving(Engine(quick)) as stub:
            driving.run(Endpoint(url=stub.url), LLAMA, replace(SMALL, concurrency=4, requests=7))
            assert len(stub.engine.bodies) == 7

    @pytest.mark.parametrize("closes", [False, True])
    def test_seconds_end_streams_under_way(self, closes: bool) -> None:
        with serving(Engine(lambda b, c: 0.05)) as stub:
            stub.engine.closes = closes
            before = time.perf_counter()
            found = driving.run(Endpoint(url=stub.url), LLAMA, replace(SMALL, output_tokens=1000, requests=100, seconds=0.6))
        assert time.perf_counter() - before < 4.0
        assert found.ended == "seconds" and {one.end for one in found.requests} == {"stopped"}
        assert len(stub.engine.bodies) == 2 and found.output_tokens > 0

    def test_all_points_together_end_with_their_time(self) -> None:
        with serving(Engine(lambda b, c: 0.02)) as stub:
            wanted = plan((1, 2), (64,), (), Room(sequences=8, tokens=4096), Bounds(seconds=30.0, total_seconds=0.8))
            made = tour(Endpoint(url=stub.url), LLAMA, wanted)
        assert made.ended == "seconds" and len(made.visited) < made.planned and made.seconds < 4.0

    def test_ctrl_c_ends_all_streams_and_what_came_is_kept(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def pressed(self: client._Loop, threads: object) -> None:
            time.sleep(0.4)
            raise KeyboardInterrupt

        monkeypatch.setattr(client._Loop, "_wait", pressed)
        before = threading.active_count()
        with serving(Engine(lambda b, c: 0.02)) as stub:
            found = driving.run(Endpoint(url=stub.url), LLAMA, replace(SMALL, output_tokens=1000))
            assert found.ended == "interrupted" and {one.end for one in found.requests} == {"stopped"} and found.output_tokens > 0
            assert threading.active_count() <= before + 5, "clients have left; the server's own threads may still be there"


FAULTS = [("status", "status"), ("redirect", "status"), ("empty", "empty"), ("dies", "cut"), ("endless", "not_understood")]


class TestFaults:
    @pytest.mark.parametrize(("fault", "end"), FAULTS)
    def test_the_first_fault_ends_the_load(self, fault: str, end: str) -> None:
        with serving(Engine(quick, fault=fault)) as stub:
            found = driving.run(Endpoint(url=stub.url), LLAMA, replace(SMALL, concurrency=1, requests=10))
        assert found.ended == "failed" and found.failed is not None and found.failed.end == end
        assert len(found.requests) == 1

    def test_a_server_that_is_not_there_is_unreachable(self) -> None:
        with serving(Engine(quick)) as stub:
            url = stub.url
        found = driving.run(Endpoint(url=url), LLAMA, SMALL)
        assert found.ended == "failed" and found.failed is not None and found.failed.end == "unreachable"


class TestPlans:
    ROOM = Room(sequences=4, tokens=512)

    def test_a_plan_visits_each_point_as_often_in_an_order_turned_round(self) -> None:
        found = plan((1, 2), (64, 128), (16,), self.ROOM, Bounds())
        measured = [(v.concurrency, v.context, v.alone) for v in found.visits if not v.warm_up]
        assert found.visits[0].warm_up and len(measured) == 15 and measured[:5] == measured[5:10][::-1] == measured[10:]

    def test_points_that_the_engine_has_no_room_for_are_left_out_and_kept(self) -> None:
        found = plan((1, 2, 8), (64, 1024), (), self.ROOM, Bounds())
        assert set(found.left_out) == {(8, 64), (1, 1024), (2, 1024), (8, 1024)}
        assert max(v.concurrency for v in found.visits) == 2

    def test_a_plan_without_a_point_is_refused(self) -> None:
        with pytest.raises(InputError, match="no point fits the engine"):
            plan((8,), (64,), (), self.ROOM, Bounds())

    def test_the_cache_bounds_all_sequences_together(self) -> None:
        found = plan((1, 2, 4), (128,), (), replace(self.ROOM, pool_tokens=400.0), Bounds())
        assert {v.concurrency for v in found.visits} == {1, 2}

    def test_more_tokens_than_allowed_are_refused_before_anything_is_sent(self) -> None:
        with pytest.raises(InputError, match="--tokens"):
            plan((1, 2), (64,), (), self.ROOM, Bounds(tokens=100))
        whole = plan((1, 2), (64,), (), self.ROOM, Bounds())
        with pytest.raises(InputError, match="--tokens"):
            plan((1, 2), (64,), (), self.ROOM, Bounds(tokens=whole.input_tokens + whole.output_tokens - 1))
        assert plan((1, 2), (64,), (), self.ROOM, Bounds(tokens=whole.input_tokens + whole.output_tokens)).visits == whole.visits

    def test_requests_bound_the_rounds_and_have_to_be_enough_for_one(self) -> None:
        assert plan((1, 2), (64,), (), self.ROOM, Bounds(requests=2)).requests == 2 + 1 + 2
        with pytest.raises(InputError, match="widest point has 4"):
            plan((4,), (64,), (), self.ROOM, Bounds(requests=3))

    def test_the_guide_says_what_the_default_grid_would_send_to_an_engine_of_256_sequences(self, root: Path) -> None:
        wanted = plan((), (), PROMPTS, Room(sequences=256, tokens=40_960, step_tokens=8192), Bounds())
        refused = InputError("drive_refused", server="http://localhost:8000", **wanted.counted)
        assert f"# breakeven: {text(refused.message)}\n" in (root / "docs/guide/calibrate.md").read_text(encoding="utf-8")

    def test_what_a_plan_says_that_it_sends_is_what_it_sends(self) -> None:
        wanted = plan((1, 2), (64,), (16,), self.ROOM, Bounds(requests=4))
        with serving(Engine(lambda b, c: 0.002)) as stub:
            made = tour(Endpoint(url=stub.url), LLAMA, wanted)
        assert (made.requests, made.input_tokens, made.output_tokens) == (wanted.requests, wanted.input_tokens, wanted.output_tokens)
        assert len(stub.engine.bodies) == wanted.requests


def test_a_module_of_a_dialect_is_there_for_each_engine_that_names_one() -> None:
    from breakeven.driving import dialects
    from breakeven.driving.dialect import OF_ENGINE

    there = {path.stem for path in Path(dialects.__path__[0]).glob("*.py")}
    assert set(OF_ENGINE.values()) | {"text"} <= there
