"""`@record`: a dataclass that is frozen for type checkers, and quick to load and to make.

A check makes hundreds of these values for every node and loads a hundred classes of them first. A frozen dataclass
takes three times as long to make as a plain one, and most of the time to load one goes into writing and compiling
methods. So mypy keeps them from being changed, not the running program; and only `__init__` is compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["record"]

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    from dataclasses import MISSING, dataclass, fields
    from operator import attrgetter

    def record(*, frozen, slots, eq=True):
        """Decorate a class as `dataclass(frozen=True, slots=True)` does, but for what the module says."""
        assert frozen, "a record never changes"
        assert slots, "a record has slots"
        return lambda cls: _made(cls, eq)

    def _made(cls, eq):
        cls.__doc__ = cls.__doc__ or cls.__name__  # or `dataclass` would ask `inspect` for a signature to put there
        cls = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
        parts = fields(cls)
        cls.__init__ = _initializer(parts, cls)
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = _representer([part.name for part in parts if part.repr])
        if eq and "__eq__" not in cls.__dict__:
            cls.__eq__, cls.__hash__ = _comparers([part.name for part in parts if part.compare])
        return cls

    def _initializer(parts, cls):
        namespace = {"missing": MISSING}
        parameters, statements = ["self"], []
        for part in parts:
            name = part.name
            if part.default_factory is not MISSING:
                namespace[f"make_{name}"] = part.default_factory
                parameters.append(f"{name}=missing")
                statements.append(f" self.{name} = make_{name}() if {name} is missing else {name}\n")
                continue
            namespace[f"default_{name}"] = part.default
            parameters.append(name if part.default is MISSING else f"{name}=default_{name}")
            statements.append(f" self.{name} = {name}\n")
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
