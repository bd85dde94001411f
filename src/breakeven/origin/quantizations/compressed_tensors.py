"""compressed-tensors (LLM Compressor): groups of modules with a format each."""

from __future__ import annotations

from collections.abc import Mapping

from breakeven.messages import Message
from breakeven.origin.hf_config_groups import grouped
from breakeven.origin.hf_rules import Rules, Written, linear
from breakeven.origin.hf_weight_formats import Format, float4, float8, integer
from breakeven.origin.values import shown


def compressed_tensors(written: Written) -> Rules:
    """By ``config_groups``; without them by ``format``, where that leaves one way only."""
    if written.config.get("config_groups"):
        return grouped(written)
    found = _BY_FORMAT.get(str(written.config.get("format")))
    if found is None:
        raise written.refused(f"compressed-tensors {shown(written.config.get('format'))}")
    remark = Message("warning.no_config_groups", {"where": written.fields.where, "format": found.name})
    return Rules(by_role=linear(found), named=written.kept("ignore"), remarks=(remark,))


_KNOWN: Mapping[str, Format | None] = {
    "float-quantized": float8(),
    "int-quantized": integer(8, -1, shared_bits=0, activations=True),
    "nvfp4-pack-quantized": float4(16),
    "mxfp4-pack-quantized": float4(32),
}
_BY_FORMAT = {name: found for name, found in _KNOWN.items() if found is not None}
