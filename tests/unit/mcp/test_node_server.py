"""Nodes as MCP tools, called by the SDK's own client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequestParams, ElicitResult, TextContent

from vesper.config.settings import config_from
from vesper.host.host import Host
from vesper.mcp.node_calls import exact_json
from vesper.mcp.node_server import load_tools, node_server

PRICE = """\
node_id: price_v1
type: function
intent: Price an order
types:
  Line: {fields: {quantity: integer, price: decimal}}
inputs:
  lines: array<Line>
  discount: {type: decimal, default: 0.00, constraints: [{min: 0}, {max: 1}]}
outputs:
  success: {total: decimal}
  error: {error_code: "enum[empty]", message: string}
flow:
  - raise: {error_code: empty, message: nothing was ordered}
    when: length(lines) == 0
  - return: {total: "SUM(line.quantity * line.price FOR line IN lines) * (1 - discount)"}
testing:
  test_cases:
    - {name: one, inputs: {lines: [{quantity: 2, price: 1.50}]}, expect: {total: 3.0000}}
"""
NOTE = """\
node_id: note_v1
type: event_handler
intent: Write a note
inputs: {event_id: string, note: string}
outputs:
  success: {written: integer}
flow:
  - {step: written, operation: file, action: write, root: notes, path: note.txt, content: note}
  - return: {written: written}
security:
  capabilities_required: [filesystem.write.notes]
