"""llama.cpp's server in small: slots that read prompts in steps of the others' decoding, counted as its builds count; the truth is kept."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from breakeven.observation import page as pages
from breakeven.observation import slots
from breakeven.observation.record import Record
from breakeven.observation.scrape import Read

CHUNK = 2048
STEP_S, TOKEN_S = 0.05, 0.002
"""Of a step, and more for each prompt token in it."""
COUNTERS = ("prompt_tokens", "prompt_seconds", "tokens_predicted", "tokens_predicted_seconds", "n_decode", "busy")


def step_s(chunks: list[int]) -> float:
    """Seconds of a step that reads so many prompt tokens of each slot."""
    return STEP_S + TOKEN_S * sum(chunks)


@dataclass
class Slot:
    """A request in its slot."""

    prompt: int
    output: int
    read: int = 0
    written: int = 0
    began: float = 0.0
    first: float = 0.0


@dataclass
class SlotEngine:
    """Clients, each with a request of its own after the other."""

    requests: list[tuple[int, int]]
    """Prompt and output tokens."""
    clients: int = 4
    old: bool = False
    """Builds that count no cached tokens, add seconds of prompts up over slots, and do not tell what slots hold."""
    now: float = 0.0
    slots: list[Slot] = field(default_factory=list)
    counted: dict[str, float] = field(default_factory=lambda: dict.fromkeys(COUNTERS, 0.0))
    decoded_s: float = 0.0
    """The truth: seconds that sequences decoded, up to now."""
    emitted: int = 0
    ended: int = 0

    def chunks(self) -> list[int]:
        """Prompt tokens of each slot that the next step reads; free slots take requests."""
        while self.requests and len(self.slots) < self.clients:
            prompt, output = self.requests.pop(0)
            self.slots.append(Slot(prompt=prompt, output=output, began=self.now))
        found, room = [], CHUNK
        for slot in self.slots:
            found.append(min(slot.prompt - slot.read, room))
            room -= found[-1]
        return found

    def step(self) -> None:
        """One step: all that decode emit a token, and prompts are read up to a chunk."""
        chunks = self.chunks()
        taken = step_s(chunks)
        self.now += taken
        if not self.slots:
            return
        self.decoded_s += taken * sum(slot.read == slot.prompt for slot in self.slots)
        self._count(len(self.slots), sum(chunks), taken)
        for slot, chunk in zip(list(self.slots), chunks, strict=True):
            slot.read += chunk
            if slot.read == slot.prompt:
                self._emit(slot)

    def run(self, until: float) -> None:
        """Up to a moment, which lies within the next step: newer builds answer within a step, and older ones at its end."""
        while self.now + (0.0 if self.old else step_s(self.chunks())) < until:
            self.step()

    def _count(self, busy: int, read: int, taken: float) -> None:
        self.counted["n_decode"] += 1
        self.counted["busy"] += busy
        if not self.old:
            self.counted["prompt_tokens"] += read
            self.counted["prompt_seconds"] += taken if read else 0.0

    def _emit(self, slot: Slot) -> None:
        slot.written += 1
        self.emitted += 1
        if slot.written == 1:
            slot.first = self.now
            if self.old:
                self.counted["prompt_tokens"] += slot.prompt
                self.counted["prompt_seconds"] += self.now - slot.began
        if slot.written >= slot.output:
            self.counted["tokens_predicted"] += slot.written
            self.counted["tokens_predicted_seconds"] += self.now - slot.first
            self.ended += 1
            self.slots.remove(slot)

    def page(self) -> bytes:
        """Its metrics."""
        told = {f"{name}_total": self.counted[name] for name in COUNTERS if name != "busy"}
        if not self.old:
            told["prompt_tokens_cached_total"] = 0.0
        told["requests_processing"], told["requests_deferred"] = len(self.slots), 0
        told["n_busy_slots_per_decode"] = self.counted["busy"] / max(self.counted["n_decode"], 1.0)
        return "".join(f"llamacpp:{name} {value!r}\n" for name, value in told.items()).encode()

    def shown(self) -> list[dict[str, object]]:
        """Its slots."""
        return [
            {"is_processing": True, "next_token": [{"n_decoded": slot.written}]}
            | ({} if self.old else {"n_prompt_tokens": slot.read + slot.written})
            for slot in self.slots
        ]


@dataclass(frozen=True)
class Watched:
    """What was read of it, and what it did meanwhile."""

    record: Record
    batch: float
    tokens_per_s: float
    requests_per_s: float


def watch(engine: SlotEngine, seconds: float, *, warm: float = 20.0, every_s: float = 2.0, shows_slots: bool = True) -> Watched:
    """The engine read over a while, once it has run for some time."""
    record, before = Record(every_s=every_s), (0.0, 0, 0)
    for place in range(int(seconds / every_s) + 1):
        engine.run(warm + place * every_s)
        told = tuple(slots.told(engine.shown())) if shows_slots and engine.slots else ()
        page = pages.read(engine.page(), "text/plain; version=0.0.4")
        record.add(Read(source="http://one", at_s=1e9 + warm + place * every_s, page=replace(page, readings=(*page.readings, *told))))
        if not place:
            before = (engine.decoded_s, engine.emitted, engine.ended)
    return Watched(
        record=record,
        batch=(engine.decoded_s - before[0]) / seconds,
        tokens_per_s=(engine.emitted - before[1]) / seconds,
        requests_per_s=(engine.ended - before[2]) / seconds,
    )
