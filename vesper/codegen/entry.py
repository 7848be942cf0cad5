"""The entry of a generated module: `call(inputs)`, for a caller's own objects.

The entry tests each input by its exact type and accepts plain values directly; all other objects go to `read_inputs` of
vesper/kernels/runtime/entry.py, which has the same meaning and reports every problem. The entry is written as text of
fixed forms around identifiers from `Naming` and string literals, not as a tree: none of its expressions has a place in
the node, and a tree would double the time to generate a module. vocabulary.py checks it like all other code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise

from vesper.codegen.expressions import ExpressionWriter
from vesper.codegen.layout.expressions import render_code
from vesper.codegen.layout.lines import WIDTH
from vesper.codegen.layout.python_expression import write_string
from vesper.codegen.naming import Naming
from vesper.codegen.types import TypeWriter
from vesper.language.ir import nodes as ir
from vesper.values.model import Value
from vesper.values.types import (
    BOOLEAN,
    DECIMAL,
    FLOAT,
    INTEGER,
    JSON,
    STRING,
    ArrayOf,
    Enum,
    OptionalOf,
    Record,
    Type,
    is_changeable,
    mentions,
    type_text,
    without_null,
)

_INDENT = "    "
_TARGETS = 2
"""How many indents the names of inputs stand in."""
OWN_NAMES = frozenset({
    "INPUTS", "NOT_PLAIN", "RUN", "MAX_ENTRIES", "MAX_INTEGER", "MAX_TEXT", "MIN_INTEGER", "Any",
    "Inputs", "NotPlain", "call", "exact_entry", "get_entry", "is_ascii", "is_finite", "is_text", "new_objects",
    "read_boolean", "read_decimal", "read_inputs", "read_integer", "read_member", "read_text", "read_value",
    "type", "undecorated",
})  # fmt: skip
"""Names that the entry uses besides those of the node."""
_DOCSTRING = '"""Run the node on a caller\'s own objects; each is checked and converted first."""'


