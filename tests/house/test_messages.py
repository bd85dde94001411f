"""Every string a user reads stands in the catalogue, in both languages, with the same holes; no key is missing or left over."""

from __future__ import annotations

import ast
import re
import string
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from breakeven.catalog import KIND_WORDS
from breakeven.messages import LANGUAGES, Message, catalogue, template_of, text
from breakeven.units import WRITERS

ROOT = Path(__file__).resolve().parents[2] / "src/breakeven"
SOURCES = sorted(ROOT.rglob("*.py"))
FACES = [
    ROOT / name
    for name in ("cli.py", "words.py", "phrasing.py", "canvas.py", *(f"renderers/{p.name}" for p in (ROOT / "renderers").glob("*.py")))
]
ERRORS = {"BreakevenError", "InputError", "NotModelledError", "UnreachableError"}
SENTENCE = re.compile(r"[A-Za-z]{2,} +[A-Za-z]{2,}")
NOT_SAID = re.compile(r"(not )?(bold|dim|italic) (\w+)|unexpected extra|No such command \x27")
HELP = re.compile(r"cli\.(option_\w+|breakeven|advise|backtest|calibrate|catalog|observe|profile|schema|simulate)")


def holes(template: str) -> list[tuple[str, str]]:
    return sorted((name, spec or "") for _, name, spec, _ in string.Formatter().parse(template) if name is not None)


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""


def calls() -> Iterator[tuple[Path, ast.Call]]:
    return ((path, node) for path in SOURCES for node in ast.walk(tree(path)) if isinstance(node, ast.Call) and node.args)


def given_to(call: ast.Call) -> set[str] | None:
    """Names of the values a call gives to its message, or None where that cannot be read off."""
    if any(keyword.arg is None for keyword in call.keywords):
        return None
    if name_of(call) == "Message":
        if len(call.args) == 1:
            return set()
        table = call.args[1]
        if not isinstance(table, ast.Dict) or not all(isinstance(key, ast.Constant) for key in table.keys):
            return None
        return {str(key.value) for key in table.keys if isinstance(key, ast.Constant)}
    return {str(keyword.arg) for keyword in call.keywords}


@cache
def used() -> tuple[tuple[str, str, frozenset[str] | None], ...]:
    """Where, the key, and the names of its values, for every message that code names outright."""
    found = []
    for path, call in calls():
        kind, first = name_of(call), call.args[0]
        choices = [first.body, first.orelse] if isinstance(first, ast.IfExp) else [first]
        for choice in choices:
            if isinstance(choice, ast.Constant) and isinstance(choice.value, str) and (kind in ERRORS or kind in {"say", "Message"}):
                key = f"error.{choice.value}" if kind in ERRORS else choice.value
                given = given_to(call)
                found.append((f"{path.name}:{call.lineno}", key, None if given is None else frozenset(given)))
    return tuple(found)


@cache
def literals() -> frozenset[str]:
    return frozenset(
        node.value for path in SOURCES for node in ast.walk(tree(path)) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


@cache
def beginnings() -> frozenset[str]:
    """What f-strings that make keys begin with."""
    starts = set()
    for path in SOURCES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
                start = str(node.values[0].value)
                if re.fullmatch(r"[a-z_]+\.[a-z0-9_]*", start):
                    starts.add(start)
    return frozenset(starts)


def _statements(node: ast.AST) -> list[ast.stmt]:
    body = getattr(node, "body", [])
    return body if isinstance(body, list) else []


def test_both_languages_have_the_same_keys() -> None:
    english, chinese = (set(catalogue(language)) for language in LANGUAGES)
    assert english - chinese == set(), "missing in Chinese"
    assert chinese - english == set(), "missing in English"


@pytest.mark.parametrize("key", sorted(catalogue("en")))
def test_both_languages_have_the_same_holes(key: str) -> None:
    english, chinese = (catalogue(language).get(key, "") for language in LANGUAGES)
    assert holes(english) == holes(chinese) or {n for n, _ in holes(english)} == {n for n, _ in holes(chinese)}, key


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_hole_has_a_name_and_a_known_format(language: str) -> None:
    for key, template in catalogue(language).items():
        for name, spec in holes(template):
            assert name.isidentifier(), f"{key}: {template}"
            assert spec in WRITERS or re.fullmatch(r"[,+]?(\.\d+)?[dfgs%]?", spec), f"{key}: {spec}"


def test_every_key_that_code_names_exists() -> None:
    missing = [f"{where} {key}" for where, key, _ in used() if key not in catalogue("en")]
    assert not missing


def test_every_kind_of_name_has_its_word() -> None:
    named = {
        str(call.args[0].value) for _, call in calls() if name_of(call) == "UnknownNameError" and isinstance(call.args[0], ast.Constant)
    }
    assert {"lever", "axis", "objective", "weight_format", "kv_format"} <= named
    kinds = named | set(KIND_WORDS.values())
    for language in LANGUAGES:
        assert {f"error.kind_{kind}" for kind in kinds} <= set(catalogue(language))


def test_every_hole_is_filled_where_the_message_is_made() -> None:
    open_ = []
    for where, key, given in used():
        wanted = {name for name, _ in holes(catalogue("en").get(key, ""))}
        if given is not None and not wanted <= given:
            open_.append(f"{where} {key} lacks {sorted(wanted - given)}")
    assert not open_


def test_every_made_up_key_can_be_made() -> None:
    barren = [start for start in beginnings() if start.split(".")[0] in {key.split(".")[0] for key in catalogue("en")}]
    assert all(any(key.startswith(start) for key in catalogue("en")) for start in barren)


@cache
def notes() -> frozenset[str]:
    """Messages that the engines' support files name: what is to be done beside a flag, and why something is not to be had."""
    tables = [tomllib.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "catalog/support").glob("*.toml")]
    rules = [rule for table in tables for rule in table["rules"]]
    return frozenset(f"lever.{rule[key]}" for rule in rules for key in ("on_note", "off_note", "reason") if key in rule)


