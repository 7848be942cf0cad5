"""A project with one event handler and a topic, for tests of consumers."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import vesper
from tests.support.waiting import eventually
from vesper.api.node import Node
from vesper.effects.events.event import Event
from vesper.effects.events.performer import OUTBOX_CONSUMER_TABLES, OUTBOX_TABLE
from vesper.host.host import Host
from vesper.language.work_bindings import EventsField, events_of
from vesper.topics.consumer import Consumer
from vesper.topics.records import Letter, TopicRecords
from vesper.values.json_value import json_of

TOPIC = "orders"
GROUP = "ledger_v1"
NODE = """\
node_id: ledger_v1
type: event_handler
intent: Write down each event

events: {topic: orders, concurrency: 4, attempts: 3, backoff: {base: 1ms}, order_by: event_key}

types:
  Order:
    fields: {number: integer, divisor: integer}

inputs:
  event_id: string
  event_key: optional<string>
  payload: Order

outputs:
  success: {quotient: integer}

flow:
  - step: quotient
    operation: compute
    value: div_floor(payload.number, payload.divisor)

  - step: line
    operation: database_write
    table: ledger
    data: {event_id: event_id, lane: event_key ?? '', number: payload.number}
    effect: txn

  - operation: return
    success: [quotient]

security:
  capabilities_required: [database.write.ledger]
"""
SETTINGS = """\
[[grants]]
nodes = ["ledger"]
allow = ["database.write.ledger"]
[journal]
dsn = "sqlite:journal.db"
[recovery]
enabled = false
[databases.main]
dsn = "sqlite:main.db"
"""


@dataclass
class Project:
    """A folder with its Host and node."""

    folder: Path
    host: Host
    node: Node

    def publish(self, number: int, key: str | None = None, /, **payload: object) -> None:
        """Publish the message `mNUMBER`."""
        json = json_of({"number": number, "divisor": 1} | payload)
        self.host.event_topics().republish(Event(f"m{number}", TOPIC, json, key, "", datetime.now(UTC)))

    def lines(self) -> list[int]:
        """Return the numbers of handled messages, in the order of their effects."""
        with closing(sqlite3.connect(self.folder / "main.db")) as database:
            return [number for (number,) in database.execute("SELECT number FROM ledger ORDER BY seq")]

    def waiting(self) -> int:
        """Return the number of rows in the outbox."""
        with closing(sqlite3.connect(self.folder / "main.db")) as database:
            (found,) = database.execute("SELECT count(*) FROM vesper_outbox").fetchone()
            return int(found)

    def letters(self) -> list[Letter]:
        return TopicRecords(self.host).letters(TOPIC)

    @property
    def field(self) -> EventsField:
        found = events_of(self.node._compiled)
        assert found is not None
        return found

    @contextmanager
    def consuming(self, is_paused: Callable[[], bool] = lambda: False, **changes: object) -> Iterator[Consumer]:
        """Run a consumer, with other settings of the field where some are given."""
        consumer = Consumer(self.host, self.node, replace(self.field, **changes), is_paused)  # type: ignore[arg-type]
        consumer.start()
        eventually(lambda: consumer._source is not None)
        try:
            yield consumer
        finally:
            assert consumer.stop(30)


@contextmanager
def open_project(folder: Path, topic: str, node: str = NODE, settings: str = SETTINGS) -> Iterator[Project]:
    """Make a project; `topic` has the settings of its topic."""
    with closing(sqlite3.connect(folder / "main.db")) as database:
        database.execute("CREATE TABLE ledger (seq INTEGER PRIMARY KEY, event_id TEXT, lane TEXT, number INTEGER)")
        for statement in (OUTBOX_TABLE["sqlite"], *OUTBOX_CONSUMER_TABLES):
            database.execute(statement)
    (folder / "vesper.toml").write_text(f"{settings}\n[topics.orders]\n{topic}\n", encoding="utf-8")
    path = folder / "ledger_v1.vsp"
    path.write_text(node, encoding="utf-8")
    with Host.from_file(folder / "vesper.toml") as host:
        yield Project(folder, host, vesper.load(path, host=host, engine="python"))
