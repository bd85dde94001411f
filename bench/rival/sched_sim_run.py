"""sched-sim over a list of requests: chunked prefill on one replica, with its prefix cache where the job has hashes."""

from __future__ import annotations

from pathlib import Path

from job import Job, clock, drive
from sched_sim.core.event_engine import Simulator
from sched_sim.core.request import Request
from sched_sim.hardware.profile import HardwareProfile
from sched_sim.schedulers.factory import create_scheduler

H100 = HardwareProfile(
    name="H100",
    vram_gb=80.0,
    memory_bandwidth_gb_s=3350.0,
    fp16_tflops=989.0,
    tensor_core_efficiency=0.6,
    kernel_launch_overhead_ms=0.3,
    model_name="Llama-3.1-8B",
    parameter_count_billions=8.03,
    num_layers=32,
    hidden_size=4096,
    num_heads=32,
    num_kv_heads=8,
    head_dim=128,
)


def tokens_of(job: Job, place: int) -> list[int]:
    """Token ids of a prompt, such that equal blocks have equal ids."""
    if "hash_ids" not in job:
        return []
    size = job["block_tokens"]
    tokens = [block * size + offset for block in job["hash_ids"][place] for offset in range(size)]
    return tokens[: job["input_tokens"][place]]


def requests(job: Job) -> list[Request]:
    rows = zip(job["arrival_s"], job["input_tokens"], job["output_tokens"], strict=True)
    return [
        Request(request_id=str(place), arrived_at=at, prompt_tokens=i, output_tokens=o, prompt_token_ids=tokens_of(job, place))
        for place, (at, i, o) in enumerate(rows)
    ]


def run(job: Job, _: Path) -> dict[str, object]:
    scheduler = create_scheduler(
        "chunked", H100, token_budget=job["token_budget"], max_batch_size=job["cap"], enable_prefix_caching="hash_ids" in job
    )
    simulator = Simulator(H100, scheduler)
    simulator.submit_workload(requests(job))
    began = clock()
    metrics = simulator.run()
    return {
        "seconds": clock() - began,
        "requests": metrics.total_requests,
        "done": metrics.completed_requests,
        "steps": metrics.total_iterations,
        "end_s": metrics.simulation_duration_s,
    }


if __name__ == "__main__":
    drive(run)
