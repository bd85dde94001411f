"""Launch commands of TensorRT-LLM, with its YAML of options, and of TGI, with its variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from breakeven import api
from breakeven.draws import Draws
from breakeven.errors import BreakevenError
from breakeven.ledger.room import room
from breakeven.ledger.shard import shard
from breakeven.origin.launch import LaunchSettings
from breakeven.origin.launch_command import parse_launch
from breakeven.spec.engine import Speculative

MODEL = "meta-llama/Llama-3.1-8B-Instruct"


def with_yaml(tmp_path: Path, text: str, flags: str = "") -> LaunchSettings:
    path = tmp_path / "o.yaml"
    path.write_text(text, encoding="utf-8")
    return parse_launch(f"trtllm-serve {MODEL} --extra_llm_api_options {path} {flags}")


class TestTensorRT:
    @pytest.mark.parametrize(
        ("flag", "settings"),
        [
            ("--tp_size 4 --pp_size 2", {"tensor_parallel_size": 4, "pipeline_parallel_size": 2}),
            ("--tp-size 4", {"tensor_parallel_size": 4}),
            ("--ep_size 4", {"enable_expert_parallel": True}),
            ("--max_batch_size 64 --max_num_tokens 4096", {"max_num_seqs": 64, "max_num_batched_tokens": 4096}),
            ("--max_seq_len 8192", {"max_model_len": 8192}),
            ("--kv_cache_dtype fp8", {"kv_cache_dtype": "fp8"}),
            ("--enable_chunked_prefill", {"enable_chunked_prefill": True}),
            ("--tp_size 8 --enable_attention_dp", {"tensor_parallel_size": 1, "data_parallel_size": 8}),
            ("--backend pytorch --host 0.0.0.0 --port 8000 --trust_remote_code", {}),
        ],
    )
    def test_each_flag_that_is_read(self, flag: str, settings: dict[str, object]) -> None:
        found = parse_launch(f"mpirun -n 8 trtllm-llmapi-launch trtllm-serve serve {MODEL} {flag}")
        assert (found.engine, found.model, found.settings) == ("trtllm", MODEL, settings)
        assert not found.warnings

    def test_its_options(self, tmp_path: Path) -> None:
        text = """
