"""Inputs that resemble code, and objects with hostile methods, on every engine.

Inputs are read by their base value. Methods of subclasses or foreign classes are never called, so both engines see the
same.
"""

from __future__ import annotations

import datetime as dt
import pickle
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.integration.security.watch import untouched, watched
from tests.support.nodes import small_node
from vesper.engines.compare import same_outcome
from vesper.engines.engine import Program
from vesper.engines.outcome import EngineFault, Failed, Outcome, Returned
from vesper.engines.registry import ENGINES
from vesper.values.model import same


@cache
def _echoes(type_: str) -> dict[str, Program]:
    """Return a node that returns its input, on every engine."""
    node = small_node(
        f"x: {type_}",
        "- {operation: return, success: {result: x}}",
        outputs=f"result: {type_}",
        rest="types: {Line: {fields: {label: string}}}" if "Line" in type_ else "",
    )
    return {name: engine.load(node) for name, engine in ENGINES.items()}


def _outcome(type_: str, value: object, canary: Path) -> Outcome:
    """Return the common outcome of all engines, each watched while it runs."""
    outcomes: list[Outcome] = []
    for program in _echoes(type_).values():
        with watched(canary):
            outcomes.append(program.call({"x": value}))
    first, *others = outcomes
    assert not isinstance(first, EngineFault), first
    assert all(same_outcome(first, other) for other in others), outcomes
    return first


class _Bomb:
    """An object that would start a process when unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str, ...]]:
        import os

        return os.system, ("touch CANARY",)


DATA: list[tuple[str, str, object]] = [
    ("a call", "string", "__import__('os').system('touch CANARY')"),
    ("a format", "string", "{0.__class__.__init__.__globals__}"),
    ("a hole", "string", "{x} {x.__class__} {{x}}"),
    ("a percent format", "string", "%(x)s %s %n %x"),
    ("a template of a shell", "string", "$(touch CANARY) `touch CANARY`"),
    ("a template language", "string", "{{ ''.__class__ }} ${7*7} <%= 7 %>"),
    ("SQL", "string", "'; DROP TABLE people; --"),
    ("line ends of all kinds", "string", "a\nb\rc\u2028d\x0ce\x85f\x00g"),
    ("escapes", "string", "\\N{DIGIT ONE}\\x41\\u0041\\"),
    ("triple quotes", "string", '"""\'\'\'"""'),
    ("a very long text", "string", "{" * 100_000),
    ("a pickle", "bytes", pickle.dumps(_Bomb())),
    ("a marshalled code", "bytes", b"\xe3\x00\x00\x00\x00"),
    ("dunder keys", "map<string, string>", {"__builtins__": "c", "__class__": "a", "__init__": "b"}),
    ("dunder keys of a json", "json", {"__class__": {"__reduce__": ["os.system", ["x"]]}, "py/object": "os.system"}),
    ("a tag of YAML in a json", "json", {"!!python/object/apply:os.system": ["x"]}),
    ("dunder members", "array<string>", ["__class__", "__import__('os')"]),
    ("dunders in a record", "Line", {"label": "{0.__class__}"}),
]


@pytest.mark.parametrize("type_, value", [(t, v) for _, t, v in DATA], ids=[name for name, _, _ in DATA])
def test_data_that_looks_like_code_is_data(type_: str, value: object, tmp_path: Path) -> None:
    outcome = _outcome(type_, value, tmp_path / "canary")
    assert isinstance(outcome, Returned)
    assert same(outcome.value["result"], value)


UNKNOWN = ("__class__", "__init__", "__dict__", "self", "mark", "now", "x.__class__", "x\nimport this", "", "result")


@pytest.mark.parametrize("name", UNKNOWN, ids=ascii)
def test_a_name_that_no_input_has_is_a_problem(name: str, tmp_path: Path) -> None:
    for program in _echoes("string").values():
        with watched(tmp_path / "canary"):
            outcome = program.call({"x": "a", name: "b"})
        assert isinstance(outcome, Failed)
        assert [problem.kind.value for problem in outcome.problems] == ["unknown"]


CALLED: list[str] = []
"""Methods that were called; must stay empty."""
_HOOKS = (
    "__eq__", "__ne__", "__hash__", "__len__", "__iter__", "__bool__", "__str__", "__repr__", "__format__", "__int__",
    "__index__", "__float__", "__lt__", "__gt__", "__contains__", "__getitem__", "__reduce_ex__", "__add__", "__mul__",
    "__call__", "__next__", "__bytes__", "__fspath__", "__enter__", "__complex__", "__round__", "__trunc__",
    "__floor__", "__abs__", "__neg__", "keys", "values", "items", "get", "as_tuple", "isoformat", "utcoffset", "encode",
    "as_integer_ratio", "bit_length", "total_seconds", "timestamp", "astimezone", "tobytes", "copy", "__copy__",
)  # fmt: skip


def _hook(name: str) -> Any:
    def called(*_: object, **__: object) -> Any:
        CALLED.append(name)
        raise RuntimeError(f"{name} was called")

    return called


