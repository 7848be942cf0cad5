"""Processes with one idempotency key: they run the node once, also where the first one is killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers import Postgres

ROOT = Path(__file__).parents[2]
SECONDS = 60
NODE = """\
node_id: charge_v1
type: event_handler
intent: Charge somebody
inputs:
  event_id: string
  amount: integer
outputs:
  success: {receipt: string, total: decimal}
flow:
  - {step: look, operation: custom, name: look, effect: read, returns: integer}
  - {step: charge, operation: custom, name: charge, effect: keyed, key: event_id, request: {amount: amount},
     returns: string}
  - operation: return
    success: {receipt: charge, total: "1.50"}
security:
  capabilities_required: [effect.call.look, effect.call.charge]
"""
PROGRAM = """
import json, os, sys, time
from pathlib import Path
import vesper
settings, engine, amount, seconds, context = sys.argv[1:]
folder = Path(settings).parent

def note(what):
    with open(folder / "done.txt", "a") as file:
        file.write(what + "\\n")

@vesper.effect("look", effect_class="read", request={}, response="integer")
def look():
    note("look")
    return 1

@vesper.effect("charge", effect_class="keyed", request={"amount": "integer"}, response="string")
def charge(amount, key):
    note(f"charge {key} {amount}")
    return f"receipt of {key}"

with vesper.Host.from_file(settings) as host:
    node = vesper.load(folder / "charge_v1.vsp", engine=engine, host=host)
    print("ready", flush=True)
    sys.stdin.readline()
    deadline = time.monotonic() + float(seconds)
    try:
        with vesper.run_context(deadline=deadline, **json.loads(context)) as report:
            answer = node.run_json(json.dumps({"event_id": "e1", "amount": int(amount)}).encode())
        found = [answer.decode(), report.execution, report.is_repeat]
    except vesper.VesperError as error:
        found = [type(error).__name__, getattr(error, "execution", None), None]
    print(json.dumps(found))
"""


class Caller:
    """A process that calls the node once, when it is told to."""

    def __init__(
        self, folder: Path, engine: str = "python", amount: int = 5, die_at: str = "", seconds: int = 30, **context: Any
    ) -> None:
        environment = {name: value for name, value in os.environ.items() if name != "VESPER_DIE_AT"}
        if die_at:
            environment["VESPER_DIE_AT"] = die_at
        arguments = [str(folder / "vesper.toml"), engine, str(amount), str(seconds), json.dumps(context)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments],
            cwd=folder,
            env={**environment, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def is_ready(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def found(self) -> list[Any]:
        """Return the answer or the name of the exception, the execution, and whether it is a repeat."""
        output, _ = self.process.communicate(timeout=SECONDS)
        assert self.process.returncode == 0
        found: list[Any] = json.loads(output)
        return found


@contextmanager
def together(*callers: Caller) -> Iterator[None]:
    """Let callers call at the same time, as far as a machine can."""
    try:
        for caller in callers:
            caller.is_ready()
        for caller in callers:
            caller.go()
        yield
    finally:
        for caller in callers:
            caller.process.kill()
            caller.process.communicate()


def done(folder: Path) -> Counter[str]:
    return Counter((folder / "done.txt").read_text("utf-8").splitlines())


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "postgres":
        server: Postgres = request.getfixturevalue("postgres")
        dsn = server.new_database()
    else:
        dsn = "sqlite:journal.db"
    (tmp_path / "charge_v1.vsp").write_text(NODE, encoding="utf-8")
    (tmp_path / "vesper.toml").write_text(
        f'[[grants]]\nnodes = ["charge"]\nallow = ["effect.*"]\n[journal]\ndsn = "{dsn}"\n'
        "[recovery]\nenabled = false\n",
        encoding="utf-8",
    )
    return tmp_path


def test_processes_that_call_at_the_same_time_run_once_for_each_caller(place: Path) -> None:
    others: tuple[dict[str, Any], ...] = ({"actor": "bob"}, {"actor": "ada", "tenant": "acme"})
    callers = [Caller(place, engine, actor="ada", key="17") for engine in ("python", "interp")]
    callers += [Caller(place, key="17", **context) for context in others]
    with together(*callers):
        first, second, *found = [caller.found() for caller in callers]
    assert first[:2] == second[:2]
    assert '"receipt":"receipt of e1"' in first[0]
    assert {first[2], second[2]} == {False, True}
    assert [is_repeat for *_, is_repeat in found] == [False, False]
    assert len({execution for _, execution, _ in (first, *found)}) == done(place)["charge e1 5"] == 3


def test_a_killed_owner_is_recovered_once_by_its_repeats(place: Path) -> None:
    dying = Caller(place, die_at="effect.performed:2", actor="ada", key="17")
    with together(dying):
        dying.process.wait(SECONDS)
        assert dying.process.returncode in (-signal.SIGKILL, -signal.SIGABRT)
    callers = [Caller(place, amount=amount, actor="ada", key="17") for amount in (5, 5, 6)]
    with together(*callers):
        first, second, other = [caller.found() for caller in callers]
    assert first == second
    assert '"receipt":"receipt of e1"' in first[0]
    assert first[2] is True  # of the run that was killed
    assert other[:2] == ["KeyReused", first[1]]
    # The keyed effect was asked for again under its own key, by the one process that recovered it.
    assert done(place) == {"look": 1, "charge e1 5": 2}
