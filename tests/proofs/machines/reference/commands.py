"""The commands: what each change of the log does, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

from tests.proofs.machines.messages import (
    engine_pb2,
    envelope_pb2,
    interrupt_pb2,
    kernel_pb2,
    orchestration_pb2,
    process_pb2,
    registry_pb2,
)
from tests.proofs.machines.reference import cleanup, interrupts, limits, steps
from tests.proofs.machines.reference.kernel import Kernel
from tests.proofs.machines.reference.processes import (
    BLOCKED,
    LEGAL,
    NAMES,
    NEW,
    READY,
    RUNNING,
    STATES,
    TERMINATED,
    WAITING,
    Process,
    check_pid,
)
from tests.proofs.machines.reference.refusals import (
    ABORTED,
    EXHAUSTED,
    EXISTS,
    INVALID,
    NOT_FOUND,
    PRECONDITION,
    demand,
    refuse,
)

_Answer = tuple[Message | None, bool]
"""The answer, and whether anything changed."""


def create_process(kernel: Kernel, request: kernel_pb2.CreateProcessRequest) -> _Answer:
    return _create(kernel, _prepare(kernel, request)).message, True


def _prepare(kernel: Kernel, request: kernel_pb2.CreateProcessRequest) -> process_pb2.Process:
    """Return the control block of a process that can be created."""
    for what in ("request_id", "user_id", "session_id"):
        limits.check_name(getattr(request, what), what)
    name, used = request.request_id, kernel.processes.requests
    if not name:
        name, number = f"r{kernel.sequence + 1}", 0
        while name in used:
            number += 1
            name = f"r{kernel.sequence + 1}.{number}"
    demand(name not in used, "the request has a process", EXISTS)
    if request.parent_pid:
        kernel.processes.live(request.parent_pid)
    demand(request.priority in limits.PRIORITIES, "there is no such priority")
    limits.check_quota(request.quota)
    return process_pb2.Process(
        pid=f"p{kernel.sequence + 1}",
        request_id=name,
        user_id=request.user_id,
        session_id=request.session_id,
        parent_pid=request.parent_pid,
        state=NEW,
        priority=request.priority or process_pb2.PRIORITY_NORMAL,
        quota=request.quota if request.HasField("quota") else kernel.settings.quota,
        usage=process_pb2.Usage(),
        created_us=kernel.now_us,
        changed_us=kernel.now_us,
    )


def _create(kernel: Kernel, control: process_pb2.Process) -> Process:
    process = kernel.processes.add(control, kernel.sequence + 1)
    kernel.touched.add(control.pid)
    kernel.emit(kernel_pb2.KERNEL_EVENT_KIND_PROCESS_CREATED, control.pid, process=control)
    return process


def submit(kernel: Kernel, request: kernel_pb2.SubmitRequest) -> _Answer:
    known = kernel.processes.requests.get(request.process.request_id)
    if known is not None:
        return kernel_pb2.SubmitResponse(process=kernel.processes.all[known].message), False
    process = _submit(kernel, request.process)
    return kernel_pb2.SubmitResponse(process=process.message, created=True), True


def _submit(kernel: Kernel, request: kernel_pb2.CreateProcessRequest) -> Process:
    control = _prepare(kernel, request)
    if request.user_id:
        refused = kernel.rates.refusal(request.user_id, kernel.now_us)
        demand(refused is None, "the rate limit refuses", EXHAUSTED)
        kernel.rates.record(request.user_id, kernel.now_us)
    process = _create(kernel, control)
    kernel.shift(process, READY)
    return process


def schedule_process(kernel: Kernel, request: kernel_pb2.ScheduleProcessRequest) -> _Answer:
    process = kernel.processes.get(request.pid)
    demand(process.state in (NEW, BLOCKED), "it is neither new nor blocked", PRECONDITION)
    demand(not kernel.has_to_wait(request.pid), "it has to wait", PRECONDITION)
    kernel.shift(process, READY)
    return process.message, True


def take_runnable(kernel: Kernel, request: kernel_pb2.GetNextRunnableRequest) -> _Answer:
    worker = limits.worker_name(request.worker)
    until_us = limits.lease_end(request.lease_us, kernel.now_us)
    process = kernel.processes.next_runnable()
    if process is None:
        return kernel_pb2.GetNextRunnableResponse(), False
    kernel.give(process, worker, until_us)
    return kernel_pb2.GetNextRunnableResponse(process=process.message), True


def transition_state(kernel: Kernel, request: kernel_pb2.TransitionStateRequest) -> _Answer:
    process, state = kernel.processes.get(request.pid), request.state
    demand(state in STATES, "there is no such state")
    limits.check_reason(request.terminal_reason)
    if (process.state, state) not in LEGAL:
        kernel.seen.note_process(process.state, state, is_refused=True)
        refuse(PRECONDITION, f"{NAMES[process.state]} to {NAMES[state]}")
    demand((state == TERMINATED) == bool(request.terminal_reason), "a reason is for the state TERMINATED")
    if state == TERMINATED:
        kernel.terminate(request.pid, request.terminal_reason, request.message)
        return process.message, True
    if state == READY:
        demand(not kernel.has_to_wait(request.pid), "it has to wait", PRECONDITION)
    kernel.shift(process, state)
    return process.message, True


def terminate_process(kernel: Kernel, request: kernel_pb2.TerminateProcessRequest) -> _Answer:
    check_pid(request.pid)
    _terminate(kernel, request)
    return kernel.processes.all[request.pid].message, True


def _terminate(
    kernel: Kernel, request: kernel_pb2.TerminateProcessRequest | orchestration_pb2.TerminateSessionRequest
) -> None:
    limits.check_reason(request.reason)
    reason = request.reason or process_pb2.TERMINAL_REASON_CANCELLED
    kernel.terminate(request.pid, reason, request.message)


def record_usage(kernel: Kernel, request: kernel_pb2.RecordUsageRequest) -> _Answer:
    check_pid(request.pid)
    limits.check_usage(request.usage)
    kernel.charge(request.pid, request.usage)
    process = kernel.processes.all[request.pid].message
    left = limits.remaining(process.quota, process.usage, process.created_us, kernel.now_us)
    return kernel_pb2.RecordUsageResponse(process=process, remaining=left), True


def record_request(kernel: Kernel, request: kernel_pb2.CheckRateLimitRequest) -> _Answer:
    user = request.user_id
    demand(user != "", "a user has a name")
    limits.check_name(user, "user_id")
    refused = kernel.rates.refusal(user, kernel.now_us)
    is_counted = refused is None and request.record
    if is_counted:
        kernel.rates.record(user, kernel.now_us)
    window, retry_us = refused or ("", 0)
    answer = kernel_pb2.CheckRateLimitResponse(
        allowed=refused is None,
        exceeded=window,
        retry_after_us=retry_us,
        usage=kernel.rates.usage(user, kernel.now_us),
    )
    return answer, is_counted


def create_interrupt(kernel: Kernel, request: interrupt_pb2.CreateInterruptRequest) -> _Answer:
    check_pid(request.pid)
    interrupts.check(request)
    process = kernel.processes.get(request.pid)
    demand(process.state in (RUNNING, WAITING), "it neither runs nor waits", PRECONDITION)
    return kernel.ask(request.pid, request), True


def _pending_interrupt(kernel: Kernel, interrupt_id: str, to: int) -> interrupt_pb2.FlowInterrupt:
    demand(interrupt_id != "", "an interrupt has a name")
    found = kernel.interrupts.get(interrupt_id)
    if found is None:
        refuse(NOT_FOUND, f"no interrupt {interrupt_id}")
    if found.status != interrupts.PENDING:
        kernel.seen.note_interrupt(found.status, to, is_refused=True)
        refuse(PRECONDITION, "it has ended")
    return found


def resolve_interrupt(kernel: Kernel, request: interrupt_pb2.ResolveInterruptRequest) -> _Answer:
    interrupt = _pending_interrupt(kernel, request.interrupt_id, interrupts.RESOLVED)
    response = request.response if request.HasField("response") else None
    interrupts.check_response(interrupt.kind, response)
    kernel.end_interrupt(interrupt, interrupts.RESOLVED, response)
    return interrupt, True


def cancel_interrupt(kernel: Kernel, request: interrupt_pb2.CancelInterruptRequest) -> _Answer:
    interrupt = _pending_interrupt(kernel, request.interrupt_id, interrupts.CANCELLED)
    response = interrupt_pb2.InterruptResponse(by=request.by) if request.by else None
    kernel.end_interrupt(interrupt, interrupts.CANCELLED, response)
    return interrupt, True


def register_service(kernel: Kernel, request: registry_pb2.RegisterServiceRequest) -> _Answer:
    info = kernel.registry.register(request.service, kernel.now_us)
    kernel.touched.add(f"svc:{info.name}")
    return info, True


def unregister_service(kernel: Kernel, request: registry_pb2.UnregisterServiceRequest) -> _Answer:
    kernel.registry.unregister(request.name)
    kernel.touched.add(f"svc:{request.name}")
    return None, True


def update_health(kernel: Kernel, request: registry_pb2.UpdateHealthRequest) -> _Answer:
    kernel.touched.add(f"svc:{request.name}")
    return kernel.registry.set_health(request.name, request.status, kernel.now_us), True


def initialize_session(kernel: Kernel, request: orchestration_pb2.InitializeSessionRequest) -> _Answer:
    kernel.processes.live(request.pid)
    demand(request.pid not in kernel.sessions, "it has a session", EXISTS)
    steps.start(kernel, request.pid, steps.prepare(request))
    return kernel.session_state(request.pid), True


def execute_pipeline(kernel: Kernel, request: engine_pb2.ExecutePipelineRequest) -> _Answer:
    known = kernel.processes.requests.get(request.process.request_id)
    if known is not None:
        return kernel_pb2.GetProcessRequest(pid=known), False
    prepared = steps.prepare(request)
    process = _submit(kernel, request.process)
    steps.start(kernel, process.message.pid, prepared)
    return kernel_pb2.GetProcessRequest(pid=process.message.pid), True


def terminate_session(kernel: Kernel, request: orchestration_pb2.TerminateSessionRequest) -> _Answer:
    kernel.session(request.pid)
    _terminate(kernel, request)
    return kernel.session_state(request.pid), True


def cleanup_session(kernel: Kernel, request: orchestration_pb2.CleanupSessionRequest) -> _Answer:
    demand(kernel.session(request.pid).final is not None, "it has not ended", PRECONDITION)
    del kernel.sessions[request.pid]
    kernel.touched.add(f"s:{request.pid}")
    return None, True


def _add_envelope(kernel: Kernel, envelope: envelope_pb2.Envelope) -> envelope_pb2.Envelope:
    envelope.envelope_id = f"e{kernel.sequence + 1}"
    envelope.created_us, envelope.version = kernel.now_us, 1
    kernel.envelopes[envelope.envelope_id] = envelope
    kernel.touched.add(envelope.envelope_id)
    return envelope


def create_envelope(kernel: Kernel, request: engine_pb2.CreateEnvelopeRequest) -> _Answer:
    for what in ("request_id", "user_id", "session_id"):
        limits.check_name(getattr(request, what), what)
    for text in request.inputs_json.values():
        limits.check_json(text)
    limits.check_quota(request.bounds)
    envelope = envelope_pb2.Envelope(
        request_id=request.request_id,
        user_id=request.user_id,
        session_id=request.session_id,
        inputs_json=request.inputs_json,
        metadata=request.metadata,
        bounds=request.bounds,
        usage=process_pb2.Usage(),
    )
    return _add_envelope(kernel, envelope), True


def clone_envelope(kernel: Kernel, request: engine_pb2.CloneEnvelopeRequest) -> _Answer:
    original = kernel.envelope(request.envelope_id)
    copy = envelope_pb2.Envelope()
    copy.CopyFrom(original)
    copy.parent_envelope_id = original.envelope_id
    return _add_envelope(kernel, copy), True


def update_envelope(kernel: Kernel, request: engine_pb2.UpdateEnvelopeRequest) -> _Answer:
    for text in request.outputs_json.values():
        limits.check_json(text)
    limits.check_usage(request.usage)
    demand(request.envelope_id != "", "an envelope has a name")
    pid, slash, number = request.envelope_id.partition("/e")
    if slash:
        kernel.processes.live(pid)
        demand(not request.usage.ListFields(), "its usage is that of the process", INVALID)
        session = kernel.sessions.get(pid)
        branch = session.branches.get(int(number)) if session is not None else None
        found = None if branch is None else branch.envelope
    else:
        found = kernel.envelopes.get(request.envelope_id)
    if found is None:
        refuse(NOT_FOUND, "no such envelope")
    demand(found.version == request.version, "it has another version", ABORTED)
    found.version += 1
    found.outputs_json.update(request.outputs_json)
    found.metadata.update(request.metadata)
    if request.current_stage and not slash:
        found.current_stage = request.current_stage
    limits.add_usage(found.usage if not slash else process_pb2.Usage(), request.usage)
    kernel.touched.add(f"s:{pid}" if slash else request.envelope_id)
    return kernel.envelope(request.envelope_id), True


def acquire_slot(kernel: Kernel, name: str) -> _Answer:
    kernel.touched.add(f"svc:{name}")
    return kernel.registry.acquire(name), False


def release_slot(kernel: Kernel, name: str) -> _Answer:
    kernel.touched.add(f"svc:{name}")
    return kernel.registry.release(name), False


COMMANDS: dict[str, Callable[[Kernel, Any], _Answer]] = {
    **{
        command.__name__: command
        for command in (
            *(create_process, submit, schedule_process, take_runnable, transition_state, terminate_process),
            *(record_usage, record_request, create_interrupt, resolve_interrupt, cancel_interrupt),
            *(register_service, unregister_service, update_health, initialize_session, execute_pipeline),
            *(terminate_session, cleanup_session, create_envelope, update_envelope, clone_envelope),
        )
    },
    "renew_lease": steps.renew_lease,
    "take_step": steps.take_step,
    "report_result": steps.report_result,
    "worker_takes": steps.worker_takes,
    "worker_ends": steps.worker_ends,
    "worker_renews": steps.worker_renews,
    "cleanup": cleanup.cleanup,
}
