"""Records: all that a frozen dataclass with slots does, but for what keeps a running program from changing one."""

from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace

import pytest

from vesper.values.record import record
from vesper.values.types import DECIMAL, NULL, PRIMITIVES, ArrayOf, Enum, MapOf, Primitive, Record, Type


@record(frozen=True, slots=True)
class Pair:
    """Two things."""

    one: int
    other: str = "x"
    seen: tuple[int, ...] = field(default=(), compare=False, repr=False)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Plain:
    """Two things."""

    one: int
    other: str = "x"
    seen: tuple[int, ...] = field(default=(), compare=False, repr=False)
    notes: list[str] = field(default_factory=list)


@record(frozen=True, slots=True)
class Single:
    only: object


@record(frozen=True, slots=True)
class Empty:
    pass


@pytest.mark.parametrize("arguments", [(1,), (1, "y"), (1, "y", (2,)), (1, "y", (2,), ["z"])])
def test_it_is_made_as_a_dataclass_is(arguments: tuple[object, ...]) -> None:
    pair, plain = Pair(*arguments), Plain(*arguments)  # type: ignore[arg-type]  # any that the fields may have
    for each in fields(Plain):
        assert getattr(pair, each.name) == getattr(plain, each.name)
    assert repr(pair) == repr(plain).replace("Plain", "Pair")
    assert [each.name for each in fields(Pair)] == [each.name for each in fields(Plain)]
    assert Pair.__match_args__ == Plain.__match_args__


def test_its_parameters_are_those_of_a_dataclass() -> None:
    assert list(inspect.signature(Pair).parameters) == list(inspect.signature(Plain).parameters)
    with pytest.raises(TypeError, match="one"):
        Pair()  # type: ignore[call-arg]
    assert Pair(1).notes is not Pair(1).notes, "one list for each"


def test_equality_and_hash_go_by_what_is_compared() -> None:
    assert Single((1, 2)) == Single((1, 2))
    assert hash(Single((1, 2))) == hash(Single((1, 2)))
    assert Single(1) != Single(2)
    another: object = Plain(1)
    assert Pair(1) != another
    assert Pair(1, seen=(3,)) == Pair(1, seen=(4,))
    assert Pair(1) != Pair(2)
    assert Empty() == Empty()
    assert hash(Empty()) == hash(Empty())
    nan = float("nan")
    assert Single(nan) == Single(nan), "a dataclass compares tuples, and those ask for identity first"


def test_it_is_copied_and_replaced() -> None:
    assert replace(Pair(1, "y"), one=2) == Pair(2, "y")
    assert copy.copy(Pair(1, "y")) == Pair(1, "y")
    assert pickle.loads(pickle.dumps(Single((1, "y")))) == Single((1, "y"))


def test_it_has_no_attributes_but_its_own() -> None:
    with pytest.raises(AttributeError):
        Pair(1).another = 2  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError):
        Plain(1).one = 2  # type: ignore[misc]
    # What mypy refuses here too, a running program does not: that is what a record saves.
    Pair(1).one = 2  # type: ignore[misc]


@pytest.mark.parametrize("type_", [*PRIMITIVES.values(), NULL], ids=str)
def test_a_copy_of_a_primitive_type_is_the_same_one(type_: Primitive) -> None:
    assert copy.deepcopy(type_) is type_
    assert copy.copy(type_) is type_
    assert pickle.loads(pickle.dumps(type_)) is type_


@pytest.mark.parametrize("type_", [ArrayOf(DECIMAL), MapOf(DECIMAL, Enum(("a",))), Record((("x", DECIMAL),), "X")])
def test_types_made_of_them_are_equal_after_a_copy(type_: Type) -> None:
    again = pickle.loads(pickle.dumps(type_))
    assert again == type_
    assert hash(again) == hash(type_)
