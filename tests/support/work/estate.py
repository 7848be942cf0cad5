"""A project with work of every kind: waits, a queue with a dead letter, a schedule, a topic with a dead letter, agents.

python -m tests.support.work.estate FOLDER
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import vesper
from vesper.config.settings import Config, read_config
from vesper.host.host import Host
from vesper.host.waiting import RunWaits
from vesper.language.work_bindings import ChildField, SupervisorField
from vesper.queues.workers import QueueWorkers
from vesper.schedules.schedules import Schedules
from vesper.supervision.mailboxes import Mailboxes
from vesper.supervision.overview import stop_agents
from vesper.supervision.trees import Trees
from vesper.topics.records import Letter, TopicRecords

_NODES = {
    "refund_v1": """node_id: refund_v1
type: event_handler
intent: Refund an order once a person agreed, and wait until the bank settled it

inputs:
  event_id: string
  amount: decimal
  customer: string

outputs:
  success: {settled: boolean}
  error: {error_code: "enum[refused]", message: string}

flow:
  - step: approval
    operation: interrupt
    kind: confirmation
    message: "Refund {amount} EUR to {customer}?"
    ttl: 2h
    returns: {approved: boolean, level: "enum[full, partial]", note: optional<string>}
    on_error:
      expired, cancelled:
        return_error: {error_code: refused, message: "nobody agreed"}

  - step: settled
    operation: wait_for
    signal: refund_settled
    timeout: 7d
    returns: boolean
    on_error:
      timeout, cancelled:
        return_error: {error_code: refused, message: "the bank did not settle it"}

  - operation: return
    success: {settled: settled}

security:
  capabilities_required: [interrupts.raise.confirmation, signals.receive.refund_settled]
""",
    "reminder_v1": """node_id: reminder_v1
type: event_handler
intent: Remind a customer after three days

inputs:
  event_id: string

outputs:
  success: {at: timestamp}

flow:
  - step: pause
    operation: sleep
    duration: 3d

  - operation: return
    success: {at: pause}

security:
  capabilities_required: [clock.sleep.system]
""",
    "invoice_v1": """node_id: invoice_v1
type: event_handler
intent: Read the invoice of a merchant

inputs:
  event_id: string
  merchant: {type: string, default: acme}

outputs:
  success: {length: integer}

queue: {name: invoices, by: merchant, concurrency: 2, attempts: 3}

events: {topic: orders}

flow:
  - step: text
    operation: file
    action: read
    root: invoices
    path: "{merchant}.txt"
    returns: string

  - operation: return
    success: {length: length(text)}

security:
  capabilities_required: [filesystem.read.invoices]
""",
    "report_v1": """node_id: report_v1
type: scheduled_job
intent: Sleep a day, every night

inputs:
  scheduled_at: timestamp

outputs:
  success: {at: timestamp}

schedule: {cron: "30 2 * * *", zone: Europe/Berlin, jitter: 5m}

flow:
  - step: pause
    operation: sleep
    duration: 1d

  - operation: return
    success: {at: pause}

security:
  capabilities_required: [clock.sleep.system]
""",
}
_JOURNAL = """[journal]
dsn = "sqlite:journal.db"
"""
SETTINGS = """
[files.invoices]
path = "invoices"

[topics.orders]
url = "memory:"

[topics.refunds]
url = "memory:"

[[grants]]
nodes = ["refund_v1", "reminder_v1", "invoice_v1", "report_v1"]
allow = [
  "clock.sleep.system", "filesystem.read.invoices", "interrupts.raise.confirmation", "signals.receive.refund_settled",
]
"""
MESSAGE_ID = "order-4711"


def make_work(folder: Path) -> Config:
    """Write a project and begin its work; return its settings."""
    write_nodes(folder)
    (folder / "vesper.toml").write_text(_JOURNAL + SETTINGS)
    return begin_work(folder)


def write_nodes(folder: Path) -> None:
    """Write the nodes of a project; its settings need `SETTINGS` and a journal."""
    for name in ("nodes", "invoices"):
        (folder / name).mkdir(exist_ok=True)
    for node, text in _NODES.items():
        (folder / "nodes" / f"{node}.vsp").write_text(text)


def begin_work(folder: Path) -> Config:
    """Begin the work of a project that is written; return its settings."""
    config = read_config(folder / "vesper.toml")
    with Host(config) as host:
        refund, reminder, invoice, report = (
            vesper.load(folder / "nodes" / f"{node}.vsp", engine="python", host=host) for node in _NODES
        )
        given = [("24.90", "ann"), ("310.00", "bob"), ("1250.00", "<script>alert(1)</script>")]
        executions = [_begin(refund, event_id=f"r{n}", amount=a, customer=c) for n, (a, c) in enumerate(given)]
        vesper.run_handle(executions[0], host=host).answer({"approved": True, "level": "full"})
        host.keep()
        _begin(reminder, event_id="m1")
        dead = invoice.enqueue({"event_id": "i0", "merchant": "acme"})
        workers = QueueWorkers(host, [invoice])
        workers.start()
        dead.wait(30)
        workers.stop(30)
        for n, merchant in enumerate(("acme", "acme", "globex", "initech")):
            invoice.enqueue({"event_id": f"i{n + 1}", "merchant": merchant}, delay=3600.0 * (n % 2), priority=n)
        Schedules(host, [report]).step()
        children = tuple(ChildField(name, reminder.id) for name in ("ann", "bob"))
        Trees(host.journal).start("desk", SupervisorField(children, "rest_for_one"), "desk_v1")
        stop_agents(Mailboxes(host, lambda _: reminder._prepare(host)), "desk/bob", "ann", "<script>alert(1)</script>")
        TopicRecords(host).bury(
            Letter(
                "orders", "invoice_v1", "invoice_v1", MESSAGE_ID, "acme", '{"merchant": 5}', "7-0", 5, "bad_input",
                "payload: wrong_type", None, time.time_ns() // 1000 - 7_200_000_000, False,
            )
        )  # fmt: skip
    return config


def _begin(node: vesper.Node, **inputs: str) -> str:
    try:
        node(**inputs)
    except RunWaits as waits:
        return waits.execution
    raise AssertionError("the run did not wait")


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    make_work(place)
