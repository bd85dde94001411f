"""What a quantisation says of each module, however it was written, and the table it is read from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from breakeven.errors import InputError, NotModelledError
from breakeven.messages import Message
from breakeven.origin.config_fields import Fields, table, whole_number
from breakeven.origin.hf_modules import Module, Role
from breakeven.origin.hf_patterns import Patterns, patterns
from breakeven.origin.hf_weight_formats import Format
from breakeven.origin.values import shown

_TOLD = ("bits", "w_bit", "nbits", "group_size", "q_group_size", "quant_algo", "format", "quant_type", "fmt")


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The first list that means a module decides; else its role does; what neither names stays at 16 bits."""

    by_role: Mapping[Role, Format] = field(default_factory=dict)
    named: Sequence[tuple[Patterns, Format | None]] = ()
    remarks: tuple[Message, ...] = ()

    def format_of(self, module: Module) -> Format | None:
        """The format of a module; None is 16 bit."""
        for means, found in self.named:
            if means.mean(module.names):
                return found
        return self.by_role.get(module.role)


def linear(found: Format, *more: Role) -> Mapping[Role, Format]:
    """One format for the matrices of attention, MLPs and experts, and for further roles."""
    roles: tuple[Role, ...] = ("linear", "expert", *more)
    return dict.fromkeys(roles, found)


@dataclass(frozen=True, kw_only=True)
class Written:
    """A table of a quantisation, and where it stands."""

    config: Mapping[str, object]
    fields: Fields
    name: str
    """The model's."""

    def at(self, config: object, name: str) -> Written:
        """A table within."""
        return replace(self, config=table(config, f"quantization_config.{name}", self.fields.where))

    def inner(self, name: str) -> Written:
        """A table within by its name, empty where it is absent."""
        return self.at(self.config.get(name) or {}, name)

    def number(self, *names: str) -> int | None:
        """A whole number by the first of its names."""
        for name in names:
            if self.config.get(name) is not None:
                return whole_number(self.config[name], f"quantization_config.{name}", self.fields.where, low=-1, high=1_000_000)
        return None

    def flag(self, name: str, default: bool = False) -> bool:
        """A true or false."""
        value = self.config.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise InputError("config_bad_flag", where=self.fields.where, field=f"quantization_config.{name}", value=shown(value))
        return value

    def words(self, name: str) -> tuple[str, ...]:
        """A list of words, empty where it is absent."""
        found = self.config.get(name)
        if found is None:
            return ()
        if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
            raise InputError("config_bad_list", where=self.fields.where, field=f"quantization_config.{name}", value=shown(found))
        return tuple(found)

    def kept(self, *names: str) -> Sequence[tuple[Patterns, Format | None]]:
        """The rule that modules of these lists stay as they are."""
        listed = [word for name in names for word in self.words(name)]
        return [(patterns(listed, self.fields), None)] if listed else []

    def refused(self, what: object) -> NotModelledError:
        """The refusal, by name and with what is known."""
        told = ", ".join(f"{key}={shown(self.config[key])}" for key in _TOLD if self.config.get(key) not in (None, what))
        method = f"{shown(what)} {told}".strip()
        return NotModelledError("weight_format_not_modelled", where=self.fields.where, name=self.name, method=method)
