"""The documentation runs: a ``console`` block is a command with its true output, a ``python`` block is executed.

A command whose output cannot be reproduced (it needs a live engine, it installs something) stands in a ``sh`` block instead.
In an output a line of its own with ``…`` stands for any number of lines.
"""

from __future__ import annotations

import doctest
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest
from printed import PAGES, ROOT, run

FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command of a console block, and the output shown under it."""

    text: str
    shown: str


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(page=page, line=text.count("\n", 0, match.start()) + 1, language=match[1], text=match[2]) for match in FENCE.finditer(text)
    ]


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
CONSOLE = [block for block in BLOCKS if block.language == "console"]
PYTHON = [page for page in PAGES if any(block.language == "python" for block in blocks_of(page))]


def commands_of(text: str) -> list[Command]:
    parts = re.split(r"^\$ ((?:.*\\\n)*.*)\n?", text, flags=re.MULTILINE)[1:]
    return [Command(text=typed.replace("\\\n", " ").strip(), shown=shown) for typed, shown in zip(parts[::2], parts[1::2], strict=True)]


def tidy(output: str) -> str:
    return "\n".join(line.rstrip() for line in output.strip("\n").splitlines()).strip("\n")


def matches(shown: str, output: str) -> bool:
    pieces = re.split(r"^…\n?", tidy(shown) + "\n", flags=re.MULTILINE)
    return re.fullmatch(r"(?:.*\n)*?".join(map(re.escape, pieces)), tidy(output) + "\n") is not None


def words_of(command: str) -> list[str]:
    words = shlex.split(command, comments=True)
    assert words[0] == "breakeven", f"a console block shows `{words[0]}`: only breakeven runs here, use a `sh` block"
    return words[1:]


@pytest.mark.parametrize("block", CONSOLE, ids=str)
def test_a_console_block_shows_what_is_printed(block: Block) -> None:
    commands = commands_of(block.text)
    assert commands, f"{block}: a console block begins with `$ breakeven …`"
    for command in commands:
        done = run(words_of(command.text))
        assert "Traceback" not in done.stdout, done.stdout
        if command.shown.strip():
            assert matches(command.shown, done.stdout), f"{block}: `{command.text}` now prints\n\n{tidy(done.stdout)}"
        else:
            assert done.returncode == 0, f"{block}: `{command.text}` exits {done.returncode}\n{done.stdout}"


@pytest.mark.parametrize("page", PYTHON, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_python_of_a_page_runs_from_top_to_bottom(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {"__name__": "page"}
    for block in (block for block in blocks_of(page) if block.language == "python"):
        if ">>>" not in block.text:
            exec(compile(block.text, str(block), "exec"), names)
            continue
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        example = doctest.DocTestParser().get_doctest(block.text, names, str(block), str(page), block.line)
        said: list[str] = []
        runner.run(example, out=said.append, clear_globs=False)
        names = example.globs
        assert runner.failures == 0, "".join(said)


def test_the_readme_shows_a_real_run() -> None:
    readme = ROOT / "README.md"
    assert readme.is_file()
    shown = [command for block in CONSOLE if block.page == readme for command in commands_of(block.text)]
    assert any(command.text.startswith("breakeven advise") and command.shown.strip() for command in shown)


def test_the_readme_names_the_two_commands() -> None:
    readme = ROOT / "README.md"
    assert readme.is_file()
    text = readme.read_text(encoding="utf-8")
    assert "make demo" in text and "make test" in text


def test_a_command_may_go_on_over_lines_and_so_may_what_it_prints() -> None:
    first, second = commands_of("$ breakeven a \\\n  --b\nout \\\n  more\n$ breakeven c\n")
    assert (first.text, first.shown) == ("breakeven a    --b", "out \\\n  more\n")
    assert (second.text, second.shown) == ("breakeven c", "")


@pytest.mark.parametrize(
    ("shown", "output", "same"),
    [
        ("a\nb\n", "a  \nb\n\n", True),
        ("a\n…\nd\n", "a\nb\nc\nd\n", True),
        ("a\n…\n", "a\n", True),
        ("…\nd\n", "a\nd\n", True),
        ("a\n…\nd\n", "a\nb\nc\n", False),
        ("a\n", "a\nb\n", False),
        ("price (1)\n", "price 1\n", False),
    ],
)
def test_an_output_matches_only_itself(shown: str, output: str, same: bool) -> None:
    assert matches(shown, output) is same


def test_links_within_the_pages_lead_somewhere() -> None:
    dead = [
        f"{page.relative_to(ROOT).as_posix()} → {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)\s#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert dead == []
