"""What every lever has to keep, whichever files lie in ``levers/``."""

from __future__ import annotations

import copy
import re
import shlex
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from breakeven import api, catalog, registry, support
from breakeven.axes import move
from breakeven.boundaries import boundary, gain_along
from breakeven.draws import MEDIAN, Draws
from breakeven.efficiencies import table
from breakeven.evaluator import evaluate
from breakeven.judge import NOTHING, arms, gain_draws, gains
from breakeven.kernels import kv_kernel, kv_names, weight_kernel, weight_names
from breakeven.messages import LANGUAGES, text
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine, Speculative
from breakeven.spec.workload import Acceptance, Price, Workload

LEVERS = tuple(api.levers())
OPEN = {"input_tokens": 2000.0, "output_tokens": 300.0, "request_rate": 6.0, "prefix_hit_rate": 0.3}
CLOSED = {"input_tokens": 2000.0, "output_tokens": 300.0, "concurrency": 48.0, "prefix_hit_rate": 0.3}
PINNED = {"batch": 32.0, "context_tokens": 4000.0}
ON = {
    "enable_prefix_caching": True, "kv_cache_dtype": "fp8", "quantization": "fp8",
    "speculative": Speculative(method="eagle3", num_speculative_tokens=3),
}  # fmt: skip


def build(
    model: str = "llama-3.1-8b",
    device: str = "h100-sxm",
    *,
    engine: dict[str, object] | None = None,
    price: Price | None = None,
    **workload: object,
) -> Deployment:
    settings = Engine(**{"enable_prefix_caching": False, "max_num_seqs": 64, **(engine or {})})
    devices = settings.tensor_parallel_size * settings.pipeline_parallel_size
    return Deployment(
        model=api.model(model), hardware=api.hardware(device, devices), engine=settings, workload=Workload(**workload), price=price
    )


DEPLOYMENTS = {
    "open": build(**OPEN),
    "closed": build(**CLOSED),
    "pinned": build(**PINNED),
    "everything on": build(engine=ON, acceptance=Acceptance(alpha=0.75), **OPEN),
    "mixture": build("qwen3-30b-a3b", "h200-sxm", **CLOSED),
    "latent": build("deepseek-v3", "h200-sxm", engine={"tensor_parallel_size": 8}, **CLOSED),
    "stored in four bits": build("gpt-oss-20b", "h100-sxm", **OPEN),
    "another engine": build("qwen2.5-7b", "m3-max-40c", engine={"name": "llamacpp", "max_num_seqs": 4}, **{**OPEN, "request_rate": 0.02}),
    "staged": build(
        "llama-3.1-70b", "a100-sxm-80", engine={"tensor_parallel_size": 2, "pipeline_parallel_size": 2}, **{**OPEN, "request_rate": 1.0}
    ),
}
each_lever = pytest.mark.parametrize("name", LEVERS)
each_deployment = pytest.mark.parametrize("where", DEPLOYMENTS)


@cache
def advice(where: str):
    return api.advise(DEPLOYMENTS[where], draws=64)


def settings_of(name: str, d: Deployment) -> list[str]:
    lever = api.lever_named(name)
    now = lever.setting_on(d)
    return [c.setting for c in lever.candidates(d) if c.refused is None] or ([now] if now else [])


def test_the_levers_are_the_files_of_their_folder() -> None:
    assert set(LEVERS) == set(registry.names("levers")) >= {"batching", "kv_quant", "prefix_cache", "speculation", "weight_quant"}


@each_lever
def test_a_lever_says_what_it_is(name: str) -> None:
    module = registry.module("levers", name)
    lever = module.LEVER
    assert lever.name == name
    assert module.__doc__
    assert lever.ledger in ("memory", "bandwidth", "compute", "interconnect")
    assert all(getattr(module, each).__doc__ for each in ("setting_on", "candidates", "apply", "remove", "sigma", "because"))
    assert table("sigma")[name]


def test_every_number_a_lever_takes_has_a_source() -> None:
    assert all(weight_kernel(name).source for name in weight_names())
    assert all(kv_kernel(name).source for name in kv_names())
    assert all(entry["source"] for name, entry in table("acceptance").items() if isinstance(entry, dict))
    numbers = [
        entry for section in table("prior").values() if isinstance(section, dict) for entry in section.values() if isinstance(entry, dict)
    ]
    assert len(numbers) > 30
    assert all(entry["source"] and entry["low"] <= entry["value"] <= entry["high"] for entry in numbers if "value" in entry)


@each_lever
@each_deployment
def test_the_setting_in_force_applied_again_gains_exactly_nothing(name: str, where: str) -> None:
    lever, d = api.lever_named(name), DEPLOYMENTS[where]
    for setting in settings_of(name, d):
        on = lever.apply(d, setting)
        now = lever.setting_on(on)
        assert now is not None
        again = lever.apply(on, now)
        assert again == on
        both = arms(lever, on, now, Draws(32, 0))
        for gain in gains(both, 0.1, priced=True).values():
            assert (gain.gain, gain.low, gain.high) == (1.0, 1.0, 1.0)


