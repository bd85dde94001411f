"""fp8 as publishers write it (by block, by tensor, by row), and the mxfp4 of experts."""

from __future__ import annotations

from breakeven.errors import InputError
from breakeven.origin.hf_rules import Rules, Written, linear
from breakeven.origin.hf_weight_formats import float4, float8
from breakeven.origin.values import shown

_KEPT = ("modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules")


def fp8(written: Written) -> Rules:
    """``fp8`` and ``fbgemm_fp8``: all linear layers, and those of MTP layers, which publishers convert alike."""
    return Rules(by_role=linear(float8(_block(written)), "mtp_linear", "mtp_expert"), named=written.kept(*_KEPT))


def mxfp4(written: Written) -> Rules:
    """The method converts experts only, whatever else its list of exceptions leaves unsaid."""
    found = float4(32)
    return Rules(by_role={"expert": found} if found else {}, named=written.kept(*_KEPT))


def mistral(written: Written) -> Rules:
    """``quantization`` of Mistral's ``params.json``: the weights' format by ``qformat_weight``."""
    form = written.config.get("qformat_weight")
    if form != "fp8_e4m3":
        raise written.refused(f"mistral qformat_weight={shown(form)}")
    return Rules(by_role=linear(float8()), named=written.kept(*_KEPT))


def _block(written: Written) -> tuple[int, int] | None:
    block = written.config.get("weight_block_size")
    if block is None:
        return None
    if not isinstance(block, list) or len(block) != 2 or not all(type(side) is int and 0 < side < 1_000_000 for side in block):
        where = written.fields.where
        raise InputError("config_bad_list", where=where, field="quantization_config.weight_block_size", value=shown(block))
    return block[0], block[1]
