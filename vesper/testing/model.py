"""`vesper.testing.model`: answers of models from a script.

    with Stubs() as host:
        script = model.Script(host, [
            model.calls(model.call("order_lookup", order_number="100234")),
            model.output(queue="shipping", urgency=3, reply="It arrives on Friday."),
        ])
        host.answer("order_lookup/found", {"status": "sent", "due": None})
        outcome = vesper.load("support_triage", host=host)(ticket="Where is order 100234?")
    assert script.questions[1].results[0].call == "call_1"

Everything else of the node is performed as by any Host: answers are parsed, checked and repaired, tools are called.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, TypeAlias

from vesper.effects.models.messages import (
    Answer,
    Message,
    Stop,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
    read_messages,
    read_tools,
)
from vesper.effects.performer import EffectFailed
from vesper.host.stub_answers import NOTHING, Asked, StubError, place_of_test
from vesper.host.stub_answers import Answer as StubAnswer
from vesper.testing.stubs import Stubs
from vesper.values.generated.effects import EFFECTS
from vesper.values.json_value import canonical_text, json_of

__all__ = [
    "Answer", "Message", "Question", "Reply", "Script", "Tool", "ToolCall", "ToolResult", "Usage", "call", "calls",
    "cut", "fails", "output", "refusal", "text",
]  # fmt: skip

_EFFECT = "model_call"
Reply: TypeAlias = "Answer | EffectFailed"


@dataclass(frozen=True, slots=True)
class Question:
    """One request to a scripted model."""

    number: int
    """From 1."""
    model: str
    """Name of the model in the configuration."""
    step: str
    system: str
    messages: tuple[Message | ToolResult, ...]
    tools: tuple[Tool, ...]
    has_output: bool
    """Whether the request asks for structured output."""
    body: Mapping[str, Any]
    """The whole request."""

    @property
    def text(self) -> str:
        """Text of the last message."""
        return self.messages[-1].text if self.messages else ""

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """Results of tools since the last answer."""
        found: list[ToolResult] = []
        for each in reversed(self.messages):
            if not isinstance(each, ToolResult):
                break
            found.append(each)
        return tuple(reversed(found))


Behaviour: TypeAlias = Callable[[Question], Reply]


class Script:
    """The answers of models in a test, and the questions they got. Thread-safe."""

    def __init__(
        self,
        host: Stubs,
        replies: Iterable[Reply] | Behaviour,
        *,
        model: str | None = None,
        step: str | None = None,
        depth: int = 1,
    ) -> None:
        """`replies` are given in turn, or by a function of each question.

        With `model` or `step` only the requests to this model or of this step are answered. Messages name the line
        of the caller, `depth` calls above.
        """
        self._host = host
        self._lock = threading.Lock()
        self._questions: list[Question] = []
        when = None if model is None else {"model": model}
        place = place_of_test(depth)
        if callable(replies):
            host.add_answer(StubAnswer(step, _EFFECT, NOTHING, None, self._answered(replies), when, None, False, place))
            return
        for reply in replies:
            function = self._answered(_always(checked_reply(reply)))
            host.add_answer(StubAnswer(step, _EFFECT, NOTHING, None, function, when, 1, False, place))

    @property
    def questions(self) -> tuple[Question, ...]:
        """All questions so far, in order."""
        with self._lock:
            return tuple(self._questions)

    def _answered(self, behaviour: Behaviour) -> Callable[[Asked], object]:
        def answer(asked: Asked) -> object:
            with self._lock:
                question = _question(asked, len(self._questions) + 1)
                self._questions.append(question)
            reply = checked_reply(behaviour(question))
            if isinstance(reply, EffectFailed):
                raise reply
            found = _completed(reply, question)
            for chunk in _chunks(found, asked.step):
                self._host.publish_chunk(asked.execution, chunk)
            return found.members()

        return answer


# -- replies --------------------------------------------------------------------------------------


def text(text: str, *, usage: Usage | None = None, cost_usd: Decimal | str = "0") -> Answer:
    """Return an answer of text."""
    return _answer(text, (), None, "end", usage, cost_usd)


def output(
    value: Mapping[str, Any] | None = None, /, *, usage: Usage | None = None, cost_usd: Decimal | str = "0", **more: Any
) -> Answer:
    """Return structured output: the fields of `value` and the keywords, as JSON."""
    fields = {**(value or {}), **more}
    return _answer(_json_text(fields), (), fields, "end", usage, cost_usd)


def call(name: str, /, **arguments: Any) -> ToolCall:
    """Return a call of a tool, for `calls`."""
    return ToolCall(name, arguments)


def calls(*tool_calls: ToolCall, text: str = "", usage: Usage | None = None, cost_usd: Decimal | str = "0") -> Answer:
    """Return an answer that calls tools. Calls without `id` get one by their place."""
    if not tool_calls:
        raise StubError("calls() needs at least one call: calls(call('search', text='…'))")
    named = tuple(each if each.id else replace(each, id=f"call_{at}") for at, each in enumerate(tool_calls, start=1))
    return _answer(text, named, None, "tools", usage, cost_usd)


def refusal(text: str = "") -> Answer:
    """Return an answer in which the model refuses."""
    return _answer(text, (), None, "refusal", None, "0")


def cut(text: str, *, usage: Usage | None = None) -> Answer:
    """Return an answer that ends at `max_tokens`."""
    return _answer(text, (), None, "length", usage, "0")


def fails(code: str, message: str = "the script lets the model fail") -> EffectFailed:
    """Return a failure with a code of `model_call`. Raises `StubError` for another code."""
    if code not in EFFECTS[_EFFECT].codes():
        raise StubError(f"a model never fails with `{code}`, but with {', '.join(EFFECTS[_EFFECT].codes())}")
    return EffectFailed(code, message)


def checked_reply(reply: object) -> Reply:
    """Return a reply of a test. Raises `StubError` for anything else."""
    if isinstance(reply, Answer | EffectFailed):
        return reply
    raise StubError(
        f"{reply!r} is no reply of a model: use text(…), output(…), calls(…), refusal(), cut(…) or fails(CODE) of "
        "vesper.testing.model"
    )


def _answer(
    text: str, tool_calls: tuple[ToolCall, ...], output: Any, stop: Stop, usage: Usage | None, cost: Decimal | str
) -> Answer:
    return Answer(text, tool_calls, output, stop, usage=usage or Usage(), cost_usd=Decimal(cost))


def _always(reply: Reply) -> Behaviour:
    return lambda _: reply


def _question(asked: Asked, number: int) -> Question:
    body = asked.arguments.get("request")
    request: Mapping[str, Any] = body if isinstance(body, Mapping) else {}
    return Question(
        number,
        asked.fixed.get("model", ""),
        asked.step,
        str(request.get("system") or ""),
        read_messages(request.get("messages")),
        read_tools(request.get("tools")),
        request.get("output") is not None,
        request,
    )


def _completed(reply: Answer, question: Question) -> Answer:
    """Return the reply as an adapter would read it: output only where the request asks for it."""
    return replace(reply, model=reply.model or question.model, output=reply.output if question.has_output else None)


def _chunks(answer: Answer, path: str) -> Iterable[dict[str, Any]]:
    """Yield the chunks of an answer, as a stream of a provider gives them: a text in words."""
    yield {"kind": "start", "path": path}
    for word in answer.text.replace(" ", " \0").split("\0") if answer.text else ():
        yield {"kind": "text", "path": path, "text": word}
    for each in answer.tool_calls:
        called = {"id": each.id or each.name, "name": each.name}
        yield {"kind": "tool_start", "path": path, "call": called}
        yield {"kind": "tool_arguments", "path": path, "text": _json_text(each.arguments), "call": called}
    yield {"kind": "usage", "path": path, "usage": answer.usage.members()}
    yield {"kind": "end", "path": path}


def _json_text(value: object) -> str:
    return canonical_text(json_of(value))