@each_lever
@each_deployment
def test_edits_are_pure_and_idempotent(name: str, where: str) -> None:
    lever, d = api.lever_named(name), DEPLOYMENTS[where]
    before = copy.deepcopy(d)
    for setting in settings_of(name, d):
        on = lever.apply(d, setting)
        assert lever.apply(on, setting) == on
        if name != "batching":
            assert lever.setting_on(on) == setting
            assert lever.setting_on(lever.remove(on)) is None
        assert lever.remove(lever.remove(on)) == lever.remove(on)
        lever.flags(on, setting)
        lever.unflags(on)
    assert d == before


def changed(name: str, d: Deployment) -> set[str]:
    """The engine's settings that a lever changes, on and off again."""
    lever, found = api.lever_named(name), set()
    for setting in settings_of(name, d):
        for edited in (lever.apply(d, setting), lever.remove(lever.apply(d, setting))):
            found |= {field for field in d.engine.__dataclass_fields__ if getattr(d.engine, field) != getattr(edited.engine, field)}
    return found


@each_lever
def test_a_lever_touches_only_settings_of_its_own(name: str) -> None:
    lever = api.lever_named(name)
    for where in ("open", "everything on"):
        d = DEPLOYMENTS[where]
        others = set().union(*(changed(other, d) for other in LEVERS if other != name))
        assert not changed(name, d) & others
        for setting in settings_of(name, d):
            on = lever.apply(d, setting)
            assert on.hardware == d.hardware
            assert replace(on.model, stored=d.model.stored) == d.model


def test_each_lever_changes_something_somewhere() -> None:
    assert all(any(changed(name, d) for d in DEPLOYMENTS.values()) for name in LEVERS)


@each_lever
@each_deployment
def test_what_is_not_supported_says_why(name: str, where: str) -> None:
    found = advice(where).levers[name]
    for candidate in api.lever_named(name).candidates(DEPLOYMENTS[where]):
        assert candidate.refused is None or candidate.refused.key.startswith("lever.")
    for one in (found, *found.alternatives):
        assert one.because
        if one.verdict == "not_supported":
            assert all(str(message.key).startswith("lever.") for message in one.because)


@each_lever
@each_deployment
def test_every_setting_offered_has_a_flag_for_its_engine(name: str, where: str) -> None:
    d = DEPLOYMENTS[where]
    lever = api.lever_named(name)
    for candidate in lever.candidates(d):
        if candidate.refused is None:
            assert d.engine.name in lever.flags(d, candidate.setting)
            assert lever.flags(d, candidate.setting)[d.engine.name] or d.engine.name in support.flag_notes(name, "on", candidate.setting)


PROSE = re.compile(r"(?<![-\w])(an?|the|without|with|of|checkpoint|file)(?![-\w])", re.IGNORECASE)


@each_lever
def test_a_flag_is_only_what_is_typed_and_a_note_is_in_both_languages(name: str) -> None:
    for setting in {key for settings in support.flag_table(name).values() for key in settings}:
        values = {"k": 3, "rows": 4, "topk": 1, "model": "org/head"}
        typed = [*support.flags(name, "on", setting, **values).values(), *support.flags(name, "off").values()]
        assert not [flag for flag in typed if PROSE.search(flag) or "{{" in flag or flag.count("'") % 2]
        for way in ("on", "off"):
            for note in support.flag_notes(name, way, setting).values():  # type: ignore[arg-type]
                assert all(text(note, language) for language in LANGUAGES)


@pytest.mark.parametrize("engine", catalog.names("engines"))
def test_every_engine_has_its_own_commands_to_measure_with(engine: str) -> None:
    found = catalog.commands(engine)
    assert {"bench", "bench_prompts", "acceptance", "tokens", "requests"} <= set(found)
    for command in found.values():
        filled = command.format(model="org/name", input=100, output=10, concurrency=4, prompts=64, room=440)
        assert shlex.split(filled) and "PORT" not in filled and "{{" not in filled
    others = {"vllm": "vllm bench", "sglang": "sglang", "llamacpp": "llama-batched", "trtllm": "tensorrt_llm", "tgi": "text-generation"}
    assert others.get(engine, "") in found["bench"]


