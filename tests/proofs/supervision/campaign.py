"""`make proof-supervision`: workers of agents and their sender are killed while messages are handled.

A tree of agents handles 10,000 messages; each message writes one row of a ledger. Workers are forked processes that the
campaign kills with SIGKILL at random moments and starts again; the sender is killed too, and sends the last ones again
under the same keys. One message in a hundred fails once, so that restarts of agents fall between the kills.

- lost: messages without a row of the ledger, or whose last run did not return;
- doubled: messages with two rows, or with two runs that were not attempts of one another;
- misordered: messages of one sender whose first rows are not in the order in which they were sent.

It is resumable: journal and ledger stay in `.proofs/supervision` until the campaign has ended.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))


import vesper  # noqa: E402
from tests.proofs.robustness.proof import PROOFS, STATE, engine_hash, whole_hash, write_json  # noqa: E402
from tests.proofs.waiting.places import fork, join  # noqa: E402
from tests.unit.agents.agent_nodes import crash, host_in  # noqa: E402
from vesper.agents.messages import mailboxes_of  # noqa: E402
from vesper.agents.node_table import node_table  # noqa: E402
from vesper.host.host import Host  # noqa: E402
from vesper.journal.errors import JournalError  # noqa: E402
from vesper.journal.journal import Status, open_journal  # noqa: E402
from vesper.language.work_bindings import Backoff, ChildField, SupervisorField  # noqa: E402
from vesper.serve.work import Work  # noqa: E402

NAME = "supervision"
SEED = 20_261_119
FAILING = 100
"""One message in so many fails at its first attempt."""
_RESENT = 100
"""Messages that a sender sends again after its death, and between two marks of its progress."""
NODE = """\
node_id: counting_v1
type: event_handler
intent: Write one row of the ledger
inputs:
  event_id: string
  agent_self: string
  agent_sender: string
outputs:
  success: {text: string}
flow:
  - step: act
    operation: custom
    name: act
    request: {event_id: event_id, agent: agent_self, sender: agent_sender}
    returns: string
    effect: keyed
    key: event_id
  - operation: return
    success: {text: act}
security:
  capabilities_required: [effect.call.act]
