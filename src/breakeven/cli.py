"""The command line: a verb parses, makes one call of the api and hands the answer to one renderer."""

# No `from __future__ import annotations`: typer reads the annotations of a verb.
import sys

try:
    import os
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Annotated, Any

    import typer

    from breakeven import registry, streams
    from breakeven.command_line import language_of, one_of, translate, usage_line, without_language
    from breakeven.errors import BreakevenError, InputError
    from breakeven.messages import say, text
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
INTERRUPTED_EXIT = 130
NOT_FIELDS = (
    "ctx",
    "file",
    "launch",
    "log",
    "objective",
    "threshold",
    "draws",
    "seed",
    "as_json",
    "markdown",
    "lang",
    "verbose",
    "rules",
    "explain",
    "catalog_dirs",
)


Number = Annotated[str | None, typer.Option(metavar="NUMBER", show_default=False)]
Switch = bool | None

app = typer.Typer(add_completion=False, rich_markup_mode=None, add_help_option=False, pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
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


@app.command(add_help_option=False)
def advise(
    ctx: typer.Context,
    file: Annotated[str | None, typer.Argument(metavar="FILE", show_default=False)] = None,
    model: Annotated[str | None, _option("--model", metavar="NAME|FILE")] = None,
    hardware: Annotated[str | None, _option("--hardware", metavar="DEVICE[:COUNT]")] = None,
    device_memory: Annotated[str | None, _option("--device-memory", metavar="SIZE")] = None,
    launch: Annotated[str | None, _option("--launch", metavar="COMMAND")] = None,
    log: Annotated[str | None, _option("--log", metavar="FILE")] = None,
    calibration: Annotated[str | None, _option("--calibration", metavar="FILE")] = None,
    engine: Annotated[str | None, _option("--engine", metavar="NAME")] = None,
    engine_version: Annotated[str | None, _option("--engine-version", metavar="VERSION")] = None,
    tensor_parallel_size: Annotated[str | None, _option("--tensor-parallel-size", "-tp", metavar="NUMBER")] = None,
    pipeline_parallel_size: Annotated[str | None, _option("--pipeline-parallel-size", "-pp", metavar="NUMBER")] = None,
    data_parallel_size: Annotated[str | None, _option("--data-parallel-size", "-dp", metavar="NUMBER")] = None,
    enable_expert_parallel: Annotated[Switch, _option("--enable-expert-parallel/--no-enable-expert-parallel")] = None,
    decode_context_parallel_size: Annotated[str | None, _option("--decode-context-parallel-size", "-dcp", metavar="NUMBER")] = None,
    prefill_context_parallel_size: Annotated[str | None, _option("--prefill-context-parallel-size", "-pcp", metavar="NUMBER")] = None,
    network_bytes_per_s: Annotated[str | None, _option("--network-bytes-per-s", metavar="BYTES/S")] = None,
    prefill_count: Annotated[str | None, _option("--prefill-count", metavar="NUMBER")] = None,
    prefill_tensor_parallel_size: Annotated[str | None, _option("--prefill-tensor-parallel-size", metavar="NUMBER")] = None,
    prefill_device: Annotated[str | None, _option("--prefill-device", metavar="NAME")] = None,
    transfer_bytes_per_s: Annotated[str | None, _option("--transfer-bytes-per-s", metavar="BYTES/S")] = None,
    max_num_seqs: Number = None,
    max_num_batched_tokens: Number = None,
    max_model_len: Number = None,
    dtype: Annotated[str | None, _option("--dtype", metavar="TYPE")] = None,
    quantization: Annotated[str | None, _option("--quantization", "-q", metavar="METHOD")] = None,
    kv_cache_dtype: Annotated[str | None, _option("--kv-cache-dtype", metavar="TYPE")] = None,
    block_size: Number = None,
    gpu_memory_utilization: Number = None,
    enable_prefix_caching: Annotated[Switch, _option("--enable-prefix-caching/--no-enable-prefix-caching")] = None,
    enable_chunked_prefill: Annotated[Switch, _option("--enable-chunked-prefill/--no-enable-chunked-prefill")] = None,
    enforce_eager: Annotated[Switch, _option("--enforce-eager/--no-enforce-eager")] = None,
    speculative: Annotated[str | None, _option("--speculative", "--speculative-config", metavar="JSON")] = None,
    input_tokens: Annotated[str | None, _option("--input", metavar="TOKENS")] = None,
    output_tokens: Annotated[str | None, _option("--output", metavar="TOKENS")] = None,
    rate: Annotated[str | None, _option("--rate", metavar="REQ/S")] = None,
    concurrency: Number = None,
    batch: Number = None,
    context: Annotated[str | None, _option("--context", metavar="TOKENS")] = None,
    trace: Annotated[str | None, _option("--trace", metavar="FILE")] = None,
    prefix_hit_rate: Annotated[str | None, _option("--prefix-hit-rate", metavar="SHARE")] = None,
    acceptance: Annotated[str | None, _option("--acceptance", metavar="SHARE,SHARE,…")] = None,
    acceptance_length: Annotated[str | None, _option("--acceptance-length", metavar="TOKENS")] = None,
    acceptance_rate: Annotated[str | None, _option("--acceptance-rate", metavar="SHARE")] = None,
    acceptance_alpha: Annotated[str | None, _option("--acceptance-alpha", metavar="SHARE")] = None,
    task: Annotated[str | None, _option("--task", metavar="NAME")] = None,
    slo_ttft: Annotated[str | None, _option("--slo-ttft", metavar="SECONDS")] = None,
    slo_tpot: Annotated[str | None, _option("--slo-tpot", metavar="SECONDS")] = None,
    price: Annotated[str | None, _option("--price", metavar="NUMBER")] = None,
    currency: Annotated[str | None, _option("--currency", metavar="CODE")] = None,
    objective: Annotated[str | None, _option("--objective", metavar="METRIC")] = None,
    threshold: Annotated[str, typer.Option(metavar="SHARE", show_default=True)] = "0.10",
    draws: Annotated[str, typer.Option(metavar="NUMBER", show_default=True)] = "512",
    seed: Seed = "0",
    catalog_dirs: Folders = None,
    explain: Annotated[str | None, _option("--explain", metavar="LEVER")] = None,
    rules: Annotated[bool, _option("--rules")] = False,
    verbose: Annotated[bool, _option("--verbose", "-v")] = False,
    markdown: Annotated[bool, _option("--markdown")] = False,
    as_json: AsJson = False,
    lang: InLanguage = None,
    show_help: ShowHelp = False,
) -> None:
    """Where the deployment stands, which levers pay, by how much, up to where."""
    from breakeven import api, compose
    from breakeven.origin import values

    language, seeded = _language(ctx), _whole(seed, "--seed")
    one_of(objective, "--objective", api.OBJECTIVES)
    one_of(explain, "--explain", api.levers())
    deployment, warnings = api.load(file=file, launch=launch, log=log, flags=_flags(ctx.params), catalog_dirs=catalog_dirs or ())
    drawn, pays_from = values.count(draws, "--draws"), values.number(threshold, "--threshold")
    if explain is not None:
        explained = api.explain(deployment, explain, objective=objective, threshold=pays_from, draws=drawn, seed=seeded)
        _show(compose.compose_explanation(explained, language), as_json)
        return
    advice = api.advise(deployment, objective=objective, threshold=pays_from, draws=drawn, seed=seeded, warnings=warnings)
    document = compose.compose(advice, language)
    _show(document, as_json, markdown=markdown, verbose=verbose, rules=rules)


@app.command(add_help_option=False)
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


@app.command(add_help_option=False)
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


def _flags(params: Mapping[str, Any]) -> dict[str, object]:
    flags = {name: _spread(value) for name, value in params.items() if value is not None and name not in NOT_FIELDS}
    if isinstance(speculative := flags.get("speculative"), str) and speculative.startswith("{"):
        flags["speculative"] = _json(speculative, "--speculative")
    return flags


def _json(given: str, name: str) -> object:
    import json

    try:
        return json.loads(given)
    except (json.JSONDecodeError, RecursionError):
        raise InputError("launch_json", path=name, value=given[:60]) from None


def _spread(value: object) -> object:
    """``mean=2000,p95=4000`` as the deployment file writes it; what is no such list stays as given."""
    parts = [part.partition("=") for part in value.split(",")] if isinstance(value, str) and not value.startswith("{") else []
    if not parts or not all(equals for _, equals, _ in parts):
        return value
    keys = [key.strip() for key, _, _ in parts]
    if twice := [key for key in keys if keys.count(key) > 1]:
        raise InputError("key_twice", value=value, name=twice[0])
    return dict(zip(keys, (number for _, _, number in parts), strict=True))


for _name in registry.names("verbs"):
    app.command(_name, add_help_option=False)(registry.module("verbs", _name).VERB)


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code."""
    try:
        language = language_of(arguments, os.environ)
    except InputError as error:
        return _complain(str(error), error.exit_code)
    command = typer.main.get_command(app)
    command.name = None
    translate(command, language)
    try:
        with streams.speaking(language), command.make_context("breakeven", without_language(arguments)) as context:
            context.meta["language"] = language
            command.invoke(context)
    except streams.UnwrittenError as error:
        return _complain(say("cli.cannot_write", language, reason=error), USAGE_EXIT)
    except BreakevenError as error:
        return _complain(text(error.message, language), error.exit_code)
    except typer.Exit as exit_:
        return exit_.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED_EXIT
    except typer.TyperException as error:
        verbs = [verb.callback.__name__ for verb in app.registered_commands if verb.callback is not None]
        return _complain(usage_line(error, language, verbs), USAGE_EXIT)
    return 0


def _complain(line: str, code: int) -> int:
    streams.complain(line)
    return code


def main(arguments: Sequence[str] | None = None) -> None:
    """The program ``breakeven``."""
    streams.prepare()
    try:
        code = run(sys.argv[1:] if arguments is None else arguments)
    except BrokenPipeError:
        # The reader of a pipe has left: nothing is wrong.
        streams.silence(sys.stdout)
        code = 0
    except KeyboardInterrupt:
        code = INTERRUPTED_EXIT
    sys.exit(code)


if __name__ == "__main__":
    main()
