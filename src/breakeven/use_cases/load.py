"""All that a user has, read and put together: the deployment, the cache and the step time that were measured, the trace's reuse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from breakeven import catalog
from breakeven.logged_pool import Pool, pool_of, with_measured_pool
from breakeven.messages import Message
from breakeven.observed_deployment import as_told, with_observed
from breakeven.origin.resolve import Resolved, resolve
from breakeven.spec.deployment import Deployment


def load(**sources: object) -> tuple[Deployment, tuple[Message, ...]]:
    """A deployment from a file, flags, a launch command, a start-up log and an observation, with what there is to say about them."""
    folders: Any = sources.pop("catalog_dirs", ())
    resolved = resolve(**sources, catalog_dirs=catalog.user_folders(folders))  # type: ignore[arg-type]
    deployment, told = _with_pool(resolved)
    if resolved.trace is not None and (resolved.trace.hash_ids is not None or resolved.trace.prompt_ids is not None):
        from breakeven.traffic.hits import with_hits

        deployment, reused = with_hits(deployment, resolved.trace)
        told = (*told, *reused)
    deployment, seen = with_observed(deployment, resolved.evidence)
    return deployment, (*resolved.warnings, *told, *seen)


def _with_pool(resolved: Resolved) -> tuple[Deployment, tuple[Message, ...]]:
    """The cache as it was told of the settings that the engine ran with: what it leaves beside the cache is then kept for others."""
    d = resolved.deployment
    ran = d if resolved.evidence is None else as_told(d, resolved.evidence)
    found, told = with_measured_pool(ran, _pool(resolved))
    if ran is d or found is ran:
        return found if ran is d else d, told
    engine = replace(d.engine, runtime_reserve_bytes=found.engine.runtime_reserve_bytes)
    return replace(d, engine=engine, provenance=found.provenance), told


def _pool(resolved: Resolved) -> Pool | None:
    """The cache as the running engine tells it, else as its start-up log does."""
    told = None if resolved.evidence is None else resolved.evidence.told
    if told is not None and told.kv_tokens is not None:
        return Pool(
            tokens=told.kv_tokens,
            pages_unified=told.engine == "vllm",
            local=told.kv_tokens_local,
            impossible="evidence_pool_impossible",
            larger="warning.evidence_pool_larger",
        )
    return pool_of(resolved.log)
