"""Answers that are well formed and not to be believed: numbers beyond counting, endless brackets, secrets said back, bodies in parts."""

from __future__ import annotations

import gzip
import json
import time

import numpy as np
import pytest
from composed_pages import vllm
from hostile_server import Handler, in_turn, serving, status, whole
from prometheus_stub import Kept, Stub, answered, engine, refused
from prometheus_stub import serving as serving_history

from breakeven import cli
from breakeven.driving.dialect import counted
from breakeven.driving.stream import Broken, _event
from breakeven.endpoint import Endpoint, get
from breakeven.errors import BreakevenError, InputError
from breakeven.messages import LANGUAGES, text
from breakeven.observation import history, page, scrape, slots, summary, window
from breakeven.observation.history import HistoryQuery
from breakeven.observation.prometheus import Server
from breakeven.observation.quantities import Quantities
from breakeven.observation.telling import part
from breakeven.observation.timeline import Timeline
from breakeven.spec.evidence import Told

SECRET = "s3cr3t-of-nobody"
BASE, HOUR = 1_789_948_800.0, 3600.0
DEEP = b"[" * 200_000
HUGE = 10**400


def observed(*pages: str, readings: int = 6) -> Timeline:
    with serving({"/metrics": in_turn(*map(whole, pages))}) as server:
        return window.observe(scrape.targets([f"{server.url}/metrics"]), for_s=(readings - 1) * 0.05, every_s=0.05)


def stored(stub: Stub, headers: dict[str, str] | None = None) -> Timeline:
    with serving_history(stub):
        server = Server(endpoint=Endpoint(url=f"{stub.url}?tenant={SECRET}", headers=headers or {}))
        return history.read(server, HistoryQuery(match="{}", start_s=BASE, end_s=BASE + HOUR))


def day() -> list[Kept]:
    return engine(start=BASE, end=BASE + HOUR)


def lines_of(error: BreakevenError) -> list[str]:
    return [text(error.message, language) for language in LANGUAGES]


class TestNumbers:
    def test_a_counter_that_was_no_number_at_first_has_not_risen_from_nothing(self) -> None:
        found = observed(vllm("NaN"), vllm(100_000), vllm(100_010), readings=10)
        assert Quantities(found).rise("output_tokens") == 10.0
        assert [note.values["quantities"] for note in found.notes] == ["output_tokens prompt_tokens"]

    def test_one_that_is_no_number_leaves_what_others_rose_by(self) -> None:
        late = 'vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 7\n'
        found = observed(vllm("NaN"), vllm(100_000, more=late), readings=10)
        assert Quantities(found).rise("requests_finished") == 7.0

    def test_nor_one_that_leaves_another_rank_s_alone(self) -> None:
        found = observed(vllm("NaN"), vllm(100_000) + vllm(7, engine="1"), readings=10)
        assert Quantities(found).rise("output_tokens") == 7.0

    def test_what_follows_from_one_that_was_no_number_has_not_risen_from_nothing_either(self) -> None:
        def llama(tokens: float | str) -> str:
            computed, cached = "llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total"
            return f"llamacpp:requests_processing 0\n{cached} 3\n{computed} {tokens}\n"

        found = observed(llama("NaN"), llama(100_000), llama(100_004), readings=10)
        assert Quantities(found).rise("prompt_tokens") == 4.0

    def test_of_a_history_it_is_said_that_a_series_was_never_a_number(self) -> None:
        kept = day()
        kept[2].values[:] = np.nan
        found = stored(Stub(kept))
        assert [note.values["count"] for note in found.notes if note.key == "adapter.page_not_numbers"] == [len(kept[2].values)]

    def test_in_a_history_too(self) -> None:
        kept = day()
        kept[2].values[:100] = np.nan
        found = stored(Stub(kept))
        assert Quantities(found).rise("output_tokens") == kept[2].values[-1] - kept[2].values[100]
        assert "adapter.page_not_numbers" in [note.key for note in found.notes]

    @pytest.mark.parametrize("value", ["1.7e308", "-1.7e308", "1e101"])
    def test_what_is_beyond_all_counting_is_no_number(self, value: str) -> None:
        found = page.read("".join(f'vllm:num_requests_running{{engine="0",a="{at}"}} {value}\n' for at in "xy").encode() + vllm(5).encode())
        assert [one.value for one in found.readings if one.quantity == "running"] == [2.0] and found.not_numbers == 2

    def test_nor_is_it_in_statistics_of_iterations(self) -> None:
        rows = [{"iter": at, "iterLatencyMS": 1e308, "numActiveRequests": HUGE, "numQueuedRequests": 3} for at in range(2)]
        found = page.read(json.dumps(rows).encode(), "application/json")
        assert [one.value for one in found.readings if one.quantity == "waiting"] == [3.0] and found.not_numbers == 4

    def test_nor_in_what_an_engine_says_of_itself(self) -> None:
        slot = {"is_processing": True, "next_token": [{"n_decoded": 1}], "n_prompt_tokens": HUGE}
        assert [one.quantity for one in slots.told([slot, {**slot, "n_prompt_tokens": 7}])] == ["running_decode", "decode_output_tokens"]
        assert part(HUGE) is None
        assert [counted({"n": value}, "n") for value in (HUGE, -1, True, 7)] == [None, None, None, 7]

    def test_times_that_were_not_asked_for_are_no_history(self) -> None:
        body = {"resultType": "matrix", "result": [{"metric": day()[0].labels, "values": [[1e20, "1"]]}]}
        with pytest.raises(InputError) as raised:
            stored(Stub(day(), wrong={"query_range": lambda: answered(Stub(), body)}))
        assert raised.value.message.key == "error.prometheus_shape"

    def test_times_of_scrapes_that_cannot_be_are_not_taken(self) -> None:
        kept = day()
        stub = Stub(kept)

        def ranges() -> tuple[int, str, bytes]:
            asked = stub.asked[-1][1]
            times = np.arange(float(asked["start"]), float(asked["end"]) + 1, float(asked["step"]))
            value = "1e20" if asked["query"].startswith("timestamp(") else "4"
            return answered(
                stub, {"result": [{"metric": one.labels, "values": [[at, value] for at in times.tolist()]} for one in kept[:1]]}
            )

        stub.wrong["query_range"] = ranges
        evidence = summary.summarised(stored(stub), Told(engine="vllm"), target="x", source="history")
        assert BASE <= np.datetime64(evidence.end[:-1]).astype("datetime64[s]").astype(float) <= BASE + HOUR


