"""A call of an operation as its encoding sees it, and the table of encodings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from vesper.language.ir.nodes import Call
from vesper.proof.context import Context
from vesper.proof.symbols import (
    RANGES,
    ArrayTerm,
    DecimalTerm,
    MapTerm,
    OptionalTerm,
    Scalar,
    SetTerm,
    Symbolic,
)
from vesper.proof.terms import Term, either, is_number

if TYPE_CHECKING:
    from vesper.proof.evaluation import Evaluator


@dataclass(slots=True)
class Operation:
    """One evaluated call: its operands, and the evaluator that receives its failures."""

    evaluator: Evaluator
    call: Call
    args: tuple[Symbolic, ...]
    failed: list[Term] = field(default_factory=list)
    """Conditions of the failures of `abstract`."""

    @property
    def context(self) -> Context:
        return self.evaluator.context

    def term(self, at: int) -> Term:
        """Return the term of a scalar operand."""
        found = self.args[at]
        assert isinstance(found, Scalar)
        return found.term

    def decimal(self, at: int) -> DecimalTerm:
        found = self.args[at]
        assert isinstance(found, DecimalTerm)
        return found

    def optional(self, at: int) -> OptionalTerm:
        found = self.args[at]
        assert isinstance(found, OptionalTerm)
        return found

    def array(self, at: int) -> ArrayTerm:
        found = self.args[at]
        assert isinstance(found, ArrayTerm)
        return found

    def set(self, at: int) -> SetTerm:
        found = self.args[at]
        assert isinstance(found, SetTerm)
        return found

    def map(self, at: int) -> MapTerm:
        found = self.args[at]
        assert isinstance(found, MapTerm)
        return found

    def fail(self, code: str, condition: Term) -> None:
        """Add a failure of the operation under a condition."""
        self.evaluator.fail(self.call.index, code, condition, self.call.op)

    def scalar(self, term: Term) -> Scalar:
        return Scalar(self.call.type, term)

    def ranged(self, term: Term, code: str) -> Scalar:
        """Return an integer result that fails outside of the range of its type."""
        low, high = RANGES[self.call.type]
        self.fail(code, either(term < low, term > high) if not is_number(term) else _outside(term, low, high))
        return Scalar(self.call.type, term)

    def abstract(self) -> Symbolic:
        """Return the result as an uninterpreted function of the operands, with its failures."""
        return self.evaluator.abstract(self)

    def abstract_scalar(self) -> Scalar:
        found = self.abstract()
        assert isinstance(found, Scalar)
        return found

    def know(self, *facts: Term) -> None:
        """Add facts about an abstract result, which hold where the operation does not fail."""
        failed = either(*self.failed)
        self.context.assume(*(either(failed, fact) for fact in facts))


def _outside(term: Term, low: int, high: int) -> Term:
    from vesper.proof.terms import truth, whole

    return truth(not low <= whole(term) <= high)


Encoding: TypeAlias = "Callable[[Operation], Symbolic | None]"
"""Returns None where these operands have no encoding."""
ENCODINGS: dict[str, Encoding] = {}


def encodes(*names: str) -> Callable[[Encoding], Encoding]:
    """Register an encoding under the names of operations."""

    def register(encoding: Encoding) -> Encoding:
        for name in names:
            ENCODINGS[name] = encoding
        return encoding

    return register
