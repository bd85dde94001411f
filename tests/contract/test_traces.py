"""Traces: told by their content, sorted, counted; a damaged line is never silently lost."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven import registry, traces
from breakeven.errors import BreakevenError, InputError
from breakeven.messages import text
from breakeven.trace import Trace, damage, lengths, request_rate

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
GOOD = "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n2023-11-16 18:15:51.2224670,879,55\n"
LINE = {"timestamp": 0, "input_length": 1030, "output_length": 5, "hash_ids": [1, 2, 3]}
CHAT = {
    "timestamp": "2026-01-05T10:00:00Z",
    "request": {"model": "m", "messages": [{"role": "system", "content": "You are made up."}, {"role": "user", "content": "Say it."}]},
    "response": {
        "choices": [{"message": {"role": "assistant", "content": "It is said."}}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 5},
    },
}


def written(folder: Path, content: str | bytes, name: str = "t") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


FORMS = {
    "azure": HEADER + GOOD,
    "mooncake": json.dumps(LINE) + "\n" + json.dumps({**LINE, "timestamp": 500}) + "\n",
    "openai_log": json.dumps(CHAT) + "\n" + json.dumps({**CHAT, "timestamp": "2026-01-05T10:00:01.5Z"}) + "\n",
}
"""A sound sample of each form, first line to last: a new form needs one here."""


def test_every_form_has_a_sample_and_is_claimed_by_its_own_reader_alone() -> None:
    assert set(registry.names("traces")) == set(FORMS), "give FORMS a sample of the new form"
    for form, content in FORMS.items():
        assert [name for name in FORMS if registry.module("traces", name).sniff(content.encode())] == [form]


class TestSharedTraces:
    @pytest.mark.parametrize(
        ("name", "requests", "form"), [("azure_2023_conv.csv", 19_366, "azure"), ("mooncake_conversation.jsonl", 12_031, "mooncake")]
    )
    def test_are_read_whole(self, shared: Path, name: str, requests: int, form: str) -> None:
        found = traces.read(shared / "data/traces" / name)
        assert (found.requests, found.form, found.damaged) == (requests, form, 0)

    def test_azure_means_are_those_of_a_plain_reading(self, shared: Path) -> None:
        path = shared / "data/traces/azure_2023_conv.csv"
        rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
        moments = lengths(traces.read(path))
        assert moments.mean_input == pytest.approx(sum(int(row[1]) for row in rows) / len(rows))
        assert moments.mean_output_squared == pytest.approx(sum(int(row[2]) ** 2 for row in rows) / len(rows))
        assert moments.mean_input_output == pytest.approx(sum(int(row[1]) * int(row[2]) for row in rows) / len(rows))

    def test_mooncakes_ids_cover_its_prompts(self, shared: Path) -> None:
        found = traces.read(shared / "data/traces/mooncake_conversation.jsonl")
        assert found.hash_offsets is not None and found.hash_ids is not None and found.block_tokens == 512
        blocks = np.diff(found.hash_offsets)
        assert np.array_equal(blocks, -(-found.input_tokens // 512))


@pytest.mark.parametrize("content", FORMS.values(), ids=FORMS.keys())
class TestEveryForm:
    def test_arrivals_are_sorted_and_begin_at_nothing(self, tmp_path: Path, content: str) -> None:
        found = traces.read(written(tmp_path, content))
        assert found.arrival_s[0] == 0
        assert np.all(np.diff(found.arrival_s) >= 0)

    def test_arrays_are_frozen_and_of_one_length(self, tmp_path: Path, content: str) -> None:
        found = traces.read(written(tmp_path, content))
        for array in (found.arrival_s, found.input_tokens, found.output_tokens):
            assert len(array) == found.requests and not array.flags.writeable

    def test_damaged_lines_are_counted_by_number_and_said(self, tmp_path: Path, content: str) -> None:
        sound = traces.read(written(tmp_path, content))
        lines = content.splitlines()
        found = traces.read(written(tmp_path, "\n".join([*lines[:1], *lines[1:], "garbage", "", lines[-1][:10], "\x00"])))
        assert found.requests == sound.requests
        assert found.damaged == 3
        assert found.damaged_lines == (len(lines) + 1, len(lines) + 3, len(lines) + 4)
        [warning] = damage(found)
        assert str(len(lines) + 1) in text(warning) and text(warning, "zh")

    def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(self, tmp_path: Path, content: str) -> None:
        found = traces.read(written(tmp_path, b"\xef\xbb\xbf" + content.replace("\n", "\r\n").encode()))
        assert found.damaged == 0 and found.requests == traces.read(written(tmp_path, content)).requests


class TestAzure:
    def test_rate_is_intervals_over_time(self, tmp_path: Path) -> None:
        found = traces.read(written(tmp_path, HEADER + GOOD))
        assert request_rate(found) == pytest.approx(2 / (51.2224670 - 46.6805900))

    def test_seven_decimals_are_kept(self, tmp_path: Path) -> None:
        found = traces.read(written(tmp_path, HEADER + "2023-11-16 00:00:00.0000000,1,1\n2023-11-16 00:00:00.0000001,1,1\n"))
        assert found.arrival_s[1] == pytest.approx(1e-7, rel=1e-6)

    def test_the_2024_time_stamps_carry_an_offset(self, tmp_path: Path) -> None:
        found = traces.read(written(tmp_path, HEADER + "2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 00:00:01+00:00,2399,6\n"))
        assert found.damaged == 0 and found.arrival_s[1] == pytest.approx(0.99007)

    def test_out_of_order_arrivals_are_sorted_with_their_lengths(self, tmp_path: Path) -> None:
        lines = GOOD.splitlines()
        found = traces.read(written(tmp_path, HEADER + "\n".join(reversed(lines))))
        assert found.input_tokens.tolist() == [374, 396, 879]

    @pytest.mark.parametrize(
        "line",
        [
            "2023-11-16 18:15:46,-1,5",
            "2023-11-16 18:15:46,nan,5",
            "2023-11-16 18:15:46,5",
            "2023-13-45 18:15:46,5,5",
            "today,5,5",
            "NaT,5,5",
            "9999-01-01 00:00:00,5,5",
            ",5,5",
            "2023-11-16 18:15:46,5,5,5",
            "2023-11-16 18:15:46,99999999999999999999,5",
            "2023-11-16 18:15:46,1.5,5",
        ],
    )
    def test_a_damaged_line_is_left_out_and_counted(self, tmp_path: Path, line: str) -> None:
        found = traces.read(written(tmp_path, HEADER + GOOD + line + "\n"))
        assert (found.requests, found.damaged, found.damaged_lines) == (3, 1, (5,))


class TestMooncake:
    def test_arrivals_count_from_the_first(self, tmp_path: Path) -> None:
        found = traces.read(written(tmp_path, "".join(json.dumps({**LINE, "timestamp": at}) + "\n" for at in (7000, 7250))))
        assert found.arrival_s.tolist() == [0.0, 0.25]

    def test_ids_follow_their_requests_when_sorted(self, tmp_path: Path) -> None:
        later = {**LINE, "timestamp": 900, "hash_ids": [7, 8]}
        found = traces.read(written(tmp_path, f"{json.dumps(later)}\n{json.dumps(LINE)}\n"))
        assert found.hash_ids is not None and found.hash_offsets is not None
        assert found.hash_ids.tolist() == [1, 2, 3, 7, 8] and found.hash_offsets.tolist() == [0, 3, 5]
        assert found.arrival_s.tolist() == [0.0, 0.9]

    def test_one_without_ids_has_none(self, tmp_path: Path) -> None:
        plain = {key: value for key, value in LINE.items() if key != "hash_ids"}
        found = traces.read(written(tmp_path, json.dumps(plain) + "\n"))
        assert found.hash_ids is None and found.block_tokens is None

    @pytest.mark.parametrize(
        "change",
        [
            {"input_length": -1},
            {"input_length": None},
            {"timestamp": "x"},
            {"timestamp": -5},
            {"hash_ids": [-1]},
            {"hash_ids": [2**70]},
            {"input_length": 10**12},
            {"timestamp": float("nan")},
            {"hash_ids": "abc"},
        ],
    )
    def test_a_damaged_line_is_left_out_and_counted(self, tmp_path: Path, change: dict[str, object]) -> None:
        found = traces.read(written(tmp_path, f"{json.dumps(LINE)}\n{json.dumps({**LINE, **change})}\n"))
        assert (found.requests, found.damaged, found.damaged_lines) == (1, 1, (2,))


class TestWhatIsNoTrace:
    @pytest.mark.parametrize("content", [b"\0" * 100, b"hello", b"a,b,c\n1,2,3\n", b"{}", b'{"timestamp": 1}'])
    def test_an_unknown_form_names_the_known(self, tmp_path: Path, content: bytes) -> None:
        with pytest.raises(InputError, match="azure, mooncake"):
            traces.read(written(tmp_path, content))

    def test_a_header_alone_is_no_request(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="no request"):
            traces.read(written(tmp_path, HEADER))

    def test_one_request_tells_no_rate(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="--rate"):
            request_rate(traces.read(written(tmp_path, HEADER + GOOD.splitlines()[0])))

    def test_requests_at_one_moment_tell_no_rate_either(self, tmp_path: Path) -> None:
        line = GOOD.splitlines()[0]
        with pytest.raises(InputError, match=r"3 requests, all at one moment.*--concurrency"):
            request_rate(traces.read(written(tmp_path, HEADER + "\n".join([line] * 3))))

    def test_a_gigabyte_a_folder_a_circle_and_nothing(self, tmp_path: Path) -> None:
        big = tmp_path / "big.csv"
        with big.open("wb") as handle:
            handle.write(HEADER.encode())
            handle.truncate(2**30)
        (tmp_path / "loop").symlink_to(tmp_path / "loop")
        for path in (big, tmp_path, tmp_path / "loop", tmp_path / "absent", Path("a\0b")):
            with pytest.raises(BreakevenError) as refused:
                traces.read(path)
            assert "\n" not in str(refused.value)


def test_quantiles_run_from_the_least_to_the_most(tmp_path: Path) -> None:
    moments = lengths(traces.read(written(tmp_path, HEADER + GOOD)))
    assert len(moments.output_quantiles) == 101
    assert moments.output_quantiles[0] == 44 and moments.output_quantiles[50] == 55 and moments.output_quantiles[100] == 109


@given(st.lists(st.text(alphabet="0123456789,-:. TZ+naif\x00é", max_size=40), max_size=8))
def test_any_lines_are_a_trace_or_one_line(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = written(tmp_path_factory.mktemp("fuzz"), HEADER + "\n".join(lines))
    try:
        found = traces.read(path)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert isinstance(found, Trace) and bool(np.all(np.isfinite(found.arrival_s)))


class TestBundledSample:
    def test_is_small_and_whole(self, root: Path) -> None:
        path = root / "examples/llama-70b-chat-trace.csv"
        assert path.stat().st_size < 100_000
        found = traces.read(path)
        assert found.requests == 2000 and found.damaged == 0

    def test_reads_as_chat(self, root: Path) -> None:
        found = traces.read(root / "examples/llama-70b-chat-trace.csv")
        assert 500 < lengths(found).mean_input < 2000 and 100 < lengths(found).mean_output < 400
        assert 1 < request_rate(found) < 3
