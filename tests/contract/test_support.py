"""The support matrix: every rule can come to bear, every refusal says why and from where, and published facts come out of it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from breakeven import api, catalog, matrix, support
from breakeven.errors import InputError
from breakeven.kernels import kv_names, weight_kernels, weight_names
from breakeven.levers.speculation import ORDER
from breakeven.messages import LANGUAGES, catalogue, text
from breakeven.origin.support_entry import parse_support
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine, Speculative, version_key
from breakeven.spec.hardware import Device, Hardware
from breakeven.spec.model import Attention, Experts, Model, Parameters, States
from breakeven.spec.support import Condition, SupportRule, model_kinds
from breakeven.spec.workload import Workload

PARAMETERS = Parameters(embedding=10**8, head=10**8, attention=10**9, mlp=6 * 10**9, experts=0, other=10**6)
OTHER_ROWS = ("chunked_prefill",)
"""Rows of the matrix that are no lever of ours."""


def group(kind: str = "full", *, kv_heads: int = 8, head_dim: int = 128, layers: int = 16) -> Attention:
    return Attention(kind=kind, layers=layers, q_heads=32, kv_heads=kv_heads, k_dim=head_dim, v_dim=head_dim)  # type: ignore[arg-type]


def states(kind: str, elements: int = 786432, conv: int = 30720, heads: int = 48, mixer: str = "gated_deltanet") -> States:
    return States(kind=kind, mixer=mixer, layers=48, state_elements=elements, conv_elements=conv, heads=heads)  # type: ignore[arg-type]


def model(*attention: Attention, states: tuple[States, ...] = (), **more: object) -> Model:
    return Model(
        name="m", family="f", layers=64, hidden=4096, vocabulary=10**5, attention=attention, parameters=PARAMETERS, states=states, **more
    )  # type: ignore[arg-type]


LATENT = Attention(kind="mla", layers=61, q_heads=128, kv_heads=1, k_dim=576, v_dim=0, latent_rank=512, rope_dim=64)
COMPRESSED = Attention(kind="compressed", layers=43, q_heads=64, kv_heads=1, k_dim=512, v_dim=0, window=128, compression=4)
MODELS = {
    "dense": model(group()),
    "window": model(group("sliding"), group()),
    "chunks": model(group("chunked"), group()),
    "latent": model(LATENT, experts=Experts(count=256, top_k=8, layers=58), mtp_layers=1),
    "gated delta": model(group(kv_heads=4, head_dim=256), states=(states("linear"),)),
    "mamba": model(group(), states=(states("ssm", mixer="mamba2"),)),
    "mamba alone": model(states=(states("ssm", mixer="mamba1"),)),
    "short conv": model(group(), states=(states("conv", 0, 6144, mixer="shortconv"),)),
    "rwkv": model(states=(states("recurrent", mixer="rwkv6"),)),
    "odd heads": model(group(head_dim=72)),
    "compressed": model(COMPRESSED),
}
DRAFT = Speculative(method="ngram", num_speculative_tokens=3)
SETTINGS = ({}, {"pipeline_parallel_size": 2}, {"speculative": DRAFT}, {"kv_cache_dtype": "fp8"})


@cache
def devices() -> dict[str, Device]:
    found = {name: catalog.load("hardware", name) for name in catalog.names("hardware")}
    cpu = replace(
        found["h100-sxm"], name="cpu", title="CPU", vendor="Intel", family="cpu", compute_capability="amx", native_formats=("int8",)
    )
    return {**found, "cpu": cpu}


def deployment(engine: str, version: str, device: str, of: str | Model, **settings: object) -> Deployment:
    set_up = Engine(name=engine, version=version, **settings)  # type: ignore[arg-type]
    built = of if isinstance(of, Model) else MODELS[of]
    count = set_up.tensor_parallel_size * set_up.pipeline_parallel_size
    return Deployment(
        model=built,
        hardware=Hardware(device=devices()[device], count=count),
        engine=set_up,
        workload=Workload(batch=1.0, context_tokens=9.0),
    )


def versions_in(where: Condition, engine: str) -> tuple[str, ...]:
    if where.since is not None:
        return (where.since,)
    oldest = "b1" if engine == "llamacpp" else "0.0.1"
    return (oldest,) if where.before else (support.sheet(engine).version, oldest, "nightly")


RULES = [
    pytest.param(name, rule, id=f"{name}-{n}-{rule.lever}")
    for name in support.engines()
    for n, rule in enumerate(support.sheet(name).rules)
]
each_rule = pytest.mark.parametrize(("engine", "rule"), RULES)


def reached(engine: str, where: Condition) -> list[Deployment]:
    every = (deployment(engine, v, d, m, **s) for v, d, m, s in product(versions_in(where, engine), devices(), MODELS, SETTINGS))
    return [d for d in every if where.holds(d.engine.version, d.hardware.device, d.model, d.engine)]


@each_rule
def test_every_rule_comes_to_bear_on_some_deployment_and_gives_its_verdict_there(engine: str, rule: SupportRule) -> None:
    found = reached(engine, rule.where)
    assert found, rule
    if "supported" in rule.says:
        setting = rule.settings[0] if rule.settings else "on" if rule.lever == "prefix_cache" else "eagle"
        assert any(support.support(rule.lever, setting, d).source == rule.source for d in found)


@pytest.mark.parametrize("engine", support.engines())
def test_every_block_and_reserve_comes_to_bear(engine: str) -> None:
    sheet = support.sheet(engine)
    for rule in (*sheet.blocks, *sheet.reserves):
        assert reached(engine, rule.where), rule


@each_rule
def test_every_rule_has_a_source_and_known_words_and_a_reason_in_both_languages(engine: str, rule: SupportRule) -> None:
    assert rule.source
    assert rule.lever in (*api.levers(), *OTHER_ROWS)
    families = {"weight_quant": weight_names(), "kv_quant": kv_names()}.get(rule.lever, ())
    known = {"speculation": ORDER}.get(rule.lever, families)
    assert not rule.settings or set(rule.settings) <= set(known)
    assert rule.says.get("kernel") in (None, *families)
    assert rule.says.get("default") in (None, "on", "off", "auto")
    for key in ("reason", "on_note", "off_note"):
        if key in rule.says:
            assert all(f"lever.{rule.says[key]}" in catalogue(language) for language in LANGUAGES)
    if "supported" not in rule.says or rule.says["supported"]:
        return
    setting = rule.settings[0] if rule.settings else "on"
    refused = [found for d in reached(engine, rule.where) if not (found := support.support(rule.lever, setting, d)).supported]
    assert refused
    for found in refused[:3]:
        assert found.source and found.reason is not None
        assert all(text(found.reason, language) for language in LANGUAGES)


@pytest.mark.parametrize("engine", support.engines())
def test_no_setting_is_lost_between_versions_unless_a_rule_says_so(engine: str) -> None:
    rules = support.sheet(engine).rules
    named = {v for rule in rules for v in (rule.where.since, rule.where.before) if v} | {support.sheet(engine).version}
    for lever in ("weight_quant", "kv_quant", "speculation"):
        for setting, of in product(support.settings_of(engine, lever), MODELS):
            stated = {rule.where.since for rule in rules if rule.about(lever, setting) and rule.says.get("supported") is False}
            before = False
            for version in sorted(named, key=version_key):
                here = support.support(lever, setting, deployment(engine, version, "h100-sxm", of)).supported
                assert here or not before or version in stated, f"{setting} is lost at {version}"
                before = here


PUBLISHED = [
    # engine, version, device, model, lever, setting, expected, where it is published
    ("vllm", "0.9.2", "v100-sxm2-32", "dense", "weight_quant", "int4", False, "documentation 0.9.2, supported hardware: AWQ not on Volta"),
    ("vllm", "0.9.2", "t4", "dense", "weight_quant", "int4", True, "the same: AWQ on Turing"),
    ("vllm", "0.9.2", "t4", "dense", "weight_quant", "int4_marlin", False, "the same: Marlin from Ampere"),
    ("vllm", "0.9.2", "a100-sxm-80", "dense", "weight_quant", "int4_marlin", True, "the same"),
    ("vllm", "0.9.2", "a100-sxm-80", "dense", "weight_quant", "fp8", False, "the same: FP8 (W8A8) from Ada"),
    ("vllm", "0.9.2", "a100-sxm-80", "dense", "weight_quant", "fp8_weight_only", True, "the same: Marlin (FP8) on Ampere"),
    ("vllm", "0.9.2", "l40s", "dense", "weight_quant", "fp8", True, "the same"),
    ("vllm", "0.9.2", "mi300x", "dense", "weight_quant", "fp8", True, "the same: AMD"),
    ("vllm", "0.9.2", "mi300x", "dense", "weight_quant", "int8", False, "the same: no INT8 (W8A8) on AMD"),
    ("vllm", "0.9.2", "mi300x", "dense", "weight_quant", "nf4", False, "the same: bitsandbytes on NVIDIA"),
    ("vllm", "0.9.2", "v100-sxm2-32", "dense", "weight_quant", "int8", False, "the same: INT8 from Turing"),
    ("vllm", "0.9.2", "h100-sxm", "dense", "weight_quant", "int8", True, "the same"),
    ("vllm", "0.14.0", "b200-sxm", "dense", "weight_quant", "int8", False, "documentation, INT8: not from compute capability 10.0"),
    ("vllm", "0.14.0", "cpu", "dense", "weight_quant", "fp8", False, "documentation 0.14.0, supported hardware: FP8 not on x86 CPUs"),
    ("vllm", "0.14.0", "cpu", "dense", "weight_quant", "int8", True, "the same: INT8 on x86 CPUs"),
    ("vllm", "0.8.5", "h800-sxm", "latent", "kv_quant", "fp8", False, "issue 18888"),
    ("vllm", "0.26", "a100-sxm-80", "dense", "kv_quant", "fp8", True, "issue 45238 runs fp8_e4m3 on sm_80"),
    ("vllm", "0.11", "h100-sxm", "gated delta", "prefix_cache", "on", False, "config.py at commit 0144dd5"),
    ("vllm", "0.19.1", "h20-96", "gated delta", "prefix_cache", "on", True, "issue 40696"),
    ("vllm", "0.7.1", "h100-sxm", "dense", "speculation", "draft_model", True, "documentation 0.7.1"),
    ("vllm", "0.13.0", "rtx-4080", "dense", "speculation", "draft_model", False, "issue 31883"),
    ("vllm", "0.14.0", "h100-sxm", "dense", "speculation", "draft_model", False, "documentation 0.14.0"),
    ("vllm", "0.16", "h100-sxm", "dense", "speculation", "draft_model", True, "pull request 24322"),
    ("sglang", "0.5.4", "mi300x", "dense", "speculation", "ngram", False, "documentation: NGRAM is CUDA-only"),
    ("sglang", "0.5.4", "h100-sxm", "gated delta", "prefix_cache", "on", True, "documentation, Qwen3-Next: MambaRadixCache"),
    ("llamacpp", "b5648", "rtx-3090", "window", "prefix_cache", "on", False, "issue 14157 (b5648)"),
    ("llamacpp", "b6200", "rtx-3090", "window", "prefix_cache", "on", True, "pull request 15293: checkpoints"),
    ("llamacpp", "b6000", "h100-sxm", "dense", "kv_quant", "fp8", False, "llama.cpp has no such cache type"),
    ("vllm", "0.14.0", "epyc-9654", "dense", "weight_quant", "int8", True, "documentation 0.14.0, supported hardware: INT8 on x86 CPUs"),
    ("trtllm", "1.0", "mi300x", "dense", "weight_quant", "fp8", False, "support matrix: NVIDIA only"),
]


@pytest.mark.parametrize(("engine", "version", "device", "of", "lever", "setting", "expected", "published"), PUBLISHED)
def test_published_facts(engine: str, version: str, device: str, of: str, lever: str, setting: str, expected: bool, published: str) -> None:
    assert support.support(lever, setting, deployment(engine, version, device, of)).supported is expected, published


@pytest.mark.parametrize(("device", "there"), [("mi300x", False), ("rtx-3090", False), ("epyc-9654", True), ("grace-72c", True)])
def test_a_processor_is_no_device_of_its_maker_whose_kernels_lack_a_head_size(device: str, there: bool) -> None:
    found = support.support("kv_quant", "q8_0", deployment("llamacpp", "b6000", device, api.model("llama-3.2-1b")))
    assert found.supported is there
    assert (found.reason is None) is there


@pytest.mark.parametrize("version", ["0.7.1", "0.9.1", "0.14.0"])
def test_speculation_and_a_pipeline_do_not_go_together_as_vllm_documents(version: str) -> None:
    found = support.support("speculation", "ngram k=3", deployment("vllm", version, "h100-sxm", "dense", pipeline_parallel_size=2))
    assert not found.supported
    assert found.reason is not None and found.reason.key == "lever.spec_no_pipeline"


def test_kernels_that_change_the_engine_underneath_are_said_where_the_lever_is_there() -> None:
    found = support.support("kv_quant", "fp8", deployment("vllm", "0.8.4", "h100-sxm", "dense"))
    assert found.supported and found.reason is not None and found.reason.key == "lever.kv_runs_v0"
    assert support.support("kv_quant", "fp8", deployment("vllm", "0.12", "h100-sxm", "dense")).reason is None


class TestFlagsOfTheVersionInForce:
    def typed(self, lever: str, setting: str, version: str) -> str:
        d = deployment("vllm", version, "h100-sxm", "dense")
        return api.lever_named(lever).flags(d, setting)["vllm"]

    def test_speculation(self) -> None:
        assert self.typed("speculation", "ngram k=3", "0.7.1").startswith("--speculative-model '[ngram]' --num-speculative-tokens 3")
        assert self.typed("speculation", "ngram k=3", "0.11").startswith('--speculative-config \'{"method": "ngram"')
        assert "deepseek_mtp" in self.typed("speculation", "mtp k=1", "0.10")
        assert '"mtp"' in self.typed("speculation", "mtp k=1", "0.11")

    def test_a_prefix_cache_that_is_off_by_default_is_turned_off_by_leaving_it_out(self) -> None:
        old, new = (deployment("vllm", version, "h100-sxm", "dense") for version in ("0.7.3", "0.11"))
        lever = api.lever_named("prefix_cache")
        assert (lever.unflags(old)["vllm"], lever.unflags(new)["vllm"]) == ("", "--no-enable-prefix-caching")
        assert support.flag_notes("prefix_cache", "off", None, {"vllm": "0.7.3"})["vllm"].key == "lever.flag_without_prefix_caching"

    def test_another_engine_is_named_only_where_it_has_the_setting_here(self) -> None:
        flags = api.lever_named("weight_quant").flags(deployment("vllm", "0.11", "mi300x", "dense"), "fp8")
        assert "vllm" in flags and "sglang" in flags and "trtllm" not in flags


class TestTrap19KernelFamilyByDevice:
    """A checkpoint stored in 4 bits runs the family its engine turns it to, unless a plain kernel is named."""

    stored = replace(MODELS["dense"], stored={"attention": "int4_g128", "mlp": "int4_g128"})

    def family(self, engine: str, version: str, device: str, **settings: object) -> str:
        set_up = catalog.engine(engine, version, devices()[device], **settings)
        return weight_kernels(self.stored, set_up, devices()[device])["mlp"].name

    def test_a_checkpoint_alone_runs_marlin_from_ampere_on(self) -> None:
        assert self.family("vllm", "0.11", "a100-sxm-80") == "int4_marlin"
        assert self.family("vllm", "0.11", "t4") == "int4"
        assert self.family("vllm", "0.4.0", "a100-sxm-80") == "int4"
        assert self.family("sglang", "0.5", "h100-sxm") == "int4_marlin"
        assert self.family("trtllm", "1.0", "h100-sxm") == "int4"

    def test_a_plain_kernel_that_is_named_is_run(self) -> None:
        assert self.family("vllm", "0.11", "a100-sxm-80", quantization="awq") == "int4"
        assert self.family("vllm", "0.11", "a100-sxm-80", quantization="awq_marlin") == "int4_marlin"


def test_trap_20_a_head_size_without_an_attention_kernel_is_refused_and_not_priced() -> None:
    found = support.support("kv_quant", "q8_0", deployment("llamacpp", "b6000", "m3-max-40c", "odd heads"))
    assert not found.supported and found.reason is not None and found.reason.key == "lever.kv_no_head_size"
    assert support.support("kv_quant", "q8_0", deployment("llamacpp", "b6000", "m3-max-40c", "dense")).backend == "flash attention"
    assert support.support("kv_quant", "q8_0", deployment("llamacpp", "b6000", "cpu", "odd heads")).supported


GATED = {"elements": 786432, "conv": 30720, "heads": 48}
HYBRIDS = [
    # tokens, attention heads and width, state, settings, where it is published
    (784, (4, 256), ("linear", GATED), {}, "issue 54607; 48 layers of gated delta net, states in 32 bit"),
    (1600, (4, 256), ("linear", GATED), {"kv_cache_dtype": "fp8", "speculative": DRAFT}, "issue 45238: fp8 cache, MTP k = 3"),
    (528, (4, 256), ("linear", {"elements": 524288, "conv": 24576, "heads": 32}), {}, "issue 40696: Qwen3.5-4B"),
    (2096, (2, 256), ("linear", {"elements": 1048576, "conv": 36864, "heads": 64}), {"tensor_parallel_size": 2}, "pull request 35703: TP2"),
    (2096, (2, 128), ("ssm", {"elements": 524288, "conv": 18432, "heads": 64}), {}, "issue 53749: Nemotron 30B-A3B"),
    (
        8320,
        (2, 128),
        ("ssm", {"elements": 1048576, "conv": 30720, "heads": 128}),
        {"kv_cache_dtype": "fp8"},
        "issue 48401: Nemotron-3-Super",
    ),
]


@pytest.mark.parametrize(("tokens", "heads", "state", "settings", "published"), HYBRIDS)
def test_a_hybrids_block_is_the_published_one_by_the_engines_own_rule(tokens, heads, state, settings, published) -> None:
    kind, shape = state
    built = model(group(kv_heads=heads[0], head_dim=heads[1]), states=(states(kind, **shape),), state_dtype="float32")
    d = deployment("vllm", "0.26", "h100-sxm", built, **settings)
    assert support.block_size(d.model, d.engine, d.hardware.device) == tokens, published


@pytest.mark.parametrize(
    ("engine", "version", "device", "of", "tokens"),
    [
        ("vllm", "0.11", "h100-sxm", "dense", 16),
        ("vllm", "0.32", "cpu", "dense", 128),
        ("vllm", "0.11", "h200-sxm", "latent", 64),
        ("sglang", "0.5", "h100-sxm", "latent", 1),
        ("sglang", "0.5", "b200-sxm", "latent", 64),
        ("trtllm", "1.0", "h100-sxm", "dense", 32),
        ("trtllm", "0.15", "h100-sxm", "dense", 64),
        ("tgi", "3.0", "h100-sxm", "dense", 1),
        ("llamacpp", "b6000", "m3-max-40c", "dense", 1),
    ],
)
def test_each_engine_has_its_block(engine: str, version: str, device: str, of: str, tokens: int) -> None:
    d = deployment(engine, version, device, of)
    assert support.block_size(d.model, d.engine, d.hardware.device) == tokens


@pytest.mark.parametrize(("version", "kept"), [("0.11", False), ("0.19.1", False), ("0.28", True)])
def test_a_hybrids_prefixes_are_kept_untold_only_from_the_version_that_does(version: str, kept: bool) -> None:
    d = deployment("vllm", version, "h100-sxm", "gated delta")
    assert support.keeps_prefixes(d.model, d.engine, d.hardware.device) is kept
    assert support.keeps_prefixes(MODELS["dense"], d.engine, d.hardware.device) is True


def loaded(engine: str, hardware: str = "h100-sxm", name: str = "llama-3.1-8b", **flags: object) -> Deployment:
    said = {"model": name, "hardware": hardware, "engine": engine, "batch": "1", "context": "1000", **flags}
    return api.load(flags=said)[0]


class TestWhatEachEngineLeavesFree:
    def test_sglang_chooses_its_share_by_the_card(self) -> None:
        for hardware, kept_gib in (("h100-sxm", 9.5 + 0.5), ("h200-sxm", 12.5), ("rtx-4090", 2.9), ("b200-sxm", 32.0)):
            d = loaded("sglang", hardware)
            left = (1 - d.engine.gpu_memory_utilization) * d.hardware.device.memory_bytes / 2**30
            assert left == pytest.approx(kept_gib, abs=0.1)  # the share is rounded to a thousandth
            assert d.provenance["engine.gpu_memory_utilization"] == "catalogue"
        assert loaded("sglang", gpu_memory_utilization="0.7").engine.gpu_memory_utilization == 0.7

    def test_sglang_leaves_more_for_a_draft(self) -> None:
        plain, drafted = loaded("sglang"), loaded("sglang", speculative={"method": "ngram", "num_speculative_tokens": 3})
        assert drafted.engine.gpu_memory_utilization < plain.engine.gpu_memory_utilization

    def test_tensorrt_llm_takes_its_share_of_what_weights_and_reserve_leave(self) -> None:
        d = loaded("trtllm")
        room = api.evaluate(d).room
        free = d.hardware.device.memory_bytes - room.weight_bytes - room.reserve_bytes
        assert room.pool_bytes == pytest.approx(0.9 * free)

    @pytest.mark.parametrize("engine", ["vllm", "sglang", "tgi", "llamacpp"])
    def test_others_take_theirs_of_the_device(self, engine: str) -> None:
        d = loaded(engine)
        room = api.evaluate(d).room
        usable = d.hardware.device.memory_bytes * d.engine.gpu_memory_utilization
        assert room.pool_bytes == pytest.approx(usable - room.weight_bytes - room.reserve_bytes)
        assert room.reserve_bytes > 0


def test_the_block_in_force_comes_from_the_catalogue_unless_it_is_stated() -> None:
    latent = loaded("vllm", "h200-sxm:8", "deepseek-v3", tensor_parallel_size="8")
    assert (latent.engine.block_size, latent.provenance["engine.block_size"]) == (64, "catalogue")
    stated = loaded("vllm", block_size="32")
    assert (stated.engine.block_size, stated.provenance["engine.block_size"]) == (32, "declared")


def test_a_refusal_carries_its_source_into_the_advice() -> None:
    found = api.advise(loaded("vllm", "v100-sxm2-32", "mistral-7b-v0.3"), draws=32)
    kv = found.levers["kv_quant"]
    assert kv.verdict == "not_supported" and "compute capability 8.0" in kv.source
    refused = next(one for one in found.levers["weight_quant"].alternatives if one.setting == "int4")
    assert "no AWQ on Volta" in refused.source


@pytest.mark.parametrize("device", ["v100-sxm2-32", "mi300x", "m3-max-40c", "b200-sxm", "cpu"])
@pytest.mark.parametrize("engine", support.engines())
def test_every_refused_candidate_says_why_and_where_it_was_read(engine: str, device: str) -> None:
    for of, lever in product(MODELS, api.levers()):
        d = deployment(engine, support.sheet(engine).version, device, of)
        if lever == "batching":  # its candidate is a cap worked out from the pool
            assert support.support(lever, "8", d).supported
            continue
        for one in api.lever_named(lever).candidates(d):
            assert (one.refused is None) == (one.source == ""), one


def test_the_page_is_as_the_files_are(root: Path) -> None:
    assert (root / "docs/reference/support.md").read_text(encoding="utf-8") == matrix.page()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_row_can_be_said_in_both_languages(language: str) -> None:
    for engine in support.engines():
        rows = matrix.support_rows(engine, language)
        assert len(rows) >= len(support.sheet(engine).rules)
        assert all(row.source and row.values["where"] for row in rows)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"lever": "x", "supported": True, "sauce": "s"}, "source"),
        ({"lever": "x", "supported": True}, "no source"),
        ({"lever": "x", "supported": False, "source": "s"}, "not why"),
        ({"lever": "x", "source": "s"}, "states nothing"),
        ({"lever": "x", "supported": True, "source": "s", "model": {"kinds": ["latent"]}}, "latent"),
        ({"lever": "x", "supported": True, "source": "s", "device": {"vendor": ["NVIDIA"]}}, "vendors"),
        ({"lever": "x", "supported": True, "source": "s", "engine": ["pipelines"]}, "pipeline"),
    ],
)
def test_a_rule_that_is_not_one_is_refused_in_a_line(rule: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_support({"rules": [rule]}, {"title": "X", "version": "1"}, "x")
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_later_rules_win_key_by_key_and_a_verdict_brings_its_own_source() -> None:
    def rule(source: str, **says: object) -> SupportRule:
        return SupportRule(lever="x", settings=(), where=Condition(), says=says, source=source)

    found = support.overlaid([rule("a", supported=False, reason="r", on="--x"), rule("b", supported=True), rule("c", default="off")])
    assert found.says == {"supported": True, "on": "--x", "default": "off"}
    assert found.source == "b"


def test_models_are_spoken_of_by_their_kinds() -> None:
    assert model_kinds(MODELS["latent"]) == {"mla", "moe", "mtp"}
    assert model_kinds(MODELS["gated delta"]) == {"full", "linear", "stateful", "hybrid", "dense"}
    assert model_kinds(MODELS["mamba alone"]) == {"ssm", "stateful", "dense"}
