"""Evaluation of expressions to symbolic values, under the condition that the execution gets there.

`alive` is that condition. An operation that may fail adds a failure and goes on where it did not fail, so that every
expression is evaluated once, whatever the number of ways to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

import z3

from vesper.kernels.raised import Raised
from vesper.language.ir import nodes as ir
from vesper.proof.bounds import MAX_DEPTH, NotEncodable, TooDeep
from vesper.proof.constants import NoValue, Reading, constant
from vesper.proof.context import ABSTRACT, Context
from vesper.proof.operations import FAMILIES
from vesper.proof.operations.operation import ENCODINGS, Operation
from vesper.proof.symbols import RecordTerm, Scalar, Symbolic, boolean, components, fixed_array, merge, symbol
from vesper.proof.terms import FALSE, TRUE, Term, both, either, integer, negated
from vesper.values.generated.operations import OPERATIONS
from vesper.values.model import Value
from vesper.values.types import ArrayOf, Type, type_text
from vesper.verify.solve.evaluation import Evaluator as Kernels
from vesper.verify.solve.evaluation import Scope as KernelScope

if TYPE_CHECKING:
    from vesper.proof.run import Recorder

_T = TypeVar("_T")
for _family in FAMILIES:  # each registers its encodings
    import_module(f"vesper.proof.operations.{_family}")
MAX_FOLDED_ITEMS = 200


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure: when it happens, its code, and the expression."""

    guard: Term
    code: Term
    index: int


@dataclass(slots=True)
class Names:
    """Values of the names that an expression can read."""

    refs: dict[tuple[str, str], Symbolic]
    """By kind and name: inputs, constants, steps, outputs and errors."""
    locals: dict[int, Symbolic] = field(default_factory=dict)
    result: Symbolic | None = None
    """Completion of the request or call that is evaluated."""

    def copy(self) -> Names:
        return Names(dict(self.refs), dict(self.locals), self.result)


