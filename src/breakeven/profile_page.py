"""A profile for a terminal: the file, arrivals, lengths, the effective batch, reuse, drafts, and what is left open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from breakeven import profile_words as words
from breakeven.canvas import DIM, glued, grid, indented, labels, rule
from breakeven.messages import say
from breakeven.profile_document import ProfileDocument
from breakeven.units import time_text

QUANTITY_WIDTHS = (None, 10, 10, 10, 10, 10)
LABEL_WIDTH = 16
CAPACITY_WIDTHS = (14, 14, 14, None)
DRAFT_WIDTHS = (3, 18, 10, 10, None)


def blocks(document: ProfileDocument, verbose: bool) -> Iterator[RenderableType]:
    """What there is to show, in its order."""
    language = document.language
    yield glued(words.headline_words(document), style="bold")
    told = words.damage_words(document.file, language)
    yield from (glued(line) for line in ([] if told is None else [told]) + document.file.notes)
    yield rule()
    yield from _arrivals(document, verbose)
    yield from _lengths(document)
    yield from _batches(document)
    yield from _reuse(document, verbose)
    yield from _drafts(document)
    yield from _acceptance(document)
    yield from _unanswered(document)
    yield from (glued(f"! {warning}") for warning in document.warnings)


def titled(key: str, language: str) -> Text:
    """The title of a part."""
    return glued(say(key, language), style="bold")


def _arrivals(document: ProfileDocument, verbose: bool) -> Iterator[RenderableType]:
    arrivals, language = document.arrivals, document.language
    if arrivals is None:
        return
    lines = [
        words.rate_words(arrivals, language),
        words.sparkline(arrivals.rates_per_s),
        arrivals.sentence,
        words.spacing_words(arrivals, language),
    ]
    yield labels([(say("profile.arrivals", language), glued("\n".join(line for line in lines if line)))], LABEL_WIDTH)
    if verbose:
        yield indented(_dispersions(document))


def _dispersions(document: ProfileDocument) -> Table:
    """Every index with the values that Poisson arrivals would give."""
    language = document.language
    rows = [] if document.arrivals is None else document.arrivals.dispersions
    cells = [[time_text(row.window_s), f"{row.windows:,}", f"{row.index:.3g}", f"{row.low:.2f}–{row.high:.2f}"] for row in rows]
    return table(words.heads(("window", "windows", "index", "of_poisson"), language), cells, (10, 10, 10, None))


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int | None]) -> Table:
    """Rows of cells under their heads."""
    found = grid(*widths)
    found.add_row(*(glued(head, style=DIM) for head in heads))
    for row in rows:
        found.add_row(*(glued(cell) for cell in row))
    return found


def _lengths(document: ProfileDocument) -> Iterator[RenderableType]:
    lengths, language = document.lengths, document.language
    rows = [words.quantity_cells(say("profile.input_tokens", language), lengths.input_tokens)]
    if lengths.output_tokens is not None:
        rows.append(words.quantity_cells(say("profile.output_tokens", language), lengths.output_tokens))
    times = ((say("profile.ttft", language), document.ttft_s), (say("profile.e2e", language), document.e2e_s))
    rows += [words.quantity_cells(title, values, time_text) for title, values in times if values is not None]
    yield glued("")
    yield table(words.heads(words.QUANTITY_HEADS, language), rows, QUANTITY_WIDTHS)
    more = [words.correlation_words(document), words.sessions_words(document), words.cached_words(document)]
    yield from (glued(line) for line in more if line)


def _batches(document: ProfileDocument) -> Iterator[RenderableType]:
    found, language = document.batches, document.language
    if found is None:
        return
    times = say("profile.times", language, tpot=found.tpot_s, ttft=found.ttft_s) if found.tpot_s and found.ttft_s else ""
    both = found.by_simulation
    checked = (
        "" if both is None else say("profile.batch_checked", language, mean=found.by_windows.mean, token=found.by_windows.seen_by_a_token)
    )
    lines = [found.deployment, found.sentence, words.sparkline(found.batches), checked, times, words.schedule_words(document) or ""]
    yield glued("")
    yield labels([(say("profile.batch_title", language), glued("\n".join(line for line in lines if line)))], LABEL_WIDTH)
    if found.schedule_setting is not None:
        yield indented(glued(say("profile.schedule_setting", language, setting=found.schedule_setting)))


def _reuse(document: ProfileDocument, verbose: bool) -> Iterator[RenderableType]:
    found, language = document.reuse, document.language
    if found is None:
        return
    yield glued("")
    key = "profile.reuse_partial" if found.partial else "profile.reuse"
    said = say(key, language, share=found.unbounded_hit_rate, block=found.block_tokens, unique=found.unique_blocks, blocks=found.blocks)
    lines = [said, *found.notes]
    lines += words.left_over_words(document)
    if found.diverged_share is not None:
        lines.append(say("profile.diverged", language, diverged=found.diverged_share, extended=found.extended_share))
    if found.sampling_error:
        lines.append(say("profile.sampled", language, error=found.sampling_error))
    yield labels([(say("profile.reuse_title", language), glued("\n".join(lines)))], LABEL_WIDTH)
    kept = ("cache_bytes",) if document.batches is not None else ()
    heads = words.heads(("capacity", *kept, "hit_rate", "touched"), language)
    yield indented(table(heads, words.capacity_cells(document), CAPACITY_WIDTHS[-len(heads) :]))
    if verbose and found.splits:
        heads = words.heads(("position", "split_requests", "continuations", "lost"), language)
        yield indented(table(heads, words.split_cells(document), CAPACITY_WIDTHS))


def _drafts(document: ProfileDocument) -> Iterator[RenderableType]:
    found, language = document.drafts, document.language
    if found is None:
        return
    heads = words.heads(("k", "acceptance_length", "acceptance_rate", "drafted", "cumulative"), language)
    said = say("profile.drafts", language, method=found.method, rule=found.rule)
    yield glued("")
    told = [said, *words.best_k_words(document), *found.notes]
    yield labels([(say("profile.drafts_title", language), glued("\n".join(told)))], LABEL_WIDTH)
    yield indented(table(heads, words.draft_cells(found.by_k), DRAFT_WIDTHS))
    for name, rows in found.groups.items():
        yield indented(glued(name, style="bold"))
        yield indented(table(heads, words.draft_cells(rows[-1:]), DRAFT_WIDTHS))


def _acceptance(document: ProfileDocument) -> Iterator[RenderableType]:
    if document.acceptance is None:
        return
    yield glued("")
    yield labels(
        [(say("replay.acceptance", document.language), words.acceptance_words(document.acceptance, document.language))], LABEL_WIDTH
    )


def _unanswered(document: ProfileDocument) -> Iterator[RenderableType]:
    if not document.unanswered:
        return
    language = document.language
    yield glued("")
    yield titled("profile.not_enough", language)
    rows: list[tuple[str, str | Text]] = [
        (say(f"profile.question_{one.question}", language), say("profile.reason_how", language, reason=one.reason, how=one.how))
        for one in document.unanswered
    ]
    yield labels(rows, LABEL_WIDTH)
