"""Traces of executions whose requests a case or defaults answer. Nothing is performed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from vesper.compiler import Compiled
from vesper.debug.responses import AnswerBook, CaseAnswers, Defaults, Unanswered, plain_path
from vesper.debug.start import start_of
from vesper.engines.engine import Request
from vesper.language.check.cases import Case
from vesper.trace import recorder
from vesper.trace.model import Exchange, Trace
from vesper.trace.programs import program_of
from vesper.trace.recorder import exchange_of, record_trace
from vesper.values.model import plain
from vesper.values.vesper_error import VesperError


class NoAnswer(VesperError):
    """A request has no answer; the message names its step."""


def trace_case(compiled: Compiled, case: Case, now: datetime | None = None) -> Trace:
    """Record the execution of a case. Raises `NoAnswer`."""
    start = start_of(case) if now is None else now
    inputs = {name: plain(value) for name, value in case.inputs.items()}
    return _trace(compiled, inputs, start, AnswerBook(CaseAnswers(case), Defaults(start)))


def trace_inputs(compiled: Compiled, inputs: Mapping[str, object], now: datetime) -> Trace:
    """Record an execution on accepted inputs. Raises `NoAnswer`."""
    return _trace(compiled, inputs, now, AnswerBook(Defaults(now)))


def _trace(compiled: Compiled, inputs: Mapping[str, object], now: datetime, book: AnswerBook) -> Trace:
    def respond(request: Request, _: object) -> Exchange:
        try:
            known = book.answer(request)
        except Unanswered:
            raise recorder.Unanswered from None
        return exchange_of(request, known.result, known.failure)

    found = record_trace(compiled, program_of(compiled, "python"), "python", "profile", inputs, now, respond)
    if found.outcome is None:
        raise NoAnswer(f"`{plain_path(found.waits_at or '')}` has no answer")
    return found
