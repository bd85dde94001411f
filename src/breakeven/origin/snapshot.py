"""A folder with safetensors files: the true bytes of each tensor class, from the headers alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from breakeven.errors import InputError, NotModelledError
from breakeven.messages import Message
from breakeven.origin.json_file import read_object
from breakeven.origin.safetensors_header import Tensor, read_header
from breakeven.origin.tensor_names import is_buffer, is_scale, tensor_class
from breakeven.origin.values import shown
from breakeven.spec.model import TENSOR_CLASSES, Model

LARGEST_INDEX_BYTES = 256 * 2**20
INDICES = ("model.safetensors.index.json", "consolidated.safetensors.index.json")
SINGLES = ("model.safetensors", "consolidated.safetensors")
DIFFERS = 0.005
"""Counts of the configuration and of the files that lie further apart are said."""
LEAST = 0.75
"""Files with a smaller share of the parameters than this are not the model that the configuration describes."""
TOLD = 0.01
"""Share of unknown names above which they are said."""
PLAIN = ("F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I8")
BY_DTYPE = {"F8_E4M3": "fp8", "F8_E5M2": "fp8", "F8_E4M3FNUZ": "fp8", "F8_E5M2FNUZ": "fp8", "I8": "int8"}
"""The format that a type in the files is, where the configuration is silent; the 16-bit types are none."""
WIDE = ("F64", "F32", "F16", "BF16")


@dataclass(kw_only=True)
class Tally:
    """Sums over the tensors of a snapshot."""

    files: int
    bytes: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    elements: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Parameters by class; none are counted of packed weights."""
    by_dtype: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    packed: set[str] = field(default_factory=set)
    """Classes with weights packed into words."""
    mxfp4: set[str] = field(default_factory=set)
    """Classes with the blocks and scales of mxfp4."""
    unknown: dict[str, int] = field(default_factory=dict)


def with_stored_bytes(model: Model, folder: Path) -> Model:
    """The model with the bytes of its files, where safetensors files lie in the folder; as it is, where none do."""
    files, index = _files(folder)
    if not files:
        return model
    tally = _tally(model, files, index)
    _check_whole(model, tally, str(folder))
    stored = _formats(model, tally, str(folder))
    found = {name: tally.bytes[name] for name in (*TENSOR_CLASSES, "mtp") if tally.bytes.get(name)}
    source = f"read from {tally.files} safetensors headers"
    if model.tied and tally.bytes.get("tied"):
        source += "; the copy of the tied head is not counted, since engines do not load it"
    return replace(
        model,
        stored=stored,
        stored_bytes=found,
        beside_bytes=tally.bytes.get("tower", 0.0),
        remarks=(*model.remarks, *_remarks(model, tally, str(folder))),
        sources={**model.sources, "stored": source},
    )


def index_file(folder: Path) -> Path | None:
    """The index of the weight files in a folder, not absurdly large."""
    file = next((folder / name for name in INDICES if (folder / name).is_file()), None)
    if file is not None and file.stat().st_size > LARGEST_INDEX_BYTES:
        raise InputError("config_too_large", where=str(file), size=file.stat().st_size, limit=LARGEST_INDEX_BYTES)
    return file


def read_index(file: Path) -> Mapping[str, object]:
    """The object that an index holds."""
    try:
        return read_object(file)
    except InputError as fault:
        reason = fault.message.values.get("reason", "not an object")
        raise InputError("safetensors_bad", where=str(file), reason=str(reason)) from None


def has_weights(folder: Path) -> bool:
    """Whether weight files of the model lie in a folder: any of those its index names, or any at all where there is no index."""
    return any(file.exists() for file in _files(folder)[0])


def is_complete(folder: Path) -> bool:
    """Whether all weight files lie in a folder: those its index names, or the one file that needs none."""
    files, index = _files(folder)
    return bool(index or any((folder / name).is_file() for name in SINGLES)) and all(file.exists() for file in files)


def _files(folder: Path) -> tuple[list[Path], Mapping[str, str]]:
    """The files that hold the model, and which tensor the index says is in which."""
    index = index_file(folder)
    if index is not None:
        shards = _weight_map(read_index(index), str(index))
        return [folder / shard for shard in sorted(set(shards.values()))], shards
    for name in SINGLES:
        if (folder / name).is_file():
            return [folder / name], {}
    return sorted(folder.glob("*.safetensors")), {}


def _weight_map(index: Mapping[str, object], where: str) -> Mapping[str, str]:
    found = index.get("weight_map")
    if not isinstance(found, dict) or not found or not all(isinstance(shard, str) for shard in found.values()):
        raise InputError("safetensors_bad", where=where, reason="no weight_map of tensors to files")
    for shard in set(found.values()):
        path = PurePosixPath(shard)
        if path.is_absolute() or ".." in path.parts or not shard.endswith(".safetensors"):
            raise InputError("safetensors_bad", where=where, reason=f"weight_map names {shown(shard)}")
    return found


