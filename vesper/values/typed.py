"""The words of `typing`, for modules that a warm start loads: loading `typing` itself, with the `re` and `contextlib`
that it brings, takes a fifth of what such a start may take.

To type checkers these are the names of `typing`. A running program meets them only where a module is loaded:
annotations are text, and nobody looks at them. `NamedTuple` and `TypedDict` make what those of `typing` make; the other
words stand for themselves. Generated code that an engine loads gets this module where it imports `typing`
(`vesper/engines/python_engine.py`).
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import (
        Any,
        ClassVar,
        Final,
        Generic,
        Literal,
        NamedTuple,
        NoReturn,
        ParamSpec,
        Protocol,
        TypeAlias,
        TypedDict,
        TypeGuard,
        TypeVar,
        cast,
        final,
    )
else:
    from collections import namedtuple
    from types import GenericAlias

    class _Word:
        """Stands for itself, with whatever is said of it: `Literal["a", "b"] | None`."""

        def __init__(self, name, *_said, **_more):
            self.__name__ = name

        def __repr__(self):
            return self.__name__

        def __getitem__(self, _said):
            return self

        def __or__(self, _other):
            return self

        __ror__ = __or__

    Any, ClassVar, Final, Literal, NoReturn, TypeAlias, TypeGuard = map(
        _Word, ("Any", "ClassVar", "Final", "Literal", "NoReturn", "TypeAlias", "TypeGuard")
    )
    TypeVar = ParamSpec = _Word
    # What `typing.ParamSpec` has, for annotations that are not text.
    _Word.args = _Word.kwargs = property(lambda self: self)

    def cast(_type, value):
        return value

    def final(cls):
        return cls

    class Protocol:
        """A class that says what others have."""

    class Generic:
        """A class of which one may say what it holds."""

        __class_getitem__ = classmethod(GenericAlias)

    class _Named(type):
        def __new__(cls, name, bases, body):
            if not bases:
                return type.__new__(cls, name, bases, body)
            fields = body.pop("__annotations__")
            defaults = [body.pop(field) for field in fields if field in body]
            module = body.pop("__module__")
            made = namedtuple(name, fields, defaults=defaults, module=module)  # noqa: PYI024  # this is that one
            made.__annotations__ = fields
            for key, value in body.items():
                setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Named):
        """A tuple whose fields have names."""

    class _Fields(type):
        def __new__(cls, name, _bases, body):
            return type.__new__(cls, name, (dict,), body)

        def __call__(cls, *given, **more):
            if cls is TypedDict:  # `TypedDict("Name", {"field": type})`
                name, fields = given
                return _Fields(name, (dict,), {"__annotations__": fields})
            return dict(*given, **more)

    class TypedDict(metaclass=_Fields):
        """A dict whose keys have types."""


__all__ = [
    "TYPE_CHECKING",
    "Any",
    "ClassVar",
    "Final",
    "Generic",
    "Literal",
    "NamedTuple",
    "NoReturn",
    "ParamSpec",
    "Protocol",
    "TypeAlias",
    "TypeGuard",
    "TypeVar",
    "TypedDict",
    "cast",
    "final",
]
