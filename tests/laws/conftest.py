"""Deployments for the laws: built from the catalogue, one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from breakeven import api
from breakeven.spec.deployment import Deployment
from breakeven.spec.disaggregation import Disaggregation
from breakeven.spec.engine import Engine
from breakeven.spec.parallel import layout
from breakeven.spec.workload import Workload

Build = Callable[..., Deployment]


def _build(
    model: str = "llama-3.1-8b",
    device: str = "h100-sxm",
    *,
    replicas: int = 1,
    engine: Mapping[str, object] | None = None,
    drafts: tuple[str, ...] = (),
    domain: int | None = None,
    network: float | None = None,
    pools: Disaggregation | None = None,
    **workload: object,
) -> Deployment:
    settings = Engine(**{"enable_prefix_caching": False, **(engine or {})})
    shape = api.model(model)
    hardware = api.hardware(device, replicas * layout(shape, settings).devices)
    hardware = replace(hardware, device=replace(hardware.device, link_domain=domain))
    return Deployment(
        model=shape,
        hardware=replace(hardware, network_bytes_per_s=network),
        engine=settings,
        workload=Workload(**workload),
        disaggregation=pools,
        drafts={name: api.model(name) for name in drafts},
    )


@pytest.fixture(scope="session")
def build() -> Build:
    """``build(model, device, engine={…}, request_rate=…, …)``; prefix caching is off unless asked for."""
    return _build
