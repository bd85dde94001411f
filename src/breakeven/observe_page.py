"""An observation for a terminal and as Markdown: the operating point first, then what it is made of."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table

from breakeven.canvas import DIM, Command, glued, grid, indented, labels, rule
from breakeven.messages import printable, say
from breakeven.observe_document import ObserveDocument, ObservePart

BAR = 18
WIDTHS = (None, 11, 11, 11, 18, 9)
LABEL_WIDTH = 17
COMMAND_WIDTH = 76


def blocks(document: ObserveDocument, verbose: bool) -> Iterator[RenderableType]:
    """What there is to show, in its order."""
    yield glued(document.headline, style="bold")
    yield from (glued(line, style=DIM) for line in document.basis)
    yield from (glued(f"! {warning}") for warning in document.warnings)
    yield rule()
    for part in document.parts:
        yield from _part(part, verbose)
    yield from _listed("checks", document.checks, document.language)
    yield from _listed("untold", document.missing, document.language)
    yield from _next(document)


def _part(part: ObservePart, verbose: bool) -> Iterator[RenderableType]:
    if part.bars:
        yield labels([(part.title, "")], LABEL_WIDTH)
        yield indented(_bars(part))
        yield from (indented(glued(line)) for line in part.lines)
    elif part.rows:
        yield glued(part.title, style="bold")
        yield indented(_table(part))
        yield from (indented(glued(line, style=DIM)) for line in part.lines)
    else:
        lines = part.full if verbose and part.full else part.lines
        yield labels([(part.title, glued("\n".join(lines)))], LABEL_WIDTH)
    yield glued("")


def _bars(part: ObservePart) -> Table:
    table = grid(BAR, None)
    for share, words in part.bars:
        full = round(BAR * max(0.0, min(1.0, share)))
        table.add_row("█" * full + "░" * (BAR - full), glued(words))
    return table


def _table(part: ObservePart) -> Table:
    table = grid(*WIDTHS)
    table.add_row(*(glued(head, style=DIM) for head in part.heads))
    for row in part.rows:
        table.add_row(*(glued(cell) for cell in row))
    return table


def _listed(name: str, lines: list[str], language: str) -> Iterator[RenderableType]:
    if lines:
        title = say(f"observed.part_{name}", language)
        yield labels([(title if place == 0 else "", line) for place, line in enumerate(lines)], LABEL_WIDTH)
        yield glued("")


def _next(document: ObserveDocument) -> Iterator[RenderableType]:
    for place, (why, command) in enumerate(document.next_steps):
        title = say("observed.part_next", document.language) if place == 0 else ""
        if why:
            yield labels([(title, glued(why))], LABEL_WIDTH)
        yield indented(Command(command, widest=COMMAND_WIDTH))


def markdown(document: ObserveDocument) -> Iterator[str]:
    """The same as Markdown."""
    yield f"# {printable(document.headline)}"
    yield ""
    yield "  \n".join(document.basis)
    yield ""
    yield from (f"- **!** {printable(warning)}" for warning in document.warnings)
    for part in document.parts:
        yield ""
        yield f"## {part.title}"
        yield ""
        if part.rows:
            yield from (f"| {' | '.join(cells)} |" for cells in (part.heads, ["---"] * len(part.heads), *part.rows))
            yield ""
        yield from (f"- {printable(line)}" for line in (*(words for _, words in part.bars), *part.lines))
    for name, lines in (("checks", document.checks), ("untold", document.missing)):
        if lines:
            yield ""
            yield f"## {say(f'observed.part_{name}', document.language)}"
            yield ""
            yield from (f"- {printable(line)}" for line in lines)
    yield ""
    yield from (f"{why} `{command}`  " for why, command in document.next_steps)
