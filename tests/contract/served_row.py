"""A row of a measured gain as people write it, from which tests make others."""

SERVED = {
    "lever": "weight-quant:fp8",
    "hardware": "NVIDIA H100 80GB HBM3",
    "n_gpus": "1",
    "parallelism": "TP1",
    "engine": "vLLM 0.11",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "lever_setting": "BF16->FP8",
    "batch_or_concurrency": "32",
    "context_or_input_len": "1024",
    "output_len": "256",
    "metric": "output throughput",
    "unit": "tok/s",
    "gain_gt1_is_better": "1.3",
}
