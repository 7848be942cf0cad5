"""Worst case of nodes before they run: rounds, attempts, fallback models, alternatives, budgets, sizes of requests."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.support.nodes import compiled_text
from vesper.engines.model_cost import INFINITE, ModelTerms, UnknownModel, cost_of

SMALL = ModelTerms("small", ((Decimal(1), Decimal(10)),), 10_000, 2_000, 60.0)
OTHER = ModelTerms("other", ((Decimal(2), Decimal(20)), (Decimal(5), Decimal(5))), 8_000, None, 30.0)
MODELS = {"small": SMALL, "other": OTHER}
NODE = """\
node_id: asking_v1
type: http_handler
intent: Ask
inputs: {{xs: array<integer>, text: {{type: string, constraints: [{{max_length: 100}}]}}}}
outputs: {{success: {{done: boolean}}, error: {{error_code: "enum[failed]", message: string}}}}
{policies}
flow:
{steps}
  - {{operation: return, success: {{done: 'true'}}, when: length(xs) < 3}}
  - raise: {{error_code: failed, message: failed}}
security: {{capabilities_required: [models.call.small]}}
"""
CAUGHT = "on_error: {any: {value: to_json(1)}}"


def question(name: str, more: str = "", content: str = "{text}", max_tokens: int = 100) -> str:
    request = f"{{messages: [{{role: user, content: '{content}'}}], max_tokens: {max_tokens}}}"
    return f"{{step: {name}, operation: ask_model, model: small, request: {request}, {more}{CAUGHT}}}"


def total_of(steps: str, policies: str = "", models: dict[str, ModelTerms] = MODELS):  # type: ignore[no-untyped-def]
    return cost_of(compiled_text(NODE.format(steps=steps, policies=policies)), models)


def test_a_question_is_bounded_by_its_bytes_and_its_max_tokens() -> None:
    report = total_of(f"  - {question('one')}")
    assert report.total.requests == 1
    assert report.total.output_tokens == 100
    assert 600 + 1_024 + 64 < report.total.input_tokens < 600 + 1_024 + 64 + 200
    assert report.total.usd == (report.total.input_tokens * 1 + 100 * 10) / 1_000_000
    assert report.total.time_us == 60_000_000
    assert not report.unbounded


def test_a_request_of_any_size_is_bounded_by_the_context_of_the_model() -> None:
    report = total_of(f"  - {question('one', content='{text(xs[0])} {join([text(x) FOR x IN xs], text)}')}")
    assert report.total.input_tokens == 10_000


def test_attempts_and_fallback_models_are_added_up() -> None:
    chain = {"small": ModelTerms("small", SMALL.prices, 10_000, 2_000, 60.0, (OTHER,))}
    retry = "retry: {attempts: 3, backoff: {base: 1s}}, "
    report = total_of(f"  - {question('one', retry)}", models=chain)
    assert report.total.requests == 6
    assert {name: each.requests for name, each in report.models.items()} == {"small": 3, "other": 3}
    assert report.total.time_us == 3 * 90_000_000 + 1_000_000 + 2_000_000
    one = report.models["other"].input_tokens / 3
    assert report.models["other"].usd == 3 * max(one * 2 + 100 * 20, one * 5 + 100 * 5) / 1_000_000


def test_rounds_multiply_and_alternatives_count_once() -> None:
    loop = f"  - {{step: all, over: 'i IN range(0, 4)', collect: i, steps: [{question('one')}]}}"
    assert total_of(loop).total.requests == 4
    then, otherwise = f"{question('one')}, {question('two')}", question("three")
    either = (
        f"  - {{step: either, condition: text == 'a', then: {{steps: [{then}], value: 1}},"
        f" else: {{steps: [{otherwise}], value: 2}}}}"
    )
    assert total_of(either).total.requests == 2


def test_a_loop_of_any_length_is_unbounded_and_a_budget_bounds_it() -> None:
    loop = f"{{step: all, over: i IN xs, collect: i, steps: [{question('one')}]}}"
    report = total_of(f"  - {loop}")
    assert report.total.usd == INFINITE
    assert report.unbounded == {"all": "nothing bounds its rounds"}
    within = f"  - {{step: most, operation: budget, usd: 0.75, tokens: 5000, steps: [{loop}], value: 1}}"
    found = total_of(within).total
    assert (found.usd, found.input_tokens, found.requests) == (Decimal("0.75"), 5_000, INFINITE)
    assert total_of(within.replace("usd: 0.75", "usd: 0.75, on_exceeded: warn")).total.usd == INFINITE
    assert total_of(f"  - {loop}", "policies: {budget: {usd: 2}}").total.usd == 2


def test_a_budget_holds_for_all_rounds_around_it() -> None:
    block = f"{{step: most, operation: budget, usd: 0.001, steps: [{question('one')}], value: 1}}"
    loop = f"  - {{step: all, over: 'i IN range(0, 4)', collect: i, steps: [{block}]}}"
    assert total_of(loop).total.usd == Decimal("0.001")
    each = (
        f"  - {{step: all, over: 'i IN range(0, 4)', collect: i, steps: [{question('one', 'budget: {usd: 0.001}, ')}]}}"
    )
    assert total_of(each).total.usd == Decimal("0.004")


def test_a_model_without_terms_is_named() -> None:
    with pytest.raises(UnknownModel, match="small"):
        total_of(f"  - {question('one')}", models={"other": OTHER})