class Evaluator:
    """Evaluates the expressions of one node."""

    def __init__(self, context: Context, node: ir.Node, now: Symbolic, names: Names, recorder: Recorder | None) -> None:
        self.context = context
        self.node = node
        self.now = now
        self.names = names
        self.recorder = recorder
        self.alive: Term = TRUE
        self.failures: list[Failure] = []
        self.abandoned: Term = FALSE
        """Where a bound of exploration was left."""
        self.nesting = 0
        """Number of `for` around the expression."""
        self._depth = 0
        self._kernels = Kernels(node)
        self._constants = {each.name: each for each in node.constants}

    def inner(self, names: Names, recorder: Recorder | None = None) -> Evaluator:
        """Return an evaluator of other names that begins anew, to evaluate a part at another place."""
        found = Evaluator.__new__(Evaluator)
        found.context, found.node, found.now = self.context, self.node, self.now
        found.names, found.recorder = names, recorder
        found.alive, found.failures, found.abandoned = TRUE, [], FALSE
        found._depth, found._kernels, found._constants = self._depth, self._kernels, self._constants
        found.nesting = self.nesting + 1
        return found

    # -- where the execution is --------------------------------------------------------------------

    def fail(self, index: int, code: str, condition: Term, text: str = "") -> None:
        """Add a failure under a condition; the evaluation goes on where it does not hold."""
        if self.recorder is not None:
            self.recorder.operation(index, code, self.alive, condition, text)
        if z3.is_false(condition):
            return
        guard = both(self.alive, condition)
        if not z3.is_false(guard):
            self.failures.append(Failure(guard, integer(self.context.code(code)), index))
            self.alive = both(self.alive, negated(condition))

    def leave_bounds(self, condition: Term) -> None:
        """Give up where a condition holds: more items or rounds than are explored."""
        if z3.is_false(condition):
            return
        self.context.is_bounded = True
        self.abandoned = either(self.abandoned, both(self.alive, condition))
        self.alive = both(self.alive, negated(condition))

    def where(self, condition: Term, evaluate: Callable[[], _T]) -> _T:
        """Evaluate something where a condition holds; the execution goes on where it did not, too."""
        before = self.alive
        self.alive = both(before, condition)
        entered = self.alive
        found = evaluate()
        if self.alive.eq(entered):
            self.alive = before
        else:
            self.alive = either(self.alive, both(before, negated(condition)))
        return found

    def condition(self, index: int, term: Term) -> None:
        """Record a condition that decides which way an execution takes."""
        if self.recorder is not None:
            self.recorder.condition(index, self.alive, term)

    def note(self, index: int, why: str) -> None:
        if self.recorder is not None:
            self.recorder.approximation(index, why)

    # -- expressions -------------------------------------------------------------------------------

    def truth(self, expression: ir.Expression) -> Term:
        """Return the term of a boolean expression."""
        found = self.value(expression)
        assert isinstance(found, Scalar)
        return found.term

    def value(self, expression: ir.Expression) -> Symbolic:
        """Return the value of an expression."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TooDeep(f"expressions nest deeper than {MAX_DEPTH}")
        try:
            return self._value(expression)
        finally:
            self._depth -= 1

    def _value(self, expression: ir.Expression) -> Symbolic:
        match expression:
            case ir.Literal(type=type_, value=value):
                return self._constant(type_, value)
            case ir.Ref(kind=kind, name=name):
                return self._ref(expression, kind, name)
            case ir.Call():
                return self._call(expression)
            case ir.If():
                return self._if(expression)
            case ir.Logical():
                return self._logical(expression)
            case ir.Local(number=number):
                return self.names.locals[number]
            case ir.Let(local=local, value=value_, body=body):
                self.names.locals[local] = self.value(value_)
                return self.value(body)
            case ir.For():
                from vesper.proof.comprehensions import evaluate_for

                return evaluate_for(self, expression)
            case ir.Array(items=items, of=of):
                return fixed_array(self.context, ArrayOf(of), [self.value(each) for each in items])
            case ir.RecordValue(fields=fields):
                values = {name: self.value(each) for name, each in fields}
                type_ = expression.type
                assert not isinstance(type_, ArrayOf)
                return RecordTerm(type_, values)  # type: ignore[arg-type]
            case ir.Field(of=of_, name=name):
                record = self.value(of_)
                assert isinstance(record, RecordTerm)
                return record.fields[name]
            case ir.Apply():
                from vesper.proof.functions import evaluate_apply

                return evaluate_apply(self, expression)
            case ir.Now():
                return self.now
            case ir.Result():
                assert self.names.result is not None
                return self.names.result

    def _constant(self, type_: Type, value: Value) -> Symbolic:
        return constant(self.context, type_, value)

    def _ref(self, ref: ir.Ref, kind: str, name: str) -> Symbolic:
        if kind == "constant":
            found = self.names.refs.get(("constant", name))
            if found is None:
                declared = self._constants[name]
                found = self.names.refs["constant", name] = self._constant(declared.type, declared.value)
            return found
        known = self.names.refs.get((kind, name))
        if known is None:
            raise NotEncodable(f"the {kind} {name} has no value at expression {ref.index}")
        return known

    def _if(self, choice: ir.If) -> Symbolic:
        condition = self.truth(choice.condition)
        self.condition(choice.condition.index, condition)
        if z3.is_true(condition) or z3.is_false(condition):
            if self.recorder is not None:  # the other way is recorded as one that is never taken
                other = choice.otherwise if z3.is_true(condition) else choice.then
                self.where(FALSE, lambda: self.value(other))
            return self.value(choice.then if z3.is_true(condition) else choice.otherwise)
        before = self.alive
        self.alive = entered = both(before, condition)
        then = self.value(choice.then)
        after_then, then_is_whole = self.alive, self.alive.eq(entered)
        self.alive = other_entered = both(before, negated(condition))
        otherwise = self.value(choice.otherwise)
        if then_is_whole and self.alive.eq(other_entered):
            self.alive = before
        else:
            self.alive = either(after_then, self.alive)
        return merge(self.context, condition, then, otherwise)

    def _logical(self, logical: ir.Logical) -> Symbolic:
        left = self.truth(logical.left)
        is_and = logical.kind == "and"
        right = self.where(left if is_and else negated(left), lambda: self.truth(logical.right))
        return boolean(both(left, right) if is_and else either(left, right))

    # -- operations --------------------------------------------------------------------------------

    def _call(self, call: ir.Call) -> Symbolic:
        operation = Operation(self, call, tuple([self.value(each) for each in call.args]))
        folded = self._folded(operation)
        if folded is not None:
            return folded
        encoding = ENCODINGS.get(call.op)
        found = None if encoding is None else encoding(operation)
        return self.abstract(operation) if found is None else found

    def _folded(self, operation: Operation) -> Symbolic | None:
        """Return the result of constant operands, which the kernel computes."""
        call = operation.call
        if call.op == "optional.unwrap":
            return None
        reading = Reading(self.context)
        try:
            values = [reading.value(each) for each in operation.args]
        except NoValue:
            return None
        if any(isinstance(each, list | dict | frozenset) and len(each) > MAX_FOLDED_ITEMS for each in values):
            return None
        literals = tuple(ir.Literal(arg.type, value, arg.place) for arg, value in zip(call.args, values, strict=True))
        concrete = ir.Call(call.op, call.of, literals, call.type, call.place)
        try:
            value = self._kernels.value(concrete, KernelScope({}))
        except Raised as failure:
            self.fail(call.index, failure.code, TRUE, call.op)
            return symbol(self.context, call.type, "no result")
        except (ArithmeticError, TypeError, ValueError, LookupError, AttributeError, MemoryError):
            return None  # a kernel that needs more than its operands
        for code in OPERATIONS[call.op].raises:
            if self.recorder is not None:
                self.recorder.operation(call.index, code, self.alive, FALSE, call.op)
        return constant(self.context, call.type, value)

    def abstract(self, operation: Operation) -> Symbolic:
        """Return the result as an uninterpreted function of the operands, with its failures."""
        call, context = operation.call, self.context
        self.note(call.index, f"{call.op} is a function without an encoding")
        of = ", ".join(type_text(each, has_outside=False) for each in call.of)
        name = f"{ABSTRACT}{call.op}<{of}>" if of else f"{ABSTRACT}{call.op}"
        operands = [term for each in operation.args for term in components(context, each)]
        for code in OPERATIONS[call.op].raises:
            failed = context.apply(f"{name} fails {code}", operands, z3.BoolSort())
            operation.failed.append(failed)
            self.fail(call.index, code, failed, call.op)
        return symbol(context, call.type, name, operands)


def names_of_kind(kind: str, values: Mapping[str, Symbolic]) -> dict[tuple[str, str], Symbolic]:
    return {(kind, name): value for name, value in values.items()}
