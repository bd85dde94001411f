"""vLLM's spellings beside those of test_launch_command: V0's flags, settings that say a field in another way, trees of drafts."""

from __future__ import annotations

import dataclasses

import pytest

from breakeven.efficiencies import is_eager
from breakeven.errors import BreakevenError, NotModelledError
from breakeven.messages import text
from breakeven.origin.launch import LaunchSettings
from breakeven.origin.launch_command import parse_launch
from breakeven.origin.launches import vllm
from breakeven.origin.resolve import resolve_table
from breakeven.spec.engine import Engine, Speculative

TABLE = {"hardware": "h100-sxm:4", "workload": {"input_tokens": 1000, "output_tokens": 200, "request_rate": 1.0}}
MODEL = "meta-llama/Llama-3.1-70B-Instruct"


def parsed(flags: str, before: str = "") -> LaunchSettings:
    return parse_launch(f"{before} vllm serve {MODEL} {flags}")


@pytest.mark.parametrize(
    ("flag", "settings"),
    [
        ("--num-gpu-blocks-override 1000", {"kv_cache_tokens": 16_000}),
        ("--num-gpu-blocks-override 1000 --block-size 32", {"block_size": 32, "kv_cache_tokens": 32_000}),
        ("--mamba-ssm-cache-dtype float32", {"mamba_ssm_cache_dtype": "float32"}),
        ("-O0", {"enforce_eager": True}),
        ("-O 0", {"enforce_eager": True}),
        ("-O3", {}),
        ("--compilation-config.mode 0", {"enforce_eager": True}),
        ("--compilation-config.level=3", {}),
        ("--compilation-config 0", {"enforce_eager": True}),
        ("""--compilation-config '{"cudagraph_mode": "NONE"}'""", {"enforce_eager": True}),
        ("""--compilation-config '{"level": 3}'""", {}),
        ("--enable-chunked-prefill=False --enable_prefix_caching", {"enable_chunked_prefill": False, "enable_prefix_caching": True}),
        ("--cpu-offload-gb 0", {}),
        ("--use-v2-block-manager --max-seq-len-to-capture 8192 --tokenizer x --tokenizer-mode auto", {}),
    ],
)
def test_settings_that_are_said_in_another_way(flag: str, settings: dict[str, object]) -> None:
    assert parsed(flag).settings == settings


@pytest.mark.parametrize(
    "flag",
    [
        "--swap-space 4",
        "--num-scheduler-steps 8",
        "--kv-cache-memory-bytes 10G",
        "--disable-hybrid-kv-cache-manager",
        "--mamba-block-size 512",
        "--moe-backend triton",
        "--all2all-backend deepep_low_latency",
        "--kv-transfer-config.kv_connector LMCacheConnectorV1",
        """--kv-transfer-config '{"kv_connector": "NixlConnector"}'""",
        "--data-parallel-size-local 2",
        "--attention-backend FLASHINFER",
    ],
)
def test_what_may_matter_and_is_not_read_is_said(flag: str) -> None:
    found = parsed(flag)
    name = flag.split(" ", maxsplit=1)[0]
    assert set(found.unread) == {name} and found.warnings[0].values["flags"] == name
    assert found.settings == {}


def test_context_parallel_sizes_are_read_where_the_engine_has_them() -> None:
    known = {field.name for field in dataclasses.fields(Engine)}
    found = parsed("-dcp 2")
    if "decode_context_parallel_size" in known:
        assert found.settings == {"decode_context_parallel_size": 2}
    else:
        assert found.unread == {"-dcp": "2"} and found.warnings


class TestTheV0Engine:
    def test_its_defaults_come_with_it(self) -> None:
        found = parsed("--max-num-seqs 8", before="VLLM_USE_V1=0 VLLM_ATTENTION_BACKEND=XFORMERS")
        assert found.version == vllm.V0_ERA and "0.7" in text(found.warnings[1])
        assert found.unread == {"VLLM_ATTENTION_BACKEND": "XFORMERS"}
        engine = resolve_table(TABLE, launch=found).deployment.engine
        assert not engine.enable_prefix_caching and not engine.enable_chunked_prefill and is_eager(engine)

    def test_where_it_is_gone_the_variable_is_kept(self) -> None:
        found = parse_launch(f"docker run -e VLLM_USE_V1=0 vllm/vllm-openai:v0.12.0 --model {MODEL}")
        assert found.unread == {"VLLM_USE_V1": "0"} and found.version == "0.12.0"

    def test_what_is_stated_wins(self) -> None:
        found = resolve_table(TABLE, launch=parsed("--enable-prefix-caching", before="VLLM_USE_V1=0"))
        assert found.deployment.engine.enable_prefix_caching

    def test_its_way_of_speculating(self) -> None:
        flags = "--speculative-model small/m --num-speculative-tokens 5 --speculative-draft-tensor-parallel-size 1 --use-v2-block-manager"
        found = parsed(flags)
        assert found.speculative == Speculative(method="draft_model", num_speculative_tokens=5, model="small/m")
        assert found.unread == {"--speculative-config.draft_tensor_parallel_size": "1", "--use-v2-block-manager": ""}


class TestTrees:
    TREE = "[(0,), (1,), (0, 0), (0, 1), (1, 0)]"

    def test_nodes_are_rows_and_levels_are_drafted(self) -> None:
        config = f"""'{{"method": "eagle", "model": "a/b", "num_speculative_tokens": 5, "speculative_token_tree": "{self.TREE}"}}'"""
        found = parsed(f"--speculative-config {config}")
        assert found.speculative == Speculative(method="eagle", num_speculative_tokens=2, model="a/b", topk=3, verify_tokens=6)
        assert not found.unread

    @pytest.mark.parametrize("tree", ["[]", "3", "[(0,), ()]", "__import__('os')", "[" * 5000, "", "{'a': 1}"])
    def test_a_tree_that_is_none_is_one_line(self, tree: str) -> None:
        with pytest.raises(BreakevenError) as refused:
            parsed(f'--speculative-config.method eagle --speculative-config.model a/b --speculative-config.speculative_token_tree "{tree}"')
        assert "\n" not in str(refused.value)

    def test_a_schedule_by_batch_is_kept_and_said(self) -> None:
        config = """'{"method": "ngram", "num_speculative_tokens": 3, "num_speculative_tokens_per_batch_size": [[1, 8, 3]]}'"""
        found = parsed(f"--speculative-config {config}")
        assert list(found.unread) == ["--speculative-config.num_speculative_tokens_per_batch_size"] and found.warnings


def test_offloaded_weights_are_refused() -> None:
    with pytest.raises(NotModelledError, match="--cpu-offload-gb 20"):
        parsed("--cpu-offload-gb 20")
