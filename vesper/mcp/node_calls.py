"""Calls of nodes by an MCP client: outcomes as tool results, and questions of tool rules to the person there.

A run begins in a task of its own and outlives the request that began it: a client of protocol 2026-07-28 gets a
question as the result of its request and asks again with the answer.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import json
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ClientCapabilities,
    ElicitationCapability,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    TextContent,
)
from mcp_types.version import is_version_at_least

from vesper.api.json_calls import stream_json
from vesper.host.run_context import run_context
from vesper.host.tools.guarded import Question, refusal
from vesper.values.model import printable
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from vesper.api.node import Node
    from vesper.api.observed.answer_stream import AnswerStream
    from vesper.host.host import Host
    from vesper.mcp.callers import Caller

ANSWER_SECONDS: Final = 600.0
"""Time that a person has to answer a question."""
MAX_SHOWN: Final = 500
"""Characters of arguments that a question repeats."""
_MAX_DIGITS: Final = 15
"""Digits of a decimal number that every JSON reader keeps."""
_ANSWER: Final = "answer"
_FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"allow": {"type": "boolean", "title": "Allow this call", "default": False}},
    "required": ["allow"],
}


class _Asked:
    """A question that waits for a person."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.answer: concurrent.futures.Future[bool | str] = concurrent.futures.Future()

    def settle(self, answer: bool | str) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)

    def text(self) -> str:
        call = self.question.call
        shown = "" if call.is_sensitive else f" with {json.dumps(dict(call.arguments), default=str)[:MAX_SHOWN]}"
        return f"{printable(self.question.rule)} asks before `{printable(call.tools[0])}`{printable(shown)}"


