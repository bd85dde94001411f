"""One measured step, one time of the model for it: ``observe`` and ``advise`` say the same ratio, and what the model's time holds."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from observations import MEASURED, observation
from slot_engine import SlotEngine, watch

import breakeven as be
from breakeven import api, observe_report
from breakeven.compose import Language, compose
from breakeven.model_step import model_step
from breakeven.observation import page as pages
from breakeven.observation.record import Record
from breakeven.observation.scrape import Read
from breakeven.observation.timeline import Timeline
from breakeven.spec.evidence import Evidence, Figure, Told
from breakeven.spec.workload import Workload
from breakeven.use_cases import observe as observing

FLAGS = {"model": "llama-3.1-8b", "hardware": "rtx-4090"}
H100 = {"model": "llama-3.1-8b", "hardware": "h100-sxm"}
RATIO = {"en": re.compile(r"([\d.,]+) of it"), "zh": re.compile(r"为(?:预测的|其) ([\d.,]+) 倍")}
HOLDS = {"en": ("with the prompts read", "decoding alone"), "zh": ("含其间的 prompt", "仅 decode")}


@dataclass(frozen=True, kw_only=True)
class Server:
    """What was read of a server, what it says of itself, and what is said of it."""

    timeline: Timeline
    told: Told
    flags: Mapping[str, str]


def of_slots(engine: SlotEngine, seconds: float) -> Server:
    told = Told(engine="llamacpp", settings={"max_num_seqs": 4, "max_model_len": 4096})
    return Server(timeline=watch(engine, seconds).record.timeline(), told=told, flags=FLAGS)


def without_prompts() -> Server:
    """Prompts of one token each."""
    return of_slots(SlotEngine([(1, 200)] * 400), 200.0)


def some_prompts() -> Server:
    """Requests of all lengths, so that some decode while the prompts of others are read."""
    drawn = random.Random(5)
    requests = [(drawn.randrange(250, 750), 1 + int(drawn.expovariate(1.0 / 80.0))) for _ in range(400)]
    return of_slots(SlotEngine(requests), 300.0)


def untold_prompts() -> Server:
    """Nobody comes or goes, so that neither rate nor lengths are told."""
    return of_slots(SlotEngine([(40, 5000)] * 3, clients=3), 30.0)


def half_prompts() -> Server:
    """A vLLM with ten sequences in steps of 20 ms, whose long prompts take half of the time by the model too."""
    record = Record(every_s=2.0)
    for at in range(40):
        tokens = 10.0 * (100.0 + 2.0 * at) / 0.02
        requests = tokens / 200.0
        told = {
            "num_requests_running": 10.0,
            "generation_tokens_total": tokens,
            "inter_token_latency_seconds_sum": tokens * 0.02,
            "inter_token_latency_seconds_count": tokens,
            "prompt_tokens_total": requests * 9000.0,
            "request_success_total": requests,
            "time_to_first_token_seconds_count": requests,
            "time_to_first_token_seconds_sum": requests * 0.5,
        }
        page = "".join(f"vllm:{name} {value!r}\n" for name, value in told.items()).encode()
        record.add(Read(source="a", at_s=1e9 + 2.0 * at, page=pages.read(page)))
    return Server(timeline=record.timeline(), told=Told(engine="vllm", version="0.11.0"), flags=H100)


SERVERS = {"no prompts": without_prompts, "some prompts": some_prompts, "half prompts": half_prompts, "prompts untold": untold_prompts}


def observed(server: Server) -> Evidence:
    """As ``breakeven observe URL --model … --hardware …`` keeps it."""
    deployed: dict[str, Any] = {"file": None, "launch": None, "log": None, "catalog_dirs": (), "flags": server.flags}
    bare = observing.evidence_of(server.timeline, server.told, "http://one")
    return observing.with_ledgers(bare, server.timeline, "http://one", deployed)


def said(server: Server, language: Language) -> tuple[str, str]:
    """What both verbs say of the step."""
    evidence = observed(server)
    ledgers = next(part for part in observe_report.compose(evidence, language).parts if part.bars)
    d, warnings = be.load(evidence=evidence, flags=server.flags)
    advised = compose(be.advise(d, warnings=warnings, draws=16), language).observed
    assert advised
    return next(line for line in ledgers.lines if RATIO[language].search(line)), advised.sentence


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", SERVERS)
def test_both_verbs_say_one_ratio_of_a_step_and_what_the_models_time_holds(name: str, language: Language) -> None:
    sentences = said(SERVERS[name](), language)
    ratios = [RATIO[language].findall(sentence) for sentence in sentences]
    assert len(ratios[0]) == 1 and ratios[0] == ratios[1], sentences
    wanted, other = HOLDS[language][::-1] if name == "prompts untold" else HOLDS[language]
    assert all(wanted in sentence and other not in sentence for sentence in sentences), sentences


def test_the_documents_hold_the_same_ratio_to_the_last_digit() -> None:
    for made in SERVERS.values():
        server = made()
        evidence = observed(server)
        d, _ = be.load(evidence=evidence, flags=server.flags)
        assert d.observed is not None and d.observed.tpot_s and d.observed.model_tpot_s
        ratio = evidence.figures["step_s"].value / evidence.figures["predicted_step_s"].value
        assert d.observed.tpot_s / d.observed.model_tpot_s == pytest.approx(ratio, rel=1e-9)


def test_prompts_are_half_of_the_models_step_where_they_are_half_of_the_time() -> None:
    evidence = observed(half_prompts())
    d, _ = be.load(evidence=evidence, flags=H100)
    pinned = replace(d, calibration=None, workload=Workload(batch=10.0, context_tokens=evidence.figures["context_tokens"].value))
    decode = float(np.median(be.evaluate(pinned).step_s))
    whole = evidence.figures["predicted_step_s"].value
    assert 0.4 < 1.0 - decode / whole < 0.6


def test_the_measurement_does_not_correct_what_it_is_held_against() -> None:
    """What the ledgers are asked with carries the measured row; the model's own time is that without it."""
    server = untold_prompts()
    evidence = observed(server)
    d, _ = be.load(evidence=evidence, flags=server.flags)
    corrected, plain = (float(np.median(be.evaluate(one).step_s)) for one in (d, replace(d, calibration=None)))
    assert corrected > 1.5 * plain and evidence.figures["predicted_step_s"].value == pytest.approx(plain, rel=1e-6)


