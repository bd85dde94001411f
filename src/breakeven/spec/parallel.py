"""Whether a model can be split as asked, and how many devices that takes."""

from __future__ import annotations

from dataclasses import dataclass

from breakeven.errors import InputError, NotModelledError
from breakeven.spec.engine import Engine
from breakeven.spec.model import Attention, Model, States

LARGEST = 4096


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How one replica lies on its devices."""

    tensor: int
    pipeline: int
    ranks: int
    """Ranks of attention data parallelism: each has a batch and a cache of its own; 1 for a dense model, whose ranks are replicas."""
    decode_context: int
    prefill_context: int
    whole_experts: bool

    @property
    def devices(self) -> int:
        """Devices of a replica: TP·PCP·DP·PP."""
        return self.expert_shards * self.pipeline

    @property
    def expert_shards(self) -> int:
        """Devices of a pipeline stage, which share its experts: TP·PCP·DP."""
        return self.tensor * self.prefill_context * self.ranks

    @property
    def expert_parallel(self) -> int:
        """Devices among which whole experts are dealt; 1 where each holds a part of every expert."""
        return self.expert_shards if self.whole_experts else 1

    @property
    def cache_shards(self) -> int:
        """Devices that the tokens of a sequence's cache are dealt to, beyond the split by heads: DCP·PCP."""
        return self.decode_context * self.prefill_context

    @property
    def prompt_ranks(self) -> int:
        """Groups of devices that hold different rows of a step with prompts: DP·PCP."""
        return self.ranks * self.prefill_context


def replicas_among(ranks: int, model: Model) -> int:
    """Replicas among so many ranks of data parallelism of one server: each is one, but of a mixture of experts, which the ranks share."""
    return ranks if model.experts is None else 1


def layout(model: Model, engine: Engine) -> Layout:
    """The layout of one replica."""
    mixture = model.experts is not None
    return Layout(
        tensor=engine.tensor_parallel_size,
        pipeline=engine.pipeline_parallel_size,
        ranks=engine.data_parallel_size if mixture else 1,
        decode_context=engine.decode_context_parallel_size,
        prefill_context=engine.prefill_context_parallel_size,
        whole_experts=engine.enable_expert_parallel and mixture,
    )


def splits(attention: Attention, size: int) -> bool:
    """q_heads % TP = 0, and kv_heads % TP = 0 or TP % kv_heads = 0; MLA's latent is held whole, so its q_heads alone."""
    if attention.q_heads % size:
        return False
    return attention.kind == "mla" or attention.kv_heads % size == 0 or size % attention.kv_heads == 0


def splits_state(states: States, size: int) -> bool:
    """A state is split by whole heads: heads % TP = 0."""
    return states.heads % size == 0


def legal_sizes(model: Model) -> tuple[int, ...]:
    """Every tensor parallel size the model's heads allow, those of its states included, ascending."""
    most = min((*(group.q_heads for group in model.attention), *(group.heads for group in model.states)), default=1)
    return tuple(size for size in range(1, min(most, LARGEST) + 1) if _all_split(model, size))


def _all_split(model: Model, size: int) -> bool:
    return all(splits(group, size) for group in model.attention) and all(splits_state(group, size) for group in model.states)


