"""The state of a kernel, and what a change of a process means for interrupts, sessions and events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from tests.proofs.machines.messages import (
    engine_pb2,
    envelope_pb2,
    interrupt_pb2,
    kernel_pb2,
    log_message,
    orchestration_pb2,
    process_pb2,
)
from tests.proofs.machines.reference import interrupts, limits, sessions
from tests.proofs.machines.reference.coverage import Seen
from tests.proofs.machines.reference.processes import READY, RUNNING, TERMINATED, WAITING, Process, Processes
from tests.proofs.machines.reference.rates import Rates
from tests.proofs.machines.reference.refusals import NOT_FOUND, PRECONDITION, demand, refuse
from tests.proofs.machines.reference.registry import Registry

SessionSnapshot, SnapshotPart = log_message("SessionSnapshot"), log_message("SnapshotPart")
_KINDS = kernel_pb2.KernelEventKind
_PIPELINE_KINDS = engine_pb2.PipelineEventKind
_Usage = process_pb2.Usage


@dataclass(frozen=True)
class Settings:
    quota: process_pb2.Quota = field(default_factory=process_pb2.Quota)
    burst: int | None = None
    per_minute: int | None = None
    per_hour: int | None = None
    retention_us: int = 24 * limits.HOUR_US


class Kernel:
    """Processes, interrupts, services, sessions and envelopes; every change has a number and a time."""

    def __init__(self, settings: Settings, seen: Seen | None = None) -> None:
        self.settings = settings
        self.seen = seen or Seen()
        self.processes = Processes()
        self.interrupts: dict[str, interrupt_pb2.FlowInterrupt] = {}
        self.registry = Registry()
        self.sessions: dict[str, sessions.Session] = {}
        self.envelopes: dict[str, envelope_pb2.Envelope] = {}
        self.rates = Rates(settings.burst, settings.per_minute, settings.per_hour)
        self.sequence = 0
        self.now_us = 0
        self.events: list[Message] = []
        self.touched: set[str] = set()

    # Events.

    def emit(self, kind: kernel_pb2.KernelEventKind, pid: str, **more: Any) -> None:
        event = kernel_pb2.KernelEvent(sequence=self.sequence + 1, at_us=self.now_us, kind=kind, pid=pid, **more)
        self.events.append(event)

    def emit_pipeline(self, kind: engine_pb2.PipelineEventKind, pid: str, **more: Any) -> None:
        event = engine_pb2.PipelineEvent(sequence=self.sequence + 1, at_us=self.now_us, kind=kind, pid=pid, **more)
        self.events.append(event)

    def emit_interrupt(self, interrupt: interrupt_pb2.FlowInterrupt, is_new: bool) -> None:
        pid = interrupt.pid
        if pid in self.sessions:
            of_pipeline = (
                _PIPELINE_KINDS.PIPELINE_EVENT_KIND_INTERRUPTED
                if is_new
                else _PIPELINE_KINDS.PIPELINE_EVENT_KIND_RESUMED
            )
            self.emit_pipeline(of_pipeline, pid, stage=interrupt.stage, step_id=interrupt.step_id, interrupt=interrupt)
        kind = _KINDS.KERNEL_EVENT_KIND_INTERRUPT_CREATED if is_new else _KINDS.KERNEL_EVENT_KIND_INTERRUPT_RESOLVED
        self.emit(kind, pid, interrupt=interrupt)

    # Processes.

    def shift(self, process: Process, state: process_pb2.ProcessState) -> None:
        """Change the state, and report it."""
        old = process.message.state
        self.processes.change(process, state, self.now_us)
        self.seen.note_process(old, state)
        self.report_state(process, old)

    def report_state(self, process: Process, old: process_pb2.ProcessState) -> None:
        message = process.message
        self.touched.add(message.pid)
        kinds = _KINDS
        self.emit(kinds.KERNEL_EVENT_KIND_PROCESS_STATE_CHANGED, message.pid, process=message, old_state=old)
        if message.state == TERMINATED:
            self.emit(kinds.KERNEL_EVENT_KIND_PROCESS_TERMINATED, message.pid, process=message)

    def give(self, process: Process, worker: str, until_us: int) -> None:
        """Give a ready process to a worker."""
        old = process.message.state
        self.processes.change(process, RUNNING, self.now_us)
        self.seen.note_process(old, RUNNING)
        process.hold(worker, until_us)
        self.report_state(process, old)

    def terminate(self, pid: str, reason: process_pb2.TerminalReason, message: str) -> None:
        """End a process, its interrupts and its session."""
        process = self.processes.live(pid)
        for interrupt in self.pending(pid):
            self.close_interrupt(interrupt, interrupts.CANCELLED, None)
        session = self.sessions.get(pid)
        if session is not None:
            session.end(self.now_us)
            self.touched.add(f"s:{pid}")
        self.seen.ends[str(reason)] += 1
        control = process.message
        control.ended_us, control.terminal_reason, control.terminal_message = self.now_us, reason, message
        self.shift(process, TERMINATED)
        if session is not None:
            envelope = self.session_envelope(pid)
            kind = _PIPELINE_KINDS.PIPELINE_EVENT_KIND_ENDED
            self.emit_pipeline(kind, pid, process=control, envelope=envelope)

    def charge(self, pid: str, usage: _Usage) -> None:
        """Add usage; what is beyond the quota is recorded and ends the process."""
        process = self.processes.live(pid).message
        limits.add_usage(process.usage, usage)
        self.touched.add(pid)
        over = limits.exceeded_counters(process.quota, process.usage)
        for name in over:
            self.emit(_KINDS.KERNEL_EVENT_KIND_RESOURCE_EXCEEDED, pid, resource=name)
        if over:
            message = f"The quota of {', '.join(over)} is exceeded."
            self.terminate(pid, process_pb2.TERMINAL_REASON_QUOTA_EXCEEDED, message)

    # Interrupts.

    def pending(self, pid: str) -> list[interrupt_pb2.FlowInterrupt]:
        found = self.interrupts.values()
        return [each for each in found if each.status == interrupts.PENDING and each.pid == pid]

    def note_pending(self, pid: str) -> None:
        """Let the control block name the first interrupt that the process waits for."""
        first = self.pending(pid)
        self.processes.all[pid].message.pending_interrupt_id = first[0].interrupt_id if first else ""
        self.touched.add(pid)

    def ask(self, pid: str, question: interrupts.Question, branch: Any | None = None) -> interrupt_pb2.FlowInterrupt:
        """Ask a person, for a client or for a step."""
        interrupt = interrupts.create(question, f"i{self.sequence + 1}", pid, self.now_us)
        if branch is not None:
            session = self.sessions[pid]
            session.ask(branch, interrupt.interrupt_id, self.now_us)
            interrupt.stage, interrupt.step_id = branch.stage, session.step_id(branch)
            self.touched.add(f"s:{pid}")
        self.interrupts[interrupt.interrupt_id] = interrupt
        self.touched.add(interrupt.interrupt_id)
        self.note_pending(pid)
        self.emit_interrupt(interrupt, True)
        self.settle(pid)
        return interrupt

    def close_interrupt(
        self,
        interrupt: interrupt_pb2.FlowInterrupt,
        status: interrupt_pb2.InterruptStatus,
        response: interrupt_pb2.InterruptResponse | None,
    ) -> None:
        self.seen.note_interrupt(interrupt.status, status)
        interrupts.close(interrupt, status, response, self.now_us)
        self.touched.add(interrupt.interrupt_id)
        self.note_pending(interrupt.pid)
        self.emit_interrupt(interrupt, False)

    def end_interrupt(
        self,
        interrupt: interrupt_pb2.FlowInterrupt,
        status: interrupt_pb2.InterruptStatus,
        response: interrupt_pb2.InterruptResponse | None,
    ) -> None:
        """End a pending interrupt: its step or its process goes on, or the process ends without a required answer."""
        pid, session = interrupt.pid, self.sessions.get(interrupt.pid)
        self.close_interrupt(interrupt, status, response)
        if session is not None:
            session.answer(interrupt.interrupt_id, self.now_us)
            self.touched.add(f"s:{pid}")
        is_open = status != interrupts.RESOLVED and interrupts.is_answer_required(interrupt.kind)
        if is_open and not interrupt.step_id:
            is_late = status == interrupts.EXPIRED
            reasons = (process_pb2.TERMINAL_REASON_CANCELLED, process_pb2.TERMINAL_REASON_INTERRUPT_EXPIRED)
            how = "expired" if is_late else "was cancelled"
            message = f"The interrupt {interrupt.interrupt_id} {how} without a response."
            self.terminate(pid, reasons[is_late], message)
        elif self.processes.all[pid].state == WAITING and not self.has_to_wait(pid):
            self.shift(self.processes.all[pid], READY)
        else:
            self.settle(pid)

    def has_to_wait(self, pid: str) -> bool:
        """Return whether a client's interrupt is pending, or each step waits for one."""
        pending = self.pending(pid)
        session = self.sessions.get(pid)
        is_active = session is not None and session.is_active
        return any(not each.step_id for each in pending) or (bool(pending) and not is_active)

    def settle(self, pid: str) -> None:
        """Let a running process wait where it has to."""
        process = self.processes.all[pid]
        if process.state == RUNNING and self.has_to_wait(pid):
            self.shift(process, WAITING)

    # Sessions.

    def session(self, pid: str) -> sessions.Session:
        self.processes.get(pid)
        if pid not in self.sessions:
            refuse(PRECONDITION, f"{pid} has no session")
        return self.sessions[pid]

    def with_usage(self, pid: str, envelope: envelope_pb2.Envelope) -> envelope_pb2.Envelope:
        """Return an envelope of a session with the bounds and the usage of its process."""
        found = envelope_pb2.Envelope()
        found.CopyFrom(envelope)
        process = self.processes.all[pid].message
        found.bounds.CopyFrom(process.quota)
        found.usage.CopyFrom(process.usage)
        return found

    def session_envelope(self, pid: str) -> envelope_pb2.Envelope | None:
        return self.with_usage(pid, self.sessions[pid].envelope) if pid in self.sessions else None

    def session_state(self, pid: str) -> orchestration_pb2.SessionState:
        session = self.session(pid)
        process = self.processes.all[pid].message
        state = orchestration_pb2.SessionState(
            pid=pid,
            pipeline_name=session.pipeline.config.name,
            envelope=self.session_envelope(pid),
            edge_traversals=session.edges,
            terminated=session.final is not None,
            terminal_reason=process.terminal_reason,
            terminal_message=process.terminal_message,
            created_us=session.created_us,
            last_activity_us=session.last_activity_us,
        )
        for branch in session.ordered():
            if branch.state in sessions.OPEN:
                step = state.steps.add(step_id=session.step_id(branch), stage=branch.stage, worker=branch.worker)
                if branch.state == sessions.LEASED:
                    step.lease_until_us = branch.lease_until_us
                elif branch.state == sessions.ASKING:
                    step.interrupt_id = branch.interrupt_id
        return state

    # What is observed.

    def envelope(self, envelope_id: str) -> envelope_pb2.Envelope:
        """Return an envelope of its own, or that of a branch, or of an ended session."""
        demand(envelope_id != "", "an envelope has a name")
        if envelope_id in self.envelopes:
            return self.envelopes[envelope_id]
        pid, _, number = envelope_id.partition("/e")
        session = self.sessions.get(pid)
        if session is not None and number.isdecimal():
            branch = session.branches.get(int(number))
            if branch is not None:
                return self.with_usage(pid, branch.envelope)
            if session.final is not None and int(number) == sessions.FIRST:
                return self.with_usage(pid, session.final)
        refuse(NOT_FOUND, f"no envelope {envelope_id}")

    def entity(self, key: str) -> bytes:
        """Return what the snapshot has of an entity; nothing where it was removed."""
        kind, _, name = key.partition(":")
        if name and kind == "s":
            return self._session_bytes(name)
        if kind == "svc":
            service = self.registry.services.get(name)
            return b"" if service is None else service.SerializeToString(deterministic=True)
        found: Message | None
        if key[0] == "p":
            process = self.processes.all.get(key)
            found = None if process is None else process.message
        else:
            found = self.interrupts.get(key) if key[0] == "i" else self.envelopes.get(key)
        return b"" if found is None else found.SerializeToString(deterministic=True)

    def _session_bytes(self, pid: str) -> bytes:
        session = self.sessions.get(pid)
        if session is None:
            return b""
        snapshot = SessionSnapshot(
            pid=pid,
            branches=session.ordered(),
            edge_traversals=session.edges,
            created_us=session.created_us,
            last_activity_us=session.last_activity_us,
            steps=session.steps,
            final_envelope=session.final,
            last_branch=session.made,
        )
        found: bytes = snapshot.SerializeToString(deterministic=True)
        return found

    def status(self) -> kernel_pb2.GetSystemStatusResponse:
        counts = self.processes.counts()
        return kernel_pb2.GetSystemStatusResponse(
            process_counts=counts,
            total_processes=sum(counts.values()),
            service_counts=self.registry.by_type() if self.registry.services else None,
            pending_interrupts=sum(1 for each in self.interrupts.values() if each.status == interrupts.PENDING),
            live_sessions=sum(1 for each in self.sessions.values() if each.final is None),
            rate_limit_usage=self.rates.recent(self.now_us) if self.rates.requests else None,
        )
