"""The state of a kernel as its page shows it, read by the typed client."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vesper.values.model import printable

if TYPE_CHECKING:
    from vesper.kernel import Client, v1

STATES = ("new", "ready", "running", "waiting", "blocked", "terminated", "zombie")
COUNTERS = ("llm_calls", "tool_calls", "tokens_in", "tokens_out", "agent_hops", "iterations")
_SHOWN = 25
"""Processes and interrupts of the page."""
_PAGE = 1_000
_WINDOWS = (1_000, 20_000)
"""Changes of the log in which the latest processes are looked for; a pid is the number of a change."""


@dataclass(frozen=True, slots=True)
class Budget:
    """A counter of a process that was used or has a limit."""

    name: str
    used: int
    limit: int | None

    @property
    def remaining(self) -> int | None:
        return None if self.limit is None else max(0, self.limit - self.used)


@dataclass(frozen=True, slots=True)
class ProcessLine:
    pid: str
    request: str
    user: str
    state: str
    reason: str
    """Why it ended."""
    message: str
    worker: str
    created_us: int
    changed_us: int
    budgets: tuple[Budget, ...]
    ends_us: int | None
    """When the time of its quota is over; None without one."""


@dataclass(frozen=True, slots=True)
class InterruptLine:
    id: str
    pid: str
    kind: str
    message: str
    data: str
    """What the person needs for an answer, as JSON."""
    stage: str
    run: str
    """The run of a journal that it stands for."""
    created_us: int
    expires_us: int | None


@dataclass(frozen=True, slots=True)
class ServiceLine:
    name: str
    type: str
    version: str
    status: str
    load: int
    max_concurrent: int
    workers: int
    checked_us: int


@dataclass(frozen=True, slots=True)
class KernelState:
    """One moment of a kernel."""

    uptime_us: int
    counts: dict[str, int]
    """Processes by state."""
    total: int
    sessions: int
    changes: int
    """The number of the last change of its log."""
    is_draining: bool
    processes: tuple[ProcessLine, ...]
    """The latest ones, newest first."""
    pending: int
    interrupts: tuple[InterruptLine, ...]
    """Those that wait for an answer, oldest first."""
    services: tuple[ServiceLine, ...]
    subscribers: int
    topics: int
    queued: int
    queries: int


def read_state(client: Client) -> KernelState:
    """Read all data of the page from the kernel. Raises `KernelError`."""
    from vesper.kernel import v1

    status = client.get_system_status(v1.GetSystemStatusRequest())
    pending = v1.ListInterruptsRequest(status=v1.InterruptStatus.INTERRUPT_STATUS_PENDING, page_size=_SHOWN)
    interrupts = client.list_interrupts(pending).interrupts
    services = client.list_services(v1.ListServicesRequest()).services
    return KernelState(
        status.uptime_us,
        {name: status.process_counts.get(name, 0) for name in STATES},
        status.total_processes,
        status.live_sessions,
        status.last_sequence,
        status.draining,
        tuple(map(_process, _latest_processes(client, status.last_sequence))),
        status.pending_interrupts,
        tuple(map(_interrupt, interrupts)),
        tuple(map(_service, services)),
        status.bus.subscribers,
        status.bus.topics,
        status.bus.queued,
        status.bus.open_queries,
    )


def _latest_processes(client: Client, last: int) -> list[v1.Process]:
    """Return the newest processes of the last changes; the kernel lists from the oldest."""
    from vesper.kernel import v1

    found: deque[v1.Process] = deque(maxlen=_SHOWN)
    for window in _WINDOWS:
        found.clear()
        token = f"p{last - window}" if last > window else ""
        while True:
            answer = client.list_processes(v1.ListProcessesRequest(page_size=_PAGE, page_token=token))
            found.extend(answer.processes)
            token = answer.next_page_token
            if not token:
                break
        if len(found) == _SHOWN or last <= window:
            break
    return list(reversed(found))


def _process(process: v1.Process) -> ProcessLine:
    quota, usage = process.quota, process.usage
    limits = {name: getattr(quota, f"max_{name}") for name in COUNTERS if quota.HasField(f"max_{name}")}
    budgets = (Budget(name, getattr(usage, name), limits.get(name)) for name in COUNTERS)
    ends_us = process.created_us + quota.timeout_us if quota.HasField("timeout_us") else None
    is_ended = process.HasField("ended_us")
    return ProcessLine(
        process.pid,
        printable(process.request_id),
        printable(process.user_id),
        word("ProcessState", process.state),
        word("TerminalReason", process.terminal_reason) if is_ended else "",
        printable(process.terminal_message),
        printable(process.worker),
        process.created_us,
        process.changed_us,
        tuple(each for each in budgets if each.used or each.limit is not None),
        None if ends_us is None or is_ended else ends_us,
    )


def _interrupt(each: v1.FlowInterrupt) -> InterruptLine:
    return InterruptLine(
        each.interrupt_id,
        each.pid,
        word("InterruptKind", each.kind).replace("_", " "),
        printable(each.message),
        printable(each.data_json),
        printable(each.stage),
        printable(each.run_id),
        each.created_us,
        each.expires_us if each.HasField("expires_us") else None,
    )


def _service(each: v1.ServiceInfo) -> ServiceLine:
    return ServiceLine(
        printable(each.name),
        word("ServiceType", each.type),
        printable(each.version),
        word("ServiceStatus", each.status),
        each.current_load,
        each.max_concurrent,
        each.workers,
        each.last_health_check_us,
    )


def word(enum: str, value: int) -> str:
    """Return the word of a member: `running` of `PROCESS_STATE_RUNNING`."""
    from vesper.kernel import v1

    prefix = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", enum).upper()
    name: str = getattr(v1, enum).Name(value)
    return name.removeprefix(f"{prefix}_").lower()
