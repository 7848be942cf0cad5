"""Recorded conversations of agents: short cases that run again."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import vesper
from tests.support.models.agents import write_agents
from vesper.testing import Recorder, Replay, Stubs, model
from vesper.testing.replay_host import ReplayMismatch


def test_a_case_has_new_messages_and_the_members_that_an_agent_reads(tmp_path: Path) -> None:
    write_agents(tmp_path)
    path = tmp_path / "recorded.yaml"
    with Stubs() as real:
        model.Script(
            real,
            [
                model.calls(model.call("guide", question="Rome?", history=[]), usage=model.Usage(9, 9)),
                model.calls(model.call("weather", city="Rome"), model.call("weather", city="Oslo")),
                model.text("Four and four."),
                model.text("It is four."),
            ],
        )
        desk = vesper.load(tmp_path / "desk_v1.vsp", host=Recorder(real, path))
        assert desk(question="How is Rome?").reply == "It is four."
    (case,) = yaml.safe_load(path.read_text(encoding="utf-8"))["test_cases"]
    first, guide, again, last = case["effects"]
    assert [each["step"] for each in (first, guide, again, last)] == [
        "model[0]", "guide[0][0]/model[0]", "guide[0][0]/model[1]", "model[1]",
    ]  # fmt: skip
    assert first["request"] == {
        "model": "main",
        "request": {"messages": [{"content": "How is Rome?", "role": "user"}]},
    }
    messages = again["request"]["request"]["messages"]
    assert messages[:2] == [{"role": "user"}, {"role": "assistant"}]
    assert [each["call"] for each in messages[2:]] == ["call_1", "call_2"]
    assert {key for each in case["effects"] for key in each["returns"]} == {"stop", "text", "tool_calls"}

    for engine in ("python", "interp"):
        with Replay(path) as replay:
            recorded = vesper.load(tmp_path / "desk_v1.vsp", host=replay, engine=engine)
            assert recorded(replay.inputs(recorded)).reply == "It is four."
    path.write_text(path.read_text(encoding="utf-8").replace("How is Rome?", "How is Oslo?", 1), encoding="utf-8")
    with Replay(path) as replay:
        node = vesper.load(tmp_path / "desk_v1.vsp", host=replay)
        with pytest.raises(ReplayMismatch, match=r"`model\[0\]` has `request`"):
            node(replay.inputs(node))


def test_a_question_of_a_node_that_is_no_agent_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "recorded.yaml"
    file = tmp_path / "ask_v1.vsp"
    file.write_text(
        """node_id: ask_v1
type: event_handler
intent: Ask once
inputs: {event_id: string}
outputs:
  success: {answer: json}
flow:
  - step: answer
    operation: ask_model
    model: main
    request: {messages: [{role: user, content: Hello}], max_tokens: 7}
  - return: {answer: answer}
security:
  capabilities_required: [models.call.main]
""",
        encoding="utf-8",
    )
    with Stubs() as real:
        model.Script(real, [model.text("Hi")])
        assert vesper.load(file, host=Recorder(real, path))(event_id="e").ok
    (case,) = yaml.safe_load(path.read_text(encoding="utf-8"))["test_cases"]
    (asked,) = case["effects"]
    assert asked["request"]["request"]["max_tokens"] == 7
    assert asked["returns"]["model"] == "main"
