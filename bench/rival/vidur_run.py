"""vidur over a list of requests: chunked prefill with decodes (its Sarathi scheduler), replicas in turn.

Its wheel ships no profile and it would fetch one. Here one is composed in its own columns from the job's step costs (milliseconds a
layer), its own code is fitted to that, and only the run of its simulator is timed: imports, fit and tables of predictions are not.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

from job import Job, clock, drive

LINEAR = ("attn_pre_proj", "attn_post_proj", "mlp_up_proj", "mlp_down_proj")
SMALL = ("mlp_act", "input_layernorm", "post_attention_layernorm", "attn_rope", "add")
TOKENS = (1, 8, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256)
LLAMA = {"n_embd": 4096, "n_kv_head": 8, "num_tensor_parallel_workers": 1}


def write_table(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", newline="") as out:
        table = csv.DictWriter(out, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


def compose_profile(folder: Path, job: Job) -> None:
    """Tables of its columns: linear layers by tokens, attention by batch and context, for Llama-3-8B on one H100."""
    from vidur.config.model_config import Llama38BModelConfig as Model

    shape = {**LLAMA, "n_head": 32, "n_expanded_embd": 14336, "use_gated_mlp": True, "vocab_size": Model.vocab_size}
    linear = {f"time_stats.{name}.median": 0.0 for name in SMALL}
    mlp = []
    for tokens in TOKENS:
        layer_ms = max(tokens * job["token_ms"], job["read_ms"]) + job["fixed_ms"]
        mlp.append({**shape, "num_tokens": tokens, **linear, **{f"time_stats.{name}.median": layer_ms / 4 for name in LINEAR}})
    write_table(folder / "mlp.csv", mlp)
    contexts = [0, *(256 * 2**power for power in range(20) if 256 * 2**power < job["longest"]), job["longest"]]
    cells = [(batch, 0, context) for batch in BATCHES for context in contexts]
    cells += [(1, chunk, context) for chunk in (32, *TOKENS[5:]) for context in contexts]
    attention = [
        {
            **LLAMA,
            "n_q_head": 32,
            "block_size": 16,
            "batch_size": batch,
            "prefill_chunk_size": chunk,
            "kv_cache_size": context,
            "time_stats.attn_kv_cache_save.median": 0.0,
            "time_stats.attn_decode.median": batch * context * job["kv_token_ms"],
            "time_stats.attn_prefill.median": chunk * context * job["attention_ms"],
        }
        for batch, chunk, context in cells
    ]
    write_table(folder / "attention.csv", attention)


def configuration(job: Job, trace: Path, folder: Path) -> Any:
    from vidur import config as c

    return c.SimulationConfig(
        log_level="error",
        cluster_config=c.ClusterConfig(
            num_replicas=job["replicas"],
            replica_config=c.ReplicaConfig(model_name="meta-llama/Llama-3-8B", num_pipeline_stages=1, tensor_parallel_size=1),
            cache_config=c.CacheConfig(block_size=16, num_blocks=job["blocks"]),
            replica_scheduler_config=c.SarathiSchedulerConfig(batch_size_cap=job["cap"], chunk_size=job["token_budget"]),
        ),
        request_generator_config=c.TraceRequestGeneratorConfig(
            trace_file=str(trace), date="2023-08-21", prefill_scale_factor=1, time_scale_factor=1, max_tokens=job["longest"]
        ),
        execution_time_predictor_config=c.RandomForrestExecutionTimePredictorConfig(
            cache_dir=str(folder / "cache"),
            num_estimators=[10],
            max_depth=[16],
            min_samples_split=[2],
            k_fold_cv_splits=2,
            num_training_job_threads=1,
            prediction_max_batch_size=job["cap"],
            prediction_max_prefill_chunk_size=job["token_budget"],
            prediction_max_tokens_per_request=job["longest"],
            use_native_execution_time_predictor=job["native"],
        ),
        metrics_config=c.MetricsConfig(
            write_metrics=True,
            enable_chrome_trace=False,
            store_plots=False,
            store_batch_metrics=False,
            store_utilization_metrics=False,
            output_dir=str(folder / "output"),
        ),
    )


def simulate(job: Job, folder: Path) -> dict[str, object]:
    os.environ.update(HF_HUB_OFFLINE="1", WANDB_MODE="disabled")
    from vidur.execution_time_predictor.sklearn_execution_time_predictor import SklearnExecutionTimePredictor as Predictor

    compose_profile(folder, job)
    files = tuple(str(folder / name) for name in ("mlp.csv", "attention.csv", "none.csv", "none.csv"))
    Predictor._get_input_files = lambda self: files
    return run(job, folder)


def run(job: Job, folder: Path) -> dict[str, object]:
    from vidur.simulator import Simulator
    from vidur.utils.random import set_seeds

    set_seeds(0)
    trace = folder / "trace.csv"
    rows = zip(job["arrival_s"], job["input_tokens"], job["output_tokens"], strict=True)
    write_table(trace, [{"Date": "2023-08-21", "Time": at, "PromptTokenCount": i, "CompletionTokenCount": o} for at, i, o in rows])
    began = clock()
    simulator = Simulator(configuration(job, trace, folder))
    ready = clock()
    simulator.run()
    ended = clock()
    count = len(job["arrival_s"])
    done = count if simulator.scheduler.is_empty() else 0
    return {"setup_s": ready - began, "seconds": ended - ready, "requests": count, "done": done, "end_s": simulator._time}


if __name__ == "__main__":
    drive(simulate)
