"""`@record`: a dataclass that is frozen for type checkers, and quick to load and to make.

A check makes hundreds of these values for every node and loads a hundred classes of them first. A frozen dataclass
takes three times as long to make as a plain one, and most of the time to load one goes into writing and compiling
methods. So mypy keeps them from being changed, not the running program; and only `__init__` is compiled.

`dataclasses` itself takes as long to load as a whole warm start may take a third of: it is loaded when somebody asks a
record for its fields (`fields`, `replace`), and not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["record"]

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    import sys
    from operator import attrgetter

    _MISSING = object()

    def record(*, frozen, slots, eq=True):
        """Decorate a class as `dataclass(frozen=True, slots=True)` does, but for what the module says."""
        assert frozen, "a record never changes"
        assert slots, "a record has slots"
        return lambda cls: _made(cls, eq)

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

    def _initializer(parts, cls):
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
        made = namespace["__init__"]
        made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
        return made

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
