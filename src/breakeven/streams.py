"""Stdout and stderr as they come: full, closed, cut off, or of an old terminal that knows only ASCII."""

from __future__ import annotations

import codecs
import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TextIO

from breakeven.errors import InputError
from breakeven.messages import Message, printable, say, text

USER = re.compile(r"(\w+:/{1,2})[^\s/]*@")
"""A user and password in an address that was typed where none is taken, also after a path has made one slash of two."""
PLAIN = {
    "×": "x",
    "÷": "/",
    "±": "+-",
    "≥": ">=",
    "≤": "<=",
    "≠": "!=",
    "≈": "~",
    "∝": "~",
    "─": "-",
    "█": "#",
    "▓": "=",
    "▒": "-",
    "░": ".",
    "▁": "_",
    "▂": ".",
    "▃": "-",
    "▄": "-",
    "▅": "=",
    "▆": "=",
    "▇": "+",
    "·": "|",
    "▼": "v",
    "→": "->",
    "←": "<-",
    "–": "-",
    "…": "...",
    "—": "--",
    "‐": "-",
    "‑": "-",
    "−": "-",
    "∞": "inf",
    "“": '"',
    "”": '"',
    "′": "'",
    "½": "1/2",
    "²": "^2",
    "³": "^3",
    "₀": "_0",
    "₁": "_1",
    "₂": "_2",
    "√": "sqrt",
    "Σ": "sum",
    "Π": "prod",
    "Δ": "Delta",
    "Φ": "Phi",
    "α": "alpha",
    "β": "beta",
    "δ": "delta",
    "ε": "epsilon",
    "η": "eta",
    "θ": "theta",
    "κ": "kappa",
    "λ": "lambda",
    "µ": "u",
    "μ": "mu",
    "ν": "nu",
    "ξ": "xi",
    "π": "pi",
    "ρ": "rho",
    "σ": "sigma",
    "τ": "tau",
    "φ": "phi",
    "χ": "chi",
    "ℓ": "l",
}
"""What stands for a sign that the terminal does not know."""
DOT, TIMES = "·", "*"
"""Between blanks it separates; within a formula it multiplies."""
_LANGUAGE: ContextVar[str] = ContextVar("language", default="en")


class UnwrittenError(Exception):
    """Stdout took no more; the reason is the system's."""


def prepare() -> None:
    """Let both streams write what they can where a sign is not known to them."""
    codecs.register_error("breakeven", _plain)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="breakeven")


def hold(words: str) -> None:
    """Write UTF-8 where a stream's own encoding has not the letters of some words: for letters nothing else can stand."""
    letters = "".join(filter(str.isalpha, words))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure") and not _holds(stream.encoding, letters):
            codecs.register_error("breakeven", _plain)
            stream.reconfigure(encoding="utf-8", errors="breakeven")


def _holds(encoding: str, letters: str) -> bool:
    try:
        letters.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_stand_in(error.object, place) for place in range(error.start, error.end)), error.end


def _stand_in(words: str, place: int) -> str:
    """What is written of a sign: a dot that no blank is beside is a product."""
    beside = words[max(place - 1, 0) : place] + words[place + 1 : place + 2]
    if words[place] == DOT and len(beside) == len("ab") and not any(map(str.isspace, beside)):
        return TIMES
    return PLAIN.get(words[place], "?")


def _unfinished(path: Path) -> Path:
    """Where a file is written before it takes its place."""
    return path.with_name(f".{path.name}.{os.getpid()}")


def _behind(path: Path) -> Path:
    """The file that a link leads to, there or not yet: what is written goes there, and the link stays one."""
    if not path.is_symlink():
        return path
    found = Path(os.path.realpath(path))
    if found.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return found


def _is_device(path: Path) -> bool:
    """Whether a place is no file: it is written to as it is, and not replaced."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _is_stdout(path: Path) -> bool:
    """Whether stdout goes into that very file: one that took its place would leave stdout to a file without a name."""
    try:
        return sys.stdout is not None and os.path.samestat(path.stat(), os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError):
        return False


def try_file(path: Path) -> None:
    """Refuse a place where :func:`write_file` could not write; what is there stays as it is, and nothing is left behind."""
    try:
        if _is_device(path):
            # Opened, a pipe would wait for its reader, and some devices would begin.
            if not os.access(path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return
        if _is_stdout(path):
            raise InputError("out_is_stdout", path=str(path))
        if path.exists():
            path.open("r+b").close()
        unfinished = _unfinished(_behind(path))
        unfinished.touch()
        unfinished.unlink()
    except OSError as error:
        raise InputError("cannot_write", path=str(path), reason=error.strerror or "") from None


def write_file(path: Path, words: str) -> None:
    """Write a whole file or leave the one that is there; what is no file, a device or a pipe, is written to and stays what it is."""
    try:
        if _is_device(path):
            path.write_text(words, encoding="utf-8")
        else:
            _replace(_behind(path), words)
    except OSError as error:
        raise InputError("cannot_write", path=str(path), reason=error.strerror or "") from None


def _replace(path: Path, words: str) -> None:
    unfinished = _unfinished(path)
    try:
        unfinished.write_text(words, encoding="utf-8")
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def write_out(words: str) -> None:
    """Write on stdout, now."""
    if sys.stdout is None:
        raise UnwrittenError(os.strerror(errno.EBADF))
    try:
        sys.stdout.write(words)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        silence(sys.stdout)
        raise UnwrittenError(error.strerror) from None


@contextmanager
def unread_or_full() -> Iterator[None]:
    """Within it stdout may fail, its reader have left or its disk be full: there is something of more weight to be said after it."""
    try:
        yield
    except BrokenPipeError:
        silence(sys.stdout)
    except UnwrittenError:
        return


def is_terminal() -> bool:
    """Whether people read stdout as it comes."""
    return sys.stdout is not None and sys.stdout.isatty()


def talks_to_a_terminal() -> bool:
    """Whether people see what is told on stderr."""
    return sys.stderr is not None and sys.stderr.isatty()


def silence(stream: TextIO) -> None:
    """Send the rest of a stream nowhere: Python must not complain about it once more when it closes it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def complain(line: str) -> None:
    """One line on stderr, whatever was typed; where it cannot be written the exit code says it alone."""
    talk(say("cli.complaint", line=printable(USER.sub(r"\1", line))))


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Within it, what is told on stderr is told in a language."""
    before = _LANGUAGE.set(language)
    try:
        yield
    finally:
        _LANGUAGE.reset(before)


def tell(message: Message) -> None:
    """One message on stderr, in the user's language, where it can be written."""
    talk(text(message, _LANGUAGE.get()))


def talk(line: str) -> None:
    """One line on stderr, where it can be written."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(printable(line) + "\n")
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)
