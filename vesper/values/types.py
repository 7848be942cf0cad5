"""Types of the language as Python values: equality, text, and matching.

Types are texts in nodes, in `schemas/ops` and in messages; `str(type)` is that text. The front end has its own parser
for nodes, because it needs spans; the parser here reads declarations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias


@dataclass(frozen=True, slots=True, eq=False)
class Primitive:
    """A built-in type without parts.

    INVARIANT: one object exists per name, so equality is identity, which is tested thousands of times per node.
    """

    name: str

    def __reduce__(self) -> tuple[object, ...]:
        return _primitive, (self.name,)  # a copy is the same object

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Enum:
    """An enum by its members, in declared order.

    `outside` has the text of each member in JSON and Arrow, or is empty; it takes no part in equality.
    """

    members: tuple[str, ...]
    outside: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return f"enum[{', '.join(self.members)}]"


@dataclass(frozen=True, slots=True)
class ArrayOf:
    element: Type

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True, slots=True)
class SetOf:
    element: Type

    def __str__(self) -> str:
        return f"set<{self.element}>"


@dataclass(frozen=True, slots=True)
class MapOf:
    key: Type
    value: Type

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class OptionalOf:
    """The only type with null. INVARIANT: never nested in another optional."""

    inner: Type

    def __str__(self) -> str:
        return f"optional<{self.inner}>"


@dataclass(frozen=True, slots=True)
class Outside:
    """How the fields of a record are written in JSON and Arrow, where that differs from their names."""

    names: tuple[tuple[str, str], ...] = ()
    """Fields with another name outside, and that name."""
    flags: tuple[tuple[str, str], ...] = ()
    """Fields with a flag, and the boolean field that is true where a caller left the field out."""
    rest: str | None = None
    """Field that holds the undeclared keys: a map<string, json>."""

    def name_of(self, name: str) -> str:
        return next((outside for inside, outside in self.names if inside == name), name)

    def hidden(self) -> set[str]:
        """Return the fields that have no key of their own outside."""
        return {flag for _, flag in self.flags} | ({self.rest} if self.rest is not None else set())


@dataclass(frozen=True, slots=True)
class Record:
    """Named fields in declared order. Structural: records with equal fields are the same type.

    `name` is the declared name for messages. It takes no part in equality, nor does `outside`.
    """

    fields: tuple[tuple[str, Type], ...]
    name: str | None = None
    outside: Outside | None = None

    def field(self, name: str) -> Type | None:
        return next((type_ for own, type_ in self.fields if own == name), None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self.fields == other.fields

    def __hash__(self) -> int:
        return hash(self.fields)

    def __str__(self) -> str:
        return self.name or "{" + ", ".join(f"{name}: {type_}" for name, type_ in self.fields) + "}"


@dataclass(frozen=True, slots=True, eq=False)
class SpelledRecord(Record):
    """A record by its outside names, as JSON has it; never the type of a value inside an execution."""

    is_open: bool = False
    """Whether undeclared keys are values too, each a json."""
    sparse: frozenset[str] = frozenset()
    """Optional fields that a value leaves out where they are absent."""


@dataclass(frozen=True, slots=True, eq=False)
class Recursive:
    """A record type that contains itself; only the checker knows it, and the IR has json instead.

    INVARIANT: one object exists per declaration, so equality is identity. `complete` sets its fields once.
    """

    name: str
    fields: tuple[tuple[str, Type], ...] = ()
    outside: Outside | None = None

    def complete(self, fields: tuple[tuple[str, Type], ...], outside: Outside | None) -> None:
        """Set the fields, which can refer to the type itself."""
        object.__setattr__(self, "fields", fields)
        object.__setattr__(self, "outside", outside)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Parameter:
    """A type parameter of a declared operation; never the type of a value."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Function:
    """The function that a form evaluates for each item; never the type of a value."""

    parameters: tuple[Type, ...]
    result: Type

    def __str__(self) -> str:
        return f"fn({', '.join(str(each) for each in self.parameters)}) -> {self.result}"


Type: TypeAlias = Primitive | Enum | ArrayOf | SetOf | MapOf | OptionalOf | Record | Recursive | Parameter | Function

BOOLEAN = Primitive("boolean")
INTEGER = Primitive("integer")
DECIMAL = Primitive("decimal")
FLOAT = Primitive("float")
STRING = Primitive("string")
BYTES = Primitive("bytes")
TIMESTAMP = Primitive("timestamp")
DATE = Primitive("date")
DURATION = Primitive("duration")
TIME_OF_DAY = Primitive("time_of_day")
PERIOD = Primitive("period")
JSON = Primitive("json")
NULL = Primitive("null")
"""Type of the literal `null` only; it fits every optional and nothing else."""

_ALL = (BOOLEAN, INTEGER, DECIMAL, FLOAT, STRING, BYTES, TIMESTAMP, DATE, DURATION, TIME_OF_DAY, PERIOD, JSON)
PRIMITIVES: Mapping[str, Primitive] = {each.name: each for each in _ALL}


def _primitive(name: str) -> Primitive:
    return NULL if name == NULL.name else PRIMITIVES[name]


