"""The words of `typing` that a warm start does without: what they make is what those of `typing` make."""

from __future__ import annotations

import typing
from decimal import Decimal

import pytest

from vesper.values import typed

EITHER = pytest.mark.parametrize("module", [typed, typing], ids=["typed", "typing"])


def test_every_word_is_one_of_typing() -> None:
    assert set(typed.__all__) <= set(typing.__all__)
    assert all(hasattr(typed, name) for name in typed.__all__)


@EITHER
def test_a_named_tuple(module: typing.Any) -> None:
    class Place(module.NamedTuple):  # type: ignore[misc,name-defined,unused-ignore]
        """Somewhere."""

        line: int
        column: int = 1

        def __str__(self) -> str:
            return f"{self.line}:{self.column}"

    place = Place(3)
    assert (place, str(place), repr(place)) == ((3, 1), "3:1", "Place(line=3, column=1)")
    assert place._replace(column=2) == Place(line=3, column=2)
    assert (Place.__name__, Place.__doc__, Place.__module__) == ("Place", "Somewhere.", __name__)
    assert (Place._fields, list(Place.__annotations__)) == (("line", "column"), ["line", "column"])
    line, column = place
    assert (line, column) == (3, 1)


@EITHER
def test_a_typed_dict(module: typing.Any) -> None:
    class Success(module.TypedDict):  # type: ignore[misc,name-defined,unused-ignore]
        fee: Decimal

    words = module.TypedDict("words", {"class": module.Literal["a", "b"] | None, "in": Decimal | module.Any})
    for made in (Success, words):
        value = made(fee=Decimal(1))
        assert type(value) is dict
        assert value == {"fee": Decimal(1)}


def test_a_word_stands_wherever_a_type_does() -> None:
    words: typing.Any = typed
    for said in (
        words.Any | None,
        None | words.Any,
        list[words.Any],
        words.Literal["a"] | words.Any,
        words.Final[frozenset[str]],
        words.TypeVar("_T", bound=int) | None,
    ):
        assert said is not None


def test_a_generic_class_takes_what_it_holds() -> None:
    import vesper

    assert typing.get_origin(vesper.Outcome[dict[str, object]]) is vesper.Outcome
