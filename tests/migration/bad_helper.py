"""A helper process whose direct engine breaks on purpose: `python -m tests.migration.bad_helper`. The input `word` says
how."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from vesper.compiler import Compiled
from vesper.engines.direct_engine import DirectEngine
from vesper.migration.comparator import Comparator
from vesper.migration.helping import HelpingWorker, main
from vesper.migration.rerun import Pair


class BadHelper(HelpingWorker):
    def load(self, compiled: Compiled, comparator: Comparator) -> Pair:
        return Pair(compiled, comparator, _Bad(DirectEngine().load(compiled)))


class _Bad:
    def __init__(self, program: Any) -> None:
        self._program = program

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)

    def start(self, inputs: Any, *rest: Any, **more: Any) -> Any:
        match inputs["word"]:
            case "abort":
                os.abort()
            case "hang":
                while True:
                    pass
            case "sleep":
                time.sleep(60)
            case "raise":
                raise RuntimeError("the engine raised")
            case "lie":
                inputs = {"word": "a lie"}
        return self._program.start(inputs, *rest, **more)


if __name__ == "__main__":
    main(BadHelper(), sys.argv[1:])
