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
from vesper.effects.performer import Ask
from vesper.engines.engine import Completion, Request
from vesper.host.host import Host, Prepared, Ran
from vesper.host.running import Running
from vesper.journal.entry import Kind
from vesper.journal.journal import Run
from vesper.replay.rerun import ChangedExecution
from vesper.trace.journalled import trace_of_execution
from vesper.trace.model import REPLAY_KEY, Exchange, Trace
from vesper.trace.programs import program_of

KnownExchange = Callable[[Request], Exchange | None]
"""Returns the known exchange of a request; None if it must be performed."""


class LiveHost(Host):
    """A Host that performs only requests without a known answer. It takes over no other runs."""

    def __init__(self, config: Config) -> None:
        super().__init__(replace(config, recovery=replace(config.recovery, enabled=False)))
        self._answered: KnownExchange = lambda _: None
        self._replayed = ""
        self._last: _LiveRunning | None = None
        self.statuses: dict[str, int] = {}
        """Last HTTP status by request path, for requests that were performed."""

    def run_changed(self, changed: ChangedExecution, engine: str, answered: KnownExchange) -> Trace:
        """Run the execution, perform requests unknown to `answered`, and return the trace."""
        prepared = self.prepare(changed.compiled, program_of(changed.compiled, engine), engine)
        self._answered, self._replayed = answered, changed.trace.trace_id
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

    def _note(self, ask: Ask, status: int) -> None:
        self.statuses[ask.path] = status

    def _new_running(self, prepared: Prepared, run: Run) -> Running:
        policy = prepared.compiled.node.grants.policy
        running = _LiveRunning(
            run, self._gate, self._attempts, prepared.plans, prepared.handles, prepared.refused, policy
        )
        running.answered, running.replayed, running.performed = self._answered, self._replayed, set()
        self._last = running
        return running


class _LiveRunning(Running):
    """A run that completes known requests from records and performs the rest."""

    answered: KnownExchange
    replayed: str
    """Id of the trace that is replayed."""
    performed: set[str]
    """Paths of requests that had no answer and were performed."""

    @property
    def execution(self) -> str:
        return self._run.execution

    def _complete(self, request: Request) -> Completion:
        known = self.answered(request)
        if known is not None:
            return self._copy_recorded(request, known)
        self.performed.add(request.path)
        if request.key is not None:
            request = replace(request, key=f"{REPLAY_KEY}{self._run.execution} {request.key}")
        return super()._complete(request)

    def _copy_recorded(self, request: Request, known: Exchange) -> Completion:
        """Journal a recorded completion with its request and origin.

        Transitions and audit are untouched, because they record performed effects only.
        """
        body: dict[str, object] = {
            "fixed": dict(request.fixed),
            "arguments": dict(request.arguments),
            "replayed": self.replayed,
        }
        if known.failure is None:
            self._append(Kind.RESULT, request, "", {**body, "value": known.value})
            self._remember(request, known.value)
        else:
            told = {"code": known.failure, "message": known.message, "may_have_happened": False}
            self._append(Kind.FAILED, request, "", {**body, **told})
        return Completion(request.id, known.value, known.failure)


def status_text(status: int) -> str:
    """Return a status with its phrase, such as `200 OK`."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
