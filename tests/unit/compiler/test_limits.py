"""What a check refuses because there is too much of it, and what the campaign of damaged documents found."""

from __future__ import annotations

import pytest

from tests.support.waiting import processor_seconds
from vesper.compiler import Compiled, compile_source
from vesper.language.check.expressions.literals import MAX_TEXT
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import MAX_DIAGNOSTICS, DiagnosticBag, Severity
from vesper.language.diagnostics.render.full import render_full
from vesper.language.diagnostics.source import SourceFile
from vesper.language.diagnostics.suggest import suggestions
from vesper.language.syntax.slots import MAX_EXPRESSION_TEXT
from vesper.language.syntax.yaml.flow import MAX_ENTRIES, MAX_VALUES

NODE = """node_id: small_v1
type: function
intent: Test
inputs:
  amount: decimal
  kind: enum[KINDS]
constants:
  listed: {type: set<string>, value: [LISTED]}
  text: {type: string, value: 'TEXT'}
outputs:
  success:
    result: decimal
contracts:
  preconditions:
    - amount > 0
CLAUSES
flow:
  - {step: result, operation: compute, value: EXPRESSION}
  - {operation: return, success: [result]}
"""


def check(
    kinds: str = "a", listed: str = "x", text: str = "x", clauses: str = "", expression: str = "amount"
) -> tuple[Compiled | None, DiagnosticBag]:
    node = NODE.replace("KINDS", kinds).replace("LISTED", listed).replace("CLAUSES", clauses)
    return compile_source(SourceFile("small.vsp", node.replace("EXPRESSION", expression).replace("TEXT", text)))


def errors(found: tuple[Compiled | None, DiagnosticBag]) -> list[tuple[Code, str]]:
    return [(each.code, each.headline) for each in found[1].sorted() if each.severity is Severity.ERROR]


def members(count: int) -> str:
    return ", ".join(f"m{number}" for number in range(count))


def test_entries_of_one_list() -> None:
    assert errors(check(listed=members(MAX_ENTRIES))) == []
    (error,) = errors(check(listed=members(MAX_ENTRIES + 1)))
    assert error == (Code.TOO_LARGE, "more than 4,096 entries in this list or mapping")


def test_values_of_a_document() -> None:
    lists = "".join(f"more{number}: [{members(1000)}]\n" for number in range(MAX_VALUES // 1000 + 1))
    (error,) = errors(compile_source(SourceFile("x.vsp", lists)))
    assert error == (Code.TOO_LARGE, "more than 8,192 keys and values in this document")


def test_text_of_expressions() -> None:
    clauses = "\n".join(["    - amount > 1"] * (MAX_EXPRESSION_TEXT // 20))
    assert errors(check(clauses=clauses)) == []
    (error,) = errors(check(expression="x" * MAX_EXPRESSION_TEXT))
    assert error == (Code.TOO_LARGE, "more than 32,768 characters of expressions and types in this document")


def test_number_of_expressions() -> None:
    clauses = "\n".join(["    - 1<2"] * (MAX_ENTRIES - 1))
    (error,) = errors(check(clauses=clauses))
    assert error == (Code.TOO_LARGE, "more than 2,048 expressions and types in this document")


def test_one_literal() -> None:
    assert errors(check(text="x" * MAX_TEXT)) == []
    assert errors(check(text="x" * (MAX_TEXT + 1))) == [(Code.TOO_LARGE, "more than 65,536 bytes in one literal")]
    assert errors(check(text="é" * (MAX_TEXT // 2 + 1))) == [(Code.TOO_LARGE, "more than 65,536 bytes in one literal")]


def test_the_ir_of_a_node() -> None:
    """An enum is written out wherever a member of it stands, so a short node can have long IR."""
    few = "\n".join(["    - kind == m1"] * 100)
    many = "\n".join(["    - kind == m1"] * 1000)
    assert errors(check(kinds=members(500), clauses=few)) == []
    (error,) = errors(check(kinds=members(2000), clauses=many))
    assert error == (Code.TOO_LARGE, "more than 8 MiB of IR for this node")


def test_the_errors_of_one_file() -> None:
    found = check(clauses="\n".join(["    - x"] * 1000))
    assert len(errors(found)) == MAX_DIAGNOSTICS
    assert found[0] is None


def test_the_warnings_of_one_file() -> None:
    steps = "\n".join(f"  - {{step: s{number}, operation: compute, value: amount}}" for number in range(200))
    found = check()[1].source.text.replace("flow:\n", f"flow:\n{steps}\n")
    compiled, bag = compile_source(SourceFile("x.vsp", found))
    assert compiled is not None
    assert len(bag.sorted()) == MAX_DIAGNOSTICS


def test_suggestions_end() -> None:
    candidates = [f"{'x' * 60}{number:04}" for number in range(20_000)]
    with processor_seconds(2):
        suggestions("x" * 64, candidates)
        suggestions("y" * 100_000, ["z" * 100_000])
    assert suggestions("ammount", [*(f"other_name_{number}" for number in range(1000)), "amount"]) == ["amount"]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r", "\x85", "\u2028", "\u2029"])
@pytest.mark.parametrize("header", [">", "|", ">-", "> # why"])
def test_an_expression_in_a_block_whatever_ends_its_lines(line_end: str, header: str) -> None:
    text = check()[1].source.text.replace("    - amount > 0", f"    - {header}\n        amount\n        > 0")
    compiled, bag = compile_source(SourceFile("x.vsp", text.replace("\n", line_end)))
    # The last three end a line for YAML 1.1 and are signs that no expression has.
    assert (compiled is not None) == (line_end in ("\n", "\r\n", "\r")), errors((compiled, bag))


@pytest.mark.parametrize(
    "text", ["", "\n", "a:", "flow:", "node_id: x_v1\ninputs:", "'", "[", "a: b: c", "\ud800", "a: \udfff"]
)
def test_a_place_is_inside_the_file(text: str) -> None:
    compiled, bag = compile_source(SourceFile("x.vsp", text))
    assert compiled is None
    assert bag.sorted()
    for diagnostic in bag.sorted():
        assert 0 <= diagnostic.primary.span.start <= diagnostic.primary.span.end <= len(text)


def test_what_a_terminal_would_act_on_is_shown() -> None:
    found = check(kinds="'\u200e', b", clauses="    - kind")
    shown = [render_full(found[1].source, each) for each in found[1].sorted()]
    assert shown
    assert all(line.isprintable() for text in shown for line in text.split("\n"))
    assert any("this is enum[\\u200e, b]" in text for text in shown)
