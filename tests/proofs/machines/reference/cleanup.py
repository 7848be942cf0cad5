"""What time does: leases end, interrupts expire, processes run out of time and are removed."""

from __future__ import annotations

from collections.abc import Callable

from google.protobuf.message import Message

from tests.proofs.machines.messages import interrupt_pb2, kernel_pb2, orchestration_pb2, process_pb2
from tests.proofs.machines.reference import interrupts, limits, steps
from tests.proofs.machines.reference.kernel import Kernel
from tests.proofs.machines.reference.processes import READY, RUNNING, TERMINATED, ZOMBIE, Process

_Due = tuple[int, int, int, Callable[[kernel_pb2.CleanupResponse], None]]
_FAILURE = orchestration_pb2.AgentFailure(code="timeout", message="The stage is out of time.")


def due(kernel: Kernel) -> list[_Due]:
    """Return what is due, by its deadline: interrupts before processes before envelopes of the same time."""
    found: list[_Due] = []
    for interrupt in kernel.interrupts.values():
        if interrupt.status == interrupts.PENDING and interrupt.HasField("expires_us"):
            found.append((interrupt.expires_us, 0, int(interrupt.interrupt_id[1:]), _expire(kernel, interrupt)))
    for process in kernel.processes.all.values():
        ends = deadlines(kernel, process)
        if ends:
            found.append((min(ends), 1, process.number, _tend(kernel, process)))
    for name, envelope in kernel.envelopes.items():
        until_us = envelope.created_us + kernel.settings.retention_us
        found.append((until_us, 2, int(name[1:]), _forget(kernel, name)))
    return sorted((row for row in found if row[0] <= kernel.now_us), key=lambda row: row[:3])


def is_due(kernel: Kernel) -> bool:
    """Return whether a cleanup would change something."""
    now_us = kernel.now_us
    for interrupt in kernel.interrupts.values():
        if interrupt.status == interrupts.PENDING and interrupt.HasField("expires_us"):
            if interrupt.expires_us <= now_us:
                return True
    for process in kernel.processes.all.values():
        ends = deadlines(kernel, process)
        if ends and min(ends) <= now_us:
            return True
    retention_us = kernel.settings.retention_us
    return any(envelope.created_us + retention_us <= now_us for envelope in kernel.envelopes.values())


def deadlines(kernel: Kernel, process: Process) -> list[int]:
    control = process.message
    if process.state == ZOMBIE:
        return [control.changed_us]
    if process.state == TERMINATED:
        return [control.ended_us + kernel.settings.retention_us]
    session = kernel.sessions.get(control.pid)
    ends = [] if session is None else [at_us for at_us, _, _ in session.deadlines()]
    until_us = limits.time_limit(control.quota, control.created_us)
    return [*ends, *(each for each in (until_us, process.lease_end) if each is not None)]


def cleanup(kernel: Kernel, _request: kernel_pb2.CleanupRequest) -> tuple[Message | None, bool]:
    done = kernel_pb2.CleanupResponse()
    rows = due(kernel)
    for *_, perform in rows:
        perform(done)
    return done, bool(rows)


def _expire(kernel: Kernel, interrupt: interrupt_pb2.FlowInterrupt) -> Callable[..., None]:
    def perform(done: kernel_pb2.CleanupResponse) -> None:
        if interrupt.status == interrupts.PENDING:
            kernel.end_interrupt(interrupt, interrupts.EXPIRED, None)
            done.expired_interrupts += 1

    return perform


def _forget(kernel: Kernel, name: str) -> Callable[..., None]:
    def perform(_done: kernel_pb2.CleanupResponse) -> None:
        del kernel.envelopes[name]
        kernel.touched.add(name)

    return perform


def _tend(kernel: Kernel, process: Process) -> Callable[..., None]:
    def perform(done: kernel_pb2.CleanupResponse) -> None:
        if process.state == ZOMBIE:
            _remove(kernel, process)
            done.removed_processes += 1
        elif process.state == TERMINATED:
            # One that ended in this cleanup can be read until its own retention is over.
            if process.message.ended_us + kernel.settings.retention_us <= kernel.now_us:
                kernel.shift(process, ZOMBIE)
        else:
            _tend_live(kernel, process, done)

    return perform


def _remove(kernel: Kernel, process: Process) -> None:
    pid = process.message.pid
    kernel.processes.remove(pid)
    kernel.sessions.pop(pid, None)
    gone = [name for name, each in kernel.interrupts.items() if each.pid == pid]
    for name in gone:
        del kernel.interrupts[name]
    kernel.touched |= {pid, f"s:{pid}", *gone}


def _tend_live(kernel: Kernel, process: Process, done: kernel_pb2.CleanupResponse) -> None:
    control, now_us = process.message, kernel.now_us
    pid = control.pid
    until_us = limits.time_limit(control.quota, control.created_us)
    if until_us is not None and until_us <= now_us:
        kernel.emit(kernel_pb2.KERNEL_EVENT_KIND_RESOURCE_EXCEEDED, pid, resource="time")
        kernel.terminate(pid, process_pb2.TERMINAL_REASON_TIMED_OUT, "The time of the quota is over.")
        done.timed_out_processes += 1
        return
    session = kernel.sessions.get(pid)
    if session is not None:
        late = [branch for at_us, branch, is_timeout in session.deadlines() if is_timeout and at_us <= now_us]
        for branch in late:
            # An earlier one may have ended the session.
            if not process.has_ended:
                result = orchestration_pb2.AgentExecutionResult(failure=_FAILURE)
                steps.conclude(kernel, pid, branch, result, None, process_pb2.Usage())
        if process.has_ended:
            return
        session.release([branch for branch in session.leased() if branch.lease_until_us <= now_us])
        kernel.touched.add(f"s:{pid}")
    if process.state == RUNNING and process.lease_end is not None and process.lease_end <= now_us:
        done.returned_processes += 1
        kernel.shift(process, READY)
    else:
        kernel.settle(pid)
