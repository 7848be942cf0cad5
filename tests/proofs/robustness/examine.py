"""One document through the whole front end, and what must hold whatever the document is."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from vesper.compiler import Compiled, compile_bytes, compile_source
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.render.concise import render_concise
from vesper.language.diagnostics.render.full import render_full
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir.decode import decode
from vesper.language.ir.encode import encode

MAX_SECONDS = 1.0
"""Of processor time, so that a busy machine does not fail a document."""
SAMPLE_SECONDS = 5.0
"""Likewise, for a few documents on any machine: what is meant by the other is for a whole campaign to say."""
PATH = "mutated.vsp"


@dataclass
class Tally:
    """What a run of documents came to."""

    max_seconds: float = SAMPLE_SECONDS
    accepted: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    """By the number of the first error's code."""
    worst_seconds: float = 0.0
    worst_number: int = -1
    failures: list[dict[str, Any]] = field(default_factory=list)

    def examine(self, number: int, data: bytes) -> None:
        """Check one document; what should not happen is a failure in the list and never an exception."""
        start = time.process_time()
        compiled = None
        try:
            compiled, problem = self._check(data)
        except Exception:  # noqa: BLE001  # that nothing gets out is what is tested
            problem = traceback.format_exc(limit=-4)
        seconds = time.process_time() - start
        if problem is None:
            problem = _of_ir(compiled) or _as_text(data)
        if seconds > self.worst_seconds:
            self.worst_seconds, self.worst_number = seconds, number
        if problem is None and seconds > self.max_seconds:
            problem = f"took {seconds:.2f} s"
        if problem is not None:
            self.failures.append({"number": number, "problem": problem})

    def _check(self, data: bytes) -> tuple[Compiled | None, str | None]:
        compiled, bag = compile_bytes(PATH, data)
        if compiled is None and not bag.has_errors:
            return None, "refused without a reason"
        if compiled is None:
            first = next(each for each in bag.sorted() if each.severity.value == "error")
            self.rejected[first.code.number] += 1
        else:
            self.accepted += 1
        return compiled, _of_diagnostics(bag)


def _of_diagnostics(bag: DiagnosticBag) -> str | None:
    length = len(bag.source.text)
    for diagnostic in bag.sorted():
        for label in (diagnostic.primary, *diagnostic.secondary):
            if not 0 <= label.span.start <= label.span.end <= length:
                return f"{diagnostic.code.number}: {label.span} is outside the {length} characters of the file"
        full, concise = render_full(bag.source, diagnostic), render_concise(bag.source, diagnostic)
        for line in (*full.split("\n"), concise):
            if not line.isprintable():
                return f"{diagnostic.code.number}: a terminal would act on {line!r}"
            if len(line) > 1000:
                return f"{diagnostic.code.number}: a line of {len(line)} characters"
    return None


def _of_ir(compiled: Compiled | None) -> str | None:
    if compiled is not None and encode(decode(compiled.ir)) != compiled.ir:
        return "the IR does not survive decoding"
    return None


def _as_text(data: bytes) -> str | None:
    """Bytes that are no UTF-8 can still come as a text from a program, with halves of surrogate pairs in it."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        if len(data) < 100_000:
            _, bag = compile_source(SourceFile(PATH, data.decode("utf-8", "surrogateescape")))
            return _of_diagnostics(bag)
    return None
