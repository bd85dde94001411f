"""More sequences together: a static batch, more clients, or all requests at once against one after the other."""

from __future__ import annotations

import re

from breakeven.measured import speeds, strings
from breakeven.measured.conditions import Arms, base, set_engine, text, under
from breakeven.measured.measures import closed, measure
from breakeven.measured.row import Row


def arms(row: Row) -> Arms:
    """Fewer sequences against more of them, on one deployment."""
    d = base(row)
    weights = text(row, "weight_dtype")
    if weights in ("fp8", "fp4"):
        format_ = "mxfp4" if d.model.name.startswith("gpt-oss") else {"fp8": "fp8", "fp4": "nvfp4"}[weights]
        d = set_engine(d, quantization=format_, kv_cache_dtype="fp8")
    step = re.match(r"concurrency (\d+) -> (\d+)", text(row, "lever_setting"))
    i, o = strings.number(text(row, "context_or_input_len"), "prompt"), strings.number(text(row, "output_len"), "output")
    if step:
        off, on = (closed(float(clients), i, o)(d) for clients in step.groups())
        return Arms(off=off, on=on, speed=speeds.THROUGHPUT, regime="concurrency", sigma_row="step")
    how = measure(row)
    off = closed(1.0, i, o)(d) if how.name == "at once" else under(d, batch=1.0, input_tokens=i, output_tokens=o)
    return Arms(off=off, on=how.loaded(d), speed=how.speed, regime=how.name, sigma_row="step")
