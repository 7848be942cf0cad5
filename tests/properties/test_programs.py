"""Properties of every accepted node, on random programs from fixed seeds."""

from __future__ import annotations

import random
from functools import cache

import pytest

from tests.support.cells import reached_cells
from tests.support.marks import counts_memory, without_marks
from tests.support.nodes import compiled_text
from vesper.codegen.module import generate_module
from vesper.compiler import Compiled, compile_source
from vesper.engines.outcome import EngineFault
from vesper.engines.registry import ENGINES
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.render.full import render_full
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir.decode import decode
from vesper.language.ir.encode import encode, semantic_hash
from vesper.language.ir.nodes import FOR_KINDS, Array, Call, Field, For, If, Let, Logical, RecordValue
from vesper.language.ir.statements import Branch, Loop, Raise, Request, Require, all_statements
from vesper.language.syntax.format.formatter import format_source
from vesper.values.generated.operations import IMPLEMENTED
from vesper.verify.inputs.generator import InputGenerator
from vesper.verify.inputs.responses import GeneratedResponses, run_with
from vesper.verify.programs.nodes import draw_program

PROGRAMS = 400
RUN = 25
"""Number of programs that are generated as Python and run, which takes most of the time."""


@cache
def programs() -> tuple[Compiled, ...]:
    """Return programs that the checker accepts; `compiled_text` shows diagnostics of others."""
    return tuple(compiled_text(draw_program(seed).text()) for seed in range(7000, 7000 + PROGRAMS))


def _formatted(text: str) -> str:
    bag = DiagnosticBag(SourceFile("test.vsp", text))
    formatted = format_source(bag)
    assert formatted is not None, "\n".join(render_full(bag.source, each) for each in bag.sorted())
    return formatted


def test_every_program_is_accepted() -> None:
    assert len(programs()) == PROGRAMS


def test_the_same_seed_draws_the_same_program() -> None:
    state = random.getstate()
    assert draw_program(11).text() == draw_program(11).text()
    assert random.getstate() == state, "nothing but the seed decides"
    assert draw_program(11).text() != draw_program(12).text()


def test_the_programs_use_the_whole_language() -> None:
    """A form or operation that no program has would never be verified."""
    parts = [part for each in programs() for part in each.node.expressions()]
    operations = {part.op for part in parts if isinstance(part, Call)}
    implemented = {op for op in IMPLEMENTED if not op.startswith("lookup.")}  # a program is one file without rows
    missing = implemented - operations
    assert len(missing) <= 0.01 * len(IMPLEMENTED), f"{sorted(missing)}: programs take turns to prefer each operation"
    assert {op.partition(".")[0] for op in implemented} == {op.partition(".")[0] for op in operations}
    assert set(FOR_KINDS) - {part.kind for part in parts if isinstance(part, For)} == set()
    for form in (If, Let, Logical, Array, RecordValue, Field):
        assert any(isinstance(part, form) for part in parts), form.__name__
    words = " ".join(each.source.text for each in programs())
    for word in ("??", "=>", " WITH ", " NOT IN ", " IS NOT NULL", " WHERE ", "SATISFIES", "otherwise", "input."):
        assert word in words, word
    fields = (
        "when:", "guards:", "on_error:", "return_error:", "state:", "next:", "stop_when:", "collect:", "while:",
        "over:", "condition:", "cases:", "require:", "invariants:", "capabilities_required:",
    )  # fmt: skip
    for field in fields:
        assert field in words, field
    statements = [part for each in programs() for part in all_statements(each.node.body)]
    for kind in (Branch, Loop, Request, Raise, Require):
        assert any(isinstance(part, kind) for part in statements), kind.__name__
    assert len({part.effect for part in statements if isinstance(part, Request)}) >= 8


def test_operations_are_drawn_with_many_types_at_many_positions() -> None:
    cells = {cell for each in programs() for cell in reached_cells(each.node)}
    assert len({(operation, types) for operation, types, _ in cells}) >= 700
    assert len({(operation, position) for operation, _, position in cells}) >= 1100


def test_the_ir_can_be_read_back() -> None:
    for each in programs():
        again = decode(each.ir)
        assert again == each.node
        assert encode(again) == each.ir


def test_a_second_compilation_gives_the_same_ir() -> None:
    for each in programs()[::4]:
        again, _ = compile_source(each.source, judge_contracts=False)
        assert again is not None
        assert again.ir == each.ir
        assert again.semantic_hash == each.semantic_hash == semantic_hash(again.node)


def test_layout_does_not_change_the_meaning_and_is_done_once() -> None:
    for each in programs()[::2]:
        formatted = _formatted(each.source.text)
        assert compiled_text(formatted).semantic_hash == each.semantic_hash
        assert _formatted(formatted) == formatted


def test_generated_python_is_of_known_forms_and_marks_only_observe() -> None:
    for each in programs()[:RUN]:
        plain = generate_module(each.node).text  # rejects forms that no writer should produce
        metered = generate_module(each.node, metered=True).text
        traced = generate_module(each.node, traced=True).text
        assert without_marks(traced) == without_marks(metered)
        if not counts_memory(metered):
            assert without_marks(metered) == without_marks(plain)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_accepted_program_never_causes_an_engine_fault(engine: str) -> None:
    for each in programs()[:RUN]:
        inputs = InputGenerator(each.node, seed=1, seeks_boundaries=False)
        program = ENGINES[engine].load(each)
        responses = GeneratedResponses(each)
        for number in range(10):
            drawn = inputs.draw()
            seed = str(number)
            outcome = run_with(program, drawn, responses.now(seed), responses.responder(seed)).outcome
            assert not isinstance(outcome, EngineFault), f"{outcome}\n{drawn}\n{each.source.text}"
