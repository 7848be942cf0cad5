"""An execution whose requests its caller answers: for tests, and for callers with a Host of their own."""

from __future__ import annotations

from vesper.api.explain import outcome_of
from vesper.api.input_conversion import Plain
from vesper.api.outcome import AnyOutcome
from vesper.compiler import Compiled
from vesper.engines.engine import Blocked, Completion, Done, Request
from vesper.engines.engine import Execution as EngineExecution


class Execution:
    """An execution that stops at each request.

    `request` is pending until `answer` or `fail` continues. Once ended, it has an `outcome`. One thread at a time may
    use it.
    """

    def __init__(self, compiled: Compiled, plain: Plain, execution: EngineExecution) -> None:
        self._compiled = compiled
        self._plain = plain
        self._execution = execution
        self._request: Request | None = None
        self._outcome: AnyOutcome | None = None
        self._store_step(execution.advance(()))

    @property
    def request(self) -> Request | None:
        """The pending request; None where the execution has ended."""
        return self._request

    @property
    def outcome(self) -> AnyOutcome | None:
        """The outcome; None while a request is pending."""
        return self._outcome

    def answer(self, result: object = None) -> Request | None:
        """Continue with the result of the request, and return the next request."""
        return self._advance(result, None)

    def fail(self, code: str) -> Request | None:
        """Continue with the code of a failure, such as `timeout` or `http_503`, and return the next request."""
        return self._advance(None, code)

    def _advance(self, result: object, failure: str | None) -> Request | None:
        if self._request is None:
            raise ValueError("the execution has ended: there is nothing to answer")
        self._store_step(self._execution.advance((Completion(self._request.id, result, failure),)))
        return self._request

    def _store_step(self, step: Blocked | Done) -> None:
        if isinstance(step, Blocked):
            self._request = step.requests[0]
            return
        self._request = None
        self._outcome = outcome_of(self._compiled, step.outcome, self._plain.inputs, self._plain)

    def __repr__(self) -> str:
        if self._request is not None:
            return f"<Execution of {self._compiled.node.node_id}: waits for {self._request.path}>"
        return f"<Execution of {self._compiled.node.node_id}: ended, {self._outcome!r}>"