def copies_of_a_head(model: Model, size: int) -> int:
    """Devices of a tensor-parallel group that hold the same cache: TP/kv_heads of the layers with fewest; TP for a latent."""
    shared = (size if g.kind == "mla" else max(1, size // g.kv_heads) for g in model.attention)
    return min(shared, default=1)


def check(model: Model, engine: Engine, count: int, path: str = "engine") -> None:
    """Refuse sizes that the model cannot be split by, and a number of devices that is not a whole number of replicas."""
    found = layout(model, engine)
    _check_heads(model, found.tensor, path)
    if found.pipeline > model.layers:
        raise InputError("pipeline_parallel", path=path, size=found.pipeline, layers=model.layers)
    _check_context(model, found, path)
    _check_experts(model, engine, found, path)
    if count % found.devices:
        _refuse_count(found, count, path)
    replicas = count // found.devices
    if model.experts is None and engine.data_parallel_size not in (1, replicas):
        raise InputError("data_parallel", size=engine.data_parallel_size, count=count, replicas=replicas)


def _refuse_count(found: Layout, count: int, path: str) -> None:
    """The devices of a replica, with the arithmetic."""
    place = "hardware.count" if path == "engine" else f"{path}.count"
    values = {"path": place, "count": count, "tensor": found.tensor, "pipeline": found.pipeline, "replica": found.devices}
    if found.prompt_ranks == 1:
        raise InputError("count_not_multiple", **values)
    raise InputError("count_not_multiple_wide", **values, data=found.ranks, context=found.prefill_context)


def _check_heads(model: Model, size: int, path: str) -> None:
    """Refuse a size the heads cannot be split over, with the sizes that they can."""
    for group in model.attention:
        if not splits(group, size):
            *sizes, last = (str(legal) for legal in legal_sizes(model))
            key = "tensor_parallel" if sizes else "tensor_parallel_one"
            raise InputError(key, path=path, size=size, heads=group.q_heads, kv_heads=group.kv_heads, sizes=", ".join(sizes), last=last)
    for states in model.states:
        if not splits_state(states, size):
            legal = ", ".join(str(one) for one in legal_sizes(model))
            raise InputError("tensor_parallel_states", path=path, size=size, heads=states.heads, mixer=states.mixer, sizes=legal)


def _check_context(model: Model, found: Layout, path: str) -> None:
    """Decode context parallelism deals out what tensor parallelism holds more than once, and no more."""
    size, most = found.decode_context, copies_of_a_head(model, found.tensor)
    if size == 1:
        return
    if not model.attention:
        raise InputError("context_without_cache", path=path, size=size, name=model.name)
    if found.tensor % size:
        raise InputError("context_not_divisor", path=path, size=size, tensor=found.tensor)
    if size > most:
        heads = min((g.kv_heads for g in model.attention if g.kind != "mla"), default=1)
        raise InputError("context_beyond_copies", path=path, size=size, tensor=found.tensor, heads=heads, most=most)


def _check_experts(model: Model, engine: Engine, found: Layout, path: str) -> None:
    """Whole experts are for mixtures, and every device takes as many."""
    if engine.enable_expert_parallel and model.experts is None:
        raise InputError("experts_of_dense", path=path, name=model.name)
    if model.experts is not None and model.experts.count % found.expert_parallel:
        raise InputError(
            "experts_not_divisible",
            path=path,
            experts=model.experts.count,
            devices=found.expert_parallel,
            tensor=found.tensor,
            data=found.ranks,
            context=found.prefill_context,
        )
    if found.prefill_context > 1 and model.states:
        raise NotModelledError("prompt_context_states", path=path, size=found.prefill_context, name=model.name)


BLOCKS = {"fp8": 128, "int4_g128": 128, "int4_g64": 64, "int4_g32": 32}
"""Columns that share a scale, by format as stored. vLLM refuses to cut blocks of fp8, which are 128 × 128 in DeepSeek's checkpoints
(``output_partition_size … is not divisible by weight quantization block_n``), and groups of AWQ and GPTQ (``input size is not aligned with
the quantized weight shape``). 4-bit floats are padded and cut anyhow."""


@dataclass(frozen=True, kw_only=True)
class Cut:
    """The inner width of an MLP or of an expert, and the devices it is cut over."""

    name: str
    width: int
    devices: int
    block: int

    @property
    def figures(self) -> dict[str, object]:
        """As a message shows it."""
        return {"width": self.width, "devices": self.devices, "piece": self.width / self.devices, "block": self.block}


def cuts(model: Model, engine: Engine) -> tuple[Cut, ...]:
    """Quantised matrices that are cut by their inner width, where the counts of a gated MLP (3·h·width) tell it."""
    found, split = [], layout(model, engine)
    if model.experts is not None:
        wide = model.parameters.experts / (3 * model.hidden * model.experts.count * max(1, model.experts.layers))
        shards = 1 if split.whole_experts else split.expert_shards
        found.append(("experts", wide, shards))
    else:
        found.append(("mlp", model.parameters.mlp / (3 * model.hidden * model.layers), split.tensor))
    return tuple(
        Cut(name=name, width=int(width), devices=devices, block=BLOCKS[model.stored[name]])
        for name, width, devices in found
        if devices > 1 and width == int(width) and engine.quantization is None and model.stored.get(name) in BLOCKS
    )


def assumed_tensor_parallel(model: Model, count: int) -> int:
    """Where nothing is stated: all devices if the heads allow, else the largest size that divides them."""
    return max(size for size in legal_sizes(model) if count % size == 0)