_KEYS = (STRING, INTEGER, BOOLEAN, DATE, TIMESTAMP, BYTES)
KEY_TYPES = "string, integer, boolean, date, timestamp, bytes or an enum"
"""Text of the key types, for messages."""
_ORDERED = (STRING, INTEGER, DECIMAL, FLOAT, DATE, TIMESTAMP, DURATION, TIME_OF_DAY, PERIOD, BOOLEAN, BYTES)
_NUMBERS = (INTEGER, DECIMAL, FLOAT)


def is_key(type_: Type) -> bool:
    """Return whether the type can be a map key or set element. Such types have exact equality and order."""
    return type_ in _KEYS or isinstance(type_, Enum)


def is_ordered(type_: Type) -> bool:
    """Return whether values of the type can be sorted; `<` is defined for fewer types.

    Arrays and records of ordered types are ordered, with optionals inside of them; an optional alone is not.
    """
    match type_:
        case ArrayOf(inner):
            return is_sortable(inner)
        case Record(fields):
            return all(is_sortable(inner) for _, inner in fields)
        case _:
            return type_ in _ORDERED or isinstance(type_, Enum)


def is_sortable(type_: Type) -> bool:
    """Return whether values of the type can be keys of a `sort_by`: ordered ones, and optionals of them."""
    return is_ordered(without_null(type_))


def fits_bound(type_: Type, bound: str) -> bool:
    """Return whether the type may replace a type parameter with this bound."""
    match bound:
        case "key":
            return is_key(type_)
        case "enum":
            return isinstance(type_, Enum)
        case "ordered":
            return is_ordered(type_)
        case "number":
            return type_ in _NUMBERS
        case "record":
            return isinstance(type_, Record)
        case "any":
            return type_ != NULL  # NULL is the type of a literal without context
        case _:
            raise ValueError(f"no bound is called `{bound}`")


def without_null(type_: Type) -> Type:
    return type_.inner if isinstance(type_, OptionalOf) else type_


def optional(type_: Type) -> Type:
    """Return the type with null; an optional is returned unchanged."""
    return type_ if isinstance(type_, OptionalOf) else OptionalOf(type_)


def is_changeable(type_: Type) -> bool:
    """Return whether values of the type are mutable Python objects."""
    match type_:
        case ArrayOf() | MapOf() | Record():
            return True
        case OptionalOf(inner):
            return is_changeable(inner)
        case _:
            return False


def mentions(type_: Type, part: Type) -> bool:
    """Return whether values of the type may contain a value of another type."""
    match type_:
        case OptionalOf(inner) | ArrayOf(inner) | SetOf(inner):
            return mentions(inner, part)
        case MapOf(key, value):
            return mentions(key, part) or mentions(value, part)
        case Record(fields):
            return any(mentions(field, part) for _, field in fields)
        case _:
            return type_ == part


# -- types of declarations ------------------------------------------------------------------------

_WORD = re.compile(r"""\s*(->|[@?][A-Za-z0-9_$;]+|\*|[A-Za-z_][A-Za-z0-9_]*|'[^']*'|"[^"]*"|[<>\[\](){},:])""")


@cache
def declared_type(text: str) -> Type:
    """Return the type of a declaration text. A single word that is no type is a type parameter.

    Also reads the texts of `type_text`.
    """
    words = _WORD.findall(text)
    type_, rest = _read(tuple(words))
    if rest or "".join("".join(words).split()) != "".join(text.split()):
        raise ValueError(f"not a type: {text}")
    return type_


def type_text(type_: Type, has_outside: bool = True) -> str:
    """Return a type in full, as a node writes it. Records are written by fields, unusual members in quotes.

    With `has_outside`, which no node writes, a name has its outside name and flag (`unit_price@unitPrice`,
    `note?note_absent`), and the field of undeclared keys a star.
    """

    def text(part: Type) -> str:
        return type_text(part, has_outside)

    match type_:
        case Enum(members, outside):
            texts = outside if has_outside and outside else members
            return f"enum[{', '.join(map(_member_text, members, texts))}]"
        case ArrayOf(element):
            return f"array<{text(element)}>"
        case SetOf(element):
            return f"set<{text(element)}>"
        case MapOf(key, value):
            return f"map<{text(key)}, {text(value)}>"
        case OptionalOf(inner):
            return f"optional<{text(inner)}>"
        case Record(fields):
            written = type_.outside if has_outside else None
            return "{" + ", ".join(f"{_field_text(name, written)}: {text(of)}" for name, of in fields) + "}"
        case _:
            return str(type_)


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _member_text(member: str, outside: str) -> str:
    mark = "" if outside == member else _outside_text(outside)
    if _NAME.fullmatch(member):
        return member + mark
    # A node cannot write a member with both quotes.
    return (f'"{member}"' if "'" in member else f"'{member}'") + mark


def _field_text(name: str, outside: Outside | None) -> str:
    if outside is None:
        return name
    text = f"*{name}" if outside.rest == name else name
    named = outside.name_of(name)
    flag = dict(outside.flags).get(name)
    return text + ("" if named == name else _outside_text(named)) + ("" if flag is None else f"?{flag}")


