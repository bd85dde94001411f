"""The traffic of a reported case, and what it says of acceptance and hits: as stated, ranges where a row leaves them open."""

from __future__ import annotations

import re

from case_words import TASKS, Row, first, number, text_of, tokens

from breakeven.spec.workload import Acceptance, Workload
from breakeven.stats import Range, Value

OPEN_INPUT, OPEN_OUTPUT = Range(low=100.0, high=1000.0), Range(low=100.0, high=500.0)
BY_WORD = {"agent": Range(low=1000.0, high=30_000.0), "shared prefix": Range(low=1600.0, high=8000.0)}
"""Prompts where a row says what they are and not how long: of agents, and with a prefix of a block of a hybrid model at least."""
LENGTHS = r"(?<![=/\d])(\d\d+[Kk]?|\d+[Kk])"
"""The prompt of ``1024/128``, ``8K/1K``, ``512->128``; lists such as ``c=1/8/32`` are none."""
PROMPTS = (
    r"(\d+)\+? (?:chars )?in\b",
    LENGTHS + r"(?:/|->)\d+[Kk]?(?!/)",
    r"suffix (\d+)",
    r"(\d+)-token prompt",
    r"(\d+k) prompt",
    r"-(\d+k) shared",
)
OUTPUTS = (
    r"(\d+) (?:output|new) tokens",
    r"/ ?(\d+) out",
    r"(\d+) out\b",
    r"(?<![=/\d])(?:\d\d+|\d+[Kk])(?:/|->)(\d+[Kk]?)(?!/)",
    r"\bout(?:put)? (\d+)",
)
ALONE = (
    r"1 stream|single (request|stream|user)|1 running request|max_num_seqs[ =]1\b|c=1\b|concurrency 1(?! ?/)\b"
    r"|short chat|prompt repeated"
)
OPEN_LOAD, OFFLINE = Range(low=1.0, high=64.0), Range(low=100.0, high=1000.0)


def workload_of(row: Row) -> Workload:
    text = re.sub(r"implied \([\d/]+\)", "", text_of(row, "workload", "config"))
    sweep = re.search(r"(\d+k?)\.\.(\d+k?) context", text)
    if sweep:
        return Workload(batch=1.0, context_tokens=tokens(sweep[2]), task=first(TASKS, text))
    return Workload(
        input_tokens=prompt_of(row, text),
        output_tokens=output_of(row, text),
        concurrency=clients_of(row, text),
        task=first(TASKS, text),
        prefix_hit_rate=hits_of(row),
    )


def prompt_of(row: Row, text: str) -> Value:
    ends = re.search(r"\bin (\d+)\.\.(\d+)", text)
    if ends:
        return Range(low=float(ends[1]), high=float(ends[2]))
    stated = number(PROMPTS, text)
    if stated is None:
        return next((found for word, found in BY_WORD.items() if word in text), OPEN_INPUT)
    return stated / 4 if "chars in" in text else stated  # about four characters a token


def output_of(row: Row, text: str) -> Value:
    ends = re.search(r"(\d+)-(\d+) tokens out", text)
    if ends:
        return Range(low=float(ends[1]), high=float(ends[2]))
    stated = number(OUTPUTS, text)
    return stated or served_tokens(row) or OPEN_OUTPUT


def served_tokens(row: Row) -> float | None:
    """Output tokens of a request, where a row gives tokens a second, the length of the run and the number of requests."""
    off = str(dict(row["observed"])["off"])  # type: ignore[call-overload]
    rate, wall = number((r"([\d.]+) tok/s",), off), number((r"wall ([\d.]+) s",), off)
    requests = number((r"(\d+) requests",), str(row["workload"]))
    return rate * wall / requests if rate and wall and requests else None


def clients_of(row: Row, text: str) -> Value:
    """Requests in flight: one stream, a number, the loads at which the report measured, or open."""
    if re.search(ALONE, text):
        return 1.0
    listed = re.search(r"concurrency (\d+)(?: / \d+)* / (\d+)|c=(\d+)(?:/\d+)*/(\d+)", text)
    if listed:
        low, high = (float(group) for group in listed.groups() if group)
        return Range(low=low, high=high)
    spread = re.search(r"(\d+)-(\d+) concurrent", text)
    stated = number((r"concurrency (\d+)", r"(\d+) concurrent", r"closed loop (\d+)", r"bs (\d+)", r"batch (\d+)", r"c=(\d+)\.\."), text)
    if spread or stated:
        return float(spread[2]) if spread else float(stated or 1.0)
    measured = [float(c) for c in re.findall(r"C=(\d+)", str(row["observed"]))]
    if measured:
        return Range(low=min(measured), high=max(measured))
    once = number((r"[^x\d](\d+) prompts",), text)
    if once:
        return once
    return OFFLINE if re.search(r"offline|requests", text) else OPEN_LOAD


def hits_of(row: Row) -> float | None:
    """Share of the prompt that is served from the cache, where a row states it."""
    text = text_of(row, "title", "workload", "observed")
    shared = number((r"shared prefix (\d+)",), str(row["config"]))
    percent = number((r"([\d.]+)% (?:hit|block reuse)",), text)
    computed = re.findall(r"prompt_n (\d+)", text)
    if len(computed) == 2:
        return 1.0 - float(computed[1]) / float(computed[0])
    if percent:
        return percent / 100
    if "(cached)" in text:
        return 0.95
    return None if shared is None else shared / float(number((r"(\d+)/\d+",), str(row["config"])) or shared)


def acceptance_of(row: Row, k: int) -> Acceptance | None:
    """Tokens a round, a share of the drafted tokens, or positions, as the row has them at this k."""
    text = text_of(row, "title", "observed", "note")
    positions = re.findall(r"\.(\d\d)(?=/|\b)", number_list(text)) if "per-position acceptance" in text else []
    if positions:
        return Acceptance(cumulative=tuple(float(f"0.{p}") for p in positions))
    of_k = re.search(rf"k={k}: [\d.]+ \(AL ([\d.]+)\)", text)
    length = float(of_k[1]) if of_k else number((r"\bAL (\d\.\d+)", r"acceptance length (\d\.\d+)"), text)
    if length is not None and "k=" in text and of_k is None:
        return None
    if length is not None:
        return Acceptance(length=length)
    rate = number((r"~?(\d+)% acceptance",), text)
    return None if rate is None else Acceptance(rate=rate / 100)


def number_list(text: str) -> str:
    found = re.search(r"per-position acceptance ([./\d]+)", text)
    return found[1] if found else ""
