"""What went wrong with the hub, in one true line: each kind of fault has something else to be done about it."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from urllib.parse import urlsplit

from breakeven.errors import BreakevenError, InputError, UnreachableError
from breakeven.messages import Message
from breakeven.origin.values import shown

TOO_MANY, SERVER_FAULT = 429, 500
"""Answers of a hub that cannot serve now: too many asked, or a fault of its own from here on."""
FULL = (errno.ENOSPC, errno.EDQUOT)
UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)


@dataclass(frozen=True, kw_only=True)
class HubRequest:
    """What is asked of which hub, and the catalogue names that look like it."""

    repository: str
    revision: str | None
    endpoint: str
    cache: str
    near: str = ""

    @property
    def told(self) -> dict[str, object]:
        """What the lines say of it: never a name and a password that the endpoint was written with."""
        near: object = Message("error.hub_near", {"near": self.near}) if self.near else ""
        return {"name": shown(self.repository), "endpoint": without_password(self.endpoint), "near": near}


def without_password(address: str) -> str:
    """An address without the name and the password that may stand in it.

    >>> without_password("https://me:secret@mirror.example/hf")
    'https://mirror.example/hf'
    """
    host = urlsplit(address).netloc
    return address.replace(host, host.rpartition("@")[2], 1) if "@" in host else address


def is_absent(fault: BaseException) -> bool:
    """Whether the hub said that the repository has no such file."""
    from huggingface_hub import errors

    return isinstance(fault, errors.RemoteEntryNotFoundError)


def fault_line(fault: BaseException, asked: HubRequest, file: str) -> BreakevenError:
    """The line for a fault of the library; what it made of an answer is looked through to the answer."""
    from huggingface_hub import errors

    if isinstance(fault, errors.LocalEntryNotFoundError):
        fault = fault.__cause__ or fault
    told = asked.told
    if isinstance(fault, errors.HFValidationError):
        return InputError("hub_bad_name", **told)
    if isinstance(fault, errors.GatedRepoError):
        return InputError("hub_gated", **told)
    if isinstance(fault, errors.RepositoryNotFoundError):
        return InputError("hub_no_repository", **told)
    if isinstance(fault, errors.RevisionNotFoundError):
        return InputError("hub_no_revision", revision=shown(asked.revision or "main"), **told)
    if isinstance(fault, errors.HfHubHTTPError):
        return _answered(fault.response.status_code, told)
    if isinstance(fault, errors.FileMetadataError):
        return InputError("hub_no_hub", **told)
    if _is_timeout(fault):
        return UnreachableError("hub_slow", file=file, **told)
    return _below(fault, asked)


def _answered(status: int, told: dict[str, object]) -> BreakevenError:
    if status in (401, 403):
        return InputError("hub_refused", status=status, **told)
    kind = UnreachableError if status == TOO_MANY or status >= SERVER_FAULT else InputError
    return kind("hub_status", status=status, **told)


def _is_timeout(fault: BaseException) -> bool:
    """By name too: the library has changed its HTTP client, whose errors are not Python's."""
    return any("Timeout" in kind.__name__ for kind in type(fault).__mro__)


def _below(fault: BaseException, asked: HubRequest) -> BreakevenError:
    """Faults of the network or of the disk, without an answer of the hub."""
    number = fault.errno if isinstance(fault, OSError) else None
    if number in FULL:
        return InputError("hub_disk_full", cache=asked.cache, **asked.told)
    if number in UNWRITABLE:
        return InputError("hub_cache_unwritable", cache=asked.cache, **asked.told)
    if any(kind.__name__ in ("ConnectError", "UnsupportedProtocol", "ProxyError") for kind in type(fault).__mro__):
        return UnreachableError("hub_unreachable", **asked.told)
    return UnreachableError("hub_broken_off", **asked.told)
