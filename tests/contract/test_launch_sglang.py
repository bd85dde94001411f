"""SGLang's launch commands: each flag that is read, speculation, and the two meanings of --dp."""

from __future__ import annotations

import pytest

from breakeven.errors import BreakevenError, InputError, NotModelledError
from breakeven.origin.launch import LaunchSettings
from breakeven.origin.launch_command import parse_launch
from breakeven.spec.engine import Speculative

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
DRAFT = "--speculative-draft-model-path a/b"
TREE = "--speculative-num-steps 5 --speculative-eagle-topk 8"


def parsed(flags: str) -> LaunchSettings:
    return parse_launch(f"python3 -m sglang.launch_server --model-path {MODEL} {flags}")


@pytest.mark.parametrize(
    "start",
    [
        f"python -m sglang.launch_server --model-path {MODEL} --tp 4 --host 0.0.0.0",
        f"python3 -m sglang.launch_server --model {MODEL} --tp-size=4",
        f"sglang serve --model-path {MODEL} --tensor-parallel-size 4",
        f"docker run -e HF_TOKEN=x lmsysorg/sglang:latest python3 -m sglang.launch_server --model-path {MODEL} --tp 4 --port 30000",
    ],
)
def test_spellings_of_one_command_mean_the_same(start: str) -> None:
    found = parse_launch(start)
    assert (found.engine, found.model, found.settings) == ("sglang", MODEL, {"tensor_parallel_size": 4})
    assert not found.warnings


@pytest.mark.parametrize(
    ("flag", "settings"),
    [
        ("--pp-size 2", {"pipeline_parallel_size": 2}),
        ("--dp-size 2", {"data_parallel_size": 2}),
        ("--ep 8", {"enable_expert_parallel": True}),
        ("--ep-size 1", {}),
        ("--mem-fraction-static 0.85", {"gpu_memory_utilization": 0.85}),
        ("--max-running-requests 64", {"max_num_seqs": 64}),
        ("--max-total-tokens 200000", {"kv_cache_tokens": 200_000}),
        ("--chunked-prefill-size 4096", {"enable_chunked_prefill": True, "max_num_batched_tokens": 4096}),
        ("--chunked-prefill-size -1", {"enable_chunked_prefill": False}),
        ("--chunked-prefill-size -1 --max-prefill-tokens 32768", {"enable_chunked_prefill": False, "max_num_batched_tokens": 32_768}),
        ("--page-size 64", {"block_size": 64}),
        ("--kv-cache-dtype fp8_e5m2", {"kv_cache_dtype": "fp8_e5m2"}),
        ("--kv-cache-dtype bf16", {"kv_cache_dtype": "bfloat16"}),
        ("--quantization fp8", {"quantization": "fp8"}),
        ("--quantization w8a8_fp8", {"quantization": "fp8"}),
        ("--quantization modelopt_fp4", {"quantization": "modelopt_fp4"}),
        ("--quantization awq_marlin", {"quantization": "awq_marlin"}),
        ("--dtype bfloat16", {"dtype": "bfloat16"}),
        ("--disable-radix-cache", {"enable_prefix_caching": False}),
        ("--disable-cuda-graph", {"enforce_eager": True}),
        ("--context-length 32768", {"max_model_len": 32_768}),
        ("--mamba-ssm-dtype float32", {"mamba_ssm_cache_dtype": "float32"}),
        ("--cpu-offload-gb 0", {}),
    ],
)
def test_each_flag_that_is_read(flag: str, settings: dict[str, object]) -> None:
    found = parsed(flag)
    assert found.settings == settings
    assert not found.warnings


