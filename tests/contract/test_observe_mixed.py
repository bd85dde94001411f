"""Servers of several kinds in one observation, and sums of which a part was no number."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from composed_pages import Counting, sglang, vllm
from hostile_server import Answering, in_turn, serving, status, whole
from prometheus_stub import Kept, Stub, engine
from prometheus_stub import serving as serving_history

from breakeven import cli
from breakeven.endpoint import Endpoint
from breakeven.errors import InputError
from breakeven.messages import LANGUAGES, text
from breakeven.observation import history, scrape, window
from breakeven.observation.history import HistoryQuery
from breakeven.observation.prometheus import Server
from breakeven.observation.quantities import Quantities
from breakeven.observation.record import Record
from breakeven.observation.scrape import Missed, Read
from breakeven.observation.timeline import Timeline

PAGES = Path(__file__).parent / "pages"
BASE, HOUR = 1_789_948_800.0, 3600.0


def observed(*pages: str) -> Timeline:
    """Each page once and the last one twice, however slow the machine; then the user ends it, which is left out of the notes."""
    heard = 0

    def count(one: Read | Missed, record: Record) -> None:
        nonlocal heard
        heard += 1
        if heard == len(pages) + 1:
            signal.raise_signal(signal.SIGINT)

    with serving({"/metrics": in_turn(*map(whole, pages))}) as server:
        timeline = window.observe(scrape.targets([f"{server.url}/metrics"]), for_s=600.0, every_s=0.05, heard=count)
    return replace(timeline, notes=tuple(note for note in timeline.notes if note.key != "observe.note_interrupted"))


def beside(*answers: Answering, readings: int = 4, engine: str | None = None) -> tuple[Timeline, list[str]]:
    """An observation of several servers, each with its answer."""
    with serving({f"/{at}/metrics": answer for at, answer in enumerate(answers)}) as server:
        urls = [f"{server.url}/{at}/metrics" for at in range(len(answers))]
        return window.observe(scrape.targets(urls, engine=engine), for_s=(readings - 1) * 0.05, every_s=0.05), urls


def keys(timeline: Timeline) -> list[str]:
    return [note.key for note in timeline.notes]


class TestKinds:
    @pytest.mark.parametrize("named", [None, "vllm"])
    def test_engines_of_two_kinds_are_refused_with_both_addresses(self, named: str | None) -> None:
        with pytest.raises(InputError) as raised:
            beside(whole(vllm(1)), whole(sglang(1)), engine=named)
        for language in LANGUAGES:
            said = text(raised.value.message, language)
            assert "vllm" in said and "sglang" in said and "/metrics" in said and "\n" not in said
        if named is None:
            assert all(f"/{at}/metrics" in text(raised.value.message) for at in (0, 1))

    def test_on_the_command_line_too_and_nothing_is_written(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        with serving({"/a": whole(vllm(1)), "/b": whole(sglang(1))}) as server:
            out = tmp_path / "e.json"
            code = cli.run(["observe", f"{server.url}/a", f"{server.url}/b", "--for", "1s", "--every", "100ms", "--out", str(out)])
        assert code == 2 and not out.exists() and "observe each by itself" in capsys.readouterr().err

    def test_a_router_beside_its_engines_would_count_them_twice(self) -> None:
        router = whole((PAGES / "dynamo/frontend.txt").read_text())
        for answers in ((router, whole(vllm(1))), (whole(vllm(1)), router)):
            with pytest.raises(InputError) as raised:
                beside(*answers)
            assert "once more; leave it out" in text(raised.value.message)

    def test_an_exporter_of_devices_may_stand_beside(self) -> None:
        timeline, _ = beside(whole(vllm(1)), whole((PAGES / "dcgm/4.txt").read_text()))
        assert timeline.engine == "vllm" and timeline.missed == 0 and Quantities(timeline).level("device_dram_active", "mean") is not None

    def test_a_server_that_becomes_another_engine_on_the_way_is_lost_from_then_on(self) -> None:
        timeline, urls = beside(Counting(), in_turn(status(503), *(whole(sglang(at)) for at in range(9))), readings=40)
        assert timeline.engine == "vllm" and "observe.note_never" in keys(timeline)
        assert any("sglang" in text(note) and urls[1] in text(note) for note in timeline.notes)

    def test_servers_of_several_models_are_said_to_be_added_up(self) -> None:
        timeline, _ = beside(whole(vllm(1)), whole(vllm(1).replace('"m"', '"other"')))
        assert [note.values["models"] for note in timeline.notes if note.key == "observe.note_models"] == ["m, other"]
        assert "observe.note_models" not in keys(beside(whole(vllm(1)), whole(vllm(1)))[0])

    def test_two_addresses_of_one_process_are_said_to_be_one_server(self) -> None:
        timeline, urls = beside(whole(vllm(1, started=1e9 + 0.25)), whole(vllm(1, started=1e9 + 0.25)))
        [said] = [text(note) for note in timeline.notes if note.key == "observe.note_one_process"]
        assert all(url in said for url in urls)
        apart, _ = beside(whole(vllm(1, started=1e9 + 0.25)), whole(vllm(1, started=1e9 + 0.5)))
        assert "observe.note_one_process" not in keys(apart)


def both(first: float | str, second: float | str) -> str:
    """One rank whose tokens are counted for two models."""
    return vllm(first) + "".join(line + "\n" for line in vllm(second).replace('"m"', '"n"').splitlines() if not line.startswith("#"))


class TestPartOfASum:
    def test_a_reading_without_a_part_is_left_out_and_nothing_is_counted_twice(self) -> None:
        found = observed(both(1000, 5000), both(1010, 5020), both(1020, "NaN"), both(1030, 5060))
        assert Quantities(found).rise("output_tokens") == 30.0 + 60.0
        assert not [key for key in keys(found) if "restart" in key]
        [said] = [text(note) for note in found.notes if note.key == "observe.note_partial_left"]
        assert "vllm:generation_tokens" in said and "1 readings" in said

    def test_two_whole_readings_are_enough_however_many_lack_a_part(self) -> None:
        found = observed(both(1000, 5000), *(both(1000 + at, "NaN") for at in range(1, 7)), both(1010, 5020))
        assert Quantities(found).rise("output_tokens") == 10.0 + 20.0

    def test_what_is_no_number_by_turns_leaves_the_others_readings(self) -> None:
        pages = [both(1000 + 10 * at, 5000 + 20 * at) for at in range(6)]
        pages[1], pages[3] = both("NaN", 5020), both(1030, "NaN")
        found = observed(*pages)
        assert Quantities(found).rise("output_tokens") == 50.0 + 100.0

    def test_a_part_that_never_is_a_number_leaves_the_rest(self) -> None:
        found = observed(both(1000, "NaN"), both(1010, "NaN"), both(1030, "NaN"))
        assert Quantities(found).rise("output_tokens") == 30.0
        assert "observe.note_partial_rest" in keys(found) and "adapter.page_not_numbers" in keys(found)

    def test_the_last_reading_may_be_the_one_without_it(self) -> None:
        found = observed(both(1000, 5000), both(1010, 5020), both(1020, "NaN"))
        assert Quantities(found).rise("output_tokens") == 30.0

    def test_the_sum_and_the_count_of_a_histogram_are_of_the_same_readings(self) -> None:
        def page(count: int, total: float | str) -> str:
            name = "vllm:time_to_first_token_seconds"
            parts = "".join(
                f'{name}_bucket{{engine="0",model_name="{model}",le="+Inf"}} {n}\n{name}_sum{{engine="0",model_name="{model}"}} {s}\n'
                f'{name}_count{{engine="0",model_name="{model}"}} {n}\n'
                for model, n, s in (("m", count, 0.5 * count), ("n", count, total))
            )
            return vllm(count, more=parts)

        found = observed(page(10, 5.0), page(20, 10.0), page(30, "NaN"))
        assert Quantities(found).mean("ttft") == pytest.approx(0.5)

    def test_in_a_history_a_part_that_was_no_number_at_first_has_not_risen_from_nothing(self) -> None:
        kept = engine(start=BASE, end=BASE + HOUR)
        tokens = next(one for one in kept if one.labels["__name__"] == "vllm:generation_tokens_total")
        second = Kept(labels={**tokens.labels, "lora": "a"}, times=tokens.times, values=tokens.values + 1e6)
        second.values[: second.values.size // 3] = np.nan
        stub = Stub([*kept, second])
        with serving_history(stub):
            found = history.read(Server(endpoint=Endpoint(url=stub.url)), HistoryQuery(match="{}", start_s=BASE, end_s=BASE + HOUR))
        seen = second.values[~np.isnan(second.values)]
        rose = Quantities(found).rise("output_tokens")
        assert rose == pytest.approx((tokens.values[-1] - tokens.values[0]) + (seen[-1] - seen[0]), rel=0.02)
