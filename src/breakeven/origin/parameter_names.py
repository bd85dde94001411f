"""The names that a calibration may fit: those of ``catalog/calibrations``, and the shares of each kernel family."""

from __future__ import annotations

from breakeven import kernels
from breakeven.catalog_files import our_names
from breakeven.efficiencies import parameters, prior_values
from breakeven.origin.device_entry import FAMILIES

WEIGHT_QUANTITIES = ("phi", "delta_decode", "delta_prefill")
KV_QUANTITIES = ("phi", "phi_narrow", "layer_s", "prefill")


def is_parameter(name: str) -> bool:
    """Whether the ledgers read a number of this name.

    >>> [is_parameter(name) for name in ("step.layer_s", "scale.vllm.step.layer_s", "weights.fp8.phi.hopper", "step.x")]
    [True, True, True, False]
    """
    section, _, rest = name.partition(".")
    if section == "scale":
        named, _, parameter = rest.partition(".")
        return named in (*our_names("engines"), "eager") and parameter in parameters().values()
    if section in ("weights", "kv"):
        return _of_a_kernel(section, rest.split("."))
    return name in prior_values() or name in parameters().values()


def _of_a_kernel(section: str, parts: list[str]) -> bool:
    kernel, quantity, *last = (*parts, "", "")[: max(len(parts), 2)]
    if section == "weights":
        known = kernel in kernels.weight_names() and quantity in (*WEIGHT_QUANTITIES, "phi_experts")
        return known and (not last or (quantity in WEIGHT_QUANTITIES and last[0].removesuffix("-ws") in FAMILIES and len(last) == 1))
    known = kernel in kernels.kv_names() and quantity in KV_QUANTITIES
    return known and (not last or (quantity == "layer_s" and last[0].isidentifier() and len(last) == 1))
