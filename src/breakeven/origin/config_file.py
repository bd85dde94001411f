"""The files that describe a model, read with care: config.json, and ModelOpt's hf_quant_config.json beside it."""

from __future__ import annotations

from pathlib import Path

from breakeven.origin.huggingface import parse_config
from breakeven.origin.json_file import config_file, read_object
from breakeven.origin.snapshot import with_stored_bytes
from breakeven.spec.model import Model


def load_config(path: Path) -> Model:
    """The model of a local ``config.json``, or of a folder that holds one; weights that lie in the folder are looked at too."""
    file = config_file(path)
    config = dict(read_object(file))
    beside = file.parent / "hf_quant_config.json"
    if "quantization_config" not in config and beside.is_file():
        config["quantization_config"] = read_object(config_file(beside))
    model = parse_config(config, name=_name_of(file), where=str(path))
    if not path.is_dir():
        return model
    return with_stored_bytes(model, file.parent)


def _name_of(file: Path) -> str:
    """A folder's name, or the file's own where it is not called ``config.json``."""
    return file.absolute().parent.name if file.name == "config.json" else file.stem