def test_prompts_that_take_half_of_the_time_double_the_models_step_and_leave_its_ratio() -> None:
    """A server that is as quick as the model says: its steps hold as many prompts as arrive in them."""
    d, _ = be.load(flags={**H100, "batch": 12, "input": 1000, "output": 280, "hit_rate": 0.0, "engine_version": "0.11.0"})
    point = be.evaluate(d)
    decode, prompt = (float(np.median(x)) for x in (point.step_s, point.interference_s))
    for share in (0.0, 0.25, 0.5, 0.75):
        step, rate = decode / (1.0 - share), share / prompt
        values = {**MEASURED, "prefix_hit_rate": 0.0, "step_s": step, "tpot_s": step, "request_rate_per_s": rate}
        found = model_step({name: Figure(value=value, sure="counted", how="") for name, value in values.items()}, d, 1, 1)
        assert found is not None and found.with_prompts
        assert found.ratio == pytest.approx(1.0, rel=1e-9) and found.model_s == pytest.approx(decode / (1.0 - share), rel=1e-9)


@pytest.mark.parametrize(
    ("prompt", "output", "load"), [(4000, 200, {"rate": 5.0}), (500, 300, {"rate": 6.0}), (4000, 200, {"concurrency": 16})]
)
def test_a_simulated_server_as_quick_as_the_model_is_told_to_be_so(prompt: int, output: int, load: dict[str, float]) -> None:
    """Whether clients come by themselves or wait for their answers, and however much of its time is prompts."""
    flags = {**H100, "input": prompt, "output": output}
    served = api.simulate(be.load(flags={**flags, **load})[0], requests=1500).summary
    values = {"effective_batch": served.batch.mean, "tpot_s": served.times["tpot"].mean, "request_rate_per_s": served.requests_per_s}
    lengths = {"input_tokens": float(prompt), "output_tokens": float(output)}
    figures = {name: Figure(value=value, sure="counted", how="") for name, value in {**values, **lengths}.items()}
    d, _ = be.load(flags={**flags, **load})
    whole = model_step(figures, d, 1, 1)
    assert whole is not None and whole.ratio == pytest.approx(1.0, abs=0.1), "prompts come in lumps, and more of them to who decodes"
    decode = model_step({name: figure for name, figure in figures.items() if name != "request_rate_per_s"}, d, 1, 1)
    assert decode is not None and not decode.with_prompts and decode.ratio > 1.05


def test_two_replicas_read_half_of_the_prompts_each() -> None:
    d, _ = be.load(evidence=observation())
    one = model_step(observation().figures, d, 1, 1)
    both = {**observation().figures, "request_rate_per_s": replace(observation().figures["request_rate_per_s"], value=8.0)}
    two = model_step(both, d, 2, 1)
    assert one is not None and two is not None and two.model_s == pytest.approx(one.model_s, rel=1e-12)


def test_a_time_far_from_the_models_is_said_with_the_ratio_that_stands_beside_it() -> None:
    evidence = observation(measured={**MEASURED, "tpot_s": 0.08, "step_s": 0.08})
    d, warnings = be.load(evidence=evidence)
    [far] = [one for one in warnings if one.key == "warning.evidence_far"]
    assert d.observed is not None and d.observed.tpot_s and d.observed.model_tpot_s
    assert far.values["times"] == d.observed.far == pytest.approx(d.observed.tpot_s / d.observed.model_tpot_s)
    assert far.values["model"] == pytest.approx(d.observed.model_tpot_s)


def test_a_step_that_is_not_told_is_made_of_the_time_per_token() -> None:
    d, _ = be.load(evidence=observation())
    told = observation().figures
    tokens = {name: figure for name, figure in told.items() if name != "step_s"}
    whole, made = model_step(told, d, 1, 1), model_step(tokens, d, 1, 1)
    assert whole is not None and made is not None and made.ratio == pytest.approx(whole.ratio)
    assert model_step({name: figure for name, figure in tokens.items() if name != "tpot_s"}, d, 1, 1) is None
    assert api.evaluate(d).fits
