"""A document for a terminal: 100 columns at most, down to 40 and to plain text; colour never says a thing alone."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UnsetType
from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from breakeven import backtest_page, calibrate_page, catalog_page, observe_page, probe_page, profile_page, simulate_page, words
from breakeven.backtest_document import BacktestDocument
from breakeven.calibrate_document import CalibrateDocument
from breakeven.canvas import DIM, LESS, ROOM, WIDEST, columns, folded, glued, grid, indented, labels, rule, written
from breakeven.catalog_document import CatalogDocument
from breakeven.document import Document, ExplanationDocument, Lever, Line, RuleOfThumb
from breakeven.messages import printable, say
from breakeven.observe_document import ObserveDocument
from breakeven.probe_document import ProbeDocument
from breakeven.profile_document import ProfileDocument
from breakeven.simulate_document import SimulationDocument

BAR = 18
LEDGER_COLOURS = {"memory": "blue", "bandwidth": "cyan", "compute": "magenta", "interconnect": "yellow"}
VERDICT_STYLES = {
    "pays": "bold green",
    "does_not_pay": "",
    "hurts": "bold red",
    "undecided": "bold yellow",
    "not_supported": DIM,
    "does_not_fit": "red",
}


def render(
    document: Document
    | ExplanationDocument
    | CatalogDocument
    | BacktestDocument
    | CalibrateDocument
    | ObserveDocument
    | ProbeDocument
    | ProfileDocument
    | SimulationDocument,
    *,
    width: int = WIDEST,
    colour: bool = False,
    verbose: bool = False,
    rules: bool = False,
) -> str:
    """A document as text, with ANSI colours only where asked for."""
    blocks: list[RenderableType]
    if isinstance(document, BacktestDocument):
        blocks = [*backtest_page.blocks(document, verbose)]
    elif isinstance(document, CalibrateDocument):
        blocks = [*calibrate_page.blocks(document, verbose)]
    elif isinstance(document, ObserveDocument):
        blocks = [*observe_page.blocks(document, verbose)]
    elif isinstance(document, ProbeDocument):
        blocks = [*probe_page.blocks(document, verbose)]
    elif isinstance(document, ProfileDocument):
        blocks = [*profile_page.blocks(document, verbose)]
    elif isinstance(document, SimulationDocument):
        blocks = [*simulate_page.blocks(document, verbose)]
    elif isinstance(document, ExplanationDocument):
        blocks = _explanation(document)
    elif isinstance(document, CatalogDocument):
        blocks = catalog_page.blocks(document, verbose)
    else:
        blocks = [*_report(document, columns(width)), *(_details(document) if verbose else ())]
        blocks += _rules(document.rules_of_thumb, document.language) if rules or verbose else []
    return written(blocks, width, colour)


def _report(document: Document, width: int) -> Iterator[RenderableType]:
    yield from _header(document, width)
    yield rule()
    yield _point(document)
    yield _ledgers(document)
    yield rule()
    yield from _levers(document, width)
    yield rule()
    yield _answer(document, width)


def _header(document: Document, width: int) -> Iterator[RenderableType]:
    left, right = printable(document.title.deployment), printable(document.title.workload)
    gap = width - cell_len(left) - cell_len(right)
    if gap >= 3:
        yield Text.assemble((left, "bold"), " " * gap, right)
        return
    yield glued(left, style="bold")
    yield glued(right)


def _point(document: Document) -> Table:
    figures = "   ".join(words.point_words(document))
    over_time = document.operating_point.batch_over_time
    spread = "" if isinstance(over_time, UnsetType) else f"\n{over_time.sentence}"
    said = glued(f"{document.operating_point.sentence}{spread}\n{figures}".rstrip())
    rows: list[tuple[str, str | Text]] = [(say("report.operating_point", document.language), said)]
    if not isinstance(document.observed, UnsetType):
        rows.append((say("report.observed", document.language), glued(document.observed.sentence)))
    return labels(rows, _label_width(document))


def _label_width(document: Document) -> int:
    names = ("operating_point", "best_together", "measure_next", "check_list", "how_sure", "objective")
    return max(cell_len(say(f"report.{name}", document.language)) for name in names)


def bar(share: float) -> str:
    """A bar of eighteen cells; what is over the limit fills it."""
    full = round(BAR * max(0.0, min(1.0, share)))
    return "█" * full + "░" * (BAR - full)


def _ledgers(document: Document) -> Table:
    table = grid(_label_width(document), BAR, 10, None)
    for name, share, figure, made_of in words.ledger_rows(document):
        label = glued(say(f"report.{name}", document.language), style="bold")
        table.add_row(label, glued(bar(share or 0.0), style=LEDGER_COLOURS[name]), glued(figure), glued(made_of))
    if document.ledgers.devices_per_replica > 1:
        table.add_row("", "", "", glued(words.replica_words(document), style=DIM))
    return table


def _shape(document: Document, width: int) -> tuple[list[str], tuple[int | None, ...]]:
    """Metrics of the lever table and the widths of its columns; a narrow page has room for two metrics."""
    metrics = words.table_metrics(document)
    if width < WIDEST:
        return metrics[:2], (20, 13, 11, 11, None)
    return metrics, (24, 13, 13, 13, None) if len(metrics) == 2 else (24, 13, 12, 12, 12, None)


def _levers(document: Document, width: int) -> Iterator[RenderableType]:
    language = document.language
    metrics, widths = _shape(document, width)
    head = grid(*widths)
    names = ("report.lever", "report.verdict", *(f"metric.{metric}" for metric in metrics))
    titles = [*(say(name, language) for name in names), words.pays_column_words(document)]
    head.add_row(*(glued(title, style=DIM) for title in titles))
    yield head
    yield indented(glued(say("report.because", language), style=DIM))
    for lever in document.levers:
        row = grid(*widths)
        row.add_row(*_cells(lever, metrics, language))
        yield row
        if because := words.because_words(lever, language, metrics):
            yield indented(glued(because))


def _cells(lever: Lever, metrics: list[str], language: str) -> Iterator[Text]:
    yield glued(words.title_words(lever, language), style="bold")
    yield glued(say(f"report.verdict_{lever.verdict}", language), style=VERDICT_STYLES[lever.verdict])
    yield from (glued(words.metric_words(lever, metric, language)) for metric in metrics)
    yield glued(lever.pays_where)


def _answer(document: Document, width: int) -> Table:
    language = document.language
    room = width - (LESS if width < ROOM else _label_width(document) + 2)
    rows: list[tuple[str, str | Text]] = [
        (say("report.best_together", language), _best(document, room)),
        (say("report.measure_next", language), _measure(document, room)),
        (say("report.check_list", language), words.checklist_words(document)),
        (say("report.how_sure", language), document.how_sure),
    ]
    rows += [(say("report.warning", language), warning) for warning in document.warnings]
    return labels(rows, _label_width(document))


def _best(document: Document, room: int) -> Text:
    best, language = document.best, document.language
    said = Text().append(glued(words.best_title(best, language), style="bold"))
    if gains := words.best_words(document):
        said.append("\n").append(glued(gains))
    for flags in words.best_flag_words(document, lambda typed: folded(typed, room)):
        said.append("\n").append(glued(flags, style="cyan"))
    return said


def _measure(document: Document, room: int) -> Text:
    said = Text()
    for sentence, command in words.measurements(document):
        said.append("\n" if said else "").append(glued(sentence)).append("\n").append(glued(folded(command, room), style="cyan"))
    return said or glued(say("report.measure_none", document.language))


def _section(title: str) -> list[RenderableType]:
    return [glued(""), glued(title, style="bold")]


def _details(document: Document) -> list[RenderableType]:
    language = document.language
    draws = say("report.draws_line", language, draws=document.draws, seed=document.seed)
    sections: list[tuple[str, list[RenderableType]]] = [
        ("objective", [glued(words.objective_words(document)), glued(draws)]),
        ("step_time", [glued(words.step_words(document))] if document.ledgers.memory.fits else []),
        ("intervals", [glued(say("report.throughput_means", language)), *(_lever_details(lever, language) for lever in document.levers)]),
        ("check_list", [_checks(document)]),
        ("inputs", [_inputs(document)]),
    ]
    blocks: list[RenderableType] = []
    for name, content in ((name, content) for name, content in sections if content):
        blocks += [*_section(say(f"report.{name}", language)), *(indented(block) for block in content)]
    return blocks


def _lever_details(lever: Lever, language: str) -> Table:
    table = grid(20, None)
    told = words.reasons(lever) if lever.verdict == "does_not_fit" else [*lever.because, *words.source_words(lever, language), *lever.notes]
    table.add_row(glued(lever.title, style="bold"), glued(say("report.accuracy_line", language, accuracy=lever.accuracy)))
    table.add_row(glued(say("report.because", language), style=DIM), glued(words.joined(told)))
    for name, gain in lever.metrics.items():
        table.add_row(glued(say(f"metric.{name}", language)), glued(words.interval_words(gain, language)))
    for boundary in lever.boundaries:
        table.add_row(glued(say("report.break_even", language), style=DIM), glued(boundary.sentence))
    for other in lever.alternatives:
        table.add_row(glued(say("report.other_settings", language), style=DIM), glued(words.alternative_words(other, language)))
    label = say("report.switch_off" if lever.state == "on" else "report.switch_on", language)
    for flags in words.lever_flag_words(lever, language):
        table.add_row(glued(label, style=DIM), glued(flags))
    return table


def _checks(document: Document) -> Table:
    table = grid(10, None)
    for item in document.checklist:
        evidence = item.evidence if item.status == "done" else words.joined([item.evidence, item.how])
        said = say("report.check_line", document.language, title=item.title, words=evidence)
        table.add_row(glued(say(f"report.status_{item.status}", document.language)), glued(said))
    return table


def _inputs(document: Document) -> Table:
    table = grid(36, 10, None)
    for item in document.inputs:
        source = say(f"report.provenance_{item.provenance}", document.language)
        table.add_row(glued(item.path), glued(source), glued(words.value_words(item.value, document.language)))
    return table


def _rules(rules: list[RuleOfThumb], language: str) -> list[RenderableType]:
    blocks = _section(say("report.rules", language)) if rules else []
    for thumb in rules:
        blocks.append(indented(glued(words.rule_words(thumb, language))))
        blocks.append(indented(glued(say("report.rule_breaks", language, breaks=thumb.breaks), style=DIM), 2))
    return blocks


def _explanation(explanation: ExplanationDocument) -> list[RenderableType]:
    language = explanation.language
    blocks: list[RenderableType] = [glued(say("report.explain_title", language, lever=explanation.title), style="bold"), rule()]
    on = {line.symbol: line for line in explanation.on}
    off = {line.symbol: line for line in explanation.off}
    for symbol in dict.fromkeys([*off, *on]):
        blocks.append(_arm_lines(off.get(symbol), on.get(symbol), language))
    blocks += [rule(), glued(say("report.explain_result", language), style="bold")]
    blocks += [_arm_lines(line, line, language) for line in explanation.result]
    return blocks


def _arm_lines(off: Line | None, on: Line | None, language: str) -> Table:
    one = off or on
    table = grid(16, 6, None)
    if one is None:
        return table
    source = say("report.explain_source", language, source=one.source)
    table.add_row(glued(one.symbol, style="bold"), "", glued(one.name))
    table.add_row("", "", glued(f"= {one.formula}   {source}", style=DIM))
    arms = (
        [("both", one)]
        if off is not None and on is not None and (off.substituted, off.value) == (on.substituted, on.value)
        else [(name, line) for name, line in (("off", off), ("on", on)) if line is not None]
    )
    for name, line in arms:
        numbers = f"= {line.substituted} " if line.substituted else ""
        table.add_row(
            "", glued(say(f"report.explain_{name}", language)), Text.assemble(glued(numbers), "= ", (words.line_value(line), "bold"))
        )
    return table
