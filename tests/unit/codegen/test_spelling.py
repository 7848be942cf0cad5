"""Inline operators against the kernels they stand for, and the two proofs that let code leave a check out."""

from __future__ import annotations

import importlib
import inspect
import operator
from collections.abc import Callable
from datetime import UTC
from decimal import Decimal, localcontext
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vesper.codegen.negative_zero import may_be_negative_zero
from vesper.codegen.ranges import cannot_overflow, integer_range
from vesper.codegen.spelling import (
    BY_ORDER,
    BY_TYPE,
    CHECKED,
    EQUALITIES,
    SPELLINGS,
    Function,
    Infix,
    IsNone,
    Item,
    Itself,
    Prefix,
)
from vesper.kernels.decimal import EXACT, PYTHON_FAILURES, unsigned_zero
from vesper.kernels.integer import checked
from vesper.kernels.raised import Raised
from vesper.language.ir import nodes as ir
from vesper.values.generated.operations import IMPLEMENTED, OPERATIONS
from vesper.values.json_value import parse_json
from vesper.values.model import MAX_INTEGER, MIN_INTEGER, same
from vesper.values.times import MAX_DURATION
from vesper.values.types import BOOLEAN, DECIMAL, INTEGER

HERE = ir.Place(1, 1, 1, 1)
INTEGERS = st.integers(MIN_INTEGER, MAX_INTEGER) | st.sampled_from([MIN_INTEGER, -1, 0, 1, MAX_INTEGER])
DECIMALS = st.builds(
    lambda digits, places: Decimal(digits).scaleb(-places), st.integers(-(10**20), 10**20), st.integers(0, 30)
)
EDGE_DECIMALS = DECIMALS | st.sampled_from([Decimal(t) for t in ("0", "0.00", "-1", "9" * 1000, "1E-1000", "1E-600")])
STRATEGIES: dict[str, st.SearchStrategy[Any]] = {
    "integer": INTEGERS,
    "decimal": EDGE_DECIMALS,
    "string": st.text(max_size=3),
    "boolean": st.booleans(),
    "date": st.dates(),
    "timestamp": st.datetimes(timezones=st.just(UTC)),
    "duration": st.timedeltas(-MAX_DURATION, MAX_DURATION),
    "float": st.floats(),
    "bytes": st.binary(max_size=3),
    "json": st.sampled_from(["1", "1.0", "true", "null", "[1]", '{"a":1,"b":2}', '{"b":2,"a":1.0}']).map(parse_json),
    "E": st.sampled_from(["red", "green"]),
    "T": st.sampled_from(["a", "b"]),
    "set<T>": st.frozensets(st.sampled_from(["a", "b", "c"])),
    "array<T>": st.lists(st.sampled_from(["a", "b", "c"])),
    "K": st.sampled_from(["a", "b"]),
    "R": st.fixed_dictionaries({"qty": st.integers(0, 1), "price": st.sampled_from([Decimal("1.0"), Decimal("1.00")])}),
    "map<K, V>": st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers()),
    "optional<T>": st.none() | st.sampled_from(["a", "b"]),
}


def kernel(op: str) -> Callable[..., Any]:
    family, _, verb = op.partition(".")
    module = importlib.import_module(f"vesper.kernels.{family}")
    found = getattr(module, verb if hasattr(module, verb) else f"{verb}_")
    assert callable(found)
    return found  # type: ignore[no-any-return]  # callable, as asserted


def inline(op: str) -> Callable[..., Any]:
    names = [name for name, _ in OPERATIONS[op].params]
    match {**SPELLINGS, **EQUALITIES}[op]:
        case Infix(sign):
            text = f"{names[0]} {sign} {names[1]}"
        case Prefix(sign):
            text = f"{sign} {names[0]}"
        case Itself():
            text = names[0]
        case Item():
            text = f"{names[0]}[{names[1]}]"
        case IsNone(is_negated):
            text = f"{names[0]} is {'not ' if is_negated else ''}None"
        case Function(name):
            text = f"{name}({names[0]})"
        case unknown:
            raise AssertionError(unknown)
    if op in CHECKED:
        text = f"checked({text})"
    return eval(f"lambda {', '.join(names)}: {text}", {"checked": checked, "Decimal": Decimal, "len": len})  # type: ignore[no-any-return]


def outcome(function: Callable[..., Any], arguments: list[Any]) -> object:
    with localcontext(EXACT):
        try:
            result = function(*arguments)
        except (Raised, *PYTHON_FAILURES):
            return "fails"
    return unsigned_zero(result) if isinstance(result, Decimal) else result


@pytest.mark.parametrize("op", IMPLEMENTED)
def test_every_operation_has_a_kernel_with_its_parameters(op: str) -> None:
    signature = inspect.signature(kernel(op))
    declared = ["declared"] if op in BY_ORDER else ["of"] if op in BY_TYPE else []
    assert list(signature.parameters) == [name for name, _ in OPERATIONS[op].params] + declared


