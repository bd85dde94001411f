"""Ways to draft and forms of acceptance: what a text states, and what may mean two things."""

from __future__ import annotations

import pytest
from words_refusals import why_not

from breakeven.measured import words
from breakeven.spec.workload import Acceptance

VLLM_LOG = "Mean acceptance length: 2.87, Accepted: 61 tokens, Drafted: 130 tokens, Per-position acceptance rate: 0.462, 0.3"


@pytest.mark.parametrize(
    ("phrase", "read"),
    [
        ("acceptance length 2.4", Acceptance(length=2.4)),
        ("accept_length=2.4", Acceptance(length=2.4)),
        ("AL 2.4", Acceptance(length=2.4)),
        ("tau=4.05", Acceptance(length=4.05)),
        ("tokens/forward 1.87", Acceptance(length=1.87)),
        ("tokens per verify step 3.1", Acceptance(length=3.1)),
        ("2 heads, tokens/forward 1.87", Acceptance(length=1.87, k=1)),
        ("k=4, AL without bonus 2.53", Acceptance(length=3.53, k=4)),
        ("rate 0.7 (accepted/drafted)", Acceptance(rate=0.7)),
        ("acceptance rate 70% at k=3", Acceptance(rate=0.7, k=3)),
        ("alpha 0.65", Acceptance(alpha=0.65)),
        ("system efficiency 0.5, k=4", Acceptance(length=2.5, k=4)),
        ("accepted 12208 / drafted 33712, drafts 4816", Acceptance(length=1 + 12208 / 4816, k=7)),
        ("accepted 30, drafted 100", Acceptance(rate=0.3)),
        (
            VLLM_LOG,
            Acceptance(length=2.87),
        ),
        ("Draft acceptance rate: 46.9%", Acceptance(rate=0.469)),
        ("30 accepted 100 drafted", Acceptance(rate=0.3)),
        ("steps=5 topk=4 draft_tokens=8, acceptance rate 0.3", Acceptance(rate=0.3, k=7)),
        ("vLLM per-position 0.762 0.616 0.513", Acceptance(cumulative=(0.762, 0.616, 0.513), k=3)),
        ("0.76, 0.81, 0.83", Acceptance(conditional=(0.76, 0.81, 0.83), k=3)),
        ("conditional .76 .74", Acceptance(conditional=(0.76, 0.74), k=2)),
    ],
)
def test_acceptance_is_read_in_the_form_it_is_stated_in(phrase: str, read: Acceptance) -> None:
    assert words.acceptance(phrase) == read


@pytest.mark.parametrize(
    ("phrase", "reason"),
    [
        ("0.711 0.512 0.320", "positions_unclear"),
        ("system efficiency 0.5", "k_not_stated"),
        ("k=2, AL 5.1", "length_impossible"),
        ("AL 0.4", "length_impossible"),
        ("rate 7", "no_share"),
        ("accepted 130, drafted 61", "no_share"),
        ("vLLM V0 acceptance rate 0.5", "rate_of_v0"),
        ("request rate 0.5", "no_acceptance"),
        ("topk=4 steps=5 AL 7.2", "length_impossible"),
        ("EAGLE-3 K=1", "no_acceptance"),
        ("length 3", "no_acceptance"),
        ("K=7 (AL 3.4), best K (AL 2.2)", "two_named"),
    ],
)
def test_acceptance_that_may_mean_two_things_is_refused(phrase: str, reason: str) -> None:
    assert why_not(words.acceptance, phrase) == reason


@pytest.mark.parametrize(
    ("phrase", "method", "k", "topk", "rows"),
    [
        ("EAGLE3 steps=3 topk=1 draft_tokens=4; accept_length=1.713; head=lmsys/x", "eagle3", 3, 1, 4),
        ("EAGLE3 steps=5 topk=3 draft_tokens=6", "eagle3", 5, 3, 6),
        ("EAGLE3 4 steps topk4 16 tokens", "eagle3", 4, 4, 16),
        ("EAGLE, chain, length 3, no tree", "eagle", 3, 1, 4),
        ("EAGLE-3 K=8", "eagle3", 8, 1, 9),
        ("EAGLE-LLaMA3-8B, 4 tokens", "eagle", 4, 1, 5),
        ("2 heads, tokens/forward 1.87", "mtp", 1, 1, 2),
        ("n-gram k=3 v=5, AL 1.66", "ngram", 5, 1, 6),
        ("n-gram, k=4", "ngram", 4, 1, 5),
        ("draft Qwama-0.5B, k=4", "draft_model", 4, 1, 5),
        ("mtp num_speculative_tokens=2", "mtp", 2, 1, 3),
        ("target=F16;spec=draft2L_k3;text=rand", "draft_model", 3, 1, 4),
    ],
)
def test_a_draft_setting_has_a_method_its_tokens_and_the_rows_it_verifies(phrase: str, method: str, k: int, topk: int, rows: int) -> None:
    found = words.speculative(phrase)
    assert (found.method, found.num_speculative_tokens, found.topk, found.rows) == (method, k, topk, rows)


def test_the_drafter_is_named_where_the_setting_names_it() -> None:
    assert words.speculative("draft Qwama-0.5B, k=4").model == "Qwama-0.5B"
    assert words.speculative("EAGLE3 steps=3; head=lmsys/sglang-EAGLE3").model == "lmsys/sglang-EAGLE3"


@pytest.mark.parametrize(
    ("phrase", "reason"),
    [
        ("Medusa", "method_unknown"),
        ("Suffix decoding AL 2.61", "method_unknown"),
        ("PLD", "k_not_stated"),
        ("EAGLE3 AL 1.35", "k_not_stated"),
        ("EAGLE-2 (tree), k=5", "tree_not_stated"),
        ("EAGLE3 steps=5 topk=8", "tree_not_stated"),
        ("1 heads", "k_not_stated"),
        ("EAGLE k=2 vs EAGLE-3 k=3", "two_named"),
    ],
)
def test_drafts_that_are_not_wholly_stated_are_refused(phrase: str, reason: str) -> None:
    assert why_not(words.speculative, phrase) == reason


def test_a_length_over_the_rounds_that_drafted_is_told_over_all_where_the_others_are_counted() -> None:
    found = words.acceptance("n-gram AL 4.59, 993 drafts, 821 plain steps")
    assert found.length == pytest.approx(2.96, abs=0.01)


def test_a_rate_is_the_length_at_its_k_and_no_alpha() -> None:
    counted = words.acceptance("drafts 4816, drafted 33712, accepted 12208")
    assert counted.k == 7 and counted.length == pytest.approx(3.53, abs=0.005)
    assert (float(counted.length) - 1) / counted.k == pytest.approx(12208 / 33712)
