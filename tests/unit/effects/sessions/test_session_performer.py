"""Session steps of a node: what is checked, what is performed, and what a kill leaves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from tests.unit.effects.ask_of import ask_of, failure, table
from tests.unit.host.small import host_in, node_from
from vesper.effects.sessions.performer import SessionPerformer
from vesper.effects.sessions.settings import SessionSettings
from vesper.effects.settings import ConfigError
from vesper.values.json_value import json_of

NODE = """
node_id: conversation_v1
type: event_handler
intent: Append a turn to a session and read it back.
security:
  capabilities_required: [sessions.read.support, sessions.write.support]
inputs:
  event_id: string
  who: string
  text: string
outputs:
  success:
    count: integer
    history: json
    topic: json
flow:
  - step: added
    operation: session
    action: append
    session: support
    id: who
    messages: "[{role: 'user', content: text}]"
  - step: stored
    operation: session
    action: put
    session: support
    id: who
    key: "'topic'"
    value: text
    ttl: 1h
  - step: found
    operation: session
    action: read
    session: support
    id: who
  - step: kept
    operation: session
    action: get
    session: support
    id: who
    key: "'topic'"
  - operation: return
    success: {count: added, history: found, topic: kept}
"""


def test_a_node_appends_and_reads_a_session(tmp_path: Path) -> None:
    with host_in(tmp_path, {"sessions": {"support": {"max_messages": 10}}}) as host:
        executions: list[str | None] = []
        for engine, count in (("python", 1), ("interp", 2)):
            outcome = node_from(NODE, tmp_path, host, engine)(event_id="e", who="ada", text=f"Hello {engine}")
            executions.append(outcome.trace_id)
            found = outcome.unwrap()
            assert found["count"] == count
            assert found["history"]["messages"][-1] == {"role": "user", "content": f"Hello {engine}"}
            assert found["topic"] == f"Hello {engine}"
        sessions = host.sessions("support")
        assert [each.execution for each in sessions.messages("ada")] == executions
        assert (tmp_path / ".vesper" / "sessions.db").exists()


def test_sessions_that_are_not_configured_are_named(tmp_path: Path) -> None:
    with host_in(tmp_path, {}) as host:
        with pytest.raises(ConfigError, match=r"there is no \[sessions.support\]"):
            node_from(NODE, tmp_path, host)(event_id="e", who="ada", text="x")
        with pytest.raises(ConfigError, match=r"add \[sessions.support\]"):
            host.sessions("support")


@pytest.mark.parametrize(
    "changed, to, code",
    [
        ("    messages: \"[{role: 'user', content: text}]\"\n", "", "MISSING_KEY"),
        ("    ttl: 1h\n", "    ttl: 1h\n    summary: text\n", "UNKNOWN_KEY"),
        ("    id: who\n    messages", "    id: 3\n    messages", "TYPE_MISMATCH"),
    ],
)
def test_each_action_has_its_own_fields(changed: str, to: str, code: str) -> None:
    from vesper.compiler import compile_source
    from vesper.language.diagnostics.source import SourceFile

    assert changed in NODE
    _, bag = compile_source(SourceFile("conversation_v1.vsp", NODE.lstrip().replace(changed, to)))
    assert [each.code.name for each in bag.sorted()] == [code]


def performer(tmp_path: Path, **settings: Any) -> SessionPerformer:
    found = SessionSettings.from_table("main", table("sessions.main", **settings))
    return SessionPerformer({"main": found}, lambda _: f"sqlite:{tmp_path / 's.db'}")


def test_a_repeated_request_appends_once(tmp_path: Path) -> None:
    made = performer(tmp_path)
    arguments = {"id": "ada", "messages": json_of([{"role": "user", "content": "x"}])}
    ask = ask_of("session_append", {"session": "main"}, arguments)
    assert [made.perform(ask), made.perform(replace(ask, is_repeat=True))] == [1, 1]
    assert made.perform(replace(ask, execution="ex_2")) == 2
    made.close()


@pytest.mark.parametrize("retention, left", [("1d", ["ada", "eve"]), ("1ms", ["eve"])])
def test_a_session_ends_after_its_retention(tmp_path: Path, retention: str, left: list[str]) -> None:
    messages = json_of([{"role": "user", "content": "x"}])
    performers = [performer(tmp_path, retention=retention) for _ in range(2)]  # each deletes at its first change
    for who, made in zip(("ada", "eve"), performers, strict=True):
        ask = ask_of("session_append", {"session": "main"}, {"id": who, "messages": messages})
        made.perform(replace(ask, execution=f"ex_{who}"))
        sleep(0.01)
    assert sorted(each.id for each in performers[-1].store("main").recent()) == left


def test_sensitive_values_need_a_setting(tmp_path: Path) -> None:
    arguments = {"id": "ada", "messages": json_of([])}
    ask = replace(ask_of("session_append", {"session": "main"}, arguments), is_sensitive=True)
    refused = failure("session_append", lambda: performer(tmp_path).perform(ask))
    assert refused.code == "unavailable"
    assert "stores_sensitive" in refused.message
    assert performer(tmp_path, stores_sensitive=True).perform(ask) == 0


def test_mistakes_of_the_request_have_a_code(tmp_path: Path) -> None:
    made = performer(tmp_path)
    wrong = ask_of("session_append", {"session": "main"}, {"id": "", "messages": json_of([])})
    assert failure("session_append", lambda: made.perform(wrong)).code == "invalid_argument"
    early = ask_of("session_compact", {"session": "main"}, {"id": "ada", "summary": "s", "through": 1})
    assert failure("session_compact", lambda: made.perform(early)).code == "invalid_argument"


@pytest.mark.parametrize(
    "settings, problem",
    [
        ({"dsn": "redis://x"}, "`sqlite:PATH` or `postgresql://…`"),
        ({"compaction": "shrink"}, "one of drop, summary"),
        ({"max_bytes": "1 B"}, "1 KiB at least"),
        ({"max_message": 3}, "max_message"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        SessionSettings.from_table("main", table("sessions.main", **settings))
