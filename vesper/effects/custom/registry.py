"""The registered effects of an application, and the rules for registering one."""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, TypeAlias

from vesper.effects.performer import Ask
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.values.generated.effects import EFFECTS
from vesper.values.types import (
    KEY_TYPES,
    ArrayOf,
    Enum,
    Function,
    MapOf,
    OptionalOf,
    Parameter,
    Record,
    SetOf,
    Type,
    declared_type,
    is_key,
)

Types: TypeAlias = "str | Mapping[str, Types]"
"""A type as a node writes it, or fields with theirs."""
_NAME: Final = re.compile(r"[a-z][a-z0-9_.-]*", re.ASCII)
_FIELD: Final = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_MAX_NAME: Final = 128
_OWN: Final = ("key", "context")
"""Parameters that are no fields of the request."""


@dataclass(frozen=True, slots=True)
class Context:
    """Facts about the call, for a function with a parameter `context`."""

    execution: str
    path: str
    """The step, as `pay/charge[2]`."""
    is_repeat: bool
    """True where it may have been performed before."""
    timeout: float | None
    """Seconds that this call may take."""
    receipt: str
    """The name of this effect among all that were ever asked for. Of class `txn`, the function writes it in its own
    transaction, and does nothing where it stands there already."""
    secret: Callable[[str], str]
    """The text of a secret that the execution may use."""

    @classmethod
    def of(cls, ask: Ask) -> Context:
        return cls(ask.execution, ask.path, ask.is_repeat, ask.timeout, ask.receipt, ask.secret)


@dataclass(frozen=True, slots=True)
class Registered:
    name: str
    effect_class: str
    request: Record | None
    response: Type | None
    function: Callable[..., object]
    probe: Callable[..., object] | None

    @property
    def place(self) -> str:
        """Return the module, name and line of the function, for messages."""
        function: Any = inspect.unwrap(self.function)
        code = getattr(function, "__code__", None)
        named = f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', repr(function))}"
        return named if code is None else f"{named}, {code.co_filename}:{code.co_firstlineno}"


_OF_STEPS: Final = {"agent_send": "vesper.agents.flow_steps", "agent_exit": "vesper.agents.flow_steps"}
"""Modules with the effects of steps such as `send`, in `EFFECTS`."""