def test_commands_name_the_model_as_it_is_published_and_suit_the_engine() -> None:
    d = build("llama-3.1-70b", engine={"tensor_parallel_size": 4, "enable_prefix_caching": True}, **{**OPEN, "prefix_hit_rate": None})
    for engine, said in (("vllm", "vllm bench serve"), ("sglang", "sglang.bench_serving"), ("trtllm", "benchmark_serving")):
        found = api.advise(replace(d, engine=replace(d.engine, name=engine)), draws=64)
        commands = [lever.measure_next.command for lever in found.levers.values() if lever.measure_next is not None]
        assert any(said in command and "meta-llama/Llama-3.1-70B" in command for command in commands), commands
        assert not [command for command in commands if "llama-3.1-70b" in command]
    asked = replace(d, model=api.model("meta-llama/Llama-3.1-70B-Instruct"))
    assert asked.model.hf_ids[0] == "meta-llama/Llama-3.1-70B-Instruct"


def test_the_reason_of_batching_names_the_cap_as_set() -> None:
    d = build("llama-3.1-8b", "l4", engine={"max_num_seqs": 256}, **{**OPEN, "request_rate": 0.1})
    found = api.advise(d, draws=64).levers["batching"]
    assert found.state == "on" and float(evaluate(d).cap) < 256
    assert found.because[0].values["cap"] == 256
    low = replace(d, engine=replace(d.engine, max_num_seqs=2))
    assert api.advise(low, draws=64).levers["batching"].because[0].values["cap"] == 2


@each_deployment
def test_a_gain_is_above_one_when_it_is_better(where: str) -> None:
    off = evaluate(DEPLOYMENTS[where])
    quick = replace(off, tpot_s=off.tpot_s / 2, throughput=off.throughput * 2)
    assert np.all(gain_draws(off, quick, "tpot") == 2)
    assert np.all(gain_draws(off, quick, "throughput") == 2)
    assert np.all(gain_draws(off, quick, "cost") == 2)
    assert np.all(gain_draws(quick, off, "throughput") == 0.5)


def gain_at(both, axis: str, value: float, metric: str) -> float:
    """The gain at one value, each arm evaluated by itself."""
    off, on = (evaluate(move(d, axis, value)) for d in (both.off, both.on))
    found = gain_draws(off, on, metric)
    assert found is not None
    return float(found)


@each_lever
@pytest.mark.parametrize("where", ["open", "closed", "pinned", "everything on", "mixture"])
def test_the_sign_changes_at_a_break_even_and_it_pays_where_it_says(name: str, where: str) -> None:
    d, found = DEPLOYMENTS[where], advice(where).levers[name]
    lever = api.lever_named(name)
    both = arms(lever, lever.remove(d), found.setting, MEDIAN)
    for line in found.boundaries:
        low, high = line.looked_at
        logarithmic = line.axis not in ("prefix_hit_rate", "acceptance_length", "draft_tokens")
        if line.axis == "draft_tokens":
            continue
        step = (high / low) ** (1 / 28) if logarithmic else (high - low) / 28

        def beside(value: float, cells: float, low=low, high=high, logarithmic=logarithmic, step=step) -> float:
            return float(np.clip(value * step**cells if logarithmic else value + step * cells, low, high))

        for even in line.break_even:

            def at_cells(cells: float, even=even, line=line, beside=beside) -> float:
                return gain_at(both, line.axis, beside(even.value, cells), line.metric)

            assert low <= even.value <= high
            assert even.low is None or even.low <= even.value * (1 + 1e-6)
            assert even.high is None or even.high >= even.value * (1 - 1e-6)
            # Caps are whole numbers, so a curve is a fine sawtooth: what stays within half a per cent of 1 has no side.
            before, after = (
                next(gain for cells in (0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 8) if abs((gain := at_cells(sign * cells)) - 1) > NOTHING)
                for sign in (-1, 1)
            )
            assert (before >= 1) != (after >= 1), (line.axis, even, before, after)
        for start, end in line.pays_on:
            at = [low if start is None else start, high if end is None else end]
            middle = float(np.sqrt(at[0] * at[1]) if logarithmic else np.mean(at))
            assert gain_at(both, line.axis, middle, line.metric) >= 1.1 * (1 - 5e-3), (line.axis, start, end)
        for (_, end), (start, _) in zip(line.pays_on, line.pays_on[1:], strict=False):
            assert end is not None
            assert start is not None
            assert end <= start
            middle = float(np.sqrt(end * start) if logarithmic else (end + start) / 2)
            assert gain_at(both, line.axis, middle, line.metric) < 1.1 * (1 + 5e-3)
        if not line.pays_on:
            assert all(gain_at(both, line.axis, beside(low, cells), line.metric) < 1.1 for cells in (0, 9, 18, 28))


def test_some_boundaries_were_there_to_be_checked() -> None:
    lines = [
        line
        for where in ("open", "closed", "pinned", "everything on", "mixture")
        for found in advice(where).levers.values()
        for line in found.boundaries
    ]
    assert sum(len(line.break_even) for line in lines) > 10
    assert sum(len(line.pays_on) for line in lines) > 10


