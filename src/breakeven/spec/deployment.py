"""A deployment is a value: model + hardware + engine + workload, and where each input came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from breakeven.spec.calibration import Calibration
from breakeven.spec.disaggregation import Disaggregation
from breakeven.spec.engine import Engine
from breakeven.spec.hardware import Hardware
from breakeven.spec.model import Model
from breakeven.spec.observed import Observed
from breakeven.spec.parallel import layout
from breakeven.spec.workload import Price, Slo, Workload

Provenance = Literal["measured", "file", "declared", "catalogue", "prior", "assumed"]


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """What the evaluator takes."""

    model: Model
    hardware: Hardware
    engine: Engine
    workload: Workload
    slo: Slo = field(default_factory=Slo)
    price: Price | None = None
    disaggregation: Disaggregation | None = None
    """A pool of devices of its own for prompts; ``hardware`` and ``engine`` are then those of the decode pool."""
    drafts: Mapping[str, Model] = field(default_factory=dict)
    """Draft models by the name the settings use, already loaded."""
    calibration: Calibration | None = None
    """What was fitted to measurements of this deployment or its kind; None takes what is shipped."""
    observed: Observed | None = None
    """What was seen of it while it ran."""
    provenance: Mapping[str, Provenance] = field(default_factory=dict)
    """Dotted path (``workload.input_tokens``) to where the value came from."""

    @property
    def replicas(self) -> int:
        """Copies of the engine that share the arrivals equally."""
        return self.hardware.count // layout(self.model, self.engine).devices
