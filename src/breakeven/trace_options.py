"""The options that say how the file of a trace is to be read, for every verb that takes one."""

# No `from __future__ import annotations`: typer reads the annotations of a verb.
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from breakeven.deployment_options import Deployed
from breakeven.errors import InputError
from breakeven.verb import option

if TYPE_CHECKING:
    from breakeven.messages import Message
    from breakeven.reading import Reading

Columns = Annotated[str | None, option("--columns", metavar="FIELD=COLUMN,…")]
Tokenizer = Annotated[str | None, option("--tokenizer", metavar="FILE")]
Group = Annotated[str | None, option("--group", metavar="FIELD")]


def reading_of(columns: str | None, tokenizer: str | None, group: str | None, **more: Any) -> "Reading":
    """What is said of the trace's file."""
    from breakeven import reading

    return reading.Reading(
        columns={} if columns is None else reading.columns_of(columns),
        tokenizer=None if tokenizer is None else Path(tokenizer),
        group=group,
        **more,
    )


def with_trace(deployed: Deployed, said: "Reading") -> Deployed:
    """The deployment with the trace that was typed, read as it is said to be."""
    from breakeven import reading, traces

    flags = deployed["flags"]
    if "trace" not in flags:
        if said != reading.Reading():
            raise InputError("reading_without_trace")
        return deployed
    return {**deployed, "flags": {**flags, "trace": traces.read(Path(str(flags["trace"])).expanduser(), said)}}


def limits_count(notes: "tuple[Message, ...]") -> "tuple[Message, ...]":
    """The notes without the one on the limits of a step and of a request, which have their effect where requests are simulated."""
    return tuple(note for note in notes if note.key != "warning.without_effect")
