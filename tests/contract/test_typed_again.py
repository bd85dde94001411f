"""What was typed is kept: what is to be done next says it again, and a source that is given twice is not half forgotten."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from composed_pages import Counting
from hostile_server import Server, serving, whole

from breakeven import cli, deployment_options
from breakeven.deployment_options import OPTIONS, takes_deployment

SECRET = "s3cr3t-of-nobody"


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BREAKEVEN_LANG", "en")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("ENGINE_AUTH", f"Bearer {SECRET}")


def commands(shown: str) -> list[list[str]]:
    """The commands that a page ends with."""
    joined = re.sub(r" \\\n\s+", " ", shown)
    return [shlex.split(line) for line in joined.splitlines() if line.strip().startswith("breakeven ")]


def observed(server: Server, capsys: pytest.CaptureFixture[str], *more: str) -> list[list[str]]:
    assert cli.run(["observe", f"{server.url}/metrics", "--for", "400ms", "--every", "100ms", *more]) == 0
    shown = capsys.readouterr()
    assert SECRET not in shown.out + shown.err
    return commands(shown.out)


MACHINE = ("--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--no-enable-prefix-caching", "-tp", "1")


def test_the_next_commands_say_model_device_settings_and_header_again(capsys: pytest.CaptureFixture[str]) -> None:
    with serving({"/metrics": Counting()}) as server:
        keep, advise = observed(server, capsys, *MACHINE, "--header", "Authorization=ENGINE_AUTH", "--model-name", "m")
    described = ["--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--tensor-parallel-size", "1", "--no-enable-prefix-caching"]
    reading = ["--every", "100ms", "--header", "Authorization=ENGINE_AUTH", "--model-name", "m"]
    assert keep == ["breakeven", "observe", f"{server.url}/metrics", *described, *reading, "--out", "evidence.json"]
    assert advise == ["breakeven", "advise", *described, "--evidence", "evidence.json"]


def test_they_can_be_typed_as_they_stand(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my box.yaml").write_text("model: llama-3.1-8b\nhardware: h100-sxm\n")
    with serving({"/metrics": Counting()}) as server:
        keep, advise = observed(server, capsys, "my box.yaml", "--rate", "4", "--input", "1000", "--output", "100")
        assert "my box.yaml" in keep and cli.run([*keep[1:], "--for", "400ms"]) == 0
    assert Path("evidence.json").is_file() and cli.run([*advise[1:], "--draws", "16"]) == 0


def test_a_key_in_a_launch_command_is_not_said_again(capsys: pytest.CaptureFixture[str]) -> None:
    launch = f"vllm serve meta-llama/Llama-3.1-8B --api-key {SECRET}"
    with serving({"/metrics": Counting()}) as server:
        keep, advise = observed(server, capsys, "--launch", launch, "--hardware", "h100-sxm")
    assert (
        "vllm serve meta-llama/Llama-3.1-8B --api-key …" in keep
        and keep[keep.index("--launch") + 1] == advise[advise.index("--launch") + 1]
    )


def test_every_option_of_a_deployment_is_typed_as_it_is_read() -> None:
    said = {"file": "d.yaml", "catalog_dirs": ["a", "b c"]}
    switches = [one.name for one in OPTIONS if bool in getattr(one.annotation.__origin__, "__args__", ())]
    said |= {one.name: False if one.name in switches else f"x {one.name}" for one in OPTIONS if one.name not in said}
    got: dict[str, object] = {}

    @takes_deployment
    def verb(ctx: object, deployed: object) -> None:
        got["deployed"] = deployed

    verb(ctx=None, **{**said, "speculative": '{"method": "ngram"}'})
    words = deployment_options.typed(got["deployed"])  # type: ignore[arg-type]
    assert words[0] == "d.yaml" and words.count("--catalog") == 2
    for one in OPTIONS:
        if one.name in switches:
            assert f"--no-{one.name.replace('_', '-')}" in words
        elif one.name not in ("file", "catalog_dirs", "speculative"):
            assert f"x {one.name}" in words
    assert '{"method": "ngram"}' in words


def test_an_engine_that_tells_no_version_is_said_to_be_taken_for_one(capsys: pytest.CaptureFixture[str]) -> None:
    page = "# TYPE llamacpp:requests_processing gauge\nllamacpp:requests_processing 1\nllamacpp:n_decode_total 5\n"
    with serving({"/metrics": whole(page), "/props": whole('{"build_info": "b0-unknown"}')}) as server:
        for more, said in ((("--engine-version", "b6123"), False), ((), True)):
            assert cli.run(["observe", f"{server.url}/metrics", "--for", "200ms", "--every", "100ms", *more]) == 0
            assert ("llama.cpp does not say its version" in capsys.readouterr().out) is said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["advise", "--evidence", "a.json", "--evidence", "b.json"], "--evidence is given twice: an observation is of one time"),
        (["advise", "--evidence=a.json", "--evidence", "b.json"], "--evidence is given twice"),
        (["simulate", "--trace", "a.csv", "--trace", "b.csv"], "--trace is given twice, with different values; give it once"),
        (["advise", "--launch", "vllm serve a", "--launch", "vllm serve b"], "--launch is given twice"),
        (["observe", "--prometheus", f"http://u:{SECRET}@a", "--prometheus", "http://b"], "--prometheus is given twice"),
        (["calibrate", "--url", "http://a", "--url", "http://b"], "--url is given twice"),
    ],
)
def test_a_source_that_is_given_twice_is_refused(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    assert cli.run(arguments) == 2
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1 and SECRET not in said


def test_what_stands_twice_as_it_is_or_is_put_over_another_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    over = ["--model", "no-such-model", "--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--batch", "4", "--context", "1000"]
    same = ["--launch", "vllm serve m -tp 1", "--launch", "vllm serve m -tp 1"]
    assert cli.run(["advise", *over, *same, "--draws", "16", "--json"]) == 0
    assert '"name": "llama-3.1-8b"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--header", "Authorization=ENGINE_AUTH", "--header", "authorization=HOME"], "--header authorization is given twice"),
        (["--out", "."], ".: a folder, not a file"),
        (["{url}"], "named twice"),
    ],
)
def test_what_would_be_lost_at_the_end_is_refused_at_the_beginning(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    with serving({"/metrics": Counting()}) as server:
        given = [one.format(url=server.url) for one in arguments]
        assert cli.run(["observe", f"{server.url}/metrics", *given, "--for", "200ms", "--every", "100ms"]) == 2
        assert not server.asked
    assert words in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here that is always full")
def test_what_cannot_be_kept_is_shown_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with serving({"/metrics": Counting()}) as server:
        assert cli.run(["observe", f"{server.url}/metrics", "--for", "200ms", "--every", "100ms", "--out", "/dev/full"]) == 2
    shown = capsys.readouterr()
    assert "sequences decode together" in shown.out and "/dev/full: cannot be written" in shown.err


def test_an_address_without_its_option_is_told_where_it_belongs(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["advise", "--url", "http://127.0.0.1:9", "http://127.0.0.1:8", "--hardware", "h100-sxm"]) == 2
    assert "every address has its own --url" in capsys.readouterr().err
