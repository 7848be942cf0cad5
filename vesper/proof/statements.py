"""Evaluation of statements: blocks, handlers, branches, loops, requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import z3

from vesper.language.ir import nodes as ir
from vesper.language.ir.failures import callee_codes
from vesper.language.ir.statements import all_statements
from vesper.proof.bounds import TooLarge
from vesper.proof.context import Context
from vesper.proof.evaluation import Evaluator, Failure
from vesper.proof.symbols import Symbolic, components, merge, symbol
from vesper.proof.terms import FALSE, Term, both, either, integer, is_number, is_same, negated, whole
from vesper.values.generated.effects import EFFECTS
from vesper.values.types import Type

COMPLETED = 0
_MAX_OCCURRENCES = 1_000
_FIRST_HTTP = 100
_LAST_HTTP = 599


@dataclass(frozen=True, slots=True)
class SymbolicRequest:
    """A request or call that an execution makes where `guard` holds, and its completion."""

    guard: Term
    path: str
    occurrence: int
    effect: str
    arguments: dict[str, Symbolic]
    key: Symbolic | None
    completion: Symbolic
    failure: Term
    """Number of the code with which it fails; 0 where it completes."""


@dataclass(frozen=True, slots=True)
class RawEnding:
    """Where a `return` or `raise` is reached, with its values."""

    guard: Term
    values: dict[str, Symbolic]


@dataclass(slots=True)
class Execution:
    """Evaluates the body of a node."""

    evaluator: Evaluator
    returns: list[RawEnding] = field(default_factory=list)
    raises: list[RawEnding] = field(default_factory=list)
    broken: list[tuple[Term, int]] = field(default_factory=list)
    """Where validations are broken, with their numbers."""
    requests: list[SymbolicRequest] = field(default_factory=list)
    occurrences: dict[str, int] = field(default_factory=dict)
    iteration: Term | None = None
    """Number of the iteration where a loop of any length is evaluated once for all."""
    _clauses: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, clause in enumerate(self.evaluator.node.validations()):
            self._clauses[clause.holds.index] = number

    @property
    def context(self) -> Context:
        return self.evaluator.context

    def block(self, block: ir.Block) -> None:
        for statement in block:
            self.statement(statement)

    def statement(self, statement: ir.Statement) -> None:
        evaluator = self.evaluator
        match statement:
            case ir.Return(values):
                self._end(values, self.returns)
            case ir.Raise(values):
                self._end(values, self.raises)
            case ir.Require(clause):
                self._require(clause)
            case _:
                first = len(evaluator.failures)
                value = self._own_value(statement)
                value = self._run_handlers(statement, first, value)
                if value is not None:
                    evaluator.names.refs["step", statement.name] = value

    def _own_value(self, statement: ir.Statement) -> Symbolic | None:
        match statement:
            case ir.Step(value=value):
                return self.evaluator.value(value)
            case ir.Branch():
                return self._branch(statement)
            case ir.Loop():
                from vesper.proof.loops import evaluate_loop

                if statement.in_flight is not None:
                    _refuse_clauses(statement.body)
                return evaluate_loop(self, statement)
            case ir.Parallel():
                self._members(statement)
                return None
            case ir.Request():
                return self._request(statement)
            case ir.CallNode():
                return self._call(statement)
            case _:
                raise AssertionError(statement)

    def _members(self, parallel: ir.Parallel) -> None:
        """Evaluate each member even if others fail. The first failed member in order gives the failure."""
        evaluator = self.evaluator
        start = evaluator.alive
        ended = start
        for member in parallel.members:
            _refuse_clauses(member)
            first = len(evaluator.failures)
            evaluator.alive = start
            self.block(member)
            evaluator.failures[first:] = [
                Failure(both(ended, each.guard), each.code, each.index) for each in evaluator.failures[first:]
            ]
            ended = both(ended, evaluator.alive)
        evaluator.alive = ended

    def _end(self, values: tuple[tuple[str, ir.Expression], ...], endings: list[RawEnding]) -> None:
        found = {name: self.evaluator.value(value) for name, value in values}
        endings.append(RawEnding(self.evaluator.alive, found))
        self.evaluator.alive = FALSE

    def _require(self, clause: ir.Clause) -> None:
        evaluator = self.evaluator
        holds = evaluator.truth(clause.holds)
        number = self._clauses[clause.holds.index]
        if evaluator.recorder is not None:
            evaluator.recorder.clause(clause, "validation", number, evaluator.alive, negated(holds))
        self.broken.append((both(evaluator.alive, negated(holds)), number))
        evaluator.alive = both(evaluator.alive, holds)

    def _branch(self, branch: ir.Branch) -> Symbolic | None:
        evaluator = self.evaluator
        before = evaluator.alive
        is_whole = True
        outcomes: list[tuple[Term, Term, Symbolic | None]] = []
        remaining = before
        for arm in branch.arms:
            evaluator.alive = remaining
            when = evaluator.truth(arm.when)
            evaluator.condition(arm.when.index, when)
            is_whole = is_whole and evaluator.alive.eq(remaining)
            entered = both(evaluator.alive, when)
            remaining = both(evaluator.alive, negated(when))
            evaluator.alive = entered
            self.block(arm.body)
            value = None if arm.value is None else evaluator.value(arm.value)
            is_whole = is_whole and evaluator.alive.eq(entered)
            outcomes.append((when, evaluator.alive, value))
        evaluator.alive = remaining
        self.block(branch.otherwise)
        found = None if branch.otherwise_value is None else evaluator.value(branch.otherwise_value)
        is_whole = is_whole and evaluator.alive.eq(remaining)
        for when, _, value in reversed(outcomes):
            if value is not None:
                found = value if found is None else merge(self.context, when, value, found)
        evaluator.alive = before if is_whole else either(*(alive for _, alive, _ in outcomes), evaluator.alive)
        return found

    # -- requests ----------------------------------------------------------------------------------

    def occurrence(self, path: str) -> int:
        found = self.occurrences.get(path, 0)
        if found > _MAX_OCCURRENCES:
            raise TooLarge(f"more than {_MAX_OCCURRENCES:,} occurrences of {path}")
        self.occurrences[path] = found + 1
        return found

    def _request(self, request: ir.Request) -> Symbolic:
        evaluator = self.evaluator
        key = None if request.key is None else evaluator.value(request.key)
        arguments = {name: evaluator.value(value) for name, value in request.arguments}
        codes = [each for each in EFFECTS[request.effect].codes() if each != "http_error"]
        has_http = "http_error" in EFFECTS[request.effect].codes()
        at = self.occurrence(request.name)
        operands = [self.iteration if self.iteration is not None else integer(at)]
        name = f"completion of {request.name}"
        return self._completion_value(
            request, request.result, name, operands, codes, has_http, request.effect, arguments, key, at
        )

    def _call(self, call: ir.CallNode) -> Symbolic:
        evaluator = self.evaluator
        arguments = {name: evaluator.value(value) for name, value in call.inputs}
        callee = next(each for each in evaluator.node.calls if each.node == call.node)
        at = self.occurrence(call.name)
        operands = [self.iteration if self.iteration is not None else integer(at)]
        for each in arguments.values():
            operands += components(self.context, each)
        name = f"call {call.name} of {callee.semantic_hash} with {', '.join(arguments)}"
        codes = sorted({*callee_codes(callee), "contract_broken"})
        return self._completion_value(
            call, call.result, name, operands, codes, True, f"call {call.node}", arguments, None, at
        )

    def _completion_value(
        self,
        statement: ir.Request | ir.CallNode,
        result: ir.Expression,
        name: str,
        operands: list[Term],
        codes: list[str],
        has_http: bool,
        effect: str,
        arguments: dict[str, Symbolic],
        key: Symbolic | None,
        occurrence: int,
    ) -> Symbolic:
        """Return the value of a completion, or fail with its code."""
        evaluator, context = self.evaluator, self.context
        completion = symbol(context, _completion_type(result), name, operands)
        failure = context.apply(f"failure of {name}", operands, z3.IntSort())
        numbers = [COMPLETED, *(context.code(each) for each in codes)]
        ways = [is_same(failure, integer(each)) for each in numbers]
        if has_http:
            ways.append(z3.And(failure >= _FIRST_HTTP, failure <= _LAST_HTTP))
        context.assume(either(*ways))
        self.requests.append(
            SymbolicRequest(evaluator.alive, statement.name, occurrence, effect, arguments, key, completion, failure)
        )
        failed = both(evaluator.alive, failure != COMPLETED)
        evaluator.failures.append(Failure(failed, failure, result.index))
        evaluator.alive = both(evaluator.alive, is_same(failure, integer(COMPLETED)))
        before, evaluator.names.result = evaluator.names.result, completion
        found = evaluator.value(result)
        evaluator.names.result = before
        return found

    # -- handlers ----------------------------------------------------------------------------------

    def _run_handlers(self, statement: ir.Statement, first: int, value: Symbolic | None) -> Symbolic | None:
        """Run the handlers for the failures since `first`, and return the value of the statement."""
        handlers = () if isinstance(statement, ir.Return | ir.Raise | ir.Require) else statement.handlers
        evaluator = self.evaluator
        if not handlers or len(evaluator.failures) == first:
            return value
        own = evaluator.failures[first:]
        del evaluator.failures[first:]
        caught: list[list[tuple[Term, Failure]]] = [[] for _ in handlers]
        for failure in own:
            remaining: Term = failure.guard
            for matches, position in _matches(self.context, handlers, failure.code):
                guard = both(remaining, matches)
                if not z3.is_false(guard):
                    caught[position].append((guard, failure))
                remaining = both(remaining, negated(matches))
                if z3.is_false(remaining):
                    break
            if not z3.is_false(remaining):
                evaluator.failures.append(Failure(remaining, failure.code, failure.index))
        normal = evaluator.alive
        after = [normal]
        for handler, failures in zip(handlers, caught, strict=True):
            entered = either(*(guard for guard, _ in failures))
            evaluator.alive = entered
            self.block(handler.body)
            if handler.value is not None:
                found = evaluator.value(handler.value)
                value = found if value is None else merge(self.context, entered, found, value)
                after.append(evaluator.alive)
            else:
                for guard, failure in failures:
                    left = both(guard, evaluator.alive)
                    if not z3.is_false(left):
                        evaluator.failures.append(Failure(left, failure.code, failure.index))
        evaluator.alive = either(*after)
        return value


def _refuse_clauses(strand: ir.Block) -> None:
    """Refuse a strand with a clause: one that is broken ends the execution before an earlier strand can fail."""
    if any(isinstance(each, ir.Require) for each in all_statements(strand)):
        raise TooLarge("a validation in a strand")


def _matches(context: Context, handlers: tuple[ir.Handler, ...], code: Term) -> list[tuple[Term, int]]:
    """Return conditions on a code with the positions of their handlers, the most specific first."""
    tests: list[tuple[Callable[[str], bool], Callable[[str], Term]]] = [
        (lambda each: not _is_group(each), lambda each: is_same(code, integer(context.code(each)))),
        (lambda each: each == "http_4xx", lambda _: _between(code, 400, 499)),
        (lambda each: each == "http_5xx", lambda _: _between(code, 500, 599)),
        (lambda each: each == "http_error", lambda _: _between(code, 100, 599)),
        (lambda each: each == "any", lambda _: z3.BoolVal(True)),
    ]
    found = []
    for is_kind, test in tests:
        for position, handler in enumerate(handlers):
            own = [test(each) for each in handler.codes if is_kind(each)]
            if own:
                found.append((either(*own), position))
    return found


def _is_group(code: str) -> bool:
    return code in ("http_4xx", "http_5xx", "http_error", "any")


def _between(code: Term, low: int, high: int) -> Term:
    if is_number(code):
        return z3.BoolVal(low <= whole(code) <= high)
    return z3.And(code >= low, code <= high)


def _completion_type(result: ir.Expression) -> Type:
    """Return the type of the completion that an expression reads."""
    return next((each.type for each in ir.walk(result) if isinstance(each, ir.Result)), result.type)
