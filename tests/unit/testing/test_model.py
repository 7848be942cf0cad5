"""`vesper.testing.model`: scripted answers of models, and what a test sees of the questions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import vesper
from tests.support.nodes import ROOT
from vesper.agents import Agent
from vesper.testing import StubError, Stubs, model
from vesper.testing.stubs import Unanswered

FOLDER = ROOT / "nodes" / "agents"
SENT = {"queue": "shipping", "urgency": 3, "reply": "It arrives on Friday."}


@pytest.fixture
def host() -> Iterator[Stubs]:
    with Stubs() as found:
        yield found


def triage(host: Stubs, engine: str = "python") -> Agent:
    return Agent(vesper.load(str(FOLDER / "support_triage_v1.vsp"), host=host, engine=engine))


@pytest.mark.parametrize("engine", ["python", "interp"])
def test_a_script_answers_in_turn_and_keeps_the_questions(host: Stubs, engine: str) -> None:
    usage = model.Usage(150, 20)
    script = model.Script(
        host,
        [
            model.calls(model.call("order_lookup", order_number="100234"), text="I look.", usage=usage),
            model.output(SENT, usage=usage, cost_usd="0.0021"),
        ],
        model="claude",
    )
    host.answer("order_lookup/found", {"status": "sent", "due": None})
    agent = triage(host, engine)
    outcome = agent(ticket="Where is order 100234?")
    assert outcome.unwrap() == SENT
    first, second = script.questions
    assert (first.text, first.model, first.has_output) == ("Where is order 100234?", "claude", True)
    assert first.system.startswith("You sort support tickets")
    assert [each.name for each in first.tools] == ["order_lookup"]
    assert [each.content.rpartition(": ")[2] for each in second.results] == ['{"due":null,"status":"sent"}']
    assert first.results == ()
    run, *calls = agent.calls(outcome.trace_id)
    assert (run.input_tokens, run.output_tokens, run.cost_usd) == (300, 40, Decimal("0.0021"))
    assert [each.model for each in calls] == ["claude", "claude"]
    host.assert_all_used()


def test_a_wrong_answer_is_repaired_and_a_failure_ends_the_agent(host: Stubs) -> None:
    script = model.Script(host, [model.output(SENT, urgency=11), model.text("not JSON"), model.output(SENT)])
    assert triage(host)(ticket="Help").ok
    assert script.questions[1].text == "The contract is broken: urgency IN [0..9]"
    assert script.questions[2].text.startswith("The answer does not fit: queue must be")
    for reply, reason in (
        (model.fails("overloaded"), "overloaded"),
        (model.refusal("No."), "refused"),
        (model.cut('{"queue"'), "length"),
    ):
        model.Script(host, [reply])
        outcome = triage(host)(ticket="Help")
        assert outcome.error is not None
        assert outcome.error.fields["reason"] == reason


def test_a_function_answers_every_question(host: Stubs) -> None:
    def answer(question: model.Question) -> model.Reply:
        return model.output(SENT, reply=f"{question.number}: {question.text}")

    script = model.Script(host, answer)
    assert triage(host)(ticket="One").reply == "1: One"
    assert triage(host)(ticket="Two").reply == "2: Two"
    assert len(script.questions) == 2


def test_scripted_answers_stream(host: Stubs) -> None:
    model.Script(host, [model.calls(model.call("order_lookup", order_number="1")), model.output(SENT)])

    async def read() -> list[Any]:
        async with triage(host).stream(ticket="Where?") as answer:
            return [event async for event in answer]

    events = asyncio.run(read())
    assert [each.call["name"] for each in events if each.kind == "tool_start"] == ["order_lookup"]
    assert "".join(each.text for each in events if each.path == "model[1]" and each.kind == "text").startswith("{")


def test_mistakes_of_a_test_are_named(host: Stubs) -> None:
    with pytest.raises(StubError, match="a model never fails with `not_found`, but with timeout"):
        model.fails("not_found")
    with pytest.raises(StubError, match="'yes' is no reply of a model: use text"):
        model.Script(host, ["yes"])  # type: ignore[list-item]
    with pytest.raises(StubError, match="at least one call"):
        model.calls()
    model.Script(host, [model.text("{}")])
    with pytest.raises(Unanswered, match=rf"nobody answers `model\[1\]`(?s:.)*{Path(__file__).name}"):
        triage(host)(ticket="Help")
    model.Script(host, [model.text("never asked")])
    with pytest.raises(AssertionError, match="answers that were not used"):
        host.assert_all_used()


def test_the_fixture_scripts_the_stubs_of_the_test(
    vesper_stubs: Stubs, vesper_model: Callable[..., model.Script]
) -> None:
    script = vesper_model([model.output(SENT)], model="claude")
    assert triage(vesper_stubs)(ticket="Hello").queue == "shipping"
    assert len(script.questions) == 1
