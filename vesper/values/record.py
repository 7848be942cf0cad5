"""`@record`: a dataclass that is frozen for type checkers, and quick to load and to make.

A check makes hundreds of these values for every node and loads a hundred classes of them first. A frozen dataclass
takes three times as long to make as a plain one, and most of the time to load one goes into writing and compiling
methods. So mypy keeps them from being changed, not the running program; and most have nothing compiled at all.

`dataclasses` itself takes as long to load as a whole warm start may take a third of: it is loaded when somebody asks a
record for its fields (`fields`, `replace`), and not before.
"""

from __future__ import annotations

from vesper.values.typed import TYPE_CHECKING

__all__ = ["record", "sealed"]

if TYPE_CHECKING:
    from dataclasses import dataclass as record
    from typing import TypeVar

    _T = TypeVar("_T")

    def sealed(cls: type[_T]) -> type[_T]: ...
else:
    import sys
    from operator import attrgetter
    from types import FunctionType

    _MISSING = object()

    def record(*, frozen, slots, eq=True):
        """Decorate a class as `dataclass(frozen=True, slots=True)` does, but for what the module says."""
        assert frozen, "a record never changes"
        assert slots, "a record has slots"
        return lambda cls: _made(cls, eq)

    def sealed(cls):
        """For a record that goes out to callers: one that the running program keeps from being changed, too."""
        names = cls.__match_args__
        setters = {f"set_{letter}": getattr(cls, name).__set__ for letter, name in zip("abc", names, strict=False)}
        code = _SEALED[len(names)].__code__.replace(
            co_varnames=("self", *names), co_name="__init__", co_qualname=cls.__init__.__qualname__
        )
        made = FunctionType(code, setters, "__init__", cls.__init__.__defaults__)
        made.__qualname__, made.__module__ = cls.__init__.__qualname__, cls.__module__
        cls.__init__, cls.__setattr__, cls.__delattr__ = made, _refuse_set, _refuse_delete
        cls.__reduce__ = lambda self: (type(self), tuple(getattr(self, name) for name in names))
        return cls

    def _refuse_set(_self, name, _value):
        raise AttributeError(f"cannot assign to field {name!r}")

    def _refuse_delete(_self, name):
        raise AttributeError(f"cannot delete field {name!r}")

    class _Part:
        """One field: what `dataclasses.field` says of it, or just a default."""

        def __init__(self, name, given):
            self.name, self.given = name, given
            self.default, self.factory, self.repr, self.compare = given, _MISSING, True, True
            # Whoever calls `field` has loaded the module.
            dataclasses = sys.modules.get("dataclasses")
            if dataclasses is not None and isinstance(given, dataclasses.Field):
                self.repr, self.compare = given.repr, given.compare
                self.default = _MISSING if given.default is dataclasses.MISSING else given.default
                if given.default_factory is not dataclasses.MISSING:
                    self.factory = given.default_factory

    def _made(cls, eq):
        assert cls.__mro__[1:] == (object,), "a record inherits nothing"
        body = dict(cls.__dict__)
        annotated = {name: text for name, text in cls.__annotations__.items() if not str(text).startswith("ClassVar")}
        parts = [_Part(name, body.pop(name, _MISSING)) for name in annotated]
        for name in ("__dict__", "__weakref__"):
            body.pop(name, None)
        names = tuple(annotated)
        body["__slots__"] = names
        body["__match_args__"] = names
        body["__doc__"] = cls.__doc__ or cls.__name__
        body["__dataclass_fields__"] = _Fields(parts, annotated)
        body["__init__"] = _initializer(parts, cls)
        if "__repr__" not in body:
            body["__repr__"] = _representer([part.name for part in parts if part.repr])
        if eq and "__eq__" not in body:
            body["__eq__"], body["__hash__"] = _comparers([part.name for part in parts if part.compare])
        made = type(cls)(cls.__name__, (), body)
        made.__qualname__ = cls.__qualname__
        return made

    class _Fields:
        """Stands for `__dataclass_fields__` until somebody looks: what a real dataclass of these fields would have."""

        def __init__(self, parts, annotations):
            self._parts, self._annotations = parts, annotations

        def __get__(self, instance, owner):
            from dataclasses import dataclass

            body = {part.name: part.given for part in self._parts if part.given is not _MISSING}
            like = dataclass(type(owner.__name__, (), {**body, "__annotations__": self._annotations, "__doc__": "-"}))
            found = like.__dataclass_fields__
            owner.__dataclass_fields__ = found
            return found

    # What `__init__` does for so many fields. It is never compiled: a record gets one of these under its own names.
    def _init_1(self, a):
        self.a = a

    def _init_2(self, a, b):
        self.a = a
        self.b = b

    def _init_3(self, a, b, c):
        self.a = a
        self.b = b
        self.c = c

    def _init_4(self, a, b, c, d):
        self.a = a
        self.b = b
        self.c = c
        self.d = d

    def _init_5(self, a, b, c, d, e):
        self.a = a
        self.b = b
        self.c = c
        self.d = d
        self.e = e

    def _init_6(self, a, b, c, d, e, f):
        self.a = a
        self.b = b
        self.c = c
        self.d = d
        self.e = e
        self.f = f

    def _init_7(self, a, b, c, d, e, f, g):
        self.a = a
        self.b = b
        self.c = c
        self.d = d
        self.e = e
        self.f = f
        self.g = g

    # The same for one that is sealed, by the setters of its fields; none has more than three.
    def _sealed_1(self, a):
        set_a(self, a)  # noqa: F821  # what these functions have for globals are the setters of a class

    def _sealed_2(self, a, b):
        set_a(self, a)  # noqa: F821
        set_b(self, b)  # noqa: F821

    def _sealed_3(self, a, b, c):
        set_a(self, a)  # noqa: F821
        set_b(self, b)  # noqa: F821
        set_c(self, c)  # noqa: F821

    _SEALED = (None, _sealed_1, _sealed_2, _sealed_3)
    _TEMPLATES = (None, _init_1, _init_2, _init_3, _init_4, _init_5, _init_6, _init_7)

    def _initializer(parts, cls):
        names = tuple(part.name for part in parts)
        is_special = "__post_init__" in cls.__dict__ or any(part.factory is not _MISSING for part in parts)
        if is_special or not 0 < len(parts) < len(_TEMPLATES):
            made = _written(parts, cls)
        else:
            code = _TEMPLATES[len(parts)].__code__.replace(
                co_varnames=("self", *names),
                co_names=names,
                co_name="__init__",
                co_qualname=f"{cls.__qualname__}.__init__",
            )
            defaults = tuple(part.default for part in parts if part.default is not _MISSING)
            made = FunctionType(code, {}, "__init__", defaults or None)
        made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
        return made

    def _written(parts, cls):
        """One that none of the templates is, compiled from its text."""
        namespace = {"missing": _MISSING}
        parameters, statements = ["self"], []
        for part in parts:
            name = part.name
            if part.factory is not _MISSING:
                namespace[f"make_{name}"] = part.factory
                parameters.append(f"{name}=missing")
                statements.append(f" self.{name} = make_{name}() if {name} is missing else {name}\n")
                continue
            namespace[f"default_{name}"] = part.default
            parameters.append(name if part.default is _MISSING else f"{name}=default_{name}")
            statements.append(f" self.{name} = {name}\n")
        if "__post_init__" in cls.__dict__:
            statements.append(" self.__post_init__()\n")
        text = f"def __init__({', '.join(parameters)}):\n{''.join(statements) or ' pass'}"
        exec(text, namespace)  # noqa: S102  # names of fields are all that is put into it
        return namespace["__init__"]

    def _representer(names):
        def __repr__(self):  # noqa: N807
            return f"{type(self).__qualname__}({', '.join([f'{name}={getattr(self, name)!r}' for name in names])})"

        return __repr__

    def _comparers(names):
        if len(names) > 1:
            values = attrgetter(*names)
        else:

            def values(of):
                return tuple([getattr(of, name) for name in names])

        def __eq__(self, other):  # noqa: N807
            if self is other:
                return True
            return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

        def __hash__(self):  # noqa: N807
            return hash(values(self))

        return __eq__, __hash__
