"""Files of traces that are broken, huge, packed or none at all: counted and said clearly, in one line, and never all in memory."""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_samples import AZURE, CHAT, FORMS, HEADER, MOONCAKE, SHAREGPT, SPEND

from breakeven import traces
from breakeven.errors import BreakevenError, InputError
from breakeven.messages import text
from breakeven.reading import nesting, records, source
from breakeven.reading.cells import times_ns
from breakeven.reading.cutting import KINDS, LONGEST, WIDTH, cut
from breakeven.reading.pieces import scaled
from breakeven.reading.source import Source
from breakeven.reading.stamps import stamp_ns
from breakeven.trace import Trace, arrivals, request_rate
from breakeven.traces import Reading

GOOD = HEADER + "\n".join(AZURE) + "\n"


def written(folder: Path, content: str | bytes, name: str = "t") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def said(trace: Trace) -> str:
    return " ".join(text(note) for note in trace.notes)


class TestWhatIsNoTrace:
    @pytest.mark.parametrize("content", [bytes(100), b"hello", b"{}", b"[1, 2]", bytes(range(256)) * 9])
    def test_an_unknown_form_names_the_known(self, tmp_path: Path, content: bytes) -> None:
        with pytest.raises(InputError, match="azure, burstgpt"):
            traces.read(written(tmp_path, content))

    @pytest.mark.parametrize("content", [b"", b" \n\n", b"\xef\xbb\xbf", b"\xff\xfe", gzip.compress(b"", mtime=0)])
    def test_an_empty_file_is_said_to_be_empty(self, tmp_path: Path, content: bytes) -> None:
        with pytest.raises(InputError, match="empty"):
            traces.read(written(tmp_path, content))

    @pytest.mark.parametrize("form", FORMS)
    def test_a_file_without_a_sound_request_is_no_trace(self, tmp_path: Path, form: str) -> None:
        content = FORMS[form].text(["{'x'}"] if FORMS[form].records[0].startswith("{") else ["x"])
        with pytest.raises(InputError, match=r"no request|not a trace"):
            traces.read(written(tmp_path, content))

    def test_one_request_tells_no_rate(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="--rate"):
            request_rate(traces.read(written(tmp_path, HEADER + AZURE[0])))

    def test_requests_at_one_moment_tell_no_rate_either(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"3 requests, all at one moment.*--concurrency"):
            request_rate(traces.read(written(tmp_path, HEADER + "\n".join([AZURE[0]] * 3))))

    def test_a_folder_a_pipe_a_circle_and_nothing(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "loop").symlink_to(tmp_path / "loop")
        for path in (tmp_path, tmp_path / "pipe", tmp_path / "loop", tmp_path / "absent", Path("a\0b")):
            with pytest.raises(BreakevenError) as refused:
                traces.read(path)
            assert "\n" not in str(refused.value)

    def test_a_parquet_file_that_is_none_is_one_line(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="Parquet"):
            traces.read(written(tmp_path, b"PAR1" + b"x" * 200 + b"PAR1"))


class TestEncodings:
    def test_text_in_another_encoding_is_refused_with_what_to_do(self, tmp_path: Path) -> None:
        asked = json.dumps({**CHAT, "model": "模型"}, ensure_ascii=False)
        with pytest.raises(InputError, match=r"not UTF-8 \(byte \d+ is not\); convert it, .*iconv"):
            traces.read(written(tmp_path, asked.encode("gb18030")))

    def test_one_bad_byte_is_one_damaged_line(self, tmp_path: Path) -> None:
        lines = [json.dumps({**MOONCAKE, "session_id": "日本"}, ensure_ascii=False).encode("utf-8") for _ in range(3)]
        found = traces.read(written(tmp_path, b"\n".join([lines[0], lines[1].replace("日".encode(), b"\xff"), lines[2]])))
        assert (found.requests, found.damaged_lines) == (2, (2,))

    @pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
    def test_utf_16_without_its_mark_is_named(self, tmp_path: Path, encoding: str) -> None:
        with pytest.raises(InputError, match=encoding.upper().replace("-LE", "LE").replace("-BE", "BE")):
            traces.read(written(tmp_path, GOOD.encode(encoding)))

    @pytest.mark.parametrize(("magic", "command"), [(b"\x28\xb5\x2f\xfd", "zstd -d"), (b"BZh", "bunzip2"), (b"PK\x03\x04", "unzip")])
    def test_other_ways_of_packing_are_refused_with_what_unpacks_them(self, tmp_path: Path, magic: bytes, command: str) -> None:
        with pytest.raises(InputError, match=command):
            traces.read(written(tmp_path, magic + b"x" * 99))


