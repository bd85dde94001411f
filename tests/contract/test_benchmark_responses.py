"""Responses as they came: llama.cpp's ``timings``, genai-perf's raw export, and llama-bench's rows of SQL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmark_samples import LLAMA_BENCH, lines, llama_bench, raw_export, raw_request, response, sql_of

from breakeven import api
from breakeven.errors import InputError
from breakeven.measured.benchmark import Loop, Outcome
from breakeven.measured.benchmark_files import read_benchmark
from breakeven.messages import text


def read(folder: Path, content: str) -> list[Outcome]:
    (folder / "found").write_text(content)
    found = read_benchmark(folder / "found")
    assert found is not None
    return list(found.outcomes)


def loop(found: Outcome) -> Loop:
    assert isinstance(found.measured, Loop)
    return found.measured


def why(found: Outcome) -> str:
    assert found.refused is not None and found.measured is None
    return text(found.refused)


class TestTimings:
    def test_recorded_ones_that_do_not_say_what_ran_beside_are_no_row(self, shared: Path, tmp_path: Path) -> None:
        recorded = json.loads((shared / "snapshots/llama_timings.json").read_text())
        (found,) = read(tmp_path, json.dumps(recorded))
        assert 'add "concurrency": N to each line' in why(found)

    def test_with_their_load_they_are_its_time_per_token(self, shared: Path, tmp_path: Path) -> None:
        recorded = json.loads((shared / "snapshots/llama_timings.json").read_text())
        (found,) = read(tmp_path, json.dumps({"concurrency": 32, "timings": recorded}))
        run = loop(found)
        assert run.tpot_s == pytest.approx(recorded["predicted_ms"] / 63 / 1000)
        assert (run.concurrency, run.input_tokens, run.output_tokens, run.engine) == (32.0, 64.0, 64.0, "llama.cpp")

    def test_the_first_token_came_before_the_time_began(self, tmp_path: Path) -> None:
        (found,) = read(tmp_path, lines(response(11, 100.0, concurrency=1), response(21, 400.0, concurrency=1)))
        assert loop(found).tpot_s == pytest.approx((0.010 + 0.020) / 2) and loop(found).output_tokens == 16.0

    def test_each_load_is_a_row(self, tmp_path: Path) -> None:
        found = read(tmp_path, lines(*(response(101, 1000.0 * (1 + n), concurrency=n) for n in (1, 2, 4, 2))))
        assert [(loop(one).concurrency, round(loop(one).tpot_s, 4)) for one in found] == [(1.0, 0.02), (2.0, 0.03), (4.0, 0.05)]

    def test_model_format_and_build_are_read_as_they_stand(self, tmp_path: Path) -> None:
        (found,) = read(tmp_path, lines(response(101, 2000.0, concurrency=1)))
        assert (loop(found).model, loop(found).weights, loop(found).version) == ("Llama-3.1-8B", "Q8_0", "b6123")

    def test_a_build_without_a_number_is_no_version(self, tmp_path: Path) -> None:
        (found,) = read(tmp_path, lines(response(101, 2000.0, concurrency=1, system_fingerprint="b0-unknown")))
        assert loop(found).version == ""

    def test_cached_tokens_are_part_of_the_prompt(self, tmp_path: Path) -> None:
        timings = {"cache_n": 192, "prompt_n": 64, "prompt_ms": 90.0, "predicted_n": 101, "predicted_ms": 2000.0}
        (found,) = read(tmp_path, lines(response(101, 2000.0, concurrency=1, timings=timings)))
        assert (loop(found).input_tokens, loop(found).prefix_hit_rate) == (256.0, 0.75)

    def test_a_build_that_does_not_count_them_says_so(self, tmp_path: Path) -> None:
        timings = {"prompt_n": 64, "prompt_ms": 90.0, "predicted_n": 101, "predicted_ms": 2000.0}
        (found,) = read(tmp_path, lines({"concurrency": 1, "timings": timings}))
        assert [note.key for note in found.notes] == ["bench.timings_no_cache"]

    def test_rounds_of_drafts_are_no_steps(self, tmp_path: Path) -> None:
        timings = {**response(101, 2000.0)["timings"], "draft_n": 100, "draft_n_accepted": 50}
        (found,) = read(tmp_path, lines(response(101, 2000.0, concurrency=1, timings=timings)))
        assert "2.00 tokens a round" in why(found) and "50 %" in why(found)

    def test_drafts_of_which_none_was_accepted_are_no_steps_either(self, tmp_path: Path) -> None:
        timings = {**response(101, 2000.0)["timings"], "draft_n": 100, "draft_n_accepted": 0}
        assert "1.00 tokens a round" in why(read(tmp_path, lines({"concurrency": 1, "timings": timings}))[0])

    def test_answers_of_one_token_tell_no_step(self, tmp_path: Path) -> None:
        assert "no time between tokens" in why(read(tmp_path, lines(response(1, 0.0, concurrency=1)))[0])

    def test_they_calibrate_like_any_other_run(self, tmp_path: Path) -> None:
        (tmp_path / "r.jsonl").write_text(lines(*(response(129, 1900.0 + 60 * n, concurrency=n) for n in (1, 2, 4, 8))))
        found = api.calibrate(tmp_path / "r.jsonl", model="llama-3.1-8b", hardware="l40s")
        assert found.document.made.rows == 4 and not found.left_out


class TestRawExport:
    def test_the_server_s_own_count_makes_chunks_a_time_per_token(self, tmp_path: Path) -> None:
        (found,) = read(tmp_path, json.dumps(raw_export(raw_request(0, 33), raw_request(0, 33))))
        run = loop(found)
        assert run.tpot_s == pytest.approx(0.020) and run.ttft_s == pytest.approx(0.100)
        assert (run.concurrency, run.input_tokens, run.output_tokens, run.model) == (2.0, 512.0, 33.0, "meta-llama/Llama-3.1-8B")

    def test_chunks_of_several_tokens_are_shared_out_over_them(self, tmp_path: Path) -> None:
        request = raw_request(0, 33)
        usage = {"choices": [], "usage": {"prompt_tokens": 512, "completion_tokens": 65}}
        request["response_outputs"][-2] = {"response": f"data: {json.dumps(usage)}\n\n"}
        (found,) = read(tmp_path, json.dumps(raw_export(request, streams=1)))
        assert loop(found).tpot_s == pytest.approx(0.010) and loop(found).output_tokens == 65.0

    def test_without_that_count_chunks_are_not_taken_for_tokens(self, tmp_path: Path) -> None:
        (found,) = read(tmp_path, json.dumps(raw_export(raw_request(0, 33, usage=False), raw_request(0, 33))))
        assert "1 of 2" in why(found) and "chunks are not tokens" in why(found)

    def test_a_request_that_got_no_answer_is_one_that_was_not_served(self, tmp_path: Path) -> None:
        failed = {**raw_request(0, 33), "response_timestamps": [], "response_outputs": []}
        (found,) = read(tmp_path, json.dumps(raw_export(raw_request(0, 33), failed)))
        assert "only 1 of 2 requests were served" in why(found)

    def test_a_rate_is_no_number_of_streams(self, tmp_path: Path) -> None:
        export = raw_export(*(raw_request(at * 370_500_000, 33) for at in range(200)))
        export["experiments"][0]["experiment"] = {"mode": "request_rate", "value": 50}
        (found,) = read(tmp_path, json.dumps(export))
        assert loop(found).concurrency == pytest.approx(2.0, rel=0.01) and "bench.open_loop" in [note.key for note in found.notes]

    @pytest.mark.parametrize("experiments", [[], [None], [{}], [{"requests": "x"}], [{"requests": [1, None]}], [[1]]])
    def test_exports_of_nothing_are_a_line_each(self, tmp_path: Path, experiments: list[Any]) -> None:
        for one in read(tmp_path, json.dumps({"experiments": experiments})):
            assert "\n" not in why(one)


class TestSql:
    def test_its_rows_say_what_the_other_forms_say(self, tmp_path: Path) -> None:
        records = [llama_bench(0, 128, 0, 2.0e9), llama_bench(0, 64, 4096, 1.1e9)]
        assert [one.measured for one in read(tmp_path, sql_of(records))] == [one.measured for one in read(tmp_path, json.dumps(records))]

    def test_a_dump_of_the_table_has_its_columns_above_the_rows(self, tmp_path: Path) -> None:
        names = list(LLAMA_BENCH[1])
        values = ",".join(f"'{v}'" if isinstance(v, str) else str(v) for v in LLAMA_BENCH[1].values())
        table = f"CREATE TABLE llama_bench (\n{', '.join(f'{name} TEXT' for name in names)}\n);\n"
        dump = f"PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n{table}INSERT INTO llama_bench VALUES({values});\nCOMMIT;\n"
        assert [one.measured for one in read(tmp_path, dump)] == [one.measured for one in read(tmp_path, json.dumps(LLAMA_BENCH[1:2]))]

    @pytest.mark.parametrize("processor", ["Ann's CPU", "Ann''s CPU"])
    def test_a_quote_within_a_value_is_one_whether_doubled_or_not(self, tmp_path: Path, processor: str) -> None:
        record = {**llama_bench(0, 128, 0, 2.0e9), "cpu_info": processor, "gpu_info": "", "n_gpu_layers": 0}
        (found,) = read(tmp_path, sql_of([record]))
        assert found.measured is not None and found.measured.device == "Ann's CPU"

    def test_a_row_with_a_value_too_few_is_one_line_with_its_place(self, tmp_path: Path) -> None:
        head, _, last = sql_of(LLAMA_BENCH[:2]).rpartition("'llama 8B Q8_0', ")
        broken = head + last
        with pytest.raises(InputError) as raised:
            read(tmp_path, broken)
        assert f"found, line {len(broken.splitlines())}:" in str(raised.value) and "\n" not in str(raised.value)

    def test_a_folder_of_them_is_read(self, tmp_path: Path) -> None:
        (tmp_path / "bench.sql").write_text(sql_of(LLAMA_BENCH))
        assert api.calibrate(tmp_path, model="llama-3.1-8b", hardware="l40s").document.made.rows >= 2