"""


@dataclass(frozen=True)
class Place:
    """The folder of a campaign."""

    folder: Path
    agents: int

    @property
    def ledger(self) -> sqlite3.Connection:
        found = sqlite3.connect(self.folder / "ledger.db", timeout=60, isolation_level=None)
        found.execute("PRAGMA journal_mode=WAL")
        found.execute("PRAGMA synchronous=OFF")  # processes die here, the machine does not
        found.execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, event TEXT UNIQUE, agent TEXT)")
        found.execute("CREATE TABLE IF NOT EXISTS attempts (event TEXT)")
        found.execute("CREATE TABLE IF NOT EXISTS failed (event TEXT PRIMARY KEY)")
        return found

    def act(self) -> Callable[[str, str, str], str]:
        def act(event: str, agent: str, sender: str) -> str:
            ledger = self.ledger
            try:
                ledger.execute("INSERT INTO attempts VALUES (?)", [event])
                if int(event.rpartition("-")[2]) % FAILING == 7:
                    done = ledger.execute("INSERT OR IGNORE INTO failed VALUES (?)", [event]).rowcount
                    if done:
                        crash()
                ledger.execute("INSERT OR IGNORE INTO rows (event, agent) VALUES (?, ?)", [event, agent])
            finally:
                ledger.close()
            return event

        return act

    def host(self) -> Host:
        return host_in(self.folder, self.act(), queues={"agents": {"poll": "20ms", "threads": 4}})

    def node(self, host: Host) -> vesper.Node:
        return vesper.load(self.folder / "counting_v1.vsp", engine="python", host=host)

    def start_tree(self, host: Host) -> None:
        node = self.node(host)
        children = tuple(ChildField(f"a{number}", node.id) for number in range(self.agents))
        strategies = ("one_for_one", "one_for_all", "rest_for_one")
        groups = tuple(
            ChildField(name, None, supervisor=SupervisorField(children, name, 10_000, backoff=Backoff(1000, 2, 20_000)))
            for name in strategies
        )
        mailboxes_of(host).trees.start("crew", SupervisorField(groups, max_restarts=10_000), "crew_v1")

    def addresses(self) -> list[str]:
        strategies = ("one_for_one", "one_for_all", "rest_for_one")
        return [f"crew/{name}/a{number}" for name in strategies for number in range(self.agents)]


def work(place: Place) -> None:
    """Handle messages as `vesper work` does, until this process is killed."""
    host = place.host()
    node = place.node(host)
    host.start()
    node_table(host).add(node)
    Work(host, [node]).start()
    while True:
        time.sleep(60)


def send(place: Place, messages: int) -> None:
    """Send messages under their keys, `_RESENT` of those before the last mark again: they change nothing."""
    mark = place.folder / "mark"
    with place.host() as host:
        node_table(host).add(place.node(host))
        mailboxes, addresses = mailboxes_of(host), place.addresses()
        number = max(0, int(mark.read_text()) - _RESENT) if mark.exists() else 0
        while number < messages:
            if number % _RESENT == 0:
                mark.write_text(str(number))
            address = addresses[number % len(addresses)]
            try:
                mailboxes.send(address, {"event_id": f"m-{number}"}, key=f"m-{number}")
            except JournalError:  # locked for too long by others: the same message again
                continue
            number += 1
    (place.folder / "sent").touch()


def wait_ready(place: Place, rows: int, until: float) -> None:
    """Wait until the ledger has so many rows, or a time."""
    while time.monotonic() < until:
        if count_rows(place) >= rows:
            return
        time.sleep(0.02)


def count_rows(place: Place) -> int:
    ledger = place.ledger
    try:
        return int(ledger.execute("SELECT COUNT(*) FROM rows").fetchone()[0])
    finally:
        ledger.close()


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def run(place: Place, given: argparse.Namespace) -> dict[str, Any]:
    """Send and handle all messages under kills; return what became of them."""
    state = place.folder / "state.json"
    known: dict[str, int] = json.loads(state.read_text()) if state.exists() else {"kills": 0, "sender_kills": 0}
    draws = random.Random(given.seed + known["kills"])
    if not (place.folder / "counting_v1.vsp").exists():
        (place.folder / "counting_v1.vsp").write_text(NODE)
    assert join(fork(lambda: _start(place)))
    began = time.monotonic()
    workers = [fork(lambda: work(place)) for _ in range(given.processes)]
    sender = 0 if (place.folder / "sent").exists() else fork(lambda: send(place, given.messages))
    try:
        while known["kills"] < given.kills:
            left = given.messages - count_rows(place)
            share = max(1, left // max(1, given.kills - known["kills"] + 1))
            # A worker dies when it has handled its share, a few messages more or less.
            target = given.messages - left + draws.randint(share // 2, share)
            wait_ready(place, target, time.monotonic() + 15)
            time.sleep(draws.random() * 0.02)
            number = draws.randrange(len(workers))
            kill(workers[number])
            workers[number] = fork(lambda: work(place))
            known["kills"] += 1
            if sender and draws.random() < 0.1 and not (place.folder / "sent").exists():
                kill(sender)
                known["sender_kills"] += 1
                sender = fork(lambda: send(place, given.messages))
            state.write_text(json.dumps(known))
            sys.stderr.write(f"\r{known['kills']} kills, {count_rows(place)} of {given.messages} messages   ")
            sys.stderr.flush()
        if sender:
            assert join(sender)
            sender = 0
        wait_ready(place, given.messages, time.monotonic() + 300)
        settle(place)
    finally:
        for pid in [*workers, *([sender] if sender else [])]:
            kill(pid)
    return {**known, **judge(place, given.messages), "elapsed_seconds": round(time.monotonic() - began, 1)}


def _start(place: Place) -> None:
    with place.host() as host:
        place.start_tree(host)


def settle(place: Place) -> None:
    """Wait until no message is queued or running."""
    journal = open_journal(f"sqlite:{place.folder / 'journal.db'}")
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if not journal.queue_depths() and not journal.find(status=Status.RUNNING, limit=1):
            break
        time.sleep(0.1)
    journal.close()


def judge(place: Place, messages: int) -> dict[str, Any]:
    """Count what was lost, doubled or handled out of order."""
    ledger = place.ledger
    events = [str(each[0]) for each in ledger.execute("SELECT event FROM rows ORDER BY id")]
    attempts = int(ledger.execute("SELECT COUNT(*) FROM attempts").fetchone()[0])
    failed = int(ledger.execute("SELECT COUNT(*) FROM failed").fetchone()[0])
    ledger.close()
    journal = open_journal(f"sqlite:{place.folder / 'journal.db'}")
    runs = journal.find(limit=10 * messages)
    returned: Counter[str] = Counter()
    first_runs: Counter[str] = Counter()
    for summary in runs:
        start = journal.read(summary.execution).entries[0].entry.body
        event = str(start["inputs"]["event_id"])  # type: ignore[index]
        key = str(start["context"]["key"])  # type: ignore[index]
        first_runs[event] += not key.startswith("retry:")
        returned[event] += summary.status is Status.ENDED and summary.outcome == "returned"
    journal.close()
    expected = {f"m-{number}" for number in range(messages)}
    lost = [each for each in expected if each not in set(events) or not returned[each]]
    doubled = [each for each in expected if returned[each] > 1 or first_runs[each] > 1]
    addresses = len(place.addresses())
    by_agent: dict[int, list[int]] = {}
    for each in events:
        number = int(each.rpartition("-")[2])
        by_agent.setdefault(number % addresses, []).append(number)
    misordered = sum(1 for numbers in by_agent.values() for a, b in pairwise(numbers) if a > b)
    return {
        "messages": messages,
        "lost": len(lost),
        "doubled": len(doubled) + len(events) - len(set(events)),
        "misordered": misordered,
        "failed_once": failed,
        "runs": len(runs),
        "attempts_of_effects": attempts,
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=100, help="of workers")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--agents", type=int, default=4, help="of each of three supervisors")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--folder", type=Path, default=STATE / NAME)
    parser.add_argument("--no-write", action="store_true", help="write no docs/proofs/supervision.json")
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    found = run(Place(given.folder, given.agents), given)
    print(f"\n{json.dumps(found)}")
    problems = [f"{name}: {found[name]}" for name in ("lost", "doubled", "misordered") if found[name]]
    for each in problems:
        print(f"error: {each}", file=sys.stderr)
    if not problems and not given.no_write:
        settings = {"processes": given.processes, "agents": 3 * given.agents, "seed": given.seed}
        write_json(PROOFS / f"{NAME}.json", {**settings, **found, "sources": whole_hash(), "engine": engine_hash()})
    shutil.rmtree(given.folder, ignore_errors=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
