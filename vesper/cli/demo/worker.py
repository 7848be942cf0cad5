"""A worker of the demo's server: `vesper.serve.worker` with scaled thresholds, and a planted fault where asked.

python -m vesper.cli.demo.worker healthy|faulty LISTENER CHANNEL OPTIONS
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from vesper.cli.demo.scaled import scale_thresholds
from vesper.cli.demo.shop import DECISION, faulty_text
from vesper.compiler import compile_source
from vesper.engines.direct_engine import DirectEngine
from vesper.language.diagnostics.source import SourceFile
from vesper.serve import worker

if TYPE_CHECKING:
    from vesper.compiler import Compiled
    from vesper.engines.direct_engine import DirectProgram


def plant_fault() -> None:
    """Let the direct engine of this process run the decision node with a wrong fee."""
    load = DirectEngine.load
    faulty, _ = compile_source(SourceFile(f"{DECISION}.vsp", faulty_text()))
    assert faulty is not None

    def load_faulty(self: DirectEngine, compiled: Compiled) -> DirectProgram:
        return load(self, faulty if compiled.node.node_id == DECISION else compiled)

    DirectEngine.load = load_faulty  # type: ignore[method-assign]  # the fault of the demo


def main() -> None:
    if sys.argv.pop(1) == "faulty":
        plant_fault()
    scale_thresholds()
    worker.main()


if __name__ == "__main__":
    main()
