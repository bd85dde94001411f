"""llama.cpp's server, observed while a client of known requests uses it: counters are equal, means near."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from live.server import free_port
from live_client import Answer, Prompt, closed_loop, decoded_s, going_round, streaming, waited_for, within, words
from live_observation import moment, observing

pytestmark = pytest.mark.live
NEAR = 0.10
DRAFT = ("--spec-type", "draft-simple", "--spec-draft-n-max", "3")


def test_prompt_cached_and_generated_tokens_equal_what_the_client_sent_and_got(llama: Any, tmp_path: Path) -> None:
    shared = words(64, "shared")
    prompts = [shared + words(16, f"own {number}") for number in range(3)]
    prompts.append(prompts[-1])
    with llama("-np", "1", "-c", "512") as server, observing(server.url, tmp_path) as seen:
        answers = closed_loop(server.url, "llama", prompts, 24, clients=1)
    cached = 0 + 64 + 64 + 79  # what the one slot still has of the prompt before; the last token is always computed
    assert sum(len(answer.tokens) for answer in answers) == 4 * 24
    assert seen.counted("output_tokens") == 4 * 24
    assert seen.counted("prompt_tokens_cached") == cached
    assert seen.counted("prompt_tokens_computed") == 4 * 80 - cached
    assert seen.figure("prefix_hit_rate") == pytest.approx(cached / (4 * 80))


def test_steps_equal_the_tokens_of_streams_that_go_one_after_another(llama: Any, tmp_path: Path) -> None:
    with llama("-np", "1", "-c", "512") as server, observing(server.url, tmp_path) as seen:
        answers = closed_loop(server.url, "llama", [words(32, f"step {number}") for number in range(3)], 24, clients=1)
    assert seen.counted("steps") == sum(len(answer.tokens) for answer in answers)
    assert seen.figure("tpot_s") == pytest.approx(sum(answer.tpot for answer in answers) / 3, rel=NEAR)


@pytest.mark.parametrize("clients", [1, 3])
def test_the_effective_batch_is_the_number_of_streams_that_decode(llama: Any, tmp_path: Path, clients: int) -> None:
    prompts = [words(32, f"stream {number}") for number in range(clients)]
    with (
        llama("-np", "4", "-c", "16384") as server,
        streaming(server.url, "llama", prompts, 3900) as answers,
        observing(server.url, tmp_path) as seen,
    ):
        time.sleep(4)
    start, end = moment(seen.evidence["start"]), moment(seen.evidence["end"])
    assert seen.figure("effective_batch") == pytest.approx(clients, rel=NEAR)
    assert seen.evidence["levels"]["running"]["values"] == [clients]
    assert seen.counted("steps") == pytest.approx(within(answers, start, end) / clients, rel=NEAR)


def test_busy_slots_a_step_are_the_clients_that_go_round(llama: Any, tmp_path: Path) -> None:
    prompts = [words(32, f"round {number}") for number in range(12)]
    with llama("-np", "4", "-c", "2048") as server, observing(server.url, tmp_path) as seen:
        answers = closed_loop(server.url, "llama", prompts, 40, clients=4)
    tokens = sum(len(answer.tokens) for answer in answers)
    assert seen.counted("output_tokens") == tokens == 12 * 40
    assert seen.figure("batch_in_step") == pytest.approx(tokens / seen.counted("steps"), rel=NEAR)
    decoding = sum(answer.chunks[-1].at - answer.chunks[0].at for answer in answers)
    assert seen.figure("effective_batch") == pytest.approx(decoding / seen.evidence["seconds"], rel=NEAR)
    assert seen.figure("tpot_s") == pytest.approx(sum(answer.tpot for answer in answers) / len(answers), rel=NEAR)


def asked(prompt: tuple[int, int], output: tuple[int, int]) -> Iterator[tuple[Prompt, int]]:
    """Prompts and outputs of lengths drawn between two."""
    drawn, number = random.Random(1), 0
    while True:
        number += 1
        yield words(drawn.randint(*prompt), f"asked {number}"), drawn.randint(*output)


@pytest.mark.parametrize(("prompt", "output"), [((300, 300), (30, 30)), ((50, 350), (10, 90))], ids=["alike", "varied"])
def test_amid_requests_that_come_and_go_batch_tokens_and_lengths_are_those_of_the_client(
    llama: Any, tmp_path: Path, prompt: tuple[int, int], output: tuple[int, int]
) -> None:
    """Slots that read their prompts are busy all the time and do not decode; tokens are counted at an end, and requests not at all."""
    with (
        llama("-np", "4", "-c", "4096") as server,
        going_round(server.url, "llama", asked(prompt, output), clients=4) as answers,
    ):
        waited_for(answers, 4, within_s=120)
        with observing(server.url, tmp_path) as seen:
            waited_for(answers, 24, within_s=240)
        waited_for(answers, 4, within_s=120)
    start, end = moment(seen.evidence["start"]), moment(seen.evidence["end"])
    batch = decoded_s(answers, start, end) / (end - start)
    figures = seen.evidence["figures"]
    assert batch < 0.9 * 4 and seen.evidence["levels"]["running"]["values"][-1] == 4
    assert figures["effective_batch"]["low"] - NEAR * batch <= batch <= figures["effective_batch"]["high"] + NEAR * batch
    assert seen.figure("effective_batch") == pytest.approx(batch, rel=2 * NEAR)
    assert seen.figure("output_tokens_per_s") == pytest.approx(within(answers, start, end) / (end - start), rel=NEAR)
    assert seen.figure("input_tokens") == pytest.approx(sum(prompt) / 2, rel=0.25)
    assert seen.figure("output_tokens") == pytest.approx(sum(output) / 2, rel=0.4)
    began = sum(start < one.chunks[0].at <= end for one in answers) / (end - start)
    assert figures["request_rate_per_s"]["low"] <= began <= figures["request_rate_per_s"]["high"]
    assert 0.0 < seen.figure("prompt_share") < 1.0


def drafted(answers: tuple[Answer, ...]) -> dict[str, Any]:
    """Rounds that drafted, drafted and accepted tokens, and how often each position was accepted, by each token's own timings."""
    rounds = tokens = accepted = steps = 0
    at: list[int] = []
    for answer in answers:
        told = [(0, 0), *((chunk.timings.get("draft_n", 0), chunk.timings.get("draft_n_accepted", 0)) for chunk in answer.chunks)]
        for (n, kept), (n_after, kept_after) in pairwise(told):
            if n_after > n:
                rounds, tokens, accepted = rounds + 1, tokens + n_after - n, accepted + kept_after - kept
                at += [0] * (n_after - n - len(at))
                at = [count + (place < kept_after - kept) for place, count in enumerate(at)]
        steps += len(answer.tokens) - told[-1][1]
    return {"drafts": rounds, "draft_tokens": tokens, "accepted_tokens": accepted, "steps": steps, "at": at}


