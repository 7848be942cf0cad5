"""Conversion of a caller's objects to values, for a whole call. Each problem has its path.

Defined in docs/spec/values.md. SAFETY: no method that a caller's subclass may override is called; collections are read
through the functions of the base types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

from vesper.values.json_value import MAX_TEXT, json_string
from vesper.values.model import (
    MAX_ENTRIES,
    Key,
    Problem,
    ProblemKind,
    Value,
    ValueProblem,
    accept,
    accept_key,
    in_order,
    is_a,
    scalar_text,
)
from vesper.values.types import (
    JSON,
    STRING,
    ArrayOf,
    Enum,
    MapOf,
    OptionalOf,
    Outside,
    Primitive,
    Record,
    SetOf,
    SpelledRecord,
    Type,
)


@final
class _Refused:
    """Placeholder for an object that is no value; the reason is among the problems."""


_REFUSED = _Refused()


@dataclass(frozen=True, slots=True)
class Absence:
    """Default of a flag: whether the caller left out the input of this name."""

    of: str


Declared: TypeAlias = Sequence[tuple[str, Type, "Value | Absence"]]
"""Inputs with name, type and default. None is the default of an optional; other types then have no default."""
_Path: TypeAlias = "str | tuple[_Path, str, object]"
"""A name, or a path with a sign and the next step. Converted to text only for a problem."""


class NotInputs(TypeError):
    """The inputs of a call are no dict of names. This is an error of the caller, not an outcome."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A problem with the expected type and the given object, for messages."""

    problem: Problem
    expected: Type | None = None
    given: object = None


def accept_inputs(declared: Declared, given: Mapping[str, object]) -> tuple[dict[str, Value], list[Problem]]:
    """Return the values in declared order, and every problem."""
    values, refusals = read_inputs(declared, given)
    return values, [each.problem for each in refusals]


def read_inputs(declared: Declared, given: Mapping[str, object]) -> tuple[dict[str, Value], list[Refusal]]:
    """Return the values in declared order, and every problem with its expected type and object."""
    if not is_a(given, dict):
        raise NotInputs(f"inputs must be a dict, not {type(given).__name__}")
    if type(given) is not dict or any(type(key) is not str for key in given):
        given = _plain(given)
    reader = _Reader()
    values: dict[str, Value] = {}
    found = 0
    for name, type_, default in declared:
        if name in given:
            found += 1
            value = reader.read(type_, given[name], name)
            if value is not _REFUSED:
                values[name] = value  # type: ignore[assignment]  # _Refused has only one instance
        elif isinstance(default, Absence):
            values[name] = default.of not in given
        elif default is not None or isinstance(type_, OptionalOf):
            values[name] = _copy_default(default)
        else:
            reader.refuse(name, ProblemKind.MISSING, type_)
    if found < len(given):
        known = {each[0] for each in declared}
        for name in sorted(set(given) - known):
            reader.refuse(name, ProblemKind.UNKNOWN, None, given[name])
    return values, reader.refusals


def _plain(given: Mapping[str, object]) -> dict[str, object]:
    """Return the inputs in a plain dict with plain names. Lookups then call no overridden methods."""
    plain: dict[str, object] = {}
    for key, value in _dict(given).items():
        if not is_a(key, str):
            raise NotInputs(f"input names must be str, not {type(key).__name__}")
        plain[str.__str__(key)] = value
    return plain


def _copy_default(default: Value) -> Value:
    """Return a copy of a default, so that executions share no mutable value."""
    match default:
        case list():
            return [_copy_default(item) for item in default]
        case dict():
            return {key: _copy_default(item) for key, item in default.items()}
        case _:
            return default


