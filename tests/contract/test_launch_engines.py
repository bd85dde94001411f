"""Launch commands of all engines: which engine and version it is, however it is wrapped; hostile text; and a report for each."""

from __future__ import annotations

import re
import shlex
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven import api, registry
from breakeven.errors import BreakevenError, NotModelledError
from breakeven.messages import text
from breakeven.origin.launch_command import parse_launch
from breakeven.origin.launches import llamacpp, sglang, tgi, trtllm, vllm
from breakeven.origin.resolve import resolve_table

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
STARTS = {
    "vllm": f"vllm serve {MODEL}",
    "sglang": f"python -m sglang.launch_server --model-path {MODEL}",
    "llamacpp": f"llama-server -m {MODEL}",
    "trtllm": f"trtllm-serve {MODEL}",
    "tgi": f"text-generation-launcher --model-id {MODEL}",
}


@pytest.mark.parametrize(("engine", "command"), STARTS.items())
def test_each_engine_is_known_by_its_words(engine: str, command: str) -> None:
    found = parse_launch(command)
    assert (found.engine, found.model) == (engine, MODEL)
    assert not found.unread and not found.warnings


def test_every_reader_has_its_engine_in_the_catalogue() -> None:
    from breakeven import catalog

    assert set(registry.names("origin/launches")) == set(STARTS) == set(catalog.names("engines"))


@pytest.mark.parametrize("engine", STARTS)
@pytest.mark.parametrize(
    "wrapped",
    [
        "{}",
        "nohup {} > server.log 2>&1 &",
        "CUDA_VISIBLE_DEVICES=0 HF_TOKEN=hf_x {}",
        "cd /srv && source venv/bin/activate && exec {}",
        "/bin/sh -c '{}'",
        "bash -lc 'set -e; {}'",
        "docker run --gpus all registry.local:5000/team/serve:1 sh -c '{}'",
        "mpirun -n 4 --allow-run-as-root trtllm-llmapi-launch {}",
        'command: ["/bin/sh", "-c"] args: ["{}"]',
        "MODEL=" + MODEL + "; {}",
        "ssh gpu-3 'nohup {} > s.log 2>&1 &'",
        "tmux new-session -d -s serve '{}'",
        "# the server of the chat\n  # --tp 8\n{}  # one device",
        "docker pull vllm/vllm-openai:v0.9.0\ndocker run --rm registry.local/a/b:1 {}",
    ],
)
def test_wrappings_change_nothing(engine: str, wrapped: str) -> None:
    found = parse_launch(wrapped.format(STARTS[engine]))
    plain = parse_launch(STARTS[engine])
    assert (found.engine, found.model, found.unread) == (engine, MODEL, plain.unread)
    assert "hf_x" not in repr(found)


@pytest.mark.parametrize("engine", STARTS)
def test_a_manifests_command_and_args_are_words(engine: str) -> None:
    words = shlex.split(STARTS[engine])
    listed = "command:\n" + "".join(f"  - {part}\n" for part in words[:2]) + "args:\n" + "".join(f'  - "{part}"\n' for part in words[2:])
    assert parse_launch(listed).model == MODEL
    assert parse_launch(str(words).replace("'", '"')).model == MODEL


@pytest.mark.parametrize(
    ("command", "engine", "version"),
    [
        (f"docker run vllm/vllm-openai:v0.11.0 --model {MODEL}", "vllm", "0.11.0"),
        (f"podman run vllm/vllm-openai:v0.8.5.post1 --model {MODEL}", "vllm", "0.8.5"),
        (f"docker run lmsysorg/sglang:v0.5.3-cu126 python3 -m sglang.launch_server --model-path {MODEL}", "sglang", "0.5.3"),
        (f"docker run --gpus all registry.local/ggml-org/llama.cpp:server-b6000 -m {MODEL}", "llamacpp", "b6000"),
        (f"docker run registry.local/ggml-org/llama.cpp:server-cuda-b6152 -m {MODEL}", "llamacpp", "b6152"),
        (f"docker run nvcr.io/nvidia/tensorrt-llm/release:1.1.0 trtllm-serve {MODEL}", "trtllm", "1.1.0"),
        (f"docker run nvcr.io/nvidia/tensorrt-llm/release:1.1.0rc5 trtllm-serve {MODEL}", "trtllm", "1.1.0"),
        (f"docker run registry.local/huggingface/text-generation-inference:3.3.4 --model-id {MODEL}", "tgi", "3.3.4"),
        (f"docker run registry.local/huggingface/text-generation-inference:3.3.4-rocm --model-id {MODEL}", "tgi", "3.3.4"),
        (f"pip install vllm==0.10.1 && vllm serve {MODEL}", "vllm", "0.10.1"),
        (f"uv run --with 'sglang[all]==0.4.9' python -m sglang.launch_server --model {MODEL}", "sglang", "0.4.9"),
        (f"VLLM_USE_V1=0 vllm serve {MODEL}", "vllm", "0.7"),
        (f"docker run -e VLLM_USE_V1=0 vllm/vllm-openai:v0.8.5 --model {MODEL}", "vllm", "0.7"),
        (f"docker run -e VLLM_USE_V1=0 vllm/vllm-openai:v0.11.0 --model {MODEL}", "vllm", "0.11.0"),
        (f"docker run -e VLLM_USE_V1=0 vllm/vllm-openai:v0.6.3 --model {MODEL}", "vllm", "0.6.3"),
        (f"docker run vllm/vllm-openai:latest --model {MODEL}", "vllm", None),
        (f"image: vllm/vllm-openai:v0.9.2\nargs: [--model, {MODEL}]", "vllm", "0.9.2"),
    ],
)
def test_the_version_is_told_by_tags_packages_and_eras(command: str, engine: str, version: str | None) -> None:
    found = parse_launch(command)
    assert (found.engine, found.version, found.model) == (engine, version, MODEL)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("lmdeploy serve api_server x", "LMDeploy"),
        ("ollama run llama3", "Ollama"),
        ("trtllm-build --checkpoint_dir x", "trtllm-build"),
        ("tritonserver --model-repository=x", "Triton"),
        ("trtllm-serve disaggregated -c x.yaml", "disaggregated"),
        ("python -m mlx_lm.server --model x", "MLX"),
    ],
)
def test_what_starts_otherwise_is_refused_by_name(command: str, name: str) -> None:
    with pytest.raises(NotModelledError, match=name):
        parse_launch(command)


