"""The traps of running engines' metrics: each has tests, by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TRAPS = {
    "2: hits are tokens of whole blocks, and counted twice in many versions": (
        "live/test_vllm.py::test_prefix_hits_are_tokens_of_whole_blocks_and_never_of_the_last",
        "contract/test_observe_summary.py::test_the_only_counters_there_are_are_taken_with_a_warning_that_they_count_twice",
    ),
    "4: acceptance as a rate, a length, by position; percent and fraction": (
        "live/test_vllm.py::test_n_gram_drafts_on_greedy_text_are_counted_as_the_client_knows_them",
        "live/test_llamacpp.py::test_made_up_acceptance_is_found_again_to_the_last_token",
        "contract/test_adapters.py::test_all_forms_of_acceptance_say_the_same_of_one_run",
    ),
    "5: a higher acceptance rate may be a lower speed": (
        "live/test_llamacpp.py::test_a_higher_acceptance_rate_is_not_more_tokens_a_round",
        "contract/test_observe_summary.py::test_a_higher_acceptance_rate_with_fewer_tokens_a_second_is_not_praised",
    ),
    "6: the time between chunks is not the time per token": (
        "live/test_vllm.py::test_the_time_between_chunks_is_not_the_time_per_token_where_drafts_are_accepted",
        "contract/test_observe_summary.py::test_a_latency_under_speculation_is_of_a_chunk_and_the_time_per_token_is_less",
    ),
    "28: the cache that an engine tells is of one rank": (
        "live/test_vllm.py::test_the_pool_is_the_one_that_the_engine_wrote_into_its_log",
        "contract/test_evidence.py::test_the_label_of_a_context_parallel_engine_is_one_devices_part_of_the_pool",
    ),
    "29: a client's concurrency is not the engine's batch": (
        "live/test_llamacpp.py::test_a_clients_concurrency_is_not_the_engines_batch",
        "live/test_llamacpp.py::test_the_effective_batch_is_the_number_of_streams_that_decode",
    ),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_a_trap_has_its_tests(root: Path, trap: str) -> None:
    for test in TRAPS[trap]:
        file, _, name = test.partition("::")
        assert re.search(rf"^ *def {name}\(", (root / "tests" / file).read_text(encoding="utf-8"), re.MULTILINE), test
