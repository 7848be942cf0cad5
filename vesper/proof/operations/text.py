"""Encodings of texts: equality and length; other operations are functions of which lengths are known."""

from __future__ import annotations

import z3

from vesper.proof.constants import literal
from vesper.proof.context import ABSTRACT, Context
from vesper.proof.operations.operation import Operation, encodes
from vesper.proof.symbols import Scalar, Symbolic, boolean
from vesper.proof.terms import Term, implied, integer, is_less, larger, negated
from vesper.values.model import MAX_TEXT
from vesper.values.types import INTEGER, STRING


def text_literal(context: Context, text: str) -> Scalar:
    return Scalar(STRING, literal(context, STRING, text))


def length_of(context: Context, text: Term) -> Term:
    """Return the length of a text. Only the empty text has none."""
    value = context.literal_value("text", text)
    if isinstance(value, str):
        return integer(len(value))
    found = context.apply("length of text", (text,), z3.IntSort())
    context.assume(found >= 0, found <= MAX_TEXT, (found == 0) == (text == literal(context, STRING, "")))
    return found


@encodes("text.length")
def _length(operation: Operation) -> Symbolic:
    return Scalar(INTEGER, length_of(operation.context, operation.term(0)))


@encodes("text.concat")
def _concat(operation: Operation) -> Symbolic:
    context = operation.context
    left, right = operation.term(0), operation.term(1)
    total = length_of(context, left) + length_of(context, right)
    operation.fail("too_large", is_less(integer(MAX_TEXT), total))
    found = context.apply(f"{ABSTRACT}text.concat", (left, right), context.sort("text"))
    context.assume(implied(total <= MAX_TEXT, length_of(context, found) == total))
    return Scalar(STRING, found)


def _abstract_text(operation: Operation) -> Scalar:
    found = operation.abstract()
    assert isinstance(found, Scalar)
    return found


@encodes("text.trim", "text.trim_start", "text.trim_end")
def _shorter(operation: Operation) -> Symbolic:
    found = _abstract_text(operation)
    context = operation.context
    context.assume(length_of(context, found.term) <= length_of(context, operation.term(0)))
    return found


@encodes("text.reverse")
def _reverse(operation: Operation) -> Symbolic:
    found = _abstract_text(operation)
    context = operation.context
    context.assume(length_of(context, found.term) == length_of(context, operation.term(0)))
    return found


@encodes("text.at")
def _at(operation: Operation) -> Symbolic:
    context, index = operation.context, operation.term(1)
    length = length_of(context, operation.term(0))
    operation.fail("index_out_of_range", z3.Or(index < 0, index >= length))
    found = context.apply(f"{ABSTRACT}text.at", (operation.term(0), index), context.sort("text"))
    context.assume(length_of(context, found) == 1)
    return Scalar(STRING, found)


@encodes("text.starts_with", "text.ends_with", "text.contains")
def _contains(operation: Operation) -> Symbolic:
    found = operation.abstract()
    assert isinstance(found, Scalar)
    context = operation.context
    whole, part = length_of(context, operation.term(0)), length_of(context, operation.term(1))
    context.assume(implied(found.term, part <= whole), implied(part == 0, found.term))
    return boolean(found.term)


@encodes("text.pad_start", "text.pad_end")
def _pad(operation: Operation) -> Symbolic:
    found = _abstract_text(operation)
    context = operation.context
    # One code point fills.
    padded = larger(length_of(context, operation.term(0)), operation.term(1))
    operation.know(length_of(context, found.term) == padded)
    return found


@encodes("text.index_of")
def _index_of(operation: Operation) -> Symbolic:
    from vesper.proof.symbols import OptionalTerm

    found = operation.abstract()
    assert isinstance(found, OptionalTerm)
    assert isinstance(found.value, Scalar)
    context, place = operation.context, found.value.term
    room = length_of(context, operation.term(0)) - length_of(context, operation.term(1))
    context.assume(implied(negated(found.is_null), z3.And(place >= 0, place <= room)))
    return found
