"""Upper bounds of the size of a model request and its answer, from the IR.

The JSON of a value has at most six bytes for a character of a text, whose length constraints of inputs bound.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from vesper.codegen.ranges import integer_range
from vesper.language.ir import nodes as ir
from vesper.values.json_forms import json_form
from vesper.values.json_value import Json, canonical_text
from vesper.values.types import BOOLEAN, INTEGER, STRING, Enum, OptionalOf, Record, Type

_BYTES_OF_CHARACTER = 6
_OWN_TOKENS = 1_024
_TOKENS_PER_PART = 64
"""As the Host bounds a request before it sends it (docs/spec/models.md, Bounds)."""


@dataclass(frozen=True, slots=True)
class RequestSize:
    """Bounds of one request. None is no bound."""

    input_tokens: int | None
    max_tokens: int | None


class SizeReader:
    """Bounds of the values of one node. Steps are noted in program order."""

    def __init__(self, node: ir.Node) -> None:
        self._inputs = {each.name: each.type for each in node.inputs}
        self._constants = {each.name: (each.type, each.value) for each in node.constants}
        self._lengths: dict[str, int] = {}
        self._steps: dict[str, ir.Expression] = {}
        self._locals: dict[int, ir.Expression | None] = {
            each.local: each.value for each in node.expressions() if isinstance(each, ir.Let)
        }
        for clause in (*node.constraints, *node.preconditions):
            self._learn(clause.holds)

    def note_step(self, step: ir.Step) -> None:
        """Record the value of a step, unless a handler may replace it."""
        if not step.handlers:
            self._steps[step.name] = step.value

    def note_state(self, values: Mapping[int, ir.Expression | None]) -> None:
        """Set the values of the state of a loop; None is any value."""
        self._locals |= values

    def request(self, request: ir.Expression) -> RequestSize:
        """Return the bounds of the argument of a `model_call`."""
        members = _members(request)
        size, messages = self._bytes(request), self._items(members.get("messages"))
        tools = self._items(members["tools"]) if "tools" in members else 0
        output = self._bytes(members["output"]) if "output" in members else 0
        tokens = None
        if size is not None and messages is not None and tools is not None and output is not None:
            tokens = size + output + _OWN_TOKENS + _TOKENS_PER_PART * (messages + tools)
        return RequestSize(tokens, self._number(members.get("max_tokens")))

    def _learn(self, holds: ir.Expression) -> None:
        match holds:
            case ir.Logical("and", left, right):
                self._learn(left)
                self._learn(right)
            case ir.Call(
                op="integer.less_or_equal" | "integer.less" | "integer.equal",
                args=(ir.Call(op="text.length", args=(ir.Ref(kind="input", name=name),)), ir.Literal(value=int(most))),
            ):
                self._lengths[name] = min(most, self._lengths.get(name, most))
            case _:
                pass

    def _bytes(self, value: ir.Expression) -> int | None:
        match value:
            case ir.Literal(type=type_, value=literal):
                return _size_of(type_, literal)
            case ir.Ref(kind="constant", name=name):
                return _size_of(*self._constants[name])
            case ir.Ref(kind="input", name=name):
                return self._bytes_of_input(self._inputs[name], self._lengths.get(name))
            case ir.Ref(kind="step", name=name):
                return self._bytes(self._steps[name]) if name in self._steps else None
            case ir.Local(number=number):
                known = self._locals.get(number)
                return None if known is None else self._bytes(known)
            case ir.RecordValue(fields=fields):
                named = [(name, self._bytes(part)) for name, part in fields]
                return _add_sizes([None if size is None else len(name) + 4 + size for name, size in named], 2)
            case ir.Array(items=items):
                return _add_sizes([_add_sizes([self._bytes(item)], 1) for item in items], 2)
            case ir.If(then=then, otherwise=otherwise):
                sizes = self._bytes(then), self._bytes(otherwise)
                return None if sizes[0] is None or sizes[1] is None else max(sizes[0], sizes[1])
            case ir.Call(op="json.from_value" | "text.trim", args=(inner,)):
                return self._bytes(inner)
            case ir.Call(op="text.join", args=(ir.Array(items=items), ir.Literal(value=str(between)))):
                return _add_sizes(
                    [self._bytes(item) for item in items], _BYTES_OF_CHARACTER * len(between) * len(items)
                )
            case ir.Call(op="text.concat" | "array.concat" | "array.append", args=args):
                return _add_sizes([self._bytes(part) for part in args], 1)
            case ir.Call(op="text.from_value", args=(inner,)):
                return _add_sizes([self._bytes(inner)], 2)
            case _:
                return None

    def _bytes_of_input(self, type_: Type, length: int | None) -> int | None:
        if type_ == STRING:
            return None if length is None else _BYTES_OF_CHARACTER * length + 2
        return _max_bytes(type_)

    def _items(self, value: ir.Expression | None) -> int | None:
        """Return the most items of a list."""
        match value:
            case ir.Array(items=items):
                return len(items)
            case ir.Literal(value=list() as items):
                return len(items)
            case ir.Ref(kind="constant", name=name):
                return _list_length(self._constants[name][1])
            case ir.Ref(kind="step", name=name) if name in self._steps:
                return self._items(self._steps[name])
            case ir.Local(number=number) if (known := self._locals.get(number)) is not None:
                return self._items(known)
            case ir.Call(op="json.from_value", args=(inner,)):
                return self._items(inner)
            case ir.Call(op="array.concat", args=(left, right)):
                return _add_sizes([self._items(left), self._items(right)], 0)
            case ir.Call(op="array.append", args=(left, _)):
                return _add_sizes([self._items(left)], 1)
            case _:
                return None

    def _number(self, value: ir.Expression | None) -> int | None:
        match value:
            case ir.Literal(value=Json() as found):
                return int(canonical_text(found)) if canonical_text(found).isdecimal() else None
            case ir.Ref(kind="constant", name=name) if isinstance(self._constants[name][1], int):
                number = self._constants[name][1]
                assert isinstance(number, int)
                return number
            case ir.Call(op="json.from_value", args=(inner,)):
                return self._number(inner)
            case None:
                return None
            case _:
                return integer_range(value)[1] if value.type == INTEGER else None


def _members(value: ir.Expression) -> dict[str, ir.Expression]:
    """Return the members of a JSON object as expressions; none where it is no literal object."""
    match value:
        case ir.Call(op="json.from_value", args=(ir.RecordValue(fields=fields),)):
            return dict(fields)
        case _:
            return {}


def _add_sizes(sizes: list[int | None], more: int) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) + more if len(known) == len(sizes) else None


def _size_of(type_: Type, value: object) -> int:
    form = json_form(type_, value)  # type: ignore[arg-type]
    return len(json.dumps(form, ensure_ascii=True, default=str).encode())


def _max_bytes(type_: Type) -> int | None:
    match type_:
        case OptionalOf(inner):
            size = _max_bytes(inner)
            return None if size is None else max(size, len("null"))
        case Enum(members):
            return max(_BYTES_OF_CHARACTER * len(member) + 2 for member in members)
        case Record(fields):
            named = [(name, _max_bytes(each)) for name, each in fields]
            return _add_sizes([None if size is None else len(name) + 4 + size for name, size in named], 2)
        case _ if type_ == BOOLEAN:
            return len("false")
        case _:
            return None


def _list_length(value: object) -> int | None:
    if isinstance(value, Json):
        value = json.loads(canonical_text(value))
    return len(value) if isinstance(value, list) else None
