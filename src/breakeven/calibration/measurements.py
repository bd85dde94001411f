"""The runs that tell parameters apart, as commands of the engines' own benchmarks."""

from __future__ import annotations

from collections.abc import Mapping

from breakeven import catalog
from breakeven.spec.deployment import Deployment

Run = tuple[int, int, int]
"""Prompt tokens, output tokens, streams."""
FEWEST_PROMPTS = 16
ROUNDS = 4
RUNS: Mapping[str, tuple[Run, ...]] = {
    "one_stream": ((128, 256, 1),),
    "batches": ((512, 256, 1), (512, 256, 32), (512, 256, 128)),
    "contexts": ((512, 128, 16), (8192, 128, 16)),
    "wide": ((128, 256, 256), (128, 256, 512)),
    "size": ((512, 256, 8),),
    "spreads": ((512, 256, 8),),
    "long_prompt": ((8192, 2, 1),),
    "longer_prompt": ((2048, 2, 1), (32768, 2, 1)),
    "short_prompt": ((32, 2, 1),),
    "busy": ((4096, 256, 32),),
    "burst": ((2048, 2, 1), (2048, 2, 32)),
    "rounds": ((512, 256, 1),),
    "rounds_wide": ((512, 256, 32),),
    "prefix_off": ((2048, 128, 8),),
    "formats": ((512, 256, 1), (512, 256, 64)),
    "cache_formats": ((512, 128, 16), (8192, 128, 16)),
    "repeats": ((512, 256, 8),),
    "two_points": ((512, 256, 8), (4096, 256, 32)),
}
"""Lengths and streams of each run that a parameter may need; what else has to change between them, its sentence says."""


def commands_of(run: str, d: Deployment) -> tuple[str, ...]:
    """What to type for a run on the engine of a deployment; nothing on an engine we have no command for."""
    bench = catalog.commands(d.engine.name).get("bench", "")
    return tuple(_command(bench, d, *each) for each in RUNS[run]) if bench else ()


def _command(bench: str, d: Deployment, prompt: int, output: int, streams: int) -> str:
    longest = d.model.max_context or prompt + output
    prompt = min(prompt, longest - output)
    return bench.format(
        model=d.model.hf_ids[0] if d.model.hf_ids else d.model.name,
        input=prompt,
        output=output,
        concurrency=streams,
        prompts=max(FEWEST_PROMPTS, ROUNDS * streams),
        room=streams * (prompt + output),
    )
