"""The engines there are, by name. Everything that takes `--engine` reads this."""

from __future__ import annotations

from vesper.engines.direct_engine import DirectEngine, TieredEngine
from vesper.engines.engine import Engine
from vesper.engines.python_engine import PythonEngine

PAIR: dict[str, Engine] = {engine.name: engine for engine in (PythonEngine(), DirectEngine())}
"""The two that every node has, and that are observed step by step: `both` on a command line."""
ENGINES: dict[str, Engine] = {**PAIR, TieredEngine.name: TieredEngine()}
REFERENCE = "python"
