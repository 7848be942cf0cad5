"""A process killed after Python took over: another one finishes the run, and nothing is performed twice."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.support.nodes import compiled_text
from tests.unit.host.custom_world import settings
from tests.unit.migration.support.pairs import Both, Noting, Step, at
from vesper.config.settings import Config
from vesper.effects.performer import Ask
from vesper.engines.engine import Request
from vesper.engines.outcome import Returned
from vesper.host.host import Host
from vesper.journal.entry import Kind
from vesper.journal.journal import open_journal
from vesper.migration.shadow.journal_replay import follow

INPUTS = {"event_id": "e", "text": "t"}
STEP = "  - {{step: {0}, operation: custom, name: {0}, effect: {1}, request: {{text: text}}, returns: string}}\n"
NODE = """\
node_id: acting_v1
type: event_handler
intent: Do one thing after the other
inputs: {event_id: string, text: string}
outputs: {success: {last: string}}
flow:
STEPS  - {operation: return, success: {last: third}}
security:
  capabilities_required: [effect.call.first, effect.call.look, effect.call.second, effect.call.third]
"""


@cache
def both_engines() -> Both:
    steps = [STEP.format(name, "read" if name == "look" else "txn") for name in ("first", "look", "second", "third")]
    return Both.of(compiled_text(NODE.replace("STEPS", "".join(steps))))


class Ledger:
    """A performer that acts once per receipt, and records it in a file that survives the process."""

    def __init__(self, file: Path, dies: tuple[str, str] | None = None) -> None:
        self._file = file
        self._dies = dies

    @property
    def lines(self) -> list[str]:
        return self._file.read_text().splitlines() if self._file.exists() else []

    def perform(self, ask: Ask) -> object:
        if ask.effect_class == "read":
            return "seen"
        self._maybe_die(ask.path, "before")
        name = f"{ask.path} {ask.receipt}"
        if name not in self.lines:
            with self._file.open("a") as file:
                file.write(f"{name}\n")
        self._maybe_die(ask.path, "after")
        return ask.path

    def probe(self, ask: Ask) -> object:
        raise AssertionError(f"{ask.path} is not of class `probe`")

    def close(self) -> None: ...

    def _maybe_die(self, path: str, when: str) -> None:
        if self._dies == (path, when):
            os.kill(os.getpid(), signal.SIGKILL)


def _host(config: Config, ledger: Ledger) -> Host:
    journal = open_journal(config.dsn(config.journal.dsn))
    return Host(config, journal=journal, performers={"custom": ledger})


def _breaks(_: Request) -> Step:
    raise ValueError("no")


@pytest.mark.parametrize(
    "kind, when, engine",
    [
        ("all", "before", None),
        ("all", "before", "interp"),
        ("all", "after", "python"),
        ("all", "after", "interp"),
        ("paired", "before", "python"),
        ("paired", "after", None),
    ],
)
def test_a_killed_run_is_finished_and_nothing_is_done_twice(
    tmp_path: Path, kind: str, when: str, engine: str | None
) -> None:
    config = settings(tmp_path)
    file = tmp_path / "ledger"
    both = both_engines()
    child = os.fork()
    if child == 0:
        try:
            host = _host(config, Ledger(file, ("second", when)))
            # It breaks when the first thing is done; the second is Python's, and kills the process.
            program = both.program(kind, Noting(), at("look", _breaks))
            own = replace(host.prepare(both.compiled, both.direct, "interp"), program=program)
            host.run(own, INPUTS, host.moment())
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "it was to be killed"
    assert os.WTERMSIG(status) == signal.SIGKILL
    ledger = Ledger(file)
    assert len(ledger.lines) == (1 if when == "before" else 2)
    with _host(config, ledger) as living:
        (found,) = living.recover(engine)
        assert found.outcome == Returned({"last": "third"}), found
        assert [line.split()[0] for line in ledger.lines] == ["first", "second", "third"], "each once"
        entries = [each.entry for each in living.journal.read(found.execution).entries]
        within, over = (each.body for each in entries if each.kind is Kind.HANDOFF)
        assert (within["before"], within["engine"]) == ("interp", "python")
        assert over["engine"] == (engine or "python"), "the engine that the run was on last, unless somebody says so"
        for program_ in (both.python, both.direct):
            assert follow(program_, entries).difference is None
        assert living.recover() == []
