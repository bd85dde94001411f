"""A running engine observed for a few seconds before a verb answers, where ``--url`` names one."""

# No `from __future__ import annotations`: typer reads the annotations of a verb.
from collections.abc import Sequence
from typing import Annotated

from breakeven.deployment_options import Deployed
from breakeven.errors import InputError
from breakeven.observe_options import headers, schedule
from breakeven.verb import option

Url = Annotated[str | None, option("--url", metavar="URL")]
FOR, EVERY = "5s", "1s"


def with_url(deployed: Deployed, url: str | None, for_: str | None, header: Sequence[str] | None) -> Deployed:
    """The deployment with what the engine at an address shows while it is read; nothing on it is changed."""
    if url is None:
        raise InputError("evidence_without_url", option="--for" if for_ is not None else "--header")
    if deployed["evidence"] is not None:
        raise InputError("evidence_two")
    from breakeven import live, live_view

    for_s, every_s = schedule(for_ or FOR, EVERY)
    live.described(deployed)  # what is typed wrong is said before anybody waits
    targets = live.targets_of((url,), headers=headers(header), engine=deployed["flags"].get("engine"))
    with live_view.Progress(", ".join(one.source for one in targets), for_s, every_s) as seen:
        evidence = live.observe((url,), for_s=for_s, every_s=every_s, headers=headers(header), heard=seen.heard)
    return {**deployed, "evidence": evidence}
