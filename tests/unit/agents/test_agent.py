"""`vesper.agents.Agent`: an agent and its parts as typed Python objects, on a server that speaks the real protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import vesper
from tests.docs.test_code_blocks import blocks_of
from tests.support.console import ROOT
from tests.support.models.agents import write_agents
from tests.support.models.replies import Asked, Reply
from tests.support.models.server import ModelServer
from tests.unit.host.small import host_in
from vesper.agents import Agent, Message, NotAConversation, NotAnAgent, ToolCall, ToolResult
from vesper.host.host import Host


def answer(asked: Asked) -> Reply:
    if asked.results:
        return Reply(f"It said {asked.results[-1]}.", input_tokens=20, output_tokens=4)
    if "guide" in asked.tools:
        return Reply(tools=(("guide", {"question": "Rome?", "history": []}),), input_tokens=5, output_tokens=1)
    return Reply("I look.", tools=(("weather", {"city": "Rome"}),), input_tokens=10, output_tokens=2)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    write_agents(tmp_path)
    with ModelServer(answer) as server:
        model = {
            "api": "ollama",
            "model": "llama3",
            "base_url": server.url,
            "allow_private_addresses": True,
            "prices": {"input": "1", "output": "2"},
        }
        with host_in(tmp_path, {"models": {"main": model}, "sessions": {"talks": {}}}) as found:
            yield found


def load(name: str, host: Host, folder: Path) -> Agent:
    return Agent(vesper.load(str(folder / f"{name}_v1.vsp"), host=host))


def test_an_agent_shows_its_model_and_its_tools(host: Host, tmp_path: Path) -> None:
    guide = load("guide", host, tmp_path)
    assert guide.model == "main"
    tool = guide.tools["weather"]
    assert (tool.node, tool.description) == ("weather_v1", "The weather of today")
    assert tool.parameters["required"] == ["city"]
    with pytest.raises(NotAnAgent, match=r"weather_v1 is of type `function`"):
        load("weather", host, tmp_path)


def test_answers_stream_and_a_run_has_messages_and_records(host: Host, tmp_path: Path) -> None:
    guide = load("guide", host, tmp_path)

    async def read() -> tuple[str, str, dict[str, object]]:
        answer = guide.stream(question="Rome?")
        text = "".join([event.text async for event in answer if event.kind == "text"])
        outcome = await answer.result()
        return text, outcome.trace_id, dict(outcome.unwrap())

    text, execution, outputs = asyncio.run(read())
    assert str(outputs["reply"]).endswith('{"degrees":4}.')
    assert text == f"I look.{outputs['reply']}"
    question, call, result, reply = guide.messages(execution)
    assert question == Message("user", "Rome?")
    assert isinstance(call, Message)
    assert [(each.name, each.arguments) for each in call.tool_calls] == [("weather", {"city": "Rome"})]
    assert isinstance(result, ToolResult)
    assert (result.call, result.content[-13:], result.is_error) == (call.tool_calls[0].id, '{"degrees":4}', False)
    assert isinstance(reply, Message)
    assert (reply.role, reply.text) == ("assistant", outputs["reply"])
    run, first, second = guide.calls(execution)
    assert (run.input_tokens, run.output_tokens) == (30, 6)
    assert run.cost_usd == first.cost_usd + second.cost_usd == Decimal("0.000042")


def test_messages_enter_a_conversation_and_leave_it(host: Host, tmp_path: Path) -> None:
    guide = load("guide", host, tmp_path)
    past = [Message("user", "Hello").members(), Message("assistant", "Hi", (ToolCall("weather", {}),)).members()]
    assert guide({"question": "Rome?", "history": past}).ok
    talk = guide.conversation("talks", "ada")
    for _ in range(2):
        stream = talk.ask("Rome?")
        assert talk.keep(stream).ok
    assert len(host.sessions("talks").read("ada").messages) == 4
    with pytest.raises(NotAConversation, match="cannot remember a session"):
        load("desk", host, tmp_path).conversation("talks", "ada")


def test_a_called_agent_has_its_own_record_below_the_one_that_calls_it(host: Host, tmp_path: Path) -> None:
    desk = load("desk", host, tmp_path)
    outcome = asyncio.run(desk.arun(question="Rome?"))
    records = {each.path: each for each in desk.calls(outcome.trace_id)}
    (inner,) = [each for path, each in records.items() if each.kind == "agent" and path]
    assert (inner.agent, inner.input_tokens, inner.parent_span) == ("guide_v1", 30, records[""].span_id)
    below = [each for each in records.values() if each.parent_span == inner.span_id]
    assert [each.agent for each in below] == ["guide_v1", "guide_v1"]
    assert records[""].input_tokens == 55
    assert desk.messages(outcome.trace_id)[-1].text == outcome.unwrap()["reply"]


def test_the_examples_of_stream_answers_run(host: Host, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    coroutine, conversation = [
        each.text for each in blocks_of(ROOT / "docs" / "how-to" / "stream-answers.md") if each.language == "python"
    ]
    loaded = 'guide = Agent("guide")\n'
    assert loaded in coroutine
    names: dict[str, Any] = {"guide": load("guide", host, tmp_path)}
    exec(coroutine.replace(loaded, ""), names)  # an example of our own page
    reply = asyncio.run(names["answer"]("Rome?"))
    assert capsys.readouterr().out == f"I look.{reply}"
    exec(conversation, names)  # as above
    assert len(host.sessions("talks").read("ada").messages) == 2
