"""Entry of a caller's objects into generated code.

The entry of a generated module tests each object by its exact type. Plain values pass directly; any other object raises
`NotPlain`, and `read_inputs` then reads all inputs by docs/spec/values.md and reports every problem. This module
affects only speed, never which inputs are accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from decimal import Decimal, DecimalException
from typing import Any, Final, ParamSpec, TypeVar, cast

from vesper.kernels.raised import BadInput
from vesper.values import inputs as spec
from vesper.values.model import MAX_ENTRIES, MAX_INTEGER, MAX_TEXT, MIN_INTEGER, Value, plain
from vesper.values.strict_json import has_surrogate
from vesper.values.types import declared_type

# Limits that generated code imports from here.
__all__ = ["MAX_ENTRIES", "MAX_INTEGER", "MAX_TEXT", "MIN_INTEGER"]

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_ZERO = Decimal(0)


class NotPlain(Exception):
    """An object is not a value in its plain Python form. It may still be a valid input."""


NOT_PLAIN: Final = (NotPlain, KeyError, DecimalException)
"""Exceptions that end the fast reading of inputs.

They mean no plain value, a missing name, or a decimal over a limit.
"""

is_finite = Decimal.is_finite
is_ascii = str.isascii
get_entry = dict.get
"""The entry of a plain dict under a key, or a default; no attribute of the caller's object is read."""


def is_text(text: str) -> bool:
    """Return whether a string is a value: it has no lone surrogates."""
    return not has_surrogate(text)


class Inputs:
    """The declared inputs of a node: type texts by name, defaults and flags.

    A flag is stored with the input whose absence it marks.
    """

    __slots__ = ("_defaults", "_flags", "_read", "_types")

    def __init__(
        self, types: Mapping[str, str], defaults: Mapping[str, object], flags: Mapping[str, str] | None = None
    ) -> None:
        self._types, self._defaults, self._flags = types, defaults, flags or {}
        self._read: spec.Declared | None = None

    @property
    def declared(self) -> spec.Declared:
        """Return name, type and default of each input.

        Parsed on first use: plain inputs do not need it, so the first call of a process stays fast.
        """
        if self._read is None:
            defaults = {name: spec.Absence(of) for name, of in self._flags.items()} | dict(self._defaults)
            self._read = [
                (name, declared_type(text), cast(Value, defaults.get(name))) for name, text in self._types.items()
            ]
        return self._read


def read_inputs(inputs: Inputs, given: Mapping[str, object]) -> list[Any]:
    """Return the values in declared order, or raise `BadInput` with every problem."""
    values, refusals = spec.read_inputs(inputs.declared, given)
    if refusals:
        raise BadInput(refusals) from None  # the internal NotPlain is of no use to the caller
    return list(values.values())


# -- values inside of others ----------------------------------------------------------------------


def read_decimal(given: Any) -> Decimal:
    # SEMANTICS: adding zero under the exact context writes out 1E+3, removes the sign of -0 and traps values over a
    # limit; NaN and infinities would pass.
    if type(given) is not Decimal or not is_finite(given):
        raise NotPlain
    return given + _ZERO


def read_integer(given: Any) -> int:
    if type(given) is not int or not MIN_INTEGER <= given <= MAX_INTEGER:
        raise NotPlain
    return given


def read_boolean(given: Any) -> bool:
    if type(given) is not bool:
        raise NotPlain
    return given


def read_text(given: Any) -> str:
    if type(given) is not str or not (is_ascii(given) or is_text(given)) or len(given) > MAX_TEXT:
        raise NotPlain
    return given


def read_member(given: Any, members: Collection[str]) -> Any:
    if type(given) is not str or given not in members:
        raise NotPlain
    return given


def read_value(type_: str, given: Any) -> Any:
    """Return a value of any type, read by docs/spec/values.md."""
    values, refusals = spec.read_inputs([("value", declared_type(type_), None)], {"value": given})
    if refusals:
        raise NotPlain
    return values["value"]


# -- around the function --------------------------------------------------------------------------


def undecorated(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Return the function without `@exact_decimals`, for callers already under the exact context."""
    inner: Callable[_Parameters, _Result] = function.__wrapped__  # type: ignore[attr-defined]  # functools.wraps
    return inner


def new_objects(values: _Result) -> _Result:
    """Return outputs that share nothing with constants of the module, json as plain objects."""
    return cast(_Result, plain(cast(Value, values)))
