"""accuracy.md, written from the figures of accuracy.json and from nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from accuracy.kinds import LEVERS, TIMES
from accuracy.parts import parts
from accuracy.tables import NONE, cell, covered, error, percent, plain, reason, score_cells, share, table, whole
from accuracy.words import kind, level, rival, said, texts

Document = Mapping[str, Any]
PLOTS = "accuracy"
SCORE = ("rows", "groups", "sign", "over groups", "median", "90th percentile", "bias")
ROW = ("row", "where", "measured", "predicted", "90 % interval", "mechanism")
LEAST = 3
MILLISECONDS = 1e3


def page(document: Document) -> str:
    """The whole page."""
    sections = (introduction, asked, levers, serving, intervals, regimes, devices, worst, buys, cases, not_answered, apart)
    return "\n\n".join(text for section in sections if (text := section(document))) + "\n"


def joined(*texts_: str) -> str:
    """Passages and tables with a blank line between them."""
    return "\n\n".join(text for text in texts_ if text)


def introduction(document: Document) -> str:
    """What it is, and how it is made again."""
    counts = document["rows"]
    told = {name: whole(count) for name, count in counts.items()}
    files = ", ".join(f"`{name}` (SHA-256 {mark}…)" for name, mark in document["data"].items())
    rows = whole(counts["pairs"] + counts["runs"] + counts["skipped"])
    return joined(
        said("introduction", **told), said("repeat", **told, files=files, all=rows, draws=document["draws"], seed=document["seed"])
    )


def asked(document: Document) -> str:
    """Targets, what is reached, and why what is not is not."""
    found = document["targets"]
    rows = [[each["name"], each["bound"], plain(each["found"]), "yes" if each["met"] else "**no**"] for each in found]
    missed = [f"- **{each['name']}** ({plain(each['found'])}, asked {each['bound']}): {each['why']}" for each in found if not each["met"]]
    text = said("asked", count=len(found), met=sum(each["met"] for each in found))
    return joined(text, table(["figure", "asked", "found", "reached"], rows), *([said("missed"), "\n".join(missed)] if missed else []))


def ordered(document: Document) -> Iterator[tuple[str, Any]]:
    """Levels in the order of their words, with their scores."""
    return ((name, document["levels"][name]) for name in texts()["level"] if name in document["levels"])


def levers(document: Document) -> str:
    """Levers by level of knowledge, and a plot of each."""
    rows = [
        [level(name), kind(lever), *score_cells(scores[lever]["core"]), error(scores[lever]["with_doubtful"]["group_median_error"])]
        for name, scores in ordered(document)
        for lever in LEVERS
        if lever in scores
    ]
    text = said("levers", level=level(document["shown"]))
    return joined(text, table(["level", "lever", *SCORE, "over groups, with doubtful rows"], rows), pictures(LEVERS))


def pictures(kinds: Sequence[str]) -> str:
    """Plots, side by side as far as the width allows."""
    return "\n".join(f"![{kind(name)}: predicted against measured]({PLOTS}/{name}.svg)" for name in kinds)


def serving(document: Document) -> str:
    """TPOT and TTFT by level of knowledge, with and without the rows in doubt; dense and mixtures apart."""
    scored = [(name, scores) for name, scores in ordered(document) if "tpot" in scores]
    head = ["level", "rows", "groups", "median %", "90th %", "median over groups %", "bias", "with doubtful rows", "median %", "90th %"]
    tables = [joined(f"**{kind(name)}**", table(head, [[level(at), *time_cells(scores[name])] for at, scores in scored])) for name in TIMES]
    return joined(said("serving"), *tables, pictures(TIMES))


def time_cells(scores: Mapping[str, Any]) -> list[str]:
    """The cells of one time at one level."""
    core, all_ = scores["core"], scores["with_doubtful"]
    return [
        whole(core["rows"]),
        whole(core["groups"]),
        percent(core["median_percent"]),
        percent(core["p90_percent"]),
        percent(core["group_median_percent"]),
        score_cells(core)[-1],
        whole(all_["rows"]),
        percent(all_["median_percent"]),
        percent(all_["p90_percent"]),
    ]


def intervals(document: Document) -> str:
    """Coverage by kind and level."""
    rows = [
        [level(name), kind(each), whole(core["rows"]), whole(core["groups"]), covered(core), share(core["group_coverage"])]
        for name, scores in ordered(document)
        for each, core in ((each, scores[each]["core"]) for each in texts()["kind"] if each in scores)
    ]
    return joined(said("intervals"), table(["level", "kind", "rows", "groups", "inside", "mean over groups"], rows))


def regimes(document: Document) -> str:
    """By regime."""
    return joined(said("regimes", level=level(document["shown"])), _split(document["regimes"], "regime"))


def devices(document: Document) -> str:
    """By engine and device."""
    return joined(said("devices", level=level(document["shown"])), _split(document["devices"], "engine and device", least=LEAST))


def apart(document: Document) -> str:
    """Answered, and in no score."""
    return joined(said("apart", level=level(document["shown"])), _split(document["apart"], "what"))


def _split(words: Mapping[str, Any], name: str, least: int = 1) -> str:
    rows = [
        [kind(each), word, *score_cells(found), covered(found)]
        for each in texts()["kind"]
        for word, found in words.get(each, {}).items()
        if found["rows"] >= least
    ]
    return table(["kind", name, *SCORE, "inside"], rows)


def worst(document: Document) -> str:
    """The rows furthest off, each with its mechanism."""
    tables = []
    for name, rows in document["worst"].items():
        scale = MILLISECONDS if name in TIMES else 1.0
        letters = {text: chr(ord("a") + at) for at, text in enumerate(dict.fromkeys(each["mechanism"] for each in rows))}
        body = [[*_row_cells(each, scale), letters[each["mechanism"]]] for each in rows]
        told = "\n".join(f"- {letter}: {text}" for text, letter in letters.items())
        tables.append(joined(f"### {kind(name)}{', ms' if name in TIMES else ''}", table(ROW, body), told))
    return joined(said("worst", level=level(document["shown"])), *tables)


def _row_cells(each: Mapping[str, Any], scale: float) -> list[str]:
    place = ", ".join(word for word in (each["model"], each["hardware"], each["engine"], each["regime"]) if word)
    low, high = (NONE if each[name] is None else plain(scale * each[name]) for name in ("low", "high"))
    return [each["id"], place, plain(scale * each["measured"]), plain(scale * each["predicted"]), f"{low}–{high}"]


def buys(document: Document) -> str:
    """Rules of thumb, the bare roofline, and the model without each of its parts."""
    kinds = [each for each in texts()["kind"] if each in document["rivals"]["model"]]
    head = [kind(each) for each in kinds]
    rivals = [[rival(name), *cells(found, kinds)] for name, found in document["rivals"].items()]
    without = [[part.title, *cells(document["parts"][part.name], kinds)] for part in parts() if part.name in document["parts"]]
    return joined(said("buys"), table(["predicted by", *head], rivals), said("without"), table(["without", *head], without))


def cells(found: Mapping[str, Any], kinds: Sequence[str]) -> list[str]:
    """Size and sign of each kind."""
    return [NONE if each not in found else cell(found[each]) for each in kinds]


def cases(document: Document) -> str:
    """The verdicts of reported cases."""
    found = document["cases"]
    rows = {**found["classes"], "**all that bind**": found, "others": found["others"]}
    body = [[name, whole(each["right"]), whole(each["of"]), share(each["share"])] for name, each in rows.items()]
    wrong = ", ".join(f"`{name}`" for name in found["wrong"]) or NONE
    return joined(said("cases", exact=found["exact"], wrong=wrong), table(["verdict that was reported", "right", "of", "share"], body))


def not_answered(document: Document) -> str:
    """Rows that are not answered and rows that are not believed, by reason."""

    def counted(reasons: Mapping[str, int]) -> str:
        return table(["reason", "rows"], [[reason(key), whole(count)] for key, count in reasons.items()])

    return joined(said("not_answered"), counted(document["skipped"]), said("bad"), counted(document["bad"]))
