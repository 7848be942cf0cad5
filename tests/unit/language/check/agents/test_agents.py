"""Agents as ordinary nodes: their flow, policy, schemas and diagnostics. Cases of nodes/agents run on both engines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from vesper.compiler import Compiled, compile_file
from vesper.engines.outcome import DeclaredError, Returned
from vesper.engines.registry import ENGINES
from vesper.language.check.agents.tool_calls import DATA_OF, MAX_TOOLS_IN_FLIGHT
from vesper.language.diagnostics.diagnostic import Severity
from vesper.language.diagnostics.render.full import render_full
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements
from vesper.values.json_value import Json, canonical_text
from vesper.verify.inputs.responses import run_case

TOOL = """\
node_id: look_up_v1
type: function
intent: Look something up
inputs:
  key:   {type: string, constraints: [{max_length: 8}]}
  count: {type: integer, constraints: [{min: 1}], default: 3}
  since: optional<date>
  padding: {type: integer, default: 0}
outputs:
  success: {found: string}
  error: {error_code: "enum[nothing]", message: string}
flow:
  - raise: {error_code: nothing, message: nothing}
    when: key == 'none'
  - return: {found: "key + text(count) + (IF since IS NULL THEN '' ELSE text(since)) + repeat('x', padding)"}
"""
TWICE = ["a tool cannot be called `look_up`: another tool has that name @look_up_v1"]
AGENT = """\
node_id: helper_v1
type: agent
intent: Help
inputs:
  question: string
  history: {{type: array<json>, default: []}}
outputs:
  success: {outputs}
agent:
  model: claude
  messages: {messages}
{more}
security: {{capabilities_required: [{capabilities}]}}
testing:
  test_cases:
    - name: one
      inputs: {{question: How}}
      effects: {effects}
      expect: {expect}
"""


def agent(
    folder: Path, *, outputs: str = "{answer: string}", messages: str = "'{question}'", more: str = "",
    effects: str = "[{step: model, returns: {text: so}}]", expect: str = "{}", capabilities: str = "models.call.claude",
) -> tuple[Compiled | None, list[str]]:  # fmt: skip
    (folder / "look_up_v1.vsp").write_text(TOOL)
    path = folder / "helper_v1.vsp"
    path.write_text(
        AGENT.format(
            outputs=outputs, messages=messages, more=more, effects=effects, expect=expect, capabilities=capabilities
        )
    )
    found, bag = compile_file(path)
    return found, [
        f"{each.headline} @{bag.source.slice(each.primary.span)}"
        for each in bag.sorted()
        if each.severity is Severity.ERROR
    ]


def compiled(folder: Path, **parts: str) -> Compiled:
    found, problems = agent(folder, **parts)
    assert problems == []
    assert found is not None
    return found


def outcome(node: Compiled) -> object:
    return run_case(ENGINES["python"].load(node), node.cases[0]).outcome


def request(node: Compiled) -> ir.Request:
    return next(each for each in all_statements(node.node.body) if isinstance(each, ir.Request))


def test_the_text_of_the_model_is_the_only_output(tmp_path: Path) -> None:
    found = outcome(compiled(tmp_path))
    assert isinstance(found, Returned)
    assert found.value == {"answer": "so"}


def test_an_agent_is_a_workflow_with_a_binding(tmp_path: Path) -> None:
    node = compiled(tmp_path, more="  tools: [{node: look_up_v1, name: search}]")
    assert node.node.type == "workflow"
    assert node.agent is not None
    assert (node.agent.model, node.agent.tools) == ("claude", (("search", "look_up_v1"),))


def test_policies_replace_the_defaults_section_by_section(tmp_path: Path) -> None:
    policy = compiled(tmp_path).node.grants.policy
    assert (policy["attempts"], policy["retry_on"]) == (3, ("rate_limit", "overloaded", "timeout"))
    assert (policy["backoff_us"], policy["backoff_factor"], policy["backoff_max_us"]) == (100_000, 2, 5_000_000)
    assert (policy["breaker_failures"], policy["breaker_open_us"]) == (5, 30_000_000)
    policy = compiled(tmp_path, more="policies: {retry: {attempts: 2}, concurrency: 4}").node.grants.policy
    assert (policy["attempts"], policy["concurrency"], "backoff_us" in policy) == (2, 4, False)
    assert policy["breaker_failures"] == 5


def test_a_tool_has_the_schema_of_its_inputs(tmp_path: Path) -> None:
    node = compiled(tmp_path, more="  tools: [look_up]")
    (tools,) = [each for each in node.node.constants if each.name == "_tools"]
    (tool,) = json.loads(canonical_text(cast(Json, tools.value)))
    assert (tool["name"], tool["description"]) == ("look_up", "Look something up")
    schema = tool["parameters"]
    assert schema["required"] == ["key"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["key"] == {"type": "string", "maxLength": 8}
    assert schema["properties"]["count"] == {"type": "integer", "minimum": 1, "default": 3}


@pytest.mark.parametrize(
    "arguments, content",
    [
        ("{key: a}", f'{DATA_OF}look_up: {{"found":"a3"}}'),
        ("{key: a, count: 5, since: '2026-01-02'}", f'{DATA_OF}look_up: {{"found":"a52026-01-02"}}'),
        (
            "{key: a, padding: 200}",
            f'{DATA_OF}look_up: {{"found":"a3{"x" * 88} (cut after 100 of 214 characters)',
        ),
        ("{key: none}", "the tool look_up failed: nothing"),
        ("{key: a, count: 0}", "the tool look_up failed: contract_broken"),
        (
            "{count: many, since: soon}",
            "the arguments do not fit: key must be string; count must be integer; since must be date; ",
        ),
        ("[]", "the arguments do not fit: key must be string; "),
    ],
)
def test_a_tool_answers_the_model(tmp_path: Path, arguments: str, content: str) -> None:
    effects = (
        f"\n        - {{step: model, returns: {{tool_calls: [{{name: look_up, arguments: {arguments}}}]}}}}"
        "\n        - {step: model, request: {request: {messages: [{}, {}, {role: tool, content: CONTENT}]}}, "
        "returns: {text: so}}"
    )
    node, _ = agent(
        tmp_path, more="  tools: [look_up]\n  max_result: 100", effects=effects.replace("CONTENT", json.dumps(content))
    )
    assert node is not None
    assert isinstance(outcome(node), Returned)


WRITER = """\
node_id: note_v1
type: event_handler
intent: Keep a note
inputs: {event_id: string}
outputs: {success: {kept: string}}
flow:
  - {step: kept, operation: event_publish, topic: notes, payload: {id: "{event_id}"}, effect: keyed, key: event_id}
  - return: {kept: kept}