class EntryWriter:
    def __init__(
        self, node: ir.Node, naming: Naming, types: TypeWriter, expressions: ExpressionWriter, own: Mapping[str, str]
    ) -> None:
        self._node = node
        self._naming = naming
        self._types = types
        self._expressions = expressions
        self._own = own
        """Parameters that are no inputs, with their types."""
        self._readers: dict[str, tuple[str, Record]] = {}
        """The function that reads a record, by the name of its class; each after those that it calls."""

    @property
    def functions(self) -> set[str]:
        """Return the names of the functions of this module that the entry calls."""
        return {self._node.node_id, "RUN", *(name for name, _ in self._readers.values())}

    def write(self, takes_now: bool) -> str:
        """Write the declared inputs, a function for each record among them, and the entry."""
        for name in OWN_NAMES:
            self._naming.reserve(name)
        if self._is_plain:
            for each in self._node.inputs:
                self._find_records(each.type)
        readers = [self._write_reader(name, record) for name, record in self._readers.values()]
        run = [f"RUN: Final = undecorated({self._node.node_id})"] if self._is_plain else []
        blocks = [[*self._write_inputs(), *run], *readers, self._write_entry(takes_now)]
        return "\n\n\n".join("\n".join(lines) for lines in blocks) + "\n"

    @property
    def _is_plain(self) -> bool:
        return self._node.is_pure()

    def _find_records(self, type_: Type) -> None:
        """Find the records that need a reader function."""
        match type_:
            case OptionalOf(Record() as inner) | ArrayOf(Record() as inner):
                self._find_records(inner)
            case Record(fields):
                for _, field in fields:
                    self._find_records(field)
                class_name = render_code(self._types.write_annotation(type_))
                if class_name not in self._readers:
                    wanted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", class_name).lower()
                    self._readers[class_name] = self._naming.create_name(f"read_{wanted}"), type_

    def _write_inputs(self) -> list[str]:
        types = [f"{write_string(each.name)}: {write_string(type_text(each.type))}" for each in self._node.inputs]
        defaults = [
            f"{write_string(each.name)}: {self._write_default(each)}"
            for each in self._node.inputs
            if each.default is not None
        ]
        flags = [
            f"{write_string(each.flag)}: {write_string(each.name)}"
            for each in self._node.inputs
            if each.flag is not None
        ]
        rows = [_write_dict(_INDENT, each) for each in ([types, defaults, flags] if flags else [types, defaults])]
        line = f"INPUTS: Final = Inputs({', '.join(row[0].strip() for row in rows)})"
        if all(len(row) == 1 for row in rows) and len(line) <= WIDTH:
            return [line]
        return ["INPUTS: Final = Inputs(", *(line for row in rows for line in (*row[:-1], f"{row[-1]},")), ")"]

    def _write_default(self, given: ir.Input) -> str:
        """Write the default of an input; a changeable one is a constant of the module."""
        if isinstance(given.default, list | dict):
            return self._naming.name("default", given.name)
        return self._write_literal(given.type, given.default)

    def _write_literal(self, type_: Type, value: Value) -> str:
        return render_code(self._expressions.write_literal(type_, value).node)

    # -- functions --------------------------------------------------------------------------------

    def _write_reader(self, name: str, record: Record) -> list[str]:
        class_name = render_code(self._types.write_annotation(record))
        with self._open_scope():
            given = self._naming.create_name("given")
            key = self._naming.create_name("name")
            fields = [(field, self._naming.create_name(field), type_) for field, type_ in record.fields]
            optional = [field for field, _, type_ in fields if isinstance(type_, OptionalOf)]
            lines = [*self._write_name_check(given, key, len(fields), optional, 1)]
            entries = []
            for field, target, type_ in fields:
                found = f"{given}[{write_string(field)}]"
                if isinstance(type_, OptionalOf):
                    found = f"get_entry({given}, {write_string(field)})"
                if isinstance(type_, Enum) and _write_members(type_) is not None:
                    # A type checker would infer any string after a comparison with `str`.
                    lines += _write_assignment(target, f"read_member({found}, {_write_tuple(type_)})", 1)
                    entries.append(f"{write_string(field)}: {target}")
                    continue
                value, more = self._write_value(target, type_, 1)
                lines += [*_write_assignment(target, found, 1), *more]
                entries.append(f"{write_string(field)}: {value}")
            lines += _write_dict(f"{_INDENT}return ", entries)
        head = f"def {name}({given}: Any) -> {class_name}:"
        return [head, f'{_INDENT}"""Read a plain {class_name}, field by field."""', *lines]

    def _write_entry(self, takes_now: bool) -> list[str]:
        with self._open_scope():
            inputs, key = self._naming.create_name("inputs"), self._naming.create_name("name")
            targets = [(each, self._naming.create_name(each.name)) for each in self._node.inputs]
            taking = [*self._write_fast_path(inputs, key, targets)] if self._is_plain else []
        keywords = ({"now": "datetime"} if takes_now else {}) | dict(self._own)
        parameters = "".join(f", {name}: {type_}" for name, type_ in keywords.items())
        result = "Success" if self._is_plain else "Asking[Success]"
        head = f"def call({inputs}: dict[str, Any]{', *' if keywords else ''}{parameters}) -> {result}:"
        lines = [head, f"{_INDENT}{_DOCSTRING}"]
        arguments = [*self._write_arguments(targets), *(f"{name}={name}" for name in keywords)]
        if not self._is_plain:
            # Requests take much longer than reading inputs, so no fast path is needed.
            lines += _write_read([target for _, target in targets], inputs, 1)
            return [*lines, *_write_call(f"{_INDENT}return {self._node.node_id}", arguments, "")]
        around = ("return new_objects(", ")") if self._has_shared_outputs() else ("return ", "")
        return ["@exact_entry", *lines, *taking, *_write_call(f"{_INDENT}{around[0]}RUN", arguments, around[1])]

    def _write_fast_path(self, inputs: str, key: str, targets: Sequence[tuple[ir.Input, str]]) -> Iterator[str]:
        """Write the path for plain inputs; any other object sends all inputs to `read_inputs`."""
        if not targets:
            yield from _write_read([], inputs, 1)
            return
        yield f"{_INDENT}try:"
        optional = [each.name for each, _ in targets if _is_optional(each)]
        yield from self._write_name_check(inputs, key, len(targets), optional, _TARGETS)
        for each, target in targets:
            found = f"{inputs}[{write_string(each.name)}]"
            if _is_optional(each):
                default = "" if each.default is None else f", {self._write_default(each)}"
                found = f"get_entry({inputs}, {write_string(each.name)}{default})"
            value, lines = self._write_value(target, each.type, _TARGETS)
            # A member that may be left out would be any string to a type checker.
            is_member_default = isinstance(without_null(each.type), Enum) and _is_optional(each)
            yield from _write_assignment(f"{target}: Any" if is_member_default else target, found, _TARGETS)
            yield from lines
            if value != target:
                yield from _write_assignment(target, value, _TARGETS)
        yield f"{_INDENT}except NOT_PLAIN:"
        yield from _write_read([target for _, target in targets], inputs, _TARGETS)

    def _write_arguments(self, targets: Sequence[tuple[ir.Input, str]]) -> list[str]:
        """Write arguments by position, or by keyword where the function requires it."""
        absent = [_is_optional(each) for each, _ in targets]
        if all(not a or b for a, b in pairwise(absent)):
            return [target for _, target in targets]
        return [f"{self._naming.name('input', each.name)}={target}" for each, target in targets]

    def _has_shared_outputs(self) -> bool:
        """Return whether an output may be json, or share an object with another output or a constant.

        Callers then get new objects.
        """
        return any(mentions(each.type, JSON) or is_changeable(each.type) for each in self._node.outputs)

    # -- values -----------------------------------------------------------------------------------

    def _write_name_check(self, given: str, key: str, count: int, optional: Sequence[str], depth: int) -> Iterator[str]:
        """Write the test of the keys of a dict: plain strings, and as many as declared."""
        # SEMANTICS: a look-up would call methods of a subclass of str, so the names are tested first.
        indent = _INDENT * depth
        yield f"{indent}if type({given}) is not dict:"
        yield f"{indent}{_INDENT}raise NotPlain"
        yield f"{indent}for {key} in {given}:"
        yield f"{indent}{_INDENT}if type({key}) is not str:"
        yield f"{indent}{_INDENT * 2}raise NotPlain"
        present = [f"({write_string(name)} in {given})" for name in optional]
        yield from _write_length_test(f"{indent}if len({given}) != ", [str(count - len(optional)), *present], indent)
        yield f"{indent}{_INDENT}raise NotPlain"

    def _write_value(self, target: str, type_: Type, depth: int) -> tuple[str, list[str]]:
        """Write the value of the object under the name `target`, and the statements that check the object first."""
        is_optional = isinstance(type_, OptionalOf)
        inner = type_.inner if isinstance(type_, OptionalOf) else type_
        if is_optional and isinstance(inner, ArrayOf):
            return f"read_value({write_string(type_text(type_))}, {target})", []
        value, tests = self._write_check(target, inner)
        if is_optional and value != target:
            value = f"None if {target} is None else {value}"
        lines = _write_if_any(tests, f"{target} is not None" if is_optional else None, depth)
        return value, lines

    def _write_check(self, target: str, type_: Type) -> tuple[str, list[str]]:
        """Write the value of an object, and the tests that refuse the object."""
        if type_ == DECIMAL:
            zero = self._write_literal(DECIMAL, Decimal(0))
            return f"{target} + {zero}", [f"type({target}) is not Decimal", f"not is_finite({target})"]
        if type_ == INTEGER:
            return target, [f"type({target}) is not int", f"{target} < MIN_INTEGER", f"{target} > MAX_INTEGER"]
        if type_ == BOOLEAN:
            return target, [f"type({target}) is not bool"]
        if type_ == FLOAT:
            return target, [f"type({target}) is not float"]
        if type_ == STRING:
            is_text = f"not (is_ascii({target}) or is_text({target}))"
            return target, [f"type({target}) is not str", is_text, f"len({target}) > MAX_TEXT"]
        match type_:
            case Enum() if (members := _write_members(type_)) is not None:
                return target, [f"type({target}) is not str", f"{target} not in {members}"]
            case Record():
                return f"{self._find_reader(type_)}({target})", []
            case ArrayOf(element) if (read := self._write_item_reader(element)) is not None:
                tests = [f"type({target}) is not list", f"len({target}) > MAX_ENTRIES"]
                return f"[{read} for item in {target}]", tests
            case _:
                return f"read_value({write_string(type_text(type_))}, {target})", []

    def _write_item_reader(self, type_: Type) -> str | None:
        """Write the call that reads an item of an array. None for items that are collections."""
        if type_ in _READERS:
            return f"{_READERS[type_]}(item)"
        match type_:
            case Enum() if _write_members(type_) is not None:
                return f"read_member(item, {_write_tuple(type_)})"
            case Record():
                return f"{self._find_reader(type_)}(item)"
            case _:
                return None

    def _find_reader(self, record: Record) -> str:
        return self._readers[render_code(self._types.write_annotation(record))][0]

    def _open_scope(self) -> _FunctionScope:
        return _FunctionScope(self._naming, {*self.functions, "Success", "item"})


