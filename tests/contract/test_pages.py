"""Pages of metrics as they come: both text formats, JSON, and what is none; nothing is lost without being counted, and nothing hurts."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_readings import by_quantity

from breakeven.errors import InputError
from breakeven.exposition.page import Page, read
from breakeven.messages import LANGUAGES, text

PAGES = Path(__file__).parent / "pages"
VLLM = (PAGES / "vllm/0.32-ngram.txt").read_bytes()
RUNNING = b'vllm:num_requests_running{engine="0",model_name="m"} '


def of(found: Page, quantity: str) -> list[float]:
    return [one.value for one in by_quantity(found).get(quantity, ())]


def refused(body: bytes, content_type: str = "text/plain", **asked: str) -> str:
    """The one line of a page that is refused, the same in both languages but for the words."""
    with pytest.raises(InputError) as caught:
        read(body, content_type, target="http://h:8000/metrics", **asked)  # type: ignore[arg-type]
    for language in LANGUAGES:
        line = text(caught.value.message, language)
        assert "\n" not in line and "http://h:8000/metrics" in line
    return str(caught.value)


OPEN_METRICS = b"""# TYPE vllm:num_requests_running gauge
# HELP vllm:num_requests_running Number of requests.
vllm:num_requests_running{engine="0",model_name="m"} 3.0 1795995529.05
# TYPE vllm:generation_tokens counter
# UNIT vllm:generation_tokens tokens
vllm:generation_tokens_total{engine="0",model_name="m"} 900.0 # {trace_id="a # b"} 1.0 1795995529.05
vllm:generation_tokens_created{engine="0",model_name="m"} 1795995529.05
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1",model_name="m"} 4.0 # {trace_id="x"} 0.07
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="m"} 10.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 10.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 4.5
vllm:time_to_first_token_seconds_created{engine="0",model_name="m"} 1795995529.05
# TYPE other gauge
other 1.0
# EOF
"""


class TestBothTextFormats:
    def test_openmetrics_is_read_without_its_exemplars_and_created_series(self) -> None:
        found = read(OPEN_METRICS, "application/openmetrics-text; version=1.0.0; charset=utf-8")
        assert (of(found, "running"), of(found, "output_tokens")) == ([3], [900])
        assert {(one.part, one.le, one.value) for one in by_quantity(found)["ttft"]} == {
            ("bucket", 0.1, 4),
            ("bucket", float("inf"), 10),
            ("count", None, 10),
            ("sum", None, 4.5),
        }
        assert found.dropped == 3 and found.damaged == 0

    def test_its_end_is_known_without_its_type(self) -> None:
        assert read(OPEN_METRICS, "").readings == read(OPEN_METRICS, "application/openmetrics-text").readings

    def test_openmetrics_without_an_end_was_cut(self) -> None:
        assert "was cut" in refused(OPEN_METRICS[:-7], "application/openmetrics-text")

    def test_openmetrics_that_its_parser_refuses_is_read_line_by_line(self) -> None:
        body = OPEN_METRICS.replace(b"# TYPE vllm:time_to_first_token_seconds histogram\n", b"")
        found = read(body, "application/openmetrics-text")
        assert of(found, "output_tokens") == [900] and len(by_quantity(found)["ttft"]) == 4 and found.damaged == 0

    def test_timestamps_and_blanks_are_none_of_the_number(self) -> None:
        body = b'  vllm:num_requests_running{engine="0", model_name="m"}   3 1795995529050\n\tvllm:num_requests_waiting\t{engine="0"}\t2\n'
        found = read(body)
        assert (of(found, "running"), of(found, "waiting")) == ([3], [2])

    def test_windows_line_ends_and_a_last_line_without_one_are_read(self) -> None:
        found = read(VLLM.replace(b"\n", b"\r\n").rstrip())
        assert found.readings == read(VLLM).readings

    def test_a_name_in_quotes_among_the_labels_is_a_name(self) -> None:
        assert of(read(b'{"vllm:num_requests_running",engine="0"} 3\n'), "running") == [3]

    def test_a_label_may_hold_anything(self) -> None:
        body = 'vllm:num_requests_running{engine="0",model_name="a\\"b}{ # \\\\,c=\\"d\\n模型"} 3\n'.encode()
        found = read(body)
        assert of(found, "running") == [3] and found.models == ('a"b}{ # \\,c="d\n模型',)

    def test_when_the_process_started_is_told_where_the_page_says_it(self) -> None:
        assert read(VLLM).started_s == 1795997262.9
        assert read((PAGES / "llamacpp/2024.txt").read_bytes()).started_s is None


class TestNothingIsLostWithoutBeingCounted:
    def test_what_is_no_number_is_no_sample(self) -> None:
        body = RUNNING + b"NaN\n" + RUNNING.replace(b'"0"', b'"1"') + b"+Inf\n" + RUNNING.replace(b'"0"', b'"2"') + b"4\n"
        found = read(body)
        assert of(found, "running") == [4] and found.not_numbers == 2
        assert [one.key for one in found.notes] == ["adapter.page_not_numbers"]

    def test_of_a_series_that_stands_twice_the_first_is_taken(self) -> None:
        found = read(RUNNING + b"3\n" + b'vllm:num_requests_running{model_name="m",engine="0"} 5\n')
        assert of(found, "running") == [3] and found.duplicates == 1
        assert "as Prometheus does" in text(found.notes[0])

    def test_a_damaged_line_costs_itself_alone(self) -> None:
        found = read(RUNNING + b"three\n" + b'vllm:num_requests_waiting{engine="0 2\n' + VLLM)
        assert of(found, "running") == [0] and found.damaged == 2

    def test_a_line_without_end_is_damaged(self) -> None:
        found = read(VLLM + b'vllm:num_requests_swapped{a="' + b"x" * 10**6 + b'"} 3\n')
        assert found.damaged == 1 and "swapped" not in by_quantity(found)

    def test_buckets_that_not_all_series_have_are_not_added_up(self) -> None:
        name = b'vllm:time_to_first_token_seconds_bucket{engine="0",model_name="%s",le="%s"} %d\n'
        body = b"".join(
            name % row for row in ((b"a", b"0.1", 1), (b"a", b"1.0", 2), (b"b", b"1.0", 5), (b"a", b"+Inf", 3), (b"b", b"+Inf", 6))
        )
        found = read(body)
        assert {one.le: one.value for one in by_quantity(found)["ttft"]} == {1.0: 7, float("inf"): 9}
        assert "adapter.page_buckets" in [one.key for one in found.notes]

    def test_several_models_are_said_and_one_can_be_asked_for(self) -> None:
        body = RUNNING + b"3\n" + RUNNING.replace(b'"m"', b'"n"') + b"4\n"
        both, one = read(body), read(body, model="n")
        assert both.models == ("m", "n") and of(both, "running") == [7] and both.notes[0].key == "adapter.page_models"
        assert of(one, "running") == [4] and one.notes == ()
        assert "no metrics of model q (on the page: m, n)" in refused(body, model="q")

    def test_several_engines_are_said_and_one_can_be_asked_for(self) -> None:
        body = VLLM + (PAGES / "sglang/two-ranks.txt").read_bytes()
        assert read(body).engine == "vllm" and [one.key for one in read(body).notes] == ["adapter.page_others"]
        assert read(body, engine="sglang").engine == "sglang"
        assert "no metrics of tgi; the page is vllm's" in refused(body, engine="tgi")

    def test_what_a_page_does_not_say_the_user_can(self) -> None:
        body = (PAGES / "nim/1.txt").read_bytes()
        assert read(body).engine == "" and read(body, engine="trtllm").engine == "trtllm"
        assert read((PAGES / "dcgm/4.txt").read_bytes(), engine="vllm").role == "device"

    def test_a_router_says_that_its_numbers_are_its_own(self) -> None:
        router, frontend = (read((PAGES / name).read_bytes()) for name in ("production_stack/router.txt", "dynamo/frontend.txt"))
        assert router.role == frontend.role == "router" and router.engine == frontend.engine == ""
        assert "observe the engines themselves" in text(router.notes[0])
        through = read((PAGES / "dynamo/frontend.txt").read_bytes() + VLLM)
        assert (through.engine, through.role) == ("vllm", "engine") and "dynamo" in text(through.notes[0])


class TestWhatIsNoPageOfMetrics:
    @pytest.mark.parametrize(
        ("body", "content_type", "said"),
        [
            (b"", "text/plain", "empty page"),
            (b" \r\n\n", "text/plain", "empty page"),
            (b"<!DOCTYPE html><html><head><title>Login</title>", "text/html", "a page for people"),
            (b"\n<div>502 Bad Gateway</div>", "text/html; charset=utf-8", "a page for people"),
            (b"<?xml version='1.0'?><a/>", "application/xml", "a page for people"),
            (b"\x1f\x8b\x08\x00\x00", "text/plain", "no text came back"),
            (b"\xff\xfe" + RUNNING, "text/plain", "no text came back"),
            (VLLM + b"\xff", "text/plain", "no text came back"),
            (b'{"detail": "Not Found"}', "application/json", "no iteration statistics"),
            (b"[1, 2]", "application/json", "no iteration statistics"),
            (b"[" * 10**5, "application/json", "JSON that cannot be read"),
            (b'[{"iter": 1', "application/json", "JSON that cannot be read"),
            (b"process_cpu_seconds_total 3\n", "text/plain", "no metrics of a known engine (known: llamacpp, sglang, tgi, trtllm, vllm)"),
            (b"Not Found", "text/plain", "no metrics of a known engine"),
            (b'{"error": {"message": "This server does not support metrics endpoint."}}', "", "no iteration statistics"),
        ],
    )
    def test_is_one_line_that_says_what_came_back(self, body: bytes, content_type: str, said: str) -> None:
        assert said in refused(body, content_type)

    def test_a_wrong_content_type_does_not_hide_a_page(self) -> None:
        for content_type in ("application/octet-stream", "text/html", "application/json", ""):
            assert read(VLLM, content_type).readings == read(VLLM, "text/plain").readings

    def test_what_came_back_is_never_quoted(self) -> None:
        assert "hunter2" not in refused(b"<html>token=hunter2", "text/html") + refused(b"token=hunter2\n") + refused(
            b'{"token": "hunter2"}'
        )


class TestNothingHurts:
    def test_a_page_of_10000_lines_with_200_of_interest_takes_well_under_60_ms(self) -> None:
        interest = [line for line in VLLM.splitlines() if line.startswith(b"vllm:")][:200]
        body = b"\n".join(interest + [b'http_requests_total{handler="/v1/x",status="2xx",n="%d"} 3.0' % n for n in range(9800)])
        read(body)
        assert min(cpu_seconds(body) for _ in range(3)) < 0.060

    def test_a_page_of_200000_series_is_read_where_few_are_of_interest(self) -> None:
        body = VLLM + b"".join(b'other_seconds_bucket{le="%d"} 3\n' % n for n in range(200_000))
        assert min(cpu_seconds(body) for _ in range(2)) < 2.0
        assert read(body).dropped >= 200_000 and of(read(body), "output_tokens") == [10206]

    def test_a_page_of_200000_series_of_interest_is_refused_at_once(self) -> None:
        body = b"".join(b'vllm:num_requests_running{engine="%d"} 3\n' % n for n in range(200_000))
        begun = time.process_time()
        assert "200000 lines, more than 50000" in refused(body)
        assert time.process_time() - begun < 2.0

    @pytest.mark.parametrize("line", [b"\n", b"#\n", b"a 1\n", b'{"\n'])
    def test_a_page_of_32_mib_of_short_lines_is_refused_at_once(self, line: bytes) -> None:
        begun = time.process_time()
        refused(RUNNING + b"3\n" + line * ((32 << 20) // len(line)))
        assert time.process_time() - begun < 2.0

    @pytest.mark.parametrize("inside", [b"\\" * 15_000, b'\\"' * 7_000, b'"' * 15_000, b'",b="' * 2_500, b"{" * 15_000, b" " * 15_000])
    def test_a_label_of_quotes_and_escapes_is_read_or_left_out_at_once(self, inside: bytes) -> None:
        begun = time.process_time()
        assert read(VLLM + b'vllm:num_requests_swapped{a="' + inside + b'"} 3\n').engine == "vllm"
        assert time.process_time() - begun < 2.0


def cpu_seconds(body: bytes) -> float:
    begun = time.process_time()
    read(body)
    return time.process_time() - begun


@given(st.binary(max_size=300))
def test_any_bytes_are_a_page_or_one_line(noise: bytes) -> None:
    for body in (noise, RUNNING + noise + b"\n" + VLLM[:2000], b"[" + noise, b"# EOF\n" + noise):
        try:
            found = read(body)
        except InputError as error:
            assert "\n" not in str(error)
        else:
            assert found.adapter


LINE = st.from_regex(
    rb"vllm:(num_requests_running|generation_tokens_total|iteration_tokens_total_bucket)(\{[^\n]{0,40}\})?[ \t]?[^\n]{0,20}\n",
    fullmatch=True,
)


@given(st.lists(LINE, max_size=6))
def test_any_line_of_a_metric_of_interest_is_read_or_counted(lines: list[bytes]) -> None:
    try:
        found = read(b"".join(lines) + b'vllm:num_requests_waiting{engine="0"} 2\n')
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert of(found, "waiting") == [2]
