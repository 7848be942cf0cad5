"""The entry of a generated module: `call(inputs)`, for a caller's own objects.

It looks at each input by its exact type and takes what is a value already; whatever else there is goes to
`read_inputs` of vesper/kernels/runtime/entry.py, which means the same and knows every problem. This is text of fixed
forms
around identifiers that `Naming` gave and string literals, not a tree: nothing in it can fail at a place of its own, and
a tree would double the time that a module takes. vocabulary.py looks at it as at all the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise

from vesper.codegen.expressions import ExpressionWriter
from vesper.codegen.layout.expressions import code_of
from vesper.codegen.layout.lines import WIDTH
from vesper.codegen.layout.python_expression import string_literal
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
)

_INDENT = "    "
_TARGETS = 2
"""How many indents the names of inputs stand in."""
OWN_NAMES = frozenset({
    "INPUTS", "NOT_PLAIN", "RUN", "MAX_ENTRIES", "MAX_INTEGER", "MAX_TEXT", "MIN_INTEGER", "Any",
    "Inputs", "NotPlain", "call", "exact_entry", "is_ascii", "is_finite", "is_text", "new_objects",
    "read_boolean", "read_decimal", "read_inputs", "read_integer", "read_member", "read_text", "read_value",
    "type", "undecorated",
})  # fmt: skip
"""What the entry mentions besides the names of the node."""
_DOCSTRING = '"""The same for a caller\'s own objects: each is checked and made a value first."""'


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
        """What the entry calls that only this module has."""
        return {self._node.node_id, "RUN", *(name for name, _ in self._readers.values())}

    def text(self, takes_now: bool) -> str:
        """The declared inputs, a function for each record among them, and the entry."""
        for name in OWN_NAMES:
            self._naming.reserve(name)
        if self._is_plain:
            for each in self._node.inputs:
                self._find_records(each.type)
        readers = [self._reader(name, record) for name, record in self._readers.values()]
        run = [f"RUN: Final = undecorated({self._node.node_id})"] if self._is_plain else []
        blocks = [[*self._declared(), *run], *readers, self._entry(takes_now)]
        return "\n\n\n".join("\n".join(lines) for lines in blocks) + "\n"

    @property
    def _is_plain(self) -> bool:
        return self._node.is_pure()

    def _find_records(self, type_: Type) -> None:
        """The records that are read by functions of their own."""
        match type_:
            case OptionalOf(Record() as inner) | ArrayOf(Record() as inner):
                self._find_records(inner)
            case Record(fields):
                for _, field in fields:
                    self._find_records(field)
                class_name = code_of(self._types.annotation(type_))
                if class_name not in self._readers:
                    wanted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", class_name).lower()
                    self._readers[class_name] = self._naming.fresh(f"read_{wanted}"), type_

    def _declared(self) -> list[str]:
        types = [f"{string_literal(each.name)}: {string_literal(type_text(each.type))}" for each in self._node.inputs]
        defaults = [
            f"{string_literal(each.name)}: {self._literal(each.type, each.default)}"
            for each in self._node.inputs
            if each.default is not None
        ]
        rows = [_display(_INDENT, types), _display(_INDENT, defaults)]
        line = f"INPUTS: Final = Inputs({rows[0][0].strip()}, {rows[1][0].strip()})"
        if len(rows[0]) == len(rows[1]) == 1 and len(line) <= WIDTH:
            return [line]
        return ["INPUTS: Final = Inputs(", *(line for row in rows for line in (*row[:-1], f"{row[-1]},")), ")"]

    def _literal(self, type_: Type, value: Value) -> str:
        return code_of(self._expressions.literal(type_, value).node)

    # -- functions --------------------------------------------------------------------------------

    def _reader(self, name: str, record: Record) -> list[str]:
        class_name = code_of(self._types.annotation(record))
        with self._own_scope():
            given = self._naming.fresh("given")
            key = self._naming.fresh("name")
            fields = [(field, self._naming.fresh(field), type_) for field, type_ in record.fields]
            optional = [field for field, _, type_ in fields if isinstance(type_, OptionalOf)]
            lines = [*self._names(given, key, len(fields), optional, 1)]
            entries = []
            for field, target, type_ in fields:
                found = f"{given}[{string_literal(field)}]"
                if isinstance(type_, OptionalOf):
                    found = f"{found} if {string_literal(field)} in {given} else None"
                if isinstance(type_, Enum) and _members(type_) is not None:
                    # A type checker would take what was compared with `str` for any string.
                    lines += _assigned(target, f"read_member({found}, {_tuple(type_)})", 1)
                    entries.append(f"{string_literal(field)}: {target}")
                    continue
                value, more = self._value(target, type_, 1)
                lines += [*_assigned(target, found, 1), *more]
                entries.append(f"{string_literal(field)}: {value}")
            lines += _display(f"{_INDENT}return ", entries)
        head = f"def {name}({given}: Any) -> {class_name}:"
        return [head, f'{_INDENT}"""What is a {class_name} already, field by field."""', *lines]

    def _entry(self, takes_now: bool) -> list[str]:
        with self._own_scope():
            inputs, key = self._naming.fresh("inputs"), self._naming.fresh("name")
            targets = [(each, self._naming.fresh(each.name)) for each in self._node.inputs]
            taking = [*self._taking(inputs, key, targets)] if self._is_plain else []
        keywords = ({"now": "datetime"} if takes_now else {}) | dict(self._own)
        parameters = "".join(f", {name}: {type_}" for name, type_ in keywords.items())
        result = "Success" if self._is_plain else "Asking[Success]"
        head = f"def call({inputs}: dict[str, Any]{', *' if keywords else ''}{parameters}) -> {result}:"
        lines = [head, f"{_INDENT}{_DOCSTRING}"]
        arguments = [*self._arguments(targets), *(f"{name}={name}" for name in keywords)]
        if not self._is_plain:
            # What it asks for takes longer than reading its inputs ever does.
            lines += _read([target for _, target in targets], inputs, 1)
            return [*lines, *_call(f"{_INDENT}return {self._node.node_id}", arguments, "")]
        around = ("return new_objects(", ")") if self._shares() else ("return ", "")
        return ["@exact_entry", *lines, *taking, *_call(f"{_INDENT}{around[0]}RUN", arguments, around[1])]

    def _taking(self, inputs: str, key: str, targets: Sequence[tuple[ir.Input, str]]) -> Iterator[str]:
        """Inputs that are values already, one after another; any that is none sends all of them to be read."""
        if not targets:
            yield from _read([], inputs, 1)
            return
        yield f"{_INDENT}try:"
        optional = [each.name for each, _ in targets if _may_be_absent(each)]
        yield from self._names(inputs, key, len(targets), optional, _TARGETS)
        for each, target in targets:
            found = f"{inputs}[{string_literal(each.name)}]"
            if _may_be_absent(each):
                default = self._literal(each.type, each.default)
                found = f"{found} if {string_literal(each.name)} in {inputs} else {default}"
            value, lines = self._value(target, each.type, _TARGETS)
            is_told = (
                isinstance(each.type, Enum) and each.default is not None
            )  # else it is any string to a type checker
            yield from _assigned(f"{target}: Any" if is_told else target, found, _TARGETS)
            yield from lines
            if value != target:
                yield from _assigned(target, value, _TARGETS)
        yield f"{_INDENT}except NOT_PLAIN:"
        yield from _read([target for _, target in targets], inputs, _TARGETS)

    def _arguments(self, targets: Sequence[tuple[ir.Input, str]]) -> list[str]:
        """By position, or by keyword where the function takes its inputs so."""
        absent = [_may_be_absent(each) for each, _ in targets]
        if all(not a or b for a, b in pairwise(absent)):
            return [target for _, target in targets]
        return [f"{self._naming.name('input', each.name)}={target}" for each, target in targets]

    def _shares(self) -> bool:
        """True where an output may be json, or share an object with another one or with a constant: then callers get
        new objects."""
        return any(mentions(each.type, JSON) or is_changeable(each.type) for each in self._node.outputs)

    # -- values -----------------------------------------------------------------------------------

    def _names(self, given: str, key: str, count: int, optional: Sequence[str], depth: int) -> Iterator[str]:
        """A dict under plain names, as many as there are to know."""
        # SEMANTICS: a look-up would call what a subclass of str overrides, so the names come first.
        indent = _INDENT * depth
        yield f"{indent}if type({given}) is not dict:"
        yield f"{indent}{_INDENT}raise NotPlain"
        yield f"{indent}for {key} in {given}:"
        yield f"{indent}{_INDENT}if type({key}) is not str:"
        yield f"{indent}{_INDENT * 2}raise NotPlain"
        present = [f"({string_literal(name)} in {given})" for name in optional]
        yield from _sum_test(f"{indent}if len({given}) != ", [str(count - len(optional)), *present], indent)
        yield f"{indent}{_INDENT}raise NotPlain"

    def _value(self, target: str, type_: Type, depth: int) -> tuple[str, list[str]]:
        """The expression of a value that a name has the object of, and the statements that check it first."""
        is_optional = isinstance(type_, OptionalOf)
        inner = type_.inner if isinstance(type_, OptionalOf) else type_
        if is_optional and isinstance(inner, ArrayOf):
            return f"read_value({string_literal(type_text(type_))}, {target})", []
        value, tests = self._checked(target, inner)
        if is_optional and value != target:
            value = f"None if {target} is None else {value}"
        lines = _if_any(tests, f"{target} is not None" if is_optional else None, depth)
        return value, lines

    def _checked(self, target: str, type_: Type) -> tuple[str, list[str]]:
        """The value, and what the object must not be."""
        if type_ == DECIMAL:
            zero = self._literal(DECIMAL, Decimal(0))
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
            case Enum() if (members := _members(type_)) is not None:
                return target, [f"type({target}) is not str", f"{target} not in {members}"]
            case Record():
                return f"{self._reader_of(type_)}({target})", []
            case ArrayOf(element) if (read := self._item(element)) is not None:
                tests = [f"type({target}) is not list", f"len({target}) > MAX_ENTRIES"]
                return f"[{read} for item in {target}]", tests
            case _:
                return f"read_value({string_literal(type_text(type_))}, {target})", []

    def _item(self, type_: Type) -> str | None:
        """What reads the item of an array; None for items that are arrays, sets or maps themselves."""
        if type_ in _READERS:
            return f"{_READERS[type_]}(item)"
        match type_:
            case Enum() if _members(type_) is not None:
                return f"read_member(item, {_tuple(type_)})"
            case Record():
                return f"{self._reader_of(type_)}(item)"
            case _:
                return None

    def _reader_of(self, record: Record) -> str:
        return self._readers[code_of(self._types.annotation(record))][0]

    def _own_scope(self) -> _Scope:
        return _Scope(self._naming, {*self.functions, "Success", "item"})


