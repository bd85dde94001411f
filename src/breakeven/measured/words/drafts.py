"""How drafts are made and how many of their tokens are accepted, from settings as people write them."""

from __future__ import annotations

import re
from itertools import pairwise

from breakeven.measured.words._spelling import SEVERAL, refused, stated, table
from breakeven.spec.engine import METHODS, Speculative
from breakeven.spec.workload import Acceptance

DECIMAL = r"(\d{1,3}(?:\.\d+)?)"
LENGTH = re.compile(
    r"\b(?:accept(?:ance|ed)?[\s_-]*len(?:gth)?s?|mean acceptance length|al|tau"
    r"|tokens\s*(?:/|per)\s*(?:forward|step|round|verify step|pass))\b"
    r"(?:\s+without (?:the )?bonus(?: token)?)?"
    rf"\s*(?:of|is|=|:)?\s*{DECIMAL}",
    re.IGNORECASE,
)
WITHOUT_BONUS = re.compile(r"\bwithout (?:the )?bonus\b|\bbonus (?:token )?(?:not|excluded)\b|\baccepted draft tokens per\b", re.IGNORECASE)
RATE = re.compile(
    rf"(?:\baccept(?:ance)?[\s_-]*rate|^rate|\brate(?=[^,;]*accepted/drafted))\s*(?:of|is|=|:)?\s*{DECIMAL}\s*(%)?", re.IGNORECASE
)
ALPHA = re.compile(rf"(?:\balpha|α|\bsynth_a)\s*(?:of|is|=|:)?\s*{DECIMAL}\s*(%)?", re.IGNORECASE)
EFFICIENCY = re.compile(rf"\bsystem efficiency\s*(?:of|is|=|:)?\s*{DECIMAL}\s*(%)?", re.IGNORECASE)
COUNTERS = re.compile(r"\b(accepted|drafts|drafted|plain steps)\b(?: tokens)?\s*(?:=|:)?\s*(\d{1,12})\b", re.IGNORECASE)
COUNTED_FIRST = re.compile(r"\b(\d{1,12})\s+(accepted|drafts|drafted|plain steps)\b", re.IGNORECASE)
POSITIONS = re.compile(r"(?:(?<![\d.])[01]?\.\d+[\s,;]+){1,31}(?<![\d.])[01]?\.\d+")
TOKENS_DRAFTED = re.compile(
    r"\b(?:num_speculative_tokens|speculative[_ ]tokens|k|gamma|(?:num_)?steps|chain,? (?:of )?length)\s*[=:]?\s*(\d{1,3})(?![\w.]*\d)"
    r"|_k(\d{1,3})\b|(?<![\w.])(?<!: )(?<!accepted )(?<!drafted )(\d{1,3})\s+(?:steps|tokens|draft(?:ed)? tokens)\b",
    re.IGNORECASE,
)
TOPK = re.compile(r"\btop[\s_-]?k\s*[=:]?\s*(\d{1,3})\b", re.IGNORECASE)
NODES = re.compile(
    r"\b(?:(?:num_)?draft[_ ]tokens|nodes|verify[_ ]tokens)\s*[=:]?\s*(\d{1,4})\b|topk\s?\d+\s+(\d{1,4}) tokens", re.IGNORECASE
)
HEADS = re.compile(r"\b(\d{1,2})\s+heads\b", re.IGNORECASE)
TRT_NGRAM = re.compile(r"\bn-?gram\b.*\bk\s*=\s*\d+\s*,?\s*v\s*=\s*(\d{1,3})\b", re.IGNORECASE)
DRAFT_MODEL = re.compile(r"\bdraft(?: model)?[\s=:]+([A-Za-z][\w./-]*\d[\w./-]*)", re.IGNORECASE)
HEAD = re.compile(r"\bhead\s*=\s*([\w./-]+)")


def acceptance(text: str) -> Acceptance:
    """What a text states of acceptance: a length with the bonus token, a rate, α, counters, or a sequence by position."""
    phrase = stated(text, "acceptance")
    if len(LENGTH.findall(phrase)) > 1:
        raise refused("two_named", field="acceptance", text=phrase)
    k = drafted(phrase)
    for reader in (_length, _counted, _efficiency, _by_position, _alpha, _rate):
        if (found := reader(phrase, k)) is not None:
            return found
    raise refused("no_acceptance", field="acceptance", text=phrase)


def drafted(phrase: str) -> int | None:
    """Tokens drafted a round, where a text states them; ``k = n-gram, v = draft`` is TensorRT-LLM's n-gram lookup."""
    if found := TRT_NGRAM.search(phrase):
        return int(found[1])
    if found := HEADS.search(phrase):
        # "2 heads" of a multi-token model are its own next token and one drafted.
        return int(found[1]) - 1
    found = TOKENS_DRAFTED.search(phrase)
    return int(next(each for each in found.groups() if each)) if found else None