kv_cache_config: {dtype: fp8, free_gpu_memory_fraction: 0.8, enable_block_reuse: false, tokens_per_block: 64, max_tokens: 100000}
speculative_config: {decoding_type: MTP, num_nextn_predict_layers: 3}
enable_attention_dp: true
enable_chunked_prefill: true
cuda_graph_config: {enable_padding: true, max_batch_size: 256}
moe_config: {backend: CUTLASS}
tensor_parallel_size: 8
print_iter_log: true
"""
        found = with_yaml(tmp_path, text, "--max_batch_size 128")
        assert found.settings == {
            "tensor_parallel_size": 1,
            "data_parallel_size": 8,
            "kv_cache_dtype": "fp8",
            "enable_prefix_caching": False,
            "block_size": 64,
            "kv_cache_tokens": 100_000,
            "enable_chunked_prefill": True,
            "enforce_eager": False,
            "max_num_seqs": 128,
            "gpu_memory_utilization": 0.8,
        }
        assert found.speculative == Speculative(method="mtp", num_speculative_tokens=3)
        assert set(found.unread) == {"o.yaml: cuda_graph_config", "o.yaml: moe_config", "o.yaml: print_iter_log"}

    def test_the_command_line_wins_over_its_options(self, tmp_path: Path) -> None:
        found = with_yaml(
            tmp_path,
            "max_batch_size: 64\nkv_cache_config: {free_gpu_memory_fraction: 0.5}\n",
            "--max_batch_size 8 --kv_cache_free_gpu_memory_fraction 0.7",
        )
        assert found.settings == {"max_num_seqs": 8, "gpu_memory_utilization": 0.7}

    @pytest.mark.parametrize(
        ("config", "speculative"),
        [
            (
                "{decoding_type: Eagle3, max_draft_len: 3, speculative_model: a/b}",
                Speculative(method="eagle3", num_speculative_tokens=3, model="a/b"),
            ),
            (
                "{decoding_type: Eagle, max_draft_len: 2, speculative_model_dir: a/b}",
                Speculative(method="eagle", num_speculative_tokens=2, model="a/b"),
            ),
            ("{decoding_type: NGram, max_draft_len: 4}", Speculative(method="ngram", num_speculative_tokens=4)),
            (
                "{decoding_type: DraftTarget, max_draft_len: 4, speculative_model_dir: a/s}",
                Speculative(method="draft_model", num_speculative_tokens=4, model="a/s"),
            ),
            ("{decoding_type: MTP}", Speculative(method="mtp", num_speculative_tokens=1)),
        ],
    )
    def test_each_way_of_drafting(self, config: str, speculative: Speculative, tmp_path: Path) -> None:
        assert with_yaml(tmp_path, f"speculative_config: {config}\n").speculative == speculative

    def test_graphs_are_off_where_their_table_is_null(self, tmp_path: Path) -> None:
        assert with_yaml(tmp_path, "cuda_graph_config: null\n").settings == {"enforce_eager": True}

    @pytest.mark.parametrize(
        "text",
        [
            "speculative_config: {decoding_type: Medusa, max_draft_len: 4}\n",
            "speculative_config: {max_draft_len: 4}\n",
            "kv_cache_config: fast\n",
            "kv_cache_config: {dtype: nvfp4}\n",
            "kv_cache_config: {free_gpu_memory_fraction: 2}\n",
            "quant_config: {quant_algo: W8A16}\n",
            "max_batch_size: [1]\n",
        ],
    )
    def test_an_option_that_cannot_be_used_is_one_line(self, text: str, tmp_path: Path) -> None:
        with pytest.raises(BreakevenError) as refused:
            with_yaml(tmp_path, text)
        assert "\n" not in str(refused.value)

    def test_the_cache_takes_its_share_of_what_is_free(self) -> None:
        """0.5 of what 85.5 GB leave after 16.06 GB of weights and 3 GB of reserve."""
        flags = {"hardware": "h100-sxm", "input_tokens": 1000, "output_tokens": 200, "request_rate": 1.0}
        deployment, _ = api.load(launch=f"trtllm-serve {MODEL} --kv_cache_free_gpu_memory_fraction 0.5", flags=flags)
        held = room(deployment, shard(deployment, Draws(0, 0)), 0.0)
        free = deployment.hardware.device.memory_bytes - held.weight_bytes - held.reserve_bytes
        assert held.pool_bytes == pytest.approx(0.5 * free)
        assert deployment.provenance["engine.gpu_memory_utilization"] == "declared"


class TestTgi:
    @pytest.mark.parametrize(
        ("flag", "settings"),
        [
            ("--num-shard 4", {"tensor_parallel_size": 4}),
            ("--sharded false", {"tensor_parallel_size": 1}),
            ("--quantize fp8", {"quantization": "fp8"}),
            ("--quantize awq", {"quantization": "awq"}),
            ("--quantize marlin", {"quantization": "int4_marlin"}),
            ("--quantize bitsandbytes-nf4", {"quantization": "nf4"}),
            ("--dtype bfloat16", {"dtype": "bfloat16"}),
            ("--kv-cache-dtype fp8_e4m3fn", {"kv_cache_dtype": "fp8_e4m3fn"}),
            ("--max-batch-total-tokens 300000", {"kv_cache_tokens": 300_000}),
            ("--max-batch-prefill-tokens 8192", {"max_num_batched_tokens": 8192}),
            ("--max-total-tokens 8192 --max-input-tokens 8000", {"max_model_len": 8192}),
            ("--max-concurrent-requests 256", {"max_num_seqs": 256}),
            ("--max-concurrent-requests 256 --max-batch-size 32", {"max_num_seqs": 32}),
            ("--cuda-memory-fraction 0.5", {"gpu_memory_utilization": 0.475}),
            ("--prefix-caching 0", {"enable_prefix_caching": False}),
            ("--cuda-graphs 0", {"enforce_eager": True}),
            ("--cuda-graphs 1,2,4", {"enforce_eager": False}),
        ],
    )
    def test_each_flag_and_its_variable(self, flag: str, settings: dict[str, object]) -> None:
        found = parse_launch(f"text-generation-launcher --model-id {MODEL} {flag}")
        assert (found.engine, found.model, found.settings) == ("tgi", MODEL, settings)
        assert not found.warnings
        words = flag.split()
        variables = " ".join(
            f"-e {name[2:].upper().replace('-', '_')}={value}" for name, value in zip(words[::2], words[1::2], strict=True)
        )
        image = "registry.local/huggingface/text-generation-inference:3.3.4"
        assert parse_launch(f"docker run -e MODEL_ID={MODEL} {variables} {image}").settings == settings

    def test_lookups(self) -> None:
        assert parse_launch(f"text-generation-launcher --model-id {MODEL} --speculate 3").speculative == Speculative(
            method="ngram", num_speculative_tokens=3
        )

    def test_the_older_variable_of_its_prefix_cache(self) -> None:
        command = f"USE_PREFIX_CACHING=false text-generation-launcher --model-id {MODEL}"
        assert parse_launch(command).settings == {"enable_prefix_caching": False}

    @pytest.mark.parametrize(
        "flags",
        ["--quantize eetq", "--quantize exl2", "--quantize bitsandbytes", "--num-shard x", "--cuda-memory-fraction 3", "--dtype float32"],
    )
    def test_what_cannot_be_read_is_one_line(self, flags: str) -> None:
        with pytest.raises(BreakevenError) as refused:
            parse_launch(f"text-generation-launcher --model-id {MODEL} {flags}")
        assert "\n" not in str(refused.value)