_READERS: dict[Type, str] = {
    DECIMAL: "read_decimal",
    INTEGER: "read_integer",
    BOOLEAN: "read_boolean",
    STRING: "read_text",
}


class _FunctionScope:
    """The names of one function: independent of other functions, except for shared names."""

    def __init__(self, naming: Naming, reserved: set[str]) -> None:
        self._naming = naming
        self._apart = naming.enter_function()
        self._reserved = reserved | OWN_NAMES

    def __enter__(self) -> None:
        self._apart.__enter__()
        for name in self._reserved:
            self._naming.reserve(name)

    def __exit__(self, *error: object) -> None:
        self._apart.__exit__(None, None, None)


def _write_tuple(enum: Enum) -> str:
    members = ", ".join(write_string(member) for member in enum.members)
    return f"({members}{',' * (len(enum.members) == 1)})"


def _is_optional(each: ir.Input) -> bool:
    return each.default is not None or isinstance(each.type, OptionalOf)


def _write_members(enum: Enum) -> str | None:
    """Write the members as a set; None if they do not fit on one line."""
    text = f"{{{', '.join(write_string(member) for member in enum.members)}}}"
    return text if len(text) <= WIDTH - 40 else None


# -- layout ---------------------------------------------------------------------------------------


def _write_if_any(tests: Sequence[str], unless: str | None, depth: int) -> list[str]:
    """Write `if a or b: raise NotPlain`."""
    if not tests:
        return []
    indent = _INDENT * depth
    either = " or ".join(tests)
    test = either if unless is None else f"{unless} and ({either})" if len(tests) > 1 else f"{unless} and {either}"
    return [f"{indent}if {test}:", f"{indent}{_INDENT}raise NotPlain"]


