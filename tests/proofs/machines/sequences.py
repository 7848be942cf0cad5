"""The records of a sequence: commands, queries and cleanups, at moments at which something is due."""

from __future__ import annotations

import random
from typing import Any

from tests.proofs.machines.draws import (
    BEGIN_US,
    GAPS,
    SERVICES,
    USERS,
    Theme,
    raw,
    some_envelope,
    some_interrupt,
    some_pid,
    some_service,
    some_session,
)
from tests.proofs.machines.messages import interrupt_pb2, kernel_pb2, registry_pb2
from tests.proofs.machines.records import Record, change, query, slot
from tests.proofs.machines.reference import cleanup, interrupts
from tests.proofs.machines.reference.kernel import Kernel
from tests.proofs.machines.reference.limits import HOUR_US
from tests.proofs.machines.reference.queries import QUERIES


def next_moment(chance: random.Random, kernel: Kernel) -> int:
    """Draw the time of the next record: now, or at or beside a moment at which something is due."""
    now_us, rest = max(kernel.now_us, BEGIN_US), chance.random()
    if rest < 0.6:
        return now_us
    if rest < 0.8:
        named = [each.expires_us for each in kernel.interrupts.values() if each.status == interrupts.PENDING]
        for process in kernel.processes.all.values():
            named += cleanup.deadlines(kernel, process)
        later = [each for each in named if now_us < each < now_us + 2 * HOUR_US]
        if later:
            return max(now_us, chance.choice(later) + chance.choice((-1, 0, 0, 1)))
    return now_us + chance.choice(GAPS)


def some_query(chance: random.Random, kernel: Kernel, now_us: int) -> Record:
    number = chance.randrange(len(QUERIES))
    name = QUERIES[number].__name__
    text: str | bytes
    if name in ("check_quota", "request_status"):
        text = some_pid(chance, kernel)
    elif name == "session_state":
        text = some_session(chance, kernel)
    elif name in ("check_bounds", "get_envelope"):
        text = some_envelope(chance, kernel)
    elif name == "get_interrupt":
        text = some_interrupt(chance, kernel)
    elif name in ("can_accept", "service_stats"):
        text = some_service(chance)
    else:
        text = _page(chance, kernel, name)
    return query(number, text.encode() if isinstance(text, str) else text, now_us)


def _page(chance: random.Random, kernel: Kernel, name: str) -> bytes:
    size, after = chance.choice((0, 0, 1, 2, 100, 1_001, -1)), chance.choice(("", "", "1", "2"))
    request: Any
    if name == "list_services":
        request = registry_pb2.ListServicesRequest(type=raw(chance.choice((0, 0, 1, 2, 3, 4, 9))))
    elif name == "list_processes":
        request = kernel_pb2.ListProcessesRequest(page_size=size, page_token=after and f"p{after}")
        request.state, request.user_id = chance.choice((0, 0, 0, 2, 3, 4, 6, 9)), chance.choice(USERS)
    else:
        request = interrupt_pb2.ListInterruptsRequest(page_size=size, page_token=after and f"i{after}")
        request.status, request.kind = chance.choice((0, 0, 1, 2, 3, 4, 9)), chance.choice((0, 0, 0, 1, 2, 9))
        request.pid = some_pid(chance, kernel) if chance.random() < 0.3 else ""
    return bytes(request.SerializeToString())


def next_record(chance: random.Random, kernel: Kernel, theme: Theme) -> Record:
    """Draw the next record of a sequence."""
    now_us, rest = next_moment(chance, kernel), chance.random()
    if rest < 0.07:
        return some_query(chance, kernel, now_us)
    if rest < 0.09 or (theme is SERVICES and rest < 0.55):
        return slot(chance.random() < 0.6, some_service(chance), now_us)
    if rest < 0.16 and now_us > kernel.now_us:
        return change(now_us, cleanup=kernel_pb2.CleanupRequest())
    return change(now_us, **chance.choice(theme)(chance, kernel))
