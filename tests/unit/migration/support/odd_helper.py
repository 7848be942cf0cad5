"""A helper process that says what it did not do: `python -m tests.unit.migration.support.odd_helper`. ODD_HELPER says
how."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from tests.unit.migration.support.bad_helper import AGREED
from vesper.engines.outcome import Returned
from vesper.migration.compare.paths import PathNote
from vesper.migration.compare.reports import Agreement, Difference, Disagreement
from vesper.migration.compare.transcript import Transcript
from vesper.migration.workers import wire_values as packed
from vesper.migration.workers.serving import bound, live_as_long_as, serve
from vesper.migration.workers.shown import PartAgreed

_HOW = os.environ["ODD_HELPER"]
_OTHERS = Disagreement(
    Difference("outcome", "outputs.result", "returned", "returned"), None, None,
    Transcript({"word": "of somebody else"}, None, (), Returned({})), None,
)  # fmt: skip


def answer(question: Mapping[str, Any], say: Callable[[object], None]) -> object:
    match question["do"], _HOW:
        case "load", "not loaded":
            return {"report": None}
        case "load", _:
            return {"loaded": True}
        case _, "on":
            while True:
                say({"on": "direct"})
                time.sleep(0.01)
        case _, "no words":
            return {"report": packed.pack_report(PartAgreed.on(b""))}
        case _, "other words":
            return {"report": packed.pack_report(PartAgreed.on(b"\0" * 8 * 19))}
        case _, "agreed":
            return {"report": packed.pack_report(AGREED)}
        case _, "other steps":
            return {"report": packed.pack_report(Agreement(PathNote(b"", ("charge: ok",), "returned"), 1))}
        case _, "other records":
            return {"report": packed.pack_report(_OTHERS)}
        case _:
            return {"report": None}


if __name__ == "__main__":
    live_as_long_as(int(sys.argv[1]))
    bound(int(sys.argv[2]))
    serve(answer)
