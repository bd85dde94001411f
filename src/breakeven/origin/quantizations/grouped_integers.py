"""Integers in groups: GPTQ (with GPTQModel's exceptions), AWQ, AutoRound, HQQ, EETQ.

A group adds a 16-bit scale and, where it has one, a zero point: as wide as the weights (GPTQ packs it for symmetric ones too), or 16 bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from breakeven.origin.hf_patterns import Patterns, patterns
from breakeven.origin.hf_rules import Rules, Written, linear
from breakeven.origin.hf_weight_formats import Format, integer
from breakeven.origin.values import shown

_KEPT = ("modules_to_not_convert", "ignore", "exclude_modules")
_SCALE_BITS = 16
Named = Sequence[tuple[Patterns, Format | None]]


def gptq(written: Written) -> Rules:
    """``gptq`` and ``gptqmodel``; ``lm_head`` is converted where it says so, ``dynamic`` excepts modules or gives them other widths."""
    found = _packed(written, written.config)
    return _with_head(written, found, [*_dynamic(written), *written.kept(*_KEPT)])


def awq(written: Written) -> Rules:
    """``awq``: asymmetric unless it says otherwise."""
    bits, zeros = written.number("bits", "w_bit"), written.flag("zero_point", True)
    found = integer(bits, written.number("group_size", "q_group_size"), shared_bits=_SCALE_BITS + (bits or 0) * zeros)
    if found is None:
        raise written.refused(_method(written))
    return _with_head(written, found, written.kept(*_KEPT))


def auto_round(written: Written) -> Rules:
    """``auto-round``: packed as GPTQ packs; ``extra_config`` gives modules a width of their own."""
    if str(written.config.get("data_type", "int")) != "int":
        raise written.refused(f"auto-round {shown(written.config['data_type'])}")
    found = _packed(written, written.config)
    extra = written.inner("extra_config").config
    named = [(patterns([name], written.fields), _extra(written, name, extra)) for name in extra]
    return _with_head(written, found, [*named, *written.kept(*_KEPT)])


def _extra(written: Written, name: str, extra: Mapping[str, object]) -> Format | None:
    own = written.at(extra[name], f"extra_config.{name}").config
    bits = written.at(own, "extra_config").number("bits")
    return None if bits is not None and bits >= 16 else _packed(written, {**written.config, **own})


def hqq(written: Written) -> Rules:
    """``hqq``: a 16-bit scale and a 16-bit zero point for each group."""
    weights = written.inner("quant_config").inner("weight_quant_params") if written.config.get("quant_config") else written
    bits = weights.number("nbits", "bits")
    group = weights.number("group_size")
    found = integer(bits, -1 if group is None else group, shared_bits=2 * _SCALE_BITS)
    if found is None:
        raise weights.refused(f"hqq {bits} bits")
    return Rules(by_role=linear(found), named=written.kept("skip_modules", *_KEPT))


def eetq(written: Written) -> Rules:
    """``eetq``: 8-bit weights with a scale a column."""
    if written.config.get("weights", "int8") != "int8":
        raise written.refused(f"eetq {shown(written.config['weights'])}")
    found = integer(8, -1, shared_bits=0)
    return Rules(by_role=linear(found) if found else {}, named=written.kept(*_KEPT))


def _packed(written: Written, config: Mapping[str, object]) -> Format:
    own = written.at(config, "bits")
    bits = own.number("bits", "w_bit")
    found = integer(bits, own.number("group_size", "q_group_size"), shared_bits=_SCALE_BITS + (bits or 0))
    if found is None:
        raise own.refused(_method(written))
    return found


def _method(written: Written) -> str:
    return shown(written.config.get("quant_method", "integers"))


def _with_head(written: Written, found: Format, named: Named) -> Rules:
    head = ("head",) if written.config.get("lm_head") is True else ()
    return Rules(by_role=linear(found, *head), named=named)


def _dynamic(written: Written) -> Named:
    """``-:`` leaves modules out, ``+:`` (or nothing) changes what is said of all; the first expression that means a module decides."""
    changes = written.inner("dynamic").config
    named: list[tuple[Patterns, Format | None]] = []
    for key in changes:
        expression = patterns([f"re:{key[2:] if key[:2] in ('-:', '+:') else key}"], written.fields)
        own = {} if key.startswith("-:") else written.at(changes[key], f"dynamic.{key}").config
        named.append((expression, None if key.startswith("-:") else _packed(written, {**written.config, **own})))
    return named
