"""What an engine supports, as rules: lever, setting, and where a rule holds; what it says overlays what earlier rules said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from breakeven.spec.engine import Engine, version_key
from breakeven.spec.hardware import Device
from breakeven.spec.model import Model

ANY_SETTING = "any"
"""How a row is called that holds for every setting of a lever."""


def model_kinds(model: Model) -> frozenset[str]:
    """The words by which rules speak of a model: attention and state kinds, ``sparse``, ``stateful``, ``hybrid``, ``moe`` or ``dense``."""
    found = {group.kind for group in model.attention} | {states.kind for states in model.states}
    words = {str(kind) for kind in found}
    words |= {"sparse"} if any(group.selected is not None for group in model.attention) else set()
    words |= {"stateful"} if model.states else set()
    words |= {"hybrid"} if model.states and model.attention else set()
    words |= {"mtp"} if model.mtp_layers else set()
    return frozenset(words | {"moe" if model.experts is not None else "dense"})


MODEL_WORDS = frozenset(
    "full sliding chunked mla compressed linear ssm conv recurrent sparse stateful hybrid mtp moe dense".split()  # noqa: SIM905
)
ENGINE_WORDS = ("speculation", "pipeline", "eager", "prefix_caching", "chunked_prefill", "quantised_kv")
"""What a rule may ask of the engine's other settings."""


def engine_words(engine: Engine) -> frozenset[str]:
    """The words by which rules speak of an engine's other settings."""
    on = {
        "speculation": engine.speculative is not None,
        "pipeline": engine.pipeline_parallel_size > 1,
        "eager": engine.enforce_eager,
        "prefix_caching": engine.enable_prefix_caching,
        "chunked_prefill": engine.enable_chunked_prefill,
        "quantised_kv": engine.kv_cache_dtype not in ("auto", "bf16", "bfloat16", "fp16", "float16", "f16"),
    }
    return frozenset(word for word, is_on in on.items() if is_on)


PROCESSOR = "cpu"
"""The family of devices that are no accelerators."""


@dataclass(frozen=True, kw_only=True)
class DeviceCondition:
    """Devices a rule holds for; every part that is stated has to hold. Capabilities are CUDA's: other makers' devices have none."""

    vendors: tuple[str, ...] = ()
    """Makers of accelerators, whose kernels and libraries differ. Processors are none of theirs, whoever made them, but of a family."""
    without_vendors: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """Parts of catalogue names, one of which has to be in the name."""
    capability_at_least: int | None = None
    capability_below: int | None = None
    native: str | None = None
    """A format the device computes in."""
    not_native: str | None = None
    memory_at_least_bytes: float = 0.0
    memory_below_bytes: float = float("inf")

    def holds(self, device: Device) -> bool:
        """Whether a device is meant."""
        capability = cuda_capability(device)
        maker = "" if device.family == PROCESSOR else device.vendor
        listed = (
            (not self.vendors or _named(maker, self.vendors))
            and not _named(maker, self.without_vendors)
            and (not self.families or device.family.removesuffix("-ws") in self.families)
            and (not self.names or any(part in device.name for part in self.names))
        )
        least = self.capability_at_least is None or (capability is not None and capability >= self.capability_at_least)
        below = self.capability_below is None or (capability is not None and capability < self.capability_below)
        formats = (self.native is None or self.native in device.native_formats) and (
            self.not_native is None or self.not_native not in device.native_formats
        )
        memory = device.memory_bytes
        # A memory that nobody has stated yet meets no condition on it.
        anyone = self.memory_at_least_bytes <= 0.0 and self.memory_below_bytes == float("inf")
        sized = anyone if memory is None else self.memory_at_least_bytes <= memory < self.memory_below_bytes
        return listed and least and below and formats and sized


def _named(vendor: str, vendors: tuple[str, ...]) -> bool:
    return vendor.lower() in (name.lower() for name in vendors)


