"""What engines tell of themselves at their endpoints: recorded pages where there are any, composed from documentation else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from breakeven.endpoint import Answer, Endpoint
from breakeven.errors import InputError, UnreachableError
from breakeven.observation import told
from breakeven.observation.devices import Found
from breakeven.observation.page import read
from breakeven.spec.evidence import Told


def told_by(engine: str, pages: dict[str, object], *labels: dict[str, str]) -> Told:
    return told.told_of(engine, pages, labels, Found(), {})


def labels_on(page: Path) -> dict[str, str]:
    """The labels of a recorded page's configuration metric."""
    found = read(page.read_bytes(), "text/plain")
    return next(dict(one.labels) for one in found.readings if one.quantity == "cache_config")


class TestVllm:
    def test_a_recorded_page_tells_its_cache(self, shared: Path) -> None:
        label = labels_on(shared / "snapshots/vllm_metrics_load.txt")
        pages: dict[str, object] = {
            "/v1/models": {"data": [{"id": "m", "root": "smol_hf", "max_model_len": 4608}]},
            "/version": {"version": "0.32.0+cpu"},
        }
        found = told_by("vllm", pages, label)
        assert (found.version, found.model, found.kv_tokens) == ("0.32.0", "smol_hf", 728 * 128)
        assert found.settings == {
            "max_model_len": 4608,
            "block_size": 128,
            "kv_cache_dtype": "auto",
            "gpu_memory_utilization": 0.92,
            "enable_prefix_caching": True,
        }
        assert found.sources["block_size"] == "cache_config_info" and found.sources["version"] == "/version"

    def test_a_recorded_page_of_an_fp8_cache_tells_its_type(self, shared: Path) -> None:
        found = told_by("vllm", {}, labels_on(shared / "snapshots/vllm_metrics_kv_fp8.txt"))
        assert found.settings["kv_cache_dtype"] == "fp8"

    @pytest.mark.parametrize(
        ("label", "tokens", "local"),
        [
            ({"num_gpu_blocks": "1000", "block_size": "16"}, 16_000, True),
            ({"num_gpu_blocks": "1000", "block_size": "16", "kv_cache_size_tokens": "16000"}, 16_000, True),
            ({"num_gpu_blocks": "1000", "block_size": "16", "kv_cache_size_tokens": "64000"}, 64_000, False),
            ({"num_gpu_blocks": "320", "block_size": "8", "kv_cache_size_tokens": "463459"}, 463_459, False),
            ({"num_gpu_blocks": "None", "block_size": "16"}, None, False),
        ],
    )
    def test_blocks_alone_are_of_one_device_and_its_own_count_of_tokens_is_not(
        self, label: dict[str, str], tokens: int, local: bool
    ) -> None:
        """Trap 28; a hybrid's blocks are shared by groups of layers, so that blocks times tokens say nothing of its pool."""
        found = told_by("vllm", {}, label)
        assert (found.kv_tokens, found.kv_tokens_local) == (tokens, local)

    def test_of_several_ranks_the_smallest_cache_is_told(self) -> None:
        ranks = [{"engine": str(rank), "num_gpu_blocks": str(1000 + rank), "block_size": "16"} for rank in (2, 0, 1)]
        found = told_by("vllm", {}, *ranks)
        assert found.kv_tokens == 16_000
        assert found.settings["data_parallel_size"] == 3 and found.sources["data_parallel_size"] == "cache_config_info"
        assert "data_parallel_size" not in told_by("vllm", {}, ranks[0]).settings

    def test_its_development_mode_tells_everything(self) -> None:
        config = {
            "model_config": {"model": "Qwen/Qwen3-8B", "max_model_len": 40960, "quantization": None, "enforce_eager": False},
            "parallel_config": {"tensor_parallel_size": 2, "pipeline_parallel_size": 1},
            "scheduler_config": {"max_num_seqs": 128, "max_num_batched_tokens": 8192},
            "speculative_config": {"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3},
        }
        found = told_by("vllm", {"/server_info?config_format=json": {"vllm_config": config}})
        assert found.model == "Qwen/Qwen3-8B" and found.settings["tensor_parallel_size"] == 2 and found.settings["max_num_seqs"] == 128
        assert found.speculative == {"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3}
        assert found.sources["max_num_seqs"] == "/server_info"

    def test_its_configuration_as_one_line_is_read_as_in_its_log(self) -> None:
        line = "model='Qwen/Qwen3-8B', speculative_config=None, dtype=torch.bfloat16, max_seq_len=8192, tensor_parallel_size=4, seed=0"
        found = told_by("vllm", {"/server_info?config_format=json": {"vllm_config": line}})
        assert found.model == "Qwen/Qwen3-8B" and found.settings == {"max_model_len": 8192, "dtype": "bfloat16", "tensor_parallel_size": 4}

    def test_the_folder_of_the_hubs_cache_is_its_id(self) -> None:
        root = "/data/huggingface/hub/models--meta-llama--Llama-3.1-8B-Instruct/snapshots/0e9e39f249a16976918f6564b8830bc894c89659"
        assert told_by("vllm", {"/v1/models": {"data": [{"id": "chat", "root": root}]}}).model == "meta-llama/Llama-3.1-8B-Instruct"

    def test_nim_has_its_version_in_its_metadata(self) -> None:
        asked: list[str] = []

        def get(server: Endpoint, path: str) -> Answer:
            asked.append(path)
            if path != "/v1/metadata":
                raise InputError("endpoint_not_found", target=path, status=404)
            return Answer(status=200, content_type="", body=b'{"version": "1.8.4", "modelInfo": [{"modelUrl": "meta/llama"}]}')

        answers = told.ask(Endpoint(url="http://nim"), "vllm", get)
        pages, silent = answers.pages, answers.silent
        assert asked.count("/v1/metadata") == 1 and {"/version", "/v1/models"} <= set(silent)
        assert told_by("vllm", pages).model == "meta/llama"


class TestLlamacpp:
    def test_its_recorded_properties_tell_slots_and_the_context_of_one(self, shared: Path) -> None:
        props = json.loads((shared / "snapshots/llama_props_idle.json").read_text())
        slots = json.loads((shared / "snapshots/llama_slots_load.json").read_text())
        found = told_by("llamacpp", {"/props": props, "/slots": slots})
        assert found.settings == {"max_num_seqs": 32, "max_model_len": 256} and found.model == "models/smol-F16.gguf"
        assert found.version == "" and found.kv_tokens is None, "build b0 is none, and slots may share one cache"

    def test_a_build_is_its_version(self) -> None:
        assert told_by("llamacpp", {"/props": {"build_info": "b6123-abcdef", "total_slots": 4}}).version == "b6123"


def test_sglang_tells_its_arguments_and_what_became_of_them() -> None:
    info = {
        "model_path": "Qwen/Qwen3-8B",
        "version": "0.5.3",
        "tp_size": 4,
        "dp_size": 2,
        "enable_dp_attention": True,
        "mem_fraction_static": 0.88,
        "page_size": 1,
        "disable_radix_cache": False,
        "chunked_prefill_size": 8192,
        "quantization": "w8a8_fp8",
        "kv_cache_dtype": "fp8_e5m2",
        "speculative_algorithm": "EAGLE3",
        "speculative_draft_model_path": "org/head",
        "speculative_num_steps": 3,
        "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": 4,
        "internal_states": [{"max_running_requests": 512, "max_total_num_tokens": 500_000}],
    }
    found = told_by("sglang", {"/get_server_info": info})
    assert (found.version, found.model, found.kv_tokens) == ("0.5.3", "Qwen/Qwen3-8B", 500_000)
    assert found.settings == {
        "tensor_parallel_size": 2,
        "data_parallel_size": 2,
        "gpu_memory_utilization": 0.88,
        "block_size": 1,
        "enable_prefix_caching": True,
        "enable_chunked_prefill": True,
        "max_num_batched_tokens": 8192,
        "max_num_seqs": 512,
        "quantization": "fp8",
        "kv_cache_dtype": "fp8_e5m2",
    }
    assert found.speculative == {"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3, "topk": 1}


def test_tgi_tells_the_limits_of_its_router() -> None:
    info = {
        "model_id": "meta-llama/Llama-3.1-8B-Instruct",
        "model_dtype": "torch.float16",
        "max_concurrent_requests": 128,
        "max_total_tokens": 8192,
        "max_batch_total_tokens": 160_000,
        "version": "3.3.4",
    }
    found = told_by("tgi", {"/info": info})
    assert (found.version, found.kv_tokens) == ("3.3.4", 160_000)
    assert found.settings == {"max_num_seqs": 128, "max_model_len": 8192, "dtype": "float16"}


def test_tensorrt_llm_tells_by_labels() -> None:
    labels = (
        {"model": "Qwen/Qwen3-8B", "dtype": "torch.bfloat16", "quantization": "FP8", "max_model_len": "8192", "gpu_type": "NVIDIA H200"},
        {"tensor_parallel_size": "2", "pipeline_parallel_size": "1", "gpu_count": "2"},
        {"spec_enabled": "true", "spec_method": "Eagle3", "spec_num_tokens": "3", "spec_draft_model": "org/head"},
        {"page_size": "32", "enable_block_reuse": "True", "free_gpu_memory_fraction": "0.9", "cache_dtype": "auto"},
    )
    found = told_by("trtllm", {"/version": {"version": "1.1.0"}}, *labels)
    assert (found.version, found.model, found.device, found.devices) == ("1.1.0", "Qwen/Qwen3-8B", "h200-sxm", 2)
    assert found.settings["quantization"] == "fp8" and found.settings["tensor_parallel_size"] == 2 and found.settings["block_size"] == 32
    assert found.speculative == {"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3}


@pytest.mark.parametrize("engine", ["vllm", "sglang", "llamacpp", "tgi", "trtllm", "dynamo"])
@pytest.mark.parametrize("body", [b"", b"<html>", b"null", b"[[[[]]]]", b'{"data": 7, "version": [1]}', b"[" * 90_000])
def test_whatever_comes_back_nothing_is_made_of_what_is_none(engine: str, body: bytes) -> None:
    answers = told.ask(Endpoint(url="http://x"), engine, lambda server, path: Answer(status=200, content_type="", body=body))
    pages, silent = answers.pages, answers.silent
    found = told.told_of(engine, pages, (), Found(), silent)
    assert (found.model, found.version, found.settings, found.kv_tokens, found.speculative) == ("", "", {}, None, {})


def test_a_server_that_does_not_answer_is_silent_and_that_is_listed() -> None:
    def get(server: Endpoint, path: str) -> Answer:
        raise UnreachableError("endpoint_timeout", target="http://x", seconds=5.0)

    answers = told.ask(Endpoint(url="http://x"), "sglang", get)
    pages, silent = answers.pages, answers.silent
    assert pages == {} and {said.key for said in silent.values()} == {"error.endpoint_timeout"} and len(silent) == 3
