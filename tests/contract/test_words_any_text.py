"""Any text at all: each reader understands it or refuses it in one clear line, in both languages, and raises nothing else."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.measured import words
from breakeven.measured.row import NotUnderstood
from breakeven.messages import LANGUAGES, text
from breakeven.spec.hardware import Device
from breakeven.spec.model import Model
from breakeven.spec.workload import ACCEPTANCE_FORMS

READERS: dict[str, Callable[[str], object]] = {
    "device": words.device,
    "model": words.model,
    "engine": words.engine,
    "weight_format": words.weight_format,
    "kv_format": words.kv_format,
    "setting": words.setting,
    "parallelism": words.parallelism,
    "number": words.number,
    "tokens": words.tokens,
    "load": words.load,
    "metric": words.metric,
    "acceptance": words.acceptance,
    "speculative": words.speculative,
    "hit_rate": words.hit_rate,
    "lever": words.lever,
}
PIECES = """NVIDIA|H100|80GB|PCIe|SXM|4090|D|M2 Ultra|76-Core|GPU|(60)|* 4|800 GB/s|not stated|Llama|-3.1-|8B|70B|Instruct|FP8|AWQ|vLLM
0.8.5|V0|main|llama.cpp|May-2024|BF16|->|INT4|g128|Q4_K_M|(4.5 bpw)|TP4|moe_tp8|moe_ep8|dp1|layer split|2048|1K|~100|..|batch|concurrency
QPS|all at once|throughput|TPOT|median|AL|2.4|rate|70%|alpha|EAGLE3|steps=3|topk=4|draft_tokens=8|n-gram|k=3|v=5|heads|of|tokens
share=50|accepted|drafts|drafted|0.7 0.6 0.5|system efficiency|vs|/|or|=|;|weights=|+|\u2011|\u00a0|0|9999999999999999999""".replace(
    "\n", "|"
).split("|")
PHRASES = st.lists(st.sampled_from(PIECES), max_size=9)
ANY = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(PIECES), max_size=9).map(" ".join),
    st.lists(st.sampled_from(PIECES), max_size=9).map("".join),
)


def read_or_refused(name: str, written: str) -> object | None:
    try:
        return READERS[name](written)
    except NotUnderstood as reason:
        for language in LANGUAGES:
            said = text(reason.message, language)
            assert said and "\n" not in said and len(said) < 700
        return None


@pytest.mark.parametrize("name", READERS)
@given(written=ANY)
def test_any_text_is_read_or_refused_in_one_line(name: str, written: str) -> None:
    meaning = read_or_refused(name, written)
    if meaning is not None:
        for language in LANGUAGES:
            assert text(words.said(name, written, meaning)[1], language)


@given(tp=st.integers(0, 99), dp=st.none() | st.integers(0, 99), moe_tp=st.integers(0, 99), moe_ep=st.integers(0, 99))
def test_any_four_numbers_are_a_split_with_its_devices_or_refused(tp: int, dp: int | None, moe_tp: int, moe_ep: int) -> None:
    try:
        split = words.split_of(tp, dp, moe_tp, moe_ep)
    except NotUnderstood:
        return
    assert split.devices == split.tp * split.dp * split.pp >= 1 and split.ep <= split.devices


@given(written=ANY)
def test_an_acceptance_that_is_read_has_one_form_within_its_bounds(written: str) -> None:
    try:
        found = words.acceptance(written)
    except NotUnderstood:
        return
    forms = [name for name in ACCEPTANCE_FORMS if getattr(found, name) is not None]
    assert len(forms) == 1
    assert found.length is None or float(found.length) >= 1.0
    shares = [each for each in (found.rate, found.alpha, *(found.cumulative or ()), *(found.conditional or ())) if each is not None]
    assert all(0.0 <= float(each) <= 1.0 for each in shares)


@given(written=ANY)
def test_drafts_that_are_read_verify_at_least_what_they_draft_in_a_chain(written: str) -> None:
    try:
        found = words.speculative(written)
    except NotUnderstood:
        return
    assert found.num_speculative_tokens >= 1 and found.topk >= 1 and found.rows >= 1


@pytest.mark.parametrize("column", ["hardware", "model"])
def test_an_unknown_word_beside_a_name_is_never_passed_over(shared: Path, column: str) -> None:
    """A name with a word that nobody knows may be another thing: it is refused, whichever name it stands beside."""
    reader: Callable[[str], Device | Model] = words.device if column == "hardware" else words.model
    with (shared / "data" / "lever_points.csv").open(encoding="utf-8", newline="") as file:
        names = sorted({row[column] for row in csv.DictReader(file)})
    rng = random.Random(0)
    for name in names:
        try:
            reader(name)
        except NotUnderstood:
            continue
        outside = name.split("(")[0].split()
        outside.insert(rng.randint(0, len(outside)), "Zyx")
        with pytest.raises(NotUnderstood):
            reader(" ".join(outside))
