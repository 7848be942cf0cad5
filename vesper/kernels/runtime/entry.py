"""How a caller's own objects get into generated code.

The entry of a generated module looks at each object by its exact type. What is a value already goes on at once; for
anything else it raises `NotPlain`, and all the inputs are read again by `read_inputs`, which means what
docs/spec/values.md says and knows every problem. So nothing here decides what is taken: only how fast.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from decimal import Decimal, DecimalException
from typing import Any, Final, ParamSpec, TypeVar, cast

from vesper.kernels.raised import BadInput
from vesper.values import inputs as spec
from vesper.values.json_value import has_surrogate
from vesper.values.model import MAX_ENTRIES, MAX_INTEGER, MAX_TEXT, MIN_INTEGER, Value, plain
from vesper.values.types import declared_type

# Generated code takes the limits from here.
__all__ = ["MAX_ENTRIES", "MAX_INTEGER", "MAX_TEXT", "MIN_INTEGER"]

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_ZERO = Decimal(0)


class NotPlain(Exception):
    """An object that is not a value in its Python form: it may stand for one, or for none."""


NOT_PLAIN: Final = (NotPlain, KeyError, DecimalException)
"""What ends the quick look at inputs: an object that is none, a name that is not there, a decimal over a limit."""

is_finite = Decimal.is_finite
is_ascii = str.isascii
get_entry = dict.get
"""The entry of a plain dict under a key, or a default; no attribute of the caller's object is read."""


def is_text(text: str) -> bool:
    """True for a string that is a value: one without lone surrogates."""
    return not has_surrogate(text)


class Inputs:
    """The inputs that a node declares: the text of each type by its name, and the defaults there are."""

    __slots__ = ("_defaults", "_read", "_types")

    def __init__(self, types: Mapping[str, str], defaults: Mapping[str, object]) -> None:
        self._types, self._defaults = types, defaults
        self._read: spec.Declared | None = None

    @property
    def declared(self) -> spec.Declared:
        """Read when it is first asked for: inputs that are plain objects are taken without, and so is the first call of
        a process."""
        if self._read is None:
            self._read = [
                (name, declared_type(text), cast(Value, self._defaults.get(name))) for name, text in self._types.items()
            ]
        return self._read


def read_inputs(inputs: Inputs, given: Mapping[str, object]) -> list[Any]:
    """The values in declared order, or `BadInput` with every problem."""
    values, refusals = spec.read_inputs(inputs.declared, given)
    if refusals:
        raise BadInput(refusals) from None  # that it was not plain says nothing to the caller
    return list(values.values())


# -- values inside of others ----------------------------------------------------------------------


def read_decimal(given: Any) -> Decimal:
    # SEMANTICS: adding zero under the exact context writes out 1E+3, takes the sign of -0 away and traps what is
    # over a limit; NaN and infinities would pass.
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
    """A value of any type, as docs/spec/values.md reads it."""
    values, refusals = spec.read_inputs([("value", declared_type(type_), None)], {"value": given})
    if refusals:
        raise NotPlain
    return values["value"]


# -- around the function --------------------------------------------------------------------------


def undecorated(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """The function without `@exact_decimals`, for what is under the exact context already."""
    inner: Callable[_Parameters, _Result] = function.__wrapped__  # type: ignore[attr-defined]  # functools.wraps
    return inner


def new_objects(values: _Result) -> _Result:
    """Outputs that share nothing with constants of the module, a json as plain objects."""
    return cast(_Result, plain(cast(Value, values)))