_READERS: dict[Type, str] = {
    DECIMAL: "read_decimal",
    INTEGER: "read_integer",
    BOOLEAN: "read_boolean",
    STRING: "read_text",
}


class _Scope:
    """The names of one function: free of those of others, apart from what every function here mentions."""

    def __init__(self, naming: Naming, reserved: set[str]) -> None:
        self._naming = naming
        self._apart = naming.apart()
        self._reserved = reserved | OWN_NAMES

    def __enter__(self) -> None:
        self._apart.__enter__()
        for name in self._reserved:
            self._naming.reserve(name)

    def __exit__(self, *error: object) -> None:
        self._apart.__exit__(None, None, None)


def _tuple(enum: Enum) -> str:
    members = ", ".join(string_literal(member) for member in enum.members)
    return f"({members}{',' * (len(enum.members) == 1)})"


def _may_be_absent(each: ir.Input) -> bool:
    return each.default is not None or isinstance(each.type, OptionalOf)


def _members(enum: Enum) -> str | None:
    """The members as Python compares best with; None for so many that nobody would read them here."""
    text = f"{{{', '.join(string_literal(member) for member in enum.members)}}}"
    return text if len(text) <= WIDTH - 40 else None


# -- layout ---------------------------------------------------------------------------------------


def _if_any(tests: Sequence[str], unless: str | None, depth: int) -> list[str]:
    """`if a or b: raise NotPlain`, on one line or one test a line."""
    if not tests:
        return []
    indent = _INDENT * depth
    either = " or ".join(tests)
    test = either if unless is None else f"{unless} and ({either})" if len(tests) > 1 else f"{unless} and {either}"
    line = f"{indent}if {test}:"
    if len(line) <= WIDTH:
        return [line, f"{indent}{_INDENT}raise NotPlain"]
    first, *others = tests
    if unless is not None:
        return [f"{indent}if {unless}:", *_if_any(tests, None, depth + 1)]
    rows = [f"{indent}{_INDENT}{first}", *(f"{indent}{_INDENT}or {each}" for each in others)]
    return [f"{indent}if (", *rows, f"{indent}):", f"{indent}{_INDENT}raise NotPlain"]


