"""The words of a command line: its language, its help, and its mistakes in one line each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any

from breakeven.errors import InputError
from breakeven.messages import LANGUAGES, say

SOURCES = ("evidence", "trace", "log", "launch", "calibration", "prometheus", "match", "driven_url")
"""Options of which several could be meant together. Of others the last is taken, so that one can be put over a line's own."""
TWICE: Mapping[str, str] = {"evidence": "evidence_twice"}
"""What is said of them, where there is more to say than that."""
OF_NUMBERS = (
    "BYTES/S",
    "DEVICE",
    "DEVICE[:COUNT]",
    "DURATION",
    "FACTOR",
    "MIN:MAX",
    "N,N,…",
    "NUMBER",
    "REQ/S",
    "SECONDS",
    "SHARE",
    "SHARE,SHARE,…",
    "SIZE",
    "TIME",
    "TOKENS",
    "VERSION",
    "[HOST]:PORT",
)
"""What an option is said to take where it is a number, or has one in it."""
FULL, HALF, IDEOGRAPHIC = range(0xFF01, 0xFF5F), 0x21, "\u3000"
"""Full-width forms of ASCII, the first of ASCII's own, and the blank that goes with them."""


def one_of(given: str | None, name: str, known: Iterable[str]) -> None:
    """Refuse a word that is not among those known."""
    if given is not None and given not in known:
        raise InputError("not_one_of", path=name, value=given, names=", ".join(known))


def without_language(arguments: Sequence[str]) -> list[str]:
    """The arguments without a ``--lang`` before the verb: as an option there it would make typer load its validator, 0.1 s."""
    rest, at = list(arguments), 0
    while at < len(rest) and rest[at].startswith("-"):
        if rest[at].partition("=")[0] == "--lang":
            del rest[at : at + (1 if "=" in rest[at] else 2)]
        else:
            at += 1
    return rest or ["--help"]


def language_of(arguments: Sequence[str], environment: Mapping[str, str]) -> str:
    """The language asked for: ``--lang``, then BREAKEVEN_LANG, then the locale."""
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=False):
        name, equals, value = argument.partition("=")
        if name == "--lang":
            given = value if equals else following
            one_of(given, "--lang", LANGUAGES)
            return given
    names = ("BREAKEVEN_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
    wanted = next((environment[name] for name in names if environment.get(name)), "")
    return "zh" if wanted.lower().startswith("zh") else "en"


def once(arguments: Sequence[str], command: Any) -> None:
    """Refuse a source that is given twice: the parser would take the last, and say nothing of the other."""
    verb = next((word for word in arguments if not word.startswith("-")), "")
    found = getattr(command, "commands", {}).get(verb)
    takes = {name: one for one in getattr(found, "params", ()) if _takes_one(one) for name in one.opts}
    given: dict[str, str] = {}
    words = iter(arguments[arguments.index(verb) + 1 :] if found is not None else ())
    for word in words:
        name, equals, value = word.partition("=")
        if word == "--":
            return
        if (one := takes.get(name)) is not None:
            value = value if equals else next(words, "")
            if given.setdefault(one.name, value) != value and one.name in SOURCES:
                raise InputError(TWICE.get(one.name, "option_twice"), option=name)


def _takes_one(param: Any) -> bool:
    """Whether it is an option with one value, of which there can be one."""
    return param.param_type_name == "option" and not (param.multiple or param.is_flag or param.count) and param.nargs == 1


def translate(command: Any, language: str) -> None:
    """Give a verb and its options their help in a language: the key is ``cli.<verb>`` or ``cli.option_<name>``."""
    command.help = say(f"cli.{command.name or 'breakeven'}", language)
    for param in command.params:
        param.help = say(f"cli.option_{param.name}", language)
    for verb in getattr(command, "commands", {}).values():
        translate(verb, language)


def half_width(typed: str) -> str:
    """A number as ASCII, as an input method for Chinese may have left it: digits of any script, and full-width letters and signs.

    >>> half_width("６０ｓ"), half_width("１５００．．２５００"), half_width("h100-sxm：２")
    ('60s', '1500..2500', 'h100-sxm:2')
    """
    return "".join(_half(sign) for sign in typed)


def _half(sign: str) -> str:
    if ord(sign) in FULL:
        return chr(ord(sign) - FULL[0] + HALF)
    return " " if sign == IDEOGRAPHIC else str(int(sign)) if sign.isdecimal() else sign


def take_as_typed(command: Any) -> None:
    """Options are text, switches or lists of text, which a verb reads itself: they need no validator, which typer takes 0.1 s to load."""
    for param in command.params:
        param.process_value = partial(_as_typed, param)
    for verb in getattr(command, "commands", {}).values():
        take_as_typed(verb)


def _as_typed(param: Any, ctx: Any, value: Any) -> Any:
    """A value as it was typed, numbers in ASCII; typer's own way with what is missing and has to be there, and with any other kind."""
    words = value if isinstance(value, (list, tuple)) else (value,)
    if (param.required and not value) or not all(isinstance(word, (str, bool)) for word in words if word is not None):
        return type(param).process_value(param, ctx, value)
    taken = () if value is None and (param.multiple or param.nargs == -1) else value
    if isinstance(taken, str) and param.metavar in OF_NUMBERS:
        taken = half_width(taken)
    return taken if param.callback is None else param.callback(ctx, param, taken)


def usage_line(error: Any, language: str, verbs: Sequence[str]) -> str:
    """A mistake in the command line itself, in one line."""
    kind, reason = type(error).__name__, " ".join(error.format_message().split())
    if kind == "NoSuchOption":
        return _unknown("option", error.option_name, getattr(error, "possibilities", None) or (), language)
    if kind == "BadOptionUsage":
        return say("cli.value_unwanted" if "take" in reason else "cli.value_needed", language, option=error.option_name)
    if found := re.match(r"No such command '([^']+)'", reason):
        return _unknown("command", found[1], get_close_matches(found[1], verbs), language)
    if found := re.search(r"unexpected extra argument\S* \((.+)\)", reason):
        return say("cli.extra_arguments", language, given=found[1])
    return say("cli.usage", language, reason=reason)


def _unknown(kind: str, given: str, near: Sequence[str], language: str) -> str:
    if not near:
        return say(f"cli.no_such_{kind}", language, given=given)
    return say(f"cli.no_such_{kind}_near", language, given=given, near=say("report.list_join", language).join(near))
