"""Literals by declared type, from their source text: `0.10` for a decimal is exactly 0.10, `NO` for a string is
"NO"."""

from __future__ import annotations

import re

from vesper.diagnostics.codes import Code
from vesper.diagnostics.diagnostic import DiagnosticBag
from vesper.diagnostics.suggest import did_you_mean
from vesper.spec.types import BOOLEAN, DECIMAL, INTEGER, Enum, SetOf, Type
from vesper.spec.values import (
    MAX_INTEGER,
    MIN_INTEGER,
    ProblemKind,
    Value,
    ValueProblem,
    parse_decimal,
)
from vesper.spec.values import (
    Scalar as ScalarValue,
)
from vesper.syntax.fields import expect_scalar, expect_sequence
from vesper.syntax.yaml_tree import Tree

MAX_TEXT = 64 * 1024
_INTEGER_TEXT = re.compile(r"[+-]?[0-9]{1,20}", re.ASCII)


def value_from_text(type_: Type, text: str) -> Value:
    """The value of a scalar type that this text spells, or a `ValueProblem`. Command lines and nodes read alike."""
    if type_ == DECIMAL:
        return parse_decimal(text)
    if type_ == INTEGER:
        if not _INTEGER_TEXT.fullmatch(text):
            raise ValueProblem(ProblemKind.MALFORMED)
        if not MIN_INTEGER <= int(text) <= MAX_INTEGER:
            raise ValueProblem(ProblemKind.OUT_OF_RANGE)
        return int(text)
    if type_ == BOOLEAN:
        if text not in ("true", "false"):
            raise ValueProblem(ProblemKind.MALFORMED)
        return text == "true"
    if isinstance(type_, Enum) and text not in type_.members:
        raise ValueProblem(ProblemKind.NOT_A_MEMBER)
    return text


def read_literal(type_: Type, tree: Tree, key: str, bag: DiagnosticBag) -> Value | None:
    """The value that stands in a literal slot, or None after reporting why there is none."""
    if isinstance(type_, SetOf):
        return _read_set(type_, tree, key, bag)
    scalar = expect_scalar(tree, key, bag)
    if scalar is None:
        return None
    if len(scalar.text) > MAX_TEXT // 4 and len(scalar.text.encode("utf-8")) > MAX_TEXT:
        bag.error(Code.TOO_LARGE, scalar.span, limit=f"{MAX_TEXT:,}", what="bytes in one literal")
        return None
    try:
        return value_from_text(type_, scalar.text)
    except ValueProblem as problem:
        if problem.kind is ProblemKind.NOT_A_MEMBER and isinstance(type_, Enum):
            help_ = did_you_mean(scalar.text, type_.members)
            bag.error(Code.NOT_A_MEMBER, scalar.span, name=scalar.text, type=type_, help=help_)
        else:
            bag.error(Code.BAD_LITERAL, scalar.span, text=scalar.text, expected=f"a value of type {type_}")
        return None


def _read_set(type_: SetOf, tree: Tree, key: str, bag: DiagnosticBag) -> Value | None:
    sequence = expect_sequence(tree, key, bag)
    if sequence is None:
        return None
    members: set[ScalarValue] = set()
    for item in sequence.items:
        member = read_literal(type_.element, item, key, bag)
        if member is None or isinstance(member, frozenset):  # the latter was refused as a type
            continue
        if member in members:
            bag.error(Code.BAD_LITERAL, item.span, text=member, expected="a new member: the set has it already")
        members.add(member)
    return frozenset(members)
