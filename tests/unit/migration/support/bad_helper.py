"""A helper process without an engine that fails on purpose: `python -m tests.unit.migration.support.bad_helper`.

The input `word` of an execution selects the failure; any other word is agreement.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from vesper.migration.compare.paths import PathNote
from vesper.migration.compare.reports import Agreement
from vesper.migration.workers import wire_values as packed
from vesper.migration.workers.serving import end_with_parent, limit_resources, open_pipes, serve

AGREED = Agreement(PathNote(b"", (), "returned"), 17)


def answer(question: Mapping[str, Any], send: Callable[[object], None]) -> object:
    if question["do"] == "load":
        return {"loaded": True}
    word = packed.unpack_transcript(question["transcript"]).inputs["word"]
    if word != "die before":
        send({"on": "direct"})
    match word:
        case "die before" | "abort":
            os.abort()
        case "hang":
            while True:
                pass
        case "sleep":
            time.sleep(60)
        case "raise":
            return {"raised": "RuntimeError: it cannot"}
        case "nonsense":
            return {"report": ["nonsense"]}
    return {"report": packed.pack_report(AGREED)}


if __name__ == "__main__":
    end_with_parent(int(sys.argv[1]))
    limit_resources(int(sys.argv[2]))
    serve(open_pipes(), answer)
