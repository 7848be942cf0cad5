"""The operations of `/runs`, independent of the server that has read the request (docs/spec/serving.md)."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from vesper.api.input_conversion import inputs_of_forms
from vesper.api.json_calls import outcome_json
from vesper.engines.outcome import Failed
from vesper.host.host import HostClosed
from vesper.host.run_context import MAX_KEY_CHARACTERS, KeyReused, run_context
from vesper.host.waiting_runs import NotWaiting, WrongValue, answer, cancel, send_signal
from vesper.journal.journal import JournalError, NotTaken, Recorded, Status, Summary, UnknownExecution
from vesper.observe.context import ANNOUNCED_TRACE
from vesper.queues.enqueuing import MAX_PRIORITY, enqueue
from vesper.queues.retrying import last_attempt
from vesper.serve.nodes import Service, is_hosted
from vesper.serve.run_call import JSON_HEADERS, Call
from vesper.serve.runs.endpoints import ENDPOINTS, MAX_PAGES, MAX_WAIT_SECONDS, PAGE_RUNS
from vesper.serve.runs.state import RunState, read_state, summary_members
from vesper.serve.table import scopes_of
from vesper.values.generated.errors import ErrorCode
from vesper.values.inputs import accept_inputs
from vesper.values.json_mistake import JsonMistake
from vesper.values.strict_json import forms_of_json
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper.api.node import Node

_log = logging.getLogger("vesper.serve")
_AnswerT = TypeVar("_AnswerT", covariant=True)  # noqa: PLC0105  # the house names type variables so
_MAX_DELAY_SECONDS = 366 * 86_400
_ID = re.compile(r"[0-9a-f-]{36}")
_DIGITS = re.compile(r"[0-9]{1,9}")
_PARAMETERS = frozenset(("status", "page", "wait", "accept", "last_event_id"))
"""Texts of query and headers."""
EVENT_HEADERS = [("Content-Type", "text/event-stream"), ("Cache-Control", "no-store"), ("X-Accel-Buffering", "no")]
Sent = tuple[int, list[tuple[str, str]], bytes]


class RunsCall(Call[_AnswerT], Protocol[_AnswerT]):
    """A request to `/runs`."""

    @property
    def scopes(self) -> list[str]: ...


class Refusal(VesperError):
    """A request to `/runs` is refused, for the reason with this name."""

    def __init__(self, name: str, detail: str, execution: str | None = None) -> None:
        super().__init__(detail)
        self.name = name
        self.execution = execution


@dataclass(frozen=True, slots=True)
class Watch:
    """A request that is answered when its run changes: once, or with one event for each change."""

    look: Callable[[str | None], RunState | None]
    """Reads the run again; returns None where it still has this version. Raises `JournalError`."""
    first: RunState
    seconds: float
    """Limit of a long poll."""
    is_stream: bool


class Runs:
    """The runs of one epoch."""

    def __init__(self, service: Service) -> None:
        self._settings = service.config.serve
        self._host = service.host
        self._nodes = {each.id: each for each in service.nodes if is_hosted(each)}
        self._names = {each.name: each for each in self._nodes.values()}

    def answer(self, index: int, call: RunsCall[_AnswerT], inputs: bytes) -> _AnswerT | Watch:
        """Answer the request to an endpoint, by its index in `ENDPOINTS`."""
        ANNOUNCED_TRACE.set(call.trace_id)
        operation = (self._start, self._list, self._show, self._signal, self._answer, self._cancel)[index]
        try:
            done = operation(call, _read_members(inputs))
        except Refusal as problem:
            return call.refuse(problem.name, str(problem), None, problem.execution)
        except WrongValue as problem:
            return call.refuse("bad_input", str(problem), None, None)
        except (NotWaiting, NotTaken) as problem:
            return call.refuse("conflict", str(problem), None, None)
        except _NotInputs as problem:
            return call.answer(problem.outcome, None)
        except KeyReused as problem:
            return call.refuse("key_reused", None, None, problem.execution)
        except HostClosed:
            return call.refuse("closing", None, 1.0, None)
        except JournalError as problem:
            _log.error("%s: %s", ENDPOINTS[index].path, self._host.redact(str(problem)))
            return call.refuse("journal", None, 1.0, None)
        return done if isinstance(done, Watch) else call.send(*done)

    # -- operations -------------------------------------------------------------------------------

    def _start(self, call: RunsCall[object], given: Mapping[str, Any]) -> Sent:
        _refuse_others(given, "node", "inputs", "key", "delay", "priority")
        node = self._nodes.get(str(given.get("node")))
        if node is None:
            raise Refusal("bad_input", "`node` is no served node with effects.")
        self._require_scopes(call, node, None)
        self._refuse_signed(node)
        key = given.get("key", call.key)
        if call.key is not None and key != call.key:
            raise Refusal("bad_input", "`key` and the header `Idempotency-Key` differ: send one of them.")
        if key is not None and not (isinstance(key, str) and 1 <= len(key) <= MAX_KEY_CHARACTERS and key.isprintable()):
            raise Refusal("bad_input", f"`key` is a text of 1 to {MAX_KEY_CHARACTERS} printable characters.")
        delay, priority = given.get("delay", 0), given.get("priority")
        is_number = isinstance(delay, int | Decimal) and not isinstance(delay, bool)
        if not is_number or not 0 <= delay <= _MAX_DELAY_SECONDS:
            raise Refusal("bad_input", "`delay` is a number of seconds, from 0 to a year.")
        if priority is not None and not (type(priority) is int and abs(priority) <= MAX_PRIORITY):
            raise Refusal("bad_input", f"`priority` is an integer from -{MAX_PRIORITY} to {MAX_PRIORITY}.")
        inputs = _read_run_inputs(node, given.get("inputs", {}))
        context = run_context(
            actor=call.actor,
            via=call.via,
            tenant=call.tenant,
            key=key,
            traceparent=call.traceparent,
            tracestate=call.tracestate,
        )
        with context:
            prepared = node._prepare(self._host)
            execution = enqueue(self._host, prepared, inputs, delay=float(delay), priority=priority)
        recorded = self._host.journal.read(execution)
        if not _is_of_tenant(call, recorded):
            raise Refusal("conflict", f"A run of {node.id} that is not yours is queued, and there is one at a time.")
        return self._state_response(call, recorded, 202, [("Location", f"/runs/{execution}")])

    def _list(self, call: RunsCall[object], given: Mapping[str, str]) -> Sent:
        _refuse_others(given, "node", "status", "page")
        if not isinstance(given.get("node", ""), str):  # a start has a member of this name
            raise Refusal("bad_input", "`node` occurs twice.")
        status, page = given.get("status"), given.get("page", "1")
        if status is not None and status not in set(Status):
            raise Refusal("bad_input", f"`status` is one of {', '.join(Status)}.")
        if not 1 <= _number(page) <= MAX_PAGES:
            raise Refusal("bad_input", f"`page` is a number from 1 to {MAX_PAGES}.")
        rows = self._host.journal.find(
            status=None if status is None else Status(status),
            node=given.get("node"),
            limit=PAGE_RUNS + 1,
            offset=(int(page) - 1) * PAGE_RUNS,
        )
        shown = [summary_members(each) for each in rows[:PAGE_RUNS] if self._is_visible(call, each)]
        after = int(page) + 1 if len(rows) > PAGE_RUNS and int(page) < MAX_PAGES else None
        return 200, JSON_HEADERS, json.dumps({"runs": shown, "next": after}).encode()

    def _show(self, call: RunsCall[object], given: Mapping[str, str]) -> Sent | Watch:
        _refuse_others(given, "id", "wait", "accept", "last_event_id")
        recorded = self._find(call, given["id"])
        wait = given.get("wait")
        if wait is not None and not 0 <= _number(wait) <= MAX_WAIT_SECONDS:
            raise Refusal("bad_input", f"`wait` is a number of seconds, at most {MAX_WAIT_SECONDS}.")
        is_stream = "text/event-stream" in given.get("accept", "")
        execution, reveals = recorded.summary.execution, self._reveals(call, recorded)
        state = read_state(self._host, recorded, reveals)
        if is_stream and state.is_ended and given.get("last_event_id") == state.version:
            return 204, [], b""  # clients of event streams connect again until then
        if not is_stream and (wait is None or state.is_ended):
            return 200, JSON_HEADERS, state.body
        attempt = execution
        stamp: tuple[object, ...] = ()

        def look(version: str | None) -> RunState | None:
            nonlocal attempt, stamp
            attempt, is_over = last_attempt(self._host, attempt)
            now = (attempt, is_over, *_stamp(self._host.journal.summary(attempt)))
            if version is not None and now == stamp:
                return None
            stamp = now
            state = read_state(self._host, self._host.journal.read(execution), reveals)
            return None if state.version == version else state

        return Watch(look, state, float(wait or 0), is_stream)

    def _signal(self, call: RunsCall[object], given: Mapping[str, Any]) -> Sent:
        _refuse_others(given, "id", "name", "value")
        recorded, journal, value = self._find_to_change(call, given["id"]), self._host.journal, given.get("value")
        execution, name = recorded.summary.execution, given["name"]
        key = None if call.key is None else f"{execution}:{name}:{call.key}"  # other runs have other keys
        sent = send_signal(journal, execution, name, value, key, None, call.actor)
        self._host.keeper.notice()
        told = {"is_kept": sent.is_kept, "is_repeat": sent.is_repeat}
        return 202, JSON_HEADERS, json.dumps({"execution": execution, **told}).encode()

    def _answer(self, call: RunsCall[object], given: Mapping[str, Any]) -> Sent:
        _refuse_others(given, "id", "value")
        recorded = self._find_to_change(call, given["id"])
        answer(self._host.journal, recorded.summary.execution, given.get("value"), call.actor)
        self._host.keeper.notice()
        return self._state_response(call, self._host.journal.read(recorded.summary.execution), 202)

    def _cancel(self, call: RunsCall[object], given: Mapping[str, Any]) -> Sent:
        _refuse_others(given, "id", "reason")
        reason = given.get("reason")
        if not isinstance(reason, str) or not 3 <= len(reason.strip()) <= 500 or not reason.isprintable():
            raise Refusal("bad_input", "`reason` is a text of 3 to 500 printable characters.")
        recorded = self._find_to_change(call, given["id"])
        cancel(self._host.journal, recorded.summary.execution, reason.strip(), call.actor)
        self._host.keeper.notice()
        return self._state_response(call, self._host.journal.read(recorded.summary.execution), 202)

    # -- rights -----------------------------------------------------------------------------------

    def _find(self, call: RunsCall[object], execution: str) -> Recorded:
        """Return a run that the caller may see. Raises `Refusal`, as for an unknown run."""
        node, recorded = None, None
        try:
            if _ID.fullmatch(execution):
                node = self._node_of(self._host.journal.summary(execution))
                recorded = None if node is None else self._host.journal.read(execution)
        except UnknownExecution:
            pass
        if node is None or recorded is None or not _is_of_tenant(call, recorded):
            raise Refusal("not_found", "There is no such run.")
        self._require_scopes(call, node, execution)
        return recorded

    def _find_to_change(self, call: RunsCall[object], execution: str) -> Recorded:
        """Return a run that the caller may change. Raises `Refusal`."""
        recorded = self._find(call, execution)
        node = self._node_of(recorded.summary)
        assert node is not None  # as `_find` has checked
        self._refuse_signed(node)
        return recorded

    def _refuse_signed(self, node: Node) -> None:
        """Refuse nodes whose requests must be signed: requests to `/runs` have no signature."""
        if node.id in self._settings.webhooks:
            raise Refusal("forbidden", f"Runs of {node.id} begin and change by its signed webhook, not here.")

    def _is_visible(self, call: RunsCall[object], summary: Summary) -> bool:
        node = self._node_of(summary)
        if node is None or any(scope not in call.scopes for scope in scopes_of(node, self._settings)):
            return False
        return call.tenant is None or _is_of_tenant(call, self._host.journal.read(summary.execution))

    def _node_of(self, summary: Summary) -> Node | None:
        """Return the served node of a run. A run of an older version has the rights of the served version."""
        return self._nodes.get(summary.node_id) or self._names.get(summary.node_id.rpartition("_v")[0])

    def _require_scopes(self, call: RunsCall[object], node: Node, execution: str | None) -> None:
        for scope in scopes_of(node, self._settings):
            if scope not in call.scopes:
                raise Refusal("forbidden", f"The caller lacks the scope `{scope}`.", execution)

    def _reveals(self, call: RunsCall[object], recorded: Recorded) -> bool:
        """Return whether the caller may see sensitive values. It has the scope for that, or began the run."""
        if self._settings.reveal_scope is not None and self._settings.reveal_scope in call.scopes:
            return True
        context = _context(recorded)
        return call.actor is not None and (call.actor, call.via) == (context.get("actor"), context.get("via"))

    def _state_response(
        self, call: RunsCall[object], recorded: Recorded, status: int, headers: list[tuple[str, str]] | None = None
    ) -> Sent:
        state = read_state(self._host, recorded, self._reveals(call, recorded))
        named = ("Vesper-Execution", recorded.summary.execution)
        return status, [*JSON_HEADERS, *(headers or []), named], state.body


class _NotInputs(Exception):
    """The inputs of a new run are invalid; the outcome is that of `run_json`."""

    def __init__(self, outcome: bytes) -> None:
        super().__init__()
        self.outcome = outcome


def _read_run_inputs(node: Node, forms: object) -> Mapping[str, Any]:
    """Return the inputs of a new run. Raises `_NotInputs` with the outcome of a call with them."""
    compiled = node._compiled
    plain = inputs_of_forms(compiled.node.inputs, forms)
    problems = plain.refused
    if not problems:
        problems = tuple(map(plain.caller_problem, accept_inputs(compiled.node.declared_inputs, plain.inputs)[1]))
    if problems:
        raise _NotInputs(outcome_json(compiled, Failed(ErrorCode.BAD_INPUT, None, problems), plain).encode())
    return plain.inputs


def _read_members(inputs: bytes) -> dict[str, Any]:
    """Return the members of a request. Raises `Refusal`."""
    try:
        found = forms_of_json(inputs.decode())
    except UnicodeDecodeError:
        raise Refusal("malformed", "The body is not UTF-8.") from None
    except JsonMistake as mistake:
        raise Refusal("malformed", f"The body is not JSON: {mistake.what}.") from None
    if not isinstance(found, dict):
        raise Refusal("bad_input", "The body is not an object.")
    return found


def _refuse_others(given: Mapping[str, Any], *known: str) -> None:
    """Refuse unknown members and query parameters, and parameters that occur twice."""
    for name in sorted(given.keys() - set(known)):
        kind = "query parameter" if name.startswith("?") else "member"
        raise Refusal("bad_input", f"There is no {kind} `{name.removeprefix('?')}`; known: {', '.join(known)}.")
    for name in _PARAMETERS & given.keys():
        if not isinstance(given[name], str):
            raise Refusal("bad_input", f"`{name}` occurs twice.")


def _number(text: str) -> int:
    """Return a number of at most 9 digits; -1 for all other texts."""
    return int(text) if _DIGITS.fullmatch(text) else -1


def _context(recorded: Recorded) -> Mapping[str, str]:
    found = recorded.entries[0].entry.body.get("context")
    return found if isinstance(found, Mapping) else {}


def _is_of_tenant(call: RunsCall[object], recorded: Recorded) -> bool:
    return call.tenant is None or call.tenant == _context(recorded).get("tenant")


def _stamp(summary: Summary) -> tuple[str, int]:
    """Return a value that changes with the status or the wait of a run."""
    return summary.status, 0 if summary.status is Status.RUNNING else summary.updated_us
