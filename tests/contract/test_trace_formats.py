"""What each form of trace says and leaves out, in its own fields and units."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trace_samples import AIPERF, BATCH, CHAT, FORMS, GENAI_PERF, GUIDELLM, SECRET, SGLANG, SHAREGPT, SPEND, VLLM, WEKA, lines

from breakeven import traces
from breakeven.errors import InputError
from breakeven.messages import text
from breakeven.reading.naming import COMMON
from breakeven.spec.workload import Acceptance
from breakeven.trace import Trace, arrivals, outputs
from breakeven.traces import Reading, columns_of


def read(folder: Path, content: str | bytes, **reading: Any) -> Trace:
    path = folder / "t"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return traces.read(path, Reading(**reading))


def of(folder: Path, *records: dict[str, Any], **reading: Any) -> Trace:
    return read(folder, lines(*records).text(), **reading)


def said(trace: Trace) -> str:
    return " ".join(text(note) for note in trace.notes)


class TestBurstGPT:
    HEAD = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"

    def test_failed_rows_are_set_apart(self, tmp_path: Path) -> None:
        found = read(tmp_path, f"{self.HEAD}\n5,ChatGPT,472,18,490,Conversation log\n6,GPT-4,100,0,100,API log\n")
        assert (found.requests, found.set_apart) == (1, 1) and "first: 3" in said(found)

    def test_newer_files_have_sessions_and_elapsed_times(self, tmp_path: Path) -> None:
        rows = "5.5,3,2.25,ChatGPT,10,20,30,Conversation log\n7,3,,GPT-4,10,20,30,Conversation log\n"
        found = read(tmp_path, f"Timestamp,Session ID,Elapsed time,{self.HEAD.partition(',')[2]}\n{rows}")
        assert found.e2e_s is not None and found.e2e_s[0] == 2.25 and np.isnan(found.e2e_s[1])
        assert found.sessions is not None and found.sessions.tolist() == [0, 0] and found.group_names == ("ChatGPT", "GPT-4")

    def test_another_column_may_group(self, tmp_path: Path) -> None:
        found = read(tmp_path, FORMS["burstgpt"].text(), group="Log Type")
        assert found.group_names == ("Conversation log", "API log")


class TestShareGPT:
    def test_a_turns_prompt_is_all_that_was_said_before(self, tmp_path: Path) -> None:
        found = of(tmp_path, SHAREGPT, keep_tokens=True)
        assert found.prompt_ids is not None and found.prompt_offsets is not None and found.output_ids is not None
        first, second = (found.prompt_ids[found.prompt_offsets[n] : found.prompt_offsets[n + 1]] for n in (0, 1))
        assert np.array_equal(second[: len(first)], first)
        assert np.array_equal(second[len(first) :][: found.output_tokens[0]], found.output_ids[: found.output_tokens[0]])  # type: ignore[index]

    @pytest.mark.parametrize("name", ["conversation", "messages"])
    def test_the_other_spelling_is_the_same(self, tmp_path: Path, name: str) -> None:
        turns = [{"role": turn["from"], "content": turn["value"]} for turn in SHAREGPT["conversations"]]
        one, other = of(tmp_path, SHAREGPT), of(tmp_path, {name: turns})
        assert one.input_tokens.tolist() == other.input_tokens.tolist() and np.array_equal(one.hash_ids, other.hash_ids)

    def test_a_conversation_without_an_answer_is_set_apart(self, tmp_path: Path) -> None:
        found = of(tmp_path, SHAREGPT, {"id": "two", "conversations": SHAREGPT["conversations"][:1]})
        assert (found.requests, found.set_apart) == (2, 1)


class TestOpenAI:
    def test_a_batch_that_went_in_says_nothing_of_its_outputs(self, tmp_path: Path) -> None:
        found = of(tmp_path, BATCH)
        assert found.hash_ids is not None
        with pytest.raises(InputError, match=r"how many tokens were generated.*--output"):
            outputs(found)

    def test_a_batch_that_came_out_has_its_usage_and_no_prompts(self, tmp_path: Path) -> None:
        usage = {"prompt_tokens": 90, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 64}}
        answered = {"id": "i", "custom_id": "a", "response": {"status_code": 200, "body": {"usage": usage}}, "error": None}
        refused = {"id": "i", "custom_id": "b", "response": {"status_code": 500, "body": {}}, "error": None}
        found = of(tmp_path, answered, refused)
        assert (found.input_tokens.tolist(), outputs(found).tolist(), found.set_apart) == ([90], [7], 1)
        assert found.cached_tokens is not None and found.cached_tokens.tolist() == [64] and found.hash_ids is None

    def test_token_ids_are_taken_as_they_are(self, tmp_path: Path) -> None:
        found = of(tmp_path, {"prompt_token_ids": [5, 6, 7], "choices": [{"token_ids": [8, 9]}], "created": 1767607200}, keep_tokens=True)
        assert found.prompt_ids is not None and found.prompt_ids.tolist() == [5, 6, 7] and not found.notes
        assert found.output_ids is not None and found.output_ids.tolist() == [8, 9] and outputs(found).tolist() == [2]

    def test_measured_times_are_read_by_their_units(self, tmp_path: Path) -> None:
        found = of(tmp_path, {**CHAT, "ttft_ms": 250, "end_time": "2026-01-05T10:00:01.5Z"})
        assert found.ttft_s is not None and found.e2e_s is not None and (found.ttft_s[0], found.e2e_s[0]) == (0.25, 1.5)

    def test_a_failed_request_is_set_apart(self, tmp_path: Path) -> None:
        found = of(tmp_path, CHAT, {**CHAT, "error": {"message": SECRET}}, {**CHAT, "status_code": 429})
        assert (found.requests, found.set_apart) == (1, 2) and SECRET not in said(found)

    def test_equal_beginnings_share_blocks_and_no_more(self, tmp_path: Path) -> None:
        asked = [
            {"model": "m", "messages": [CHAT["request"]["messages"][0], {"role": "user", "content": word}], "choices": []} for word in "ab"
        ]
        found = of(tmp_path, *asked, block_tokens=8)
        assert found.hash_ids is not None and found.hash_offsets is not None
        one, other = np.split(found.hash_ids, found.hash_offsets[1:-1])
        assert (
            len(one) == len(other) == -(-int(found.input_tokens[0]) // 8) and np.array_equal(one[:-1], other[:-1]) and one[-1] != other[-1]
        )

    @pytest.mark.parametrize("per_token", [1.5, 0.75])
    def test_pieces_are_scaled_to_the_lengths_that_are_logged(self, tmp_path: Path, per_token: float) -> None:
        def asked(number: int) -> dict[str, Any]:
            words = ["shared "] * 3000 + [f"{number}{chr(97 + number)} "] * 300
            usage = {"prompt_tokens": round((3000 + 3 * 300) / per_token), "completion_tokens": 1}
            return {"model": "m", "prompt": "".join(words), "usage": usage}

        found = of(tmp_path, *map(asked, range(12)), block_tokens=16)
        assert found.hash_ids is not None and found.hash_offsets is not None
        rows = np.split(found.hash_ids, found.hash_offsets[1:-1])
        assert {len(row) for row in rows} == {-(-int(found.input_tokens[0]) // 16)}
        shared = sum(int(one == other) for one, other in zip(rows[0], rows[1], strict=True))
        assert shared == pytest.approx(3000 / per_token / 16, abs=2) and f"{per_token:.2f}"[:3] in said(found)

    def test_a_field_that_lies_deeper_may_group(self, tmp_path: Path) -> None:
        found = of(tmp_path, *({**CHAT, "metadata": {"route": route}} for route in ("search", "chat", "search")), group="metadata.route")
        assert found.groups is not None and found.groups.tolist() == [0, 1, 0] and found.group_names == ("search", "chat")

    def test_a_tokenizer_gives_exact_ids(self, tmp_path: Path) -> None:
        words = {"[UNK]": 0, "system": 1, "user": 2, "Say": 3}
        made = {
            "version": "1.0",
            "model": {"type": "WordLevel", "vocab": words, "unk_token": "[UNK]"},
            "pre_tokenizer": {"type": "Whitespace"},
        }
        (tmp_path / "tokenizer.json").write_text(json.dumps({**made, "added_tokens": [], "truncation": None, "padding": None}))
        asked = {"model": "m", "messages": [{"role": "user", "content": "Say Say more"}], "choices": []}
        found = of(tmp_path, asked, keep_tokens=True, tokenizer=tmp_path)
        assert found.prompt_ids is not None and found.prompt_ids.tolist() == [2, 3, 3, 0] and not found.notes

    @pytest.mark.parametrize("content", [b"{}", b"\xff\xfe", b"not JSON", b'{"model": {"type": "none"}}'])
    def test_a_tokenizer_that_is_none_is_one_line(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "tokenizer.json").write_bytes(content)
        with pytest.raises(InputError, match=r"not a tokenizer.json"):
            of(tmp_path, CHAT, tokenizer=tmp_path / "tokenizer.json")
        with pytest.raises(InputError, match="no such file"):
            of(tmp_path, CHAT, tokenizer=tmp_path / "absent.json")


class TestLiteLLM:
    def test_counts_and_times_are_read_and_nothing_else(self, tmp_path: Path) -> None:
        found = of(tmp_path, SPEND)
        assert (found.ttft_s, found.e2e_s, found.cached_tokens) == (np.array([0.5]), np.array([2.0]), np.array([64]))
        assert found.group_names == ("made-up",) and found.hash_ids is None and found.prompt_ids is None

    def test_what_never_reached_the_engine_or_failed_is_set_apart(self, tmp_path: Path) -> None:
        found = of(tmp_path, SPEND, {**SPEND, "cache_hit": "True"}, {**SPEND, "status": "failure"})
        assert (found.requests, found.set_apart) == (1, 2) and "proxy's own cache" in said(found)

    def test_without_streaming_there_is_no_time_to_a_first_token(self, tmp_path: Path) -> None:
        assert of(tmp_path, {**SPEND, "completionStartTime": SPEND["endTime"]}).ttft_s is None

    def test_a_payload_has_its_times_in_seconds(self, tmp_path: Path) -> None:
        found = of(tmp_path, {**SPEND, "startTime": 1767607200.5, "completionStartTime": 1767607201.0, "endTime": 1767607202.5})
        assert found.ttft_s is not None and found.ttft_s[0] == pytest.approx(0.5)

    def test_a_page_of_the_interface_and_an_export_as_csv_are_the_same(self, tmp_path: Path) -> None:
        page = read(tmp_path, json.dumps({"data": [SPEND, SPEND], "total": 2, "page": 1}))
        sheet = io.StringIO()
        writer = csv.DictWriter(sheet, SPEND)
        writer.writeheader()
        writer.writerows([{**SPEND, "metadata": json.dumps(SPEND["metadata"]), "messages": f"two\nlines of {SECRET}"}] * 2)
        export = read(tmp_path, sheet.getvalue())
        for found in (page, export):
            assert (found.form, found.requests, found.damaged, outputs(found).tolist()) == ("litellm", 2, 0, [20, 20])
            assert found.cached_tokens is not None and found.cached_tokens.tolist() == [64, 64]


STATED = {"spec_decode_acceptance_rate": 50.0, "spec_decode_acceptance_length": 2.8, "spec_decode_num_drafts": 5}


class TestBenchmarks:
    def test_end_to_end_is_the_first_token_and_the_gaps_after_it(self, tmp_path: Path) -> None:
        found = of(tmp_path, VLLM)
        assert arrivals(found).tolist() == [0.0, 0.5] and found.e2e_s is not None and found.e2e_s.tolist() == pytest.approx([0.8, 0.3])

    def test_acceptance_by_position_is_cumulative_and_weighted_by_drafts(self, tmp_path: Path) -> None:
        rates = {"spec_decode_per_position_acceptance_rates": [1.0, 0.6, 0.2]}
        assert of(tmp_path, {**VLLM, **STATED, **rates}).acceptance == Acceptance(cumulative=(1.0, 0.6, 0.2), k=3)
        more = {**VLLM, "spec_decode_per_position_acceptance_rates": [0.5, 0.3, 0.1], "spec_decode_num_drafts": 15}
        found = of(tmp_path, {**VLLM, **STATED, **rates}, more).acceptance
        assert found is not None and found.cumulative == pytest.approx((0.625, 0.375, 0.125))

    def test_acceptance_length_has_its_bonus_and_its_k_where_it_is_whole(self, tmp_path: Path) -> None:
        assert of(tmp_path, {**VLLM, **STATED, "spec_decode_draft_tokens": 20}).acceptance == Acceptance(length=2.8, k=4)
        assert of(tmp_path, {**VLLM, **STATED, "spec_decode_draft_tokens": 18}).acceptance == Acceptance(length=2.8)
        assert of(tmp_path, SGLANG).acceptance == Acceptance(length=2.5)

    @pytest.mark.parametrize(("record", "option"), [(VLLM, "--save-detailed"), (SGLANG, "--output-details")])
    def test_totals_alone_are_not_enough_information(self, tmp_path: Path, record: dict[str, Any], option: str) -> None:
        totals = {name: value for name, value in record.items() if not isinstance(value, list)}
        with pytest.raises(InputError, match=f"not enough information.*{option}"):
            of(tmp_path, totals)
        found = of(tmp_path, record, totals)
        assert (found.requests, found.set_apart) == (2, 1)

    def test_failed_requests_and_uneven_lists_are_counted(self, tmp_path: Path) -> None:
        found = of(tmp_path, {**VLLM, "input_lens": [1, 2, 3, 4], "output_lens": [5, 6, 0], "errors": ["", SECRET]})
        assert (found.requests, found.damaged, found.set_apart) == (1, 1, 2)

    def test_a_run_that_is_written_over_several_lines_is_read(self, tmp_path: Path) -> None:
        found = read(tmp_path, json.dumps(VLLM, indent=2) + "\n" + json.dumps(VLLM, indent=2))
        assert found.requests == 4

    def test_guidellm_has_cached_tokens_and_milliseconds(self, tmp_path: Path) -> None:
        found = read(tmp_path, FORMS["guidellm"].text([json.dumps({**GUIDELLM, "request_start_time": at}) for at in (10.5, 11.0)]))
        assert arrivals(found).tolist() == [0.0, 0.5] and found.ttft_s is not None and found.ttft_s.tolist() == [0.5, 0.5]
        assert found.cached_tokens is not None and found.cached_tokens.tolist() == [32, 32]

    def test_guidellm_s_failed_and_broken_off_requests_are_set_apart(self, tmp_path: Path) -> None:
        bad = [json.dumps({**GUIDELLM, "info": {"status": status, "error": None}}) for status in ("errored", "cancelled")]
        found = read(tmp_path, FORMS["guidellm"].text([json.dumps(GUIDELLM), *bad]))
        assert (found.requests, found.set_apart) == (1, 2)

    def test_aiperf_is_read_by_the_units_it_names(self, tmp_path: Path) -> None:
        found = of(tmp_path, AIPERF)
        assert found.ttft_s is not None and found.e2e_s is not None
        assert (found.ttft_s[0], found.e2e_s[0]) == pytest.approx((0.2555, 0.2975))
        failed = {**AIPERF, "error": {"code": 499}, "metrics": {"error_isl": {"value": 550, "unit": "tokens"}}}
        assert of(tmp_path, AIPERF, failed).set_apart == 1

    def test_genai_perf_has_its_times_and_text(self, tmp_path: Path) -> None:
        found = read(tmp_path, FORMS["genai_perf"].text())
        assert found.ttft_s is not None and found.e2e_s is not None and found.hash_ids is not None
        assert (found.ttft_s[0], found.e2e_s[0]) == pytest.approx((0.1, 0.2))
        failed = json.dumps({**GENAI_PERF, "response_timestamps": []})
        assert read(tmp_path, FORMS["genai_perf"].text([json.dumps(GENAI_PERF), failed])).set_apart == 1


class TestWeka:
    def test_ids_mean_something_within_their_conversation_only(self, tmp_path: Path) -> None:
        found = of(tmp_path, WEKA, WEKA)
        assert found.hash_ids is not None and found.hash_offsets is not None and found.block_tokens == 64
        first, second, third, _ = np.split(found.hash_ids, found.hash_offsets[1:-1])
        assert np.array_equal(first, second[:3]) and not set(first) & set(third)

    def test_ids_of_a_file_that_says_so_are_shared(self, tmp_path: Path) -> None:
        found = of(tmp_path, {**WEKA, "hash_id_scope": "global"}, {**WEKA, "hash_id_scope": "global"})
        assert found.hash_ids is not None and len(set(found.hash_ids.tolist())) == 4

    def test_requests_within_a_request_are_a_conversation_of_their_own(self, tmp_path: Path) -> None:
        inner = {"t": 3.0, "requests": WEKA["requests"]}
        found = of(tmp_path, {**WEKA, "requests": [WEKA["requests"][0], inner, WEKA["requests"][1]]})
        assert found.sessions is not None and found.sessions.tolist() == [0, 1, 1, 0]


class TestTables:
    def test_columns_are_said_with_their_units(self, tmp_path: Path) -> None:
        content = "when;in;out;wait;who\n1500;10;2;250;a\n2500;20;3;;b\n"
        found = read(tmp_path, content, columns=columns_of("arrival=when:ms,input=in,output=out,ttft=wait:ms,group=who"))
        assert arrivals(found).tolist() == [0.0, 1.0] and found.group_names == ("a", "b") and not found.notes
        assert found.ttft_s is not None and found.ttft_s[0] == 0.25 and np.isnan(found.ttft_s[1])

    @pytest.mark.parametrize("stamp", ["2026-01-05 10:00:00.5", "1767607200.5", "1767607200500", "1767607200500000000"])
    def test_times_are_stamps_or_counts_since_1970_told_by_their_size(self, tmp_path: Path, stamp: str) -> None:
        found = read(tmp_path, f"timestamp,prompt_tokens\n{stamp},10\n{stamp.replace('00.5', '01.5').replace('200', '201', 1)},10\n")
        assert arrivals(found)[1] == pytest.approx(1.0)

    def test_a_guess_is_said(self, tmp_path: Path) -> None:
        found = read(tmp_path, FORMS["table"].text())
        assert "arrival=arrival_s:s,input=prompt_tokens,output=output_tokens" in said(found)

    def test_lines_of_json_tabs_and_parquet_are_the_same_table(self, tmp_path: Path) -> None:
        import polars as pl

        rows = [
            {"arrival_s": 0.5, "prompt_tokens": 100, "output_tokens": 20},
            {"arrival_s": 1.5, "prompt_tokens": 200, "output_tokens": 30},
        ]
        pl.DataFrame(rows).write_parquet(tmp_path / "p")
        asked = [FORMS["table"].text(), FORMS["table"].text().replace(",", "\t"), lines(*rows).text(), (tmp_path / "p").read_bytes()]
        for content in asked:
            found = read(tmp_path, content)
            assert (found.form, found.input_tokens.tolist(), arrivals(found).tolist()) == ("table", [100, 200], [0.0, 1.0])

    def test_ids_of_blocks_and_prompts_may_be_columns(self, tmp_path: Path) -> None:
        found = read(tmp_path, 'input_tokens,hash_ids\n1030,"[1, 2, 3]"\n600,1 9\n7,x\n')
        assert found.hash_ids is not None and found.hash_ids.tolist() == [1, 2, 3, 1, 9] and found.damaged_lines == (4,)
        text_of = read(tmp_path, f'prompt,completion\n"{SECRET}, said she",no\n')
        assert text_of.hash_ids is not None and outputs(text_of).tolist() == [1]

    def test_damaged_cells_are_counted_by_their_lines(self, tmp_path: Path) -> None:
        found = read(tmp_path, 'ts,input_tokens,output_tokens\n1,10,2\n2,ten,2\nx,10,2\n4,10,"2"\n5,10,-2\n6,3.0,1\n')
        assert (found.requests, found.damaged, found.damaged_lines) == (3, 3, (3, 4, 6))

    def test_a_column_that_says_nothing_is_none(self, tmp_path: Path) -> None:
        found = read(tmp_path, "ts,input_tokens,output_tokens,ttft\n1,10,,x\n2,10,,\n")
        assert found.requests == 2 and found.output_tokens is None and found.ttft_s is None

    def test_what_most_say_and_some_do_not_is_set_apart(self, tmp_path: Path) -> None:
        found = read(tmp_path, "ts,input_tokens,output_tokens\n1,10,2\n,10,2\n3,10,\n")
        assert (found.requests, found.damaged, found.set_apart) == (1, 0, 2)

    @pytest.mark.parametrize(
        ("columns", "words"), [("input=size", "no column size for input; it has: ts, n"), ("arrival=ts", "give --columns input=NAME")]
    )
    def test_a_column_that_is_not_there_is_refused_by_name(self, tmp_path: Path, columns: str, words: str) -> None:
        with pytest.raises(InputError, match=words):
            read(tmp_path, "ts,n\n1,2\n", columns=columns_of(columns))

    def test_the_guide_names_every_form_and_every_name_that_is_taken(self, root: Path) -> None:
        guide = (root / "docs/guide/traces.md").read_text(encoding="utf-8")
        assert [form for form in FORMS if f"| `{form}` |" not in guide] == []
        for field, names in COMMON.items():
            assert f"| `{field}` | {', '.join(names.split())} |" in guide

    @pytest.mark.parametrize("words", ["arrival", "when=ts", "input=", "input=a,input=b"])
    def test_columns_are_typed_as_field_and_name(self, words: str) -> None:
        with pytest.raises(InputError, match="--columns"):
            columns_of(words)
