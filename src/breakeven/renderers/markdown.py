"""A document as Markdown, to be pasted where people decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import UnsetType

from breakeven import backtest_words, observe_page, simulate_words, words
from breakeven.backtest_document import BacktestDocument, BacktestReason, BacktestScore
from breakeven.document import Document
from breakeven.messages import printable, say
from breakeven.observe_document import ObserveDocument
from breakeven.simulate_document import SimulationDocument


def render(document: Document | BacktestDocument | ObserveDocument | SimulationDocument) -> str:
    """The report as Markdown."""
    if isinstance(document, BacktestDocument):
        return "\n".join(_backtest(document)) + "\n"
    if isinstance(document, ObserveDocument):
        return "\n".join(observe_page.markdown(document)) + "\n"
    if isinstance(document, SimulationDocument):
        return "\n".join(_simulation(document)) + "\n"
    return "\n".join([*_head(document), "", *_ledgers(document), "", *_levers(document), "", *_answer(document)]) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(printable(cell, keep="\n").replace("|", "\\|").replace("\n", "<br>") for cell in cells) + " |"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [_row(head), _row(["---"] * len(head)), *(_row(row) for row in rows)]


def _head(document: Document) -> Iterator[str]:
    yield f"# {document.title.deployment}"
    yield ""
    yield f"{document.title.workload}  "
    yield f"{document.operating_point.sentence}  "
    if not isinstance(document.operating_point.batch_over_time, UnsetType):
        yield f"{document.operating_point.batch_over_time.sentence}  "
    if not isinstance(document.observed, UnsetType):
        yield f"{say('report.observed_line', document.language, sentence=document.observed.sentence)}  "
    yield words.joined(words.point_words(document))


def _ledgers(document: Document) -> list[str]:
    language = document.language
    rows = [(say(f"report.{name}", language), figure, made_of) for name, _, figure, made_of in words.ledger_rows(document)]
    return _table((words.replica_words(document), "", ""), rows)


def _levers(document: Document) -> list[str]:
    language = document.language
    metrics = words.table_metrics(document)
    before = ("report.lever", "report.verdict", *(f"metric.{metric}" for metric in metrics))
    titles = [*(say(name, language) for name in before), words.pays_column_words(document), say("report.because", language)]
    rows = []
    for lever in document.levers:
        gains = [words.metric_words(lever, name, language) for name in metrics]
        verdict = say(f"report.verdict_{lever.verdict}", language)
        rows.append((words.title_words(lever, language), verdict, *gains, lever.pays_where, words.because_words(lever, language, metrics)))
    return _table(titles, rows)


def _answer(document: Document) -> Iterator[str]:
    language, best = document.language, document.best
    yield f"**{say('report.best_together', language)}** {words.best_title(best, language)}  "
    yield words.best_words(document)
    yield from (f"\n    {flags}" for flags in words.best_flag_words(document))
    yield ""
    yield f"**{say('report.measure_next', language)}**"
    yield from (f"- {sentence} `{command}`" for sentence, command in words.measurements(document))
    yield ""
    yield f"**{say('report.check_list', language)}** {words.checklist_words(document)}  "
    yield f"**{say('report.how_sure', language)}** {document.how_sure}"
    yield from (f"\n> {warning}" for warning in document.warnings)


def _backtest(document: BacktestDocument) -> Iterator[str]:
    language = document.language
    yield printable(backtest_words.headline_words(document))
    tables = (
        ("backtest.by_lever", document.levers),
        ("backtest.by_knowledge", document.knowledge),
        ("backtest.by_cell", document.summary),
        ("backtest.apart", document.apart),
        ("backtest.with_bad", document.levers_with_bad if document.bad_reasons else []),
    )
    for key, scores in tables:
        yield from _scores(key, scores, language)
    key, rows = backtest_words.shown_rows(document, all_of_them=False)
    yield f"\n## {say(key, language, rows=len(rows))}\n"
    yield from _table(backtest_words.heads(backtest_words.ROW_HEADS, language), [backtest_words.row_cells(row, language) for row in rows])
    yield from _reasons("backtest.bad_rows", document.counts.bad, document.bad_reasons, language)
    yield from _reasons("backtest.skipped_rows", document.counts.skipped, document.skipped_reasons, language)
    yield f"\n{say('backtest.legend', language)}"


def _scores(key: str, scores: Sequence[BacktestScore], language: str) -> Iterator[str]:
    if scores:
        yield f"\n## {say(key, language)}\n"
        heads = backtest_words.heads(backtest_words.SCORE_HEADS, language)
        yield from _table(heads, [backtest_words.score_cells(score, language) for score in scores])


def _reasons(key: str, rows: int, reasons: Sequence[BacktestReason], language: str) -> Iterator[str]:
    if reasons:
        yield f"\n## {say(key, language, rows=rows)}\n"
        yield from (f"- {reason.rows:,} × {printable(backtest_words.reason_words(reason, language))}" for reason in reasons)


def _simulation(document: SimulationDocument) -> Iterator[str]:
    language, figures = document.language, document.figures
    yield f"# {printable(document.title.deployment)}"
    yield f"\n{printable(document.title.workload)}  "
    yield f"**{document.headline}**\n"
    yield from _table(simulate_words.percentile_heads(language), simulate_words.percentile_rows(figures, language))
    told = (
        simulate_words.served_words(document),
        simulate_words.goodput_words(document),
        *(simulate_words.promise_words(one, language) for one in figures.promises),
        simulate_words.batch_words(document),
        simulate_words.device_words(figures, language),
        simulate_words.prefix_words(figures, language),
        simulate_words.preemption_words(figures, language),
        simulate_words.energy_words(figures, language),
    )
    yield ""
    yield from (f"- {line}" for line in told if line)
    if groups := simulate_words.group_rows(document):
        yield ""
        yield from _table(simulate_words.group_heads(language), groups)
    yield from _simulated_levers(document)
    yield from (f"\n> {printable(note)}" for note in document.notes)


def _simulated_levers(document: SimulationDocument) -> Iterator[str]:
    lattice, language = document.lattice, document.language
    if lattice is None:
        return
    names = simulate_words.gain_names(document)
    yield ""
    yield from _table(
        simulate_words.lever_heads(names, language), [simulate_words.lever_cells(one, names, language) for one in lattice.levers]
    )
    yield from (f"\n- {left.title}: {left.reason}" for left in lattice.left_out)
    yield f"\n{lattice.interval}\n"
    shown = simulate_words.shown_combinations(document, all_of_them=False)
    yield from _table(simulate_words.combination_heads(language), [simulate_words.combination_cells(one, language) for one in shown])
