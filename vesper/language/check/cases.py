"""Test cases of a node, read with its declared types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from vesper.language.check.callees import Interface
from vesper.language.check.case_effects import CaseEffects, ExpectedRequest
from vesper.language.check.expressions.literals import Unread, read_literal
from vesper.language.check.flow.handlers import help_for_code
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.ir import nodes as ir
from vesper.language.ir.failures import is_code
from vesper.language.syntax import ast, case_ast
from vesper.language.syntax.yaml_tree import Scalar, Tree
from vesper.values.model import Value, plain
from vesper.values.types import TIMESTAMP, Enum, OptionalOf, Type


@dataclass(frozen=True, slots=True)
class Case:
    """One test case: inputs, start time, and the outcome that it expects."""

    name: str
    inputs: dict[str, Value]
    """Input values as a caller passes them."""
    expect: dict[str, Value] | None
    """Expected outputs; None where the case expects another outcome."""
    breaks: tuple[str, int] | None
    """Phase and index of the clause that must break."""
    error: dict[str, Value] | None = None
    """Expected fields of the declared error; fields that the case omits are not compared."""
    fails: str | None = None
    """Code of the expected failure."""
    now: Value | None = None
    """Start time of the execution."""
    effects: tuple[ExpectedRequest, ...] = ()
    line: int = 0
    """Line number of the case in its file."""


_MAY_MISS = "only an input of type `optional<…>` or with a `default` can be left out"
_WORD = re.compile(r"'[^']*'|\"[^\"]*\"|\w+|[^\w\s]")


def check_cases(
    cases: tuple[case_ast.TestCase, ...], node: ir.Node, called: Mapping[str, Interface], bag: DiagnosticBag
) -> tuple[Case, ...]:
    """Return the cases of a node. Cases that name unknown inputs, outputs, clauses or codes are reported."""
    inputs = {each.name: each.type for each in node.inputs}
    required = [
        name for name, type_, default in node.declared_inputs if default is None and not isinstance(type_, OptionalOf)
    ]
    outputs = {each.name: each.type for each in node.outputs}
    clauses: dict[tuple[str, ...], tuple[str, int]] = {}
    for phase, listed in node.phases():
        for index, clause in enumerate(listed):
            clauses.setdefault(_words(clause.text), (phase, index))
    found = []
    # SEMANTICS: functions have no clock, so their cases need no start time.
    uses_now = node.type != "function" and any(isinstance(each, ir.Now) for each in node.expressions())
    reader = CaseEffects(node, called, bag)
    for case in cases:
        given = _inputs(case, inputs, required, bag)
        now, effects = _now(case, uses_now, bag), reader.read(case)
        line = bag.source.position(case.name.span.start)[0]
        if case.error is not None:
            errors = {each.name: each.type for each in node.errors}
            error = read_values(case.error, errors, "no field of the errors", bag)
            found.append(Case(case.name.text, given, None, None, error=error, now=now, effects=effects, line=line))
            continue
        if case.fails is not None:
            of_called = (interface.codes for interface in called.values())
            if not is_code(case.fails.text) and not any(case.fails.text in codes for codes in of_called):
                fails = case.fails
                bag.error(Code.CODE_CANNOT_HAPPEN, fails.span, failure=fails.text, help=help_for_code(fails.text))
            failure = case.fails.text
            found.append(Case(case.name.text, given, None, None, None, failure, now, effects, line))
            continue
        if case.breaks is None:
            expect = read_values(_without_raised(case, node, bag), outputs, "no output", bag)
            found.append(Case(case.name.text, given, expect, None, now=now, effects=effects, line=line))
            continue
        found_clause = clauses.get(_words(case.breaks.text))
        if found_clause is None:
            kinds = "no constraint, precondition or postcondition"
            help_ = did_you_mean(case.breaks.text, [c.text for _, cs in node.phases() for c in cs])
            help_ = help_ or "copy the text of the clause, such as `breaks: amount > 0`"
            bag.error(Code.UNKNOWN_NAME, case.breaks.span, kinds=kinds, name=case.breaks.text, help=help_)
            continue
        found.append(Case(case.name.text, given, None, found_clause, now=now, effects=effects, line=line))
    return tuple(found)


_RAISED = frozenset(["raises", "raise", "raised", "throws", "throw", "exception", "error_code"])


def _without_raised(case: case_ast.TestCase, node: ir.Node, bag: DiagnosticBag) -> tuple[tuple[ast.Word, Tree], ...]:
    """Return what a case expects without an error in the place of an output, which is reported."""
    outputs, errors = {each.name for each in node.outputs}, {each.name: each.type for each in node.errors}
    declared = errors.get("error_code")
    codes = declared.members if isinstance(declared, Enum) else ()
    texts = {word.text: tree.text if isinstance(tree, Scalar) else "" for word, tree in case.expect}
    raised = [
        word
        for word, _ in case.expect
        if word.text not in outputs and errors and (word.text in _RAISED or texts[word.text] in codes)
    ]
    if not raised:
        return case.expect
    code = next((texts[each.text] for each in raised if texts[each.text] in codes), codes[0] if codes else "…")
    help_ = f"a case expects a declared error as `expect: {{error: {{error_code: {code}}}}}`"
    bag.error(Code.UNKNOWN_NAME, raised[0].span, kinds="no output", name=raised[0].text, help=help_)
    return tuple(each for each in case.expect if each[0] not in raised and each[0].text not in errors)


def _inputs(
    case: case_ast.TestCase, inputs: dict[str, Type], required: list[str], bag: DiagnosticBag
) -> dict[str, Value]:
    """Return the inputs of a case. Reports inputs without a value that no call can leave out."""
    named = {word.text for word, _ in case.inputs}
    absent = [name for name in required if name not in named]
    if absent and named <= inputs.keys():
        span = case.inputs[0][0].span if case.inputs else case.name.span
        where, keys = f"`inputs` of the case `{case.name.text}`", "`, `".join(absent)
        help_ = f"add {', '.join(f'`{name}: …` ({inputs[name]})' for name in absent)}; {_MAY_MISS}"
        bag.error(Code.MISSING_KEY, span, where=where, key=keys, help=help_)
    return read_values(case.inputs, inputs, "no input", bag, absent)


def _now(case: case_ast.TestCase, uses_now: bool, bag: DiagnosticBag) -> Value | None:
    """Return the start time of a case. A missing one is reported where the node calls `now()`."""
    if case.now is None:
        if uses_now:
            help_ = "give a start time: `now: 2026-11-15T12:00:00Z`"
            bag.error(Code.MISSING_KEY, case.name.span, where="a case of a node with `now()`", key="now", help=help_)
        return None
    value = read_literal(TIMESTAMP, case.now, "now", bag)
    return None if isinstance(value, Unread) else value


def read_values(
    given: tuple[tuple[ast.Word, Tree], ...],
    declared: dict[str, Type],
    kinds: str,
    bag: DiagnosticBag,
    absent: Sequence[str] = (),
) -> dict[str, Value]:
    """Return literals by name, read by their declared types. Unknown names are reported.

    `absent` are declared names that need a value and have none.
    """
    values: dict[str, Value] = {}
    for word, scalar in given:
        if word.text not in declared:
            help_ = did_you_mean(word.text, declared) or _help_for_names(kinds, declared, absent)
            bag.error(Code.UNKNOWN_NAME, word.span, kinds=kinds, name=word.text, help=help_)
            continue
        value = read_literal(declared[word.text], scalar, word.text, bag)
        if not isinstance(value, Unread):
            values[word.text] = plain(value)
    return values


def _help_for_names(kinds: str, declared: Iterable[str], absent: Sequence[str]) -> str:
    """Return help that lists the declared names, and those without a value."""
    known = [f"`{name}`" for name in declared]
    if not known:
        return f"there is {kinds} here: leave it out"
    without = [f"`{name}`" for name in absent]
    help_ = f"write one of {', '.join(known)}" if len(known) > 1 else f"write {known[0]}"
    return help_ if not without else f"{help_}; {', '.join(without)} {'has' if len(without) == 1 else 'have'} no value"


def _words(text: str) -> tuple[str, ...]:
    """Return the words and signs of a clause, which identify it regardless of white space. A string is one word."""
    return tuple(_WORD.findall(text))
