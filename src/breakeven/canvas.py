"""Where text is laid out for a terminal: widths, colour or none, tables without lines."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from breakeven.messages import printable

WIDEST = 100
NARROWEST = 40
ROOM, LEAST = 60, 6
"""Columns below which a table has no room beside itself, and what is left at least for its column without a width: else its rows are
written out as lines."""
INDENT, LESS = 4, 2
NOTHING = "–"
GLUE = "\ue000"
"""Stands for a blank at which no line may end; a no-break space would not do, rich breaks at it."""
UNIT = re.compile(r"(?<=\d) (?=(?:%|[TGMk]?i?B(?:/s)?|[PTGM]?FLOP(?:/s)?|[mµ]?s|min|h|(?:req|tok)/s|▼)(?!\w))")
WORD = re.compile(r"""(?:'[^']*'|"[^"]*"|\S)+""")
GOES_ON = " \\"
DIM = "bright_black"


def wants_colour(is_terminal: bool) -> bool:
    """Colour for people at a terminal who did not ask for none."""
    return is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def columns(width: int) -> int:
    """The columns that are written to on a terminal of some width."""
    return max(NARROWEST, min(width, WIDEST))


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


@dataclass(frozen=True)
class Command:
    """A command that is folded to where it stands, so that it can be pasted from there."""

    words: str
    style: str = ""
    widest: int = WIDEST

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Its lines."""
        yield glued(folded(self.words, min(self.widest, options.max_width)), self.style)


def written(blocks: Iterable[RenderableType], width: int, colour: bool) -> str:
    """All blocks as text, no line ending in blanks."""
    out = StringIO()
    room = columns(width)
    console = Console(
        file=out,
        width=room,
        force_terminal=colour,
        color_system="standard" if colour else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        no_color=not colour,
    )
    for block in blocks:
        for shown in (block,) if room >= ROOM and _fits(block, room) else flowing(block):
            console.print(shown)
    return "".join(line.rstrip() + "\n" for line in out.getvalue().replace(GLUE, " ").splitlines())


def _fits(block: RenderableType, room: int) -> bool:
    """Whether a table keeps its widths."""
    if isinstance(block, Padding):
        return _fits(block.renderable, room - block.left)
    if not isinstance(block, Table):
        return True
    between = block.padding[1]
    return sum((one.width or LEAST) + between for one in block.columns) - between <= room


def flowing(block: RenderableType, depth: int = 0) -> Iterator[RenderableType]:
    """A block for a page that is too narrow for columns: of each row its first cell, and below it the others one after the other."""
    if isinstance(block, Padding):
        yield from flowing(block.renderable, depth + block.left // INDENT)
    elif isinstance(block, Table):
        for first, *others in zip(*(column.cells for column in block.columns), strict=True):
            yield from flowing(first, depth) if str(first).strip() else ()
            yield from flowing(Text("  ").join(_said(others)), depth + 1) if any(str(one).strip() for one in others) else ()
    else:
        yield Padding(block, (0, 0, 0, LESS * depth)) if depth else block


def _said(cells: Sequence[RenderableType]) -> Iterator[Text]:
    """Cells from the first that says something to the last that does; what is empty between them is drawn, so that the order tells."""
    full = [place for place, one in enumerate(cells) if str(one).strip()]
    for one in cells[full[0] : full[-1] + 1]:
        yield one if isinstance(one, Text) and one.plain.strip() else Text(str(one).strip() or NOTHING)


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