def _outside_text(text: str) -> str:
    """Return an outside name as one word."""
    return "@" + re.sub(r"[^A-Za-z0-9_]", lambda found: f"${ord(found[0]):x};", text)


def _outside_name(word: str) -> str:
    return re.sub(r"\$([0-9a-f]+);", lambda found: chr(int(found[1], 16)), word[1:])


def _read(words: tuple[str, ...]) -> tuple[Type, tuple[str, ...]]:
    head, rest = words[0], words[1:]
    if head == "enum":
        return _read_enum(rest[1:])
    if head == "{":
        return _read_record(rest)
    if head == "fn":
        parameters, rest = _read_list(rest[1:], ")")
        result, rest = _read(rest[2:])
        return Function(parameters, result), rest
    if head in ("array", "set", "map", "optional"):
        inner, rest = _read_list(rest[1:], ">")
        return _apply(head, inner), rest[1:]
    return PRIMITIVES.get(head, Parameter(head)), rest


def _apply(head: str, inner: tuple[Type, ...]) -> Type:
    match head, inner:
        case "array", (element,):
            return ArrayOf(element)
        case "set", (element,):
            return SetOf(element)
        case "map", (key, value):
            return MapOf(key, value)
        case "optional", (element,):
            return OptionalOf(element)
        case _:
            raise ValueError(f"{head} with {len(inner)} types")


def _read_list(words: tuple[str, ...], end: str) -> tuple[tuple[Type, ...], tuple[str, ...]]:
    found: list[Type] = []
    while words[0] != end:
        type_, words = _read(words)
        found.append(type_)
        words = words[1:] if words[0] == "," else words
    return tuple(found), words


def _read_record(words: tuple[str, ...]) -> tuple[Type, tuple[str, ...]]:
    """Read `key: K, value: V}` and return the remaining words."""
    fields: list[tuple[str, Type]] = []
    names: list[tuple[str, str]] = []
    flags: list[tuple[str, str]] = []
    open_field: str | None = None
    while words[0] != "}":
        is_open = words[0] == "*"
        name, words = (words[1], words[2:]) if is_open else (words[0], words[1:])
        open_field = name if is_open else open_field
        if words[0][0] == "@":
            names.append((name, _outside_name(words[0])))
            words = words[1:]
        if words[0][0] == "?":
            flags.append((name, words[0][1:]))
            words = words[1:]
        type_, words = _read(words[1:])
        fields.append((name, type_))
        words = words[1:] if words[0] == "," else words
    outside = Outside(tuple(names), tuple(flags), open_field)
    return Record(tuple(fields), None, None if outside == Outside() else outside), words[1:]


def _read_enum(words: tuple[str, ...]) -> tuple[Type, tuple[str, ...]]:
    """Read `a, 'b c'@text]` and return the remaining words."""
    members: list[str] = []
    texts: list[str] = []
    while words[0] != "]":
        word, words = words[0], words[1:]
        if word[0] == "@":
            texts[-1] = _outside_name(word)
        elif word != ",":
            members.append(word[1:-1] if word[0] in "'\"" else word)
            texts.append(members[-1])
    return Enum(tuple(members), () if texts == members else tuple(texts)), words[1:]


def match_declared(pattern: Type, actual: Type, bindings: dict[str, Type]) -> bool:
    """Match a type against a declared one and bind its type parameters.

    `match_declared(declared_type("set<T>"), SetOf(STRING), {})` is true and binds `T` to string.
    """
    if type(pattern) is Primitive:  # the common case
        return pattern is actual or pattern == actual
    match pattern, actual:
        case Parameter(name), _:
            return bindings.setdefault(name, actual) == actual
        case (ArrayOf(a), ArrayOf(b)) | (SetOf(a), SetOf(b)) | (OptionalOf(a), OptionalOf(b)):
            return match_declared(a, b, bindings)
        case MapOf(k, v), MapOf(other_k, other_v):
            return match_declared(k, other_k, bindings) and match_declared(v, other_v, bindings)
        case Record(fields), Record(others):
            return [name for name, _ in fields] == [name for name, _ in others] and all(
                match_declared(a, b, bindings) for (_, a), (_, b) in zip(fields, others, strict=True)
            )
        case _:
            return pattern == actual


def substitute(pattern: Type, bindings: Mapping[str, Type]) -> Type:
    """Return a declared type with its type parameters replaced."""
    match pattern:
        case Parameter(name):
            return bindings[name]
        case ArrayOf(element):
            return ArrayOf(substitute(element, bindings))
        case SetOf(element):
            return SetOf(substitute(element, bindings))
        case MapOf(key, value):
            return MapOf(substitute(key, bindings), substitute(value, bindings))
        case OptionalOf(inner):
            return optional(substitute(inner, bindings))
        case Record(fields, record_name, outside):
            return Record(tuple((name, substitute(each, bindings)) for name, each in fields), record_name, outside)
        case Function(parameters, result):
            return Function(tuple(substitute(each, bindings) for each in parameters), substitute(result, bindings))
        case _:
            return pattern
