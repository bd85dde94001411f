"""The parts of a profile that need a deployment or identities, as documents: the batch over time, reuse, drafts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from breakeven import profile_document as d
from breakeven import schedule
from breakeven.compose import Language, figure, sure
from breakeven.known_acceptance import KnownAcceptance
from breakeven.levers import speculation
from breakeven.messages import say, text
from breakeven.occupancy import Occupancy
from breakeven.phrasing import headline
from breakeven.replay.result import Drafting, per_draft
from breakeven.spec.parallel import layout
from breakeven.traffic.batches import Batches
from breakeven.traffic.drafts import Drafts
from breakeven.traffic.reuse import Reuse

SPLITS = 10


def batches(found: Batches, language: Language) -> d.ProfileBatches:
    """The effective batch over time."""
    point, best = found.point, found.best
    saturated = bool(np.median(point.saturated))
    return d.ProfileBatches(
        deployment=headline(found.deployment, language),
        replicas=found.deployment.replicas,
        by_windows=_occupancy(found.occupancy),
        by_simulation=None if found.simulated is None else _occupancy(found.simulated),
        window_s=sure(found.window_s),
        batches=[sure(float(batch)) for batch in found.batches],
        tpot_s=figure(float(np.median(point.tpot_s))),
        ttft_s=None if saturated or point.ttft_s is None else figure(float(np.median(point.ttft_s))),
        speculation=found.drafting,
        schedule=[
            d.ProfileSchedule(k=one.k, first=one.first, to=one.to, to_low=figure(one.to_low), to_high=figure(one.to_high))
            for one in found.schedule
        ],
        schedule_setting=schedule.setting(found.schedule, speculation.remove(found.deployment)),
        sentence=say(
            "profile.batch_saturated" if best.saturated > 0.0 else "profile.batch",
            language,
            mean=best.mean,
            low=best.quantile(0.1),
            high=best.quantile(0.9),
            token=best.seen_by_a_token,
            few=best.few,
            share=best.saturated,
        ),
    )


def _occupancy(found: Occupancy) -> d.ProfileOccupancy:
    quantiles = {f"p{percent}": found.quantile(percent / 100) for percent in (5, 10, 50, 90, 95, 99)}
    return d.ProfileOccupancy(
        mean=sure(found.mean),
        seen_by_a_token=sure(found.seen_by_a_token),
        seen_by_a_sequence=sure(found.seen_by_a_sequence),
        share_below_four=sure(found.few),
        share_idle=sure(found.idle),
        saturated_share=sure(found.saturated),
        **quantiles,
    )


def reuse(found: Reuse, on: Batches | None, language: Language) -> d.ProfileReuse:
    """Repeated prefixes, with what a cache of that size takes on the deployment."""
    curve, split = found.curve, found.divergence
    token = None if on is None else on.point.room.kv_bytes_per_token * layout(on.deployment.model, on.deployment.engine).devices
    return d.ProfileReuse(
        block_tokens=curve.block_tokens,
        partial=found.partial,
        blocks=curve.blocks,
        unique_blocks=curve.unique,
        unbounded_hit_rate=sure(curve.unbounded),
        unbounded_block_hit_rate=sure(curve.unbounded_blocks),
        sampling_error=sure(curve.error),
        capacities=[
            d.ProfileCapacity(
                tokens=one.tokens,
                hit_rate=sure(one.hit_rate),
                touched=figure(one.touched),
                cache_bytes=None if token is None else figure(one.tokens * token),
            )
            for one in found.capacities
        ],
        **_left_over(found),
        diverged_share=None if split is None else sure(split.diverged),
        extended_share=None if split is None else sure(split.extended),
        splits=[]
        if split is None
        else [
            d.ProfileSplit(
                position_tokens=one.position_tokens, requests=one.requests, continuations=one.continuations, share=sure(one.share)
            )
            for one in split.splits[:SPLITS]
        ],
        notes=[text(note, language) for note in curve.notes],
    )


def _left_over(found: Reuse) -> dict[str, Any]:
    """Where the memory ledger meets the curve, and what caching could save at most."""
    at, second, most = found.left_over, found.second, found.ceiling
    return {
        "left_over_tokens": None if at is None else sure(at.left_over_tokens),
        "prompt_room_tokens": None if at is None else sure(at.capacity_tokens),
        "left_over_hit_rate": None if at is None else sure(at.hit_rate),
        "over_time_hit_rate": figure(found.over_time),
        "quantised_setting": None if second is None else second.setting,
        "quantised_hit_rate": None if second is None else sure(second.on.hit_rate),
        "ceiling_tokens": None if most is None else sure(most.tokens),
        "ceiling_prefill": None if most is None else figure(most.prefill),
        "ceiling_total": None if most is None else figure(most.total),
    }


def drafts(found: Drafts, language: Language) -> d.ProfileDrafts:
    """Drafting replayed, by k and by group, and by batch on the deployment."""
    replayed = found.replay
    others = say("replay.others", language, groups=replayed.other_groups)
    return d.ProfileDrafts(
        method=replayed.method,
        rule=replayed.rule,
        settings=dict(replayed.settings),
        approximate=replayed.approximate,
        by_k=_by_k(replayed.total, replayed.approximate),
        groups={others if name is None else name: _by_k(group, replayed.approximate) for name, group in replayed.groups.items()},
        best_k=found.best_k,
        k_range=None if found.k_range is None else list(found.k_range),
        batch=found.batch,
        gain=figure(found.gain),
        by_batch=[d.ProfileBestK(batch=one.batch, k=one.k, gain=sure(one.gain)) for one in found.by_batch],
        group_k={others if name is None else name: k for name, k in (found.group_k or {}).items()},
        notes=[text(note, language) for note in found.notes],
    )


def acceptance(found: KnownAcceptance, language: Language) -> d.ProfileAcceptance:
    """The acceptance of the draft method, and where it is from."""
    return d.ProfileAcceptance(
        method=found.method,
        k=found.k,
        cumulative=[sure(share) for share in found.cumulative],
        low=None if found.low is None else [sure(share) for share in found.low],
        high=None if found.high is None else [sure(share) for share in found.high],
        source=found.source,
        provenance=text(found.provenance, language),
    )


def _by_k(found: Sequence[Drafting], approximate: bool) -> list[d.ProfileDrafting]:
    """Positions are of tokens: pieces of text have none."""
    return [
        d.ProfileDrafting(
            k=one.k,
            acceptance_length=sure(one.acceptance_length),
            low=None if one.length_interval is None else figure(one.length_interval[0]),
            high=None if one.length_interval is None else figure(one.length_interval[1]),
            acceptance_rate=figure(one.acceptance_rate),
            cumulative=[] if approximate else [sure(share) for share in one.cumulative],
            per_draft=[] if approximate else [sure(share) for share in per_draft(one)],
            conditional=[] if approximate else [figure(share) for share in one.conditional],
            drafted_share=sure(one.drafted_share),
            rounds=one.rounds,
            drafted=one.drafted,
            accepted=one.accepted,
        )
        for one in found
    ]
