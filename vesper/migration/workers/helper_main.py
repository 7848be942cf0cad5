"""The helper process: `python -m vesper.migration.workers.helper_main`, at the lowest priority.

`helper` starts it. It sends a notice before it runs the direct engine: if the process dies after that, the engine is at
fault.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vesper.compiler import Compiled
from vesper.config.migration import Tolerance
from vesper.host.prepared import compiled_from
from vesper.migration.compare.comparator import Comparator
from vesper.migration.workers import wire_values as packed
from vesper.migration.workers.enumeration import domain_of, run_part
from vesper.migration.workers.rerun import Pair, rerun
from vesper.migration.workers.serving import end_with_parent, limit_resources, open_pipes, serve
from vesper.migration.workers.wire_values import MAX_PROGRAMS


class HelpingWorker:
    """The server side of one `helper.Helper`."""

    def __init__(self) -> None:
        self._pairs: dict[str, Pair] = {}

    def load(self, compiled: Compiled, comparator: Comparator) -> Pair:
        return Pair(compiled, comparator)

    def answer(self, question: Mapping[str, Any], send: Callable[[object], None]) -> object:
        try:
            return self._answer(question, lambda: send({"on": "direct"}))
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001  # any error is reported to the parent
            return {"raised": f"{type(error).__name__}: {error}"[:2000]}

    def _answer(self, question: Mapping[str, Any], before_direct: Callable[[], None]) -> object:
        match question["do"]:
            case "load":
                if len(self._pairs) >= MAX_PROGRAMS:
                    self._pairs.clear()
                compiled = compiled_from(packed.unpack_definition(question["definition"]))
                tolerances = [Tolerance(*each) for each in question["tolerances"]]
                before_direct()
                self._pairs[question["pair"]] = self.load(compiled, Comparator(compiled, tolerances))
                return {"loaded": True}
            case "rerun":
                transcript = packed.unpack_transcript(question["transcript"])
                is_recorded = question["is_recorded"]
                pair = self._pairs[question["pair"]]
                report = rerun(pair, transcript, question["key"], is_recorded=is_recorded, before_direct=before_direct)
                return {"report": packed.pack_report(report)}
            case "enumerate":
                pair = self._pairs[question["pair"]]
                before_direct()
                domain = domain_of(pair.compiled)
                found = run_part(pair, domain, question["start"], question["count"], question["key"])
                return {"report": packed.pack_report(found)}
            case other:
                raise ValueError(f"unknown question {other!r}")


def main(worker: HelpingWorker, arguments: Sequence[str]) -> None:
    end_with_parent(int(arguments[0]))
    os.nice(19)
    limit_resources(int(arguments[1]))
    serve(open_pipes(), worker.answer)


if __name__ == "__main__":
    main(HelpingWorker(), sys.argv[1:])
