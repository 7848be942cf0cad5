"""A symbolic run of a node: how it can end, what it checks, and which ways it can take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import z3

from vesper.language.ir import nodes as ir
from vesper.language.ir.failures import can_become_declared
from vesper.proof.bounds import NotEncodable, TooDeep
from vesper.proof.context import Context
from vesper.proof.equality import same
from vesper.proof.evaluation import Evaluator, Failure, Names, names_of_kind
from vesper.proof.inputs import SymbolicInputs
from vesper.proof.operations.text import text_literal
from vesper.proof.statements import Execution, RawEnding, SymbolicRequest
from vesper.proof.symbols import OptionalTerm, Scalar, Symbolic, default, merge
from vesper.proof.terms import FALSE, TRUE, Term, both, choose, either, integer, is_same, negated
from vesper.values.types import STRING, Enum, OptionalOf, Type

RETURNED = "returned"
DECLARED_ERROR = "declared_error"
FAILED = "failed"
CONTRACT_BROKEN = "contract_broken"
ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True)
class Ending:
    """One way in which a run ends; the guards of all ways exclude each other."""

    guard: Term
    kind: str
    values: dict[str, Symbolic] = field(default_factory=dict)
    code: Term | None = None
    phase: str | None = None
    index: int | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A clause, or one failure code of an operation."""

    kind: str
    index: int
    phase: str | None
    clause: int | None
    code: str | None
    reached: Term
    fails: Term
    """Where the clause is broken or the operation fails; implies `reached`."""
    text: str
    is_exact: bool


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that decides a way: where it is evaluated, where it holds, and where it does not."""

    index: int
    reached: Term
    holds: Term
    declines: Term
    term: Term | None = None
    """Its value, also where it is not evaluated; None if it is evaluated more than once."""


@dataclass(frozen=True, slots=True)
class Approximation:
    index: int
    why: str


@dataclass(slots=True)
class Recorder:
    """Collects the checks and conditions of a run, each expression once however often it is evaluated."""

    context: Context
    approximations: list[Approximation] = field(default_factory=list)
    _checks: dict[tuple[int, str | None], tuple[list[Term], list[Term], str, str | None, int | None]] = field(
        default_factory=dict
    )
    _conditions: dict[int, tuple[list[Term], list[Term], list[Term], list[Term]]] = field(default_factory=dict)

    def operation(self, index: int, code: str, reached: Term, fails: Term, text: str) -> None:
        found = self._checks.setdefault((index, code), ([], [], text, None, None))
        found[0].append(reached)
        found[1].append(both(reached, fails))

    def clause(self, clause: ir.Clause, phase: str, number: int, reached: Term, fails: Term) -> None:
        found = self._checks.setdefault((clause.holds.index, None), ([], [], clause.text, phase, number))
        found[0].append(reached)
        found[1].append(both(reached, fails))

    def condition(self, index: int, reached: Term, term: Term) -> None:
        found = self._conditions.setdefault(index, ([], [], [], []))
        found[0].append(reached)
        found[1].append(both(reached, term))
        found[2].append(both(reached, negated(term)))
        found[3].append(term)

    def approximation(self, index: int, why: str) -> None:
        found = Approximation(index, why)
        if found not in self.approximations:
            self.approximations.append(found)

    def checks(self) -> list[Check]:
        found = []
        for (index, code), (reached, fails, text, phase, clause) in sorted(
            self._checks.items(), key=lambda each: (each[0][0], each[0][1] or "")
        ):
            kind = "operation" if phase is None else "clause"
            where, breaks = either(*reached), either(*fails)
            is_exact = self.context.is_exact(breaks)
            found.append(Check(kind, index, phase, clause, code, where, breaks, text, is_exact))
        return found

    def conditions(self) -> list[Condition]:
        return [
            Condition(index, either(*reached), either(*holds), either(*declines), terms[0] if len(terms) == 1 else None)
            for index, (reached, holds, declines, terms) in sorted(self._conditions.items())
        ]


@dataclass(frozen=True, slots=True)
class SymbolicRun:
    """All that a node does for the symbolic inputs."""

    node: ir.Node
    endings: list[Ending]
    checks: list[Check]
    conditions: list[Condition]
    requests: list[SymbolicRequest]
    approximations: list[Approximation]
    bounded: bool
    """Whether only some inputs were explored: nothing is proven by it."""

    @property
    def is_exact(self) -> bool:
        """Whether every model is a real input."""
        return not self.approximations


def run_symbolically(node: ir.Node, inputs: SymbolicInputs) -> SymbolicRun:
    """Evaluate a node for all of its inputs. Raises `NotEncodable` where it cannot."""
    try:
        return _Run(node, inputs).run()
    except RecursionError:
        raise TooDeep("terms nest deeper than Python's stack") from None
    except z3.Z3Exception as problem:
        raise NotEncodable(f"the solver refuses a term: {problem}") from problem


class _Run:
    def __init__(self, node: ir.Node, inputs: SymbolicInputs) -> None:
        self._node = node
        self._context = inputs.context
        self._recorder = Recorder(inputs.context)
        names = Names(names_of_kind("input", inputs.of(node)))
        self._evaluator = Evaluator(inputs.context, node, inputs.now, names, self._recorder)
        self._endings: list[Ending] = []

    def run(self) -> SymbolicRun:
        evaluator, node = self._evaluator, self._node
        self._clauses("constraint", node.constraints)
        self._clauses("precondition", node.preconditions)
        self._failed(evaluator.failures)
        evaluator.failures = []
        execution = Execution(evaluator)
        execution.block(node.body)
        for guard, number in execution.broken:
            self._add(guard, CONTRACT_BROKEN, phase="validation", index=number)
        declared = self._declared(evaluator.failures)
        evaluator.failures = []
        self._finish(execution.returns, [*execution.raises, *declared])
        if not z3.is_false(evaluator.abandoned):
            self._add(evaluator.abandoned, ABANDONED)
        return SymbolicRun(
            node,
            self._endings,
            self._recorder.checks(),
            self._recorder.conditions(),
            execution.requests,
            self._recorder.approximations,
            self._context.is_bounded,
        )

    def _add(self, guard: Term, kind: str, **more: object) -> None:
        if not z3.is_false(guard):
            self._endings.append(Ending(guard, kind, **more))  # type: ignore[arg-type]

    def _failed(self, failures: Sequence[Failure]) -> None:
        for each in failures:
            self._add(each.guard, FAILED, code=each.code, index=each.index)

    def _clauses(self, phase: str, clauses: tuple[ir.Clause, ...]) -> None:
        evaluator = self._evaluator
        for number, clause in enumerate(clauses):
            holds = evaluator.truth(clause.holds)
            self._recorder.clause(clause, phase, number, evaluator.alive, negated(holds))
            self._add(both(evaluator.alive, negated(holds)), CONTRACT_BROKEN, phase=phase, index=number)
            evaluator.alive = both(evaluator.alive, holds)

    def _declared(self, failures: Sequence[Failure]) -> list[RawEnding]:
        """Return the failures of the body that become declared errors; the others are failures."""
        node, context = self._node, self._context
        error_code = node.errors[0].type if node.errors else None
        if not can_become_declared(node) or not isinstance(error_code, Enum):
            self._failed(failures)
            return []
        found = []
        for failure in failures:
            remaining = failure.guard
            for member in error_code.members:
                if not _is_code(member):
                    continue
                is_it = is_same(failure.code, integer(context.code(member)))
                guard = both(remaining, is_it)
                if z3.is_false(guard):
                    continue
                remaining = both(remaining, negated(is_it))
                found.append(RawEnding(guard, self._values_of(member, error_code)))
            self._add(remaining, FAILED, code=failure.code, index=failure.index)
        return found

    def _values_of(self, code: str, error_code: Enum) -> dict[str, Symbolic]:
        context = self._context
        values: dict[str, Symbolic] = {}
        for each in self._node.errors:
            if each.name == "error_code":
                values[each.name] = Scalar(error_code, integer(context.member(code)))
            elif each.type == STRING:
                values[each.name] = text_literal(context, code)
            else:
                values[each.name] = default(context, each.type)
        return values

    def _finish(self, returns: list[RawEnding], raises: list[RawEnding]) -> None:
        """Evaluate postconditions where the body returned, and invariants also where it declared an error."""
        evaluator, node = self._evaluator, self._node
        outputs = {each.name: self._merged(each.name, each.type, returns) for each in node.outputs}
        errors = {each.name: self._merged(each.name, each.type, raises) for each in node.errors}
        evaluator.names.refs.update(names_of_kind("output", outputs))
        evaluator.alive = either(*(each.guard for each in returns))
        self._clauses("postcondition", node.postconditions)
        returned = evaluator.alive
        raised = either(*(each.guard for each in raises))
        if node.errors:
            for kind, values, is_there in (("output", outputs, returned), ("error", errors, raised)):
                for name, value in values.items():
                    evaluator.names.refs[kind, name] = _optional(value, negated(is_there))
        evaluator.alive = either(returned, raised)
        self._clauses("invariant", node.invariants)
        self._failed(evaluator.failures)
        evaluator.failures = []
        alive = evaluator.alive if node.invariants else TRUE
        self._add(both(returned, alive), RETURNED, values=outputs)
        self._add(both(raised, alive), DECLARED_ERROR, values=errors)

    def _merged(self, name: str, type_: Type, endings: list[RawEnding]) -> Symbolic:
        """Return the value of an output whichever way the body ended."""
        if not endings:
            return default(self._context, type_)
        found = endings[-1].values[name]
        for each in reversed(endings[:-1]):
            found = merge(self._context, each.guard, each.values[name], found)
        return found


def _is_code(member: str) -> bool:
    from vesper.language.ir.failures import HTTP_CODE

    return HTTP_CODE.fullmatch(member) is None or member[5:].isdigit()


def _optional(value: Symbolic, is_null: Term) -> Symbolic:
    if isinstance(value, OptionalTerm):
        return OptionalTerm(value.type, either(is_null, value.is_null), value.value)
    return OptionalTerm(OptionalOf(value.type), is_null, value)


# -- two versions ------------------------------------------------------------------------------------


def difference(context: Context, left: SymbolicRun, right: SymbolicRun, fields: Sequence[str]) -> Term:
    """Return where two versions end differently: the rule of docs/spec/proofs.md, over the fields in common."""
    ways = []
    for kind in (RETURNED, DECLARED_ERROR):
        first, second = _only(left, kind), _only(right, kind)
        if first is not None and second is not None:
            common = [name for name in first.values if name in second.values]
            compared = [name for name in common if kind == DECLARED_ERROR or name in fields]
            alike = [same(context, first.values[name], second.values[name]) for name in compared]
            ways.append(both(first.guard, second.guard, *alike))
    failed = _guard(left, FAILED), _guard(right, FAILED)
    if not z3.is_false(failed[0]) and not z3.is_false(failed[1]):
        ways.append(both(*failed, is_same(_code(left), _code(right))))
    for phase in ("constraint", "precondition", "validation", "postcondition", "invariant"):
        ways.append(both(_guard(left, CONTRACT_BROKEN, phase), _guard(right, CONTRACT_BROKEN, phase)))
    left_out = either(_guard(left, ABANDONED), _guard(right, ABANDONED))
    return both(negated(either(*ways)), negated(left_out))


def same_ending(context: Context, left: Ending, right: Ending, fields: Sequence[str]) -> Term:
    """Return whether two endings are the same outcome of two versions."""
    if left.kind != right.kind or left.phase != right.phase:
        return FALSE
    if left.kind == FAILED:
        return is_same(left.code, right.code)
    names = [name for name in left.values if name in right.values and (left.kind == DECLARED_ERROR or name in fields)]
    return both(*(same(context, left.values[name], right.values[name]) for name in names))


def requests_differ(context: Context, left: SymbolicRun, right: SymbolicRun) -> Term:
    """Return where the requests of two versions differ, or only one of them makes a request."""
    first = {(each.path, each.occurrence): each for each in left.requests}
    second = {(each.path, each.occurrence): each for each in right.requests}
    ways = []
    for place in {**first, **second}:
        one, other = first.get(place), second.get(place)
        if one is None or other is None:
            ways.append((one or other).guard)  # type: ignore[union-attr]
            continue
        alike = [truth_if(one.effect == other.effect and list(one.arguments) == list(other.arguments))]
        alike += [
            same(context, value, other.arguments[name])
            for name, value in one.arguments.items()
            if name in other.arguments
        ]
        if one.key is not None and other.key is not None:
            alike.append(same(context, one.key, other.key))
        ways += [one.guard != other.guard, both(one.guard, other.guard, negated(both(*alike)))]
    return either(*ways)


def truth_if(value: bool) -> Term:
    return TRUE if value else FALSE


def _only(run: SymbolicRun, kind: str) -> Ending | None:
    return next((each for each in run.endings if each.kind == kind), None)


def _guard(run: SymbolicRun, kind: str, phase: str | None = None) -> Term:
    return either(*(each.guard for each in run.endings if each.kind == kind and each.phase == phase))


def _code(run: SymbolicRun) -> Term:
    failed = [each for each in run.endings if each.kind == FAILED]
    found = failed[-1].code
    for each in reversed(failed[:-1]):
        found = choose(each.guard, each.code, found)
    return found
