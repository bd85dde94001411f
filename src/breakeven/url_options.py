"""Running engines observed for a few seconds before a verb answers, where ``--url`` names them."""

# No `from __future__ import annotations`: typer reads the annotations of a verb.
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Annotated

from breakeven import interruption, streams
from breakeven.deployment_options import Deployed
from breakeven.errors import InputError
from breakeven.messages import Message
from breakeven.observe_options import headers, schedule
from breakeven.verb import option

Urls = Annotated[list[str] | None, option("--url", metavar="URL")]
FOR, EVERY = "5s", "1s"
ANOTHER = "error.page_other_engine"
"""The engine that is asked about need not be the one that runs; where a page does not tell whose it is, it is taken to be."""
SHORT = ("error.evidence_no_rate", "error.evidence_no_lengths_none_ended", "error.no_arrivals")
"""Of what cannot be answered, what a longer reading might have told."""


def with_urls(deployed: Deployed, urls: Sequence[str] | None, for_: str | None, header: Sequence[str] | None) -> Deployed:
    """The deployment with what its replicas show while they are read, and an exporter of devices beside them; nothing is changed there."""
    if not urls:
        raise InputError("evidence_without_url", option="--for" if for_ is not None else "--header")
    if deployed["evidence"] is not None:
        raise InputError("evidence_two")
    if "://" in (deployed["file"] or ""):
        raise InputError("url_each")
    from breakeven import live_view
    from breakeven.endpoint import address
    from breakeven.use_cases import observe as observing

    for_s, every_s = schedule(for_ or FOR, EVERY)
    observing.described(deployed)  # what is typed wrong is said before anybody waits
    sent, engine = headers(header), deployed["flags"].get("engine")
    with live_view.Progress(", ".join(map(address, urls)), for_s, every_s) as seen:
        observe = partial(observing.observe, urls, for_s=for_s, every_s=every_s, headers=sent, heard=seen.heard)
        try:
            evidence = observe(engine=engine)
        except InputError as error:
            if error.message.key != ANOTHER:
                raise
            evidence = observe()
    return {**deployed, "evidence": evidence}


@contextmanager
def told_if_ended_early(evidence: object) -> Iterator[None]:
    """Within it a deployment is made of what was read; where Ctrl-C or SIGTERM ended that early, it is said.

    What so little does not suffice for is laid to what ended it, and the program ends as it was asked to.
    """
    from breakeven.observation.window import INTERRUPTED, TERMINATED

    ended = [note.key for note in getattr(evidence, "warnings", ()) if note.key in (INTERRUPTED, TERMINATED)]
    try:
        yield
    except InputError as error:
        if not ended or error.message.key not in SHORT:
            raise
        streams.tell(Message("observe.ended_short", {"signal": interruption.named(), "reason": error.message}))
        raise KeyboardInterrupt from None
    for key in ended:
        streams.tell(Message(key))