class TestPacked:
    LINES = HEADER + "".join(
        f"2023-11-16 18:{n // 60:02}:{n % 60:02}.{n * 7919 % 10**7:07},{n * n % 977 + 1},{n + 1}\n" for n in range(900)
    )

    def test_one_that_breaks_off_keeps_what_came_and_says_where(self, tmp_path: Path) -> None:
        packed = gzip.compress(self.LINES.encode())
        found = traces.read(written(tmp_path, packed[: len(packed) // 2]))
        whole = traces.read(written(tmp_path, self.LINES))
        assert 100 < found.requests < 900 and found.damaged == 1
        assert np.array_equal(found.input_tokens, whole.input_tokens[: found.requests])
        assert f"breaks off after line {found.requests + 1};" in said(found) and found.damaged_lines == (found.requests + 2,)

    def test_one_with_a_flipped_bit_keeps_what_came_before(self, tmp_path: Path) -> None:
        packed = bytearray(gzip.compress(self.LINES.encode()))
        packed[len(packed) // 2] ^= 255
        found = traces.read(written(tmp_path, bytes(packed)))
        sound = traces.read(written(tmp_path, self.LINES)).input_tokens
        assert found.requests > 300 and np.array_equal(found.input_tokens[:300], sound[:300])
        assert found.damaged > 0 and "breaks off" in said(found)

    def test_members_follow_each_other_and_zeros_at_the_end_do_no_harm(self, tmp_path: Path) -> None:
        lines = GOOD.splitlines(keepends=True)
        packed = gzip.compress("".join(lines[:2]).encode()) + gzip.compress("".join(lines[2:]).encode()) + bytes(512)
        found = traces.read(written(tmp_path, packed))
        assert (found.requests, found.notes) == (3, ())

    def test_a_broken_array_is_counted_by_its_element(self, tmp_path: Path) -> None:
        array = json.dumps([SPEND] * 9)
        found = traces.read(written(tmp_path, array[: len(array) // 2]))
        assert (found.requests, found.damaged, found.damaged_records, found.damaged_lines) == (4, 1, (5,), (1,))


class TestArrays:
    @given(st.lists(st.recursive(st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))))
    def test_elements_are_those_that_json_says(self, tmp_path_factory: pytest.TempPathFactory, values: list[Any]) -> None:
        tables = [{"value": value} for value in values]
        path = written(tmp_path_factory.mktemp("array"), json.dumps(tables, ensure_ascii=False).encode("utf-8", "replace") + b" ")
        whole = json.loads(path.read_bytes())
        for piece in (7, 2**20):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(source, "PIECE", piece)
                assert [records.table_of(record.data) for record in records.elements(Source(path), 1)] == whole

    @given(st.binary(max_size=300).map(lambda found: bytes(b'{}[]"\\,a:'[sign % 9] for sign in found)))
    def test_the_compiled_scan_is_the_interpreted_one(self, content: bytes) -> None:
        found = []
        for scan in (nesting.scan, nesting.scan.py_func):  # type: ignore[attr-defined]
            state, ends = nesting.new_state(), np.zeros(len(content) + 1, dtype=np.int64)
            found.append((scan(np.frombuffer(content, dtype=np.uint8), state, 1, ends), state.tolist(), ends.tolist()))
        assert found[0] == found[1]

    def test_what_is_no_object_among_elements_is_damaged_with_its_number_and_line(self, tmp_path: Path) -> None:
        one = json.dumps(SHAREGPT)
        found = traces.read(written(tmp_path, f"[\n{one},\n5,\n{one[:-1]}, tru}},\nnull,\n{one}\n]"))
        assert (found.requests, found.damaged, found.damaged_records) == (4, 3, (2, 3, 4))
        assert found.damaged_lines[1] == 4

    def test_an_array_of_any_size_is_never_whole_in_memory(self, tmp_path: Path) -> None:
        path, record = tmp_path / "big.json", json.dumps({**SPEND, "messages": "x" * 4000}).encode()
        with path.open("wb") as handle:
            handle.write(b"[" + record)
            for _ in range(600):
                handle.write((b", " + record) * 50)
            handle.write(b"]")
        assert path.stat().st_size > 120e6
        probe = "import resource, sys; from pathlib import Path; from breakeven import traces\n"
        probe += "small = traces.read(Path(sys.argv[1])); before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        probe += "big = traces.read(Path(sys.argv[2])); print(big.requests, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
        small = written(tmp_path, json.dumps([SPEND]), "small.json")
        run = subprocess.run([sys.executable, "-c", probe, str(small), str(path)], capture_output=True, text=True, check=True)
        requests, more = map(int, run.stdout.split())
        unit = 1 if sys.platform == "darwin" else 1024
        assert requests == 30_001 and more * unit < 40e6, "30,001 requests take 2 MB, and a piece of the file a few"

    def test_a_record_without_end_is_damaged_and_fills_no_memory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for module in (source, records):
            monkeypatch.setattr(module, "LONGEST_RECORD", 2**21)
        one = json.dumps(MOONCAKE)
        endless = '{"timestamp": 0, "x": "' + "y" * 2**23
        found = traces.read(written(tmp_path, f'{one}\n{endless}"}}\n{one}\n'))
        assert (found.requests, found.damaged_lines) == (2, (2,))
        array = traces.read(written(tmp_path, f"[{one}, {endless}"))
        assert (array.requests, array.damaged_records) == (1, (2,))


class TestLargeTables:
    def test_holes_of_a_gigabyte_are_one_damaged_line(self, tmp_path: Path) -> None:
        path = tmp_path / "big.csv"
        with path.open("wb") as handle:
            handle.write(GOOD.encode())
            handle.truncate(2**30)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = traces.read(path)
        assert (found.requests, found.damaged) == (3, 1)
        assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 800e6

    def test_an_id_of_thousands_of_digits_is_one_damaged_row(self, tmp_path: Path) -> None:
        rows = [f'{at},1000,10,"{ids}"' for at, ids in enumerate(("[1]", "9" * 5000, "[1]"))]
        found = traces.read(written(tmp_path, "\n".join(["timestamp,input_tokens,output_tokens,hash_ids", *rows])))
        assert (found.requests, found.damaged_lines) == (2, (3,))

    @pytest.mark.parametrize("unit", [1, 10**3, 10**9])
    def test_a_time_that_is_off_does_not_change_the_unit_of_the_others(self, tmp_path: Path, unit: int) -> None:
        times = [unit * (1_700_000_000 + second) for second in range(9)]
        rows = [f"{at},100,10" for at in (*times[:4], "1e300", *times[4:])]
        found = traces.read(written(tmp_path, "\n".join(["timestamp,input_tokens,output_tokens", *rows])))
        assert (found.requests, found.damaged_lines) == (9, (6,)) and arrivals(found)[-1] == 8.0

    def test_a_clock_that_counts_up_keeps_its_unit_and_what_that_cannot_hold_is_counted(self, tmp_path: Path) -> None:
        rows = [f"{10_000_000 * i},100,10" for i in range(40_000)]
        found = traces.read(written(tmp_path, "\n".join(["timestamp,input_tokens,output_tokens", *rows])))
        between = np.diff(arrivals(found))
        assert found.damaged + found.requests == 40_000 and between.min() == between.max()

    def test_duplicate_times_are_kept_and_said_where_they_dominate(self, tmp_path: Path) -> None:
        rows = [f"2023-11-16 18:15:{second:02},{second + 1},1" for second in range(10) for _ in range(5)]
        found = traces.read(written(tmp_path, HEADER + "\n".join(rows)))
        assert found.requests == 50 and "40 of 50 requests arrive at the very moment of another" in said(found)
        assert not traces.read(written(tmp_path, HEADER + "\n".join(sorted([*rows[::5], *rows[::5][:9]])))).notes


@given(
    st.datetimes().filter(lambda at: 1900 <= at.year < 2100),
    st.integers(0, 10**9 - 1),
    st.sampled_from(["", "Z", "+00:00", "-0730", "+08"]),
)
def test_a_column_of_stamps_is_read_as_one_stamp_is(at: Any, fraction: int, zone: str) -> None:
    import polars as pl

    stamp = f"{at:%Y-%m-%d %H:%M:%S}.{fraction:09}{zone}"
    values, none, zoned = times_ns(pl.Series([stamp, "no time"]))
    assert (int(values[0]), bool(zoned[0])) == stamp_ns(stamp) and none.tolist() == [False, True]
    assert int(values[0]) % 10**9 == fraction


@given(st.text(max_size=60), st.text(max_size=9), st.text(max_size=9))
def test_texts_that_begin_alike_are_cut_alike(beginning: str, one: str, other: str) -> None:
    def pieces(words: str, function: Any = cut) -> list[int]:
        data = np.frombuffer(words.encode("utf-8", "replace"), dtype=np.uint8)
        return function(data, KINDS, LONGEST, WIDTH).tolist()  # type: ignore[no-any-return]

    first, second, alike = pieces(beginning + one), pieces(beginning + other), pieces(beginning)
    # The last piece may go on into what follows, and take a space with it.
    sure = max(0, len(alike) - 2)
    assert first[:sure] == second[:sure] == alike[:sure]
    assert pieces(beginning, cut.py_func) == alike  # type: ignore[attr-defined]


@given(st.lists(st.integers(0, 99), max_size=60), st.integers(0, 60), st.floats(0.25, 4))
def test_scaled_pieces_that_begin_alike_go_on_alike(pieces: list[int], cut_at: int, per_token: float) -> None:
    whole = scaled(np.array(pieces, dtype=np.int32), per_token)
    part = scaled(np.array(pieces[:cut_at], dtype=np.int32), per_token)
    sure = max(0, len(part) - 1)
    assert np.array_equal(part[:sure], whole[:sure]) and len(whole) == int(np.ceil(len(pieces) / per_token))


def test_blocks_and_tokens_tell_the_same_prefixes_apart(tmp_path: Path) -> None:
    asked = [{"prompt_token_ids": list(range(n)), "choices": []} for n in (40, 33, 50)] + [{"prompt_token_ids": [1] * 40, "choices": []}]
    path = written(tmp_path, "\n".join(map(json.dumps, asked)))
    found = traces.read(path, Reading(block_tokens=16))
    assert found.hash_ids is not None and found.hash_offsets is not None
    blocks = [row.tolist() for row in np.split(found.hash_ids, found.hash_offsets[1:-1])]
    assert blocks[0][:2] == blocks[1][:2] == blocks[2][:2] and len({row[2] for row in blocks}) == 4
    assert not set(blocks[0]) & set(blocks[3]) and not arrivals_known(found)


def arrivals_known(trace: Trace) -> bool:
    try:
        arrivals(trace)
    except InputError:
        return False
    return True


HOSTILE: tuple[Any, ...] = (
    None,
    "",
    "x",
    -1,
    0,
    1.5,
    1e308,
    10**30,
    True,
    [],
    {},
    [[]],
    ["a", None],
    {"a": {}},
    "9" * 400,
    "\x00",
    [2**40],
    "{}",
)


def replaced(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    """A value with another one at a place within it."""
    if not path:
        return other
    found = dict(value) if isinstance(value, dict) else list(value)
    found[path[0]] = replaced(found[path[0]], path[1:], other)
    return found


def places(value: Any) -> list[tuple[Any, ...]]:
    """The places of all values within a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(), *((key, *rest) for key, part in inner for rest in places(part))]


@pytest.mark.parametrize("form", [form for form, sample in FORMS.items() if sample.records[0].startswith("{")])
@given(data=st.data())
def test_any_value_at_any_place_is_a_trace_or_one_line(tmp_path_factory: pytest.TempPathFactory, form: str, data: st.DataObject) -> None:
    sample = FORMS[form]
    record = json.loads(sample.records[0])
    for _ in range(data.draw(st.integers(1, 2))):
        record = replaced(record, data.draw(st.sampled_from(places(record))), data.draw(st.sampled_from(HOSTILE)))
    path = written(tmp_path_factory.mktemp("any"), sample.text([sample.records[0], json.dumps(record)]))
    found = traces.read(path, Reading(keep_tokens=True))
    assert found.form == form and found.requests >= sample.per_record
    try:
        traces.read(written(path.parent, sample.text([json.dumps(record)])))
    except InputError as error:
        assert "\n" not in str(error)
