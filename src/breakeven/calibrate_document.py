"""What ``calibrate`` tells: numbers with their intervals, what is left over, what is not determined, and what to measure."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import UNSET, Struct, UnsetType, field

CALIBRATE_SCHEMA: Final = "breakeven.calibrate/1"


class CalibrateParameter(Struct, frozen=True, kw_only=True):
    """A fitted number with its 90 % interval."""

    name: str
    value: float
    low: float
    high: float
    prior: float
    rows: int
    """Rows that bear on it."""
    determined: bool
    left_of_prior: float | None
    """Width of the interval over that before the fit, in ln; null where the one before had no end."""


class CalibrateGroup(Struct, frozen=True, kw_only=True):
    """What the fit leaves over in a group of rows. Errors are ln(measured/predicted)."""

    group: str
    quantity: Literal["tpot", "ttft", "step", "gain"]
    rows: int
    median_absolute: float
    bias: float
    worst: float


class CalibrateRow(Struct, frozen=True, kw_only=True):
    """A row and what the fitted model says of it: seconds, or a gain."""

    id: str
    where: str
    quantity: Literal["tpot", "ttft", "step", "gain"]
    measured: float
    predicted: float
    log_error: float


class CalibrateCurve(Struct, frozen=True, kw_only=True):
    """Measured steps over width."""

    model: str
    device: str
    engine: str
    context_tokens: float
    rows: list[float]
    step_s: list[float]
    levelled: list[float]
    """Widths whose time was measured above that of a wider step, and shares a mean with it."""


class CalibrateTied(Struct, frozen=True, kw_only=True):
    """Two numbers of which one combination is known."""

    first: str
    second: str
    correlation: float
    sentence: str


class CalibrateNext(Struct, frozen=True, kw_only=True):
    """A run that would tell numbers apart."""

    run: str
    sentence: str
    parameters: list[str]
    commands: list[str]


class CalibrateReason(Struct, frozen=True, kw_only=True):
    """Why rows are in no fit."""

    sentence: str
    rows: int
    places: list[str]
    """Where the first of them stand."""


class CalibrateNote(Struct, frozen=True, kw_only=True):
    """What was taken of rows otherwise than it is written, or what a reader should know of them."""

    sentence: str
    rows: int
    places: list[str]


class CalibrateFile(Struct, frozen=True, kw_only=True):
    """A file that was read."""

    name: str
    rows: int
    sha256: str


class CalibratePoint(Struct, frozen=True, kw_only=True):
    """A point of a load: streams that decoded together at a context."""

    concurrency: int
    context_tokens: float
    step_s: float
    low_s: float
    high_s: float
    """Tenth and ninetieth percentile of the gaps between tokens."""
    rounds: int
    spread: float
    """Longest over shortest round."""
    gaps: int


class CalibrateVerification(Struct, frozen=True, kw_only=True):
    """What verifying drafts costs at a batch: a step of b·(k + 1) rows over a plain one, by k; null beyond the widest step measured."""

    context_tokens: float
    batch: float
    ratios: dict[str, float | None]


class CalibrateLoad(Struct, frozen=True, kw_only=True):
    """The load that was sent to a running engine, and what its steps took."""

    server: str
    engine: str
    points_sent: int
    requests: int
    input_tokens: int
    output_tokens: int
    seconds: float
    machine_load_before: float | None
    machine_load_after: float | None
    points: list[CalibratePoint]
    verification: list[CalibrateVerification]
    notes: list[str]


class CalibrateDocument(Struct, frozen=True, kw_only=True):
    """A calibration, told."""

    schema: str = CALIBRATE_SCHEMA
    language: str
    command: str
    date: str
    files: list[CalibrateFile]
    rows: int
    groups: int
    pairs: int
    """Pairs of a lever among them, which tell of kernels and rounds of speculation."""
    parameters: list[CalibrateParameter]
    deviations: dict[str, dict[str, float]]
    residuals: list[CalibrateGroup]
    worst: list[CalibrateRow]
    curves: list[CalibrateCurve]
    undetermined: list[str]
    tied: list[CalibrateTied]
    measure_next: list[CalibrateNext]
    left_out: list[CalibrateReason]
    notes: list[CalibrateNote] = field(default_factory=list)
    """Documents that were written before there were any have none."""
    written: str | None
    """The file that was written."""
    load: CalibrateLoad | UnsetType = UNSET
    """Of a calibration on a running engine."""
