"""llama.cpp's launch commands: the context shared among slots, splits over devices, host memory, drafts, variables."""

from __future__ import annotations

import pytest

from breakeven.errors import BreakevenError, InputError, NotModelledError
from breakeven.origin.launch import LaunchSettings
from breakeven.origin.launch_command import parse_launch
from breakeven.spec.engine import Speculative


def parsed(flags: str, before: str = "") -> LaunchSettings:
    return parse_launch(f"{before} llama-server -m m.gguf {flags}")


@pytest.mark.parametrize(
    "start",
    [
        "llama-server -m m.gguf -np 8 -c 32768",
        "./build/bin/llama-server --model m.gguf --parallel 8 --ctx-size 32768",
        "llama-server.exe -m m.gguf -np 8 -c 32768",
        "./server -m m.gguf -np 8 -c 32768",
        "LLAMA_ARG_N_PARALLEL=8 LLAMA_ARG_CTX_SIZE=32768 LLAMA_ARG_MODEL=m.gguf llama-server",
        "docker run --gpus all -v /m:/m registry.local/ggml-org/llama.cpp:server-cuda -m m.gguf -np 8 -c 32768 --host 0.0.0.0",
        "docker run registry.local/ggml-org/llama.cpp:full-cuda --server -m m.gguf -np 8 -c 32768",
    ],
)
def test_spellings_of_one_command_mean_the_same(start: str) -> None:
    found = parse_launch(start)
    assert (found.engine, found.model) == ("llamacpp", "m.gguf")
    assert found.settings == {"max_num_seqs": 8, "kv_cache_tokens": 32_768, "max_model_len": 4096}
    assert not found.warnings


@pytest.mark.parametrize(
    ("flag", "settings"),
    [
        ("-c 0", {}),
        ("-c 8192", {"kv_cache_tokens": 8192}),
        ("-c 8192 -np 4 -kvu", {"kv_cache_tokens": 8192, "max_num_seqs": 4, "kv_unified": True}),
        ("-c 8192 -np 4 --no-kv-unified", {"kv_cache_tokens": 8192, "max_num_seqs": 4, "max_model_len": 2048, "kv_unified": False}),
        ("-np 4 --kv-unified --no-kv-unified", {"max_num_seqs": 4, "kv_unified": False}),
        ("-np 4 --no-kv-unified --kv-unified", {"max_num_seqs": 4, "kv_unified": True}),
        ("-c 8192 -np -1", {"kv_cache_tokens": 8192}),
        ("-b 4096", {"max_num_batched_tokens": 4096}),
        ("-ctk q8_0 -ctv q8_0 -fa on", {"kv_cache_dtype": "q8_0"}),
        ("--cache-type-k f16 --cache-type-v f16", {"kv_cache_dtype": "f16"}),
        ("-ngl 99 -fa --jinja --no-mmap --mlock -t 8 --cache-reuse 256", {}),
        ("-sm none", {"tensor_parallel_size": 1, "pipeline_parallel_size": 1}),
    ],
)
def test_each_flag_that_is_read(flag: str, settings: dict[str, object]) -> None:
    found = parsed(flag)
    assert found.settings == settings
    assert not found.warnings


def test_the_python_server() -> None:
    command = "python3 -m llama_cpp.server --model m.gguf --n_ctx 16384 --n_gpu_layers -1 --type_k 8 --type_v 8 --n_batch 512"
    found = parse_launch(command)
    assert found.settings == {"kv_cache_tokens": 16_384, "kv_cache_dtype": "q8_0", "max_num_batched_tokens": 512}
    assert found.device_layers == 999


class TestRepositories:
    def test_the_quantisation_stands_after_the_colon(self) -> None:
        found = parse_launch("llama-server -hf ggml-org/gemma-3-1b-it-GGUF:Q8_0")
        assert (found.model, found.settings) == ("ggml-org/gemma-3-1b-it-GGUF", {"quantization": "q8_0"})

    def test_else_it_is_the_engines_own_choice(self) -> None:
        assert parse_launch("llama-server -hf ggml-org/gemma-3-1b-it-GGUF").settings == {"quantization": "q4_k_m"}

    def test_one_that_is_not_known_is_kept_and_said(self) -> None:
        found = parse_launch("llama-server -hf unsloth/x-GGUF:UD-IQ2_XXS")
        assert found.settings == {} and found.unread == {"-hf": "unsloth/x-GGUF:UD-IQ2_XXS"} and found.warnings


