"""accuracy.md, written from the figures of accuracy.json and from nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from accuracy.kinds import LEVERS, TIMES
from accuracy.parts import parts
from accuracy.tables import NONE, covered, error, percent, plain, share, signed, table, whole
from accuracy.words import KINDS, LEVELS, RIVALS

Document = Mapping[str, Any]
PLOTS = "accuracy"
INTRODUCTION = """# Accuracy

What the model predicts, held against what others measured: {pairs} gains of levers and {runs} serving runs of public sources, each at the conditions its row
states. Nothing on this page is written by hand: it is made by one command from the measurements and the model, and every figure stands in
[accuracy.json](accuracy.json) too.

An error is |ln(predicted/measured)|: 0.10 is 10 %. *Over groups* is the median over groups of each group's median: a group is one source with one model, device or
kernel, and a source with many rows counts once. A *sign* is right when a measured gain outside 0.95–1.05 and the predicted one lie on the same side of 1. *Left out* means that
the fit never saw the row's group. Intervals are of 90 %; the bracket behind a share of rows inside is its 95 % binomial interval (Wilson 1927).
"""
REPEAT = """## How to repeat it

```sh
BREAKEVEN_SHARED=../shared make accuracy
```

The measurements are not part of the repository; `BREAKEVEN_SHARED` names their folder. {files}. {draws} draws a row, seed {seed}. Rows of one file alone:
`breakeven backtest lever_points.csv`. Of {all} rows {pairs} gains and {runs} runs are answered, {skipped} are not, each for a reason [below](#what-is-not-answered); {bad} cannot be true as written or
are doubted by their collectors, and are named, answered, and in no fit and no score but the one that says so.
"""


def page(document: Document) -> str:
    """The whole page."""
    parts_of_page = (
        introduction(document),
        asked(document),
        levers(document),
        serving(document),
        intervals(document),
        regimes(document),
        devices(document),
        worst(document),
        buys(document),
        not_answered(document),
    )
    return "\n".join(part.rstrip() + "\n" for part in parts_of_page if part)


def introduction(document: Document) -> str:
    """What it is, and how it is made again."""
    counts = document["rows"]
    files = ", ".join(f"`{name}` (SHA-256 {print_}…)" for name, print_ in document["data"].items())
    values = {
        "files": files,
        "draws": document["draws"],
        "seed": document["seed"],
        "all": whole(sum(counts[n] for n in ("pairs", "runs", "skipped"))),
    }
    told = {name: whole(count) for name, count in counts.items()}
    return INTRODUCTION.format(**told) + "\n" + REPEAT.format(**told, **values)


def asked(document: Document) -> str:
    """Targets and what is reached."""
    rows = [[each["name"], each["bound"], plain(each["found"]), "yes" if each["met"] else "**no**"] for each in document["targets"]]
    return f"## What was asked for\n\n{table(['figure', 'asked', 'found', 'reached'], rows)}"


def levers(document: Document) -> str:
    """Levers by level of knowledge, and a plot of each."""
    text = [
        "## Levers",
        f"At level *{LEVELS[shown(document)]}* the dots of the plots are the rows below; the roofline's are of the same rows.",
    ]
    head = ["level", "lever", "rows", "groups", "sign", "over groups", "median", "90th percentile", "bias", "with doubtful rows"]
    rows = []
    for level, scores in ordered(document["levels"]):
        rows += [
            [LEVELS[level], KINDS[lever], *score_cells(scores[lever]["core"]), error(scores[lever]["with_doubtful"]["group_median_error"])]
            for lever in LEVERS
            if lever in scores
        ]
    text.append(table(head, rows))
    text.append(pictures(LEVERS))
    return "\n\n".join(text)


def score_cells(found: Mapping[str, Any]) -> list[str]:
    """The cells of one score."""
    return [
        whole(found["rows"]),
        whole(found["groups"]),
        share(found.get("sign_agreement")),
        error(found["group_median_error"]),
        error(found["median_error"]),
        error(found["p90_error"]),
        signed(found["bias"]),
    ]


def ordered(levels: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Levels in the order of the words."""
    return ((name, levels[name]) for name in LEVELS if name in levels)


def shown(document: Document) -> str:
    """The level that rows are shown at."""
    return "left_out" if "left_out" in document["levels"] else "shipped"


def pictures(kinds: Sequence[str]) -> str:
    """Plots side by side as far as the width allows."""
    return "\n".join(f"![{KINDS[kind]}: predicted against measured]({PLOTS}/{kind}.svg)" for kind in kinds)


def serving(document: Document) -> str:
    """TPOT and TTFT by level of knowledge, with and without the rows in doubt."""
    head = [
        "level",
        "rows",
        "groups",
        "TPOT median %",
        "TPOT 90th %",
        "over groups",
        "bias",
        "with doubtful: rows",
        "median %",
        "90th %",
        "TTFT median %",
        "TTFT 90th %",
        "TTFT with doubtful: median %",
    ]
    rows = []
    for level, scores in ordered(document["levels"]):
        if "tpot" in scores:
            rows.append([LEVELS[level], *time_cells(scores)])
    text = "Percentages are exp(error) − 1, as errors of times are told. Aggregated runs: runs over two pools stand [apart](#what-is-not-answered)."
    return "\n\n".join(["## Serving runs", text, table(head, rows), pictures(TIMES)])


def time_cells(scores: Mapping[str, Any]) -> list[str]:
    """The cells of one level of serving."""
    core, whole_ = scores["tpot"]["core"], scores["tpot"]["with_doubtful"]
    first = scores.get("ttft", {"core": {}, "with_doubtful": {}})
    return [
        whole(core["rows"]),
        whole(core["groups"]),
        percent(core["median_percent"]),
        percent(core["p90_percent"]),
        error(core["group_median_error"]),
        signed(core["bias"]),
        whole(whole_["rows"]),
        percent(whole_["median_percent"]),
        percent(whole_["p90_percent"]),
        percent(first["core"].get("median_percent")),
        percent(first["core"].get("p90_percent")),
        percent(first["with_doubtful"].get("median_percent")),
    ]


def intervals(document: Document) -> str:
    """Coverage by kind and level."""
    rows = []
    for level, scores in ordered(document["levels"]):
        rows += [
            [
                LEVELS[level],
                KINDS[kind],
                whole(both["core"]["rows"]),
                whole(both["core"]["groups"]),
                covered(both["core"]),
                share(both["core"]["group_coverage"]),
            ]
            for kind, both in ((kind, scores[kind]) for kind in KINDS if kind in scores)
        ]
    text = "Share of measured values inside the 90 % interval. Rows of a group share an offset, so that one group in or out moves its rows together: the mean over groups counts each once."
    return "\n\n".join(["## Intervals", text, table(["level", "kind", "rows", "groups", "inside", "mean over groups"], rows)])


def regimes(document: Document) -> str:
    """By regime."""
    return _split(
        document["regimes"],
        "## By regime",
        "Rows of one regime err alike: what was measured, how, and with which kind of kernel.",
        "regime",
    )


def devices(document: Document) -> str:
    """By engine and device."""
    return _split(document["devices"], "## By engine and device", "Cells of three rows and more.", "engine and device", least=3)


def _split(words: Mapping[str, Any], title: str, text: str, name: str, least: int = 1) -> str:
    head = ["kind", name, "rows", "groups", "sign", "over groups", "median", "90th percentile", "bias", "inside"]
    rows = [
        [KINDS[kind], word, *score_cells(found), covered(found)]
        for kind in KINDS
        for word, found in words.get(kind, {}).items()
        if found["rows"] >= least
    ]
    return "\n\n".join([title, text, table(head, rows)])


def worst(document: Document) -> str:
    """The rows furthest off, each with its mechanism."""
    text = [
        "## The rows furthest off",
        "The ten of each kind; the mechanism is told by rules over a row's fields (`tools/accuracy/mechanisms.toml`), never by its name.",
    ]
    head = ["row", "where", "measured", "predicted", "90 % interval", "mechanism"]
    for kind, rows in document["worst"].items():
        scale, unit = (1e3, ", ms") if kind in TIMES else (1.0, "")
        cells = [_row_cells(each, scale) for each in rows]
        text += [f"### {KINDS[kind]}{unit}", table(head, cells)]
    return "\n\n".join(text)


def _row_cells(each: Mapping[str, Any], scale: float) -> list[str]:
    place = ", ".join(word for word in (each["model"], each["hardware"], each["engine"], each["regime"]) if word)
    low, high = (NONE if each[name] is None else plain(scale * each[name]) for name in ("low", "high"))
    return [each["id"], place, plain(scale * each["measured"]), plain(scale * each["predicted"]), f"{low}–{high}", each["mechanism"]]


def buys(document: Document) -> str:
    """Rules of thumb, the bare roofline, and the model without each of its parts."""
    kinds = [kind for kind in KINDS if kind in document["rivals"]["model"]]
    head = ["predicted by", *(KINDS[kind] for kind in kinds)]
    rivals = [[RIVALS[name], *cells(found, kinds)] for name, found in document["rivals"].items()]
    off = [[part.title, *cells(document["parts"][part.name], kinds)] for part in parts() if part.name in document["parts"]]
    text = """Each cell: error over groups, and for a lever the share of signs that are right. The rules of thumb are given every fact of the row (acceptance
length, hit rate, how many sequences fit), and the roofline has the product's own bytes and FLOP: what they lack is the time that is neither. Nothing is fitted here and nothing fitted again when a
part is taken away."""
    without = "The model as shipped with one part switched off (its values set to nothing, or to the sheet's rate):"
    whole_ = [RIVALS["model"], *cells(document["rivals"]["model"], kinds)]
    return "\n\n".join(
        ["## What each part of the model buys", text, table(head, rivals), without, table(["without", *head[1:]], [whole_, *off])]
    )


def cells(found: Mapping[str, Any], kinds: Sequence[str]) -> list[str]:
    """Size and sign of each kind."""
    return [NONE if kind not in found else cell(found[kind]) for kind in kinds]


def cell(found: Mapping[str, Any]) -> str:
    """Size, and where there is one the sign."""
    sign = found.get("sign_agreement")
    size = "∞" if found["group_median_error"] is None else error(found["group_median_error"])
    return size if sign is None else f"{size}, {share(sign)}"


def not_answered(document: Document) -> str:
    """Rows that are not answered or not scored, by reason."""
    return ""
