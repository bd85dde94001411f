"""The model's GGUF file at other weight types, and its first layers alone as a draft model.

``python tools/live/weights.py SOURCE.gguf FOLDER`` writes what the tests of running engines need, where it is not there yet.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, LlamaFileType, dequantize, quantize

TYPES = {"F16": LlamaFileType.MOSTLY_F16, "Q8_0": LlamaFileType.MOSTLY_Q8_0, "Q4_0": LlamaFileType.MOSTLY_Q4_0}
DRAFT_LAYERS = 2
WRITTEN_BY_THE_WRITER = "general.architecture"
Tensors = Iterator[tuple[str, np.ndarray, GGMLQuantizationType]]


def main() -> None:
    source, folder = Path(sys.argv[1]), Path(sys.argv[2])
    for name in TYPES:
        made(folder / f"smol-{name}.gguf", lambda path, name=name: requantise(source, path, name))  # type: ignore[misc]
    made(folder / "smol-draft.gguf", lambda path: first_layers(folder / "smol-Q4_0.gguf", path, DRAFT_LAYERS))


def made(path: Path, write: Callable[[Path], None]) -> None:
    """Under its own name only when it is whole."""
    if not path.exists():
        part = path.with_suffix(".part")
        write(part)
        part.rename(path)


def requantise(source: Path, target: Path, name: str) -> None:
    """Every matrix at one type. Of a 4-bit file the embeddings stay at 8 bit, as llama.cpp's own quantiser leaves them."""
    reader, kind = GGUFReader(source), GGMLQuantizationType[name]
    write(reader, target, {"general.file_type": int(TYPES[name])}, retyped(reader, kind))


def retyped(reader: GGUFReader, kind: GGMLQuantizationType) -> Tensors:
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32).reshape([int(size) for size in reversed(tensor.shape)])
        own = tensor.tensor_type if tensor.tensor_type == GGMLQuantizationType.F32 else kind
        if tensor.name == "token_embd.weight" and kind == GGMLQuantizationType.Q4_0:
            own = GGMLQuantizationType.Q8_0
        yield tensor.name, quantize(values, own), own


def first_layers(source: Path, target: Path, layers: int) -> None:
    reader = GGUFReader(source)
    write(reader, target, {"llama.block_count": layers}, kept(reader, layers))


def kept(reader: GGUFReader, layers: int) -> Tensors:
    for tensor in reader.tensors:
        place, _, rest = tensor.name.partition(".")
        if place != "blk" or int(rest.partition(".")[0]) < layers:
            yield tensor.name, tensor.data, tensor.tensor_type


def write(reader: GGUFReader, target: Path, changed: dict[str, int], tensors: Tensors) -> None:
    """The same metadata, but for what is changed, over these tensors."""
    writer = GGUFWriter(target, "llama")
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == WRITTEN_BY_THE_WRITER:
            continue
        kind = field.types[0]
        inner = field.types[-1] if kind == GGUFValueType.ARRAY else None
        writer.add_key_value(key, changed.get(key, field.contents()), kind, sub_type=inner)
    for name, values, own in tensors:
        writer.add_tensor(name, values, raw_dtype=own)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
