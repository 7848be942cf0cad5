"""Worst case of a node before it runs: model requests, tokens, money and time.

It follows from the node's bounded loops and policies.

A request has at most the tokens of its bytes, or those of the model's context; an answer at most `max_tokens`. Attempts
and fallback models are added up, alternatives count as the larger one, and a budget that blocks is never exceeded.
`INFINITE` is no bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from typing import Protocol

from vesper.engines.fuel_bound import loop_bounds
from vesper.engines.request_size import RequestSize, SizeReader
from vesper.language.ir import nodes as ir
from vesper.policies.budget import Budget, budgets_of
from vesper.policies.retry import Rule
from vesper.policies.settings import effective
from vesper.values.model import MAX_ENTRIES

INFINITE = Decimal("Infinity")
_ZERO = Decimal(0)
_EXACT = Context(prec=120)
_A_MILLION = Decimal(1_000_000)
_MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class ModelTerms:
    """Prices and limits of a model, with its fallback models."""

    name: str
    prices: tuple[tuple[Decimal, Decimal], ...]
    """Dollars for a million tokens of input and output, at every length of a request; the dearest counts."""
    context: int | None = None
    max_output: int | None = None
    timeout_seconds: float | None = None
    fallback: tuple[ModelTerms, ...] = ()

    def most(self, input_tokens: Decimal, output_tokens: Decimal) -> Decimal:
        """Return the highest price of this many tokens."""
        return max(
            _times(input_tokens, _EXACT.divide(of_input, _A_MILLION))
            + _times(output_tokens, _EXACT.divide(of_output, _A_MILLION))
            for of_input, of_output in self.prices
        )


@dataclass(frozen=True, slots=True)
class Cost:
    """Upper bounds of the requests, tokens, money and time of a part of a node."""

    requests: Decimal = _ZERO
    input_tokens: Decimal = _ZERO
    output_tokens: Decimal = _ZERO
    usd: Decimal = _ZERO
    time_us: Decimal = _ZERO
    """Time of attempts and the waits between them."""
    budgets: frozenset[Budget] = frozenset()
    """Budgets of the node for which every request of the part counts."""

    @property
    def tokens(self) -> Decimal:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Cost) -> Cost:
        return self._join(other, [own + others for own, others in zip(self._amounts(), other._amounts(), strict=True)])

    def or_other(self, other: Cost) -> Cost:
        """Return the larger amounts of two alternatives."""
        return self._join(other, list(map(max, self._amounts(), other._amounts())))

    def times(self, count: Decimal) -> Cost:
        """Return the cost of `count` executions."""
        return self._from_amounts([_times(each, count) for each in self._amounts()], self.budgets).within()

    def within(self, budgets: Iterable[Budget] | None = None) -> Cost:
        """Return the cost within budgets, by default within its own."""
        found = self
        for each in self.budgets if budgets is None else budgets:
            found = found._limit(each)
        return found

    def _limit(self, budget: Budget) -> Cost:
        """Return the cost within a budget.

        Its `calls` do not limit requests, because refused requests are not charged to it.
        """
        if budget.on_exceeded != "block":
            return self
        tokens = INFINITE if budget.tokens is None else Decimal(budget.tokens)
        return replace(
            self,
            input_tokens=min(self.input_tokens, tokens),
            output_tokens=min(self.output_tokens, tokens),
            usd=min(self.usd, INFINITE if budget.usd is None else Decimal(budget.usd)),
        )

    def _amounts(self) -> tuple[Decimal, ...]:
        return self.requests, self.input_tokens, self.output_tokens, self.usd, self.time_us

    @staticmethod
    def _from_amounts(amounts: Sequence[Decimal], budgets: frozenset[Budget]) -> Cost:
        requests, input_tokens, output_tokens, usd, time_us = amounts
        return Cost(requests, input_tokens, output_tokens, usd, time_us, budgets)

    def _join(self, other: Cost, amounts: Sequence[Decimal]) -> Cost:
        shared = self.budgets & other.budgets if self.requests and other.requests else self.budgets | other.budgets
        return self._from_amounts(amounts, shared).within()


@dataclass(slots=True)
class CostReport:
    """Worst case of a node, with its parts."""

    total: Cost
    steps: dict[str, Cost] = field(default_factory=dict)
    """By the path of the request, over all executions of the node; budgets are not applied."""
    models: dict[str, Cost] = field(default_factory=dict)
    """By the configured name of the model; budgets are not applied."""
    unbounded: dict[str, str] = field(default_factory=dict)
    """The reason why an amount has no bound, by the path of the request or of the loop."""


class CompiledNode(Protocol):
    """A node with the nodes that it calls."""

    @property
    def node(self) -> ir.Node: ...
    @property
    def callees(self) -> Sequence[CompiledNode]: ...


class UnknownModel(LookupError):
    """A node requests a model that has no terms."""


def cost_of(compiled: CompiledNode, models: Mapping[str, ModelTerms]) -> CostReport:
    """Return the worst case of one execution. Raises `UnknownModel`, whose text is the name of the model."""
    report = CostReport(Cost())
    report.total = _Walker(compiled, "", models, report).of_node(Decimal(1))
    return report


class _Walker:
    def __init__(
        self, compiled: CompiledNode, prefix: str, models: Mapping[str, ModelTerms], report: CostReport
    ) -> None:
        self._node = compiled.node
        self._callees = {each.node.node_id: each for each in compiled.callees}
        self._prefix = prefix
        self._models = models
        self._report = report
        self._sizes = SizeReader(compiled.node)
        self._rounds = loop_bounds(compiled.node)

    def of_node(self, times: Decimal) -> Cost:
        """Return the cost of one execution of the node.

        The costs of `times` executions are noted by step and by model.
        """
        policy = self._node.grants.policy
        found = replace(self._block(self._node.body, times), budgets=frozenset()).within(budgets_of(policy))
        limit = policy.get("total_timeout_us")
        return replace(found, time_us=min(found.time_us, Decimal(limit))) if isinstance(limit, int) else found

    def _block(self, block: ir.Block, times: Decimal) -> Cost:
        found = Cost()
        for statement in block:
            found += self._statement(statement, times)
        return found

    def _statement(self, statement: ir.Statement, times: Decimal) -> Cost:
        own = self._statement_cost(statement, times)
        for handler in getattr(statement, "handlers", ()):
            own += self._block(handler.body, times)
        return own

    def _statement_cost(self, statement: ir.Statement, times: Decimal) -> Cost:
        match statement:
            case ir.Step():
                self._sizes.note_step(statement)
                return Cost()
            case ir.Branch(arms=arms, otherwise=otherwise):
                found = self._block(otherwise, times)
                for arm in arms:
                    found = found.or_other(self._block(arm.body, times))
                return found
            case ir.Loop():
                return self._loop(statement, times)
            case ir.Parallel(members=members):
                parts = [self._block(member, times) for member in members]
                return replace(sum(parts, Cost()), time_us=max((each.time_us for each in parts), default=_ZERO))
            case ir.Request(effect="model_call"):
                return self._request(statement, times)
            case ir.CallNode():
                called = _Walker(
                    self._callees[statement.node], f"{self._prefix}{statement.name}/", self._models, self._report
                )
                return _apply_budgets(called.of_node(times), statement.budgets)
            case _:
                return Cost()

    def _loop(self, loop: ir.Loop, times: Decimal) -> Cost:
        """Return the cost of the first round and of the rest. Only in the first round is the state known."""
        rounds = self._rounds.get(loop.name, loop.max)
        bound = Decimal(rounds) if rounds < MAX_ENTRIES else INFINITE
        self._sizes.note_state({each.local: each.value for each in loop.state})
        found = self._block(loop.body, times)
        self._sizes.note_state({each.local: None for each in loop.state})
        if rounds > 1 and found.requests:
            if bound == INFINITE:
                self._report.unbounded[self._prefix + loop.name.lstrip("_")] = "nothing bounds its rounds"
            more = _minus_one(bound)
            rest = self._block(loop.body, _times(times, more)).times(more)
            if loop.in_flight is not None and bound != INFINITE:
                turns = -(-rounds // loop.in_flight)
                return replace(found + rest, time_us=max(found.time_us, rest.time_us / more) * turns)
            found += rest
        return found

    def _request(self, request: ir.Request, times: Decimal) -> Cost:
        name = request.fixed["model"]
        terms = self._models.get(name)
        if terms is None:
            raise UnknownModel(name)
        policy = effective(self._node.grants.policy, request.policy)
        rule = Rule.of(policy, request.effect_class)
        attempts = Decimal(rule.attempts if rule.is_repeatable else 1)
        size = self._sizes.request(dict(request.arguments)["request"])
        path = self._prefix + request.name
        found = Cost()
        for model in (terms, *terms.fallback):
            part = self._attempt(model, size, path).times(attempts)
            self._note(self._report.models, model.name, part.times(times))
            found += part
        found = replace(found, time_us=_time(policy, rule, (terms, *terms.fallback)))
        self._note(self._report.steps, path, found.times(times))
        return _apply_budgets(found, budgets_of(request.policy))

    def _attempt(self, model: ModelTerms, size: RequestSize, path: str) -> Cost:
        """Return the cost of one request to one model."""
        context = INFINITE if model.context is None else Decimal(model.context)
        least = [each for each in (size.max_tokens, model.max_output) if each is not None]
        output = min(Decimal(min(least)) if least else INFINITE, context)
        input_ = min(INFINITE if size.input_tokens is None else Decimal(size.input_tokens), context)
        for amount, what in ((input_, "`context`"), (output, "`max_output`, and the request no `max_tokens`")):
            if amount == INFINITE:
                self._report.unbounded[path] = f"the model `{model.name}` has no {what}"
        return Cost(Decimal(1), input_, output, model.most(input_, output))

    @staticmethod
    def _note(table: dict[str, Cost], name: str, cost: Cost) -> None:
        table[name] = table.get(name, Cost()) + cost


def _apply_budgets(cost: Cost, budgets: Sequence[Budget]) -> Cost:
    """Return a cost to which budgets apply.

    Those of the call limit it at once, those of the node limit all executions together.
    """
    own = [each for each in budgets if each.scope == "call"]
    around = frozenset(each for each in budgets if each.scope != "call")
    return replace(cost, budgets=around if cost.requests else frozenset()).within(own).within()


def _time(policy: ir.Policy, rule: Rule, chain: Sequence[ModelTerms]) -> Decimal:
    """Return the time of all attempts, and of the waits of `backoff` between them."""
    limits = [INFINITE if each.timeout_seconds is None else Decimal(str(each.timeout_seconds)) for each in chain]
    attempt = _times(sum(limits, _ZERO), Decimal(_MICROSECONDS))
    own = policy.get("timeout_us")
    attempt = min(attempt, Decimal(own)) if isinstance(own, int) else attempt
    attempts = rule.attempts if rule.is_repeatable else 1
    waits = [min(rule.base_us * rule.factor**each, rule.max_us) for each in range(attempts - 1)]
    return _times(attempt, Decimal(attempts)) + Decimal(sum(waits))


def _minus_one(bound: Decimal) -> Decimal:
    return bound if bound == INFINITE else bound - 1


def _times(amount: Decimal, count: Decimal) -> Decimal:
    return _ZERO if not amount or not count else _EXACT.multiply(amount, count)
