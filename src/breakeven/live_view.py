"""What is seen while an engine is read: its progress in lines, or the last minute's figures anew at each reading."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from shutil import get_terminal_size
from types import TracebackType
from typing import TYPE_CHECKING, Any

from breakeven import interruption, streams
from breakeven.messages import Message, say
from breakeven.observation.scrape import is_busy

if TYPE_CHECKING:
    from breakeven.errors import BreakevenError
    from breakeven.observation.record import Record
    from breakeven.observation.scrape import Missed, Read
    from breakeven.observation.timeline import Timeline
    from breakeven.spec.evidence import Evidence

LAST_S = 60.0
"""The sliding window of the view."""
TOLD_EVERY_S = 30.0
FIGURES = (
    "effective_batch",
    "output_tokens_per_s",
    "input_tokens_per_s",
    "step_s",
    "tpot_s",
    "ttft_s",
    "kv_usage",
    "prefix_hit_rate",
    "mbu",
)
"""What a plain line has, where it is known."""


class Progress:
    """Lines on stderr: how far it is, and every server that falls silent or answers again."""

    def __init__(self, servers: str, for_s: float, every_s: float) -> None:
        self._silent: set[str] = set()
        self._told_s: float | None = None
        streams.tell(Message("observe.progress_begins", {"target": servers, "seconds": for_s, "every": every_s}))

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _tell_ended(error)

    def heard(self, one: Read | Missed, record: Record) -> None:
        """Tell what is new after a reading."""
        error = getattr(one, "error", None)
        if error is not None and one.source not in self._silent and (record.readings or is_busy(error)):
            self._silent.add(one.source)
            streams.tell(error.message if record.readings else _waiting(error))
        elif error is None and one.source in self._silent:
            self._silent.remove(one.source)
            streams.tell(Message("observe.progress_again", {"target": one.source}))
        self._told_s = one.at_s if self._told_s is None else self._told_s
        if one.at_s - self._told_s >= TOLD_EVERY_S:
            self._told_s = one.at_s
            streams.tell(Message("observe.progress", {"readings": record.readings}))


def _tell_ended(error: BaseException | None) -> None:
    """What ended the reading, where it ends the program too: before there was anything to keep."""
    if isinstance(error, KeyboardInterrupt):
        streams.tell(Message("observe.ended_unread", {"signal": interruption.named()}))


def _waiting(error: BreakevenError) -> Message:
    """What is told of a server that is busy while there is no page of any."""
    return Message("observe.progress_busy", error.message.values)


class View:
    """The view, while it is open."""

    def __init__(self, summarise: Callable[[Timeline], Evidence], compose: Callable[[Evidence], Any], language: str) -> None:
        self._summarise, self._compose, self._language = summarise, compose, language
        self._stack = ExitStack()
        self._live: Any = None
        self._waited_for: set[str] = set()

    def __enter__(self) -> View:
        if streams.talks_to_a_terminal():
            from rich.console import Console
            from rich.live import Live

            # On stderr, so that stdout has the final result alone; and gone at the end, so that the terminal is as it was.
            console = Console(stderr=True, highlight=False)
            view = Live(console=console, auto_refresh=False, transient=True, vertical_overflow="crop")
            self._live = None if console.is_dumb_terminal else self._stack.enter_context(view)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()
        _tell_ended(error)

    def heard(self, one: Read | Missed, record: Record) -> None:
        """Show what is known after a reading."""
        if not record.readings:
            self._wait(one)
            return
        evidence = self._summarise(record.timeline(LAST_S))
        if self._live is None:
            streams.talk(self._line(evidence))
            return
        from rich.text import Text

        self._live.update(Text.from_ansi(self._page(evidence)), refresh=True)

    def _wait(self, one: Read | Missed) -> None:
        """Tell once of a server that nothing came of it yet."""
        error = getattr(one, "error", None)
        if error is not None and is_busy(error) and one.source not in self._waited_for:
            self._waited_for.add(one.source)
            streams.tell(_waiting(error))

    def _page(self, evidence: Evidence) -> str:
        from breakeven.canvas import wants_colour
        from breakeven.renderers import terminal

        page = terminal.render(self._compose(evidence), width=get_terminal_size((100, 24)).columns, colour=wants_colour(True))
        # First, for what a low window cuts off is the end.
        return f"{say('observe.view_of', self._language, last=LAST_S)}\n{page}"

    def _line(self, evidence: Evidence) -> str:
        known = [self._figure(name, evidence) for name in FIGURES if name in evidence.figures]
        return say("observe.view_line", self._language, at=evidence.end, figures=" · ".join(known) or "–")

    def _figure(self, name: str, evidence: Evidence) -> str:
        return say(f"observe.view_{name}", self._language, value=evidence.figures[name].value)
