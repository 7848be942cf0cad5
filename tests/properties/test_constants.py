"""Expressions that the checker calls constant are constant in every execution.

Random programs are run where they were judged. A comparison is not marked, so each judged one becomes the condition of
an added `if`, which is.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import fields, replace

from vesper.compiler import Compiled, compile_source
from vesper.engines.outcome import Returned
from vesper.engines.registry import ENGINES, REFERENCE
from vesper.language.check.reachability.clauses import Finding, report_constants
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir import nodes as ir
from vesper.language.ir.encode import encode, semantic_hash
from vesper.values.types import BOOLEAN
from vesper.verify.inputs.generator import InputGenerator
from vesper.verify.inputs.responses import GeneratedResponses, run_with
from vesper.verify.programs.nodes import draw_program

PROGRAMS = int(os.environ.get("VESPER_CONSTANT_PROGRAMS", "40"))
INPUTS = 20


def _drawn(seed: int) -> Compiled:
    text = draw_program(seed).text()
    compiled, bag = compile_source(SourceFile("drawn.vsp", text), judge_contracts=False)
    assert compiled is not None, [each.headline for each in bag.sorted()]
    return compiled


def _watched(compiled: Compiled, findings: tuple[Finding, ...]) -> tuple[Compiled, dict[int, Finding]]:
    """Return the node with every judged expression as an `if` condition, and findings by index."""
    numbered = {finding.expression.index: number for number, finding in enumerate(findings)}

    def wrapped(expression: ir.Expression) -> ir.Expression:
        changed = {
            field.name: _mapped(getattr(expression, field.name), wrapped)
            for field in fields(expression)
            if field.name != "place"
        }
        inner: ir.Expression = replace(expression, **changed)  # type: ignore[arg-type]
        if expression.index not in numbered:
            return inner
        # Lines from the millionth on are in no file: the place identifies the finding.
        place = ir.Place(1_000_000 + numbered[expression.index], 1, 1, 1)
        yes, no = ir.Literal(BOOLEAN, True, place), ir.Literal(BOOLEAN, False, place)
        return ir.If(inner, yes, no, BOOLEAN, place)

    def clause(of: ir.Clause) -> ir.Clause:
        return replace(of, holds=wrapped(of.holds))

    node = compiled.node
    watched = ir.number_expressions(
        replace(
            node,
            constraints=tuple(clause(each) for each in node.constraints),
            preconditions=tuple(clause(each) for each in node.preconditions),
            postconditions=tuple(clause(each) for each in node.postconditions),
            body=tuple(_mapped(each, wrapped) for each in node.body),  # type: ignore[misc]
        )
    )
    found = {
        each.condition.index: findings[each.place.line - 1_000_000]
        for each in watched.expressions()
        if isinstance(each, ir.If) and each.place.line >= 1_000_000
    }
    return replace(compiled, node=watched, ir=encode(watched), semantic_hash=semantic_hash(watched)), found


def _mapped(value: object, change: object) -> object:
    if isinstance(value, ir.Expression):
        return change(value)  # type: ignore[operator]
    if isinstance(value, tuple):
        return tuple(_mapped(each, change) for each in value)
    if isinstance(value, ir.Statement | ir.Arm | ir.Handler | ir.LoopState | ir.Clause):
        parts = {each.name: _mapped(getattr(value, each.name), change) for each in fields(value)}
        return replace(value, **parts)  # type: ignore[arg-type]
    return value


def _examine(compiled: Compiled, seed: int) -> Counter[Code]:
    bag = DiagnosticBag(compiled.source)
    findings = report_constants(compiled.node, bag)
    assert len({finding.expression.index for finding in findings}) == len(findings), "said twice"
    counts = Counter(finding.code for finding in findings)
    if not findings:
        return counts
    watched, by_index = _watched(compiled, findings)
    program = ENGINES[REFERENCE].load(watched)
    generator = InputGenerator(watched.node, seed, seeks_boundaries=False)
    phases = [clause.holds.index for clause in (*watched.node.constraints, *watched.node.preconditions)]
    responses = GeneratedResponses(watched)
    for number in range(INPUTS):
        inputs = generator.draw()
        done = run_with(program, inputs, responses.now(str(number)), responses.responder(str(number)))
        held = {index for index, value in done.marks if value is True}
        for index, value in done.marks:
            finding = by_index.get(index)
            if finding is None:
                continue
            wrong = value is not finding.holds
            if finding.code is Code.CONTRADICTION:
                # Each clause may hold, but never all contradicting ones together.
                is_before = index <= max(phases, default=-1)
                wrong = all(each in held for each in phases) if is_before else isinstance(done.outcome, Returned)
            place = finding.expression.place
            assert not wrong, (
                f"line {place.line}, column {place.column}: {finding.code} {inputs}\n{compiled.source.text}"
            )
    return counts


def test_expressions_reported_as_constant_are_constant() -> None:
    counts: Counter[Code] = Counter()
    for seed in range(31_000, 31_000 + PROGRAMS):
        counts += _examine(_drawn(seed), seed)
    # Enough of each kind for the test to be meaningful.
    assert all(counts[code] > 0 for code in (Code.ALWAYS_HOLDS, Code.UNREACHABLE_BRANCH, Code.CONSTANT_COMPARISON))
