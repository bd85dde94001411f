"""Start-up logs: the engine told from the content, what is said taken as measured, the cache put into the memory ledger."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven import api, catalog, registry
from breakeven.draws import Draws
from breakeven.errors import BreakevenError, InputError, NotModelledError
from breakeven.kernels import kv_kernel
from breakeven.ledger.room import room
from breakeven.ledger.shard import shard
from breakeven.ledger.unified_pages import unified_bytes_per_token
from breakeven.logged_pool import pool_of, with_measured_pool
from breakeven.messages import Message, text
from breakeven.origin.startup_log import StartupLog, read_log
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Speculative

LOGS = Path(__file__).with_name("logs")
NAMES = ("vllm-v1", "vllm-v0", "sglang", "llamacpp", "trtllm", "tgi")
TOKENS = {"vllm-v1": 450_000, "vllm-v0": 27_960 * 16, "sglang": 800_000, "llamacpp": 4096, "trtllm": 400_000, "tgi": 700_000}
WORKLOAD = {"input_tokens": 1000, "output_tokens": 200, "request_rate": 1.0}
FLAGS: dict[str, object] = {"hardware": "h100-sxm", **WORKLOAD}


def log(name: str) -> Path:
    return LOGS / f"{name}.txt"


def loaded(name: str, **flags: object) -> tuple[Deployment, list[str]]:
    model = {"trtllm": {"model": "llama-3.1-8b"}, "llamacpp": {"model": "smollm2-135m"}}.get(name, {})
    deployment, warnings = api.load(log=log(name), flags={**FLAGS, **model, **flags})
    return deployment, [text(warning) for warning in warnings]


def pool_tokens(d: Deployment) -> float:
    return room(d, shard(d, Draws(0, 0)), 0.0).pool_tokens


class TestWhatIsRead:
    def test_vllm_v1(self) -> None:
        found = read_log(log("vllm-v1"))
        assert (found.engine, found.version, found.model) == ("vllm", "0.11.0", "meta-llama/Llama-3.1-8B-Instruct")
        assert found.settings == {
            "max_model_len": 16384,
            "dtype": "bfloat16",
            "tensor_parallel_size": 1,
            "pipeline_parallel_size": 1,
            "data_parallel_size": 1,
            "enforce_eager": False,
            "kv_cache_dtype": "auto",
            "enable_prefix_caching": True,
            "enable_chunked_prefill": True,
            "max_num_seqs": 128,
            "gpu_memory_utilization": 0.92,
            "max_num_batched_tokens": 8192,
        }
        assert found.kv_tokens == 450_000 and found.kv_bytes == pytest.approx(54.93 * 2**30)
        assert found.pages_unified and not found.warnings

    def test_vllm_v0_counts_blocks_and_names_a_slow_backend(self) -> None:
        found = read_log(log("vllm-v0"))
        assert (found.version, found.kv_tokens, found.pages_unified) == ("0.6.3.post1", 447_360, False)
        assert found.settings["enable_prefix_caching"] is False
        assert found.speculative == Speculative(method="ngram", num_speculative_tokens=5)
        assert "XFormers" in text(found.warnings[0])

    def test_sizes_that_only_the_arguments_tell_are_read(self, tmp_path: Path) -> None:
        told = (
            log("vllm-v1")
            .read_text(encoding="utf-8")
            .replace("non-default args: {", "non-default args: {'decode_context_parallel_size': 8, ")
        )
        (tmp_path / "a.txt").write_text(told, encoding="utf-8")
        assert read_log(tmp_path / "a.txt").settings["decode_context_parallel_size"] == 8

    def test_sglang_deals_out_experts_and_counts_ranks_that_are_replicas(self, tmp_path: Path) -> None:
        told = log("sglang").read_text(encoding="utf-8").replace("server_args=ServerArgs(", "server_args=ServerArgs(ep_size=8, ")
        (tmp_path / "a.txt").write_text(told, encoding="utf-8")
        assert read_log(tmp_path / "a.txt").settings["enable_expert_parallel"] is True

    def test_sglang(self) -> None:
        found = read_log(log("sglang"))
        assert found.settings == {
            "tensor_parallel_size": 1,
            "pipeline_parallel_size": 1,
            "gpu_memory_utilization": 0.85,
            "block_size": 1,
            "dtype": "auto",
            "kv_cache_dtype": "fp8_e5m2",
            "enable_prefix_caching": False,
            "enforce_eager": False,
            "enable_chunked_prefill": True,
            "max_num_batched_tokens": 8192,
            "max_num_seqs": 2048,
        }
        assert found.kv_tokens == 800_000 and found.kv_bytes == pytest.approx(48.82 * 2**30)

    def test_a_real_log_of_llamacpp(self) -> None:
        found = read_log(log("llamacpp"))
        assert found.settings == {
            "kv_cache_tokens": 4096,
            "max_model_len": 1024,
            "max_num_seqs": 4,
            "max_num_batched_tokens": 2048,
            "kv_cache_dtype": "q8_0",
            "kv_unified": False,
        }
        assert found.kv_tokens == 4096
        assert "CPU KV buffer" in text(found.warnings[0])

    def test_the_real_logs_cache_is_what_the_ledger_counts(self) -> None:
        deployment, _ = loaded("llamacpp")
        per_token = room(deployment, shard(deployment, Draws(0, 0)), 0.0).kv_bytes_per_token
        assert read_log(log("llamacpp")).kv_bytes == pytest.approx(4096 * per_token, rel=1e-3)

    def test_trtllm_takes_the_last_cache(self) -> None:
        found = read_log(log("trtllm"))
        assert (found.version, found.kv_tokens) == ("1.1.0", 400_000)
        assert found.settings == {"block_size": 32, "max_model_len": 131_072, "max_num_batched_tokens": 8192, "max_num_seqs": 256}

    def test_tgi(self) -> None:
        found = read_log(log("tgi"))
        assert (found.model, found.kv_tokens) == ("meta-llama/Llama-3.1-8B-Instruct", 700_000)
        assert found.settings == {
            "tensor_parallel_size": 1,
            "kv_cache_dtype": "fp8_e5m2",
            "max_num_seqs": 96,
            "max_num_batched_tokens": 4096,
            "enable_prefix_caching": True,
            "enforce_eager": False,
        }

    @pytest.mark.parametrize(
        ("name", "line", "tokens", "size"),
        [
            ("sglang", "[2025 DP0 TP0 EP0] KV Cache is allocated. #tokens: 524288, KV size: 17.16 GB", 524_288, 17.16),
            ("sglang", "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 4096, K size: 1.00 GB, V size: 1.50 GB", 4096, 2.5),
            (
                "trtllm",
                "[TensorRT-LLM][INFO] [MemUsageChange] Allocated 26.91 GiB for max tokens in paged KV cache (220480).",
                220_480,
                26.91,
            ),
            ("vllm", "GPU KV cache size: 90,112 tokens, Maximum concurrency for 8,192 tokens per request: 11.00x", 90_112, None),
            (
                "tgi",
                '{"level":"INFO","message":"Setting max batch total tokens to 133696","target":"text_generation_router"}',
                133_696,
                None,
            ),
        ],
    )
    def test_other_forms_of_a_caches_line(self, name: str, line: str, tokens: int, size: float | None, tmp_path: Path) -> None:
        path = tmp_path / "a.log"
        path.write_text(line + "\n", encoding="utf-8")
        found = read_log(path)
        assert (found.engine, found.kv_tokens) == (name, tokens)
        assert found.kv_bytes == (None if size is None else pytest.approx(size * 2**30))

    def test_a_drafts_cache_is_not_taken_for_the_targets(self, tmp_path: Path) -> None:
        path = tmp_path / "a.log"
        draft = "KV Cache is allocated. #tokens: 800000, K size: 0.76 GB, V size: 0.76 GB\n"
        path.write_text(log("sglang").read_text(encoding="utf-8") + draft, encoding="utf-8")
        assert read_log(path).kv_bytes == pytest.approx(48.82 * 2**30)

    def test_sglangs_speculation_is_read_as_its_flags_are(self, tmp_path: Path) -> None:
        path = tmp_path / "a.log"
        said = "speculative_algorithm='EAGLE3', speculative_draft_model_path='a/b', speculative_num_steps=5, speculative_eagle_topk=8, "
        words = log("sglang").read_text(encoding="utf-8")
        path.write_text(words.replace("speculative_algorithm=None", f"{said}speculative_num_draft_tokens=32"), encoding="utf-8")
        assert read_log(path).speculative == Speculative(method="eagle3", num_speculative_tokens=5, model="a/b", topk=8, verify_tokens=32)

    def test_vllms_draft_is_read_with_its_head(self, tmp_path: Path) -> None:
        path = tmp_path / "a.log"
        draft = "speculative_config=SpeculativeConfig(method='eagle3', model='a/EAGLE3-b', num_spec_tokens=3)"
        words = log("vllm-v1").read_text(encoding="utf-8").replace("speculative_config=None", draft)
        path.write_text(words + "INFO 10-14 [model.py:1] Using max model len 2048\n", encoding="utf-8")
        found = read_log(path)
        assert found.speculative == Speculative(method="eagle3", num_speculative_tokens=3, model="a/EAGLE3-b")
        assert found.model == "meta-llama/Llama-3.1-8B-Instruct" and found.settings["max_model_len"] == 16384

    def test_a_hybrids_block_is_the_page(self, tmp_path: Path) -> None:
        path = tmp_path / "a.log"
        line = "INFO [config.py:1] Setting attention block size to 784 tokens to ensure that attention page size is >= mamba page size.\n"
        path.write_text(log("vllm-v1").read_text(encoding="utf-8") + line, encoding="utf-8")
        assert read_log(path).settings["block_size"] == 784


class TestTheLedger:
    @pytest.mark.parametrize("name", NAMES)
    def test_the_pool_is_the_logs(self, name: str) -> None:
        deployment, _ = loaded(name)
        assert pool_tokens(deployment) == TOKENS[name]
        if name != "llamacpp":
            assert deployment.provenance["engine.runtime_reserve_bytes"] == "measured"
        assert deployment.provenance["engine.max_num_batched_tokens" if name != "vllm-v0" else "engine.version"] == "measured"

    def test_levers_still_move_it(self) -> None:
        deployment, _ = loaded("vllm-v1")
        halved = replace(deployment, engine=replace(deployment.engine, kv_cache_dtype="fp8"))
        assert pool_tokens(halved) == pytest.approx(2 * TOKENS["vllm-v1"], abs=32)

    def test_a_cache_that_the_ledger_cannot_hold_is_told_with_both_figures(self) -> None:
        deployment, said = loaded("vllm-v1", hardware="mi250x")
        assert deployment.engine.runtime_reserve_bytes == 0.0
        [line] = [one for one in said if "weights leave" in one]
        assert "takes 59 GB" in line and "GB more than" in line

    def test_a_cache_larger_than_the_device_is_refused(self) -> None:
        with pytest.raises(InputError, match=r"59 GB of each device, more than the 42.9 GB of a A100"):
            loaded("vllm-v1", hardware="a100-sxm-40")

    @pytest.mark.parametrize("name", NAMES)
    def test_a_report_comes_of_each(self, name: str) -> None:
        deployment, _ = loaded(name)
        assert api.advise(deployment, draws=16).ledgers.memory.kv_pool_tokens == TOKENS[name]

    def test_pages_of_gpt_oss_120b_are_73728_bytes_a_token(self) -> None:
        model = catalog.load("models", "gpt-oss-120b")
        assert unified_bytes_per_token(model, kv_kernel("bf16")) == 73_728

    def test_pages_of_gemma_3_are_padded(self) -> None:
        model = catalog.load("models", "gemma-3-27b")
        layer = sum(group.kv_heads * (group.k_dim + group.v_dim) * 2 for group in model.attention) / len(model.attention)
        assert unified_bytes_per_token(model, kv_kernel("bf16")) == 70 * layer

    def test_a_hybrid_models_tokens_are_read_in_its_own_pages(self) -> None:
        table = {**FLAGS, "model": "gpt-oss-120b", "engine": "vllm"}
        deployment, _ = api.load(flags=table)
        tokens = 64_000
        said = StartupLog(engine="vllm", kv_tokens=tokens, pages_unified=True)
        found, warnings = with_measured_pool(deployment, pool_of(said))
        held = room(found, shard(found, Draws(0, 0)), 0.0)
        assert held.pool_bytes == pytest.approx(tokens * 73_728, rel=1e-3) and not warnings
        # Counted as tokens of whole contexts (later versions), the bytes that the log names decide.
        other, _ = with_measured_pool(deployment, pool_of(replace(said, kv_tokens=128_000, kv_bytes=float(tokens * 73_728))))
        assert room(other, shard(other, Draws(0, 0)), 0.0).pool_bytes == pytest.approx(tokens * 73_728, rel=1e-3)


class TestWithWhatTheUserSays:
    def test_a_flag_wins_and_the_contradiction_is_told(self) -> None:
        deployment, said = loaded("vllm-v1", max_num_seqs=64, engine_version="0.11")
        assert deployment.engine.max_num_seqs == 64 and deployment.provenance["engine.max_num_seqs"] == "declared"
        [line] = [one for one in said if "max_num_seqs" in one]
        assert "128" in line and "64 is taken" in line

    def test_a_launch_command_gives_way(self) -> None:
        command = "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 32 --kv-cache-dtype auto"
        deployment, warnings = api.load(log=log("vllm-v1"), launch=command, flags=FLAGS)
        assert deployment.engine.max_num_seqs == 128
        told = [one for one in warnings if one.key == "warning.log_contradicts"]
        assert [one.values["setting"] for one in told] == ["engine.max_num_seqs"] and told[0].values["taken"] == "128"

    def test_agreement_is_not_mentioned(self) -> None:
        _, said = loaded("vllm-v1", max_num_seqs=128)
        assert said == []


class TestKernels:
    LINE = "INFO 10-14 [gptq_marlin.py:1] Using {kernel} for GPTQMarlinLinearMethod\n"

    def deployment(self, tmp_path: Path, kernel: str, model: str) -> Deployment:
        path = tmp_path / "v.log"
        path.write_text(log("vllm-v1").read_text(encoding="utf-8") + self.LINE.format(kernel=kernel), encoding="utf-8")
        return api.load(log=path, flags={**FLAGS, "model": model, "quantization": "gptq"})[0]

    def test_a_named_kernel_decides_the_4_bit_family(self, tmp_path: Path) -> None:
        found = self.deployment(tmp_path, "MarlinLinearKernel", "llama-3.1-8b")
        assert found.engine.quantization == "int4_marlin" and found.provenance["engine.quantization"] == "measured"

    def test_a_kernel_without_figures_of_its_own_changes_nothing(self, tmp_path: Path) -> None:
        found = self.deployment(tmp_path, "ExllamaLinearKernel", "llama-3.1-8b")
        assert found.engine.quantization == "gptq"


class TestWhatCannotBeRead:
    @pytest.mark.parametrize("content", [b"", b"hello\n", b"\x00\xff" * 1000, b"INFO: Uvicorn running\n", "日志\n".encode("utf-16")])
    def test_another_file_is_one_line(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "a.log"
        path.write_bytes(content)
        with pytest.raises(InputError, match="not a start-up log"):
            read_log(path)

    def test_a_folder_and_a_missing_file_are_one_line(self, tmp_path: Path) -> None:
        for path in (tmp_path, tmp_path / "none.log"):
            with pytest.raises(BreakevenError) as refused:
                read_log(path)
            assert "\n" not in str(refused.value)

    def test_layers_on_the_host_are_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "a.log"
        path.write_text(log("llamacpp").read_text(encoding="utf-8") + "load_tensors: offloaded 12/31 layers to GPU\n", encoding="utf-8")
        with pytest.raises(NotModelledError, match="12"):
            api.load(log=path, flags={**FLAGS, "model": "smollm2-135m"})

    def test_a_cache_of_two_types_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "a.log"
        path.write_text(log("llamacpp").read_text(encoding="utf-8").replace("V (q8_0)", "V (f16)"), encoding="utf-8")
        with pytest.raises(NotModelledError, match="f16"):
            read_log(path)

    def test_colours_and_endless_lines_do_no_harm(self, tmp_path: Path) -> None:
        path = tmp_path / "a.log"
        plain = log("vllm-v1").read_text(encoding="utf-8")
        path.write_text("x" * 300_000 + "\n" + plain.replace("INFO", "\x1b[32mINFO\x1b[0m").replace("\n", "\r\n"), encoding="utf-8")
        assert read_log(path) == read_log(log("vllm-v1"))

    def test_of_two_starts_the_last_counts(self, tmp_path: Path) -> None:
        path = tmp_path / "a.log"
        first = log("vllm-v1").read_text(encoding="utf-8")
        path.write_text(first + first.replace("450,000 tokens", "320,000 tokens"), encoding="utf-8")
        assert read_log(path).kv_tokens == 320_000


def test_no_log_is_claimed_by_two_engines() -> None:
    for name in NAMES:
        head = log(name).read_text(encoding="utf-8")
        claimed = [each for each in registry.names("origin/startup_logs") if registry.module("origin.startup_logs", each).sniff(head)]
        assert claimed == [name.partition("-")[0]]


def test_every_launch_reader_has_a_log_reader() -> None:
    assert registry.names("origin/startup_logs") == registry.names("origin/launches")


PIECES = sorted({piece for name in NAMES for line in log(name).read_text(encoding="utf-8").splitlines() for piece in line.split(", ")})


@given(st.sampled_from(NAMES), st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=20)), max_size=12), st.data())
def test_any_text_is_a_log_or_one_line(name: str, pieces: list[str], data: st.DataObject) -> None:
    digit = data.draw(st.sampled_from(["0", "-1", "9" * 40, "nan", "None", "1e9", "", "'"]))
    text_of = "\n".join([*log(name).read_text(encoding="utf-8").splitlines(), *pieces]).replace("1", digit)
    reader = registry.module("origin.startup_logs", name.partition("-")[0])
    try:
        found = reader.read(text_of.splitlines())
    except BreakevenError as error:
        assert "\n" not in str(error)
    else:
        assert all(isinstance(one, Message) for one in found.warnings)
