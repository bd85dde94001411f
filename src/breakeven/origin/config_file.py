"""The files that describe a model, read with care: config.json (or Mistral's params.json), and what says more beside it."""

from __future__ import annotations

from pathlib import Path

from breakeven.origin.huggingface import parse_config
from breakeven.origin.index_bytes import with_index_bytes
from breakeven.origin.json_file import CONFIGS, config_file, read_object
from breakeven.origin.snapshot import has_weights, with_stored_bytes
from breakeven.spec.model import Model


def load_config(path: Path, *, name: str | None = None, indexed: bool = False) -> Model:
    """The model of a local ``config.json`` or ``params.json``, or of a folder that holds one, with what its files say of their bytes.

    Of a folder the weight files are looked at too, or their index where none of them is there; of a file only with ``indexed``.
    """
    file = config_file(path)
    config = dict(read_object(file))
    beside = file.parent / "hf_quant_config.json"
    if "quantization_config" not in config and beside.is_file():
        config["quantization_config"] = read_object(config_file(beside))
    model = parse_config(config, name=name or _name_of(file), where=str(path))
    if path.is_dir() and has_weights(file.parent):
        return with_stored_bytes(model, file.parent)
    return with_index_bytes(model, config, file.parent) if indexed or path.is_dir() else model


def _name_of(file: Path) -> str:
    """A folder's name, or the file's own where it is not called as configurations are."""
    return file.absolute().parent.name if file.name in CONFIGS else file.stem