def test_a_variable_that_the_line_sets_is_put_in_its_place() -> None:
    assert parse_launch(f"export MODEL={MODEL}; vllm serve $MODEL -tp ${{TP:-2}}").settings == {"tensor_parallel_size": 2}
    assert parse_launch("vllm serve $UNSET").model == "$UNSET"


SPELLINGS = {"vllm": vllm, "sglang": sglang, "llamacpp": llamacpp, "trtllm": trtllm, "tgi": tgi}


@pytest.mark.parametrize("engine", STARTS)
class TestEachReader:
    def test_an_unknown_flag_is_kept_and_said(self, engine: str) -> None:
        found = parse_launch(f"{STARTS[engine]} --brand-new-flag 7")
        assert found.unread == {"--brand-new-flag": "7"}
        assert "--brand-new-flag" in text(found.warnings[0])

    def test_a_secret_is_masked(self, engine: str) -> None:
        found = parse_launch(f"{STARTS[engine]} --api-key sk-secret")
        assert "sk-secret" not in repr(found) and found.unread == {"--api-key": "…"}
        assert not found.warnings

    def test_flags_that_change_nothing_are_kept_in_silence(self, engine: str) -> None:
        spelling = SPELLINGS[engine].SPELLING
        valued = spelling.harmless - spelling.own - spelling.bare - {f"no-{name}" for name in spelling.bare}
        silent = sorted(name for name in valued if "." not in name)
        found = parse_launch(STARTS[engine] + "".join(f" --{name} 1" for name in silent))
        assert set(found.unread) == {f"--{name}" for name in silent}
        assert not found.warnings and found.settings == parse_launch(STARTS[engine]).settings

    def test_bare_flags_swallow_nothing(self, engine: str) -> None:
        spelling = SPELLINGS[engine].SPELLING
        for name in spelling.bare - spelling.own:
            with pytest.raises(BreakevenError):
                parse_launch(f"{STARTS[engine]} --{name} stray another")

    def test_a_flag_that_is_read_needs_a_value_that_can_be_used(self, engine: str) -> None:
        spelling = SPELLINGS[engine].SPELLING
        for name in spelling.fields:
            if not spelling.is_switch(name):
                for wrong in ("", " --port 1", "=", "=\x01?!"):
                    with pytest.raises(BreakevenError) as refused:
                        parse_launch(f"{STARTS[engine]} --{name}{wrong}")
                    assert "\n" not in str(refused.value)

    def test_its_names_are_each_of_one_kind(self, engine: str) -> None:
        spelling = SPELLINGS[engine].SPELLING
        assert not spelling.own & set(spelling.fields)
        assert not set(spelling.fields) & spelling.harmless
        assert set(spelling.aliases).isdisjoint(spelling.own | set(spelling.fields))


@given(st.sampled_from(sorted(STARTS)), st.data())
def test_any_text_is_settings_or_one_line(engine: str, data: st.DataObject) -> None:
    spelling = SPELLINGS[engine].SPELLING
    names = st.sampled_from(sorted({*spelling.fields, *spelling.own, *spelling.bare, *spelling.aliases}))
    values = st.one_of(
        st.sampled_from(
            ["4", "-1", "0", "nan", "1e9", "fp8", "q8_0", "ngram", "{}", '{"a": 1}', "[]", "null", "true", "layer", "a:b", "x.yaml"]
        ),
        st.text(alphabet=string.printable + "é\x00中", max_size=8),
    )
    flag = st.tuples(names, st.sampled_from([" ", "=", " \t"]), values).map(lambda part: f"--{part[0]}{part[1]}{shlex.quote(part[2])}")
    command = " ".join([STARTS[engine], *data.draw(st.lists(st.one_of(flag, values), max_size=8))])
    try:
        found = parse_launch(command)
    except BreakevenError as error:
        assert "\n" not in str(error)
    else:
        assert found.engine in STARTS
        assert all(isinstance(text(warning, "zh"), str) for warning in found.warnings)


