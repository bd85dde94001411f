"""Launch commands: every flag read or kept, none guessed, any text an answer or one line."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.errors import BreakevenError, InputError, NotModelledError
from breakeven.messages import text
from breakeven.origin.launch_command import parse_launch
from breakeven.spec.engine import Speculative

MODEL = "meta-llama/Llama-3.1-70B-Instruct"


def test_the_command_of_the_contract() -> None:
    found = parse_launch(f"vllm serve {MODEL} -tp 4 --max-num-seqs 64")
    assert found.model == MODEL
    assert found.settings == {"tensor_parallel_size": 4, "max_num_seqs": 64}
    assert not found.unread and not found.warnings


@pytest.mark.parametrize(
    "command",
    [
        f"vllm serve {MODEL} -tp 4 -pp 2",
        f"vllm serve {MODEL} --tensor-parallel-size 4 --pipeline-parallel-size 2",
        f"vllm serve {MODEL} --tensor_parallel_size=4 --pipeline_parallel_size=2",
        f"vllm serve {MODEL} -tp=4 -pp=2",
        f"vllm serve -tp 4 -pp 2 {MODEL}",
        f"python -m vllm.entrypoints.openai.api_server --model {MODEL} -tp 4 -pp 2",
        f"python3 -m vllm.entrypoints.openai.api_server --model={MODEL} --tensor-parallel-size 4 \\\n  --pipeline-parallel-size 2",
        f"CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 HF_TOKEN=x nohup vllm serve {MODEL} -tp 4 -pp 2 > log.txt 2>&1 &",
        f"source env/bin/activate && uv run vllm serve {MODEL} -tp 4 -pp 2; echo done",
        f"docker run --gpus all -v ~/.cache/huggingface:/root/.cache -p 8000:8000 vllm/vllm-openai:latest --model {MODEL} -tp 4 -pp 2",
        f"docker run --rm registry.local:5000/vllm/vllm-openai:v0.11.0 --model {MODEL} -tp 4 -pp 2",
        f"/bin/sh -c 'exec /opt/venv/bin/vllm serve {MODEL} -tp 4 -pp 2'",
    ],
)
def test_spellings_of_one_command_mean_the_same(command: str) -> None:
    found = parse_launch(command)
    assert found.model == MODEL
    assert found.settings == {"tensor_parallel_size": 4, "pipeline_parallel_size": 2}


def test_the_version_is_told_by_an_images_tag() -> None:
    assert parse_launch(f"docker run vllm/vllm-openai:v0.8.5.post1 --model {MODEL}").version == "0.8.5"
    assert parse_launch(f"docker run vllm/vllm-openai:latest --model {MODEL}").version is None


@pytest.mark.parametrize(
    ("flag", "field", "value"),
    [
        ("--enable-prefix-caching", "enable_prefix_caching", True),
        ("--no-enable-prefix-caching", "enable_prefix_caching", False),
        ("--enable-prefix-caching=False", "enable_prefix_caching", False),
        ("--enable-chunked-prefill false", "enable_chunked_prefill", False),
        ("--no_enable_chunked_prefill", "enable_chunked_prefill", False),
        ("--enforce-eager", "enforce_eager", True),
        ("--enable-expert-parallel", "enable_expert_parallel", True),
        ("--max-model-len 32k", "max_model_len", 32_000),
        ("--max-model-len 32K", "max_model_len", 32_768),
        ("--max-num-batched-tokens 8192", "max_num_batched_tokens", 8192),
        ("--kv-cache-dtype fp8_e5m2", "kv_cache_dtype", "fp8_e5m2"),
        ("--gpu-memory-utilization 0.95", "gpu_memory_utilization", 0.95),
        ("--dtype half", "dtype", "float16"),
        ("-q awq_marlin", "quantization", "awq_marlin"),
        ("-q int4_marlin", "quantization", "int4_marlin"),
        ("--quantization Q4_K_M", "quantization", "q4_k_m"),
        ("--quantization gguf", "quantization", "gguf"),
        ("--kv-cache-dtype fp8_inc", "kv_cache_dtype", "fp8_inc"),
        ("--block-size 32", "block_size", 32),
        ("-dp 2", "data_parallel_size", 2),
    ],
)
def test_each_flag_that_is_read(flag: str, field: str, value: object) -> None:
    found = parse_launch(f"vllm serve {MODEL} {flag} --port 8000")
    assert found.settings == {field: value}
    assert not found.warnings


class TestSpeculation:
    def test_as_json(self) -> None:
        command = (
            f"""vllm serve {MODEL} --speculative-config '{{"method": "eagle3", "model": "a/EAGLE3-b", "num_speculative_tokens": 3}}'"""
        )
        assert parse_launch(command).speculative == Speculative(method="eagle3", num_speculative_tokens=3, model="a/EAGLE3-b")

    def test_in_the_dotted_form(self) -> None:
        dotted = "--speculative-config.method ngram --speculative_config.num_speculative_tokens=4 --speculative-config.prompt_lookup_max 5"
        command = f"vllm serve {MODEL} {dotted}"
        found = parse_launch(command)
        assert found.speculative == Speculative(method="ngram", num_speculative_tokens=4)
        assert found.unread == {"--speculative-config.prompt_lookup_max": "5"}

    def test_in_the_older_spelling(self) -> None:
        ngram = parse_launch(f"vllm serve {MODEL} --speculative-model [ngram] --num-speculative-tokens 5 --ngram-prompt-lookup-max 4")
        assert ngram.speculative == Speculative(method="ngram", num_speculative_tokens=5)
        draft = parse_launch(f"vllm serve {MODEL} --speculative_model small/model --num_speculative_tokens 2")
        assert draft.speculative == Speculative(method="draft_model", num_speculative_tokens=2, model="small/model")

    def test_the_method_follows_the_drafts_name(self) -> None:
        command = (
            f"""vllm serve {MODEL} --speculative-config '{{"model": "yuhuili/EAGLE-LLaMA3-Instruct-8B", "num_speculative_tokens": 2}}'"""
        )
        assert parse_launch(command).speculative == Speculative(
            method="eagle", num_speculative_tokens=2, model="yuhuili/EAGLE-LLaMA3-Instruct-8B"
        )

    def test_every_heads_own_mtp_is_mtp(self) -> None:
        command = f"""vllm serve {MODEL} --speculative-config '{{"method": "deepseek_mtp", "num_speculative_tokens": 1}}'"""
        assert parse_launch(command).speculative == Speculative(method="mtp", num_speculative_tokens=1)

    @pytest.mark.parametrize(
        "config",
        [
            "'{'",
            "'[]'",
            "3",
            '\'{"method": "ngram"}\'',
            "'{\"num_speculative_tokens\": 3}'",
            "'{}'",
            '\'{"method": "ngram", "num_speculative_tokens": NaN}\'',
        ],
    )
    def test_a_damaged_configuration_is_one_line(self, config: str) -> None:
        with pytest.raises(InputError) as refused:
            parse_launch(f"vllm serve {MODEL} --speculative-config {config}")
        assert "\n" not in str(refused.value)

    def test_a_method_not_modelled_is_named(self) -> None:
        with pytest.raises(NotModelledError, match="medusa"):
            parse_launch(f"""vllm serve {MODEL} --speculative-config '{{"method": "medusa", "num_speculative_tokens": 3}}'""")


class TestFlagsNotRead:
    def test_they_are_kept_and_reported(self) -> None:
        found = parse_launch(f"vllm serve {MODEL} --brand-new-flag 7 --num-scheduler-steps=8 --lora-modules a=b c=d --max-num-seqs 8")
        assert found.unread == {"--brand-new-flag": "7", "--num-scheduler-steps": "8", "--lora-modules": "a=b c=d"}
        assert found.settings == {"max_num_seqs": 8}
        [warning] = found.warnings
        for name in found.unread:
            assert name in text(warning)

    def test_those_that_change_nothing_are_kept_in_silence(self) -> None:
        found = parse_launch(f"vllm serve {MODEL} --host 0.0.0.0 --port 8000 --trust-remote-code --served-model-name a b --seed -1")
        assert found.unread == {
            "--host": "0.0.0.0",
            "--port": "8000",
            "--trust-remote-code": "",
            "--served-model-name": "a b",
            "--seed": "-1",
        }
        assert not found.warnings

    def test_a_bare_flag_does_not_swallow_the_model(self) -> None:
        assert parse_launch(f"vllm serve --trust-remote-code {MODEL}").model == MODEL

    def test_secrets_are_not_kept(self) -> None:
        found = parse_launch(f"HF_TOKEN=hf_secret VLLM_API_KEY=hf_secret VLLM_LOGGING_LEVEL=DEBUG vllm serve {MODEL} --api-key hf_secret")
        assert "hf_secret" not in repr(found)
        assert found.unread["VLLM_LOGGING_LEVEL"] == "DEBUG"


@pytest.mark.parametrize(
    "command",
    [
        "",
        "   ",
        "\0",
        "ls -la",
        "vllm",
        "vllm bench serve",
        f"vllm serve {MODEL} other",
        f"vllm serve {MODEL} -tp",
        f"vllm serve {MODEL} -tp four",
        f"vllm serve {MODEL} -tp 0",
        f"vllm serve {MODEL} -tp -2",
        f"vllm serve {MODEL} -tp 2.5",
        f"vllm serve {MODEL} --gpu-memory-utilization 1.5",
        f"vllm serve {MODEL} --gpu-memory-utilization nan",
        f"vllm serve {MODEL} --no-max-num-seqs 4",
        f"vllm serve {MODEL} 'unclosed",
        f"vllm serve {MODEL} --kv-cache-dtype fp9",
        f"vllm serve {MODEL} --kv-cache-dtype nvfp4",
        f"vllm serve {MODEL} --dtype float32",
        f"vllm serve {MODEL} -q fp7",
        f"vllm serve {MODEL} --enforce-eager=maybe",
        "lmdeploy serve api_server x",
        f"vllm serve {MODEL} " + "x" * 100_000,
        f"vllm serve {MODEL} -tp 99999999999999999999999999",
        "bash -c 'bash -c vllm'",
        f"vllm serve {MODEL} --dtype=",
    ],
)
def test_what_cannot_be_read_is_one_line(command: str) -> None:
    with pytest.raises(BreakevenError) as refused:
        parse_launch(command)
    assert "\n" not in str(refused.value)
    assert refused.value.exit_code == 2


WORDS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        [
            "vllm",
            "serve",
            "-tp",
            "--max-num-seqs",
            "--model",
            "--speculative-config",
            "--speculative-config.method",
            "--no-enforce-eager",
            "4",
            "-1",
            "nan",
            '{"method":"ngram"}',
            "ngram",
            "&&",
            "|",
            "docker",
            "run",
            "vllm/vllm-openai:v0.9",
            "-c",
            "sh",
            "VLLM_X=1",
            "--quantization",
            "fp8",
            "=",
            "--",
            "-",
            "\\",
        ]
    ),
)


@given(st.lists(WORDS, max_size=12), st.booleans())
def test_any_command_is_settings_or_one_line(words: list[str], quoted: bool) -> None:
    command = "vllm serve " + (shlex.join(words) if quoted else " ".join(words))
    try:
        found = parse_launch(command)
    except BreakevenError as error:
        assert "\n" not in str(error)
    else:
        assert all(isinstance(text(warning), str) for warning in found.warnings)
