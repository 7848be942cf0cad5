"""Values of the names in a condition: inputs, constants, steps, outputs, and locals of a LET.

Inputs and marks have the values of names. A local of a LET, and the single guards of a step, are computed from them
with the kernels; a value that depends on the items of a loop is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import localcontext
from typing import cast

from vesper.api.explanation.model import NamedValue
from vesper.engines.outcome import DeclaredError, Outcome, Returned
from vesper.kernels.decimal import EXACT
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements
from vesper.values.inputs import accept_inputs
from vesper.values.model import Value, plain
from vesper.values.types import MapOf, SetOf
from vesper.verify.solve.evaluation import FAILURES, Binding, Evaluator, Scope

_UNKNOWN = object()


class KnownValues:
    """Values of one execution, as far as its marks have come."""

    def __init__(
        self, node: ir.Node, inputs: Mapping[str, object], outcome: Outcome | None, is_masked: bool = False
    ) -> None:
        """Make the values of an execution. Nothing is computed from masked ones."""
        self._node = node
        self._constants = {each.name: each.value for each in node.constants}
        self._outputs = outcome.value if isinstance(outcome, Returned) else {}
        self._errors = outcome.value if isinstance(outcome, DeclaredError) else {}
        self._steps: dict[str, object] = {}
        self._step_of = _marked_steps(node)
        self._lets = {part.local: (part.value, part.body) for part in node.expressions() if isinstance(part, ir.Let)}
        self._evaluator = Evaluator(node)
        declared = [(each.name, each.type, each.default) for each in node.inputs]
        values, problems = accept_inputs(declared, dict(inputs))
        # Inputs that do not fit, such as masked ones, are shown as they are.
        raw = {each.name: inputs.get(each.name, plain(each.default)) for each in node.inputs}
        self._inputs: Mapping[str, object] = raw if problems else values
        self._is_evaluable = not problems and not is_masked
        self._scope = Scope(dict(values))

    def note(self, index: int, value: object) -> None:
        """Add the value of a mark."""
        name = self._step_of.get(index)
        if name is not None:
            self._steps[name] = value
            self._scope.steps[name] = value

    def mentioned(self, expression: ir.Expression) -> dict[str, NamedValue]:
        """Return the known names of an expression with their values, in order of first mention."""
        found: dict[str, NamedValue] = {}
        waiting = [expression]
        while waiting:
            part = waiting.pop()
            named = self._name_and_value(part)
            if named is None:
                # A local of a LET inside the condition shows through the names that its value mentions.
                waiting += reversed(ir.children(part))
                continue
            name, value = named
            if value is not _UNKNOWN and name not in found:
                found[name] = NamedValue(plain(cast(Value, value)), part.type)
        return found

    def value(self, expression: ir.Expression) -> object:
        """Return the value of an expression; None where it is not known."""
        if not self._is_evaluable:
            return None
        try:
            with localcontext(EXACT):
                return cast(object, self._evaluator.value(expression, self._scope_of_lets(expression)))
        except FAILURES:
            return None

    def _name_and_value(self, part: ir.Expression) -> tuple[str, object] | None:
        """Return the name and the value of a reference or a field of one; None for other expressions."""
        match part:
            case ir.Ref(kind, name, type_):
                if kind == "constant" and isinstance(type_, SetOf | MapOf):
                    return name, _UNKNOWN
                return name.lstrip("_"), self._value_of_ref(kind, name)
            case ir.Local(number, name):
                return name, self._local(number)
            case ir.Field(of, name):
                inner = self._name_and_value(of)
                if inner is None:
                    return None
                path, value = inner
                return f"{path}.{name}", value[name] if isinstance(value, dict) and name in value else _UNKNOWN
            case ir.Call("optional.unwrap", _, (only,)):
                return self._name_and_value(only)
            case _:
                return None

    def _value_of_ref(self, kind: str, name: str) -> object:
        known: dict[str, Mapping[str, object]] = {
            "input": self._inputs,
            "constant": self._constants,
            "step": self._steps,
            "output": self._outputs,
            "error": self._errors,
        }
        return known[kind].get(name, _UNKNOWN)

    def _local(self, number: int) -> object:
        if number not in self._lets or not self._is_evaluable:
            return _UNKNOWN
        value = self._lets[number][0]
        try:
            with localcontext(EXACT):
                return cast(object, self._evaluator.value(value, self._scope_of_lets(value)))
        except FAILURES:
            return _UNKNOWN

    def _scope_of_lets(self, expression: ir.Expression) -> Scope:
        """Return a scope with the locals of LETs that an expression mentions."""
        parts = ir.walk(expression)
        inner = {part.local for part in parts if isinstance(part, ir.Let)}
        free = {part.number for part in parts if isinstance(part, ir.Local)} - inner
        bindings = {}
        for number in sorted(free & self._lets.keys()):
            value = self._lets[number][0]
            bindings[number] = Binding(self._evaluator.value(value, self._scope_of_lets(value)), value)
        return self._scope.bind(bindings)


def _marked_steps(node: ir.Node) -> dict[int, str]:
    """Map the index of each marked expression to the name of the step whose value it is."""
    found: dict[int, str] = {}
    for statement in all_statements(node.body):
        match statement:
            case ir.Step(name, value):
                found[value.index] = name
            case ir.Branch(name=name, arms=arms, otherwise_value=last):
                found |= {value.index: name for value in (*(arm.value for arm in arms), last) if value is not None}
            case ir.Request(name=name, result=result) | ir.CallNode(name=name, result=result):
                found[result.index] = name
            case _:
                continue
        found |= {handler.value.index: name for handler in statement.handlers if handler.value is not None}
    return found
