"""A process dies at each kill point, another one recovers: each effect has happened as its class promises."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.proofs.kills.purchase import OutsideProcess, is_heard_of, sqlite_place, wrong
from tests.support.servers import Redis
from vesper.effects.events.performer import OUTBOX_TABLE
from vesper.host.host import Host

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "how-to" / "test-recovery.md"
SECONDS = 60
DEATHS = (-signal.SIGKILL, -signal.SIGABRT)
UNHEARD = "unheard"
"""The journal does not know the run: nothing has happened."""
FINISHED = "finished"
"""Recovery finishes the run."""
IN_DOUBT = "in doubt"
"""Recovery finishes the run after the notice was resolved."""
ENDED = "ended"
"""Recovery has nothing to do."""
PLACES = {
    "begin.appended": UNHEARD,
    "intent.appended": UNHEARD,
    "commit.written": UNHEARD,
    "intent.committed": FINISHED,
    "intent.committed:4": IN_DOUBT,
    "effect.performed:2": FINISHED,
    "effect.performed:4": FINISHED,
    "effect.performed:5": IN_DOUBT,
    "result.appended:2": FINISHED,
    "result.appended:5": IN_DOUBT,
    "commit.written:5": IN_DOUBT,
    "result.committed": FINISHED,
    "end.appended": FINISHED,
    "commit.written:7": FINISHED,
    "end.committed": ENDED,
}
"""Effect 2 charges (keyed), 4 writes a row (txn), 5 gives notice (unsafe), whose INTENT is the fourth."""


@pytest.fixture(scope="module")
def outside() -> Iterator[OutsideProcess]:
    process = OutsideProcess()
    yield process
    process.close()


def purchase(command: str, folder: Path, port: int, *event: str, die_at: str = "") -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "VESPER_DIE_AT"}
    if die_at:
        environment["VESPER_DIE_AT"] = die_at
    arguments = [sys.executable, "-m", "tests.proofs.kills.purchase", command, str(folder), str(port), "python", *event]
    return subprocess.run(
        arguments, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )


@pytest.mark.parametrize("place, expected", PLACES.items())
def test_a_run_that_dies_is_recovered(tmp_path: Path, outside: OutsideProcess, place: str, expected: str) -> None:
    event = f"dies at {place}"
    died = purchase("run", tmp_path, outside.port, event, die_at=place)
    assert died.returncode in DEATHS, died.stderr
    shop = sqlite_place(tmp_path, outside.port)
    recovered = purchase("recover", tmp_path, outside.port)
    assert recovered.returncode == 0, recovered.stderr
    found = json.loads(recovered.stdout)
    assert found["doubts"] == ([event] if expected == IN_DOUBT else [])
    if expected == UNHEARD:
        assert found["runs"] == []
        assert not is_heard_of(shop, outside, event)
        assert outside.counts()[f"/charge {event}"] == 0
    else:
        assert [status for _, status, _ in found["runs"]] == ["ended"]
        assert wrong(shop, outside, event) == []


def test_a_recovery_that_dies_is_recovered(tmp_path: Path, outside: OutsideProcess) -> None:
    event = "dies twice"
    assert purchase("run", tmp_path, outside.port, event, die_at="effect.performed:2").returncode in DEATHS
    assert purchase("recover", tmp_path, outside.port, die_at="handoff.committed").returncode in DEATHS
    assert outside.counts()[f"/charge {event}"] == 1
    assert purchase("recover", tmp_path, outside.port).returncode == 0
    assert wrong(sqlite_place(tmp_path, outside.port), outside, event) == []


def test_a_place_that_is_never_passed_kills_nothing(tmp_path: Path, outside: OutsideProcess) -> None:
    event = "lives"
    assert purchase("run", tmp_path, outside.port, event, die_at="intent.committed:6").returncode == 0
    assert wrong(sqlite_place(tmp_path, outside.port), outside, event) == []


RELAY = """
import sys, time
from pathlib import Path
import vesper
with vesper.Host.from_file(sys.argv[1]) as host:
    if len(sys.argv) > 2:
        assert vesper.load(Path(sys.argv[2]), host=host)(event_id="e").ok
    host.start()
    time.sleep(float(sys.argv[3]) if len(sys.argv) > 3 else 2)
"""
NEWS = """\
node_id: news_v1
type: event_handler
intent: Tell everybody
inputs:
  event_id: string
outputs:
  success: {id: string}
flow:
  - {step: tell, operation: event_publish, topic: news, payload: {e: "{event_id}"}, effect: txn}
  - operation: return
    success: {id: tell}
security:
  capabilities_required: [events.publish.news]
