"""Rules of node types: their help, and the handler that cannot fail."""

from __future__ import annotations

import pytest

from vesper.compiler import compile_source
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import Diagnostic
from vesper.language.diagnostics.source import SourceFile

QUERY = """
  - step: name
    operation: database_query
    query: SELECT name FROM customers
    returns: optional<string>
"""
GREETING = """
  - return: {greeting: "'hello'"}
"""
ANSWER = """
  - return: {greeting: "name ?? 'customer'"}
security: {capabilities_required: [database.read.customers]}
"""
ERRORS = ', error: {error_code: "enum[unavailable]", message: string}'


def problems(type_: str, flow: str, inputs: str = "{id: string}", error: str = "", more: str = "") -> list[Diagnostic]:
    head = f"node_id: greet_v1\ntype: {type_}\nintent: Greet a customer\ninputs: {inputs}\n"
    text = f"{head}outputs: {{success: {{greeting: string}}{error}}}\nflow:{flow}{more}"
    _, bag = compile_source(SourceFile("greet_v1.vsp", text))
    return [each for each in bag.sorted() if each.severity.value == "error"]


def test_a_handler_that_cannot_fail_needs_no_errors() -> None:
    assert problems("http_handler", GREETING) == []


def test_a_handler_that_can_fail_is_shown_a_failure_to_declare() -> None:
    (found,) = problems("http_handler", QUERY + ANSWER)
    assert found.code is Code.NODE_TYPE_RULE
    assert 'error: {error_code: "enum[unavailable]", message: string}' in (found.help or "")
    assert problems("http_handler", QUERY + ANSWER, error=ERRORS) == []


@pytest.mark.parametrize(
    "type_, inputs, error, named",
    [
        ("function", "{id: string}", ERRORS, "`type: http_handler`"),
        ("function", "{event_id: string}", "", "`type: event_handler`"),
        ("function", "{}", "", "`type: scheduled_job`"),
        ("function", "{id: string}", "", "an `event_handler` has an input `event_id: string`"),
        ("event_handler", "{id: array<string>}", "", "`type: data_transform`"),
        ("http_handler", "{}", "", "`type: scheduled_job`"),
    ],
)
def test_a_broken_rule_names_the_types_that_fit(type_: str, inputs: str, error: str, named: str) -> None:
    found = problems(type_, QUERY + ANSWER, inputs, error)
    assert [each.code for each in found] == [Code.NODE_TYPE_RULE]
    assert named in (found[0].help or "")


def test_a_handler_with_a_route_is_not_shown_other_types() -> None:
    (found,) = problems("http_handler", QUERY + ANSWER, more="http: {method: POST, path: /greet}\n")
    assert "type" not in (found.help or "")
