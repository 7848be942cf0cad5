"""Budgets of steps and of requests to agents. The class is a base of the check of requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from vesper.language.check.callees import Interface
from vesper.language.check.flow.policies import PolicyReader
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.syntax import ast, budget_ast
from vesper.language.syntax.yaml_tree import Tree
from vesper.policies.budget import Budget
from vesper.values.types import STRING

COUNTED = ("model_call", "budget_read")
"""Effects that count for the budgets around them, or read one."""
_NamedInputs = dict[str, tuple[ast.Word, ast.Expression]]


class BudgetChecker:
    """Tracks the budgets around the current step of one node."""

    def __init__(self, bag: DiagnosticBag) -> None:
        self._bag = bag
        self._policies = PolicyReader(bag)
        self._around: tuple[Budget, ...] = ()
        """Outermost first."""
        self._questions = 0
        """Number of steps so far that ask a model."""

    @contextmanager
    def within(self, budget: Tree, name: str) -> Iterator[None]:
        """Assign the model requests that are checked inside to a budget."""
        found = self._policies.read_budget(budget, "run", name)
        outer, before = self._around, self._questions
        self._around = outer if found is None else (*outer, found)
        yield
        self._around = outer
        if self._questions == before and not self._bag.has_errors:
            expected = "a step that asks a model"
            self._bag.error(Code.WRONG_KIND, budget.span, key="steps", expected=expected, found="none")

    def _budgets_of(self, effect: str, own: Tree | None, name: str) -> tuple[Budget, ...]:
        """Return the budgets to which a request is charged, or of which it reads one."""
        self._questions += effect == "model_call"
        budget = None if own is None else self._policies.read_budget(own, "call", name)
        return self._around if budget is None else (*self._around, budget)

    def _budget_name(self, action: ast.EffectStep, step: ast.Step) -> str | None:
        """Return the name of the budget that a step reads. None after reporting that no budget is around the step."""
        word = action.words.get("name")
        if word is None and not self._around:
            where, help_ = "a look at a budget", "no step `budget` is around it: name the budget"
            self._bag.error(Code.MISSING_KEY, step.operation.span, where=where, key="name", help=help_)
            return None
        return self._around[-1].name if word is None else word.text

    def _budgets_of_call(
        self, action: ast.CallNode, found: Interface, name: str, step: ast.Step
    ) -> tuple[tuple[Budget, ...], _NamedInputs] | None:
        """Return the budgets of a call, and the input that takes the message. None after reporting an error."""
        asks_models = any(each.effect == "model_call" for each in found.requests.values())
        self._questions += asks_models
        agent = action.agent
        if agent is None:
            return (self._around if asks_models else ()), {}
        if not asks_models:
            expected, help_ = "a node that asks a model", "write `operation: call_node`"
            self._bag.error(Code.WRONG_KIND, step.span, key="agent", expected=expected, found="another", help=help_)
            return None
        budget = None if agent.budget is None else self._policies.read_budget(agent.budget, "call", name)
        timeout = None if agent.timeout is None else self._policies.read_duration_us(agent.timeout, "timeout")
        if timeout is not None:
            before = Budget("call", name) if budget is None else budget
            budget = replace(before, time_us=timeout if before.time_us is None else min(before.time_us, timeout))
        message = self._message(agent, found)
        return None if message is None else (self._around if budget is None else (*self._around, budget), message)

    def _message(self, agent: budget_ast.AskedAgent, found: Interface) -> _NamedInputs | None:
        if agent.message is None:
            return {}
        required = [(name, type_) for name, type_, may_miss in found.inputs if not may_miss]
        if len(required) == 1 and required[0][1] == STRING:
            return {required[0][0]: (ast.Word(required[0][0], agent.message.span), agent.message)}
        listed = ", ".join(f"`{name}`" for name, _, _ in found.inputs) or "none"
        help_, where = f"write `inputs`: its inputs are {listed}", f"a question to `{found.node_id}`"
        self._bag.error(Code.UNKNOWN_KEY, agent.message.span, where=where, key="message", help=help_)
        return None