class _Run:
    """A run with effects, and its questions."""

    def __init__(self, tool: str, stream: AnswerStream[bytes], can_ask: bool) -> None:
        self.tool = tool
        self.stream = stream
        self.can_ask = can_ask
        self.questions: asyncio.Queue[_Asked] = asyncio.Queue()
        self.asked: _Asked | None = None
        """The question that was handed out and not answered yet."""
        self.outcome = asyncio.ensure_future(stream.result())
        self._loop = asyncio.get_running_loop()

    def ask(self, question: Question) -> bool | str:
        """Wait for the answer of a person. Runs in the thread of a performer."""
        asked = _Asked(question)
        self._loop.call_soon_threadsafe(self.questions.put_nowait, asked)
        try:
            return asked.answer.result(ANSWER_SECONDS)
        except TimeoutError:
            return f"no answer within {ANSWER_SECONDS:g} s"

    async def next_question(self) -> _Asked | None:
        """Return the next question; None when the run has ended."""
        if self.asked is not None:
            return self.asked
        question = asyncio.ensure_future(self.questions.get())
        try:
            await asyncio.wait((self.outcome, question), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not question.done():
                question.cancel()
        self.asked = None if self.outcome.done() else question.result()
        return self.asked

    def settle(self, answer: bool | str) -> None:
        asked, self.asked = self.asked, None
        if asked is not None:
            asked.settle(answer)

    async def stop(self) -> None:
        self.settle("the client ended the call")
        await self.stream.aclose()


class NodeCalls:
    """Calls nodes for a client, and asks it what the rules of tools ask."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._runs: list[_Run] = []
        self._waiting: dict[str, _Run] = {}
        """Runs whose question a client of protocol 2026-07-28 has, by the state that comes back with the answer."""
        host.guard.confirm = self._confirm

    async def call(
        self, node: Node, params: CallToolRequestParams, context: ServerRequestContext[Any], caller: Caller
    ) -> CallToolResult | InputRequiredResult:
        """Run a node, or go on with a run that the client has answered a question of."""
        if params.request_state is not None:
            return await self._drive(self._answered(params), context)
        try:
            text = exact_json(params.arguments or {})
        except ValueError as problem:
            return failed(str(problem))
        with run_context(actor=caller.name, tenant=caller.tenant, via="mcp"):
            if node._entries is not None:
                return result_of(await asyncio.to_thread(node.run_json, text), self._host.redact)
            run = _Run(params.name, stream_json(node, text, has_reason=True), _can_ask(context))
        self._runs.append(run)
        run.outcome.add_done_callback(lambda _: self._forget(run))
        return await self._drive(run, context)

    async def _drive(self, run: _Run, context: ServerRequestContext[Any]) -> CallToolResult | InputRequiredResult:
        try:
            while (asked := await run.next_question()) is not None:
                request = ElicitRequest(params=ElicitRequestFormParams(message=asked.text(), requested_schema=_FORM))
                if is_version_at_least(context.protocol_version, "2026-07-28"):
                    state = secrets.token_urlsafe(24)
                    self._waiting[state] = run
                    return InputRequiredResult(input_requests={_ANSWER: request}, request_state=state)
                run.settle(is_allowed(await context.session.elicit_form(asked.text(), _FORM, context.request_id)))
            return result_of(await run.outcome, self._host.redact)
        except VesperError as problem:
            return failed(self._host.redact(str(problem)))
        except asyncio.CancelledError:
            await run.stop()
            raise

    def _answered(self, params: CallToolRequestParams) -> _Run:
        """Return the run that a client answers, with the answer handed over. Raises `MCPError`."""
        run = self._waiting.pop(params.request_state or "", None)
        if run is None or run.tool != params.name:
            raise MCPError(INVALID_PARAMS, "no call waits for this answer; begin a new one")
        answer = (params.input_responses or {}).get(_ANSWER)
        run.settle(is_allowed(answer) if isinstance(answer, ElicitResult) else "the client gave no answer")
        return run

    def _confirm(self, question: Question) -> bool | str:
        run = next((each for each in self._runs if each.stream.execution == question.call.execution), None)
        if run is None or not run.can_ask:
            call = question.call
            message = f"{question.rule} asks before `{call.tools[0]}`, and the MCP client has no form to ask a person"
            raise refusal(call.effect, message)
        return run.ask(question)

    def _forget(self, run: _Run) -> None:
        """Drop a run that has ended; what it asked is not answered any more."""
        self._runs.remove(run)
        self._waiting = {state: each for state, each in self._waiting.items() if each is not run}
        if not run.outcome.cancelled():
            run.outcome.exception()  # a client that went away does not read it

    async def close(self) -> None:
        """End the runs that are under way."""
        for run in list(self._runs):
            with contextlib.suppress(asyncio.CancelledError, VesperError):
                await run.stop()


def _can_ask(context: ServerRequestContext[Any]) -> bool:
    return context.session.check_client_capability(ClientCapabilities(elicitation=ElicitationCapability()))


def is_allowed(answer: ElicitResult) -> bool:
    """Return whether a person accepted the form and allowed the call."""
    return answer.action == "accept" and (answer.content or {}).get("allow") is True


def exact_json(arguments: dict[str, Any]) -> bytes:
    """Return arguments as JSON text. Raises `ValueError` for a number that may have lost digits on its way."""
    _check_digits(arguments)
    return json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()


def _check_digits(value: object) -> None:
    match value:
        case float() if len(repr(value).partition("e")[0].replace(".", "").strip("-0")) > _MAX_DIGITS:
            raise ValueError(f"the number {value!r} may have lost digits in JSON: pass it as a text")
        case dict():
            for each in value.values():
                _check_digits(each)
        case list():
            for each in value:
                _check_digits(each)


# -- results --------------------------------------------------------------------------------------


def result_of(outcome: bytes, redact: Callable[[str], str]) -> CallToolResult:
    """Return the result of a tool for an outcome as canonical JSON: outputs, or an error that the model can read."""
    found = json.loads(outcome)
    if found["kind"] == "returned":
        value = found["value"]
        return CallToolResult(content=[_text(json.dumps(value, ensure_ascii=False))], structured_content=value)
    return CallToolResult(content=[_text(redact(f"{found['code']}: {found['message']}"))], is_error=True)


def failed(message: str) -> CallToolResult:
    """Return an error of a tool that never gave an outcome."""
    return CallToolResult(content=[_text(message)], is_error=True)


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)
