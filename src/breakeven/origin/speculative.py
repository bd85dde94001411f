"""Speculative decoding as people configure it: vLLM's JSON, its older flags, or a deployment file's table."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Mapping

from breakeven.errors import InputError
from breakeven.origin.values import count, shown, word
from breakeven.spec.check import check_speculative
from breakeven.spec.engine import Speculative, method_named

READ = ("method", "model", "num_speculative_tokens", "topk", "verify_tokens")
TREE = "speculative_token_tree"
LONGEST_TREE = 8192


def table_of(text: str, path: str) -> Mapping[str, object]:
    """The configuration as vLLM's flag takes it: a JSON object."""
    try:
        table = json.loads(text)
    except (ValueError, RecursionError):
        table = None
    if not isinstance(table, dict) or not table:
        raise InputError("launch_json", path=path, value=shown(text))
    return table


def speculative_of(table: Mapping[str, object], path: str) -> tuple[Speculative | None, dict[str, str]]:
    """The configuration, and the keys given that are not read. ``method: none`` switches it off."""
    unread = {f"{path}.{key}": shown(value) for key, value in table.items() if key not in (*READ, TREE) and value is not None}
    if table.get(TREE) is not None:
        table = {**table, **_tree(table[TREE], f"{path}.{TREE}")}
    given = {key: table[key] for key in READ if table.get(key) is not None}
    if str(given.get("method", "")).lower() in ("none", "off"):
        return None, unread
    model = word(given["model"], f"{path}.model") if "model" in given else None
    method = _method(given, model, path)
    found = Speculative(
        method=method,
        num_speculative_tokens=_drafted(given, method, path),
        model=None if method == "ngram" else model,
        topk=count(given.get("topk", 1), f"{path}.topk"),
        verify_tokens=count(given["verify_tokens"], f"{path}.verify_tokens") if "verify_tokens" in given else None,
    )
    check_speculative(found, path)
    return found, unread


def _tree(written: object, path: str) -> dict[str, int]:
    """vLLM's tree, a list of the paths to its nodes: its depth, its widest level, and a row for each node and the bonus.

    >>> _tree("[(0,), (1,), (0, 0), (0, 1), (1, 0)]", "tree")
    {'num_speculative_tokens': 2, 'topk': 3, 'verify_tokens': 6}
    """
    try:
        nodes = ast.literal_eval(str(written)) if len(str(written)) <= LONGEST_TREE else None
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        nodes = None
    if not isinstance(nodes, list) or not nodes or not all(isinstance(node, (list, tuple)) and node for node in nodes):
        raise InputError("speculative_tree", path=path, value=shown(written))
    levels = Counter(len(node) for node in nodes)
    return {"num_speculative_tokens": max(levels), "topk": max(levels.values()), "verify_tokens": len(nodes) + 1}


def _method(given: Mapping[str, object], model: str | None, path: str) -> str:
    """The method as named; else, as the engine does, from the name of the draft."""
    if "method" in given:
        return method_named(shown(word(given["method"], f"{path}.method")))
    if model is None:
        raise InputError("missing_key", path=f"{path}.method")
    return _method_of_model(model.lower())


def _method_of_model(model: str) -> str:
    if model in ("ngram", "[ngram]"):
        return "ngram"
    for sign, method in (("eagle3", "eagle3"), ("eagle-3", "eagle3"), ("eagle", "eagle"), ("mtp", "mtp")):
        if sign in model:
            return method
    return "draft_model"


def _drafted(given: Mapping[str, object], method: str, path: str) -> int:
    if "num_speculative_tokens" not in given:
        # A model's own head predicts one token where the engine is not told more.
        if method == "mtp":
            return 1
        raise InputError("missing_key", path=f"{path}.num_speculative_tokens")
    return count(given["num_speculative_tokens"], f"{path}.num_speculative_tokens")
