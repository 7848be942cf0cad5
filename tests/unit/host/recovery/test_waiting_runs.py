"""Lists of waiting runs and interrupts, and the typed actions on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.host.recovery.sleeping import ASKER, HOUR_US, PLAIN_ASKER, Clock, clocked_host
from tests.unit.host.small import node_from
from vesper.engines.outcome import Returned
from vesper.host import waiting_runs as module
from vesper.host.host import Host
from vesper.host.masking import SENSITIVE
from vesper.host.waiting import RunWaits
from vesper.host.waiting_runs import (
    InterruptStatus,
    NotWaiting,
    WrongValue,
    answer,
    cancel,
    find_waiting,
    interrupts_of,
    list_interrupts,
    send_signal,
    waiting_runs,
)
from vesper.journal.due import Due
from vesper.journal.journal import Journal, JournalError


class World:
    def __init__(self, folder: Path) -> None:
        self.clock, self.folder = Clock(), folder
        self.host: Host = clocked_host(folder, self.clock)
        self.journal = self.host.journal

    def ask(self, event: str = "e1", text: str = PLAIN_ASKER, **inputs: object) -> str:
        with pytest.raises(RunWaits) as waits:
            node_from(text, self.folder, self.host)({"event_id": event, **inputs})
        return waits.value.execution

    def outcome(self, execution: str) -> object:
        found = {each.execution: each.outcome for each in self.host.keep()}
        return found[execution]

    def settle(self, event: str = "e1") -> str:
        """Return a run that waits for its signal."""
        execution = self.ask(event)
        answer(self.journal, execution, {"approved": True}, "ann")
        self.host.keep()
        return execution


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    found = World(tmp_path)
    yield found
    found.host.close()
    found.journal.close()


def test_an_interrupt_is_pending_resolved_expired_or_cancelled(world: World) -> None:
    pending, resolved, expired, cancelled = (world.ask(f"e{number}") for number in range(4))
    answer(world.journal, resolved, {"approved": False, "note": "no"}, "ann")
    cancel(world.journal, cancelled, "a mistake", "bob")
    world.clock.shift_us = 2 * HOUR_US
    world.clock.shift_us = 0
    found = {each.wait.execution: each for each in list_interrupts(world.journal, None)}
    assert {each: found[each].status for each in (pending, resolved, expired, cancelled)} == {
        pending: InterruptStatus.PENDING,
        resolved: InterruptStatus.RESOLVED,
        expired: InterruptStatus.PENDING,
        cancelled: InterruptStatus.CANCELLED,
    }
    assert (found[resolved].by, found[resolved].answer) == ("ann", {"approved": False, "note": "no"})
    assert (found[cancelled].by, found[cancelled].answer) == ("bob", None)
    assert [each.wait.execution for each in list_interrupts(world.journal)] == [pending, expired]
    assert list_interrupts(world.journal)[0].wait.message == "Refund e0?"
    world.clock.shift_us = 2 * HOUR_US
    world.host.keep()
    (last,) = interrupts_of(world.journal, world.journal.read(expired))
    assert (last.status, last.by) == (InterruptStatus.EXPIRED, None)
    assert [each.wait.execution for each in list_interrupts(world.journal, InterruptStatus.RESOLVED)] == [resolved]


def test_interrupts_of_old_runs_are_listed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vesper.host.waiting_runs._PAGE_RUNS", 2)
    old, *_ = (world.ask(f"e{number}") for number in range(5))
    answer(world.journal, old, {"approved": False}, "ann")
    assert [each.wait.execution for each in list_interrupts(world.journal, InterruptStatus.RESOLVED)] == [old]
    assert len(list_interrupts(world.journal, None)) == 5
    assert len(list_interrupts(world.journal, None, limit=3)) == 3


def test_what_an_answer_a_cancel_and_an_expiry_come_to(world: World) -> None:
    refused, cancelled, expired = (world.ask(f"e{number}") for number in range(3))
    answer(world.journal, refused, {"approved": False}, "ann")
    cancel(world.journal, cancelled, "a mistake", None)
    ended = {each.execution: each.outcome for each in world.host.keep()}
    assert ended == {refused: Returned({"answer": "refused"}), cancelled: Returned({"answer": "cancelled"})}
    world.clock.shift_us = 2 * HOUR_US
    assert world.outcome(expired) == Returned({"answer": "expired"})


@pytest.mark.parametrize(
    "value, message",
    [
        ({"approved": "yes"}, "at `approved`, is no boolean"),
        ({}, "has no `approved`"),
        ({"approved": True, "why": "x"}, "has `why`"),
        (None, "the type is {approved: boolean, note: optional<string>}"),
    ],
)
def test_a_wrong_answer_is_refused_and_the_run_keeps_waiting(world: World, value: object, message: str) -> None:
    execution = world.ask()
    with pytest.raises(WrongValue) as refused:
        answer(world.journal, execution, value, "ann")
    assert message in str(refused.value)
    assert "keeps waiting" in str(refused.value)
    assert find_waiting(world.journal, execution) is not None


def test_the_first_answer_wins(world: World) -> None:
    execution = world.ask()
    answer(world.journal, execution, {"approved": False, "note": "first"}, "ann")
    with pytest.raises(NotWaiting):
        answer(world.journal, execution, {"approved": True}, "bob")
    assert world.outcome(execution) == Returned({"answer": "first"})
    with pytest.raises(NotWaiting, match="does not wait: it is ended"):
        answer(world.journal, execution, {"approved": True}, "bob")
    with pytest.raises(JournalError, match="it has ended"):
        cancel(world.journal, execution, "too late", None)


def test_a_signal_wakes_a_run_by_its_id_or_its_match(world: World) -> None:
    first, second = world.settle("e1"), world.settle("e2")
    value = {"reference": "r1", "amount": 12}
    with pytest.raises(WrongValue, match="at `amount`, is no decimal"):
        send_signal(world.journal, first, "payment_settled", {"reference": "r1", "amount": "x"})
    assert send_signal(world.journal, first, "payment_settled", value).woken == (first,)
    sent = send_signal(world.journal, None, "payment_settled", value, "k", "e2", "bank")
    assert (sent.woken, sent.is_kept) == ((second,), False)
    assert send_signal(world.journal, None, "payment_settled", value, "k", "e2", "bank").is_repeat
    ended = {each.execution: each.outcome for each in world.host.keep()}
    assert ended == dict.fromkeys((first, second), Returned({"answer": "r1"}))


def test_a_run_that_begins_to_wait_while_a_signal_is_sent_is_checked_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution, rows_of, seen = world.settle("e1"), module._rows_of, list[str]()

    def late_rows(journal: Journal, name: str, match: str) -> list[Due]:
        seen.append(match)
        return rows_of(journal, name, match) if len(seen) > 1 else []

    monkeypatch.setattr(module, "_rows_of", late_rows)
    value = {"reference": "r1", "amount": 12}
    assert send_signal(world.journal, None, "payment_settled", value, match="e1").woken == (execution,)
    assert seen == ["e1", "e1"]


def test_a_signal_before_the_wait_is_kept(world: World) -> None:
    execution = world.ask()
    assert send_signal(world.journal, execution, "payment_settled", {"reference": "early", "amount": 1}).is_kept
    answer(world.journal, execution, {"approved": True}, None)
    assert world.outcome(execution) == Returned({"answer": "early"})
    assert send_signal(world.journal, None, "payment_settled", {"reference": "r", "amount": 2}, match="e9").is_kept
    later = world.ask("e9")
    answer(world.journal, later, {"approved": True}, None)
    assert world.outcome(later) == Returned({"answer": "r"})


def test_a_signal_that_no_step_receives_is_refused(world: World) -> None:
    execution = world.ask()
    with pytest.raises(NotWaiting, match="did you mean `payment_settled`"):
        send_signal(world.journal, execution, "payment_setled")
    with pytest.raises(ValueError, match="to a run or to a match"):
        send_signal(world.journal, None, "payment_settled")


def test_a_signal_that_does_not_come_times_out(world: World) -> None:
    execution = world.settle()
    world.clock.shift_us = 8 * 24 * HOUR_US
    assert world.outcome(execution) == Returned({"answer": "timeout"})


def test_values_of_a_sensitive_run_are_masked(world: World) -> None:
    text = ASKER.replace("Refund {event_id}?", "Refund {secret}?")
    execution = world.ask("e1", text, secret="s3cr3t")
    (shown,) = waiting_runs(world.journal, "interrupt")
    (revealed,) = waiting_runs(world.journal, "interrupt", reveal=True)
    assert (shown.message, revealed.message) == (SENSITIVE, "Refund s3cr3t?")
    (row,) = world.journal.due(execution=execution)
    assert shown.is_sensitive
    assert row.kind == "interrupt"


def test_changes_by_people_are_in_the_audit_log(world: World) -> None:
    execution = world.settle()
    send_signal(world.journal, execution, "payment_settled", {"reference": "r", "amount": 1}, actor="bank")
    lines = [(each["action"], each["fields"]) for each in world.journal.audit_events()]
    woken = {"by": "bank", "signal": "payment_settled", "woken": [execution]}
    assert lines == [("interrupt_resolve", {"by": "ann", "step": "approval"}), ("signal", woken)]
