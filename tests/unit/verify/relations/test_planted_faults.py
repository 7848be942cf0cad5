"""Faults planted in the front end, on which the engines agree: a relation finds each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest

from vesper.compiler import compile_source
from vesper.engines.registry import PAIR
from vesper.language.check.expressions import literals
from vesper.language.check.expressions.checker import ExpressionChecker
from vesper.language.check.flow.steps import FlowChecker
from vesper.language.check.scope import Declared, Scope
from vesper.language.check.tables.checker import TableChecker
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast, expression_parser, scalar_text
from vesper.language.syntax.format import formatter
from vesper.language.syntax.format.lines import lines_to_text
from vesper.language.syntax.scalar_text import PlacedText
from vesper.values.types import INTEGER
from vesper.verify.differential.verifier import Verifier
from vesper.verify.relations.catalog import ALL_RELATIONS
from vesper.verify.relations.checking import verify_relations

_NODE = """
node_id: planted_v1
type: function
intent: Use each form that a planted fault changes
inputs:
  amount: decimal
  count: integer
  other: integer
  items: array<integer>
  is_open: boolean
outputs:
  success:
    {fee: decimal, kind: "enum[low, high, none]", total: integer, is_fine: boolean, is_sure: boolean, rest: integer}
constants:
  limit: {type: integer, value: 12}
functions:
  weigh: {params: {a: integer, b: integer}, returns: integer, value: "clamp(a, 0, 100) - 2 * clamp(b, 0, 100)"}
flow:
  - step: fee
    operation: decision_table
    rows:
      - {when: amount <= 10, then: amount * 0.10 + 0.30}
      - {when: amount <= 100, then: amount * 0.50}
      - {otherwise: "1.00"}
  - step: few
    operation: compute
    value: clamp(count, 0, 50)
  - step: total
    operation: compute
    value: "LET x = few + 1 IN LET y = x * 2 IN x - y + weigh(few, other)"
  - step: is_fine
    operation: compute
    value: "few < limit OR few > 30 AND (FORALL i IN items WHERE i > 3 SATISFIES i > 10) AND NOT is_open"
  - step: is_sure
    operation: compute
    value: few > 20 => is_open
  - step: kind
    operation: compute
    value: "IF few < limit THEN low ELSE IF NOT is_open THEN high ELSE none"
  - step: rest
    operation: conditional
    condition: few > 12 AND NOT (is_open AND few < 40)
    then: few - 12 - 3
    else: few
  - operation: return
    success: [fee, kind, total, is_fine, is_sure, rest]
testing:
  test_cases:
    - name: small
      inputs: {amount: 5.00, count: 5, other: 3, items: [1, 5], is_open: true}
      expect: {rest: 5}
    - name: large
      inputs: {amount: 50.00, count: 35, other: 7, items: [25, 1], is_open: false}
      expect: {rest: 20}
    - name: between
      inputs: {amount: 500.00, count: 12, other: 9, items: [2], is_open: true}
      expect: {rest: 12}
    - name: open
      inputs: {amount: 50.00, count: 45, other: 7, items: [1], is_open: true}
      expect: {rest: 30}
