"""What llama.cpp calls a model: a file of a format, or a description with the format in it."""

from __future__ import annotations

import re
from pathlib import PurePath

FORMAT = re.compile(
    r"(?<![A-Za-z0-9])((?:UD-)?I?Q\d(?:_[A-Z0-9]+)*|BF16|F16|F32|MXFP4(?:_MOE)?)(?:\s*-\s*(Small|Medium|Large))?", re.IGNORECASE
)
SIZES = {"small": "_S", "medium": "_M", "large": "_L"}


def weight_format(named: str) -> str:
    """The format that llama.cpp names in a model's description, or that stands in its file's name.

    >>> weight_format("llama 8B Q4_K - Medium"), weight_format("SmolLM2-135M-Q8_0"), weight_format("llama 8B")
    ('Q4_K_M', 'Q8_0', '')
    """
    found = FORMAT.search(named)
    return "" if found is None else found[1].upper() + SIZES.get((found[2] or "").lower(), "")


def file_name(path: str) -> str:
    """A model's file without its folders and its ending.

    >>> file_name("C:\\\\models\\\\Llama-3.1-8B-Q8_0.gguf")
    'Llama-3.1-8B-Q8_0'
    """
    return PurePath(path.replace("\\", "/")).name.removesuffix(".gguf")


def without_format(name: str) -> str:
    """A model's name without the format that stands in it.

    >>> without_format("Llama-3.1-8B-Q8_0")
    'Llama-3.1-8B'
    """
    return FORMAT.sub("", name).rstrip("-._ ")
