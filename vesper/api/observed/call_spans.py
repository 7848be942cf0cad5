"""Spans of calls of nodes without effects, where the application has a TracerProvider or `[observe]` exports.

Elsewhere `vesper.load` does not import this module, and `node.call` is the engine's own entry. `map` and `run_batch`
have no spans: a row costs less than a span.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from vesper.api.call_entry import Entries
from vesper.api.errors import Stopped
from vesper.engines.engine import Limits, ModalProgram, Program
from vesper.engines.outcome import Outcome, outcome_code
from vesper.host.run_context import current_context
from vesper.kernels import raised
from vesper.observe.spans import RunSpan, Tracing

if TYPE_CHECKING:
    from vesper.compiler import Compiled
    from vesper.observe.settings import ObserveSettings

_DIRECT_ONLY = "direct_only"


class CallSpans:
    """The spans of one node's calls."""

    def __init__(
        self,
        compiled: Compiled,
        program: Program,
        engine: str,
        settings: ObserveSettings | None,
        run: Callable[..., Outcome],
    ) -> None:
        self._compiled = compiled
        self._program = program
        self._engine = engine
        self._tracing = Tracing(settings)
        self._run = run

    def _begin(self) -> RunSpan | None:
        context = current_context()
        if context is None:
            found = self._tracing.begin(self._compiled)
        else:
            found = self._tracing.begin(self._compiled, None, context.traceparent, context.tracestate)
        return found if found is not None and found.is_recorded else None

    def _path(self) -> str:
        """Return the engine of a call; of a routed node the one that its mode prefers."""
        if isinstance(self._program, ModalProgram):
            return "interp" if self._program.mode == _DIRECT_ONLY else "python"
        return self._engine

    def entry(self, call: Callable[..., dict[str, Any]], takes_now: bool) -> Callable[..., dict[str, Any]]:
        """Return `call` with spans."""

        def call_in_span(inputs: dict[str, Any], **moment: datetime) -> dict[str, Any]:
            span = self._begin()
            if span is None:
                return call(inputs, **moment)
            kind, code = "returned", None
            try:
                return call(inputs, **moment)
            except BaseException as error:
                kind, code = _kind_of(error)
                raise
            finally:
                span.end(self._path(), kind, code)

        def call_with_span_at(inputs: dict[str, Any], *, now: datetime) -> dict[str, Any]:
            return call_in_span(inputs, now=now)

        def call_with_span(inputs: dict[str, Any]) -> dict[str, Any]:
            return call_in_span(inputs)

        return call_with_span_at if takes_now else call_with_span

    def json_entry(self, run_json: Callable[..., bytes]) -> Callable[..., bytes]:
        """Return `run_json` with spans."""

        def run_json_with_span(text: bytes, /, **moment: Any) -> bytes:
            span = self._begin()
            if span is None:
                return run_json(text, **moment)
            kind, code = "interrupted", None
            try:
                found = run_json(text, **moment)
                kind = "returned"
                if not found.startswith(b'{"kind":"returned"'):
                    answer = json.loads(found)
                    kind, code = answer["kind"], answer["code"]
            finally:
                span.end(self._path(), kind, code)
            return found

        return run_json_with_span

    def engine_call(
        self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None
    ) -> Outcome:
        """Run `Program.call` with a span, for inputs that are converted first."""
        span = self._begin()
        outcome = None
        try:
            outcome = self._run(inputs, now, limits)
        finally:
            if span is not None:
                kind = "interrupted" if outcome is None else outcome.kind
                span.end(self._path(), kind, None if outcome is None else outcome_code(outcome))
        return outcome


def with_spans(
    entries: Entries,
    compiled: Compiled,
    program: Program,
    engine: str,
    settings: ObserveSettings | None,
    takes_now: bool,
) -> Entries:
    """Return entries whose calls have spans."""
    spans = CallSpans(compiled, program, engine, settings, entries.engine_call)
    return replace(entries, call=spans.entry(entries.call, takes_now), spans=spans)


def _kind_of(error: BaseException) -> tuple[str, str | None]:
    match error:
        case raised.BadInput():
            return "failed", "bad_input"
        case raised.DeclaredError(values=values):
            return "declared_error", str(values.get("error_code", "")) or None
        case raised.ContractBroken():
            return "contract_broken", None
        case raised.Raised(code=code):
            return "failed", str(code)
        case Stopped(outcome=outcome):
            return outcome.kind, outcome_code(outcome)
        case _:
            return type(error).__name__, None
