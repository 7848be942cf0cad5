"""Sessions in SQLite and in a real PostgreSQL: the same promises."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from vesper.sessions.databases import SessionDatabase, open_database
from vesper.sessions.errors import SessionError, UnknownSession, WrongMessages
from vesper.sessions.history import SUMMARY_OPENING, first_kept, history_of
from vesper.sessions.store import SessionLimits, SessionStore


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionDatabase]:
    is_file = request.param == "sqlite"
    dsn = f"sqlite:{tmp_path / 's.db'}" if is_file else request.getfixturevalue("postgres").new_database()
    found = open_database(dsn)
    yield found
    found.close()


def store_in(database: SessionDatabase, **limits: Any) -> SessionStore:
    return SessionStore(database, "support", SessionLimits(**limits))


def turn(number: int) -> list[dict[str, Any]]:
    return [{"role": "user", "content": f"question {number}"}, {"role": "assistant", "content": f"answer {number}"}]


def test_an_appended_turn_is_read_back_with_its_usage(database: SessionDatabase) -> None:
    sessions = store_in(database)
    assert sessions.read("ada").members() == {"messages": [], "summary": None, "count": 0, "is_over_limit": False}
    used = {"input_tokens": 10, "output_tokens": 3, "cost_usd": "0.0043"}
    assert sessions.append("ada", turn(1), used, execution="ex_1") == 2
    assert sessions.append("ada", turn(2), used, execution="ex_2") == 4
    assert sessions.read("ada").messages == [*turn(1), *turn(2)]
    shown = sessions.show("ada")
    assert (shown.input_tokens, shown.output_tokens, shown.cost_usd) == (20, 6, Decimal("0.0086"))
    assert [each.execution for each in sessions.messages("ada")] == ["ex_1", "ex_1", "ex_2", "ex_2"]
    assert SessionStore(database, "other", SessionLimits()).read("ada").count == 0


def test_a_receipt_makes_a_change_happen_once(database: SessionDatabase) -> None:
    sessions = store_in(database)
    for _ in range(3):
        assert sessions.append("ada", turn(1), {"input_tokens": 7}, receipt="run:ex_1/append") == 2
    assert sessions.show("ada").input_tokens == 7
    sessions.put("ada", "name", '"Ada"', receipt="run:ex_1/put")
    sessions.put("ada", "name", '"Eve"')
    sessions.put("ada", "name", '"Ada"', receipt="run:ex_1/put")
    assert sessions.get("ada", "name") == '"Eve"'


def test_the_oldest_turns_leave_the_history_and_stay_in_the_store(database: SessionDatabase) -> None:
    sessions = store_in(database, max_messages=4)
    for number in range(5):
        sessions.append("ada", turn(number))
    assert sessions.read("ada").messages == [*turn(3), *turn(4)]
    assert len(sessions.messages("ada")) == 10
    assert not sessions.read("ada").is_over_limit


def test_a_summary_stands_for_the_messages_before_it(database: SessionDatabase) -> None:
    sessions = store_in(database, max_messages=2, compaction="summary")
    sessions.append("ada", [*turn(1), *turn(2)])
    assert sessions.read("ada").is_over_limit
    assert sessions.compact("ada", "They greeted.", 2) == 2
    read = sessions.read("ada")
    assert read.messages[0]["content"] == f"{SUMMARY_OPENING}They greeted.\n\nquestion 2"
    assert not read.is_over_limit
    with pytest.raises(WrongMessages, match="`through` is 1"):
        sessions.compact("ada", "again", 1)
    sessions.append("ada", [*turn(3), *turn(4), *turn(5)])
    with pytest.raises(WrongMessages, match="nothing has summarised it"):
        sessions.append("ada", turn(6))


def test_a_fork_has_the_messages_up_to_its_place(database: SessionDatabase) -> None:
    sessions = store_in(database)
    sessions.append("ada", [*turn(1), *turn(2)])
    sessions.put("ada", "name", '"Ada"')
    fork = sessions.fork("ada", "eve", 2)
    assert (fork.count, fork.forked_from) == (2, "ada@2")
    sessions.append("eve", turn(9))
    assert sessions.read("eve").messages == [*turn(1), *turn(9)]
    assert sessions.read("ada").messages == [*turn(1), *turn(2)]
    assert sessions.get("eve", "name") == '"Ada"'
    with pytest.raises(WrongMessages, match="already"):
        sessions.fork("ada", "eve")
    with pytest.raises(WrongMessages, match="0 to 4"):
        sessions.fork("ada", "far", 5)
    with pytest.raises(UnknownSession):
        sessions.fork("nowhere", "far")


def test_a_value_ends_with_its_time(database: SessionDatabase) -> None:
    sessions = store_in(database)
    sessions.put("ada", "soon", "1", ttl_us=1)
    sessions.put("ada", "later", "2", ttl_us=3_600_000_000)
    assert (sessions.get("ada", "soon"), sessions.get("ada", "later")) == (None, "2")
    assert sessions.forget("ada", "later")
    assert not sessions.forget("ada", "later")
    with pytest.raises(WrongMessages, match="max_value"):
        store_in(database, max_value=4).put("ada", "big", '"12345"')


def test_sessions_are_listed_deleted_and_pruned(database: SessionDatabase) -> None:
    sessions = store_in(database)
    for name in ("ada", "eve"):
        sessions.append(name, turn(1))
    assert [each.id for each in sessions.recent()] == ["eve", "ada"]
    assert sessions.delete("ada")
    assert not sessions.delete("ada")
    assert sessions.prune(sessions.show("eve").updated_us + 1) == 1
    assert sessions.recent() == []


@pytest.mark.parametrize(
    "messages, problem",
    [("text", "a list"), ([{"content": "x"}], "message 0"), ([{"role": "system", "content": "x"}], "message 0")],
)
def test_what_is_no_list_of_messages_is_refused(messages: object, problem: str, tmp_path: Path) -> None:
    sessions = store_in(open_database(f"sqlite:{tmp_path / 's.db'}"))
    with pytest.raises(WrongMessages, match=problem):
        sessions.append("ada", messages)


def _append_for_ever(path: str) -> None:
    sessions = store_in(open_database(f"sqlite:{path}"))
    for number in range(100_000):
        sessions.append("ada", turn(number), {"input_tokens": 1}, receipt=f"r{number}")


def test_a_killed_process_leaves_whole_turns(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    sessions = store_in(open_database(f"sqlite:{path}"))
    child = multiprocessing.get_context("spawn").Process(target=_append_for_ever, args=(str(path),))
    child.start()
    while sessions.read("ada").count < 10:
        child.join(0.01)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    count = sessions.read("ada").count
    assert count % 2 == 0
    assert sessions.show("ada").input_tokens == count // 2
    # The run that recovery repeats appends its turn once.
    assert sessions.append("ada", turn(0), {"input_tokens": 1}, receipt="r0") == 2
    assert sessions.show("ada").count == count


def test_a_kept_history_begins_with_the_user_and_has_the_last_turn() -> None:
    roles = ["user", "assistant", "tool", "assistant", "user", "assistant", "tool", "assistant"]
    assert first_kept(roles, [10] * 8, 8, 80) == 0
    assert first_kept(roles, [10] * 8, 7, 80) == 4
    assert first_kept(roles, [10] * 8, 8, 79) == 4
    assert first_kept(roles, [10] * 8, 1, 1) == 4
    assert history_of([{"role": "assistant", "content": "x"}], "s")[0]["role"] == "user"


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    first = open_database(f"sqlite:{tmp_path / 's.db'}")
    with first.writing() as transaction:
        transaction.run("INSERT INTO vesper_session_format (version, applied_us) VALUES (99, 0)")
    first.close()
    with pytest.raises(SessionError, match="a newer one made them"):
        store_in(open_database(f"sqlite:{tmp_path / 's.db'}")).recent()