def held_to(seen: Any, known: dict[str, Any]) -> None:
    for quantity in ("drafts", "draft_tokens", "accepted_tokens", "steps"):
        assert seen.counted(quantity) == known[quantity], quantity
    assert seen.figure("acceptance_rate") == pytest.approx(known["accepted_tokens"] / known["draft_tokens"])
    assert seen.figure("acceptance_length") == pytest.approx(1 + known["accepted_tokens"] / known["drafts"])
    assert seen.evidence["acceptance_cumulative"] == pytest.approx([count / known["drafts"] for count in known["at"]])


def test_n_gram_drafts_on_repetitive_text_are_counted_as_the_client_knows_them(llama: Any, tmp_path: Path) -> None:
    prompts = [words(20, f"again {number}") * 6 for number in range(3)]
    options = ("-np", "1", "-c", "1024", "--spec-type", "ngram-simple", "--spec-ngram-n", "4", "--spec-ngram-m", "8")
    with llama(*options) as server, observing(server.url, tmp_path) as seen:
        known = drafted(closed_loop(server.url, "llama", prompts, 48, clients=1))
    assert known["accepted_tokens"] > 20
    held_to(seen, known)


def test_made_up_acceptance_is_found_again_to_the_last_token(llama: Any, tmp_path: Path, models: Path) -> None:
    options = ("-np", "1", "-c", "1024", *DRAFT, "-md", str(models / "smol-draft.gguf"), "--spec-synth-rates", "0.9,0.8,0.5")
    found = []
    for run in ("first", "second"):
        folder = tmp_path / run
        folder.mkdir()
        with llama(*options) as server, observing(server.url, folder) as seen:
            known = drafted(closed_loop(server.url, "llama", [words(40, f"synthetic {number}") for number in range(3)], 64, clients=1))
        held_to(seen, known)
        found.append(known)
    assert found[0] == found[1]


