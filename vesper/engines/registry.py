"""The engines there are, by name. Everything that takes `--engine` reads this."""

from __future__ import annotations

from vesper.engines.direct_engine import DirectEngine
from vesper.engines.engine import Engine
from vesper.engines.python_engine import PythonEngine

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (PythonEngine(), DirectEngine())}
REFERENCE = "python"