"""
Answer = Callable[[Any, ElicitRequestParams], Coroutine[Any, Any, ElicitResult]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "price_v1.vsp").write_text(PRICE)
    (tmp_path / "nodes" / "note_v1.vsp").write_text(NOTE)
    (tmp_path / "notes").mkdir()
    return tmp_path


def with_client(
    folder: Path,
    work: Callable[[Client], Coroutine[Any, Any, None]],
    settings: dict[str, Any] | None = None,
    **options: Any,
) -> None:
    """Connect a client to the nodes of a folder, in this process."""

    async def connected() -> None:
        with Host(config_from(settings or {}, folder)) as host:
            server, calls = node_server(load_tools((), folder / "nodes", host, None, "python"), host)
            try:
                async with Client(server, **options) as client:
                    await work(client)
            finally:
                await calls.close()

    asyncio.run(connected())


def granted(**more: Any) -> dict[str, Any]:
    return {
        "files": {"notes": {"path": "notes"}},
        "grants": [{"nodes": ["note_v1"], "allow": ["filesystem.write.notes"]}],
        **more,
    }


def text_of(result: Any) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def test_schemas_come_from_types_and_constraints(folder: Path) -> None:
    async def work(client: Client) -> None:
        tools = {each.name: each for each in (await client.list_tools()).tools}
        price = tools["price_v1"]
        assert price.description == "Price an order. Ends with an error of: empty."
        assert price.annotations is not None
        assert price.annotations.read_only_hint
        assert price.input_schema["required"] == ["lines"]
        line = price.input_schema["properties"]["lines"]["items"]
        assert line["properties"]["price"]["type"] == "string"
        assert line["required"] == ["quantity", "price"]
        assert price.input_schema["properties"]["discount"]["default"] == "0.00"
        assert price.output_schema is not None
        assert price.output_schema["properties"]["total"]["format"] == "decimal"
        note = tools["note_v1"].annotations
        assert note is not None
        assert not note.read_only_hint

    with_client(folder, work)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_outputs_are_structured_and_errors_are_those_of_the_tool(folder: Path, mode: str) -> None:
    async def work(client: Client) -> None:
        lines = [{"quantity": 3, "price": "0.10"}]
        result = await client.call_tool("price_v1", {"lines": lines, "discount": "0.5"})
        assert (result.is_error, result.structured_content) == (False, {"total": "0.150"})
        result = await client.call_tool("price_v1", {"lines": []})
        assert (result.is_error, text_of(result).partition(":")[0]) == (True, "empty")
        result = await client.call_tool("price_v1", {"lines": lines, "discount": "2"})
        assert result.is_error
        assert "discount" in text_of(result)
        with pytest.raises(MCPError, match="no tool `nothing_v1`"):
            await client.call_tool("nothing_v1", {})

    with_client(folder, work, mode=mode)


def test_effects_need_the_grants_of_the_settings(folder: Path) -> None:
    async def work(client: Client) -> None:
        result = await client.call_tool("note_v1", {"event_id": "e1", "note": "hello"})
        assert (result.is_error, "filesystem.write.notes" in text_of(result)) == (True, True)

    with_client(folder, work, {"files": {"notes": {"path": "notes"}}})
    assert not (folder / "notes" / "note.txt").exists()


def test_a_granted_effect_is_performed(folder: Path) -> None:
    async def work(client: Client) -> None:
        assert (await client.call_tool("note_v1", {"event_id": "e1", "note": "hello"})).structured_content == {
            "written": 5
        }

    with_client(folder, work, granted())
    assert (folder / "notes" / "note.txt").read_text() == "hello"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("allows", [True, False])
def test_the_person_at_the_client_confirms(folder: Path, allows: bool, mode: str) -> None:
    asked: list[str] = []

    async def answer(context: Any, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"allow": allows})

    async def work(client: Client) -> None:
        result = await client.call_tool("note_v1", {"event_id": "e1", "note": "hello"})
        assert result.is_error is not allows
        assert allows or "a person denied" in text_of(result)

    rules = [{"tools": ["filesystem.write.*"], "decision": "ask"}]
    with_client(folder, work, granted(tool_rules=rules), mode=mode, elicitation_callback=answer)
    assert len(asked) == 1
    assert "tool_rules" in asked[0]
    assert "note.txt" in asked[0]
    assert (folder / "notes" / "note.txt").exists() is allows


def test_without_a_form_a_question_is_a_refusal(folder: Path) -> None:
    async def work(client: Client) -> None:
        result = await client.call_tool("note_v1", {"event_id": "e1", "note": "hello"})
        assert "has no form to ask a person" in text_of(result)

    with_client(folder, work, granted(tool_rules=[{"tools": ["filesystem.write.*"], "decision": "ask"}]))
    assert not (folder / "notes" / "note.txt").exists()


def test_a_number_that_lost_digits_is_refused() -> None:
    assert exact_json({"a": [1.5, 0.1, 1e300, 123456789012345.0]})
    with pytest.raises(ValueError, match="pass it as a text"):
        exact_json({"a": [{"b": 0.30000000000000004}]})


def test_a_call_that_the_client_ends_ends_its_run(folder: Path) -> None:
    async def never(context: Any, params: ElicitRequestParams) -> ElicitResult:
        await anyio.sleep_forever()
        raise AssertionError("it sleeps forever")

    async def work(client: Client) -> None:
        with anyio.move_on_after(2) as ended:
            await client.call_tool("note_v1", {"event_id": "e1", "note": "hello"})
        assert ended.cancelled_caught
        # The question is answered with a refusal, so that the run comes back and the Host can close.

    rules = [{"tools": ["filesystem.write.*"], "decision": "ask"}]
    with_client(folder, work, granted(tool_rules=rules), mode="legacy", elicitation_callback=never)
    assert not (folder / "notes" / "note.txt").exists()


WAITS = """\
node_id: approval_v1
type: event_handler
intent: Wait for a person
inputs: {event_id: string}
outputs: {success: {answer: boolean}}
flow:
  - {step: asked, operation: interrupt, kind: confirmation, message: "May {event_id} go on?", ttl: 1d, returns: boolean}
  - return: {answer: asked}
security:
  capabilities_required: [interrupts.raise.confirmation]
"""


def test_a_run_that_waits_says_so(folder: Path) -> None:
    (folder / "nodes" / "approval_v1.vsp").write_text(WAITS)

    async def work(client: Client) -> None:
        result = await client.call_tool("approval_v1", {"event_id": "e1"})
        assert result.is_error
        assert "waits at `asked`" in text_of(result)
        assert "execution" in text_of(result)

    grants = [{"nodes": ["approval_v1"], "allow": ["interrupts.raise.confirmation"]}]
    with_client(folder, work, {"grants": grants, "files": {"notes": {"path": "notes"}}})
