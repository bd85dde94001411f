"""``breakeven backtest CASES``: how well the model predicts measurements that are there already."""

# No `from __future__ import annotations`: typer reads the annotations of a verb.
import os
from typing import Annotated

import typer

from breakeven.command_line import one_of
from breakeven.verb import AsJson, AsMarkdown, Folders, InLanguage, Seed, ShowHelp, Verbose, language, option, show, whole

LEFT_OUT = ("group",)


def backtest(
    ctx: typer.Context,
    cases: Annotated[list[str], typer.Argument(metavar="CASES", show_default=False)],
    leave_out: Annotated[str | None, option("--leave-out", metavar="group")] = None,
    draws: Annotated[str, typer.Option(metavar="NUMBER", show_default=True)] = "256",
    model: Annotated[str | None, option("--model", metavar="NAME|FILE")] = None,
    hardware: Annotated[str | None, option("--hardware", metavar="DEVICE")] = None,
    engine: Annotated[str | None, option("--engine", metavar="NAME")] = None,
    catalog_dirs: Folders = None,
    seed: Seed = "0",
    verbose: Verbose = False,
    markdown: AsMarkdown = False,
    as_json: AsJson = False,
    lang: InLanguage = None,
    show_help: ShowHelp = False,
) -> None:
    """How well the model predicts measurements that are there already: row by row, and counted."""
    # Fits solve many small systems, in which threads of the linear algebra only wait for each other; it reads this when it is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from breakeven import api, backtest_report, catalog
    from breakeven.measured.steps import Stated
    from breakeven.origin import values

    seeded = whole(seed, "--seed")
    one_of(leave_out, "--leave-out", LEFT_OUT)
    stated = Stated(model=model or "", device=hardware or "", engine=engine or "", folders=catalog.user_folders(catalog_dirs or ()))
    found = api.backtest(cases, leave_out=leave_out, draws=values.count(draws, "--draws"), seed=seeded, stated=stated)
    show(backtest_report.compose(found, cases, language(ctx)), as_json, markdown=markdown, verbose=verbose)


VERB = backtest
