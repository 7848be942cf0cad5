"""`make proof-topics`: events with kills of their consumers, on Redis, a Postgres outbox and Kafka.

Four processes consume one topic. Processes are killed at random moments and replaced; every tenth one is stopped for
longer than its lease instead, and continues beside the one that took its messages. Every message writes a line at its
begin and one at its end (class `txn`). Then each message has exactly two lines, the lines of a key alternate in the
order of publication, and exactly the poisoned messages and those of a wrong type are dead letters.

The controls break a promise and must be found out: without run keys lines are doubled; without order per key lines of
a key overlap.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

import psycopg  # noqa: E402

import vesper  # noqa: E402
from tests.proofs.robustness.proof import PROOFS, STATE, engine_hash, whole_hash, write_json  # noqa: E402
from tests.support.servers import Postgres, Redis  # noqa: E402
from vesper.effects.events.performer import OUTBOX_CONSUMER_TABLES, OUTBOX_TABLE  # noqa: E402
from vesper.host.finishing import quiet_host  # noqa: E402
from vesper.topics.message import TopicUnavailable  # noqa: E402
from vesper.topics.records import TopicRecords  # noqa: E402
from vesper.topics.sources import open_source  # noqa: E402

SEED = 20_261_118
PLACES = ("redis", "postgres", "kafka")
PROCESSES = 4
LEASE_SECONDS = 2
POISONED_EVERY = 200
WRONG_TYPE_EVERY = 333
GROUP = "ledger_v1"
LEDGER = "CREATE TABLE ledger (seq BIGSERIAL PRIMARY KEY, event_id TEXT, lane TEXT, number BIGINT, part TEXT)"
SETTINGS = """\
[[grants]]
nodes = ["ledger"]
allow = ["database.write.ledger"]
[journal]
dsn = "{journal}"
lease = "{lease}s"
[recovery]
every = "500ms"
[databases.main]
dsn = "{dsn}"
[topics.orders]
url = "{url}"
lease = "{lease}s"
"""


@dataclass
class Findings:
    events: int = 0
    keys: int = 0
    kills: int = 0
    stalls: int = 0
    dead_letters: int = 0
    lost: int = 0
    doubled: int = 0
    out_of_order: int = 0
    wrong_letters: int = 0
    seconds: float = 0.0
    examples: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return self.lost == self.doubled == self.out_of_order == self.wrong_letters == 0


def payload_of(number: int) -> str:
    if number % WRONG_TYPE_EVERY == 11:
        return json.dumps({"number": "eleven"})
    return json.dumps({"number": number, "is_poisoned": number % POISONED_EVERY == 7})


def is_dead(number: int) -> bool:
    return number % WRONG_TYPE_EVERY == 11 or number % POISONED_EVERY == 7


# -- the three places -----------------------------------------------------------------------------


def publish_redis(url: str, messages: list[tuple[int, str]]) -> None:
    import redis

    client = redis.Redis.from_url(url)
    for start in range(0, len(messages), 1000):
        pipeline = client.pipeline(transaction=False)
        for number, key in messages[start : start + 1000]:
            fields = {"id": f"m{number}", "event_key": key, "payload": payload_of(number)}
            pipeline.xadd("vesper:events:orders", fields)  # type: ignore[arg-type]
        pipeline.execute()
    client.close()


def publish_postgres(dsn: str, messages: list[tuple[int, str]]) -> None:
    columns = "(id, topic, payload, event_key, execution, created_at)"
    with (
        psycopg.connect(dsn) as connection,
        connection.cursor() as cursor,
        cursor.copy(f"COPY vesper_outbox {columns} FROM STDIN".encode()) as copy,
    ):
        for number, key in messages:
            copy.write_row((f"m{number}", "orders", payload_of(number), key, "", "2026-11-18T00:00:00Z"))


def publish_kafka(url: str, messages: list[tuple[int, str]]) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": url.removeprefix("kafka://"), "enable.idempotence": True})
    for number, key in messages:
        headers: dict[str, str | bytes | None] = {"id": f"m{number}"}
        producer.produce("orders", payload_of(number).encode(), key.encode(), headers=headers)
        if number % 1000 == 0:
            producer.poll(0.1)
    assert producer.flush(60) == 0


# -- one campaign ---------------------------------------------------------------------------------


class Consumers:
    """The processes that consume, of which some are killed or stopped."""

    def __init__(self, folder: Path, control: str, size: int) -> None:
        self._command = [sys.executable, "-m", "tests.proofs.topics.worker", str(folder), control]
        self._log = (folder / "log").open("ab")
        self._processes = [self._begin() for _ in range(size)]
        self._stalled: list[tuple[float, int]] = []

    def strike(self, draw: random.Random, found: Findings) -> None:
        """Kill one process and begin another, or stop it for longer than its lease."""
        now = time.monotonic()
        for until, pid in [each for each in self._stalled if each[0] <= now]:
            os.kill(pid, signal.SIGCONT)
            self._stalled.remove((until, pid))
        place = draw.randrange(len(self._processes))
        process = self._processes[place]
        if any(pid == process.pid for _, pid in self._stalled):
            return
        if (found.kills + found.stalls) % 10 == 9:
            os.kill(process.pid, signal.SIGSTOP)
            self._stalled.append((now + LEASE_SECONDS * 1.5, process.pid))
            found.stalls += 1
        else:
            process.kill()
            process.wait()
            found.kills += 1
            self._processes[place] = self._begin()

    def resume_all(self) -> None:
        for _, pid in self._stalled:
            os.kill(pid, signal.SIGCONT)
        self._stalled.clear()

    def end(self) -> None:
        self.resume_all()
        for each in self._processes:
            each.kill()
            each.wait()
        self._log.close()

    def _begin(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command, stdout=self._log, stderr=self._log, cwd=ROOT)


def campaign(
    place: str,
    count: int,
    kills: int,
    control: str = "none",
    report: Callable[[str], None] = print,
    size: int = PROCESSES,
) -> Findings:
    """Publish, consume under kills with `size` processes, and count what is wrong."""
    began = time.monotonic()
    draw = random.Random(SEED)
    found = Findings(events=count, keys=max(4, count // 50))
    folder = STATE / "topics" / f"{place}-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    postgres = Postgres()
    dsn = postgres.new_database()
    broker: Any = None
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in (LEDGER, OUTBOX_TABLE["postgresql"], *OUTBOX_CONSUMER_TABLES):
            connection.execute(statement.encode())
    messages = [(number, f"k{draw.randrange(found.keys)}") for number in range(count)]
    journal = f"sqlite:{folder / 'journal.db'}"
    if place == "redis":
        broker = Redis()
        url = broker.url
        publish_redis(url, messages)
    elif place == "kafka":
        from tests.proofs.topics.broker import Kafka

        broker = Kafka()
        url = broker.url
        publish_kafka(url, messages)
    else:
        url, journal = "outbox:", postgres.new_database()
        publish_postgres(dsn, messages)
    settings = SETTINGS.format(journal=journal, lease=LEASE_SECONDS, dsn=dsn, url=url)
    (folder / "vesper.toml").write_text(settings + ('database = "main"\n' if place == "postgres" else ""))
    shutil.copy(Path(__file__).with_name("ledger_v1.vsp"), folder)
    consumers = Consumers(folder, control, size)
    try:
        _consume(folder, dsn, consumers, draw, kills, found, report)
        _count(folder, dsn, messages, found)
    finally:
        consumers.end()
        postgres.remove()
        if broker is not None:
            broker.remove()
    found.seconds = round(time.monotonic() - began, 1)
    if found.is_clean or control != "none":
        shutil.rmtree(folder, ignore_errors=True)
    return found


def _consume(
    folder: Path, dsn: str, consumers: Consumers, draw: random.Random, kills: int, found: Findings,
    report: Callable[[str], None],
) -> None:  # fmt: skip
    """Strike until all messages are finished; the kills are spread over the messages."""
    host = quiet_host(vesper.Host.from_file(folder / "vesper.toml").config, finishes=False)
    records = TopicRecords(host)
    source = None
    expected = sum(not is_dead(number) for number in range(found.events))
    deadline = time.monotonic() + 300 + found.events / 10
    lag, next_look = found.events, 0.0
    try:
        while time.monotonic() < deadline:
            with psycopg.connect(dsn, autocommit=True) as connection:
                (ended,) = connection.execute("SELECT count(*) FROM ledger WHERE part = 'ended'").fetchone() or (0,)
            if found.kills + found.stalls < kills and ended >= expected * (found.kills + found.stalls) // (kills + 1):
                consumers.strike(draw, found)
            if found.kills + found.stalls >= kills:
                consumers.resume_all()
            if time.monotonic() >= next_look:
                if source is None:
                    source = open_source(host, "orders", GROUP)
                with suppress(TopicUnavailable):  # the broker is about to elect a coordinator
                    lag = source.lag()
                report(f"  {ended:,} of {expected:,} done, lag {lag:,}, {found.kills} kills, {found.stalls} stalls")
                next_look = time.monotonic() + 2
            if ended >= expected and lag == 0 and found.kills + found.stalls >= kills:
                found.dead_letters = len(records.letters("orders", GROUP))
                return
            time.sleep(0.05)
        found.examples.append(f"not finished in time: lag {lag}")
    finally:
        host.close()


def _count(folder: Path, dsn: str, messages: list[tuple[int, str]], found: Findings) -> None:
    host = quiet_host(vesper.Host.from_file(folder / "vesper.toml").config, finishes=False)
    letters = {each.id for each in TopicRecords(host).letters("orders", GROUP)}
    host.close()
    dead = {f"m{number}" for number, _ in messages if is_dead(number)}
    found.dead_letters, found.wrong_letters = len(letters), len(letters ^ dead)
    with psycopg.connect(dsn) as connection:
        rows = connection.execute("SELECT lane, number, part FROM ledger ORDER BY seq").fetchall()
    lanes: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for lane, number, part in rows:
        lanes[lane].append((number, part))
    for key in {key for _, key in messages}:
        numbers = [number for number, of in messages if of == key and not is_dead(number)]
        wanted = [(number, part) for number in numbers for part in ("begun", "ended")]
        got = lanes[key]
        if got == wanted:
            continue
        found.lost += len(set(wanted) - set(got))
        found.doubled += len(got) - len(set(got))
        is_disordered = list(dict.fromkeys(got)) != [each for each in wanted if each in set(got)]
        found.out_of_order += is_disordered
        if len(found.examples) < 5:
            first = next((i for i, pair in enumerate(zip(got, wanted, strict=False)) if pair[0] != pair[1]), len(got))
            found.examples.append(f"{key}: {got[max(0, first - 2) : first + 3]}, wanted {wanted[first : first + 2]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000, help="events of each place")
    parser.add_argument("--kills", type=int, default=100, help="kills and stalls of each place")
    parser.add_argument("--on", choices=PLACES, help="only this place; the record has it and those of earlier calls")
    options = parser.parse_args()
    state = STATE / "topics.json"
    tied = {"source_hash": whole_hash(), "engine_hash": engine_hash(), "count": options.count, "kills": options.kills}
    kept: dict[str, Any] = json.loads(state.read_text()) if state.exists() else {}
    if {name: kept.get(name) for name in tied} != tied:
        kept = {**tied, "places": {}}
    for place in [options.on] if options.on else PLACES:
        if place in kept["places"]:
            continue
        print(f"{place}: {options.count:,} events, {options.kills} kills and stalls", flush=True)
        found = campaign(place, options.count, options.kills)
        print(json.dumps(asdict(found)), flush=True)
        if not found.is_clean or found.examples:
            return 1
        kept["places"][place] = asdict(found)
        _keep(state, kept)
    for control, wrong in (("keys", "doubled"), ("order", "out_of_order")):
        name = f"control_without_{control}"
        if name in kept:
            continue
        found = campaign("redis", 300, 8, control)
        print(f"control without {control}: {getattr(found, wrong)} {wrong}", flush=True)
        if getattr(found, wrong) == 0:
            print("the control was not found out: the campaign shows nothing")
            return 1
        kept[name] = {wrong: getattr(found, wrong)}
        _keep(state, kept)
    write_json(PROOFS / "topics.json", {"seed": SEED, **kept})
    if set(kept["places"]) == set(PLACES):
        state.unlink(missing_ok=True)
    return 0


def _keep(state: Path, kept: dict[str, Any]) -> None:
    """Write what is done, for the next call."""
    state.parent.mkdir(exist_ok=True, parents=True)
    state.write_text(json.dumps(kept))


if __name__ == "__main__":
    sys.exit(main())
