"""Writes examples/made-up-chat.jsonl: a log of chat completions with shared system prompts and several turns. Every word is made up.

Run from the repository root: `.venv/bin/python tools/make_sample_chat.py`. The same seed writes the same bytes.
"""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from breakeven.reading import Reading
from breakeven.reading.pieces import Pieces

CONVERSATIONS, SEED = 40, 7
START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
THINGS = ("kettle", "lamp", "tent", "bicycle", "rucksack", "stove", "clock", "radio", "ladder", "barrow")
FAULTS = ("makes a noise", "does not close", "came without its screws", "is the wrong colour", "stopped after a week", "leaks a little")
PLACES = ("Northwick", "Lower Ashby", "Tamsin Bay", "Oldmere", "Fennhollow")
ROUTES = {
    "support": "You answer for the made-up shop Hollow & Pine. Be brief and kind. Never promise a date. Ask for the order number once. "
    "Returns are free for 30 days, repairs for two years; spare parts are sent within the country. "
    "If you do not know, say so and pass it on. ",
    "notes": "You turn notes of visits into records for the made-up carrier Pale Heron. Keep every fact, add none. "
    "Write the fields place, item, fault and next step, each on a line of its own, in this order, "
    "and repeat the note word for word below them. ",
    "code": "You write small Python functions for the made-up workshop Brindle. "
    "Type hints always, one docstring line, no prints, no classes. "
    "Give the function alone and then one line that calls it. ",
}
WEIGHTS = (5, 3, 2)


def question(route: str, draw: random.Random) -> str:
    thing, fault, place = draw.choice(THINGS), draw.choice(FAULTS), draw.choice(PLACES)
    number = draw.randint(10_000, 99_999)
    return {
        "support": f"My {thing} from order {number} {fault}. I live in {place}. What can I do about the {thing}?",
        "notes": f"Visit {number}, {place}: the {thing} {fault}; the owner has tried twice, wants the {thing} collected on the next round.",
        "code": f"A function that takes a list of {thing}s, each a dict with a price and a place, and sums the prices in {place}.",
    }[route]


def answer(route: str, asked: str, draw: random.Random) -> str:
    thing = next((thing for thing in THINGS if thing in asked), "thing")
    place = next((place for place in PLACES if place in asked), "there")
    if route == "support":
        more = " I have passed it on, and the workshop will write to you." if draw.random() < 0.5 else ""
        return f"I am sorry about the {thing}. Returns are free for 30 days, repairs for two years, also in {place}.{more}"
    if route == "notes":
        return f"place: {place}\nitem: {thing}\nfault: as noted\nnext step: collect on the next round\n\n{asked}"
    name = f"sum_{thing}_prices"
    return (
        f"def {name}({thing}s: list[dict[str, float | str]], place: str) -> float:\n"
        f'    """The sum of the prices of the {thing}s in a place."""\n'
        f'    return sum(float({thing}["price"]) for {thing} in {thing}s if {thing}["place"] == place)\n\n'
        f'{name}({thing}s, "{place}")'
    )


def conversation(number: int, start: datetime, pieces: Pieces, draw: random.Random) -> list[dict[str, Any]]:
    route = draw.choices(list(ROUTES), WEIGHTS)[0]
    messages = [{"role": "system", "content": ROUTES[route]}]
    at, records = start, []
    for turn in range(draw.choice((1, 1, 2, 3, 4, 6))):
        asked = question(route, draw)
        if turn and route == "support":
            asked = f"And if it is not the {draw.choice(THINGS)}? {draw.choice(PLACES)} is far."
        messages = [*messages, {"role": "user", "content": asked}]
        said = answer(route, asked, draw)
        prompt = sum(len(pieces.ids(message[part])) for message in messages for part in ("role", "content"))
        output = len(pieces.ids(said))
        first = 0.04 + prompt / 9000 + draw.expovariate(40)
        records.append(
            {
                "timestamp": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                "session_id": f"c{number:03}",
                "metadata": {"route": route},
                "request": {"model": "made-up-8b", "messages": messages},
                "response": {
                    "choices": [{"message": {"role": "assistant", "content": said}}],
                    "usage": {"prompt_tokens": prompt, "completion_tokens": output},
                },
                "ttft_s": round(first, 3),
                "e2e_s": round(first + output * draw.uniform(0.009, 0.012), 3),
            }
        )
        messages = [*messages, {"role": "assistant", "content": said}]
        at += timedelta(seconds=draw.uniform(4, 40))
    return records


def main() -> None:
    draw, pieces, at = random.Random(SEED), Pieces(Reading()), START
    records = []
    for number in range(CONVERSATIONS):
        records += conversation(number, at, pieces, draw)
        at += timedelta(seconds=draw.expovariate(1 / 6))
    records.sort(key=lambda record: record["timestamp"])
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    Path("examples/made-up-chat.jsonl").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
