"""A profile becomes a document: sentences in the reader's language, numbers plain."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby

import numpy as np

from breakeven import profile_document as d
from breakeven.compose import Language
from breakeven.messages import say, text
from breakeven.profile_parts import acceptance, batches, drafts, reuse
from breakeven.traffic.arrivals import Arrivals, Dispersion
from breakeven.traffic.lengths import Distribution
from breakeven.traffic.profile import Profile


def compose(found: Profile, language: Language = "en", *, seed: int = 0) -> d.ProfileDocument:
    """The document of a profile."""
    trace, lengths, sessions = found.trace, found.lengths, found.sessions
    notes = [text(note, language) for note in trace.notes]
    told = None if found.reuse is None else reuse(found.reuse, found.batches, language)
    said = {*notes, *(told.notes if told is not None else ())}
    return d.ProfileDocument(
        language=language,
        file=d.ProfileFile(
            name=trace.name,
            form=trace.form,
            requests=trace.requests,
            span_s=None if trace.arrival_s is None else float(trace.arrival_s[-1]),
            damaged=trace.damaged,
            damaged_lines=list(trace.damaged_lines),
            damaged_records=list(trace.damaged_records),
            notes=notes,
        ),
        arrivals=None if found.arrivals is None else _arrivals(found.arrivals, language),
        lengths=d.ProfileLengths(
            input_tokens=_known(lengths.prompt),
            output_tokens=_distribution(lengths.output),
            correlation=lengths.correlation,
            cached_share=lengths.cached,
        ),
        sessions=None
        if sessions is None
        else d.ProfileSessions(sessions=sessions.sessions, requests=_known(sessions.requests), pause_s=_distribution(sessions.pause_s)),
        ttft_s=_distribution(found.ttft_s),
        e2e_s=_distribution(found.e2e_s),
        batches=None if found.batches is None else batches(found.batches, language),
        reuse=told,
        drafts=None if found.drafts is None else drafts(found.drafts, language),
        acceptance=None if found.acceptance is None else acceptance(found.acceptance, language),
        unanswered=[
            d.ProfileUnanswered(question=one.question, reason=text(one.reason, language), how=text(one.how, language))
            for one in found.unanswered
        ],
        warnings=[one for one in dict.fromkeys(text(one, language) for one in found.warnings) if one not in said],
        seed=seed,
    )


def _known(values: Distribution) -> d.ProfileDistribution:
    return d.ProfileDistribution(**asdict(values))


def _distribution(values: Distribution | None) -> d.ProfileDistribution | None:
    return None if values is None else _known(values)


def _arrivals(found: Arrivals, language: Language) -> d.ProfileArrivals:
    rates = found.rates
    peak, quiet = int(np.argmax(rates)), int(np.argmin(rates))
    return d.ProfileArrivals(
        rate_per_s=found.rate,
        window_s=found.window_s,
        rates_per_s=[float(rate) for rate in rates],
        peak_rate_per_s=float(rates[peak]),
        peak_at_s=peak * found.window_s,
        quiet_rate_per_s=float(rates[quiet]),
        quiet_at_s=quiet * found.window_s,
        variation=found.variation,
        at_once=found.at_once,
        dispersions=[d.ProfileDispersion(**asdict(one), kind=one.kind) for one in found.dispersions],
        sentence=_burstiness(found.dispersions, language),
    )


def _burstiness(found: tuple[Dispersion, ...], language: Language) -> str:
    """How the counts compare with Poisson, over every length of window; windows of one kind in one clause."""
    if not found:
        return say("profile.dispersion_unknown", language)
    told = []
    for kind, some in groupby(found, key=lambda one: one.kind):
        key = "profile.dispersion_window" if kind == "poisson" else "profile.dispersion_at"
        at = say("profile.list_and", language).join(say(key, language, index=one.index, window=one.window_s) for one in some)
        told.append(say(f"profile.dispersion_{kind}", language, at=at))
    return say("profile.list_join", language).join(told)