def _write_assignment(target: str, value: str, depth: int) -> list[str]:
    line = f"{_INDENT * depth}{target} = {value}"
    if len(line) <= WIDTH or " if " not in value:
        return [line]
    return [f"{_INDENT * depth}{target} = (", f"{_INDENT * (depth + 1)}{value}", f"{_INDENT * depth})"]


def _write_read(targets: Sequence[str], inputs: str, depth: int) -> list[str]:
    """Write `a, b = read_inputs(INPUTS, inputs)`."""
    indent = _INDENT * depth
    if not targets:
        return [f"{indent}read_inputs(INPUTS, {inputs})"]
    names = f"({targets[0]},)" if len(targets) == 1 else ", ".join(targets)
    head = f"{indent}{names} = read_inputs("
    if len(head) <= WIDTH:
        return [f"{head}INPUTS, {inputs})"]
    return [
        f"{indent}(",
        *(f"{indent}{_INDENT}{each}," for each in targets),
        f"{indent}) = read_inputs(INPUTS, {inputs})",
    ]


def _write_length_test(head: str, terms: Sequence[str], indent: str) -> list[str]:
    """Write `if len(x) != 5 + ("flagged" in x):`, broken by its terms where it is too long."""
    line = f"{head}{' + '.join(terms)}:"
    if len(line) <= WIDTH:
        return [line]
    rows = [f"{indent}{_INDENT}{'+ ' if position else ''}{term}" for position, term in enumerate(terms)]
    return [f"{head}(", *rows, f"{indent}):"]


def _write_call(head: str, arguments: Sequence[str], end: str) -> list[str]:
    """Write a call on one line, or with one argument per line."""
    line = f"{head}({', '.join(arguments)}){end}"
    if len(line) <= WIDTH:
        return [line]
    indent = head[: len(head) - len(head.lstrip())]
    return [f"{head}(", *(f"{indent}{_INDENT}{each}," for each in arguments), f"{indent}){end}"]


def _write_dict(head: str, entries: Sequence[str]) -> list[str]:
    """Write a dict on one line, or with one entry per line."""
    line = f"{head}{{{', '.join(entries)}}}"
    if len(line) <= WIDTH:
        return [line]
    return [f"{head}{{", *(f"{_INDENT * 2}{each}," for each in entries), f"{_INDENT}}}"]