def test_a_boundary_asked_for_by_name_is_the_one_of_the_advice() -> None:
    d = DEPLOYMENTS["closed"]
    asked = api.boundary("kv_quant", d, "context_tokens", draws=64)
    assert asked == next(line for line in advice("closed").levers["kv_quant"].boundaries if line.axis == "context_tokens")


@each_lever
def test_arrays_along_an_axis_give_what_numbers_give(name: str) -> None:
    lever, d = api.lever_named(name), DEPLOYMENTS["open"]
    for setting in settings_of(name, d):
        both = arms(lever, d, setting, MEDIAN)
        for axis, values in (
            ("request_rate", [0.5, 5.0, 12.0]),
            ("context_tokens", [300.0, 3000.0, 30000.0]),
            ("batch", [1.0, 30.0, 200.0]),
        ):
            found = gain_along(both, axis, np.array(values), "tpot", MEDIAN)
            assert np.allclose(found, [gain_at(both, axis, value, "tpot") for value in values], rtol=1e-9)


def test_levers_in_force_are_on_and_gain_what_they_would_gain() -> None:
    d, found = DEPLOYMENTS["everything on"], advice("everything on").levers
    for name, setting in (("kv_quant", "fp8"), ("weight_quant", "fp8"), ("speculation", "eagle3 k=3"), ("prefix_cache", "on")):
        lever, told = api.lever_named(name), found[name]
        assert (told.state, told.setting) == ("on", setting)
        off = lever.remove(d)
        assert lever.setting_on(off) is None
        expected = gains(arms(lever, off, setting, Draws(64, 0)), 0.1, priced=False)
        assert told.metrics == expected
        assert told.unset[d.engine.name] or d.engine.name in support.flag_notes(name, "off")


def test_formats_stored_in_the_checkpoint_are_on() -> None:
    assert (advice("latent").levers["weight_quant"].state, advice("latent").levers["weight_quant"].setting) == ("on", "fp8")
    assert (advice("stored in four bits").levers["weight_quant"].state, advice("stored in four bits").levers["weight_quant"].setting) == (
        "on",
        "mxfp4_weight_only",
    )


@each_deployment
def test_all_combinations_are_there_and_the_one_in_force_changes_nothing(where: str) -> None:
    d, found = DEPLOYMENTS[where], advice(where)
    usable = [name for name, lever in found.levers.items() if lever.verdict != "not_supported"]
    assert len(found.best.all) == 2 ** len(usable)
    assert len({combination.levers for combination in found.best.all}) == len(found.best.all)
    in_force = {name for name in usable if api.lever_named(name).setting_on(d) is not None}
    same = next(c for c in found.best.all if {entry.partition(":")[0] for entry in c.levers} == in_force)
    for interval in same.metrics.values():
        assert (interval.low, interval.median, interval.high) == (1.0, 1.0, 1.0)
    assert found.best.all[0] == found.best.combination


def test_levers_are_not_additive() -> None:
    d = DEPLOYMENTS["closed"]
    edits = (("weight_quant", "int4_marlin"), ("speculation", "eagle3 k=3"))
    each = [float(gain_draws(evaluate(d), evaluate(api.lever_named(name).apply(d, setting)), "tpot")) for name, setting in edits]
    both = d
    for name, setting in edits:
        both = api.lever_named(name).apply(both, setting)
    together = float(gain_draws(evaluate(d), evaluate(both), "tpot"))
    assert together != pytest.approx(each[0] * each[1], rel=0.02)


def test_a_price_adds_cost_and_nothing_else() -> None:
    plain, priced = advice("open"), api.advise(replace(DEPLOYMENTS["open"], price=Price(per_device_hour=2.0)), draws=64)
    for name in LEVERS:
        assert set(priced.levers[name].metrics) - set(plain.levers[name].metrics) == {"cost"}
        assert "cost" not in plain.levers[name].metrics


def test_boundary_of_equal_arms_has_no_break_even() -> None:
    lever = api.lever_named("batching")
    d = DEPLOYMENTS["open"]
    both = arms(lever, d, str(d.engine.max_num_seqs), MEDIAN)
    line = boundary(both, "request_rate", "e2e", 0.1, MEDIAN)
    assert line is not None
    assert line.break_even == ()
    assert line.pays_on == ()


def test_a_cache_format_the_checkpoint_asks_for_is_on_and_can_be_taken_off() -> None:
    d = DEPLOYMENTS["closed"]
    asks = replace(d, model=replace(d.model, kv_scheme="fp8"))
    lever = api.lever_named("kv_quant")
    assert lever.setting_on(asks) == "fp8"
    assert lever.setting_on(lever.remove(asks)) is None
    assert evaluate(lever.remove(asks)).room.kv_bytes_per_token == 2 * evaluate(asks).room.kv_bytes_per_token
