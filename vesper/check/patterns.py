"""Patterns where a node writes them: one that is none is reported with the caret inside it."""

from __future__ import annotations

from collections.abc import Callable

from vesper.diagnostics.codes import Code
from vesper.diagnostics.diagnostic import DiagnosticBag
from vesper.diagnostics.source import Span
from vesper.spec.pattern import PatternProblem
from vesper.spec.pattern_parser import parse_pattern
from vesper.syntax.scalar_text import place_text
from vesper.syntax.yaml_tree import Scalar


def is_pattern(text: str, part: Callable[[int, int], Span], bag: DiagnosticBag) -> bool:
    """Whether the text is a pattern; `part` says where in the file its code points stand."""
    try:
        parse_pattern(text)
    except PatternProblem as problem:
        bag.error(Code.BAD_PATTERN, part(problem.start, problem.end), problem=problem.problem)
        return False
    return True


def is_scalar_pattern(scalar: Scalar, bag: DiagnosticBag) -> bool:
    """The same for a pattern that is a value of its own in the YAML."""
    placed = place_text(bag.source, scalar)
    if placed.text == scalar.text:
        return is_pattern(scalar.text, placed.span, bag)
    # A text over several lines, which YAML has joined: its characters are not those of the file.
    return is_pattern(scalar.text, lambda _start, _end: scalar.span, bag)