"""


def test_an_event_that_was_published_and_not_marked_is_published_once(tmp_path: Path, redis_server: Redis) -> None:
    import redis

    stream = f"kill-points-{os.getpid()}"
    (tmp_path / "news_v1.vsp").write_text(NEWS, encoding="utf-8")
    (tmp_path / "vesper.toml").write_text(
        '[[grants]]\nnodes = ["news"]\nallow = ["events.*"]\n'
        '[journal]\ndsn = "sqlite:journal.db"\n[recovery]\nevery = "50ms"\n'
        '[databases.main]\ndsn = "sqlite:shop.db"\n'
        f'[topics.news]\nurl = "{redis_server.url}"\nstream = "{stream}"\ndatabase = "main"\n',
        encoding="utf-8",
    )
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute(OUTBOX_TABLE["sqlite"])
    command = [sys.executable, "-c", RELAY, str(tmp_path / "vesper.toml")]
    die_at = {**os.environ, "VESPER_DIE_AT": "outbox.published", "PYTHONPATH": str(ROOT)}
    arguments = [*command, "news_v1.vsp", str(SECONDS)]
    assert subprocess.run(arguments, cwd=tmp_path, env=die_at, timeout=SECONDS, check=False).returncode in DEATHS

    def waiting() -> int:
        with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
            return int(connection.execute("SELECT count(*) FROM vesper_outbox").fetchone()[0])

    with closing(redis.Redis.from_url(redis_server.url)) as client:
        assert (client.xlen(stream), waiting()) == (1, 1)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    deadline = time.monotonic() + SECONDS
    while waiting():
        assert time.monotonic() < deadline
        subprocess.run(command, cwd=tmp_path, env=environment, timeout=SECONDS, check=True)
    with closing(redis.Redis.from_url(redis_server.url)) as client:
        assert client.xlen(stream) == 1


DUE_WORK = """
import os
from datetime import UTC, datetime
import vesper

past = datetime(2020, 1, 1, tzinfo=UTC)
host = vesper.Host.from_file("vesper.toml")
node = vesper.load("sleeps_v1.vsp", host=host)
prepared = node._prepare(host)
steps = {
    "queued.committed": lambda: host.put_run(prepared, {"event_id": "a", "due": past}, past, queue="mail"),
    "claim.committed": lambda: host.journal.claim_queued("mail", 1, 60_000_000),
    "waiting.committed": lambda: node(event_id="b", due=past),
    "wake.committed": lambda: host.journal.wake_due(),
}
for place, step in steps.items():
    pid = os.fork()
    if pid == 0:
        os.environ["VESPER_DIE_AT"] = place
        try:
            step()
        finally:
            os._exit(1)
    print(place, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
SLEEPS = """\
node_id: sleeps_v1
type: event_handler
intent: Sleep until a time
inputs: {event_id: string, due: timestamp}
outputs: {success: {woken: timestamp}}
flow:
  - {step: pause, operation: sleep, until: due}
  - operation: return
    success: {woken: pause}
security: {capabilities_required: [clock.sleep.system]}
"""


def test_due_work_of_processes_that_die_is_neither_lost_nor_doubled(tmp_path: Path) -> None:
    (tmp_path / "sleeps_v1.vsp").write_text(SLEEPS, encoding="utf-8")
    (tmp_path / "vesper.toml").write_text(
        '[[grants]]\nnodes = ["*"]\nallow = ["clock.*"]\n[journal]\ndsn = "sqlite:journal.db"\n'
        "[recovery]\nenabled = false\n",
        encoding="utf-8",
    )

    command = [sys.executable, "-c", DUE_WORK]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    died = subprocess.run(
        command, cwd=tmp_path, env=environment, timeout=SECONDS, check=False, capture_output=True, text=True
    )
    codes = [int(line.split()[1]) for line in died.stdout.splitlines()]
    assert len(codes) == 4, died.stderr
    assert all(code in DEATHS for code in codes), died.stderr
    with Host.from_file(tmp_path / "vesper.toml") as host:
        journal = host.journal
        ((row, run),) = journal.claim_queued("mail", 1, 60_000_000)  # the process that had it is dead
        assert run is not None
        (woken,) = journal.unfinished(is_released=True)
        assert [each.execution for each in journal.due()] == [row.execution]
        recovered = host.resume(woken.execution)
        assert recovered.outcome is not None
        assert recovered.outcome.kind == "returned"
        assert journal.verify(woken.execution) == journal.verify(str(row.execution)) == []


def test_the_guide_lists_the_places_of_the_sources() -> None:
    passed = {
        name
        for path in (*(ROOT / "vesper").rglob("*.py"), *(ROOT / "direct_runtime/crates/vesper-host/src").rglob("*.rs"))
        for name in re.findall(r'kill_point\("([a-z.]+)"\)', path.read_text("utf-8"))
    }
    assert set(re.findall(r"^\| `([a-z]+\.[a-z]+)` \|", GUIDE.read_text("utf-8"), re.MULTILINE)) == passed
