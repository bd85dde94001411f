"""Traces: told by their content, sorted, counted; a damaged record is never silently lost, and nothing that was said is kept."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_samples import AZURE, FORMS, HEADER, MOONCAKE, SECRET, Sample

from breakeven import registry, traces
from breakeven.errors import InputError
from breakeven.messages import text
from breakeven.trace import Trace, arrivals, damage, lengths, outputs, request_rate
from breakeven.traces import Reading

GOOD = "\n".join(AZURE) + "\n"
EVERY = pytest.mark.parametrize("sample", FORMS.values(), ids=FORMS.keys())
LINES = pytest.mark.parametrize(
    "sample", [sample for sample in FORMS.values() if sample.in_lines], ids=lambda sample: sample.records[0][:12]
)


def written(folder: Path, content: str | bytes, name: str = "t") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_every_form_has_a_sample_and_is_claimed_by_its_own_reader_first() -> None:
    assert set(registry.names("traces")) == set(FORMS), "give FORMS a sample of the new form"
    for form, sample in FORMS.items():
        claims = [name for name in traces.forms() if registry.module("traces", name).sniff(sample.text().encode())]
        assert claims[0] == form and claims[1:] in ([], [traces.LAST])


class TestSharedTraces:
    @pytest.mark.parametrize(
        ("name", "requests", "form"), [("azure_2023_conv.csv", 19_366, "azure"), ("mooncake_conversation.jsonl", 12_031, "mooncake")]
    )
    def test_are_read_whole(self, shared: Path, name: str, requests: int, form: str) -> None:
        found = traces.read(shared / "data/traces" / name)
        assert (found.requests, found.form, found.damaged, found.set_apart) == (requests, form, 0, 0)

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

    def test_azure_as_a_table_with_its_columns_said_is_the_same(self, shared: Path) -> None:
        path = shared / "data/traces/azure_2023_conv.csv"
        said = Reading(columns=traces.columns_of("arrival=TIMESTAMP,input=ContextTokens,output=GeneratedTokens"))
        one, other = traces.read(path), traces.read(path, said)
        assert other.form == "table"
        assert np.array_equal(arrivals(one), arrivals(other)) and np.array_equal(outputs(one), outputs(other))


@EVERY
class TestEveryForm:
    def test_arrivals_are_sorted_and_begin_at_nothing_or_are_refused_by_name(self, tmp_path: Path, sample: Sample) -> None:
        found = traces.read(written(tmp_path, sample.text()))
        assert found.requests == len(sample.records) * sample.per_record
        if sample.timed:
            assert arrivals(found)[0] == 0 and np.all(np.diff(arrivals(found)) >= 0)
        else:
            with pytest.raises(InputError, match=r"no arrival times.*--rate"):
                arrivals(found)

    def test_arrays_are_frozen_and_of_one_length(self, tmp_path: Path, sample: Sample) -> None:
        found = traces.read(written(tmp_path, sample.text()), Reading(keep_tokens=True))
        whole = (found.arrival_s, found.input_tokens, found.output_tokens, found.cached_tokens, found.ttft_s, found.e2e_s, found.groups)
        for array in (*whole, found.sessions):
            assert array is None or (len(array) == found.requests and not array.flags.writeable)
        ragged = ((found.hash_ids, found.hash_offsets), (found.prompt_ids, found.prompt_offsets), (found.output_ids, found.output_offsets))
        for values, offsets in ragged:
            assert (values is None) == (offsets is None)
            if values is not None and offsets is not None:
                assert len(offsets) == found.requests + 1 and offsets[-1] == len(values) and not values.flags.writeable

    def test_what_is_damaged_is_counted_by_number_and_said(self, tmp_path: Path, sample: Sample) -> None:
        bad = ['{"a": tru}', '{"b": 1e}', "{'c'}"]
        found = traces.read(written(tmp_path, sample.text([*sample.records, *bad])))
        assert found.requests == len(sample.records) * sample.per_record
        assert found.damaged == 3
        first = len(sample.records) + sample.head.count("\n") + 1
        numbers = found.damaged_lines if sample.in_lines else found.damaged_records
        assert numbers[:3] == (first, first + 1, first + 2) or sample.head.count("[") > 1
        [warning] = damage(found)
        assert str(numbers[0]) in text(warning) and text(warning, "zh")

    def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(self, tmp_path: Path, sample: Sample) -> None:
        found = traces.read(written(tmp_path, b"\xef\xbb\xbf" + sample.text().replace("\n", "\r\n").encode()))
        same(found, traces.read(written(tmp_path, sample.text())))

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "gzip"])
    def test_it_may_be_packed_or_in_another_encoding_with_its_mark(self, tmp_path: Path, sample: Sample, encoding: str) -> None:
        content = gzip.compress(sample.text().encode()) if encoding == "gzip" else sample.text().encode(encoding)
        same(traces.read(written(tmp_path, content)), traces.read(written(tmp_path, sample.text())))

    def test_nothing_that_was_said_is_kept_or_told(self, tmp_path: Path, sample: Sample) -> None:
        bad = sample.records[0][:-1].replace("10", "x")
        found = traces.read(written(tmp_path, sample.text([*sample.records, bad])), Reading(keep_tokens=True))
        said = " ".join(text(note, language) for note in (*damage(found), *found.notes) for language in ("en", "zh"))
        assert SECRET not in said and SECRET not in repr(found)
        with pytest.raises(InputError) as refused:
            traces.read(
                written(tmp_path, sample.text([bad.replace("{", '{"x" ')]).replace(sample.records[0], "")), Reading(group="nothing")
            )
        assert SECRET not in str(refused.value) and "\n" not in str(refused.value)

    @given(data=st.data())
    def test_every_record_is_a_request_or_damaged_or_set_apart(
        self, tmp_path_factory: pytest.TempPathFactory, sample: Sample, data: st.DataObject
    ) -> None:
        kinds = data.draw(st.lists(st.sampled_from(["sound", "damaged", "zero"]), min_size=1, max_size=8))
        whole = sample.records[0]
        as_is = {"sound": whole, "zero": zeroed(whole), "damaged": '{"a": tru}' if whole.startswith("{") else "garbage"}
        path = written(tmp_path_factory.mktemp("counted"), sample.text([whole, *(as_is[kind] for kind in kinds)]))
        found = traces.read(path)
        damaged = kinds.count("damaged")
        assert found.damaged == damaged
        assert found.requests + found.set_apart == (1 + len(kinds) - damaged) * sample.per_record


def zeroed(record: str) -> str:
    """A record whose counts are zero, whatever they are called."""
    if not record.startswith("{"):
        cells = record.split(",")
        return ",".join(["0" if cell.isdigit() and place else cell for place, cell in enumerate(cells)])
    found = json.loads(record)
    for name in ("completion_tokens", "output_length", "output_tokens"):
        if name in found:
            found[name] = 0
    return json.dumps(found)


def same(one: Trace, other: Trace) -> None:
    assert (one.requests, one.damaged, one.set_apart, one.form) == (other.requests, other.damaged, other.set_apart, other.form)
    for name in ("arrival_s", "input_tokens", "output_tokens", "hash_ids", "ttft_s", "cached_tokens", "groups", "sessions"):
        mine, its = getattr(one, name), getattr(other, name)
        assert (mine is None) == (its is None) and (mine is None or np.array_equal(mine, its, equal_nan=mine.dtype.kind == "f"))


class TestAzure:
    def test_rate_is_intervals_over_time(self, tmp_path: Path) -> None:
        found = traces.read(written(tmp_path, HEADER + GOOD))
        assert request_rate(found) == pytest.approx(2 / (51.2224670 - 46.6805900))

    def test_seven_decimals_are_kept(self, tmp_path: Path) -> None:
        found = traces.read(written(tmp_path, HEADER + "2023-11-16 00:00:00.0000000,1,1\n2023-11-16 00:00:00.0000001,1,1\n"))
        assert arrivals(found)[1] == 1e-7

    def test_the_2024_time_stamps_carry_an_offset(self, tmp_path: Path) -> None:
        found = traces.read(written(tmp_path, HEADER + "2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 00:00:01+00:00,2399,6\n"))
        assert found.damaged == 0 and arrivals(found)[1] == pytest.approx(0.99007)

    def test_offsets_are_heeded_and_a_time_without_one_is_utc_which_is_said(self, tmp_path: Path) -> None:
        stamps = ("2024-05-10 08:00:00+08:00", "2024-05-10 00:00:01", "2024-05-09 20:00:02-0400", "2024-05-10T00:00:03Z")
        found = traces.read(written(tmp_path, HEADER + "".join(f"{stamp},{place},1\n" for place, stamp in enumerate(stamps, 1))))
        assert arrivals(found).tolist() == [0, 1, 2, 3] and found.input_tokens.tolist() == [1, 2, 3, 4]
        [note] = found.notes
        assert "1 times without a zone beside 3 with one" in text(note)

    def test_the_2025_files_have_images_beside(self, tmp_path: Path) -> None:
        head = "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n"
        content = gzip.compress(f"{head}2024-10-14 00:00:00.1234567,3,1500,20\n2024-10-14 00:00:02.1234567,0,90,0\n".encode())
        found = traces.read(written(tmp_path, content))
        assert (found.form, found.requests, found.set_apart, found.input_tokens.tolist()) == ("azure", 1, 1, [1500])

    def test_out_of_order_arrivals_are_sorted_with_their_lengths_and_said(self, tmp_path: Path) -> None:
        found = traces.read(written(tmp_path, HEADER + "\n".join(reversed(AZURE))))
        assert found.input_tokens.tolist() == [374, 396, 879]
        assert "2 requests stand after one that arrived later" in text(found.notes[0])

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
            "2023-11-16 18:15:46,1000000001,5",
            "2023-11-16 18:15:46,1.5,5",
            "2023-11-16 18:15:46,,5",
        ],
    )
    def test_a_damaged_line_is_left_out_and_counted(self, tmp_path: Path, line: str) -> None:
        found = traces.read(written(tmp_path, HEADER + GOOD + line + "\n"))
        assert (found.requests, found.damaged, found.damaged_lines) == (3, 1, (5,))

    @pytest.mark.parametrize(("line", "word"), [("2023-11-16 18:15:46,5,0", "generated 0"), ("2023-11-16 18:15:46,0,5", "a prompt of 0")])
    def test_a_request_of_zero_tokens_is_set_apart_by_its_line(self, tmp_path: Path, line: str, word: str) -> None:
        found = traces.read(written(tmp_path, HEADER + GOOD + line + "\n"))
        assert (found.requests, found.damaged, found.set_apart) == (3, 0, 1)
        assert word in text(found.notes[0]) and "first: 5" in text(found.notes[0])


class TestMooncake:
    def test_arrivals_count_from_the_first(self, tmp_path: Path) -> None:
        found = traces.read(written(tmp_path, "".join(json.dumps({**MOONCAKE, "timestamp": at}) + "\n" for at in (7000, 7250))))
        assert arrivals(found).tolist() == [0.0, 0.25]

    def test_ids_follow_their_requests_when_sorted(self, tmp_path: Path) -> None:
        later = {**MOONCAKE, "timestamp": 900, "hash_ids": [7, 8]}
        found = traces.read(written(tmp_path, f"{json.dumps(later)}\n{json.dumps(MOONCAKE)}\n"))
        assert found.hash_ids is not None and found.hash_offsets is not None
        assert found.hash_ids.tolist() == [1, 2, 3, 7, 8] and found.hash_offsets.tolist() == [0, 3, 5]
        assert arrivals(found).tolist() == [0.0, 0.9]

    def test_one_without_ids_has_none(self, tmp_path: Path) -> None:
        plain = {key: value for key, value in MOONCAKE.items() if key != "hash_ids"}
        found = traces.read(written(tmp_path, json.dumps(plain) + "\n"))
        assert found.hash_ids is None and found.block_tokens is None

    def test_turns_follow_by_their_delay_in_their_session(self, tmp_path: Path) -> None:
        turns = [{**MOONCAKE, "session_id": "a"}, {"session_id": "b", "input_length": 5, "output_length": 1, "timestamp": 10}]
        turns.append({"session_id": "a", "input_length": 2000, "output_length": 7, "delay": 250, "hash_ids": [1, 2, 3, 9]})
        found = traces.read(written(tmp_path, "\n".join(map(json.dumps, turns))))
        assert arrivals(found).tolist() == [0.0, 0.01, 0.25] and found.sessions is not None
        assert found.sessions.tolist() == [0, 1, 0] and "1 turns follow by a delay" in text(found.notes[0])

    def test_text_instead_of_lengths_is_cut(self, tmp_path: Path) -> None:
        turns = [{"timestamp": at, "text_input": f"{SECRET} and {at}", "output_length": 5} for at in (0, 1)]
        found = traces.read(written(tmp_path, "\n".join(map(json.dumps, turns))))
        assert found.hash_ids is not None and found.input_tokens[0] > 4 and found.block_tokens == 16

    def test_text_beside_ids_is_cut_into_blocks_of_the_same_size(self, tmp_path: Path) -> None:
        said = {"timestamp": 5, "text_input": "word " * 1030, "output_length": 5}
        found = traces.read(written(tmp_path, "\n".join(map(json.dumps, (MOONCAKE, said)))))
        assert found.block_tokens == 512 and found.hash_offsets is not None and found.hash_offsets.tolist() == [0, 3, 6]

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
        found = traces.read(written(tmp_path, f"{json.dumps(MOONCAKE)}\n{json.dumps({**MOONCAKE, **change})}\n"))
        assert (found.requests, found.damaged, found.damaged_lines) == (1, 1, (2,))


def test_quantiles_run_from_the_least_to_the_most(tmp_path: Path) -> None:
    moments = lengths(traces.read(written(tmp_path, HEADER + GOOD)))
    assert len(moments.output_quantiles) == 101
    assert moments.output_quantiles[0] == 44 and moments.output_quantiles[50] == 55 and moments.output_quantiles[100] == 109


@given(st.lists(st.text(alphabet='0123456789,-:. TZ+naif\x00é"\r', max_size=40), max_size=8))
def test_any_lines_are_a_trace_or_one_line(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = written(tmp_path_factory.mktemp("fuzz"), HEADER + "\n".join(lines))
    try:
        found = traces.read(path)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert bool(np.all(np.isfinite(arrivals(found))))


class TestBundledSample:
    def test_of_a_chat_log_has_routes_sessions_and_shared_beginnings(self, root: Path) -> None:
        path = root / "examples/made-up-chat.jsonl"
        assert path.stat().st_size < 200_000
        found = traces.read(path, Reading(group="metadata.route"))
        assert (found.requests, found.damaged) == (len(path.read_text().splitlines()), 0)
        assert set(found.group_names) == {"support", "notes", "code"}
        assert found.sessions is not None and found.hash_ids is not None and found.ttft_s is not None
        assert len(set(found.hash_ids.tolist())) < len(found.hash_ids) / 2

    def test_is_small_and_whole(self, root: Path) -> None:
        path = root / "examples/llama-70b-chat-trace.csv"
        assert path.stat().st_size < 100_000
        found = traces.read(path)
        assert found.requests == 2000 and found.damaged == 0

    def test_reads_as_chat(self, root: Path) -> None:
        found = traces.read(root / "examples/llama-70b-chat-trace.csv")
        assert 500 < lengths(found).mean_input < 2000 and 100 < lengths(found).mean_output < 400
        assert 1 < request_rate(found) < 3