def _tally(model: Model, files: Sequence[Path], index: Mapping[str, str]) -> Tally:
    absent = [file.name for file in files if not file.exists()]
    if absent:
        raise InputError("safetensors_shards", where=str(files[0].parent), count=len(absent), all=len(files), first=absent[0])
    tally = Tally(files=len(files))
    seen: set[str] = set()
    for file in files:
        for name, tensor in read_header(file).items():
            if name in seen:
                raise InputError("safetensors_bad", where=str(file), reason=f"{shown(name)} stands in two files")
            seen.add(name)
            _add(tally, name, tensor, model)
    lost = next((name for name in index if name not in seen), None)
    if lost is not None:
        raise InputError("safetensors_bad", where=str(files[0].parent / index[lost]), reason=f"{shown(lost)} of the index is not in it")
    return tally


def _add(tally: Tally, name: str, tensor: Tensor, model: Model) -> None:
    if is_buffer(name):
        return
    kind = tensor_class(name, model.layers)
    if kind is None:
        tally.unknown[name] = tensor.bytes
        kind = "other"
    if kind == "head" and model.tied:
        kind = "tied"
    scale = is_scale(name)
    served = tensor.bytes
    if tensor.dtype in ("F32", "F64") and len(tensor.shape) > 1 and not scale:
        served = 2 * tensor.elements
    tally.bytes[kind] += served
    if scale:
        return
    if tensor.dtype in PLAIN:
        tally.elements[kind] += tensor.elements
    else:
        tally.packed.add(kind)
        if name.endswith("_blocks"):
            tally.mxfp4.add(kind)
    tally.by_dtype[kind][tensor.dtype] += served


def _check_whole(model: Model, tally: Tally, where: str) -> None:
    """Refuse files that hold too little to be the model: no tensor of a class that it has, or a good part of its parameters missing."""
    wanted = {kind: getattr(model.parameters, kind) for kind in TENSOR_CLASSES}
    absent = [kind for kind in ("embedding", "attention", "mlp", "experts") if wanted[kind] and not tally.bytes.get(kind)]
    plain = [kind for kind in TENSOR_CLASSES if kind not in tally.packed]
    read, counted = sum(tally.elements.get(kind, 0) for kind in plain), sum(wanted[kind] for kind in plain)
    if absent or read < LEAST * counted:
        raise InputError("snapshot_not_whole", where=where, name=model.name, read=read, counted=counted, classes=", ".join(absent) or "-")


def _formats(model: Model, tally: Tally, where: str) -> Mapping[str, str]:
    """Formats by class: as the configuration says where the files agree, else as the types in them say."""
    stored: dict[str, str] = {}
    for kind in TENSOR_CLASSES:
        if not tally.by_dtype.get(kind):
            if kind in model.stored:
                stored[kind] = model.stored[kind]
            continue
        dtype = tally.by_dtype[kind].most_common(1)[0][0]
        mixed = kind in model.stored and not tally.by_dtype[kind].keys() <= set(WIDE)
        if dtype in WIDE and not mixed:  # of a mixed class the configuration knows the larger part in parameters, the files in bytes
            continue
        written = model.stored.get(kind) or BY_DTYPE.get(dtype) or ("mxfp4" if kind in tally.mxfp4 else None)
        if written is None:
            raise NotModelledError("packed_without_format", where=where, name=model.name, kind=kind, dtype=dtype)
        stored[kind] = written
    return stored


def _remarks(model: Model, tally: Tally, where: str) -> tuple[Message, ...]:
    found = []
    kinds = [kind for kind in TENSOR_CLASSES if kind not in tally.packed]
    read, counted = sum(tally.elements.get(kind, 0) for kind in kinds), sum(getattr(model.parameters, kind) for kind in kinds)
    if abs(read - counted) > DIFFERS * max(counted, 1):
        found.append(Message("warning.count_differs", {"where": where, "counted": counted, "read": read}))
    total, unknown = sum(tally.bytes.values()), sum(tally.unknown.values())
    if unknown > TOLD * total:
        names = ", ".join(shown(name) for name in sorted(tally.unknown, key=lambda name: -tally.unknown[name])[:3])
        found.append(Message("warning.tensors_unknown", {"where": where, "names": names, "share": unknown / total}))
    if tally.bytes.get("tower"):
        found.append(Message("warning.towers", {"where": where, "size": tally.bytes["tower"]}))
    return tuple(found)
