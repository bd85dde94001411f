"""The house rules that a reader would otherwise have to check: sizes, forbidden words, forbidden statements."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src/breakeven").rglob("*.py"))
FILE_LINES = 400
BODY_LINES = 40
CLASS_METHODS = 10
EXEMPT = {"simulation/kernel.py"}
"""architecture.md rule 7 exempts the kernel."""

HOSTS = ("py" + "pi.org", "python" + "hosted.org", "registry.npm" + "js.org", "crates" + ".io", "anaconda" + ".org", "ghcr" + ".io")
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b")
MACHINE_PATH = re.compile(r"(?<![\w.~$}/-])/(work|home|root|Users)/\w")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def within(path: Path) -> str:
    return path.relative_to(ROOT / "src/breakeven").as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def body_lines(function: Function) -> int:
    """Lines of the body: the signature, the docstring and the decorators are not counted."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def functions(path: Path) -> Iterator[Function]:
    return (node for node in ast.walk(tree(path)) if isinstance(node, Function))


def is_broad(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in {"Exception", "BaseException"}) for kind in kinds)


@pytest.mark.parametrize("path", SOURCES, ids=within)
class TestEachSource:
    def test_has_at_most_400_lines(self, path: Path) -> None:
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines <= FILE_LINES or within(path) in EXEMPT, f"{within(path)} has {lines} lines: split it"

    def test_has_functions_of_at_most_40_lines(self, path: Path) -> None:
        long = [f"{f.name} (line {f.lineno}, {body_lines(f)} lines)" for f in functions(path) if body_lines(f) > BODY_LINES]
        assert not long or within(path) in EXEMPT, f"{within(path)}: split {', '.join(long)}"

    def test_has_classes_of_at_most_ten_methods(self, path: Path) -> None:
        classes = [node for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]
        wide = [c.name for c in classes if sum(isinstance(n, Function) for n in c.body) > CLASS_METHODS]
        assert not wide, f"{within(path)}: {wide} have more than {CLASS_METHODS} methods; verbs are functions"

    def test_asserts_nothing(self, path: Path) -> None:
        asserts = [node.lineno for node in ast.walk(tree(path)) if isinstance(node, ast.Assert)]
        assert not asserts, f"{within(path)} lines {asserts}: raise an error of errors.py instead"

    def test_catches_nothing_broad(self, path: Path) -> None:
        broad = [n.lineno for n in ast.walk(tree(path)) if isinstance(n, ast.ExceptHandler) and is_broad(n)]
        assert not broad, f"{within(path)} lines {broad}: name what is expected; the rest is a bug and keeps its traceback"

    def test_says_what_it_is(self, path: Path) -> None:
        empty = not tree(path).body
        assert empty or ast.get_docstring(tree(path)), f"{within(path)} has no docstring"


def test_there_is_no_drawer_for_odds_and_ends() -> None:
    drawers = [within(path) for path in SOURCES if path.stem in {"utils", "util", "helpers", "misc", "common"}]
    assert not drawers, f"{drawers}: give what is in them a name"


@cache
def tracked_text() -> dict[str, str]:
    """Every text file that git knows or would take."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=False
    )
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    found = {}
    for name in listing.stdout.decode().split("\0"):
        raw = (ROOT / name).read_bytes() if name and (ROOT / name).is_file() else b"\0"
        if b"\0" not in raw:
            found[name] = raw.decode("utf-8")
    return found


def lines_that(match: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in tracked_text().items()
        for number, line in enumerate(text.splitlines(), 1)
        if match.search(line)
    ]


def test_nothing_is_left_to_do_in_the_text() -> None:
    assert lines_that(UNFINISHED) == []


def test_no_registry_is_named() -> None:
    assert lines_that(re.compile("|".join(map(re.escape, HOSTS)))) == []


def test_no_path_of_one_machine_is_named() -> None:
    assert lines_that(MACHINE_PATH) == []


def test_the_words_searched_for_would_be_found() -> None:
    assert MACHINE_PATH.search('open("/' + 'home/ann/x")') and not MACHINE_PATH.search("https://a.b/" + "home/x")
    assert UNFINISHED.search("# TO" + "DO: later") and not UNFINISHED.search("TO" + "DOS")
    assert is_broad(ast.parse("try: pass\nexcept (OSError, Exception): pass").body[0].handlers[0])  # type: ignore[attr-defined]