class TestDevices:
    @pytest.mark.parametrize(
        ("flags", "before", "settings", "spread"),
        [
            ("", "", {}, "pipeline"),
            ("-sm row", "", {}, "tensor"),
            ("-ts 1,1,1", "", {"tensor_parallel_size": 1, "pipeline_parallel_size": 3}, None),
            ("-sm row -ts 3,1", "", {"tensor_parallel_size": 2, "pipeline_parallel_size": 1}, None),
            ("-dev CUDA0,CUDA1", "", {"tensor_parallel_size": 1, "pipeline_parallel_size": 2}, None),
            ("", "CUDA_VISIBLE_DEVICES=2", {"tensor_parallel_size": 1, "pipeline_parallel_size": 1}, None),
            ("-sm row", "CUDA_VISIBLE_DEVICES=0,1,2,3", {"tensor_parallel_size": 4, "pipeline_parallel_size": 1}, None),
        ],
    )
    def test_layers_are_a_pipeline_and_rows_are_tensors(
        self, flags: str, before: str, settings: dict[str, object], spread: str | None
    ) -> None:
        found = parsed(flags, before)
        assert (found.settings, found.spread) == (settings, spread)

    @pytest.mark.parametrize("flags", ["-nkvo", "--no-kv-offload", "-cmoe", "--n-cpu-moe 10", "-ot '.ffn_.*_exps.=CPU'", "--cpu-moe"])
    def test_host_memory_is_refused_by_name(self, flags: str) -> None:
        with pytest.raises(NotModelledError, match="host memory"):
            parsed(flags)

    @pytest.mark.parametrize(
        ("flags", "layers"), [("", None), ("-ngl 0", 0), ("-ngl 20", 20), ("-ngl all", 999), ("--n-gpu-layers -1", 999)]
    )
    def test_layers_on_the_device(self, flags: str, layers: int | None) -> None:
        assert parsed(flags).device_layers == layers


class TestDrafts:
    def test_a_draft_model(self) -> None:
        assert parsed("-md d.gguf --draft-max 8 --draft-min 2 --draft-p-min 0.6").speculative == Speculative(
            method="draft_model", num_speculative_tokens=8, model="d.gguf"
        )

    def test_without_a_length_as_many_as_the_engine_does(self) -> None:
        assert parsed("-md d.gguf").speculative == Speculative(method="draft_model", num_speculative_tokens=16, model="d.gguf")

    def test_lookups(self) -> None:
        assert parsed("--spec-type ngram-simple --draft 4").speculative == Speculative(method="ngram", num_speculative_tokens=4)
        assert parsed("--spec-type ngram-mod").speculative == Speculative(method="ngram", num_speculative_tokens=16)
        assert parsed("--spec-type none").speculative is None

    def test_a_length_without_a_draft_is_kept(self) -> None:
        found = parsed("--draft-max 8")
        assert found.speculative is None and found.unread == {"--draft-max": "8"}


@pytest.mark.parametrize(
    "flags", ["-ctk q8_0", "-ctk q8_0 -ctv q4_0", "-ctk iq4_nl -ctv iq4_nl", "-c many", "-np 1.5", "stray", "-sm sideways", "-ngl x"]
)
def test_what_cannot_be_read_is_one_line(flags: str) -> None:
    with pytest.raises(BreakevenError) as refused:
        parsed(flags)
    assert "\n" not in str(refused.value)


def test_the_command_line_wins_over_a_variable() -> None:
    assert parsed("-np 2", before="LLAMA_ARG_N_PARALLEL=8").settings == {"max_num_seqs": 2}


def test_what_may_matter_is_said() -> None:
    found = parsed("-ub 1024 --no-cont-batching --swa-full -lcd cache.bin")
    assert found.warnings[0].values["flags"] == "--no-cont-batching, --swa-full, -lcd, -ub"


def test_a_program_of_another_name_is_not_taken_for_it() -> None:
    with pytest.raises(InputError):
        parse_launch("server -m x.gguf")
