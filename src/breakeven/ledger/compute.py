"""Compute ledger: FLOP one device does in a step, and the ridge where compute meets bandwidth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from breakeven.spec.model import Attention, Model
from breakeven.stats import Array


def active_expert_parameters(model: Model) -> float:
    """Parameters of routed experts that one token is multiplied with: N_experts·top_k/E."""
    return model.parameters.experts * model.experts.top_k / model.experts.count if model.experts else 0.0


def linear_parameters(model: Model) -> float:
    """Parameters multiplied for one token, without embedding and head: N_act − N_emb − N_head."""
    return model.parameters.attention + model.parameters.mlp + active_expert_parameters(model)


def head_parameters(model: Model) -> int:
    """Parameters of the output head; a tied model multiplies its embedding."""
    return model.parameters.embedding if model.tied else model.parameters.head


def decode_flop_per_token_seen(group: Attention) -> float:
    """Attention FLOP of one query token over one cached token in one layer.

    Full: 2·q_heads·(key + value width), which is 4·q_heads·head_dim. MLA absorbed: 2·q_heads·(2·kv_lora_rank + rope_dim).
    """
    if group.kind == "mla" and group.latent_rank is not None and group.rope_dim is not None:
        return 2.0 * group.q_heads * (2 * group.latent_rank + group.rope_dim)
    if group.kind == "compressed":
        return 2.0 * group.q_heads * (group.k_dim + (group.value_dim or group.k_dim))
    return 2.0 * group.q_heads * (group.k_dim + group.v_dim)


def index_flop_per_entry(group: Attention) -> float:
    """FLOP of the indexer of sparse attention for one query token and one cached key: 2·heads·width."""
    return 2.0 * group.index_heads * group.index_dim


STATE_FLOP_PER_ELEMENT = 6.0
"""A recurrent state is decayed and added to (2), corrected by what it holds (2) and read by the query (2), each a multiply and an add.

Source: the recurrences of Mamba-2 (arXiv 2405.21060, equation 2) and of the gated delta rule (arXiv 2412.06464, equation 10); chunked
kernels do more, and do it on matrix units.
"""


def state_flop_per_token(model: Model) -> float:
    """FLOP of the state layers for one token: 6 an element of recurrent state, 2 an element of a convolution's window."""
    return sum(s.layers * (STATE_FLOP_PER_ELEMENT * s.state_elements + 2.0 * s.conv_elements) for s in model.states)


def prefill_flop_per_token_seen(group: Attention) -> float:
    """As in decode, but MLA is not absorbed in a prompt: 2·q_heads·(nope + rope + value width); where it is sparse, it is."""
    absorbed = group.kind != "mla" or group.selected is not None
    if not absorbed and group.nope_dim is not None and group.rope_dim is not None and group.value_dim is not None:
        return 2.0 * group.q_heads * (group.nope_dim + group.rope_dim + group.value_dim)
    return decode_flop_per_token_seen(group)


def pairs_in_prompt(new_tokens: Array | float, prompt_tokens: Array | float, window: int | None) -> Array | float:
    """Query × cached-token pairs of a prompt whose last ``new_tokens`` are computed: ∫ min(x, window) over the new part.

    Without a window that is I_new·(I − I_new/2).

    >>> float(pairs_in_prompt(1000, 1000, None)), float(pairs_in_prompt(200, 1000, None)), float(pairs_in_prompt(1000, 1000, 100))
    (500000.0, 180000.0, 95000.0)
    """
    if window is None:
        return new_tokens * (prompt_tokens - new_tokens / 2)

    def area(x: Array | float) -> Array | float:
        inside = np.minimum(x, window)
        return inside * inside / 2 + window * (x - inside)

    return area(prompt_tokens) - area(prompt_tokens - new_tokens)


def pairs_attended(group: Attention, new_tokens: Array | float, prompt_tokens: Array | float) -> Array | float:
    """Query × entry pairs of a prompt: within the window, or among the entries selected; compressed layers have both.

    >>> sparse = Attention(kind="mla", layers=1, q_heads=1, kv_heads=1, k_dim=1, v_dim=0, selected=100)
    >>> float(pairs_attended(sparse, 1000, 1000))
    95000.0
    """
    if group.kind != "compressed":
        return pairs_in_prompt(new_tokens, prompt_tokens, group.window if group.selected is None else group.selected)
    near = pairs_in_prompt(new_tokens, prompt_tokens, group.window)
    if not group.compression:
        return near
    reach = None if group.selected is None else group.selected * group.compression
    return near + pairs_in_prompt(new_tokens, prompt_tokens, reach) / group.compression


def pairs_indexed(group: Attention, new_tokens: Array | float, prompt_tokens: Array | float) -> Array | float:
    """Query × key pairs that an indexer looks at: all of the prompt before the query, one key an entry."""
    return pairs_in_prompt(new_tokens, prompt_tokens, None) / (group.compression or 1) if group.index_dim else 0.0 * new_tokens


def ridge_rows(flops: float, mfu: float, bytes_per_weight: float, bandwidth_bytes_per_s: float, share: float) -> float:
    """n* = F·η_f·w/(2·BW·η_bw): rows of the forward pass at which compute takes as long as reading the weights.

    H100 SXM in 16 bit at full rates: 295 rows.

    >>> round(ridge_rows(989.4e12, 1.0, 2.0, 3.35e12, 1.0))
    295
    """
    return flops * mfu * bytes_per_weight / (2 * bandwidth_bytes_per_s * share)


CLOSE_ENOUGH = 1e-9
MOST_ROUNDS = 200
MANY_ROWS = 1e12


def mixture_ridge_rows(read_s: Callable[[Array | float], Array | float], row_s: Callable[[Array | float], Array | float]) -> Array | float:
    """n* = read(n*)/row(n*): rows at which a mixture takes as long to multiply as to read what they wake.

    Seconds of reading (dense + experts·coverage(n)) over seconds of one row (dense + experts·top_k/E), from above: what many rows
    wake is read first, then what as many rows as that gives, until it stays. A row meets top_k of the experts and the bytes of all
    are read, so n* lies up to (dense + experts)/(dense + experts·top_k/E) times above that of a dense model (Williams 2009, with the
    coverage of ``ledger.bandwidth``). 1.5e9 dense parameters, 29e9 of 128 experts, 8 to a row, on H100 SXM in 16 bit at full rates,
    9.2 times 295 rows; with 1 of 2 such experts to a row 1.9 times:

    >>> from breakeven.ledger.bandwidth import coverage
    >>> def rows(top_k, experts):
    ...     read = lambda n: 2 * (1.5e9 + 29e9 * coverage(n, top_k, experts)) / 3.35e12
    ...     return round(float(mixture_ridge_rows(read, lambda n: 2 * (1.5e9 + 29e9 * top_k / experts) / 989.4e12)))
    >>> rows(8, 128), rows(1, 2)
    (2719, 563)
    """
    rows = read_s(MANY_ROWS) / row_s(MANY_ROWS)
    for _ in range(MOST_ROUNDS):
        before, rows = rows, read_s(rows) / row_s(rows)
        if np.allclose(before, rows, rtol=CLOSE_ENOUGH, atol=0.0):
            break
    return rows


def utilisation(flop_per_step: Array | float, step_s: Array | float, flops: float) -> Array | float:
    """MFU = FLOP per step / (step time · F)."""
    return flop_per_step / (step_s * flops)
