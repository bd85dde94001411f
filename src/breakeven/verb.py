"""What the verbs of the command line share: options of one meaning, and how an answer is shown."""

# No `from __future__ import annotations`: typer reads the annotations of a verb.
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from shutil import get_terminal_size
from threading import Timer
from typing import TYPE_CHECKING, Annotated, Any

import typer

from breakeven import streams
from breakeven.errors import InputError
from breakeven.messages import Message

if TYPE_CHECKING:
    from breakeven.compose import Language


def option(*names: str, metavar: str | None = None) -> Any:
    """An option without a default to show."""
    return typer.Option(*names, metavar=metavar, show_default=False)


def _help(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        streams.write_out(ctx.get_help() + "\n")
        raise typer.Exit


COMPILING_AFTER_S = 3.0
AsJson = Annotated[bool, option("--json")]
AsMarkdown = Annotated[bool, option("--markdown")]
Verbose = Annotated[bool, option("--verbose", "-v")]
Seed = Annotated[str, typer.Option("--seed", metavar="NUMBER", show_default=True)]
Folders = Annotated[list[str] | None, option("--catalog", metavar="FOLDER")]
InLanguage = Annotated[str | None, option("--lang", metavar="en|zh")]
# Typer's own help option is in English, and loads its validator (0.1 s) before it prints.
ShowHelp = Annotated[bool, typer.Option("--help", is_eager=True, callback=_help, show_default=False)]


@contextmanager
def told_of_compiling() -> Iterator[None]:
    """One line on stderr while loops are compiled for the first time on a machine: it would else be silent for half a minute."""
    from breakeven import compiled

    def look() -> None:
        if compiled.is_compiling():
            streams.tell(Message("warning.compiling"))

    waiting = Timer(COMPILING_AFTER_S, copy_context().run, (look,))
    waiting.daemon = True
    waiting.start()
    try:
        yield
    finally:
        waiting.cancel()


def whole(given: str, name: str) -> int:
    """A whole number as it was typed."""
    if not given.isdecimal():
        raise InputError("not_whole", path=name, value=given)
    return int(given)


def language(ctx: typer.Context) -> "Language":
    """The language that the command line speaks."""
    return "zh" if ctx.find_root().meta["language"] == "zh" else "en"


def show(document: Any, as_json: bool, *, markdown: bool = False, **options: bool) -> None:
    """A document on stdout, in the form asked for."""
    if as_json:
        from breakeven.renderers import json

        streams.write_out(json.render(document))
        return
    if markdown:
        from breakeven.renderers import markdown as page

        streams.write_out(page.render(document))
        return
    from breakeven.canvas import wants_colour
    from breakeven.renderers import terminal

    width = get_terminal_size((100, 24)).columns
    streams.write_out(terminal.render(document, width=width, colour=wants_colour(streams.is_terminal()), **options))