@pytest.mark.parametrize("op", [*SPELLINGS, *EQUALITIES])
@given(data=st.data())
def test_inline_is_the_kernel(op: str, data: st.DataObject) -> None:
    arguments = [data.draw(STRATEGIES[pattern]) for _, pattern in OPERATIONS[op].params]
    assume(op != "optional.unwrap" or arguments[0] is not None)  # the checker rules the other out
    ours, theirs = outcome(inline(op), arguments), outcome(kernel(op), arguments)
    assert same(ours, theirs), f"{op}{arguments}: inline {ours}, kernel {theirs}"


# -- ranges ---------------------------------------------------------------------------------------


def literal(value: int | Decimal) -> ir.Literal:
    return ir.Literal(DECIMAL if isinstance(value, Decimal) else INTEGER, value, HERE)


def integer_call(op: str, *args: ir.Expression) -> ir.Call:
    return ir.Call(op, (), args, INTEGER, HERE)


def clamp_call(value: ir.Expression, one: ir.Expression, other: ir.Expression) -> ir.Call:
    """Between bounds that are always the right way round."""
    bounds = (integer_call("value.min", one, other), integer_call("value.max", one, other))
    return integer_call("value.clamp", value, *bounds)


integer_trees = st.recursive(
    INTEGERS.map(literal),
    lambda inner: st.one_of(
        st.builds(integer_call, st.sampled_from(["integer.add", "integer.subtract", "integer.multiply"]), inner, inner),
        st.builds(integer_call, st.sampled_from(["integer.negate", "integer.sign", "integer.bit_count"]), inner),
        st.builds(integer_call, st.sampled_from(["value.min", "value.max"]), inner, inner),
        st.builds(clamp_call, inner, inner, inner),
        st.builds(lambda a, b: ir.If(ir.Literal(BOOLEAN, True, HERE), a, b, INTEGER, HERE), inner, inner),
    ),
    max_leaves=6,
)


EXACT_INTEGERS: dict[str, Callable[..., Any]] = {
    "integer.add": operator.add,
    "integer.subtract": operator.sub,
    "integer.multiply": operator.mul,
    "integer.negate": operator.neg,
}


def exact_value(expression: ir.Expression) -> int:
    """The value with Python's unbounded integers; every `if` takes its first branch."""
    match expression:
        case ir.Literal(value=int(value)):
            return value
        case ir.If(then=then):
            return exact_value(then)
        case ir.Call(op=op, args=args):
            values = [exact_value(each) for each in args]
            exactly = EXACT_INTEGERS[op] if op in CHECKED else kernel(op)
            return exactly(*values)  # type: ignore[no-any-return]  # an integer
        case _:
            raise AssertionError(expression)


def fails_inside(expression: ir.Expression) -> bool:
    return any(
        isinstance(part, ir.Call) and not MIN_INTEGER <= exact_value(part) <= MAX_INTEGER
        for part in ir.walk(expression)
        if part is not expression
    )


@given(integer_trees)
def test_a_check_is_left_out_only_where_it_cannot_fail(tree: ir.Expression) -> None:
    if fails_inside(tree):
        return
    value = exact_value(tree)
    if isinstance(tree, ir.Call) and cannot_overflow(tree):
        assert MIN_INTEGER <= value <= MAX_INTEGER
    if MIN_INTEGER <= value <= MAX_INTEGER:
        low, high = integer_range(tree)
        assert low <= value <= high


def test_the_sum_of_small_alternatives_needs_no_check() -> None:
    small = ir.If(ir.Literal(BOOLEAN, True, HERE), literal(30), literal(0), INTEGER, HERE)
    assert cannot_overflow(integer_call("integer.add", small, small))
    assert not cannot_overflow(integer_call("integer.add", ir.Ref("input", "n", INTEGER, HERE), literal(1)))


# -- negative zero --------------------------------------------------------------------------------

SMALL = st.sampled_from([Decimal(text) for text in ("0", "0.0", "1", "-1", "0.5", "-0.5", "2")])
decimal_trees = st.recursive(
    SMALL.map(literal) | SMALL.map(lambda value: ir.Ref("input", str(value), DECIMAL, HERE)),
    lambda inner: st.one_of(
        st.builds(
            lambda op, a, b: ir.Call(op, (), (a, b), DECIMAL, HERE),
            st.sampled_from(["decimal.add", "decimal.subtract", "decimal.multiply"]),
            inner,
            inner,
        ),
        st.builds(lambda a: ir.Call("decimal.negate", (), (a,), DECIMAL, HERE), inner),
    ),
    max_leaves=6,
)


def python_value(expression: ir.Expression) -> Decimal:
    """What the bare operators of generated code give."""
    match expression:
        case ir.Literal(value=Decimal() as value):
            return value
        case ir.Ref(name=name):
            return Decimal(name)
        case ir.Call(op=op, args=args):
            a, *rest = (python_value(each) for each in args)
            b = rest[0] if rest else Decimal(0)
            return {"add": a + b, "subtract": a - b, "multiply": a * b, "negate": -a}[op.partition(".")[2]]
        case _:
            raise AssertionError(expression)


@given(decimal_trees)
def test_a_negative_zero_is_always_foreseen(tree: ir.Expression) -> None:
    with localcontext(EXACT):
        value = python_value(tree)
    if value == 0 and value.is_signed():
        assert may_be_negative_zero(tree)
