"""Which servers can be observed together: replicas of one engine, with exporters of devices beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from breakeven.errors import InputError
from breakeven.messages import Message
from breakeven.observation.page import Page


def other(source: str, page: Page, first: Mapping[str, Page]) -> InputError | None:
    """Why a server's page cannot stand beside the first pages of the others; None where it can.

    What a router counts are its engines' requests once more, and two kinds of engines have no batch in common.
    """
    for target, before in first.items():
        if page.engine and before.engine and page.engine != before.engine:
            return InputError("observe_engines_differ", target=source, engine=page.engine, first=target, other=before.engine)
        if {page.role, before.role} == {"engine", "router"}:
            router, engine = (source, target) if page.role == "router" else (target, source)
            return InputError("observe_router_beside", target=router, engine=engine)
    return None


def several_models(pages: Iterable[Page]) -> Iterator[Message]:
    """That servers do not serve the same models: what is told is of all of them together."""
    named = {one.models for one in pages if one.role != "device" and one.models}
    if len(named) > 1:
        yield Message("observe.note_models", {"models": ", ".join(sorted({name for models in named for name in models}))})


def one_process(first: Mapping[str, Page]) -> Iterator[Message]:
    """That two addresses seem to lead to one server: its process began at the same hundredth of a second."""
    began: dict[float, str] = {}
    for source, page in first.items():
        if page.role == "engine" and page.started_s is not None and page.started_s % 1.0:
            other = began.setdefault(page.started_s, source)
            if other != source:
                yield Message("observe.note_one_process", {"target": source, "other": other})