class TestDataParallel:
    def test_of_the_attention_splits_the_devices(self) -> None:
        found = parsed("--tp 8 --dp 8 --enable-dp-attention --max-running-requests 1024 --chunked-prefill-size 65536")
        assert found.settings == {
            "tensor_parallel_size": 1,
            "data_parallel_size": 8,
            "max_num_seqs": 128,
            "enable_chunked_prefill": True,
            "max_num_batched_tokens": 8192,
        }

    def test_partly(self) -> None:
        assert parsed("--tp 16 --dp 4 --enable-dp-attention").settings == {"tensor_parallel_size": 4, "data_parallel_size": 4}

    def test_without_it_is_replicas(self) -> None:
        assert parsed("--tp 2 --dp 4").settings == {"tensor_parallel_size": 2, "data_parallel_size": 4}

    def test_that_does_not_divide_is_refused(self) -> None:
        with pytest.raises(InputError, match="must divide"):
            parsed("--tp 8 --dp 3 --enable-dp-attention")


class TestSpeculation:
    def test_a_trees_nodes_are_the_rows_verified(self) -> None:
        flags = f"--speculative-algorithm EAGLE3 {DRAFT} {TREE} --speculative-num-draft-tokens 32"
        found = parsed(flags).speculative
        assert found == Speculative(method="eagle3", num_speculative_tokens=5, model="a/b", topk=8, verify_tokens=32)
        assert found.rows == 32

    def test_a_chain_verifies_its_steps_and_one(self) -> None:
        flags = (
            f"--speculative-algorithm EAGLE {DRAFT} --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
        )
        assert parsed(flags).speculative == Speculative(method="eagle", num_speculative_tokens=3, model="a/b")

    @pytest.mark.parametrize("name", ["NEXTN", "EAGLE"])
    def test_a_models_own_head(self, name: str) -> None:
        assert parsed(f"--speculative-algorithm {name}").speculative == Speculative(method="mtp", num_speculative_tokens=3)
        assert parsed(f"--speculative-algo {name} --speculative-num-steps 1").speculative == Speculative(
            method="mtp", num_speculative_tokens=1
        )

    def test_a_draft_that_is_the_model_is_its_own_head(self) -> None:
        flags = f"--speculative-algorithm EAGLE --speculative-draft-model-path {MODEL} --speculative-num-steps 2 --speculative-eagle-topk 1"
        assert parsed(flags).speculative == Speculative(method="mtp", num_speculative_tokens=2)

    def test_a_draft_of_its_own(self) -> None:
        flags = (
            "--speculative-algorithm STANDALONE --speculative-draft-model-path a/small --speculative-num-steps 4 --speculative-eagle-topk 1"
        )
        assert parsed(flags).speculative == Speculative(method="draft_model", num_speculative_tokens=4, model="a/small")

    def test_ngram(self) -> None:
        found = parsed("--speculative-algorithm NGRAM --speculative-num-draft-tokens 8").speculative
        assert found == Speculative(method="ngram", num_speculative_tokens=7)
        assert parsed("--speculative-algorithm NGRAM").speculative == Speculative(method="ngram", num_speculative_tokens=11)

    @pytest.mark.parametrize(
        "flags",
        [
            "--speculative-algorithm EAGLE3 --speculative-draft-model-path a/b",
            "--speculative-algorithm DFLASH --speculative-num-steps 3",
            f"--speculative-algorithm EAGLE3 {DRAFT} {TREE} --speculative-num-draft-tokens 3",
            f"--speculative-algorithm EAGLE3 {DRAFT} {TREE}",
            "--speculative-algorithm",
        ],
    )
    def test_what_cannot_be_read_is_one_line(self, flags: str) -> None:
        with pytest.raises(BreakevenError) as refused:
            parsed(flags)
        assert "\n" not in str(refused.value)


def test_offloaded_weights_are_refused() -> None:
    with pytest.raises(NotModelledError, match="--cpu-offload-gb 10"):
        parsed("--cpu-offload-gb 10")


def test_what_may_matter_is_said() -> None:
    found = parsed("--attention-backend fa3 --disaggregation-mode prefill --enable-torch-compile --max-prefill-tokens 16384")
    assert set(found.unread) == {"--attention-backend", "--disaggregation-mode", "--enable-torch-compile", "--max-prefill-tokens"}
    assert found.warnings[0].values["flags"] == "--attention-backend, --disaggregation-mode, --enable-torch-compile"
