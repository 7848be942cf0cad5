"""Changed executions whose open requests a Host performs, with grants, policies and journal.

The journal has it as a separate execution with its own id. Recorded completions before the changed step are copied
there and not performed. Performed requests use new idempotency keys, so that no provider takes them for repetitions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus

from vesper.config.settings import Config
from vesper.effects.http.performer import HttpPerformer
from vesper.engines.engine import Request
from vesper.host.driving import Replayed
from vesper.host.host import Host
from vesper.host.prepared import Ran
from vesper.journal.journal import Run
from vesper.replay.rerun import ChangedExecution
from vesper.storage.sources import SYSTEM_SOURCES, Sources
from vesper.trace.journalled import trace_of_execution
from vesper.trace.model import REPLAY_KEY, Exchange, Trace
from vesper.trace.programs import program_of

KnownExchange = Callable[[Request], Exchange | None]
"""Returns the known exchange of a request; None if it must be performed."""


class LiveHost(Host):
    """A Host that performs only requests without a known answer. It takes over no other runs."""

    def __init__(self, config: Config, sources: Sources = SYSTEM_SOURCES) -> None:
        super().__init__(replace(config, recovery=replace(config.recovery, enabled=False)), sources=sources)
        self._answered: KnownExchange = lambda _: None
        self._trace_id = ""
        self._last: _KnownAnswers | None = None
        self.statuses: dict[str, int] = {}
        """Last HTTP status by request path, for requests that were performed."""

    def run_changed(self, changed: ChangedExecution, engine: str, answered: KnownExchange) -> Trace:
        """Run the execution, perform requests unknown to `answered`, and return the trace."""
        prepared = self.prepare(changed.compiled, program_of(changed.compiled, engine), engine)
        self._answered, self._trace_id = answered, changed.trace.trace_id
        now = changed.trace.now or datetime.now(UTC)
        if "http_request" in {plan.effect for plan in prepared.plans.requests.values()}:
            performer = self._performers["http_request"]
            if isinstance(performer, HttpPerformer):
                performer.on_answer = self._note
        ran: Ran = self.run(prepared, changed.inputs, now)
        if not self.knows(ran.execution):  # the inputs were rejected: nothing was performed
            from vesper.replay.rerun import rerun

            return rerun(changed, engine, ())
        found = trace_of_execution(self.journal, ran.execution, engine)
        known = {each.path: each for each in changed.trace.exchanges}
        exchanges = tuple(self._with_origin(each, known) for each in found.exchanges)
        return replace(found, exchanges=exchanges, origin=changed.origin())

    @property
    def execution(self) -> str | None:
        """Id of the last execution started; None without one."""
        return None if self._last is None else self._last.execution

    def _with_origin(self, exchange: Exchange, recorded: dict[str, Exchange]) -> Exchange:
        running = self._last
        if running is not None and exchange.path in running.performed:
            return replace(exchange, origin="live")
        before = recorded.get(exchange.path)
        # An exchange that was not performed again keeps its recorded duration.
        return (
            exchange
            if before is None
            else replace(exchange, asked_us=before.asked_us, answered_us=before.answered_us, decisions=before.decisions)
        )

    def _note(self, path: str, status: int) -> None:
        self.statuses[path] = status

    def _known_answers(self, run: Run) -> Replayed:
        self._last = _KnownAnswers(self._answered, self._trace_id, run.execution)
        return self._last


class _KnownAnswers:
    """The answers of a run that completes known requests from records and performs the rest."""

    def __init__(self, answered: KnownExchange, trace_id: str, execution: str) -> None:
        self._answered = answered
        self._trace_id = trace_id
        self.execution = execution
        self.performed: set[str] = set()
        """Paths of requests that had no answer and were performed."""

    def answer(self, request: Request) -> tuple[object, str | None, str, str] | None:
        known = self._answered(request)
        if known is None:
            self.performed.add(request.path)
            return None
        return known.value, known.failure, known.message, self._trace_id

    def rename(self, request: Request) -> str | None:
        return None if request.key is None else f"{REPLAY_KEY}{self.execution} {request.key}"


def status_text(status: int) -> str:
    """Return a status with its phrase, such as `200 OK`."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
