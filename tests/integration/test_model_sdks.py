"""The official SDKs of OpenAI and Anthropic on the model servers of the tests: they speak the real protocols."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.models.replies import Asked, Fault, Reply
from tests.support.models.server import KEY, ModelServer

if TYPE_CHECKING:
    from anthropic import Anthropic
    from openai import OpenAI

PICTURE = base64.b64encode(b"\x89PNG").decode()
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TEXT = "Rome lies on the Tiber, and has seven hills."


def behave(asked: Asked) -> Reply | Fault:
    last = asked.texts[-1]
    if asked.results:
        return Reply(f"It is {asked.results[-1]} there.", input_tokens=30, output_tokens=7)
    if asked.tools:
        return Reply("I look.", tools=(("weather", {"city": "Rome"}), ("weather", {"city": "Ostia"})))
    if last.isdigit():
        return Fault(int(last), headers={"Retry-After": "7"})
    return Reply(f"{TEXT} ({asked.images})", thinking="Hills?", input_tokens=12, output_tokens=9, cached_tokens=2)


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer(behave) as found:
        yield found


@pytest.fixture(scope="module")
def openai(server: ModelServer) -> Iterator[OpenAI]:
    from openai import OpenAI

    with OpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def anthropic(server: ModelServer) -> Iterator[Anthropic]:
    from anthropic import Anthropic

    with Anthropic(base_url=server.url, api_key=KEY, max_retries=0) as client:
        yield client


# -- OpenAI ---------------------------------------------------------------------------------------


def test_openai_answers_a_question_with_a_picture(openai: OpenAI) -> None:
    picture: Any = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}
    found = openai.chat.completions.create(
        model="m",
        messages=[
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": [{"type": "text", "text": "Where is it?"}, picture]},
        ],
    )
    (choice,) = found.choices
    assert (choice.message.role, choice.message.content) == ("assistant", f"{TEXT} (1)")
    assert choice.finish_reason == "stop"
    assert found.usage is not None
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (12, 9)
    assert found.usage.prompt_tokens_details is not None
    assert found.usage.prompt_tokens_details.cached_tokens == 2


def test_openai_streams(openai: OpenAI) -> None:
    asked: Any = {"model": "m", "messages": [{"role": "user", "content": "Rome?"}]}
    with openai.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
        parts = [event.delta for event in stream if event.type == "content.delta"]
        found = stream.get_final_completion()
    assert len(parts) > 3
    assert "".join(parts) == found.choices[0].message.content == f"{TEXT} (0)"
    assert found.usage is not None
    assert found.usage.total_tokens == 21


@pytest.mark.parametrize("is_streamed", [False, True])
def test_openai_calls_tools(openai: OpenAI, is_streamed: bool) -> None:
    tool: Any = {"type": "function", "function": {"name": "weather", "parameters": CITY}}
    messages: list[Any] = [{"role": "user", "content": "How is it in Rome?"}]
    asked: Any = {"model": "m", "messages": messages, "tools": [tool]}
    if is_streamed:
        with openai.chat.completions.stream(**asked) as stream:
            message: Any = stream.get_final_completion().choices[0].message
    else:
        message = openai.chat.completions.create(**asked).choices[0].message
    calls = message.tool_calls
    assert [json.loads(each.function.arguments) for each in calls] == [{"city": "Rome"}, {"city": "Ostia"}]
    results = [{"role": "tool", "tool_call_id": each.id, "content": f"{at} degrees"} for at, each in enumerate(calls)]
    messages += [message.to_dict(), *results]
    found = openai.chat.completions.create(**asked)
    assert found.choices[0].message.content == "It is 1 degrees there."


def test_openai_knows_the_errors(openai: OpenAI) -> None:
    from openai import APIStatusError, AuthenticationError, BadRequestError, InternalServerError, RateLimitError

    kinds = {400: BadRequestError, 401: AuthenticationError, 429: RateLimitError, 503: InternalServerError}
    for status, kind in kinds.items():
        with pytest.raises(kind, match="a fault on demand") as raised:
            openai.chat.completions.create(model="m", messages=[{"role": "user", "content": str(status)}])
        assert isinstance(raised.value, APIStatusError)
        assert raised.value.response.headers["retry-after"] == "7"


# -- Anthropic ------------------------------------------------------------------------------------


def test_anthropic_answers_a_question_with_a_picture(anthropic: Anthropic) -> None:
    picture: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}}
    found = anthropic.messages.create(
        model="m",
        max_tokens=100,
        system="Be short.",
        messages=[{"role": "user", "content": [picture, {"type": "text", "text": "Where is it?"}]}],
    )
    thinking, text = found.content
    assert (thinking.type, text.type) == ("thinking", "text")
    assert text.type == "text"
    assert text.text == f"{TEXT} (1)"
    assert (found.role, found.stop_reason) == ("assistant", "end_turn")
    assert (found.usage.input_tokens, found.usage.cache_read_input_tokens) == (10, 2)


def test_anthropic_streams(anthropic: Anthropic) -> None:
    messages: Any = [{"role": "user", "content": "Rome?"}]
    with anthropic.messages.stream(model="m", max_tokens=100, messages=messages) as stream:
        parts = list(stream.text_stream)
        found = stream.get_final_message()
    assert len(parts) > 3
    thinking, text = found.content
    assert thinking.type == "thinking"
    assert (thinking.thinking, bool(thinking.signature)) == ("Hills?", True)
    assert text.type == "text"
    assert "".join(parts) == text.text == f"{TEXT} (0)"
    assert found.usage.output_tokens == 9


@pytest.mark.parametrize("is_streamed", [False, True])
def test_anthropic_calls_tools(anthropic: Anthropic, is_streamed: bool) -> None:
    messages: list[Any] = [{"role": "user", "content": "How is it in Rome?"}]
    tool: Any = {"name": "weather", "input_schema": CITY}
    asked: Any = {"model": "m", "max_tokens": 100, "messages": messages, "tools": [tool]}
    if is_streamed:
        with anthropic.messages.stream(**asked) as stream:
            message = stream.get_final_message()
    else:
        message = anthropic.messages.create(**asked)
    assert message.stop_reason == "tool_use"
    calls = [each for each in message.content if each.type == "tool_use"]
    assert [each.input for each in calls] == [{"city": "Rome"}, {"city": "Ostia"}]
    results = [
        {"type": "tool_result", "tool_use_id": each.id, "content": f"{at} degrees"} for at, each in enumerate(calls)
    ]
    messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]
    (found,) = anthropic.messages.create(**asked).content
    assert found.type == "text"
    assert found.text == "It is 1 degrees there."


def test_anthropic_knows_the_errors(anthropic: Anthropic) -> None:
    from anthropic import APIStatusError, AuthenticationError, BadRequestError, OverloadedError, RateLimitError

    kinds = {400: BadRequestError, 401: AuthenticationError, 429: RateLimitError, 529: OverloadedError}
    for status, kind in kinds.items():
        with pytest.raises(kind, match="a fault on demand") as raised:
            anthropic.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": str(status)}])
        assert isinstance(raised.value, APIStatusError)
        assert raised.value.status_code == status
    with pytest.raises(BadRequestError, match="temperature: not supported in version 2026-10-21"):
        anthropic.messages.create(
            model="m",
            max_tokens=9,
            messages=[{"role": "user", "content": "Rome?"}],
            extra_body={"temperature": 0.5},
        )