"""
_SOURCE = SourceFile("planted_v1.vsp", _NODE)
Plant = Callable[[pytest.MonkeyPatch], None]


def _swap_and_with_or(patch: pytest.MonkeyPatch) -> None:
    levels = expression_parser._INFIX
    both = levels["AND"], levels["OR"]
    patch.setitem(levels, "OR", both[0])
    patch.setitem(levels, "AND", both[1])


def _bind_minus_as_times(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(expression_parser._INFIX, "-", expression_parser._INFIX["*"])


def _wrap_method(patch: pytest.MonkeyPatch, owner: type, name: str, change: Callable[..., object]) -> None:
    """Change the results of a method; `change` takes the result and the arguments."""
    real = getattr(owner, name)
    patch.setattr(owner, name, lambda self, *args, **named: change(real(self, *args, **named), self, *args))


def _shift_literals(patch: pytest.MonkeyPatch) -> None:
    def change(found: ir.Literal, *_: object) -> ir.Literal:
        is_twelve = found.type == INTEGER and found.value == 12
        return replace(found, value=13) if is_twelve else found

    _wrap_method(patch, ExpressionChecker, "_number", change)


def _keep_branches_of_negation(patch: pytest.MonkeyPatch) -> None:
    def change(found: ir.If, _: object, expression: ast.If, *__: object) -> ir.If:
        """Drop the negation of a condition, but do not swap the branches."""
        condition = found.condition
        is_negated = isinstance(condition, ir.Call) and condition.op == "boolean.not"
        return replace(found, condition=condition.args[0]) if is_negated else found  # type: ignore[union-attr]

    _wrap_method(patch, ExpressionChecker, "_if", change)


def _keep_blocks_of_negation(patch: pytest.MonkeyPatch) -> None:
    def change(found: ir.Branch, *_: object) -> ir.Branch:
        (arm,) = found.arms
        is_negated = isinstance(arm.when, ir.Call) and arm.when.op == "boolean.not"
        return replace(found, arms=(replace(arm, when=arm.when.args[0]),)) if is_negated else found  # type: ignore[union-attr]

    _wrap_method(patch, FlowChecker, "_conditional", change)


def _find_older_local(patch: pytest.MonkeyPatch) -> None:
    real = Scope.find

    def find(self: Scope, name: str) -> Declared | None:
        """Compare only the first letter of locals."""
        return next((each for local, each in self.locals.items() if local[0] == name[0]), None) or real(self, name)

    patch.setattr(Scope, "find", find)


def _shorten_decimals_in_layout(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(formatter, "lines_to_text", lambda lines: lines_to_text(lines).replace("0.50", "0.5"))
    patch.setattr(formatter, "same_tree", lambda *_: True)


def _cut_folded_text(patch: pytest.MonkeyPatch) -> None:
    real = scalar_text._verbatim

    def verbatim(raw: str, start: int) -> PlacedText:
        """Read `- 3` at the end of a block scalar as `- 2`."""
        return real(raw.replace("12 - 3", "12 - 2") if raw.startswith(" ") else raw, start)

    patch.setattr(scalar_text, "_verbatim", verbatim)


def _join_negated_operands(patch: pytest.MonkeyPatch) -> None:
    def change(found: ir.Expression, *_: object) -> ir.Expression:
        """Lower NOT (a AND b) as NOT a AND NOT b."""
        match found:
            case ir.Call("boolean.not", args=(ir.Logical("and", left, right) as inner,)):
                left, right = (replace(found, args=(each,)) for each in (left, right))
                return replace(inner, left=left, right=right)
        return found

    _wrap_method(patch, ExpressionChecker, "_prefix", change)


def _imply_by_and(patch: pytest.MonkeyPatch) -> None:
    def change(found: ir.Logical, _: object, expression: ast.Infix) -> ir.Logical:
        return replace(found, kind="and") if expression.operator.text == "=>" else found

    _wrap_method(patch, ExpressionChecker, "_logical", change)


def _swap_parameters(patch: pytest.MonkeyPatch) -> None:
    def change(found: ir.Expression, *_: object) -> ir.Expression:
        match found:
            case ir.Let(value=first, body=ir.Let(value=second) as inner) if first.type == second.type:
                return replace(found, value=second, body=replace(inner, value=first))
        return found

    _wrap_method(patch, ExpressionChecker, "own_call", change)


def _drop_first_row(patch: pytest.MonkeyPatch) -> None:
    def change(found: ir.Expression, *_: object) -> ir.Expression:
        is_table = isinstance(found, ir.If) and isinstance(found.otherwise, ir.If)
        return found.otherwise if is_table else found  # type: ignore[union-attr]

    _wrap_method(patch, TableChecker, "check", change)


def _move_constant_right(patch: pytest.MonkeyPatch) -> None:
    def change(found: ir.Expression, *_: object) -> ir.Expression:
        """Swap the operands of `12 > x`, but keep the operator."""
        match found:
            case ir.Call(args=(ir.Literal() as left, right)) if ".less" in found.op or ".greater" in found.op:
                return replace(found, args=(right, left))
        return found

    _wrap_method(patch, ExpressionChecker, "infix", change)


def _cancel_one_negation(patch: pytest.MonkeyPatch) -> None:
    def change(found: ir.Expression, *_: object) -> ir.Expression:
        match found:
            case ir.Call("boolean.not", args=(ir.Call("boolean.not") as inner,)):
                return inner
        return found

    _wrap_method(patch, ExpressionChecker, "_prefix", change)


def _ignore_filter_of_exists(patch: pytest.MonkeyPatch) -> None:
    def change(found: ir.For, *_: object) -> ir.For:
        return replace(found, where=None) if found.kind == "exists" else found

    _wrap_method(patch, ExpressionChecker, "finish", change)


def _strip_constants(patch: pytest.MonkeyPatch) -> None:
    real = literals.value_from_text  # type: ignore[attr-defined]

    def read(type_: object, text: str) -> object:
        value = real(type_, text)  # type: ignore[arg-type]
        return value.normalize() if isinstance(value, Decimal) and "." in text else value

    patch.setattr(literals, "value_from_text", read)


_FAULTS: dict[str, tuple[Plant, tuple[str, ...]]] = {
    "AND binds looser than OR": (_swap_and_with_or, ("parenthesised", "bare_operands")),
    "minus binds as times": (_bind_minus_as_times, ("parenthesised",)),
    "a literal is off by one": (_shift_literals, ("inlined_constants", "named_literals", "computed_literals")),
    "a negated IF keeps its branches": (_keep_branches_of_negation, ("swapped_branches",)),
    "a negated conditional keeps its blocks": (_keep_blocks_of_negation, ("swapped_blocks",)),
    "a local is found by its first letter": (_find_older_local, ("renamed_locals",)),
    "the formatter changes a literal": (_shorten_decimals_in_layout, ("formatted",)),
    "a block scalar changes a literal": (_cut_folded_text, ("requoted",)),
    "NOT is distributed over AND": (_join_negated_operands, ("de_morgan",)),
    "an implication is a conjunction": (_imply_by_and, ("de_morgan",)),
    "parameters are swapped": (_swap_parameters, ("inlined_functions", "extracted_functions")),
    "the first row of a table is lost": (_drop_first_row, ("tables_as_ifs",)),
    "a constant moves to the right": (_move_constant_right, ("mirrored",)),
    "one of two negations is lost": (_cancel_one_negation, ("double_negation",)),
    "EXISTS ignores its filter": (_ignore_filter_of_exists, ("dual_quantifier",)),
    "constants lose trailing zeros": (_strip_constants, ("named_literals",)),
}


def _broken(names: tuple[str, ...]) -> set[str]:
    """Return the relations among these that do not hold, over a few seeds."""
    relations = [each for each in ALL_RELATIONS if each.name in names]
    found: set[str] = set()
    for seed in range(4):
        report = verify_relations(_SOURCE, seed=seed, relations=relations, reference_share=0)
        found |= {failure.relation for failure in report.failures}
        if found:
            break
    return found


@pytest.mark.parametrize("name", _FAULTS)
def test_a_relation_finds_a_fault_on_which_the_engines_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, relations = _FAULTS[name]
    plant(monkeypatch)
    compiled, bag = compile_source(_SOURCE, judge_contracts=False)
    assert compiled is not None, bag.sorted()
    report = Verifier(compiled, PAIR, 0, seeks_boundaries=False).run(20)
    assert report.differences == []
    assert _broken(relations)


def test_every_relation_holds_without_a_fault() -> None:
    names = tuple(name for _, names in _FAULTS.values() for name in names)
    assert _broken(names) == set()
