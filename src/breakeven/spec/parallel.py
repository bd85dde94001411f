"""Whether a model can be split as asked, and how many devices that takes."""

from __future__ import annotations

from breakeven.errors import InputError, NotModelledError
from breakeven.spec.engine import Engine
from breakeven.spec.model import Attention, Model, States

LARGEST = 4096


def splits(attention: Attention, size: int) -> bool:
    """q_heads % TP = 0, and kv_heads % TP = 0 or TP % kv_heads = 0; MLA's latent is held whole, so its q_heads alone."""
    if attention.q_heads % size:
        return False
    return attention.kind == "mla" or attention.kv_heads % size == 0 or size % attention.kv_heads == 0


def splits_state(states: States, size: int) -> bool:
    """A state is split by whole heads: heads % TP = 0."""
    return states.heads % size == 0


def legal_sizes(model: Model) -> tuple[int, ...]:
    """Every tensor parallel size the model's heads allow, ascending."""
    most = min((*(group.q_heads for group in model.attention), *(group.heads for group in model.states)), default=1)
    return tuple(size for size in range(1, min(most, LARGEST) + 1) if _all_split(model, size))


def _all_split(model: Model, size: int) -> bool:
    return all(splits(group, size) for group in model.attention) and all(splits_state(group, size) for group in model.states)


def check(model: Model, engine: Engine, count: int) -> None:
    """Refuse sizes that the model cannot be split by, and a number of devices that is not a whole number of replicas."""
    tensor, pipeline = engine.tensor_parallel_size, engine.pipeline_parallel_size
    _check_heads(model, tensor)
    if pipeline > model.layers:
        raise InputError("pipeline_parallel", size=pipeline, layers=model.layers)
    if count % (tensor * pipeline):
        raise InputError("count_not_multiple", count=count, tensor=tensor, pipeline=pipeline, replica=tensor * pipeline)
    _check_data_parallel(model, engine.data_parallel_size, count, count // (tensor * pipeline))


def _check_heads(model: Model, size: int) -> None:
    """Refuse a size the heads cannot be split over, with the sizes that they can."""
    for group in model.attention:
        if not splits(group, size):
            *sizes, last = (str(legal) for legal in legal_sizes(model))
            key = "tensor_parallel" if sizes else "tensor_parallel_one"
            raise InputError(key, size=size, heads=group.q_heads, kv_heads=group.kv_heads, sizes=", ".join(sizes), last=last)
    for states in model.states:
        if not splits_state(states, size):
            legal = ", ".join(str(one) for one in legal_sizes(model))
            raise InputError("tensor_parallel_states", size=size, heads=states.heads, mixer=states.mixer, sizes=legal)


def _check_data_parallel(model: Model, stated: int, count: int, replicas: int) -> None:
    """Data parallel ranks of a dense model are replicas; of a mixture they share the experts, which is not modelled yet."""
    if stated == 1:
        return
    if model.experts is not None:
        raise NotModelledError("attention_data_parallel", size=stated, model=model.name)
    if replicas != stated:
        raise InputError("data_parallel", size=stated, count=count, replicas=replicas)


def assumed_tensor_parallel(model: Model, count: int) -> int:
    """Where nothing is stated: all devices if the heads allow, else the largest size that divides them."""
    return max(size for size in legal_sizes(model) if count % size == 0)
