"""What came of a load: each request as it was sent and answered, by the client's own clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

End = Literal["done", "stopped", "unreachable", "status", "empty", "cut", "silent", "not_understood"]
"""How a request ended: all tokens came; we stopped it; no connection; a status of failure; a stream without tokens; fewer tokens than were
asked for; nothing for too long; an answer of another form."""
FAILED: tuple[End, ...] = ("unreachable", "status", "empty", "cut", "silent", "not_understood")


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A piece of a stream: when it came, in seconds since the load began, and how many tokens it had."""

    at_s: float
    tokens: int


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request and what came of it; times in seconds since the load began."""

    number: int
    client: int
    prompt_tokens: int
    """As they were sent; of text, the words that were sent."""
    asked_tokens: int
    sent_s: float
    ended_s: float
    end: End
    status: int = 0
    chunks: tuple[Chunk, ...] = ()
    told_prompt_tokens: int | None = None
    told_output_tokens: int | None = None
    """As the engine counted them."""
    cached_tokens: int | None = None
    """Of the prompt, as the engine says."""
    drafted_tokens: int | None = None
    accepted_tokens: int | None = None

    @property
    def output_tokens(self) -> int:
        """Tokens that came."""
        return sum(chunk.tokens for chunk in self.chunks)

    @property
    def counted_prompt(self) -> int:
        """Prompt tokens as the engine counts them, where it does: it may put one of its own before them."""
        return self.prompt_tokens if self.told_prompt_tokens is None else self.told_prompt_tokens

    @property
    def ttft_s(self) -> float | None:
        """From sending to the first token."""
        return self.chunks[0].at_s - self.sent_s if self.chunks else None

    @property
    def tpot_s(self) -> float | None:
        """Mean seconds per token after the first chunk."""
        rest = sum(chunk.tokens for chunk in self.chunks[1:])
        return (self.chunks[-1].at_s - self.chunks[0].at_s) / rest if rest else None


@dataclass(frozen=True, kw_only=True)
class Driven:
    """All requests of a load in the order they were sent."""

    requests: tuple[Request, ...]
    start_unix_s: float
    seconds: float
    ended: Literal["all_sent", "seconds", "failed", "interrupted"]

    @property
    def failed(self) -> Request | None:
        """The first request that failed: it ended the load."""
        return next((one for one in self.requests if one.end in FAILED), None)

    @property
    def prompt_tokens(self) -> int:
        """Tokens of all prompts sent."""
        return sum(one.prompt_tokens for one in self.requests)

    @property
    def output_tokens(self) -> int:
        """Tokens of all streams."""
        return sum(one.output_tokens for one in self.requests)
