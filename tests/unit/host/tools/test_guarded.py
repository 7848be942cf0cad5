"""Rules, confirmation, hooks and secrets around performers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.effects.ask_of import ask_of
from vesper.config.tool_rules import ToolRule, read_tool_rules
from vesper.effects.hooks.registry import (
    MAX_RETRIES,
    Answer,
    Block,
    Call,
    HookError,
    Hooks,
    Replace,
    Retry,
)
from vesper.effects.performer import Ask, EffectFailed
from vesper.effects.settings import ConfigError, Table
from vesper.host.tools.guarded import Guard, Question
from vesper.values.types import JSON


class Tool:
    """Notes what it performs."""

    def __init__(self, give: Callable[[Ask], object] = lambda _: "done") -> None:
        self.asked: list[object] = []
        self._give = give

    def perform(self, ask: Ask) -> object:
        self.asked.append(ask.arguments["arguments"])
        return self._give(ask)

    def probe(self, ask: Ask) -> object:
        raise AssertionError

    def close(self) -> None:
        pass


def rules(*values: dict[str, object]) -> tuple[ToolRule, ...]:
    return read_tool_rules([Table(f"settings.tool_rules[{n}]", each) for n, each in enumerate(values)])


@pytest.fixture
def hooks() -> Hooks:
    return Hooks()


def performed(guard: Guard, tool: Tool, arguments: object, effect_class: str = "read", path: str = "step") -> object:
    fixed = {"server": "tracker", "tool": "close_issue"}
    ask = ask_of("mcp_call", fixed, {"arguments": arguments}, JSON, effect_class, path=path)
    return guard.around("mcp_call", tool).perform(ask)


def refused(guard: Guard, tool: Tool, arguments: object, effect_class: str = "read") -> str:
    with pytest.raises(EffectFailed) as failure:
        performed(guard, tool, arguments, effect_class)
    assert failure.value.code == "not_allowed"
    return failure.value.message


def guard_of(hooks: Hooks, *values: dict[str, object], redact: Callable[[str], str] = str) -> Guard:
    return Guard(rules(*values), {}, redact, hooks)


def test_the_first_rule_that_applies_decides(hooks: Hooks) -> None:
    guard = guard_of(
        hooks,
        {"tools": ["mcp.call.tracker.*"], "arguments": {"arguments.id": "[1-9]"}, "decision": "allow"},
        {"tools": ["mcp.call.tracker.close_issue"], "decision": "deny"},
    )
    tool = Tool()
    assert performed(guard, tool, {"id": 7}) == "done"
    assert refused(guard, tool, {"id": 77}) == "tool_rules[1] denies this call of `mcp.call.tracker.close_issue`"
    assert tool.asked == [{"id": 7}]


@pytest.mark.parametrize("arguments", [{"a": {"b": ["rm -rf /"]}}, {"rm -rf /": 1}, {"x": "rm  -rf ~"}])
def test_a_pattern_of_all_arguments_finds_any_text(hooks: Hooks, arguments: object) -> None:
    guard = guard_of(hooks, {"tools": ["*"], "arguments": {"**": "rm +-rf .*"}, "decision": "deny"})
    tool = Tool()
    refused(guard, tool, arguments)
    assert tool.asked == []
    assert performed(guard, tool, {"x": "rm"}) == "done"


def test_a_person_is_asked_once_for_a_call_and_its_retries(hooks: Hooks) -> None:
    guard = guard_of(hooks, {"tools": ["mcp.call.*"], "decision": "ask"})
    tool, questions = Tool(), []

    def confirm(question: Question) -> bool | str:
        questions.append((question.rule, question.call.arguments))
        return True if len(questions) == 1 else "not this one"

    assert "nothing here can answer" in refused(guard, tool, {"id": 1})
    guard.confirm = confirm
    assert performed(guard, tool, {"id": 1}) == performed(guard, tool, {"id": 1}) == "done"
    assert refused(guard, tool, {"id": 2}).endswith("denied this call of `mcp.call.tracker.close_issue`: not this one")
    assert questions == [("tool_rules[0]", {"arguments": {"id": 1}}), ("tool_rules[0]", {"arguments": {"id": 2}})]
    assert tool.asked == [{"id": 1}, {"id": 1}]


def test_hooks_block_answer_and_replace_before_a_call(hooks: Hooks) -> None:
    guard, tool = guard_of(hooks, {"tools": ["*"], "arguments": {"arguments.id": "13"}, "decision": "deny"}), Tool()
    answers: list[object] = [Block("closed on Sundays"), Answer({"from": "hook"}), Replace({"arguments": {"id": 2}})]
    hooks.add("mcp.call.tracker.*", before=lambda _: answers.pop(0) if answers else None)  # type: ignore[arg-type, return-value]
    assert refused(guard, tool, {"id": 1}).endswith("closed on Sundays")
    assert (performed(guard, tool, {"id": 1}), tool.asked) == ({"from": "hook"}, [])
    assert (performed(guard, tool, {"id": 1}), tool.asked) == ("done", [{"id": 2}])
    answers.append(Replace({"arguments": {"id": 13}}))
    refused(guard, tool, {"id": 1})  # what a hook puts in place passes the rules as well


def test_hooks_replace_withhold_and_repeat_after_a_call(hooks: Hooks) -> None:
    def give(ask: Ask) -> object:
        if len(tool.asked) == 1:
            raise EffectFailed("unavailable", "away")
        return "done"

    guard, tool = guard_of(hooks), Tool(give)
    hooks.add("mcp.call.*", after=lambda _, answered: Retry() if answered.code == "unavailable" else Replace("seen"))
    assert (performed(guard, tool, {}), len(tool.asked)) == ("seen", 2)
    hooks.add("mcp.call.*", after=lambda *_: Block("a secret is in it"))
    assert refused(guard, tool, {}).endswith("a secret is in it")


def test_an_unsafe_call_is_not_repeated_and_a_read_not_for_ever(hooks: Hooks) -> None:
    guard, tool = guard_of(hooks), Tool()
    hooks.add("mcp.call.*", after=lambda *_: Retry())
    for effect_class, attempts in (("unsafe", 1), ("read", MAX_RETRIES + 1)):
        tool.asked.clear()
        with pytest.raises(EffectFailed, match="repeat"):
            performed(guard, tool, {}, effect_class)
        assert len(tool.asked) == attempts


def test_a_hook_that_raises_blocks(hooks: Hooks) -> None:
    def fail(call: Call) -> None:
        raise RuntimeError("a fault of the hook")

    guard, tool = guard_of(hooks), Tool()
    hooks.add("*", before=fail)
    assert (refused(guard, tool, {}), tool.asked) == (
        "a hook for `mcp.call.tracker.close_issue` raised RuntimeError",
        [],
    )
    hooks.remove(fail)
    assert performed(guard, tool, {}) == "done"


def test_the_text_of_a_secret_does_not_leave(hooks: Hooks) -> None:
    guard, tool = guard_of(hooks, redact=lambda text: text.replace("hunter2", "…")), Tool()
    assert "hold the text of a secret" in refused(guard, tool, {"deep": [{"password": "hunter2"}]})
    assert tool.asked == []


def test_a_hook_that_comes_too_late_is_refused(hooks: Hooks) -> None:
    guard_of(hooks).around("http_request", Tool())
    with pytest.raises(HookError, match="too late"):
        hooks.add("network.http_client.*", before=lambda _: None)
    with pytest.raises(HookError, match=r"did you mean `mcp\.call"):
        hooks.add("mcp.cal.x", before=lambda _: None)


@pytest.mark.parametrize(
    "value, problem",
    [
        ({"tools": [], "decision": "ask"}, "at least one"),
        ({"tools": ["exec.shell"], "decision": "ask"}, "no capability"),
        ({"tools": ["*"], "decision": "maybe"}, "one of allow, ask, deny"),
        ({"tools": ["*"], "decision": "deny", "arguments": {"**": "("}}, "no pattern"),
    ],
)
def test_rules_that_cannot_be_used(value: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        rules(value)