def _length(phrase: str, k: int | None) -> Acceptance | None:
    """Tokens a round. A length over the rounds that drafted, with the steps that did not beside it, is one over all: τ."""
    found = LENGTH.search(phrase)
    if found is None:
        return None
    length = float(found[1]) + (1.0 if WITHOUT_BONUS.search(phrase) else 0.0)
    if length < 1.0 or (k is not None and length > k + 1.0):
        raise refused("length_impossible", field="acceptance", text=phrase, length=length)
    counts = _counts(phrase)
    drafts, plain = counts.get("drafts", 0.0), counts.get("plain steps", 0.0)
    if drafts and plain:
        length = (length * drafts + plain) / (drafts + plain)
    return Acceptance(length=length, k=k)


def _counts(phrase: str) -> dict[str, float]:
    """Counters by name, in the order of name and number that more of them have."""
    after = [(name, count) for name, count in COUNTERS.findall(phrase)]
    before = [(name, count) for count, name in COUNTED_FIRST.findall(phrase)]
    return {name.lower(): float(count) for name, count in (before if len(before) > len(after) else after)}


def _counted(phrase: str, k: int | None) -> Acceptance | None:
    counts = _counts(phrase)
    accepted, drafts, tokens = (counts.get(name) for name in ("accepted", "drafts", "drafted"))
    if accepted is None:
        return None
    if tokens and accepted > tokens:
        raise refused("no_share", field="acceptance", text=phrase)
    if drafts:
        return Acceptance(length=1.0 + accepted / drafts, k=round(tokens / drafts) if tokens else k)
    return Acceptance(rate=_share(accepted / tokens, phrase), k=k) if tokens else None


def _efficiency(phrase: str, k: int | None) -> Acceptance | None:
    """``system efficiency`` is (accepted + 1)/(k + 1) of a round."""
    found = EFFICIENCY.search(phrase)
    if found is None:
        return None
    if k is None:
        raise refused("k_not_stated", field="acceptance", text=phrase)
    return Acceptance(length=max(_percent(found, phrase) * (k + 1), 1.0), k=k)


def _by_position(phrase: str, k: int | None) -> Acceptance | None:
    """Rates by position: engines print them cumulated; one that rises is conditional; one that only falls, unnamed, may be either."""
    found = POSITIONS.search(phrase)
    if found is None:
        return None
    values = tuple(_share(float(each), phrase) for each in re.findall(r"[01]?\.\d+", found[0]))
    if "conditional" in phrase.lower() or any(later > earlier for earlier, later in pairwise(values)):
        return Acceptance(conditional=values, k=len(values))
    if re.search(r"cumulat|per[- ]position|vllm|llama\.cpp", phrase, re.IGNORECASE):
        return Acceptance(cumulative=values, k=len(values))
    raise refused("positions_unclear", field="acceptance", text=phrase)


def _alpha(phrase: str, k: int | None) -> Acceptance | None:
    found = ALPHA.search(phrase)
    return Acceptance(alpha=_percent(found, phrase), k=k) if found else None


def _rate(phrase: str, k: int | None) -> Acceptance | None:
    """Accepted over drafted. A tree drafts its nodes but the root; vLLM's V0 counted matches after a rejection too."""
    found = RATE.search(phrase)
    if found is None:
        return None
    if re.search(r"\bv0\b", phrase, re.IGNORECASE):
        raise refused("rate_of_v0", field="acceptance", text=phrase)
    nodes = NODES.search(phrase)
    drafted_nodes = int(next(each for each in nodes.groups() if each)) - 1 if nodes else k
    return Acceptance(rate=_percent(found, phrase), k=drafted_nodes)


def _percent(found: re.Match[str], phrase: str) -> float:
    return _share(float(found[1]) / (100.0 if found[2] else 1.0), phrase)


def _share(value: float, phrase: str) -> float:
    if not 0.0 <= value <= 1.0:
        raise refused("no_share", field="acceptance", text=phrase)
    return value


def speculative(text: str) -> Speculative:
    """Method, drafted tokens and the tree of a setting: ``EAGLE3 steps=3 topk=1 draft_tokens=4`` or ``n-gram, k=4``."""
    phrase = stated(text, "speculative")
    if SEVERAL.search(phrase):
        raise refused("two_named", field="speculative", text=phrase)
    method, k = _method(phrase), drafted(phrase)
    if k is None or k < 1:
        raise refused("k_not_stated", field="speculative", text=phrase)
    topk, nodes = TOPK.search(phrase), NODES.search(phrase)
    branches = int(topk[1]) if topk else 1
    if (branches > 1 and nodes is None) or ("tree" in phrase.lower() and "no tree" not in phrase.lower() and nodes is None):
        raise refused("tree_not_stated", field="speculative", text=phrase)
    return Speculative(
        method=method, num_speculative_tokens=k, model=_drafter(method, phrase), topk=branches,
        verify_tokens=int(next(each for each in nodes.groups() if each)) if nodes else None,
    )  # fmt: skip


def _method(phrase: str) -> str:
    for pattern, name in table("drafts")["methods"].items():
        if re.search(pattern, phrase, re.IGNORECASE):
            if name in METHODS:
                return str(name)
            break
    raise refused("method_unknown", field="speculative", text=phrase, known=", ".join(METHODS))


def _drafter(method: str, phrase: str) -> str | None:
    found = DRAFT_MODEL.search(phrase) if method == "draft_model" else HEAD.search(phrase)
    return found[1] if found else None
