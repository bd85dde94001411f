"""vllm-sr-sim over a list of requests: one pool of replicas; a request is one event, its times from the number active when it begins."""

from __future__ import annotations

from pathlib import Path

from fleet_sim import H100_SXM, LLAMA_3_1_8B, Fleet, FleetConfig, PoolConfig, ProfileBuilder, Request, ServingConfig
from job import Job, clock, drive


def run(job: Job, _: Path) -> dict[str, object]:
    serving = ServingConfig(tp=1, dtype_bytes=2, mean_ctx_tokens=job["mean_context"])
    gpu = ProfileBuilder().build(hw=H100_SXM, model=LLAMA_3_1_8B, cfg=serving)
    pool = PoolConfig(pool_id="all", gpu=gpu, n_gpus=job["replicas"], max_ctx=job["longest"], lb_strategy="least_loaded")
    fleet = Fleet(FleetConfig(pools=[pool], router_type="RandomRouter"))
    rows = zip(job["arrival_s"], job["input_tokens"], job["output_tokens"], strict=True)
    arrivals = [(at, Request(req_id=place, arrival_time=at, l_in=i, l_out=o)) for place, (at, i, o) in enumerate(rows)]
    began = clock()
    result = fleet.run(arrivals)
    p99 = result.p99_ttft_ms()
    return {"seconds": clock() - began, "requests": len(arrivals), "done": len(result.completed), "ttft_p99_ms": p99}


if __name__ == "__main__":
    drive(run)
