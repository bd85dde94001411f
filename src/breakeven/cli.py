"""The command line: a verb parses, makes one call of the api and hands the answer to one renderer."""

# No `from __future__ import annotations`: typer reads the annotations of a verb.
import sys

try:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import Annotated

    import typer

    from breakeven import interruption, registry, streams
    from breakeven.command_line import language_of, once, one_of, take_as_typed, translate, usage_line, without_language
    from breakeven.deployment_options import Deployed, takes_deployment
    from breakeven.errors import BreakevenError, InputError
    from breakeven.messages import say, text
    from breakeven.observe_options import For, Header
    from breakeven.trace_options import Columns, Group, Tokenizer, reading_of, with_trace
    from breakeven.url_options import Urls
    from breakeven.verb import AsJson, Folders, InLanguage, Seed, ShowHelp
    from breakeven.verb import language as _language
    from breakeven.verb import option as _option
    from breakeven.verb import show as _show
    from breakeven.verb import whole as _whole
except KeyboardInterrupt:
    # Most of the time to start goes here, before there is a `main` that could catch it.
    sys.exit(130)

REFERENCE = "docs/reference"
USAGE_EXIT = 2


def root(
    ctx: typer.Context,
    version: Annotated[bool, _option("--version")] = False,
    show_help: ShowHelp = False,
) -> None:
    """Say which version this is, or go on to a verb."""
    if version:
        from importlib.metadata import version as installed

        streams.write_out(f"breakeven {installed('breakeven')}\n")
        raise typer.Exit


@takes_deployment
def advise(
    ctx: typer.Context,
    deployed: Deployed,
    url: Urls = None,
    observed_for: For = None,
    header: Header = None,
    columns: Columns = None,
    tokenizer: Tokenizer = None,
    group: Group = None,
    objective: Annotated[str | None, _option("--objective", metavar="METRIC")] = None,
    threshold: Annotated[str, typer.Option(metavar="SHARE", show_default=True)] = "0.10",
    draws: Annotated[str, typer.Option(metavar="NUMBER", show_default=True)] = "512",
    seed: Seed = "0",
    explain: Annotated[str | None, _option("--explain", metavar="LEVER")] = None,
    rules: Annotated[bool, _option("--rules")] = False,
    verbose: Annotated[bool, _option("--verbose", "-v")] = False,
    markdown: Annotated[bool, _option("--markdown")] = False,
    as_json: AsJson = False,
    lang: InLanguage = None,
    show_help: ShowHelp = False,
) -> None:
    """Where the deployment stands, which levers pay, by how much, up to where."""
    from breakeven import api, compose, url_options
    from breakeven.origin import values

    language, seeded = _language(ctx), _whole(seed, "--seed")
    one_of(objective, "--objective", api.OBJECTIVES)
    one_of(explain, "--explain", api.levers())
    typed = deployed if columns is tokenizer is group is None else with_trace(deployed, reading_of(columns, tokenizer, group))
    if url or observed_for is not None or header:
        typed = url_options.with_urls(typed, url, observed_for, header)
    with url_options.told_if_ended_early(typed["evidence"]):
        deployment, warnings = api.load(**typed)
    drawn, pays_from = values.count(draws, "--draws"), values.number(threshold, "--threshold")
    if explain is not None:
        explained = api.explain(deployment, explain, objective=objective, threshold=pays_from, draws=drawn, seed=seeded)
        _show(compose.compose_explanation(explained, language), as_json)
        return
    advice = api.advise(deployment, objective=objective, threshold=pays_from, draws=drawn, seed=seeded, warnings=warnings)
    document = compose.compose(advice, language)
    _show(document, as_json, markdown=markdown, verbose=verbose, rules=rules)


