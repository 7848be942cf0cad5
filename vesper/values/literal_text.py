"""Scalar values from the text of a literal."""

from __future__ import annotations

import re

from vesper.values.json_value import parse_json
from vesper.values.model import MAX_INTEGER, MIN_INTEGER, ProblemKind, Scalar, ValueProblem, accept, parse_decimal
from vesper.values.numbers import finite_float
from vesper.values.types import BOOLEAN, DECIMAL, FLOAT, INTEGER, JSON, STRING, Type

_INTEGER_TEXT = re.compile(r"[+-]?0*(?P<digits>[0-9]+)", re.ASCII)
_MAX_INTEGER_DIGITS = 19


def value_from_text(type_: Type, text: str) -> Scalar:
    """Return the scalar value that a text spells, or raise `ValueProblem`.

    Command lines and nodes use the same rules.
    """
    if type_ == DECIMAL:
        return parse_decimal(text)
    if type_ == INTEGER:
        found = _INTEGER_TEXT.fullmatch(text)
        if found is None:
            raise ValueProblem(ProblemKind.MALFORMED)
        if len(found["digits"]) > _MAX_INTEGER_DIGITS or not MIN_INTEGER <= int(text) <= MAX_INTEGER:
            raise ValueProblem(ProblemKind.OUT_OF_RANGE)
        return int(text)
    if type_ == BOOLEAN:
        if text not in ("true", "false"):
            raise ValueProblem(ProblemKind.MALFORMED)
        return text == "true"
    if type_ == FLOAT:
        return finite_float(text)
    if type_ == JSON:
        return parse_json(text)
    return text if type_ == STRING else accept(type_, text)
