"""A pytest plugin: the tests see the python engine alone, and the Rust extension is never loaded.

    python -m pytest -p tests.proofs.versions.reference_only tests/conformance

Tests that go over `ENGINES` then run once, on the reference path. So they can run on a Python for which nobody built
the extension, and nothing that the extension does can help them.
"""

from __future__ import annotations

import sys
from types import ModuleType

from tests.proofs.versions.ambient import apply_ambient
from vesper.engines.python_engine import PythonEngine

assert "vesper._direct" not in sys.modules, "the extension was loaded before the plugin could prevent it"
registry = ModuleType("vesper.engines.registry", "The registry with the python engine alone.")
alone = {PythonEngine.name: PythonEngine()}
vars(registry).update(ENGINES=alone, PAIR=alone, REFERENCE=PythonEngine.name)
sys.modules["vesper.engines.registry"] = registry
sys.modules["vesper._direct"] = None  # type: ignore[assignment]  # whoever imports it fails
apply_ambient()
