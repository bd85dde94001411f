"""What a file of a calibration holds (schema ``breakeven.calibration/1`` and ``/2``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from breakeven.spec.correction import Scales

CALIBRATION_SCHEMA: Final = "breakeven.calibration/1"
CALIBRATION_SCHEMAS: Final = (CALIBRATION_SCHEMA, "breakeven.calibration/2")
"""By version. The second has what speaks against a load (``spread`` and ``others_tokens``), and is written where that was seen."""
LEVELS = ("none", "few", "deployment")
"""What is known of a deployment: no row of its own, one to ten, more."""
FEW = 10
DEVIATIONS = ("tpot_between", "tpot_within", "ttft_between", "ttft_within")
"""Standard deviations of ln(measured/predicted): common to a deployment, and within it."""
UNSTEADY = 1.15
"""From this factor on rounds of one point, and rows about their fit, are said to lie apart: a quiet machine stays within it."""
MOSTLY = 0.5
"""Share of the numbers of a step that rows have to determine; a file with fewer says little beyond what is shipped."""


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A fitted number with its 90 % interval."""

    value: float
    low: float
    high: float
    prior: float
    """What was taken before the fit."""
    rows: int
    """Rows that bear on it."""
    determined: bool
    """Whether the rows say more than was known before."""


@dataclass(frozen=True, kw_only=True)
class MeasuredDeployment:
    """A deployment whose rows were in the fit, and what stands for it alone."""

    model: str
    device: str
    family: str
    """Class of the device."""
    engine: str
    version: str
    rows: int
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Measured steps over width, with the conditions they hold for."""

    model: str
    device: str
    engine: str
    version: str
    context_tokens: float
    rows: tuple[float, ...]
    step_s: tuple[float, ...]
    tensor_parallel_size: int = 1
    quantization: str = ""
    """Empty: the weights as the checkpoint stores them."""
    kv_cache_dtype: str = "auto"
    enforce_eager: bool = False
    one_pass: bool = False
    """Whether the sequences stood in neighbouring slots, so that a step was one pass also where slots have a cache each."""
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class FileRead:
    """A file that went into the fit: enough to know it again."""

    name: str
    rows: int
    sha256: str
    """The first 12 digits."""


@dataclass(frozen=True, kw_only=True)
class Made:
    """How a calibration was made, so that it can be made again."""

    command: str
    date: str
    breakeven: str
    rows: int
    groups: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Rows that were not used, by reason: the key of its sentence."""


@dataclass(frozen=True, kw_only=True)
class Sent:
    """The load that a running engine was given for it."""

    server: str
    """Address, without user, password and query."""
    engine: str
    version: str
    points: int
    requests: int
    input_tokens: int
    output_tokens: int
    seconds: float
    load_before: float | None = None
    """Running processes of the machine that sent it, mean of a minute, before and after; None where the system does not tell."""
    load_after: float | None = None
    spread: float | None = None
    """Longest over shortest round of the point whose rounds lay furthest apart; None where none had several, and in older files."""
    others_tokens: float | None = None
    """Output tokens that the engine counted beyond those that came back: others used it."""


@dataclass(frozen=True, kw_only=True)
class OwnRow:
    """A row measured on a deployment: where it stands, and ln(measured/model) of its times with the numbers of the file."""

    model: str
    device: str
    engine: str
    version: str
    format: str
    load: float
    input_tokens: float
    output_tokens: float
    devices: int
    tpot: float | None = None
    ttft: float | None = None


@dataclass(frozen=True, kw_only=True)
class LeverSigma:
    """A lever's own error for one kind of row: the deviation of ln gain, by how well the engine and the device are known."""

    family: float
    foreign: float
    here: float
    rows: int
    groups: int


@dataclass(frozen=True, kw_only=True)
class CalibrationFile:
    """A calibration as it is kept."""

    made: Made
    files: tuple[FileRead, ...] = ()
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    residual: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Deviations by level of knowledge."""
    deployments: tuple[MeasuredDeployment, ...] = ()
    curves: tuple[Curve, ...] = ()
    own: tuple[OwnRow, ...] = ()
    correction: Mapping[str, Scales] = field(default_factory=dict)
    """How far deployments lie from the numbers, and over which distances, for ``tpot`` and ``ttft``; of calibrations that are shipped."""
    sigma: Mapping[str, Mapping[str, LeverSigma]] = field(default_factory=dict)
    """Lever, kind of row, and its error; of calibrations that are shipped."""
    sent: Sent | None = None
    """Of a calibration on a running engine."""