security: {capabilities_required: [events.publish.notes]}
"""


def loops(node: Compiled) -> list[int | None]:
    """Return the iterations in flight of each loop over calls."""
    found = [each for each in all_statements(node.node.body) if isinstance(each, ir.Loop) and each.over is not None]
    return [each.in_flight for each in found]


def test_calls_that_only_read_run_in_parallel(tmp_path: Path) -> None:
    assert loops(compiled(tmp_path, more="  tools: [look_up]")) == [MAX_TOOLS_IN_FLIGHT]


def test_a_tool_that_writes_keeps_the_order_of_the_model(tmp_path: Path) -> None:
    (tmp_path / "note_v1.vsp").write_text(WRITER)
    granted = "models.call.claude, events.publish.notes"
    assert loops(compiled(tmp_path, more="  tools: [look_up, note]", capabilities=granted)) == [None]


def test_a_missing_capability_names_the_chain_of_its_use(tmp_path: Path) -> None:
    (tmp_path / "note_v1.vsp").write_text(WRITER)
    outer = WRITER.replace("note_v1", "remember_v1").replace(
        'operation: event_publish, topic: notes, payload: {id: "{event_id}"}, effect: keyed, key: event_id',
        "node: note, inputs: {event_id: event_id}",
    )
    (tmp_path / "remember_v1.vsp").write_text(outer.replace("kept: kept}", "kept: kept.kept}"))
    agent(tmp_path, more="  tools: [remember]")
    _, bag = compile_file(tmp_path / "helper_v1.vsp")
    [missing] = [each for each in bag.sorted() if each.severity is Severity.ERROR]
    assert missing.headline == "this needs the capability `events.publish.notes`"
    assert bag.source.slice(missing.primary.span) == "remember"
    assert str(missing.help).endswith("it is used through remember_v1 → note_v1")


def test_a_list_of_messages_precedes_the_question(tmp_path: Path) -> None:
    messages = "['{history}', {role: assistant, content: 'Yes?'}, 'Well: {question}']"
    wanted = "[{role: assistant, content: 'Yes?'}, {role: user, content: 'Well: How'}]"
    effects = f"[{{step: model, request: {{request: {{messages: {wanted}}}}}, returns: {{text: so}}}}]"
    assert isinstance(outcome(compiled(tmp_path, messages=messages, effects=effects)), Returned)


@pytest.mark.parametrize(
    "outputs, clause, answer, problem",
    [
        ("{n: integer}", "n > 0", "{n: 0}", "The contract is broken: n > 0"),
        ("{n: integer}", "output.n > length(old(question))", "{n: 3}", None),
        ("{n: integer}", "output.n > length(old(question))", "{n: 4}", ""),
        ("{question: string, n: integer}", "question == old(question)", "{question: How, n: 1}", ""),
        ("{ns: array<integer>}", "FORALL n IN ns SATISFIES n > 0", "{ns: [1, 0]}", None),
        ("{n: integer, m: integer}", "m > n", "{n: many, m: 1}", "The answer does not fit: n must be integer; "),
        ("{n: optional<integer>, m: integer}", "m > 0", "{m: 1}", ""),
    ],
)
def test_an_answer_is_checked_against_type_and_contract(
    tmp_path: Path, outputs: str, clause: str, answer: str, problem: str | None
) -> None:
    more = f"  repairs: 0\ncontracts: {{postconditions: [{json.dumps(clause)}]}}"
    effects = f"[{{step: model, returns: {{output: {answer}}}}}]"
    node = compiled(tmp_path, outputs=outputs, more=more, effects=effects)
    found = outcome(node)
    if problem == "":
        assert isinstance(found, Returned)
        return
    assert isinstance(found, DeclaredError)
    assert (found.value["error_code"], found.value["reason"]) == ("agent_failed", "repairs")
    assert problem is None or problem in str(found.value["message"])


def test_turns_are_bounded(tmp_path: Path) -> None:
    call = "{step: model, returns: {tool_calls: [{name: look_up, arguments: {key: a}}]}}"
    node = compiled(tmp_path, more="  tools: [look_up]\n  max_turns: 2", effects=f"[{call}, {call}]")
    found = outcome(node)
    assert isinstance(found, DeclaredError)
    assert found.value["reason"] == "turns"


@pytest.mark.parametrize(
    "parts, problems",
    [
        ({"more": "flow: []"}, ["an agent has no field `flow` @flow"]),
        ({"more": "  temperature: 3"}, ["`3` is not a number from 0 to 2 @3"]),
        ({"more": "  max_turns: 0"}, ["`0` is not a number from 1 to 1,000 @0"]),
        ({"more": "  tools: [look_down]"}, ["there is no node `look_down` @look_down"]),
        ({"more": "  tools: [look_up, look_up_v1]"}, TWICE),
        ({"messages": "'{questions}'"}, ["no input, constant or earlier step is named `questions` @questions"]),
        ({"messages": "[]"}, ["`messages` must be at least one message, not none @[]"]),
        (
            {"more": "contracts: {postconditions: [answr != '']}"},
            ["no output, input or constant is named `answr` @answr"],
        ),
    ],
)  # fmt: skip
def test_problems_have_the_place_of_the_author(tmp_path: Path, parts: dict[str, str], problems: list[str]) -> None:
    found, reported = agent(tmp_path, **parts)
    assert found is None
    assert reported == problems


def test_errors_of_an_agent_are_fixed(tmp_path: Path) -> None:
    found, reported = agent(tmp_path, outputs="{answer: string}\n  error: {error_code: 'enum[x]'}")
    assert found is None
    assert reported[0].startswith("`outputs` of an agent has no field `error`")


MCP_TOOL = """\
node_id: finder_v1
type: agent
intent: Find issues
outputs: {{success: {{text: string}}}}
agent:
  model: small
  messages: hello
  tools: [{tool}]