def hostile(base: type, *, also: tuple[str, ...] = ()) -> type:
    """Return a subclass that records every call of an overridable method."""
    members: dict[str, Any] = {name: _hook(name) for name in (*_HOOKS, *also)}
    return type(f"Hostile{base.__name__.title()}", (base,), members)


class _Meta(type):
    """A metaclass that claims to be every class."""

    def __instancecheck__(cls, instance: object) -> bool:
        CALLED.append("__instancecheck__")
        return True

    def __subclasscheck__(cls, subclass: type) -> bool:
        CALLED.append("__subclasscheck__")
        return True

    def __getattribute__(cls, name: str) -> Any:
        if name not in ("__name__", "__mro__", "__class__", "__dict__", "__qualname__", "__module__"):
            CALLED.append(f"type.{name}")
        return type.__getattribute__(cls, name)


class Everything(metaclass=_Meta):
    def __getattr__(self, name: str) -> Any:
        CALLED.append(name)
        return self


class Impostor:
    """An object with an arbitrary `__class__`."""

    def __init__(self, kind: type) -> None:
        object.__setattr__(self, "kind", kind)

    def __getattribute__(self, name: str) -> Any:
        if name != "__class__":
            CALLED.append(name)
        return object.__getattribute__(self, "kind") if name == "__class__" else None


def _generator() -> Iterator[str]:
    CALLED.append("a generator went on")
    yield "a"


TAKEN: list[tuple[str, Any, object]] = [
    ("string", hostile(str)("mine"), "mine"),
    ("integer", hostile(int)(7), 7),
    ("decimal", hostile(Decimal)("1.50"), Decimal("1.50")),
    ("decimal", hostile(int)(7), Decimal(7)),
    ("decimal", hostile(str)("1.50"), Decimal("1.50")),
    ("float", hostile(float)(1.5), 1.5),
    ("bytes", hostile(bytes)(b"ab"), b"ab"),
    ("bytes", hostile(bytearray)(b"ab"), b"ab"),
    ("array<string>", hostile(list)(["a"]), ["a"]),
    ("array<string>", hostile(tuple)(["a"]), ["a"]),
    ("map<string, string>", hostile(dict)({"a": "b"}), {"a": "b"}),
    ("Line", hostile(dict)({"label": "b"}), {"label": "b"}),
    ("json", hostile(dict)({"a": [1]}), {"a": [1]}),
    ("json", hostile(list)([1, "a"]), [1, "a"]),
    ("date", hostile(dt.date)(2024, 2, 29), dt.date(2024, 2, 29)),
    ("duration", hostile(dt.timedelta)(seconds=1), dt.timedelta(seconds=1)),
    ("timestamp", hostile(dt.datetime)(2024, 2, 29, tzinfo=dt.UTC), dt.datetime(2024, 2, 29, tzinfo=dt.UTC)),
    ("enum[red, green]", hostile(str)("red"), "red"),
    ("optional<string>", hostile(str)("mine"), "mine"),
    ("array<string>", [hostile(str)("a")], ["a"]),
    ("map<string, integer>", {"a": hostile(int)(1)}, {"a": 1}),
]


@pytest.mark.parametrize(
    "type_, value, expected", TAKEN, ids=[f"{t} {type(v).__name__}" for t, v, _ in TAKEN]
)  # fmt: skip
def test_a_subclass_is_taken_by_its_base_value(type_: str, value: Any, expected: object, tmp_path: Path) -> None:
    _echoes(type_)
    CALLED.clear()
    outcome = _outcome(type_, value, tmp_path / "canary")
    assert CALLED == []
    assert isinstance(outcome, Returned), outcome
    assert same(outcome.value["result"], expected)
    assert type(outcome.value["result"]) is type(expected)


TYPES = ("string", "integer", "decimal", "float", "boolean", "bytes", "timestamp", "date", "duration", "json", "Line",
         "enum[red, green]", "array<string>", "set<string>", "map<string, string>", "optional<string>")  # fmt: skip
STRANGERS: dict[str, Any] = {
    "an object with every method": hostile(object)(),
    "an object that is everything": Everything(),
    "a class that is everything": Everything,
    "an impostor of a text": Impostor(str),
    "an impostor of a number": Impostor(int),
    "an impostor of a dict": Impostor(dict),
    "an impostor of a list": Impostor(list),
    "a generator": _generator(),
    "a function": _hook("the function"),
    "a module": dt,
}


@pytest.mark.parametrize("what", STRANGERS)
@pytest.mark.parametrize("type_", TYPES)
def test_an_object_of_a_foreign_class_is_refused_without_a_method_call(type_: str, what: str, tmp_path: Path) -> None:
    _echoes(type_)
    CALLED.clear()
    outcome = _outcome(type_, STRANGERS[what], tmp_path / "canary")
    assert CALLED == []
    assert isinstance(outcome, Failed), outcome
    assert [problem.kind.value for problem in outcome.problems] == ["wrong_type"]
    untouched(tmp_path / "canary")
