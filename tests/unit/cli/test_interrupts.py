"""`vesper run` of a node that waits, `vesper interrupts` and `vesper signal`."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path

import click
import pytest

from tests.support.journalled import invoke
from tests.unit.host.recovery.sleeping import PLAIN_ASKER, SLEEPER
from vesper.cli.interrupts.values import prompt_answer as ask_in_terminal
from vesper.host.host import Host
from vesper.values.types import BOOLEAN, DURATION, INTEGER, STRING, OptionalOf, Record

GRANTS = '[[grants]]\nnodes = ["*"]\nallow = ["interrupts.*", "signals.*", "clock.*"]\n'
VALUE = '{"reference": "r1", "amount": 1.50}'


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("vesper.toml").write_text(GRANTS, encoding="utf-8")
    Path("asker_v1.vsp").write_text(PLAIN_ASKER.lstrip("\n"), encoding="utf-8")
    Path("sleeper_v1.vsp").write_text(SLEEPER.lstrip("\n"), encoding="utf-8")


def ask(event: str = "e1") -> str:
    done = invoke("run", "asker_v1.vsp", "-i", f"event_id={event}", "--format", "json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["status"], found["step"], found["kind"], found["name"]) == (
        "waiting",
        "approval",
        "interrupt",
        "confirmation",
    )
    return str(found["execution"])


def keep() -> None:
    with Host.from_file() as host:
        host.keep()


def test_a_run_that_waits_prints_what_it_waits_for() -> None:
    done = invoke("run", "asker_v1.vsp", "-i", "event_id=e1")
    assert done.exit_code == 0
    assert "asker_v1 waits at `approval` for an answer (confirmation), at most until" in done.stdout
    assert "vesper interrupts resolve" in done.stdout


def test_run_stays_until_the_run_has_ended() -> None:
    done = invoke("run", "sleeper_v1.vsp", "-i", "event_id=e1", "-i", "for=PT0.05S", "--wait")
    assert done.exit_code == 0, done.output
    assert "sleeper_v1 waits at `pause` until" in done.stderr
    assert "woken" in done.stdout
    for options in (["--wait"], []):
        done = invoke("run", "sleeper_v1.vsp", "-i", "event_id=e1", "-i", "for=PT0.05S", "--record", "c.yaml", *options)
        assert (done.exit_code, "not recorded: the run left memory" in done.stderr) == (1, True)


def test_interrupts_are_listed_shown_and_answered() -> None:
    assert "no journal yet" in invoke("interrupts", "list").stdout
    execution = ask()
    heading, row = invoke("interrupts", "list").stdout.splitlines()
    assert heading.split() == ["execution", "node", "step", "kind", "status", "expires", "message"]
    assert row.startswith(execution[:18])
    assert row.endswith("Refund e1?")
    shown = invoke("interrupts", "show", execution).stdout
    assert "of type {approved: boolean, note: optional<string>}" in shown
    for arguments, message in (
        (["--set", "approved=maybe"], "`approved` is boolean, and `maybe` is not"),
        (["--set", "aproved=true"], "the answer has no field `aproved`; it has approved, note"),
        (["--value", "yes"], "--value is no JSON"),
        (["--value", "{}", "--set", "approved=true"], "not with both"),
        ([], "give the answer with --value JSON or --set NAME=VALUE"),
    ):
        done = invoke("interrupts", "resolve", execution, *arguments)
        assert (done.exit_code, message in done.stderr) == (2, True), done.output
    done = invoke("interrupts", "resolve", execution, "--value", '{"approved": 1}')
    assert done.exit_code == 1
    assert "is no boolean" in done.stderr
    done = invoke(
        "interrupts", "resolve", execution[:20], "--set", "approved=true", "--set", "note=fine", "--by", "ann"
    )
    assert done.stdout == f"resolved: approval of {execution}\n"
    (found,) = json.loads(invoke("interrupts", "list", "--status", "all", "--format", "json").stdout)
    assert (found["status"], found["by"], found["answer"]) == ("resolved", "ann", {"approved": True, "note": "fine"})
    assert "no interrupts are pending" in invoke("interrupts", "list").stdout
    assert invoke("interrupts", "resolve", execution, "--value", "{}").exit_code == 1


def test_a_cancelled_interrupt_continues_with_its_handler() -> None:
    execution = ask()
    assert invoke("interrupts", "cancel", execution, "--why", "a mistake", "--by", "bob").exit_code == 0
    keep()
    (found,) = json.loads(invoke("interrupts", "show", execution, "--format", "json").stdout)
    assert (found["status"], found["by"]) == ("cancelled", "bob")
    assert invoke("interrupts", "cancel", execution, "--why", "again").exit_code == 1


def test_a_signal_is_sent_by_run_or_by_match_once_for_a_key() -> None:
    first, second = ask("e1"), ask("e2")
    for each in (first, second):
        invoke("interrupts", "resolve", each, "--value", '{"approved": true}')
    keep()
    done = invoke("signal", first, "payment_settled", "--value", '{"reference": 1}')
    assert (done.exit_code, "is no string" in done.stderr) == (1, True)
    assert invoke("signal", first, "payment_settled", "--value", VALUE).stdout == f"woken: {first}\n"
    sent = ["signal", "--match", "e2", "payment_settled", "--value", VALUE, "--key", "k1"]
    assert json.loads(invoke(*sent, "--format", "json").stdout)["woken"] == [second]
    assert "sent before" in invoke(*sent).stdout
    assert invoke("signal", "--match", "e3", "payment_settled", "--value", VALUE).stdout.startswith("kept: ")
    assert invoke("signal", "payment_settled").exit_code == 2
    keep()
    with Host.from_file() as host:
        assert {host.journal.summary(each).outcome for each in (first, second)} == {"returned"}


def test_an_answer_is_asked_for_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["x", "7", "", "PT1H"])
    monkeypatch.setattr(click, "prompt", lambda *_, **__: next(answers))
    monkeypatch.setattr(click, "confirm", lambda _: True)
    monkeypatch.setattr(sys, "stdin", type("Terminal", (), {"isatty": staticmethod(lambda: True)}))
    fields = (("approved", BOOLEAN), ("count", INTEGER), ("note", OptionalOf(STRING)), ("within", DURATION))
    assert ask_in_terminal(Record(fields)) == {"approved": True, "count": 7, "within": timedelta(hours=1)}