class _Reader:
    """Reads values and collects refusals."""

    def __init__(self) -> None:
        self.refusals: list[Refusal] = []

    def refuse(self, path: _Path, kind: ProblemKind, expected: Type | None, given: object = None) -> None:
        self.refusals.append(Refusal(Problem(_path_text(path), kind), expected, given))

    def read(self, type_: Type, given: object, path: _Path) -> Value | _Refused:
        try:
            if type(type_) is Primitive or type(type_) is Enum:  # the common case
                return accept(type_, given)
            match type_:
                case OptionalOf(inner):
                    return None if given is None else self.read(inner, given, path)
                case ArrayOf(element):
                    return self._items(element, _sequence(given), path)
                case SetOf(element):
                    return self._set(element, given, path)
                case MapOf():
                    return self._map(type_, _dict(given), path)
                case Record():
                    return self._record(type_, _dict(given), path)
                case _:
                    raise AssertionError(f"no value is a {type_}")
        except ValueProblem as problem:
            self.refuse(path, problem.kind, type_, given)
            return _REFUSED

    def _items(self, element: Type, items: Sequence[object], path: _Path) -> list[Value] | _Refused:
        found = [self.read(element, item, (path, "[", index)) for index, item in enumerate(items)]
        known = [item for item in found if not isinstance(item, _Refused)]
        return known if len(known) == len(found) else _REFUSED

    def _set(self, element: Type, given: object, path: _Path) -> Value | _Refused:
        stored = _members(given)
        if stored is not None:
            try:
                members = [accept_key(element, member) for member in stored]
            except ValueProblem:
                # SEMANTICS: the engines share no order of set members, so no member can be named.
                raise ValueProblem(ProblemKind.MALFORMED) from None
        else:
            items = self._items(element, _sequence(given), path)
            if isinstance(items, _Refused):
                return _REFUSED
            members = [item for item in items if isinstance(item, Key)]
        found = frozenset(members)
        if len(found) < len(members):
            raise ValueProblem(ProblemKind.DUPLICATE)
        return found

    def _map(self, type_: MapOf, given: dict[object, object], path: _Path) -> Value | _Refused:
        entries: dict[Key, object] = {}
        is_sound, is_repeated = True, False
        for key, value in given.items():
            try:
                plain = accept_key(type_.key, key)
                is_repeated = is_repeated or plain in entries
                entries[plain] = value
            except ValueProblem as problem:
                self.refuse((path, "[", "?"), problem.kind, type_.key, key)
                is_sound = False
        if is_repeated:  # two keys of str subclasses with the same text
            raise ValueProblem(ProblemKind.DUPLICATE)
        found: dict[Key, Value] = {}
        for read_key in in_order(type_.key, entries):
            value = self.read(type_.value, entries[read_key], (path, "[", _key_text(read_key)))
            if isinstance(value, _Refused):
                is_sound = False
            else:
                found[read_key] = value
        return found if is_sound else _REFUSED

    def _record(self, type_: Record, given: dict[object, object], path: _Path) -> Value | _Refused:
        if not all(is_a(key, str) for key in given):
            raise ValueProblem(ProblemKind.WRONG_TYPE)
        plain = {str.__str__(key): value for key, value in given.items() if isinstance(key, str)}
        found: dict[str, Value] = {}
        is_sound = True
        hidden = hidden_defaults(type_.outside, plain)
        for name, field in type_.fields:
            if name in plain:
                value = self.read(field, plain[name], (path, ".", name))
                if isinstance(value, _Refused):
                    is_sound = False
                else:
                    found[name] = value
            elif name in hidden:
                found[name] = hidden[name]
            elif isinstance(type_, SpelledRecord) and name in type_.sparse:
                continue
            elif isinstance(field, OptionalOf):
                found[name] = None
            else:
                self.refuse((path, ".", name), ProblemKind.MISSING, field)
                is_sound = False
        unknown = sorted(set(plain) - {name for name, _ in type_.fields})
        if isinstance(type_, SpelledRecord) and type_.is_open:
            for name in unknown:
                value = self.read(JSON, plain[name], (path, ".", name))
                if isinstance(value, _Refused):
                    is_sound = False
                elif len(name) > MAX_TEXT:
                    self.refuse((path, ".", name), ProblemKind.OUT_OF_RANGE, STRING, name)
                    is_sound = False
                else:
                    found[name] = value
            unknown = []
        for name in unknown:
            self.refuse((path, ".", name), ProblemKind.UNKNOWN, None, plain[name])
        return found if is_sound and not unknown else _REFUSED


def hidden_defaults(outside: Outside | None, given: Mapping[str, object]) -> dict[str, Value]:
    """Return the fields that a dict may leave out because JSON has no key for them: flags, and undeclared keys."""
    if outside is None:
        return {}
    flags: dict[str, Value] = {flag: name not in given for name, flag in outside.flags}
    return flags if outside.rest is None else flags | {outside.rest: {}}


def _path_text(path: _Path) -> str:
    """Return a path as text, such as `items[2].qty`."""
    steps: list[str] = []
    while not isinstance(path, str):
        path, sign, step = path
        steps.append(f"[{step}]" if sign == "[" else f".{step}")
    return path + "".join(reversed(steps))


def _key_text(key: Key) -> str:
    """Return a key for a path: a string in quotes, any other bare."""
    return json_string(key) if isinstance(key, str) else scalar_text(key)


def _check_size(entries: int) -> None:
    if entries > MAX_ENTRIES:
        raise ValueProblem(ProblemKind.OUT_OF_RANGE)


def _sequence(given: object) -> Sequence[object]:
    """Return the items of a list or tuple, read by the base type."""
    if is_a(given, list):
        _check_size(list.__len__(given))
        return given if type(given) is list else list(list.__iter__(given))
    if is_a(given, tuple):
        _check_size(tuple.__len__(given))
        return given if type(given) is tuple else tuple(tuple.__iter__(given))
    raise ValueProblem(ProblemKind.WRONG_TYPE)


def _members(given: object) -> list[object] | None:
    """Return the members of a set or frozenset, read by the base type. Returns None for other objects."""
    if is_a(given, set):
        _check_size(set.__len__(given))
        return list(set.__iter__(given))
    if is_a(given, frozenset):
        _check_size(frozenset.__len__(given))
        return list(frozenset.__iter__(given))
    return None


def _dict(given: object) -> dict[object, object]:
    """Return the entries of a dict, read by the base type."""
    if not is_a(given, dict):
        raise ValueProblem(ProblemKind.WRONG_TYPE)
    _check_size(dict.__len__(given))
    return given if type(given) is dict else dict(dict.items(given))
