"""Patterns where a node writes them: one that is none is reported with the caret inside it."""

from __future__ import annotations

from collections.abc import Callable

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import Span
from vesper.language.syntax.scalar_text import place_text
from vesper.language.syntax.yaml_tree import Scalar
from vesper.values.pattern import PatternProblem
from vesper.values.pattern_parser import parse_pattern


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
