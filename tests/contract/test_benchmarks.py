"""Files of benchmarks: each is recognised by what is in it, read in its own units, and no damage to it is more than one line."""

from __future__ import annotations

import copy
import json
from math import isfinite
from pathlib import Path
from typing import Any

import pytest
from benchmark_samples import SAMPLES, Sample
from hypothesis import given, settings
from hypothesis import strategies as st

from breakeven import api, registry
from breakeven.errors import InputError
from breakeven.measured.benchmark import Loop, Outcome
from breakeven.measured.benchmark_files import is_recognised, read_benchmark, readers
from breakeven.measured.benchmark_text import records_of
from breakeven.measured.step_forms import StepReading
from breakeven.messages import text

EACH = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES.keys())
BAD: list[Any] = [None, "", "inf", "NaN", -1, 0, 1e308, 10**400, "1e400", True, [], {}, [1], {"a": 1}, "x" * 300, "\x1b[31m"]


def read(folder: Path, content: str | bytes) -> tuple[Outcome, ...]:
    path = folder / "found"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    found = read_benchmark(path)
    return () if found is None else found.outcomes


def measured(outcomes: tuple[Outcome, ...]) -> list[Loop | StepReading]:
    return [one.measured for one in outcomes if one.measured is not None]


def numbers(one: Loop | StepReading) -> list[float]:
    times = (
        [one.tpot_s, one.concurrency, one.input_tokens, one.output_tokens]
        if isinstance(one, Loop)
        else [one.step_s, one.width, one.context_tokens]
    )
    return [*times, *([one.ttft_s] if isinstance(one, Loop) and one.ttft_s is not None else [])]


def test_every_reader_has_a_sample() -> None:
    assert {sample.reader for sample in SAMPLES.values()} == set(registry.names("measured/benchmarks"))


@EACH
def test_a_file_is_recognised_by_its_own_reader_and_by_no_other(sample: Sample) -> None:
    first = next(iter(records_of(sample.text, "f"))).fields
    assert [name for name, one in readers().items() if one.recognises(first)] == [sample.reader]


@EACH
def test_each_says_its_load_and_its_time_in_seconds(sample: Sample, tmp_path: Path) -> None:
    found = measured(read(tmp_path, sample.text))
    assert len(found) == sample.measured
    if found:
        time = found[0].tpot_s if isinstance(found[0], Loop) else found[0].step_s
        assert found[0].width == pytest.approx(sample.load, rel=1e-3) and time == pytest.approx(sample.tpot_s, rel=1e-6)


@EACH
def test_what_is_no_measurement_says_why_in_both_languages(sample: Sample, tmp_path: Path) -> None:
    for one in read(tmp_path, sample.text):
        for message in (*((one.refused,) if one.refused is not None else ()), *one.notes):
            assert text(message, "en") and text(message, "zh") and "\n" not in text(message, "en")


@EACH
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_file_that_breaks_off_is_one_line(sample: Sample, tmp_path: Path, share: float) -> None:
    cut = sample.text[: int(len(sample.text) * share)]
    try:
        found = read(tmp_path, cut)
    except InputError as error:
        assert "\n" not in str(error)
        return
    assert all(isfinite(x) and x > 0 for one in measured(found) for x in numbers(one))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a record at which something stands."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for name, one in inside for place in places(one, (*path, name)))]


def with_value(record: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(record)
    at = changed
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = value
    return changed


JSON = {name: json.loads(sample.text) for name, sample in SAMPLES.items() if sample.text.lstrip()[0] in "{[" and "\n{" not in sample.text}
JSON |= {name: json.loads(SAMPLES[name].text.splitlines()[0]) for name in ("llama_timings", "sglang_bench", "aiperf requests")}


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_value_in_any_place_gives_figures_or_a_reason(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    record = JSON[data.draw(st.sampled_from(sorted(JSON)))]
    path = data.draw(st.sampled_from(places(record)[1:]))
    changed = json.dumps(with_value(record, path, data.draw(st.sampled_from(BAD))))
    for one in read(tmp_path_factory.mktemp("any"), changed):
        if one.measured is not None:
            assert all(isfinite(x) and x > 0 for x in numbers(one.measured)), path
        for message in (*((one.refused,) if one.refused is not None else ()), *one.notes):
            assert text(message, "en")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"   \n",
        b"{",
        b"[]",
        b"[1, 2]",
        b"null",
        b'{"a": 1}',
        b"\x00\x01\x02",
        b"| a |\n",
        b"a,b\n1,2\n",
        b"{" * 100_000,
        b"metadata:\n  - [\n",
    ],
)
def test_other_files_are_none_of_a_benchmark(content: bytes, tmp_path: Path) -> None:
    assert read(tmp_path, content) == ()


def test_yaml_that_points_into_itself_is_not_unfolded() -> None:
    bomb = "metadata: {guidellm_version: '0.7'}\na: &a [x, x]\n" + "".join(f"b{n}: &b{n} [*a, *a]\n" for n in range(9)) + "benchmarks: []\n"
    assert not is_recognised(bomb, "f")


def test_a_report_in_yaml_says_what_it_says_in_json(tmp_path: Path) -> None:
    import yaml

    report = json.loads(SAMPLES["guidellm"].text)
    (one,), (other,) = (measured(read(tmp_path, words)) for words in (yaml.safe_dump(report, sort_keys=False), json.dumps(report)))
    assert one == other


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_value_in_any_place_is_a_calibration_or_one_line(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    name = data.draw(st.sampled_from(sorted(JSON)))
    path = data.draw(st.sampled_from(places(JSON[name])[1:]))
    file = tmp_path_factory.mktemp("any") / "found.json"
    file.write_text(json.dumps(with_value(JSON[name], path, data.draw(st.sampled_from(BAD)))))
    try:
        found = api.calibrate(file, model="llama-3.1-8b", hardware="l40s", engine="llamacpp" if name.startswith("llama") else "vllm 0.11.0")
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert found.document.made.rows >= 1


class Counted(str):
    """A text that knows how much of it was looked through for lines."""

    looked = 0

    def count(self, sign: str, *ends: int) -> int:  # type: ignore[override]
        Counted.looked += ends[1] - ends[0]
        return super().count(sign, *ends)


def test_the_line_of_each_object_is_found_from_the_one_before() -> None:
    written = Counted("".join(f'{{"a": 1,\n "b": {n}}}\n\n' for n in range(500)))
    found = list(records_of(written, "f"))
    assert [one.where for one in found] == [f"f:{1 + 3 * n}" for n in range(500)]
    assert Counted.looked <= len(written)