WORKLOAD = {"input_tokens": 1000, "output_tokens": 200, "request_rate": 1.0}
REPORTS = {
    "vllm": f"vllm serve {MODEL} --max-num-seqs 64 --kv-cache-dtype fp8 -tp 1",
    "sglang": f"python -m sglang.launch_server --model-path {MODEL} --tp 1 --max-running-requests 64 --kv-cache-dtype fp8_e5m2",
    "llamacpp": "llama-server -m llama-3.1-8b -c 65536 -np 8 -ngl 99 -ctk q8_0 -ctv q8_0 -fa on",
    "trtllm": f"trtllm-serve {MODEL} --backend pytorch --max_batch_size 64 --kv_cache_free_gpu_memory_fraction 0.8",
    "tgi": f"text-generation-launcher --model-id {MODEL} --num-shard 1 --max-batch-total-tokens 200000 --kv-cache-dtype fp8_e4m3fn",
}


@pytest.mark.parametrize(("engine", "command"), REPORTS.items())
def test_a_command_of_each_engine_gives_a_report(engine: str, command: str) -> None:
    deployment, warnings = api.load(launch=command, flags={"hardware": "h100-sxm", **WORKLOAD})
    advice = api.advise(deployment, draws=16, warnings=warnings)
    assert advice.deployment.engine.name == engine
    assert advice.ledgers.memory.fits and set(advice.levers) == set(api.levers())


def test_layers_left_to_the_host_are_refused() -> None:
    with pytest.raises(NotModelledError, match="20"):
        resolve_table({"workload": WORKLOAD, "hardware": "h100-sxm"}, launch="llama-server -m llama-3.1-8b -ngl 20")
    kept = resolve_table({"workload": WORKLOAD, "hardware": "h100-sxm"}, launch="llama-server -m llama-3.1-8b -ngl 33")
    assert kept.deployment.engine.max_num_seqs == 4


def test_layers_split_over_all_devices_are_a_pipeline() -> None:
    found = resolve_table({"workload": WORKLOAD, "hardware": "h100-sxm:2"}, launch="llama-server -m llama-3.1-8b -c 8192").deployment.engine
    assert (found.tensor_parallel_size, found.pipeline_parallel_size) == (1, 2)


def test_an_engine_that_takes_all_devices_splits_its_tensors_over_them() -> None:
    found = resolve_table({"workload": WORKLOAD, "hardware": "h100-sxm:4"}, launch=f"text-generation-launcher --model-id {MODEL}")
    assert found.deployment.engine.tensor_parallel_size == 4
    assert not any(one.key == "warning.tensor_parallel_assumed" for one in found.warnings)


@given(st.text(alphabet=string.printable, max_size=60))
def test_any_manifest_is_words_or_one_line(rest: str) -> None:
    for begin in ("command: [", "args:\n- ", "[", "image: vllm/vllm-openai:v0.9\nargs: "):
        try:
            parse_launch(begin + rest)
        except BreakevenError as error:
            assert "\n" not in str(error)


def test_a_settings_file_is_looked_for_where_the_command_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text(
        f"model: {MODEL}\nmax-num-seqs: 32\ntensor_parallel_size: 2\nport: 8000\nsurprise: 1\n", encoding="utf-8"
    )
    found = parse_launch("vllm serve --config c.yaml --max-num-seqs 64")
    assert found.model == MODEL
    assert found.settings == {"max_num_seqs": 64, "tensor_parallel_size": 2}
    assert found.unread == {"c.yaml: port": "8000", "c.yaml: surprise": "1"}
    assert "surprise" in text(found.warnings[0]) and "port" not in text(found.warnings[0])


@pytest.mark.parametrize("content", [None, "[1, 2]", "a: b: c", "", "\0", "a: 1\na: 2\n"])
@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_a_bad_settings_file_is_one_line(engine: str, content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(BreakevenError) as refused:
        parse_launch(f"{STARTS[engine]} --config {path}")
    assert "\n" not in str(refused.value) and "c.yaml" in str(refused.value)


TITLES = {"vllm": "vLLM", "sglang": "SGLang", "llamacpp": "llama.cpp", "trtllm": "TensorRT-LLM", "tgi": "TGI"}


@pytest.mark.parametrize("engine", STARTS)
def test_the_guides_table_names_every_flag_that_is_read(engine: str, root: Path) -> None:
    page = (root / "docs/guide/launch.md").read_text(encoding="utf-8")
    section = page.partition(f"\n## {TITLES[engine]}\n")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `--?([\w-]+)` \| (.+) \|$", section, re.MULTILINE))
    spelling = SPELLINGS[engine].SPELLING
    assert set(rows) == {*spelling.fields, *spelling.own}
    assert {name: rows[name] for name in spelling.fields} == {name: f"`{field}`" for name, field in spelling.fields.items()}
