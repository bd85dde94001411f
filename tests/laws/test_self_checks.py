"""The books close on any deployment: drawn from the catalogue's models, devices, formats, parallelism, modes and drafts."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from breakeven import api, catalog
from breakeven.spec.disaggregation import Disaggregation, PrefillPool
from breakeven.spec.engine import Speculative
from breakeven.spec.hardware import Device
from breakeven.spec.parallel import copies_of_a_head, legal_sizes
from breakeven.spec.workload import Acceptance, Lengths
from breakeven.statement import SelfCheckError, check, ledgers
from breakeven.stats import Range

MODELS = sorted(catalog.names("models"))


def is_known(device: Device) -> bool:
    """Whether nothing has to be stated of a device before several of them are judged together."""
    return None not in (device.memory_bytes, device.link_bytes_per_s) and bool(device.matmul_flops)


DEVICES = [name for name, device in ((name, catalog.load("hardware", name)) for name in catalog.names("hardware")) if is_known(device)]
WEIGHTS = [None, "fp8", "awq", "awq_marlin", "bitsandbytes", "nvfp4", "mxfp4", "w8a8_int8", "q4_k_m"]
METHODS = [None, None, "ngram", "eagle", "eagle3", "mtp", "draft_model", "tree"]


@st.composite
def recipes(draw):
    mode = draw(st.sampled_from(["open", "closed", "pinned", "bare"]))
    prompt, output = draw(st.floats(1, 60000)), draw(st.floats(1, 8000))
    arrivals = {
        "open": {"request_rate": draw(st.floats(1e-4, 100))},
        "closed": {"concurrency": draw(st.floats(1, 3000))},
        "pinned": {"batch": draw(st.floats(1, 3000))},
        "bare": {"batch": draw(st.floats(1, 3000)), "context_tokens": prompt},
    }[mode]
    lengths = {} if mode == "bare" else {"input_tokens": prompt, "output_tokens": output}
    if lengths and draw(st.booleans()):
        wide = draw(st.floats(1, 4))
        lengths["lengths"] = Lengths(
            requests=100,
            mean_input=prompt,
            mean_output=output,
            mean_input_squared=prompt**2 * wide,
            mean_output_squared=output**2 * wide,
            mean_input_output=prompt * output,
        )
    accepted = draw(
        st.sampled_from([None, Acceptance(alpha=0.7), Acceptance(length=1.8), Acceptance(rate=0.1), Acceptance(cumulative=(0.8, 0.5))])
    )
    return {
        "model": draw(st.sampled_from(MODELS)),
        "device": draw(st.sampled_from(DEVICES)),
        "replicas": draw(st.integers(1, 2)),
        "engine": {
            "name": draw(st.sampled_from(["vllm", "sglang", "trtllm", "llamacpp"])),
            "version": draw(st.sampled_from(["0.11", "0.6.3"])),
            "tensor_parallel_size": draw(st.sampled_from([1, 2, 4, 8])),
            "pipeline_parallel_size": draw(st.sampled_from([1, 1, 2])),
            "quantization": draw(st.sampled_from(WEIGHTS)),
            "kv_cache_dtype": draw(st.sampled_from(["auto", "fp8", "q8_0"])),
            "max_num_seqs": draw(st.integers(1, 1024)),
            "kv_unified": draw(st.booleans()),
            "enable_prefix_caching": draw(st.booleans()),
            "enable_chunked_prefill": draw(st.booleans()),
            "kv_reserve": draw(st.sampled_from(["grow", "whole"])),
        },
        "wide": (
            draw(st.sampled_from([1, 1, 2, 8])),
            draw(st.booleans()),
            draw(st.sampled_from([1, 2, 4])),
            draw(st.sampled_from([1, 1, 2])),
        ),
        "domain": draw(st.sampled_from([None, 2, 8])),
        "pool": draw(st.sampled_from([0, 0, 1, 4])),
        "method": draw(st.sampled_from(METHODS)),
        "k": draw(st.integers(1, 8)),
        "workload": {"prefix_hit_rate": draw(st.sampled_from([None, 0.0, 0.5, 1.0])), "acceptance": accepted, **lengths, **arrivals},
    }


def wide(model, tensor, ranks, whole, dealt, cut):
    """Sizes of the other kinds of parallelism, as far as the model allows them."""
    ranks = ranks if model.experts is not None else 1
    cut = 1 if model.states else cut
    devices = tensor * ranks * cut
    return {
        "tensor_parallel_size": tensor,
        "data_parallel_size": ranks,
        "enable_expert_parallel": whole and model.experts is not None and model.experts.count % devices == 0,
        "decode_context_parallel_size": min(dealt, copies_of_a_head(model, tensor)),
        "prefill_context_parallel_size": cut,
    }


def built(build, recipe, **changes):
    method, k = recipe["method"], recipe["k"]
    spec = None
    if method == "tree":
        spec = Speculative(method="eagle", num_speculative_tokens=k, topk=4, verify_tokens=8 * k)
    elif method is not None:
        spec = Speculative(method=method, num_speculative_tokens=k, model="qwen2.5-0.5b" if method == "draft_model" else None)
    asked = recipe["engine"]["tensor_parallel_size"]
    model = api.model(recipe["model"])
    legal = max(size for size in legal_sizes(model) if size <= asked)
    prefill = PrefillPool(count=recipe["pool"] * legal, tensor_parallel_size=legal) if recipe["pool"] else None
    return build(
        recipe["model"],
        recipe["device"],
        replicas=recipe["replicas"],
        engine={**recipe["engine"], **wide(model, legal, *recipe["wide"]), "speculative": spec},
        domain=recipe["domain"],
        pools=Disaggregation(prefill=prefill) if prefill is not None else None,
        drafts=("qwen2.5-0.5b",),
        **{**recipe["workload"], **changes},
    )


@settings(max_examples=150)
@given(recipe=recipes())
def test_the_books_close_on_any_deployment(build, recipe) -> None:
    d = built(build, recipe)
    p = api.evaluate(d)
    check(p, d)
    assert p.step_s > 0
    assert p.tpot_s > 0
    assert 1 <= float(np.max(p.tau)) <= recipe["k"] + 1
    assert p.demand.mode == "closed" or 0 <= float(p.prefill_share) < 1
    books = ledgers(p, d)
    for book in (books.memory, books.bandwidth, books.compute, books.interconnect):
        for field in fields(book):
            value = getattr(book, field.name)
            for figure in value.values() if isinstance(value, dict) else [value]:
                assert figure is None or (np.isfinite(figure) and figure >= 0), field.name
    assert sum(books.interconnect.by_kind.values()) == pytest.approx(books.interconnect.bytes_per_step)


@settings(max_examples=40)
@given(recipe=recipes())
def test_the_books_close_in_every_draw(build, recipe) -> None:
    assume("lengths" not in recipe["workload"])
    unsure = {
        name: Range(low=value, high=2 * value)
        for name, value in recipe["workload"].items()
        if name in ("input_tokens", "output_tokens", "request_rate")
    }
    d = built(build, recipe, **unsure)
    check(api.evaluate(d, draws=32, seed=1), d)


def test_a_step_below_its_roofline_is_a_bug_and_raised(build) -> None:
    from dataclasses import replace

    d = build(batch=8.0, context_tokens=1000.0)
    p = api.evaluate(d)
    with pytest.raises(SelfCheckError, match="roofline"):
        check(replace(p, step_s=p.step_s * 0.3), d)
    with pytest.raises(SelfCheckError, match="add up"):
        check(replace(p, step_s=p.step_s * 1.01), d)
    d = build(input_tokens=1000.0, output_tokens=100.0, request_rate=1.0)
    p = api.evaluate(d)
    with pytest.raises(SelfCheckError, match="Little"):
        check(replace(p, tpot_s=p.tpot_s * 1.01), d)
