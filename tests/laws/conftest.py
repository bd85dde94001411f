"""Deployments for the laws: built from the catalogue, one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from breakeven import api
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine
from breakeven.spec.workload import Workload

Build = Callable[..., Deployment]


def _build(
    model: str = "llama-3.1-8b",
    device: str = "h100-sxm",
    *,
    replicas: int = 1,
    engine: Mapping[str, object] | None = None,
    drafts: tuple[str, ...] = (),
    **workload: object,
) -> Deployment:
    settings = Engine(**{"enable_prefix_caching": False, **(engine or {})})
    return Deployment(
        model=api.model(model),
        hardware=api.hardware(device, replicas * settings.tensor_parallel_size * settings.pipeline_parallel_size),
        engine=settings,
        workload=Workload(**workload),
        drafts={name: api.model(name) for name in drafts},
    )


@pytest.fixture(scope="session")
def build() -> Build:
    """``build(model, device, engine={…}, request_rate=…, …)``; prefix caching is off unless asked for."""
    return _build
