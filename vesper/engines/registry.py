"""The engines by name, for everything that takes `--engine`.

Each is imported alone: a warm start on one engine does not import the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vesper.engines.engine import Engine

    PAIR: dict[str, Engine]
    """The two engines that are observed step by step: `both` on a command line."""
    ENGINES: dict[str, Engine]

TIERED = "jit"
NAMES = ("python", "interp", TIERED)
REFERENCE = "python"
DIRECT = "direct"
"""Public name of the second engine; `interp` and `jit` are its tiers."""
FIRST_TIER = "interp"


def engine_named(name: str) -> Engine:
    """Return the engine with one of `NAMES`."""
    if name == REFERENCE:
        from vesper.engines.python_engine import PythonEngine

        return PythonEngine()
    if name not in NAMES:
        raise KeyError(name)
    from vesper.engines.direct_engine import DirectEngine, TieredEngine

    return TieredEngine() if name == TIERED else DirectEngine()


def engine_label(name: str) -> str:
    """Return the public name of an engine, for text that compares the two engines."""
    return DIRECT if name == FIRST_TIER else name


def __getattr__(name: str) -> object:
    if name not in ("ENGINES", "PAIR"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    engines = globals()["ENGINES"] = {each: engine_named(each) for each in NAMES}
    globals()["PAIR"] = {each: engines[each] for each in NAMES if each != TIERED}
    return globals()[name]