def cuda_capability(device: Device) -> int | None:
    """CUDA compute capability as a number (``sm_90`` is 90); None for devices of other makers."""
    text = device.compute_capability
    return int(text.removeprefix("sm_").rstrip("af")) if text.startswith("sm_") else None


@dataclass(frozen=True, kw_only=True)
class Condition:
    """Where a rule holds: versions, a device, a model, the engine's other settings."""

    since: str | None = None
    before: str | None = None
    device: DeviceCondition | None = None
    kinds: tuple[str, ...] = ()
    """The model is of one of these kinds."""
    without_kinds: tuple[str, ...] = ()
    head_dims: tuple[int, ...] = ()
    """An attention layer has a key of one of these widths."""
    head_dims_beside: tuple[int, ...] = ()
    """An attention layer has a key of a width that is none of these."""
    engine: tuple[str, ...] = ()
    """Words of ``ENGINE_WORDS``, all of which have to be on."""

    def in_version(self, version: str) -> bool:
        """Whether a version lies in the rule's range."""
        key = version_key(version)
        return (self.since is None or key >= version_key(self.since)) and (self.before is None or key < version_key(self.before))

    @property
    def about_version_only(self) -> bool:
        """Whether the rule asks nothing but the version."""
        return self.device is None and not (self.kinds or self.without_kinds or self.head_dims or self.head_dims_beside or self.engine)

    def holds(self, version: str, device: Device | None, model: Model | None = None, engine: Engine | None = None) -> bool:
        """Whether all that is asked for is there; what is not told is not there."""
        if not self.in_version(version) or (self.device is not None and (device is None or not self.device.holds(device))):
            return False
        about_model = self.kinds or self.without_kinds or self.head_dims or self.head_dims_beside
        if about_model and (model is None or not self._model_holds(model)):
            return False
        return not self.engine or (engine is not None and set(self.engine) <= engine_words(engine))

    def _model_holds(self, model: Model) -> bool:
        words, widths = model_kinds(model), {group.k_dim for group in model.attention}
        return (
            (not self.kinds or bool(words & set(self.kinds)))
            and not words & set(self.without_kinds)
            and (not self.head_dims or bool(widths & set(self.head_dims)))
            and (not self.head_dims_beside or bool(widths - set(self.head_dims_beside)))
        )


@dataclass(frozen=True, kw_only=True)
class SupportRule:
    """One rule. ``says`` holds what it states: ``supported``, ``kernel``, ``backend``, ``default``, flags and notes, ``reason``."""

    lever: str
    settings: tuple[str, ...]
    """Empty: every setting of the lever, those that no other rule names included."""
    where: Condition
    says: Mapping[str, object]
    runs_checkpoint: str | None = None
    """The stored format that this family runs where nothing is typed."""
    source: str

    def about(self, lever: str, setting: str | None) -> bool:
        """Whether the rule speaks of a setting; of the lever alone where there is none."""
        return self.lever == lever and (not self.settings or setting in self.settings)


@dataclass(frozen=True, kw_only=True)
class BlockRule:
    """The prefix cache's block, in tokens; ``state_pages`` makes it large enough for a page of state."""

    where: Condition
    tokens: int
    state_pages: bool = False
    source: str


@dataclass(frozen=True, kw_only=True)
class ReserveRule:
    """What an engine keeps free: a share of the device it fills, and bytes beside weights and cache."""

    where: Condition
    says: Mapping[str, float]
    source: str


@dataclass(frozen=True, kw_only=True)
class SupportSheet:
    """All that is known of one engine; of the rules that match, later ones win, key by key."""

    engine: str
    title: str
    version: str
    """The version taken where none is stated."""
    rules: tuple[SupportRule, ...]
    blocks: tuple[BlockRule, ...] = ()
    reserves: tuple[ReserveRule, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Found:
    """What the rules that match say together."""

    says: Mapping[str, object] = field(default_factory=dict)
    source: str = ""
    """Of the rule that gave the verdict."""
