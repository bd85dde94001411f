"""A model by its Hugging Face id: its configuration from the hub's cache, or fetched there. Never weights, never code."""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from breakeven import streams
from breakeven.errors import InputError
from breakeven.messages import Message
from breakeven.origin.config_file import load_config
from breakeven.origin.deadline import within
from breakeven.origin.hub_fault import HubRequest, fault_line, is_absent
from breakeven.origin.json_file import CONFIGS, LARGEST_CONFIG_BYTES
from breakeven.origin.snapshot import LARGEST_INDEX_BYTES, is_complete
from breakeven.spec.model import Model

BESIDE = {
    "config.json": {"hf_quant_config.json": LARGEST_CONFIG_BYTES, "model.safetensors.index.json": LARGEST_INDEX_BYTES},
    "params.json": {"consolidated.safetensors.index.json": LARGEST_INDEX_BYTES},
}
"""What is asked for beside a configuration, and nothing else ever is."""
ID = re.compile(r"(?!.*(--|\.\.))[A-Za-z0-9][\w.-]{0,94}[\w]?/[A-Za-z0-9]([\w.-]{0,94}\w)?(@[\w./-]{1,200})?", re.ASCII)
FILE_S = 60.0
"""A file that has not come after this long is given up, however slowly it still comes."""


def is_id(name: str) -> bool:
    """Whether a name is spelled as an id, ``org/name`` or ``org/name@revision``.

    >>> is_id("Qwen/Qwen3-8B"), is_id("Qwen/Qwen3-8B@main"), is_id("qwen3-8b"), is_id("a/b/c"), is_id("a/b--c")
    (True, True, False, False, False)
    """
    return ID.fullmatch(name) is not None


def load_id(name: str, near: str = "") -> Model:
    """The model of an id: from the cache where it is there, else fetched; one line says what to do where it cannot be had.

    ``near`` are catalogue names that look like it, for that line.
    """
    asked = _asked(name, near)
    return _loaded(asked, _cached(asked) or _fetched(asked))


def load_kept(name: str) -> Model | None:
    """The model of an id whose configuration is in the cache; None where it would have to be fetched."""
    asked = _asked(name, "")
    config = _cached(asked)
    return None if config is None else _loaded(asked, config)


def _asked(name: str, near: str) -> HubRequest:
    # Read when the library is imported: it would tell the hub what runs it.
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    from huggingface_hub import constants

    repository, _, revision = name.partition("@")
    return HubRequest(
        repository=repository, revision=revision or None, endpoint=constants.ENDPOINT, cache=constants.HF_HUB_CACHE, near=near
    )


def _loaded(asked: HubRequest, config: Path) -> Model:
    """A snapshot that is complete in the cache is read with its weight files' headers."""
    found = load_config(config.parent if is_complete(config.parent) else config, name=asked.repository, indexed=True)
    return replace(found, name=asked.repository, hf_ids=(asked.repository,))


def _cached(asked: HubRequest) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    for file in CONFIGS:
        found = try_to_load_from_cache(asked.repository, file, revision=asked.revision)
        if isinstance(found, str):
            return Path(found)
    return None


def _fetched(asked: HubRequest) -> Path:
    from huggingface_hub import constants

    if "gguf" in asked.repository.lower():
        raise InputError("hub_gguf", name=asked.repository)
    if constants.HF_HUB_OFFLINE:
        raise InputError("hub_offline", **asked.told)
    streams.tell(Message("cli.fetching", {"name": asked.told["name"], "endpoint": asked.told["endpoint"]}))
    with _quiet():
        for file in CONFIGS:
            config = _had(asked, file, LARGEST_CONFIG_BYTES)
            if config is None:
                continue
            for beside, limit in BESIDE[file].items():
                _had(asked, beside, limit)
            return config
    raise InputError("hub_no_config", **asked.told)


def _had(asked: HubRequest, file: str, limit: int) -> Path | None:
    """A file of the repository in the cache, or None where the repository has none."""
    from huggingface_hub import errors

    try:
        return within(FILE_S, lambda: _download(asked, file, limit))
    # The library's errors have no common root: those of HTTP, of the disk, and of values it refuses.
    except (errors.HTTPError, OSError, ValueError) as fault:  # type: ignore[attr-defined]
        if is_absent(fault):
            return None
        raise fault_line(fault, asked, file) from None


def _download(asked: HubRequest, file: str, limit: int) -> Path:
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_download, hf_hub_url

    class Limit(_Limit):
        most, named = limit, f"{asked.repository}/{file}"

    place: dict[str, Any] = {"revision": asked.revision, "endpoint": asked.endpoint}
    wait = constants.HF_HUB_ETAG_TIMEOUT
    # Asked first by itself: the download asks for the same up to six times, 23 s, before it says that nobody answers.
    head = get_hf_file_metadata(hf_hub_url(asked.repository, file, **place), timeout=wait, library_name="breakeven")
    Limit(total=head.size)
    return Path(hf_hub_download(asked.repository, file, library_name="breakeven", etag_timeout=wait, tqdm_class=Limit, **place))


class _Limit:
    """Stands where the library shows its progress, and stops a file that is larger than it may be."""

    most: int
    named: str

    def __init__(self, *_: object, total: int | None = None, **__: object) -> None:
        self.come = 0
        self._check(total or 0)

    def update(self, come: float | None = 1) -> None:
        self.come += int(come or 0)
        self._check(self.come)

    def _check(self, size: int) -> None:
        if size > self.most:
            raise InputError("config_too_large", where=self.named, size=size, limit=self.most)

    def __enter__(self) -> _Limit:
        return self

    def __exit__(self, *_: object) -> None:
        return


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the library's own lines on stderr: what failed is said in one of ours."""
    log = logging.getLogger("huggingface_hub")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(before)
