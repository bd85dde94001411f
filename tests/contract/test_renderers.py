"""What the renderers owe the reader: every number, both languages, the width, and no colour where none is wanted."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from rich.cells import cell_len

from breakeven import registry
from breakeven.advice import Advice, Explanation, Gain
from breakeven.compose import against, compose, compose_explanation
from breakeven.document import Document, json_schema
from breakeven.entries import compose_catalog
from breakeven.messages import LANGUAGES, Message, say
from breakeven.renderers import json as json_renderer
from breakeven.renderers import markdown, terminal
from breakeven.words import because_words, gain_words, value_words

ANSI = re.compile(r"\x1b\[")
UP = "▲△↑⬆"
HOLES = ("weights", "used", "pool", "reserve")
CIRCLES = "●○◯⚪⚫🔴🟢"


@pytest.fixture(scope="module", params=LANGUAGES)
def document(request: pytest.FixtureRequest, advice: Advice) -> Document:
    return compose(advice, request.param)


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [n for item in value.values() for n in numbers(item)]
    if isinstance(value, list):
        return [n for item in value for n in numbers(item)]
    return [value] if isinstance(value, (int, float)) and not isinstance(value, bool) else []


class TestJson:
    def test_validates_against_the_published_schema(self, document: Document) -> None:
        jsonschema.Draft202012Validator(json_schema()).validate(json.loads(json_renderer.render(document)))

    def test_the_schema_refuses_a_renamed_field_and_a_wrong_verdict(self, document: Document) -> None:
        validator = jsonschema.Draft202012Validator(json_schema())
        renamed = json.loads(json_renderer.render(document))
        renamed["how_certain"] = renamed.pop("how_sure")
        wrong = json.loads(json_renderer.render(document))
        wrong["levers"][0]["verdict"] = "maybe"
        assert not validator.is_valid(renamed)
        assert not validator.is_valid(wrong)

    def test_the_same_document_gives_the_same_bytes(self, advice: Advice) -> None:
        assert json_renderer.render(compose(advice)) == json_renderer.render(compose(advice))

    def test_holds_every_number_of_the_advice(self, advice: Advice, document: Document) -> None:
        found = set(numbers(json.loads(json_renderer.render(document))))
        point = advice.operating_point
        wanted = [point.effective_batch, point.step_s, point.tpot_s, point.ttft_s, point.e2e_s, point.max_request_rate_per_s]
        wanted += [point.ttft_interval.low, point.ttft_interval.high, *advice.ledgers.step_parts_s.values()]
        for lever in advice.levers.values():
            wanted += [n for gain in lever.metrics.values() for n in (gain.gain, gain.low, gain.high)]
            wanted += [b.value for boundary in lever.boundaries for b in boundary.break_even]
        missing = [n for n in wanted if n is not None and n not in found and float(f"{n:.12g}") not in found]
        assert not missing

    def test_has_neither_nan_nor_infinity(self, document: Document) -> None:
        assert not re.search(r"NaN|Infinity|\binf\b", json_renderer.render(document))

    def test_has_the_fields_of_the_contract(self, document: Document) -> None:
        read = json.loads(json_renderer.render(document))
        assert read["schema"] == "breakeven.advice/1"
        assert {"effective_batch", "limited_by", "saturated", "tpot_s", "ttft_s", "prefill_share"} <= set(read["operating_point"])
        assert set(read["ledgers"]) >= {"memory", "bandwidth", "compute", "interconnect"}
        lever = read["levers"][0]
        wanted = {"lever", "state", "setting", "verdict", "metrics", "boundaries", "ledger", "because", "alternatives", "set", "accuracy"}
        assert wanted | {"rules_of_thumb", "measure_next"} <= set(lever)
        assert read["levers"][0]["boundaries"][0]["pays_on"] == [[None, 212.0]]

    def test_an_array_of_a_deployment_comes_out_as_a_list(self, document: Document) -> None:
        read = json.loads(json_renderer.render(document))
        assert read["deployment"]["workload"]["input_tokens"] == {"low": 1500, "high": 2500}


class TestTerminal:
    @pytest.mark.parametrize("width", [40, 47, 59, 60, 80, 100, 200])
    @pytest.mark.parametrize("verbose", [False, True])
    def test_keeps_to_its_width(self, document: Document, width: int, verbose: bool) -> None:
        lines = terminal.render(document, width=width, verbose=verbose, rules=True).splitlines()
        assert max(map(cell_len, lines)) <= min(width, 100)

    def test_a_rule_is_as_wide_as_the_page(self, document: Document) -> None:
        assert "─" * 100 in terminal.render(document).splitlines()
        assert "─" * 80 in terminal.render(document, width=80).splitlines()

    def test_plain_text_has_no_colour_codes_and_colour_adds_only_codes(self, document: Document) -> None:
        plain, coloured = (terminal.render(document, colour=colour, verbose=True) for colour in (False, True))
        assert not ANSI.search(plain)
        assert ANSI.search(coloured)
        assert [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", coloured).splitlines()] == plain.splitlines()

    def test_every_lever_stands_there_with_its_verdict_in_words(self, document: Document) -> None:
        lines = terminal.render(document).splitlines()
        for lever in document.levers:
            verdict = say(f"report.verdict_{lever.verdict}", document.language)
            assert any(lever.title in line and verdict in line for line in lines), lever.title

    def test_a_metric_that_moves_against_the_verdict_is_marked(self, document: Document) -> None:
        assert "TTFT ×0.88 ▼" in terminal.render(document)
        assert document.levers[0].against == ["ttft"]

    def test_half_of_the_interval_stands_beside_the_gain(self, document: Document) -> None:
        assert "×1.37 ±.09" in terminal.render(document)

    def test_the_last_column_says_where_the_median_reaches_the_threshold(self, advice: Advice) -> None:
        for language, words in (("en", "Median ≥ +25 %"), ("zh", "中位收益 ≥25 %")):
            document = compose(replace(advice, threshold=0.25), language)  # type: ignore[arg-type]
            assert words in terminal.render(document) and words in markdown.render(document)
            assert "≥" in document.levers[0].boundaries[0].sentence and "25 %" in document.levers[0].boundaries[0].sentence

    def test_a_batch_is_written_in_one_way(self, advice: Advice) -> None:
        page = terminal.render(compose(advice), verbose=True)
        assert "31.2 sequences decode together" in page and "here 31.2" in page

    def test_what_is_asked_for_is_not_called_what_can_be_sustained(self, advice: Advice) -> None:
        assert "2,400 tok/s asked" in terminal.render(compose(advice))
        load = replace(advice.deployment.workload, request_rate=None, concurrency=8.0)
        closed = replace(advice, deployment=replace(advice.deployment, workload=load))
        assert "tok/s asked" not in terminal.render(compose(closed))

    def test_a_set_that_changes_what_is_undecided_says_so(self, advice: Advice) -> None:
        document = compose(replace(advice, best=replace(advice.best, undecided=("speculation",))))
        assert document.best.undecided == ["speculation"]
        told = " ".join(terminal.render(document).split())
        assert "only sets with undecided levers meet the SLO: speculation eagle3 k=3" in told

    def test_where_no_set_fits_nothing_else_is_said_of_the_best(self, advice: Advice) -> None:
        nowhere = replace(advice.best, combination=replace(advice.best.combination, fits=False))
        document = compose(replace(advice, best=nowhere))
        for page in (terminal.render(document), markdown.render(document)):
            assert "no set of levers fits" in page and "×1.46" not in page and "--quantization fp8" not in page

    def test_the_slo_that_no_set_keeps_is_said_to_be_missed(self, advice: Advice) -> None:
        missed = replace(advice.best, combination=replace(advice.best.combination, meets_slo=False))
        assert "no set meets the SLO; this is the best of them" in " ".join(terminal.render(compose(replace(advice, best=missed))).split())

    def test_an_slo_that_is_missed_is_told_where_nothing_changes_too(self, advice: Advice) -> None:
        same = replace(advice.best.combination, levers=("prefix_cache:on",), meets_slo=False)
        page = " ".join(terminal.render(compose(replace(advice, best=replace(advice.best, combination=same)))).split())
        assert "nothing to change" in page and "no set meets the SLO" in page and "×1.46" not in page

    def test_a_name_cannot_steer_the_terminal(self, advice: Advice) -> None:
        named = replace(advice.deployment, model=replace(advice.deployment.model, name="a\x1b[31mb"))
        page = terminal.render(compose(replace(advice, deployment=named)))
        assert "\x1b" not in page and "a\\x1b[31mb" in page

    def test_the_replica_is_summed_and_that_is_said(self, document: Document) -> None:
        page = terminal.render(document)
        assert "141 GB" in page
        assert say("report.of_replica", document.language, devices=4) in page

    def test_nothing_points_up_and_nothing_is_a_circle(self, document: Document) -> None:
        page = terminal.render(document, verbose=True)
        assert not set(page) & set(UP + CIRCLES)

    def test_the_interconnect_is_shown_only_where_something_is_sent(self, document: Document) -> None:
        import msgspec

        label = say("report.interconnect", document.language)
        quiet = msgspec.structs.replace(
            document,
            ledgers=msgspec.structs.replace(
                document.ledgers, interconnect=msgspec.structs.replace(document.ledgers.interconnect, bytes_per_step=0.0)
            ),
        )
        assert label in terminal.render(document)
        assert label not in terminal.render(quiet)

    def test_verbose_says_where_every_input_comes_from(self, document: Document) -> None:
        page, brief = terminal.render(document, verbose=True), terminal.render(document)
        for path, source in document.provenance.items():
            word = say(f"report.provenance_{source}", document.language)
            assert re.search(rf"{re.escape(path)} +{word}", page), path
            assert path not in brief

    def test_rules_come_with_where_they_break(self, document: Document) -> None:
        page = terminal.render(document, rules=True)
        assert all(rule.says in page and rule.breaks in page for rule in document.rules_of_thumb)

    @pytest.mark.parametrize("language", LANGUAGES)
    def test_an_explanation_shows_formula_numbers_value_name_and_source_of_each_line(self, explanation: Explanation, language: str) -> None:
        read = compose_explanation(explanation, language)  # type: ignore[arg-type]
        page = terminal.render(read)
        for line in (*read.off, *read.on, *read.result):
            assert {line.symbol, line.formula, line.substituted, line.name, line.source} <= {w for w in (
                line.symbol, line.formula, line.substituted, line.name, line.source) if w in page}  # fmt: skip
        assert "35.3 GB" in page and "17.8 GB" in page and "×1.37" in page

    def test_lines_that_do_not_change_are_shown_once(self, explanation: Explanation) -> None:
        assert terminal.render(compose_explanation(explanation)).count("= 31·1 =") == 1

    def test_verbose_gives_all_reasons_of_the_chosen_setting(self, advice: Advice) -> None:
        chosen = advice.levers["weight_quant"]
        many = replace(chosen, because=tuple(Message("report.memory_line", dict.fromkeys(HOLES, float(n))) for n in range(1, 5)))
        document = compose(replace(advice, levers={**advice.levers, "weight_quant": many}))
        page = " ".join(terminal.render(document, verbose=True).split())
        assert all(reason in page for reason in document.levers[0].because) and len(document.levers[0].because) == 4

    def test_the_best_set_names_what_changes_and_no_more(self, document: Document) -> None:
        page = terminal.render(document)
        kept = next(lever for lever in document.levers if lever.lever == "prefix_cache")
        best = next(line for line in page.splitlines() if say("report.best_together", document.language) in line)
        assert document.levers[0].title in best and kept.title not in best
        assert document.best.levers == ["weight_quant:fp8", "prefix_cache:on"]

    def test_a_lever_that_goes_off_is_named(self, advice: Advice) -> None:
        without = replace(advice.best.combination, levers=("weight_quant:fp8",))
        document = compose(replace(advice, best=replace(advice.best, combination=without)))
        assert document.best.titles == ["weights fp8", "without prefix cache"]

    def test_what_is_typed_and_what_is_to_be_done_stand_apart(self, advice: Advice) -> None:
        quantised = replace(advice.levers["weight_quant"], setting="int4_marlin", set={"vllm": "--quantization awq_marlin"})
        combination = replace(advice.best.combination, levers=("weight_quant:int4_marlin",))
        best = replace(advice.best, combination=combination, set={"vllm": "--quantization awq_marlin"})
        for language, note in (("en", "needs an AWQ checkpoint"), ("zh", "需要 AWQ 权重")):
            document = compose(replace(advice, levers={**advice.levers, "weight_quant": quantised}, best=best), language)  # type: ignore[arg-type]
            assert document.best.set == {"vllm": "--quantization awq_marlin"}
            assert note in document.best.notes and document.levers[0].set_notes == {"vllm": note}
            assert note in terminal.render(document)

    @pytest.mark.parametrize("width", [80, 100])
    def test_a_command_can_be_pasted_from_the_page(self, advice: Advice, width: int) -> None:
        command = (
            "vllm bench serve --model meta-llama/Llama-3.1-70B-Instruct --dataset-name custom --dataset-path prompts.jsonl --num-prompts 64"
        )
        measured = replace(advice.levers["speculation"].measure_next, command=command)
        levers = {**advice.levers, "speculation": replace(advice.levers["speculation"], measure_next=measured)}
        lines = [line.strip() for line in terminal.render(compose(replace(advice, levers=levers)), width=width).splitlines()]
        start = next(i for i, line in enumerate(lines) if line.startswith("vllm bench"))
        end = next(i for i in range(start, len(lines)) if not lines[i].endswith("\\"))
        assert shlex.split("\n".join(lines[start : end + 1]).replace("\\\n", " ")) == shlex.split(command)


def test_a_metric_well_below_one_moves_against_a_lever_that_pays() -> None:
    def of(gain: float, verdict: str) -> Gain:
        return Gain(gain=gain, low=gain - 0.2, high=gain + 0.2, verdict=verdict)  # type: ignore[arg-type]

    metrics = {
        "tpot": of(1.5, "pays"),
        "throughput": of(0.95, "undecided"),
        "ttft": of(0.99, "does_not_pay"),
        "capacity": of(0.985, "hurts"),
    }
    assert against("pays", metrics) == ["throughput", "capacity"]  # type: ignore[arg-type]
    assert against("does_not_pay", metrics) == ["tpot"]  # type: ignore[arg-type]
    assert against("undecided", metrics) == []  # type: ignore[arg-type]


@pytest.mark.parametrize("name", registry.names("renderers"))
def test_every_renderer_tells_every_lever_with_its_verdict_in_both_languages(name: str, document: Document) -> None:
    page = registry.module("renderers", name).render(document)
    assert page.endswith("\n") and not ANSI.search(page)
    told = " ".join(page.split())
    for lever in document.levers:
        assert lever.title in told
        assert say(f"report.verdict_{lever.verdict}", document.language) in told or f'"verdict": "{lever.verdict}"' in told
    assert document.how_sure.split()[0] in told


class TestMarkdown:
    def test_every_lever_and_verdict_is_in_a_table(self, document: Document) -> None:
        page = markdown.render(document)
        for lever in document.levers:
            verdict = say(f"report.verdict_{lever.verdict}", document.language)
            assert re.search(rf"^\| {re.escape(lever.title)}.* \| {verdict} \|", page, re.MULTILINE)

    def test_cells_hold_no_stray_bar(self, document: Document) -> None:
        rows = [line for line in markdown.render(document).splitlines() if line.startswith("|")]
        widths = {line.replace("\\|", "").count("|") for line in rows if line}
        assert len(widths) <= 3


def test_both_languages_carry_the_same_numbers(advice: Advice) -> None:
    english, chinese = (json.loads(json_renderer.render(compose(advice, language))) for language in LANGUAGES)  # type: ignore[arg-type]
    assert numbers(english) == numbers(chinese)
    assert english["how_sure"] != chinese["how_sure"]


def test_a_gain_without_bound_is_said_and_an_absent_one_is_a_dash() -> None:
    from breakeven.document import Gain

    assert gain_words(None, "en") == "—"
    assert gain_words(Gain(gain=None, low=None, high=None, verdict="pays"), "en") == "without bound"
    assert gain_words(Gain(gain=1.2, low=1.2, high=1.2, verdict="pays"), "en") == "×1.20"


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (1.1, 1.3, "×1.20 ±.10"),
        (0.7, 1.8, "×1.20 ±.55"),
        (0.4, 23.8, "×1.20 0.4–24"),
        (0.001, 1.9, "×1.20 0–1.9"),
        (0.4, None, "×1.20 0.4–∞"),
        (1.2, 1.2, "×1.20"),
    ],
)
def test_half_of_an_interval_that_is_wider_than_the_gain_says_nothing(low: float, high: float | None, told: str) -> None:
    from breakeven.document import Gain

    for language in LANGUAGES:
        assert gain_words(Gain(gain=1.2, low=low, high=high, verdict="undecided"), language) == told


def test_a_value_that_is_not_there_and_one_of_many_parts_are_said_in_a_word() -> None:
    assert (value_words(None, "en"), value_words({}, "zh"), value_words([], "en")) == ("not given", "未给出", "not given")
    assert value_words([float(n) for n in range(5, 106)], "en") == "101 quantiles, 5 … 105"
    assert value_words([1.0, 2.0], "en") == "1, 2"
    assert value_words([True] * 3, "en") == "yes, yes, yes"


def test_no_blank_stands_between_two_chinese_characters(advice: Advice) -> None:
    document = compose(advice, "zh")
    told = [lever.pays_where for lever in document.levers] + [b.sentence for lever in document.levers for b in lever.boundaries]
    assert any("batch <" in words for words in told)
    assert not [words for words in told if re.search(r"[\u4e00-\u9fff] [\u4e00-\u9fff]", words)]
    assert say("judge.measure_run", "zh", setting="前缀缓存").count(" 前缀缓存") == 0


def test_several_metrics_that_go_the_other_way_share_their_yet(advice: Advice) -> None:
    good = {name: Gain(gain=1.5, low=1.4, high=1.6, verdict="pays") for name in ("throughput", "capacity")}
    flat = replace(advice.levers["weight_quant"], verdict="does_not_pay", metrics=good)
    for language, yet in (("en", "yet Throughput ×1.50, Capacity ×1.50"), ("zh", "但吞吐 ×1.50、可容序列数 ×1.50")):
        document = compose(replace(advice, levers={"weight_quant": flat}), language)  # type: ignore[arg-type]
        assert because_words(document.levers[0], language).endswith(yet)


def test_a_figure_that_must_be_finite_and_is_not_is_a_bug() -> None:
    from breakeven.compose import figure, sure

    assert figure(float("inf")) is None
    assert figure(85520809984.0) == 85520809984.0
    with pytest.raises(ArithmeticError):
        sure(float("nan"))


def test_the_catalogue_lists_each_entry_and_shows_the_sources_of_one() -> None:
    from breakeven import catalog

    device = catalog.load("hardware", "h100-sxm")
    listed = compose_catalog({"hardware": ["h100-sxm"]}, {})
    assert "H100 SXM" in terminal.render(listed)
    detailed = terminal.render(listed, verbose=True)
    assert all(name in detailed for name in device.sources)
