"""Check of patterns in a node. A diagnostic marks the faulty part of the pattern."""

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
    """Return whether the text is a valid pattern. `part` maps its code points to a span of the file."""
    try:
        parse_pattern(text)
    except PatternProblem as problem:
        bag.error(Code.BAD_PATTERN, part(problem.start, problem.end), problem=problem.problem)
        return False
    return True


def is_scalar_pattern(scalar: Scalar, bag: DiagnosticBag) -> bool:
    """Return whether a YAML scalar is a valid pattern."""
    placed = place_text(bag.source, scalar)
    if placed.text == scalar.text:
        return is_pattern(scalar.text, placed.span, bag)
    # YAML joined a text of several lines, so its characters have no exact position in the file.
    return is_pattern(scalar.text, lambda _start, _end: scalar.span, bag)
