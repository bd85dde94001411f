"""Observing over and over, and showing what came of it: goes on when the engine does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Event
from time import monotonic, time

from breakeven import streams
from breakeven.advice import Advice
from breakeven.errors import BreakevenError, UnreachableError
from breakeven.exporter.page import State, exposition
from breakeven.exporter.server import PageServer
from breakeven.messages import Message
from breakeven.spec.evidence import Evidence

ADVISE_EVERY_S = 60.0
RETRY_S = 5.0


@dataclass(frozen=True, kw_only=True)
class Loop:
    """What is done over and over."""

    targets: tuple[str, ...]
    """Servers, by their addresses as they may be shown."""
    observe: Callable[[Callable[[str, float | None], None]], Evidence]
    """One observation; it calls what it is given after each reading with the server and when it was read, None where it was not."""
    advise: Callable[[Evidence], Advice] | None = None
    """None where no deployment is described."""
    pause_s: float = 0.0
    """Between observations."""
    advise_every_s: float = ADVISE_EVERY_S
    retry_s: float = RETRY_S


class Exporter:
    """The state that is shown, and the page that was made of it."""

    def __init__(self, loop: Loop, language: str = "en") -> None:
        self._loop, self._language = loop, language
        self.state = State(up=dict.fromkeys(loop.targets, False))
        self._page = exposition(self.state, language)
        self._advised_at: float | None = None
        self._told: dict[str, str] = {}
        self._worked = False

    def page(self) -> bytes:
        """The page as it was last made."""
        return self._page

    def heard(self, target: str, at_s: float | None) -> None:
        """A server was read, or was not."""
        up = {**self.state.up, target: at_s is not None}
        read = self.state.read_s if at_s is None else {**self.state.read_s, target: at_s}
        self._show(replace(self.state, up=up, read_s=read))

    def once(self) -> bool:
        """Observe and advise; whether that went well.

        What is wrong before anything ever went well is raised, unless a server is just away.
        """
        try:
            evidence = self._loop.observe(self.heard)
        except BreakevenError as error:
            if not self._worked and not isinstance(error, UnreachableError):
                raise
            self._failed(error)
            return False
        self._worked = True
        self._told.pop("observe", None)
        self._show(replace(self.state, evidence=evidence))
        self._advise(evidence)
        return True

    def run(self, stop: Event) -> None:
        """Until it is stopped."""
        while not stop.is_set():
            stop.wait(self._loop.pause_s if self.once() else self._loop.retry_s)

    def _advise(self, evidence: Evidence) -> None:
        due = self._advised_at is None or monotonic() - self._advised_at >= self._loop.advise_every_s
        if self._loop.advise is None or not due:
            return
        self._advised_at = monotonic()
        try:
            advice = self._loop.advise(evidence)
        except BreakevenError as error:
            self._tell("advise", error.message)
            return
        self._told.pop("advise", None)
        self._show(replace(self.state, advice=advice, advised_s=time()))

    def _failed(self, error: BreakevenError) -> None:
        """Figures of an engine that is away are not shown on as if it ran; what was advised stays, with its time."""
        self._show(replace(self.state, evidence=None, up=dict.fromkeys(self.state.up, False)))
        self._tell("observe", error.message)

    def _tell(self, doing: str, message: Message) -> None:
        """On stderr, once for each reason."""
        if self._told.get(doing) != message.key:
            self._told[doing] = message.key
            streams.tell(message)

    def _show(self, state: State) -> None:
        self.state = state
        self._page = exposition(state, self._language)


def run(loop: Loop, host: str, port: int, language: str = "en", stop: Event | None = None) -> None:
    """Observe and serve until Ctrl-C."""
    exporter = Exporter(loop, language)
    with PageServer(host, port, exporter.page) as serving:
        shown = f"[{host}]" if ":" in host else host
        streams.tell(Message("export.serving", {"host": shown, "port": serving.port, "targets": ", ".join(loop.targets)}))
        try:
            exporter.run(stop or Event())
        except KeyboardInterrupt:
            streams.tell(Message("export.ended"))