def catalog(
    ctx: typer.Context,
    kind: Annotated[str | None, typer.Argument(metavar="KIND", show_default=False)] = None,
    name: Annotated[str | None, typer.Argument(metavar="NAME", show_default=False)] = None,
    other: Annotated[str | None, typer.Argument(metavar="NAME", show_default=False)] = None,
    having: Annotated[str | None, _option("--filter", metavar="WORD")] = None,
    validate: Annotated[str | None, _option("--validate", metavar="PATH")] = None,
    template: Annotated[str | None, _option("--template", metavar="hardware|models")] = None,
    catalog_dirs: Folders = None,
    seed: Seed = "0",
    as_json: AsJson = False,
    lang: InLanguage = None,
    show_help: ShowHelp = False,
) -> None:
    """What devices, models, engines and levers are known, and where each figure comes from."""
    from breakeven import api, catalog_files, entries

    _whole(seed, "--seed")
    if template is not None:
        streams.write_out(entries.template_of(template))
        return
    if validate is not None:
        checked = entries.compose_check(Path(validate), _language(ctx))
        _show(checked, as_json)
        raise typer.Exit(0 if all(file.ok for file in checked.checked) else USAGE_EXIT)
    dirs = catalog_files.user_folders(catalog_dirs or ())
    wanted = None if kind is None else entries.kind_named(kind)
    one_of(wanted, "catalog", entries.KINDS)
    levers = api.levers()
    names = {each: entries.names_of(each, levers, api.OBJECTIVES, dirs) for each in entries.KINDS if wanted in (None, each)}
    if name is not None:
        for each, known in names.items():
            one_of(name if each in entries.WORDS else None, each, known)
        names = {each: (api.lever_named(name).name if each == "levers" else name,) for each in names}
    if name is not None and other is not None:
        _show(entries.compose_comparison(next(iter(names)), (name, other), _language(ctx), dirs), as_json)
        return
    _show(entries.compose_catalog(names, levers, _language(ctx), dirs, word=having), as_json, verbose=name is not None)


def schema(
    ctx: typer.Context,
    write: Annotated[bool, _option("--write")] = False,
    to: Annotated[str | None, _option("--to", metavar="FOLDER")] = None,
    seed: Seed = "0",
    as_json: AsJson = False,
    lang: InLanguage = None,
    show_help: ShowHelp = False,
) -> None:
    """The JSON schema of the output of ``advise --json``; written, those of all outputs."""
    from breakeven import document
    from breakeven.renderers import json

    _whole(seed, "--seed")
    if not write and to is None:
        streams.write_out(json.render(document.json_schema()))
        return
    folder = Path(to or REFERENCE)
    if not folder.is_dir():
        raise InputError("no_reference_folder", path=str(folder))
    for name in document.PUBLISHED:
        streams.write_file(folder / name, json.render(document.json_schema(name)))


HERE: Mapping[str, Callable[..., None]] = {verb.__name__: verb for verb in (advise, catalog, schema)}


def names() -> tuple[str, ...]:
    """The verbs, in the order that help tells them."""
    return (*HERE, *registry.names("verbs"))


def program(wanted: Iterable[str]) -> typer.Typer:
    """The program with those verbs: to read all of them takes longer than most need to start."""
    made = typer.Typer(add_completion=False, rich_markup_mode=None, add_help_option=False, pretty_exceptions_enable=False)
    made.callback(invoke_without_command=True)(root)
    for name in wanted:
        made.command(name, add_help_option=False)(HERE[name] if name in HERE else registry.module("verbs", name).VERB)
    return made


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code."""
    try:
        language = language_of(arguments, os.environ)
    except InputError as error:
        return _complain(str(error), error.exit_code)
    streams.hold(say("cli.breakeven", language))
    words, verbs = without_language(arguments), names()
    command = typer.main.get_command(program(words[:1] if words[0] in verbs else verbs))
    command.name = None
    translate(command, language)
    take_as_typed(command)
    try:
        once(words, command)
        with streams.speaking(language), command.make_context("breakeven", words) as context:
            context.meta["language"] = language
            command.invoke(context)
    except streams.UnwrittenError as error:
        return _complain(say("cli.cannot_write", language, reason=error), USAGE_EXIT)
    except BreakevenError as error:
        return _complain(text(error.message, language), error.exit_code)
    except typer.Exit as exit_:
        return exit_.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return interruption.exit_code()
    except typer.TyperException as error:
        return _complain(usage_line(error, language, verbs), USAGE_EXIT)
    return 0


def _complain(line: str, code: int) -> int:
    streams.complain(line)
    return code


def main(arguments: Sequence[str] | None = None) -> None:
    """The program ``breakeven``."""
    streams.prepare()
    try:
        with interruption.terminable():
            code = run(sys.argv[1:] if arguments is None else arguments)
    except BrokenPipeError:
        # The reader of a pipe has left: nothing is wrong.
        streams.silence(sys.stdout)
        code = 0
    except KeyboardInterrupt:
        code = interruption.exit_code()
    sys.exit(code)


if __name__ == "__main__":
    main()
