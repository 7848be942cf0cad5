"""Nodes that wait, and a Host whose clock a test moves."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.unit.host.small import host_in
from vesper.host.host import Host
from vesper.journal.journal import Journal, open_journal
from vesper.storage.sources import Sources

SLEEPER = """
node_id: sleeper_v1
type: event_handler
intent: Sleep for a while

inputs:
  event_id: string
  for: duration

outputs:
  success: {woken: timestamp}

flow:
  - step: pause
    operation: sleep
    duration: for
  - operation: return
    success: {woken: pause}

security:
  capabilities_required: [clock.sleep.system]
"""
ASKER = """
node_id: asker_v1
type: event_handler
intent: Ask a person and then wait for the bank

inputs:
  event_id: string
  secret: string

outputs:
  success: {answer: string}

types:
  Settlement:
    fields: {reference: string, amount: decimal}

flow:
  - step: approval
    operation: interrupt
    kind: confirmation
    message: "Refund {event_id}?"
    ttl: 1h
    returns: {approved: boolean, note: optional<string>}
    on_error:
      expired: {value: {approved: false, note: "'expired'"}}
      cancelled: {value: {approved: false, note: "'cancelled'"}}
  - operation: return
    when: NOT approval.approved
    success: {answer: "approval.note ?? 'refused'"}
  - step: settled
    operation: wait_for
    signal: payment_settled
    match: event_id
    timeout: 7d
    returns: Settlement
    on_error:
      timeout: {value: {reference: "'timeout'", amount: "0"}}
  - operation: return
    success: {answer: settled.reference}

security:
  capabilities_required: [interrupts.raise.confirmation, signals.receive.payment_settled]
  sensitive_data: [secret]
"""
PLAIN_ASKER = ASKER.replace("  secret: string\n", "").replace("  sensitive_data: [secret]\n", "")
HOUR_US = 3_600_000_000


class Clock:
    """A clock that a test moves; it goes on by itself, too."""

    def __init__(self) -> None:
        self.shift_us = 0

    def sources(self) -> Sources:
        return Sources(now_ns=lambda: time.time_ns() + self.shift_us * 1000)


def journal_in(folder: Path, clock: Clock) -> Journal:
    return open_journal(f"sqlite:{folder / 'journal.db'}", sources=clock.sources())


def clocked_host(folder: Path, clock: Clock, **settings: Any) -> Host:
    """A Host on a journal of its own, which the test closes with the Host's process."""
    return host_in(folder, settings, journal=journal_in(folder, clock), sources=clock.sources())