security: {{capabilities_required: [models.call.small, mcp.call.tracker.search]}}
"""
SEARCH = "mcp: tracker.search, description: Search., inputs: {query: string}"


def test_a_tool_of_an_mcp_server_is_a_request_with_its_arguments(tmp_path: Path) -> None:
    path = tmp_path / "finder_v1.vsp"
    path.write_text(MCP_TOOL.format(tool=f"{{{SEARCH}}}"), encoding="utf-8")
    compiled, bag = compile_file(path)
    assert compiled is not None, bag.sorted()
    (request,) = [
        each
        for each in all_statements(compiled.node.body)
        if isinstance(each, ir.Request) and each.effect == "mcp_call"
    ]
    assert (request.name, request.effect_class) == ("search", "unsafe")
    assert request.fixed == {"server": "tracker", "tool": "search"}
    assert compiled.agent is not None
    assert compiled.agent.tools == ()


@pytest.mark.parametrize(
    "tool, message",
    [
        ("{mcp: search, description: Search.}", "SERVER.TOOL"),
        ("{mcp: tracker.search}", "description"),
        ("{mcp: tracker.search, description: Search., node: other}", "node"),
        ("{name: search}", "or `mcp`"),
        ("{node: other, effect: read}", "a node has its own"),
    ],
)
def test_malformed_tools_of_mcp_servers_are_refused(tmp_path: Path, tool: str, message: str) -> None:
    path = tmp_path / "finder_v1.vsp"
    path.write_text(MCP_TOOL.format(tool=tool), encoding="utf-8")
    _, bag = compile_file(path)
    shown = "\n".join(render_full(bag.source, each) for each in bag.sorted())
    assert message in shown
