"""Calls of MCP tools, on a server of the official SDK that runs in the sandbox."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.mcp.settings import pinned, settings_of
from tests.unit.effects.ask_of import ask_of, failure
from vesper.effects.mcp.performer import McpPerformer
from vesper.effects.mcp.settings import McpSettings
from vesper.effects.settings import ConfigError, Table
from vesper.values.types import INTEGER, JSON, STRING, Record, Type


@pytest.fixture(scope="module")
def settings() -> McpSettings:
    return pinned()


@pytest.fixture(scope="module")
def server(settings: McpSettings) -> Iterator[McpPerformer]:
    performer = McpPerformer({"tests": settings}, str)
    yield performer
    performer.close()


def call(server: McpPerformer, tool: str, arguments: object = None, gives: Type = JSON) -> object:
    given = {} if arguments is None else {"arguments": arguments}
    return server.perform(ask_of("mcp_call", {"server": "tests", "tool": tool}, given, gives, "read"))


def refused(server: McpPerformer, tool: str, arguments: object = None, gives: Type = JSON) -> tuple[str, str]:
    found = failure("mcp_call", lambda: call(server, tool, arguments, gives))
    return found.code, found.message


def test_a_result_has_the_declared_type(server: McpPerformer) -> None:
    assert call(server, "echo", {"n": 1}, Record((("n", INTEGER),))) == {"n": 1}
    assert call(server, "echo", {"text": "hi"}, STRING) == "hi"
    assert call(server, "echo") == ""
    assert refused(server, "echo", {"n": "one"}, Record((("n", INTEGER),)))[0] == "bad_response"


def test_an_error_of_the_tool_is_a_failure(server: McpPerformer) -> None:
    assert refused(server, "fail") == ("effect_failed", "`tests.fail` failed: it failed")


def test_other_contents_are_refused(server: McpPerformer) -> None:
    assert refused(server, "picture")[0] == "bad_response"


def test_a_tool_that_is_not_listed_is_not_called(server: McpPerformer) -> None:
    assert refused(server, "delete_all") == ("not_allowed", "`tests` has no tool `delete_all`")


def test_arguments_are_an_object(server: McpPerformer) -> None:
    assert refused(server, "echo", [1])[0] == "invalid_argument"


def test_without_a_pin_no_tool_is_called() -> None:
    performer = McpPerformer({"tests": settings_of()}, str)
    code, message = refused(performer, "echo")
    assert (code, "has no pin" in message) == ("not_allowed", True)


def test_a_long_answer_ends_the_connection_and_the_next_call_opens_one(settings: McpSettings) -> None:
    performer = McpPerformer({"tests": settings}, str)
    try:
        assert "more than 65,536 bytes" in refused(performer, "large")[1]
        assert call(performer, "echo", {"n": 2}) == {"n": 2}
    finally:
        performer.close()


@pytest.mark.parametrize(
    "fault, code, calls",
    [
        ("changes", "not_allowed", 2),
        ("malformed", "unavailable", 1),
        ("dies", "unavailable", 1),
    ],
)
def test_a_server_that_misbehaves(fault: str, code: str, calls: int) -> None:
    performer = McpPerformer({"tests": pinned(fault)}, str)
    try:
        for _ in range(calls - 1):
            call(performer, "echo", {"n": 1})
        assert refused(performer, "echo", {"n": 1})[0] == code
    finally:
        performer.close()


def test_a_server_that_cannot_start() -> None:
    performer = McpPerformer({"tests": settings_of(tools=f"sha256:{'0' * 64}", command=["/bin/false"])}, str)
    assert refused(performer, "echo")[0] == "unavailable"
    performer.close()


@pytest.mark.parametrize(
    "table, problem",
    [
        ({}, "either `command` or `url`"),
        ({"command": ["/bin/true"], "url": "http://127.0.0.1/"}, "either `command` or `url`"),
        ({"url": "file:///etc/passwd"}, "URL is expected"),
        ({"command": ["npx"]}, "absolute path"),
        ({"command": ["/bin/true"], "token_secret": "key"}, "a command gets no token"),
        ({"url": "http://127.0.0.1/", "tools": "latest"}, "64 hexadecimal digits"),
    ],
)
def test_settings_that_cannot_be_used(table: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        McpSettings.from_table("tests", Table("mcp.tests", table))
