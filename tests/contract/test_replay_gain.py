"""The best k of a replay at what rounds cost, and where acceptance is known from."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from replay_logs import made_up, trace_of

import breakeven as be
from breakeven.errors import InputError
from breakeven.known_acceptance import known_acceptance
from breakeven.origin.draft_counters import acceptance_of, read_draft_counters
from breakeven.replay.gain import RoundCosts, best_k, gain, round_seconds
from breakeven.replay.ngram import Ngram
from breakeven.replay.result import Drafting
from breakeven.replay.run import replay
from breakeven.round_costs import round_costs
from breakeven.spec.workload import Acceptance
from breakeven.traffic.drafts import drafts_of

HALF = Drafting(k=2, requests=4, rounds=10, emitted=18, drafts_at=(5, 5), accepted_at=(5, 3), asked_at=(5, 5), past_end=0, cut_short=0)
"""Half of the rounds draft two tokens."""


def served(**engine: object) -> be.Deployment:
    return be.Deployment(
        model=be.model("llama-3.1-8b"),
        hardware=be.hardware("h100-sxm"),
        engine=replace(be.engine("vllm", "0.11"), **engine),
        workload=be.Workload(input_tokens=1000, output_tokens=200, request_rate=4.0),
    )


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_rounds_of_a_batch_cost_the_mean_over_all_drafts_that_can_meet(batch: int) -> None:
    costs = RoundCosts(batch=batch, plain_s=0.010, round_s=(0.011, 0.012, 0.019))
    by_hand = np.mean([np.interp(1 + sum(met) / batch, [1, 2, 3], costs.round_s) for met in product((0, 2), repeat=batch)])
    assert round_seconds(HALF, costs) == pytest.approx(by_hand, rel=1e-12)


def test_off_is_best_where_being_on_costs_more_than_drafts_give() -> None:
    dear = RoundCosts(batch=64, plain_s=0.010, round_s=(0.018, 0.020, 0.022))
    cheap = RoundCosts(batch=1, plain_s=0.010, round_s=(0.0101, 0.0101, 0.0102))
    assert gain(HALF, cheap).gain == pytest.approx(0.010 * 1.8 / 0.01015)
    assert (best_k([HALF], cheap).k, best_k([HALF], dear).k, best_k([HALF], dear).gain) == (2, 0, 1.0)
    none = replace(HALF, drafts_at=(0, 0), accepted_at=(0, 0), asked_at=(0, 0), emitted=10)
    assert gain(none, cheap).gain < 1.0


def test_costs_that_stop_short_of_k_are_refused() -> None:
    with pytest.raises(InputError, match="k 2 drafts up to 2 tokens"):
        gain(HALF, RoundCosts(batch=1, plain_s=0.01, round_s=(0.01, 0.01)))


def test_a_round_on_a_deployment_costs_its_steps_and_the_host_even_without_a_draft() -> None:
    small, large = round_costs(served(), (1, 256), 3)
    assert small.round_s[0] > small.plain_s and list(large.round_s) == sorted(large.round_s)
    assert large.round_s[3] / large.plain_s > 1.5 * small.round_s[3] / small.plain_s
    assert large.round_s[1] - large.round_s[0] < large.round_s[3] - large.round_s[0]


def test_on_a_deployment_drafting_is_best_at_small_batches_and_off_at_large_ones() -> None:
    trace = trace_of(made_up(2, 60, 5))
    found = drafts_of(trace, served(), "suffix")
    assert found is not None and found.by_batch[0].k > 0 and found.by_batch[-1].k == 0
    gains = [one.gain for one in found.by_batch]
    assert gains == sorted(gains, reverse=True)
    assert drafts_of(trace, None).best_k is None  # type: ignore[union-attr]
    with pytest.raises(InputError, match="eagle3: no drafter that can be replayed"):
        drafts_of(trace, None, "eagle3")  # type: ignore[arg-type]


def test_counters_of_vllm_give_shares_of_all_rounds(shared: Path) -> None:
    counters = read_draft_counters(shared / "snapshots" / "vllm_metrics_spec_after_ngram_k3.txt")
    assert (counters.engine, counters.drafts, counters.drafted, counters.accepted) == ("vllm", 1954, 5838, 3325)
    assert counters.accepted_at == (1257, 1131, 937)
    assert counters.rounds == 10206 - 219 - 3325  # tokens less first tokens less accepted ones
    found = known_acceptance(None, served(), Path(counters.path), method="ngram")
    assert found.source == "metrics" and found.cumulative == pytest.approx((1257 / 6662, 1131 / 6662, 937 / 6662))


def test_counters_of_llamacpp_give_shares_of_the_rounds_that_drafted(shared: Path) -> None:
    counters = read_draft_counters(shared / "snapshots" / "llama_metrics_after_spec_ngram_n4_m8.txt")
    assert (counters.engine, counters.rounds, len(counters.accepted_at)) == ("llamacpp", None, 8)
    assert acceptance_of(counters, "ngram").cumulative == pytest.approx([n / 213 for n in (199, 168, 158, 157, 93, 92, 65, 59)])


def test_ranks_are_added_and_a_gauge_of_tokens_a_round_is_taken(tmp_path: Path) -> None:
    page = tmp_path / "metrics.txt"
    line = 'vllm:spec_decode_num_{}{{engine="{}",model_name="m"{}}} {}\n'
    page.write_text(
        "".join(
            line.format("drafts", rank, "", 10) + line.format("accepted_tokens_per_pos", rank, ',position="0"', 4 + rank) for rank in (0, 1)
        )
    )
    assert acceptance_of(read_draft_counters(page), "eagle3").cumulative == (9 / 20,)
    for rounds in ("", "sglang:spec_verify_calls_total 340\n"):
        page.write_text(f"sglang:spec_accept_length 2.5\n{rounds}")
        assert acceptance_of(read_draft_counters(page), "eagle3").length == 2.5


def test_pages_that_do_not_tell_are_refused_by_name(tmp_path: Path, shared: Path) -> None:
    page = tmp_path / "metrics.txt"
    page.write_text("process_cpu_seconds_total 3\n")
    with pytest.raises(InputError, match="no metrics of a known engine"):
        read_draft_counters(page)
    page.write_text('vllm:num_requests_running{model_name="a"} 3\nvllm:num_requests_running{model_name="b"} 3\n')
    with pytest.raises(InputError, match=r"several models \(a, b\)"):
        read_draft_counters(page)
    with pytest.raises(InputError, match="counts no drafts"):
        read_draft_counters(shared / "snapshots" / "vllm_metrics_idle.txt")
    with pytest.raises(InputError, match="cannot be read"):
        read_draft_counters(tmp_path)
    with pytest.raises(InputError, match="do not name the draft method"):
        known_acceptance(None, served(), shared / "snapshots" / "vllm_metrics_spec_after_ngram_k3.txt")


def test_acceptance_comes_from_the_firmest_source_there_is() -> None:
    log = trace_of(made_up(2, 12, 6))
    looked_up = served(speculative=be.Speculative(method="ngram", num_speculative_tokens=3))
    headed = served(speculative=be.Speculative(method="eagle3", num_speculative_tokens=3, model="a/head"))
    found = replay(log, Ngram(prompt_lookup_min=2, prompt_lookup_max=4), ks=[1, 3])
    replayed = known_acceptance(log, looked_up, replayed=found)
    assert (replayed.source, replayed.cumulative, replayed.low is None) == ("replay", found.total[1].cumulative, False)
    stated = replace(log, acceptance=Acceptance(cumulative=(0.7, 0.5), k=2))
    assert known_acceptance(stated, looked_up, replayed=found).source == "trace"
    declared = replace(looked_up, workload=replace(looked_up.workload, acceptance=Acceptance(length=1.4, k=3, method="ngram")))
    assert known_acceptance(stated, declared, replayed=found).source == "declared"
    assert known_acceptance(stated, declared).length == pytest.approx(1.4)
    prior = known_acceptance(log, headed, replayed=found)
    assert (prior.source, prior.method) == ("prior", "eagle3") and prior.low is not None and prior.high is not None
    assert all(low < p < high for low, p, high in zip(prior.low, prior.cumulative, prior.high, strict=True))
    approximate = replace(found, approximate=True)
    assert known_acceptance(log, looked_up, replayed=approximate).source == "prior"
