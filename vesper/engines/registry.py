"""The engines there are, by name. Everything that takes `--engine` reads this.

One that is asked for by name is loaded alone: a warm start on one engine does not pay for the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vesper.engines.engine import Engine

    ENGINES: dict[str, Engine]

NAMES = ("python", "interp")
REFERENCE = "python"


def engine_named(name: str) -> Engine:
    """The engine with one of `NAMES`."""
    if name == REFERENCE:
        from vesper.engines.python_engine import PythonEngine

        return PythonEngine()
    if name not in NAMES:
        raise KeyError(name)
    from vesper.engines.direct_engine import DirectEngine

    return DirectEngine()


def __getattr__(name: str) -> object:
    if name != "ENGINES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()["ENGINES"] = {each: engine_named(each) for each in NAMES}
    return found