class TestBrackets:
    @pytest.mark.parametrize("body", [DEEP, b'{"status":"success","x":' + DEEP + b"]" * len(DEEP) + b',"data":[]}'])
    def test_a_history_in_brackets_without_end_is_one_line(self, body: bytes) -> None:
        with pytest.raises(InputError) as raised:
            stored(Stub(day(), wrong={"*": lambda: (200, "application/json", body)}))
        assert all("\n" not in line for line in lines_of(raised.value))

    def test_an_event_in_brackets_without_end_is_no_event(self) -> None:
        with pytest.raises(Broken):
            _event(DEEP)


class TestParts:
    def test_members_of_a_packed_body_are_one_body(self) -> None:
        packed = gzip.compress(b"up 1\n") + gzip.compress(b"") + gzip.compress(b"down 0\n" * 30_000)
        with serving({"/": whole(packed, **{"Content-Encoding": "gzip"})}) as server:
            assert get(Endpoint(url=server.url)).body == b"up 1\n" + b"down 0\n" * 30_000

    def test_a_second_member_that_is_cut_short_is_said(self) -> None:
        packed = gzip.compress(b"up 1\n") + gzip.compress(b"down 0\n")[:-9]
        with serving({"/": whole(packed, **{"Content-Encoding": "gzip"})}) as server, pytest.raises(BreakevenError) as raised:
            get(Endpoint(url=server.url))
        assert raised.value.message.key == "error.endpoint_closed"

    def test_many_members_end_at_the_limit_in_time(self) -> None:
        packed = gzip.compress(b"x" * 1000) * 20_000
        began = time.monotonic()
        with serving({"/": whole(packed, **{"Content-Encoding": "gzip"})}) as server, pytest.raises(BreakevenError) as raised:
            get(Endpoint(url=server.url), most_bytes=10_000_000)
        assert raised.value.message.key == "error.endpoint_large" and time.monotonic() - began < 10.0


class TestSecretsSaidBack:
    def test_not_in_an_error_of_a_history(self) -> None:
        said = f'Get "http://up/query?tenant={SECRET}&x=1": denied for Bearer {SECRET}'
        with pytest.raises(BreakevenError) as raised:
            stored(Stub(day(), wrong={"*": lambda: refused(said)}), {"Authorization": f"Bearer {SECRET}"})
        for line in lines_of(raised.value):
            assert "denied for …" in line and SECRET not in line

    def test_not_in_a_warning_of_a_history(self) -> None:
        found = stored(Stub(day(), warnings=[f"store of {SECRET} is slow"]))
        assert ["store of … is slow" in text(note) for note in found.notes if note.key == "history.warning"] == [True]

    def test_not_in_where_a_page_points_to(self) -> None:
        with serving({"/metrics": status(302, Location=f"http://{SECRET}.example/")}) as server, pytest.raises(InputError) as raised:
            get(Endpoint(url=f"{server.url}/metrics", headers={"X-Key": SECRET}))
        assert all(".example" in line and SECRET not in line for line in lines_of(raised.value))

    def test_a_header_that_cannot_be_sent_is_refused_before_a_load(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ENGINE_KEY", f"{SECRET}\nmore")

        def nothing(handler: Handler) -> None:
            raise AssertionError(handler.path)

        with serving({"/metrics": nothing}) as server:
            asked = ["--engine", "llamacpp", "--model", "smollm2-135m", "--hardware", "rtx-4090", "--header", "X-Key=ENGINE_KEY"]
            code = cli.run(["calibrate", "--url", server.url, "--allow-load", *asked])
        told = capsys.readouterr()
        assert (code, told.out, told.err.count("\n")) == (2, "", 1)
        assert "X-Key" in told.err and SECRET not in told.err