class Registry:
    """Effects by name. Each change copies the mapping, so that readers hold no lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._effects: dict[str, Registered] = {}

    def add(self, found: Registered) -> None:
        with self._lock:
            before = self._effects.get(found.name)
            if before is not None:
                raise ValueError(
                    f"the effect `{found.name}` is registered twice: by {before.place}, and by {found.place}"
                )
            self._effects = {**self._effects, found.name: found}

    def remove(self, name: str) -> None:
        with self._lock:
            if name not in self._effects:
                raise ValueError(f"no effect `{name}` is registered")
            self._effects = {other: found for other, found in self._effects.items() if other != name}

    def all(self) -> Mapping[str, Registered]:
        return dict(self._effects)

    def find(self, name: str) -> Registered | None:
        """Return an effect; one of a step of the language needs no registration."""
        if name not in self._effects and name in _OF_STEPS:
            effects: tuple[Registered, ...] = import_module(_OF_STEPS[name]).EFFECTS
            return next(each for each in effects if each.name == name)
        return self._effects.get(name)

    def closest(self, name: str) -> str:
        """Return the end of a message about a name that is not registered."""
        close = did_you_mean(name, sorted(self._effects))
        return f"; {close}" if close else ""


REGISTRY: Final = Registry()
"""Of the process."""


def class_problem(found: Registered, effect_class: str, who: str) -> str | None:
    """Return why a step must not request an effect in this class. None if it may.

    The class decides what happens after a crash. The function was written for one class: under another it would be
    repeated when it must not be, or never when it could.
    """
    if effect_class == found.effect_class:
        return None
    return (
        f"the effect `{found.name}` is registered as `{found.effect_class}` ({found.place}), and {who} asks for it as "
        f"`{effect_class}`: write `effect: {found.effect_class}` in the step"
    )


def check_effect_name(name: str) -> str:
    """Return the name if a node can write it. Raises `TypeError` or `ValueError`."""
    if not isinstance(name, str):
        raise TypeError(f'an effect has a name: @vesper.effect("score"), not {name!r}')
    if not _NAME.fullmatch(name) or len(name) > _MAX_NAME:
        raise ValueError(
            f"`{name}` cannot be the name of an effect: lower-case letters, digits, `_`, `-` and `.`, a letter first"
        )
    return name


def check_function(found: Registered) -> None:
    """Refuse an effect whose class, probe or parameters do not fit its function."""
    classes = EFFECTS["custom"].classes
    if found.effect_class not in classes:
        raise ValueError(f"the effect `{found.name}` is of class {' or '.join(classes)}, not `{found.effect_class}`")
    if (found.probe is not None) != (found.effect_class == "probe"):
        what = "needs `probe=`, which finds out whether it happened"
        raise ValueError(
            f"the effect `{found.name}` of class `{found.effect_class}` "
            + (what if found.probe is None else "has no use for `probe=`")
        )
    for function in (found.function, found.probe):
        if function is not None:
            _check_parameters(found, function)


def _check_parameters(found: Registered, function: Callable[..., object]) -> None:
    if not callable(function):
        raise TypeError(f"the effect `{found.name}` is a function, not {function!r}")
    parameters = inspect.signature(function).parameters.values()
    if any(each.kind is each.POSITIONAL_ONLY for each in parameters):
        raise ValueError(f"the effect `{found.name}` is called by keyword: no parameter may be positional-only")
    own = {each.name for each in parameters} & set(_OWN)
    if "key" in own and found.effect_class != "keyed":
        raise ValueError(f"the effect `{found.name}` has a parameter `key`, and only class `keyed` has one")
    if found.request is None:
        return
    fields = {name for name, _ in found.request.fields}
    taken = sorted(fields & own)
    if taken:
        raise ValueError(f"the effect `{found.name}` has a field `{taken[0]}`, and that parameter has a meaning here")
    try:
        inspect.signature(function).bind(**dict.fromkeys([*fields, *own]))
    except TypeError as error:
        raise ValueError(f"the effect `{found.name}` does not take the fields of its request: {error}") from None


# -- types ----------------------------------------------------------------------------------------


def type_of(written: Types, what: str) -> Type:
    """Return the type that is written. Raises `ValueError`."""
    if isinstance(written, Mapping):
        fields = []
        for name, each in written.items():
            if not _FIELD.fullmatch(str(name)):
                raise ValueError(f"{what}: `{name}` cannot be the name of a field")
            fields.append((name, type_of(each, what)))
        return Record(tuple(fields))
    if not isinstance(written, str):
        raise TypeError(f"{what}: a type is written as in nodes, as \"decimal\" or {{'amount': 'decimal'}}")
    try:
        found = declared_type(written)
    except (ValueError, IndexError, RecursionError):
        raise ValueError(f"{what}: `{written[:200]}` is no type") from None
    _check_type(found, what)
    return found


def _check_type(type_: Type, what: str) -> None:
    match type_:
        case Parameter(name):
            raise ValueError(f"{what}: no type is called `{name}`; records are written out")
        case Function():
            raise ValueError(f"{what}: a function is no value")
        case Enum(members):
            if not members or len(set(members)) < len(members):
                raise ValueError(f"{what}: the members of {type_} are at least one, and distinct")
        case OptionalOf(OptionalOf()):
            raise ValueError(f"{what}: an optional of an optional has two nulls")
        case SetOf(key) | MapOf(key, _) if not is_key(key):
            raise ValueError(f"{what}: the keys of {type_} are {KEY_TYPES}")
        case MapOf(_, inner) | ArrayOf(inner) | OptionalOf(inner):
            _check_type(inner, what)
        case Record(fields):
            for _, field in fields:
                _check_type(field, what)
