"""Where text is laid out for a terminal: widths, colour or none, tables without lines."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from io import StringIO

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from breakeven.messages import printable

WIDEST = 100
NARROWEST = 60
INDENT = 4
GLUE = "\ue000"
"""Stands for a blank at which no line may end; a no-break space would not do, rich breaks at it."""
UNIT = re.compile(r"(?<=\d) (?=(?:%|[TGMk]?B(?:/s)?|[PTGM]?FLOP(?:/s)?|[mµ]?s|min|h|(?:req|tok)/s|▼)(?!\w))")
WORD = re.compile(r"""(?:'[^']*'|"[^"]*"|\S)+""")
GOES_ON = " \\"
DIM = "bright_black"


def wants_colour(is_terminal: bool) -> bool:
    """Colour for people at a terminal who did not ask for none."""
    return is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def glued(words: str, style: str = "") -> Text:
    """Text whose numbers stay on one line with their units; control characters are written out."""
    return Text(UNIT.sub(GLUE, printable(words, keep="\n")).replace("← ", f"←{GLUE}"), style=style)


def folded(command: str, width: int) -> str:
    """A command over several lines that can be pasted as they stand: broken between words only, never within quotes.

    >>> print(folded("serve --model m --name 'a b'", 18))
    serve --model m \\
      --name 'a b'
    """
    lines: list[str] = []
    for word in WORD.findall(command):
        if lines and len(lines[-1]) + len(word) + len(" ") <= width - len(GOES_ON):
            lines[-1] += f" {word}"
        else:
            lines.append(f"  {word}" if lines else word)
    return f"{GOES_ON}\n".join(lines)


def written(blocks: Iterable[RenderableType], width: int, colour: bool) -> str:
    """All blocks as text, no line ending in blanks."""
    out = StringIO()
    console = Console(
        file=out,
        width=max(NARROWEST, min(width, WIDEST)),
        force_terminal=colour,
        color_system="standard" if colour else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        no_color=not colour,
    )
    for block in blocks:
        console.print(block)
    return "".join(line.rstrip() + "\n" for line in out.getvalue().replace(GLUE, " ").splitlines())


def rule() -> Rule:
    """A line across."""
    return Rule(style=DIM, characters="─")


def grid(*widths: int | None) -> Table:
    """A table without lines; a width of None takes what is left."""
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    for width in widths:
        table.add_column(width=width, ratio=1 if width is None else None, overflow="fold")
    return table


def labels(rows: list[tuple[str, str | Text]], width: int) -> Table:
    """Words beside their labels."""
    table = grid(width, None)
    for label, words in rows:
        table.add_row(Text(label, style="bold"), words if isinstance(words, Text) else glued(words))
    return table


def indented(words: RenderableType, depth: int = 1) -> Padding:
    """Words set in from the left."""
    return Padding(words, (0, 0, 0, INDENT * depth))
