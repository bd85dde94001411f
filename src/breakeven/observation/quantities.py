"""What a timeline tells of each quantity: increases and histograms, and the levels that gauges stood at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from breakeven.observation import gauges
from breakeven.observation.counted import Counted
from breakeven.observation.gauges import Level, Together


@dataclass(frozen=True)
class Quantities(Counted):
    """All that a timeline tells."""

    _levels: dict[tuple[str, Together], Level | None] = field(default_factory=dict, repr=False)

    def level(self, quantity: str, together: Together = "sum") -> Level | None:
        """A gauge over time, of one replica."""
        key = (quantity, together)
        if key not in self._levels:
            blocks = self.blocks if together == "mean" else None
            self._levels[key] = gauges.level(self.series.get(quantity, ()), together, blocks)
        return self._levels[key]

    @cached_property
    def blocks(self) -> Mapping[tuple[str, str], float]:
        """Tokens of the pool of each rank, where it tells them: from its gauge, else blocks times their size."""
        found = {(one.source, one.rank): float(one.values[-1]) for one in self.series.get("kv_total_tokens", ())}
        sizes = {(one.source, one.rank): float(one.values[-1]) for one in self.series.get("kv_block_tokens", ())}
        for one in self.series.get("kv_total_blocks", ()):
            size = sizes.get((one.source, one.rank))
            if size is not None:
                found.setdefault((one.source, one.rank), float(one.values[-1]) * size)
        for one in self.series.get("cache_config", ()):
            tokens = _pool_of(one.labels)
            if tokens is not None:
                found.setdefault((one.source, one.rank), tokens)
        return found

    @cached_property
    def pool_tokens(self) -> float | None:
        """Tokens that the pool of one replica holds, its ranks together; None where a rank does not tell it."""
        if not self.blocks:
            return None
        return sum(self.blocks.values()) / len({source for source, _ in self.blocks})


def _pool_of(labels: Mapping[str, str]) -> float | None:
    """num_gpu_blocks · block_size (vLLM), num_pages · page_size (SGLang), of a page's information about its cache."""
    for count, size in (("num_gpu_blocks", "block_size"), ("num_pages", "page_size")):
        if labels.get(count, "").isdecimal() and labels.get(size, "").isdecimal():
            return float(labels[count]) * float(labels[size])
    return None