def test_an_engine_that_starts_anew_is_observed_on_and_what_was_lost_is_said(llama: Any, tmp_path: Path) -> None:
    port = free_port()
    prompts = [words(32, f"life {number}") for number in range(4)]
    with ExitStack() as lives:
        first = lives.enter_context(llama("-np", "2", "-c", "1024", port=port))
        with observing(first.url, tmp_path) as seen:
            closed_loop(first.url, "llama", prompts, 16, clients=2)
            seen.read_anew()
            first.kill()
            time.sleep(2)
            second = lives.enter_context(llama("-np", "2", "-c", "1024", port=port))
            closed_loop(second.url, "llama", prompts[:3], 16, clients=2)
    assert seen.counted("output_tokens") == (4 + 3) * 16
    assert seen.evidence["missed"] >= 2
    assert {"observe.note_restart", "observe.note_missed"} <= {one["key"] for one in seen.evidence["warnings"]}


def test_an_observed_engine_is_only_read_and_once_an_interval(llama: Any, tmp_path: Path) -> None:
    with llama("-np", "1", "-c", "512") as server, observing(server.url, tmp_path, every_s=1.0) as seen:
        time.sleep(5)
    assert {method for _, method, _ in seen.relay.asked} == {"GET"}
    at = [when for when, _, path in seen.relay.asked if path == "/metrics"]
    assert all(after - before > 0.9 for before, after in pairwise(at))


def test_a_clients_concurrency_is_not_the_engines_batch(llama: Any, tmp_path: Path) -> None:
    prompts = [words(32, f"queued {number}") for number in range(6)]
    with llama("-np", "2", "-c", "1024") as server, observing(server.url, tmp_path) as seen:
        closed_loop(server.url, "llama", prompts, 100, clients=6)
    assert seen.evidence["levels"]["running"]["values"][-1] == 2
    assert seen.evidence["levels"]["waiting"]["values"][-1] == 4
    assert seen.figure("batch_in_step") == pytest.approx(2, rel=NEAR)
    assert seen.figure("effective_batch") <= 2


def test_a_higher_acceptance_rate_is_not_more_tokens_a_round(llama: Any, tmp_path: Path, models: Path) -> None:
    rate, length = {}, {}
    for drafted_tokens, rates in (("1", "0.9"), ("3", "0.9,0.6,0.4")):
        folder = tmp_path / drafted_tokens
        folder.mkdir()
        options = ("--spec-type", "draft-simple", "-md", str(models / "smol-draft.gguf"), "--spec-draft-n-max", drafted_tokens)
        with llama("-np", "1", "-c", "512", *options, "--spec-synth-rates", rates) as server, observing(server.url, folder) as seen:
            closed_loop(server.url, "llama", [words(40, "position")], 120, clients=1)
        rate[drafted_tokens], length[drafted_tokens] = seen.figure("acceptance_rate"), seen.figure("acceptance_length")
    assert rate["1"] > rate["3"]
    assert length["1"] < length["3"]
