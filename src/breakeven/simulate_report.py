"""A simulation becomes a document: sentences in the reader's language, every number plain and finite."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from breakeven import simulate_document as d
from breakeven.compose import Language, figure, sure
from breakeven.messages import say, text
from breakeven.phrasing import asked, headline, lever_title
from breakeven.simulation.arrays import Floats
from breakeven.simulation.result import Combination, DeviceTime, Gained, GroupFigures, Lattice, LeverGain, Paired, Simulation, Summary, Time
from breakeven.units import time_text

FIGURES_OF_A_SERIES = 6
GROUP_TIMES: tuple[Time, ...] = ("ttft", "tpot", "e2e")


def compose(found: Simulation, language: Language = "en") -> d.SimulationDocument:
    """The document of a simulation."""
    return d.SimulationDocument(
        language=language,
        title=d.SimulationTitle(deployment=headline(found.deployment, language), workload=_workload(found, language)),
        headline=_sentence(found.summary, found.load.replicas, language),
        load=_load(found),
        figures=_figures(found.summary, found.outcome.batch_s),
        series=d.SimulationSeries(
            bin_s=sure(found.series.bin_s),
            running=_listed(found.series.running),
            waiting=_listed(found.series.waiting),
            kv_share=_listed(found.series.kv),
            cached_share=_listed(found.series.cached),
        ),
        groups=[_group(one) for one in found.groups],
        lattice=None if found.lattice is None else _lattice(found.lattice, language),
        notes=list(dict.fromkeys(text(note, language) for note in found.notes)),
        seed=found.seed,
    )


def _workload(found: Simulation, language: Language) -> str:
    requests = found.summary.counts.offered
    if found.source:
        return say("simulate.title_trace", language, trace=found.source, requests=requests)
    return say("simulate.title_made_up", language, requests=requests, asked=asked(found.deployment, language))


def _sentence(summary: Summary, replicas: int, language: Language) -> str:
    """The answer in a sentence."""
    held, values = summary.counts, {"batch": summary.batch.mean}
    if not held.done:
        return say("simulate.headline_none", language, offered=held.offered)
    tails = {name: time_text(summary.times[name].p99) if name in summary.times else "—" for name in ("ttft", "tpot")}
    said = say(
        "simulate.headline" if replicas == 1 else "simulate.headline_replicas", language, **values, **tails, share=held.done / held.offered
    )
    if summary.good is not None:
        said = say("simulate.headline_good", language, sentence=said, good=summary.good / held.offered)
    return say("simulate.headline_saturated", language, sentence=said) if summary.saturated else said


def _load(found: Simulation) -> d.SimulationLoad:
    load = found.load
    return d.SimulationLoad(
        trace=found.source or None,
        arrivals="closed" if load.clients else "open",
        clients=load.clients or None,
        replicas=load.replicas,
        router=load.router,
        policy=found.policy,
        static_batch=found.static_batch,
        duration_s=figure(load.until_s),
        acceptance_cumulative=[sure(share) for share in load.acceptance],
    )


def _figures(s: Summary, seconds: Floats | None = None) -> d.SimulationFigures:
    return d.SimulationFigures(
        counts=d.SimulationCounts(**vars(s.counts)),
        times={
            name: d.SimulationPercentiles(n=one.n, **{key: sure(getattr(one, key)) for key in ("mean", "p50", "p90", "p95", "p99", "max")})
            for name, one in s.times.items()
        },
        promises=[d.SimulationPromise(key=one.key, limit_s=one.limit_s, value_s=figure(one.value_s), met=one.met) for one in s.promises],
        good=s.good,
        goodput_per_s=figure(s.goodput_per_s),
        requests_per_s=sure(s.requests_per_s),
        output_tokens_per_s=sure(s.output_tokens_per_s),
        batch=d.SimulationBatch(
            mean=sure(s.batch.mean),
            by_tokens=sure(s.batch.by_tokens),
            quantiles=dict(s.batch.quantiles),
            most=s.batch.most,
            share_idle=sure(s.batch.share_idle),
            seconds_by_size=[] if seconds is None else _listed(seconds[: s.batch.most + 1]),
        ),
        preemptions=s.preemptions,
        preempted_requests=s.preempted,
        prefix=d.SimulationPrefix(lookup_tokens=s.lookup_tokens, hit_tokens=s.hit_tokens, hit_rate=figure(s.hit_rate)),
        device=_device(s.device),
        energy=None
        if s.energy is None
        else d.SimulationEnergy(
            device_watts=s.energy.watts,
            joules=sure(s.energy.joules),
            joules_per_output_token=figure(s.energy.joules_per_output_token),
        ),
        saturated=s.saturated,
        end_s=sure(s.end_s),
        steps=s.steps,
    )


def _group(one: GroupFigures) -> d.SimulationGroup:
    ttft, tpot, e2e = (one.times.get(name) for name in GROUP_TIMES)
    return d.SimulationGroup(
        name=one.name,
        offered=one.offered,
        done=one.done,
        ttft_p50_s=None if ttft is None else ttft.p50,
        ttft_p99_s=None if ttft is None else ttft.p99,
        tpot_mean_s=None if tpot is None else tpot.mean,
        e2e_mean_s=None if e2e is None else e2e.mean,
    )


def _device(time: DeviceTime) -> d.SimulationDeviceTime:
    parts = {name: getattr(time, f"{name}_s") for name in ("prefill", "decode", "speculation", "idle")}
    whole = sum(parts.values())
    return d.SimulationDeviceTime(
        **{f"{name}_s": sure(value) for name, value in parts.items()},
        **{f"{name}_share": sure(value / whole) if whole else 0.0 for name, value in parts.items()},
    )


def _listed(values: Floats) -> list[float]:
    """A series to six figures."""
    return [float(f"{value:.{FIGURES_OF_A_SERIES}g}") for value in np.asarray(values).tolist()]


def _gains(gains: Mapping[Gained, Paired]) -> dict[str, d.SimulationGain]:
    return {
        name: d.SimulationGain(
            gain=figure(one.gain),
            low=figure(one.low),
            high=figure(one.high),
            difference_s=sure(one.difference),
            difference_low_s=figure(one.difference_low),
            difference_high_s=figure(one.difference_high),
            pairs=one.pairs,
            batches=one.batches,
        )
        for name, one in gains.items()
    }


def _lattice(lattice: Lattice, language: Language) -> d.SimulationLattice:
    return d.SimulationLattice(
        levers=[_lever(one, language) for one in lattice.levers],
        combinations=[_combination(one, language) for one in lattice.combinations],
        left_out=[
            d.SimulationLeftOut(lever=name, title=lever_title(name, "", language), reason=text(reason, language))
            for name, reason in lattice.left_out.items()
        ],
        interval=say("simulate.interval", language),
    )


def _lever(one: LeverGain, language: Language) -> d.SimulationLever:
    return d.SimulationLever(
        lever=one.lever,
        title=lever_title(one.lever, one.setting, language),
        setting=one.setting,
        state="on" if one.on_now else "off",
        fits=one.fits,
        gains=_gains(one.gains),
        model_sigma_step=sure(one.sigma.step),
        model_sigma_prefill=sure(one.sigma.prefill),
    )


def _combination(one: Combination, language: Language) -> d.SimulationCombination:
    titles = [lever_title(lever, setting, language) for lever, _, setting in (name.partition(":") for name in one.levers)]
    return d.SimulationCombination(
        levers=list(one.levers),
        title=say("simulate.plus", language).join(titles) or say("simulate.no_lever", language),
        as_it_stands=one.as_it_stands,
        fits=one.summary is not None,
        gains=_gains(one.gains),
        figures=None if one.summary is None else _figures(one.summary),
    )
