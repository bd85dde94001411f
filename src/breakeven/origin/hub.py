"""A model by its Hugging Face id: its configuration from the hub's cache, or fetched there. Never weights, never code."""

from __future__ import annotations

import os
import re
from pathlib import Path

from breakeven import streams
from breakeven.errors import InputError
from breakeven.messages import say
from breakeven.origin.config_file import load_config
from breakeven.origin.values import shown
from breakeven.spec.model import Model

NEEDED = "config.json"
OPTIONAL = ("hf_quant_config.json",)
"""Beside the configuration, nothing but these is ever asked for."""
ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}(@[\w./-]{1,200})?")
ANSWER_S = 10.0


def is_id(name: str) -> bool:
    """Whether a name is spelled as an id, ``org/name`` or ``org/name@revision``.

    >>> is_id("Qwen/Qwen3-8B"), is_id("Qwen/Qwen3-8B@main"), is_id("qwen3-8b"), is_id("a/b/c")
    (True, True, False, False)
    """
    return ID.fullmatch(name) is not None


def load_id(name: str) -> Model:
    """The model of an id: from the cache where it is there, else fetched; one line says what to download where it cannot be."""
    from dataclasses import replace

    for switch in ("HF_HUB_DISABLE_TELEMETRY", "HF_HUB_DISABLE_PROGRESS_BARS"):
        os.environ[switch] = "1"  # read when the library is imported: it would tell the hub what runs it
    repository, _, revision = name.partition("@")
    config = _cached(repository, NEEDED, revision or None) or _fetched(repository, revision or None)
    return replace(load_config(config), name=repository, hf_ids=(repository,))


def _cached(repository: str, file: str, revision: str | None) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(repository, file, revision=revision)
    return Path(found) if isinstance(found, str) else None


def _fetched(repository: str, revision: str | None) -> Path:
    from huggingface_hub import constants, errors

    told = {"name": shown(repository), "endpoint": constants.ENDPOINT}
    if constants.HF_HUB_OFFLINE:
        raise InputError("hub_offline", **told)
    streams.talk(say("cli.fetching", **told))
    try:
        config = _download(repository, NEEDED, revision)
        for file in OPTIONAL:
            try:
                _download(repository, file, revision)
            except errors.EntryNotFoundError:
                continue
    except errors.GatedRepoError:
        raise InputError("hub_gated", **told) from None
    except errors.RepositoryNotFoundError:
        raise InputError("hub_no_repository", **told) from None
    except errors.RevisionNotFoundError:
        raise InputError("hub_no_revision", revision=shown(revision or "main"), **told) from None
    except errors.RemoteEntryNotFoundError:
        raise InputError("hub_no_config", **told) from None
    except (OSError, errors.LocalEntryNotFoundError, errors.HFValidationError):
        # No answer, no network, a full disk: the library tells them by many classes, all of them OSError.
        raise InputError("hub_unreachable", **told) from None
    return config


def _download(repository: str, file: str, revision: str | None) -> Path:
    from huggingface_hub import hf_hub_download

    return Path(hf_hub_download(repository, file, revision=revision, etag_timeout=ANSWER_S, library_name="breakeven"))