def test_every_note_of_a_flag_exists() -> None:
    assert notes() - set(catalogue("en")) == set()
    assert len(notes()) > 8


def is_used(key: str) -> bool:
    """Named outright, made from a beginning of its own, or made of its area and a name that stands in the code."""
    if key in notes():
        return True
    area, _, name = key.partition(".")
    own = any(key.startswith(start) and start != f"{area}." for start in beginnings())
    if area == "formula":  # made of the page and the symbol of a line; test_cli explains every lever
        return True
    return key in literals() or own or (f"{area}." in beginnings() and name in literals()) or HELP.fullmatch(key) is not None


def test_no_message_is_left_over() -> None:
    assert [key for key in catalogue("en") if not is_used(key)] == []


def test_chinese_is_not_english_again() -> None:
    english, chinese = (catalogue(language) for language in LANGUAGES)
    prose = re.compile(r"\b[a-z]{3,}\b +\b[a-z]{2,}\b")
    same = [key for key, template in english.items() if chinese.get(key) == template and prose.search(re.sub(r"{[^}]*}", "", template))]
    assert not same


def test_the_words_of_the_field_are_used_in_chinese() -> None:
    page = catalogue("zh")
    verdicts = [page[f"report.verdict_{name}"] for name in ("pays", "does_not_pay", "hurts", "undecided")]
    assert verdicts == ["划算", "不划算", "有害", "待定"]
    assert [page[f"report.{name}"] for name in ("memory", "bandwidth", "compute")] == ["显存账", "带宽账", "算力账"]
    assert page["report.break_even"] == "盈亏点"
    assert "等效 batch" in page["report.together"]


@pytest.mark.parametrize("path", FACES, ids=lambda path: path.name)
def test_a_face_holds_no_sentence_of_its_own(path: Path) -> None:
    docstrings = {id(node.value) for parent in ast.walk(tree(path)) for node in _statements(parent) if isinstance(node, ast.Expr)}
    own = [
        node.value
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
        and SENTENCE.search(node.value) and not NOT_SAID.search(node.value)
    ]  # fmt: skip
    assert not own


def test_a_message_within_a_message_is_said_in_the_same_language() -> None:
    inner = Message("report.memory")
    outer = Message("report.per_replica", {"sentence": inner, "replicas": 2})
    assert text(outer, "zh").startswith("显存账")
    assert text(outer, "en").startswith("Memory")


def test_a_sentence_reads_the_file_of_its_area_alone() -> None:
    code = "from breakeven import messages; messages.say('cli.advise'); print(messages.area.cache_info().currsize)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    assert done.stdout.split() == ["1"]


@pytest.mark.parametrize("key", ["../en/cli.advise", "nowhere.advise", "cli.nothing", "", "cli"])
def test_a_key_that_no_area_has_is_no_message(key: str) -> None:
    with pytest.raises(KeyError):
        template_of(key, "en")