def _assigned(target: str, value: str, depth: int) -> list[str]:
    line = f"{_INDENT * depth}{target} = {value}"
    if len(line) <= WIDTH or " if " not in value:
        return [line]
    return [f"{_INDENT * depth}{target} = (", f"{_INDENT * (depth + 1)}{value}", f"{_INDENT * depth})"]


def _read(targets: Sequence[str], inputs: str, depth: int) -> list[str]:
    """`a, b = read_inputs(INPUTS, inputs)`."""
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


def _sum_test(head: str, terms: Sequence[str], indent: str) -> list[str]:
    """`if len(x) != 5 + ("flagged" in x):`, broken by its terms where it is too long."""
    line = f"{head}{' + '.join(terms)}:"
    if len(line) <= WIDTH:
        return [line]
    rows = [f"{indent}{_INDENT}{'+ ' if position else ''}{term}" for position, term in enumerate(terms)]
    return [f"{head}(", *rows, f"{indent}):"]


def _call(head: str, arguments: Sequence[str], end: str) -> list[str]:
    """A call on one line, or with one argument a line."""
    line = f"{head}({', '.join(arguments)}){end}"
    if len(line) <= WIDTH:
        return [line]
    indent = head[: len(head) - len(head.lstrip())]
    return [f"{head}(", *(f"{indent}{_INDENT}{each}," for each in arguments), f"{indent}){end}"]


def _display(head: str, entries: Sequence[str]) -> list[str]:
    """A dict on one line, or with one entry a line."""
    line = f"{head}{{{', '.join(entries)}}}"
    if len(line) <= WIDTH:
        return [line]
    return [f"{head}{{", *(f"{_INDENT * 2}{each}," for each in entries), f"{_INDENT}}}"]
