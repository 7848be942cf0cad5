"""Steps: how workers get them, prolong them, and report their results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from tests.proofs.machines.messages import (
    engine_pb2,
    envelope_pb2,
    kernel_pb2,
    orchestration_pb2,
    process_pb2,
    registry_pb2,
)
from tests.proofs.machines.reference import interrupts, limits, pipelines, sessions
from tests.proofs.machines.reference.kernel import Kernel
from tests.proofs.machines.reference.processes import READY, RUNNING, WAITING, check_pid, is_pid
from tests.proofs.machines.reference.refusals import INVALID, NOT_FOUND, PRECONDITION, demand, refuse

_Answer = tuple[Message | None, bool]
_RUN, _END = orchestration_pb2.INSTRUCTION_KIND_RUN_AGENT, orchestration_pb2.INSTRUCTION_KIND_TERMINATE
_WAIT = orchestration_pb2.INSTRUCTION_KIND_WAIT_INTERRUPT
_WAIT_STEPS = orchestration_pb2.INSTRUCTION_KIND_WAIT_STEPS


@dataclass(frozen=True)
class Prepared:
    """A session that can be started."""

    pipeline: pipelines.Pipeline
    inputs: dict[str, str]
    metadata: dict[str, str]


def prepare(request: orchestration_pb2.InitializeSessionRequest | engine_pb2.ExecutePipelineRequest) -> Prepared:
    pipeline = pipelines.check(request.pipeline)
    for text in request.inputs_json.values():
        limits.check_json(text)
    return Prepared(pipeline, dict(request.inputs_json), dict(request.metadata))


def start(kernel: Kernel, pid: str, prepared: Prepared) -> None:
    """Start a session: its first step is made."""
    control = kernel.processes.all[pid].message
    session = sessions.Session(pid, prepared.pipeline, kernel.now_us, kernel.now_us, note_move=kernel.seen.note_branch)
    envelope = envelope_pb2.Envelope(
        envelope_id=f"{pid}/e{sessions.FIRST}",
        request_id=control.request_id,
        user_id=control.user_id,
        session_id=control.session_id,
        inputs_json=prepared.inputs,
        metadata=prepared.metadata,
        created_us=kernel.now_us,
        version=1,
    )
    session.start(envelope)
    kernel.sessions[pid] = session
    kernel.touched.add(f"s:{pid}")
    kernel.emit_pipeline(engine_pb2.PIPELINE_EVENT_KIND_STARTED, pid, process=control)
    kernel.charge(pid, process_pb2.Usage(iterations=1))


def take_step(kernel: Kernel, request: orchestration_pb2.GetNextInstructionRequest) -> _Answer:
    """Answer what a worker is to do next for a process."""
    pid = request.pid
    check_pid(pid)
    worker = limits.worker_name(request.worker)
    until_us = limits.lease_end(request.lease_us, kernel.now_us)
    session, process = kernel.session(pid), kernel.processes.get(pid)
    if process.has_ended:
        answer = orchestration_pb2.Instruction(
            kind=_END,
            pid=pid,
            envelope=kernel.session_envelope(pid),
            terminal_reason=process.message.terminal_reason,
            termination_message=process.message.terminal_message,
        )
        return answer, False
    if process.state == WAITING and kernel.pending(pid):
        return _wait(kernel, pid), False
    demand(process.state in (READY, RUNNING), "it is neither ready nor running", PRECONDITION)
    branches = session.ordered()
    leased = list(session.leased())
    held = [branch for branch in leased if branch.worker == worker]
    ready = [branch for branch in branches if branch.state == sessions.READY]
    if held or ready:
        return _give(kernel, pid, (held or ready)[0], worker, until_us), True
    if leased:
        return orchestration_pb2.Instruction(kind=_WAIT_STEPS, pid=pid), False
    return _wait(kernel, pid), False


def _wait(kernel: Kernel, pid: str) -> orchestration_pb2.Instruction:
    first = kernel.pending(pid)[0]
    return orchestration_pb2.Instruction(kind=_WAIT, pid=pid, interrupt=first, interrupt_pending=True)


def _give(kernel: Kernel, pid: str, branch: Any, worker: str, until_us: int) -> orchestration_pb2.Instruction:
    """Lease a step, and with it the process, to a worker."""
    session, process = kernel.sessions[pid], kernel.processes.all[pid]
    if process.state == READY:
        kernel.give(process, worker, until_us)
    else:
        process.hold(worker, until_us)
    session.lease(branch, worker, until_us, kernel.now_us)
    kernel.touched |= {pid, f"s:{pid}"}
    step_id = session.step_id(branch)
    kernel.emit_pipeline(engine_pb2.PIPELINE_EVENT_KIND_STAGE_STARTED, pid, stage=branch.stage, step_id=step_id)
    return orchestration_pb2.Instruction(
        kind=_RUN,
        pid=pid,
        step_id=step_id,
        agent_name=branch.stage,
        agent_config=session.stage_of(branch),
        envelope=kernel.with_usage(pid, branch.envelope),
        interrupt=kernel.interrupts[branch.interrupt_id] if branch.interrupt_id else None,
        lease_until_us=branch.lease_until_us,
    )


def worker_takes(kernel: Kernel, request: Any) -> _Answer:
    """Give a step of a service: of the process that comes first by priority and age, its first branch."""
    worker = limits.worker_name(request.worker)
    until_us = limits.lease_end(request.lease_us, kernel.now_us)
    found = [
        (process.message.priority, process.number, branch.branch, branch)
        for pid, session in kernel.sessions.items()
        if (process := kernel.processes.all[pid]).state in (READY, RUNNING)
        for branch in session.branches.values()
        if branch.state == sessions.READY and session.stage_of(branch).service == request.service
    ]
    if not found:
        return registry_pb2.WorkResponse(), False
    _, number, _, branch = min(found, key=lambda row: row[:3])
    return registry_pb2.WorkResponse(step=_give(kernel, f"p{number}", branch, worker, until_us)), True


def worker_ends(kernel: Kernel, request: Any) -> _Answer:
    """Release the steps of a worker, and each process in which no other worker has a step."""
    has_released = False
    for pid, session in sorted(kernel.sessions.items(), key=lambda row: kernel.processes.all[row[0]].number):
        held = [branch for branch in session.leased() if branch.worker == request.worker]
        if not held:
            continue
        has_released = True
        session.release(held)
        kernel.touched.add(f"s:{pid}")
        process = kernel.processes.all[pid]
        is_holder = process.state == RUNNING and process.message.worker == request.worker
        if is_holder and not list(session.leased()):
            kernel.shift(process, READY)
        else:
            kernel.settle(pid)
    return None, has_released


def worker_renews(kernel: Kernel, request: Any) -> _Answer:
    worker = limits.worker_name(request.worker)
    until_us = limits.lease_end(request.lease_us, kernel.now_us)
    has_renewed = False
    for pid in kernel.sessions:
        if _renew_steps(kernel, pid, worker, until_us):
            kernel.processes.all[pid].hold(worker, until_us)
            kernel.touched.add(pid)
            has_renewed = True
    return None, has_renewed


def _renew_steps(kernel: Kernel, pid: str, worker: str, until_us: int) -> list[int]:
    """Prolong the steps of a worker, and return when their leases end."""
    session = kernel.sessions.get(pid)
    held = [] if session is None else [branch for branch in session.leased() if branch.worker == worker]
    for branch in held:
        branch.lease_until_us = max(branch.lease_until_us, until_us)
        kernel.touched.add(f"s:{pid}")
    return [branch.lease_until_us for branch in held]


def renew_lease(kernel: Kernel, request: kernel_pb2.RenewLeaseRequest) -> _Answer:
    """Prolong what a worker has of a process, and answer when the first of it returns to the queue."""
    pid = request.pid
    check_pid(pid)
    worker = limits.worker_name(request.worker)
    until_us = limits.lease_end(request.lease_us, kernel.now_us)
    process = kernel.processes.get(pid)
    ends = _renew_steps(kernel, pid, worker, until_us)
    if process.state == RUNNING and process.message.worker == worker:
        process.hold(worker, until_us)
        ends.append(process.message.lease_until_us)
        kernel.touched.add(pid)
    demand(bool(ends), "the worker does not have it", PRECONDITION)
    return kernel_pb2.RenewLeaseResponse(lease_until_us=min(ends)), True


def report_result(kernel: Kernel, routed: Any) -> _Answer:
    """Record the result of a step, from the worker that has it."""
    request = routed.request
    pid, result = request.pid, request.result
    branch = _reported(kernel, request)
    if branch is None:
        state = kernel.session_state(pid)
        return orchestration_pb2.ReportAgentResultResponse(accepted=False, session=state), False
    metrics = result.metrics
    usage = process_pb2.Usage(
        llm_calls=metrics.llm_calls,
        tool_calls=metrics.tool_calls,
        tokens_in=metrics.tokens_in,
        tokens_out=metrics.tokens_out,
    )
    kernel.touched.add(f"s:{pid}")
    if routed.routing_error:
        _emit_end(kernel, pid, branch, result)
        kernel.sessions[pid].close(branch, "", result.output_json, kernel.now_us)
        kernel.charge(pid, usage)
        if not kernel.processes.all[pid].has_ended:
            kernel.terminate(pid, process_pb2.TERMINAL_REASON_ROUTING_FAILED, routed.routing_error)
    else:
        conclude(kernel, pid, branch, result, routed.route if routed.HasField("route") else None, usage)
    return orchestration_pb2.ReportAgentResultResponse(accepted=True, session=kernel.session_state(pid)), True


def _reported(kernel: Kernel, request: orchestration_pb2.ReportAgentResultRequest) -> Any | None:
    """Return the branch whose step is reported; None where the step has ended."""
    check_pid(request.pid)
    worker, result = limits.worker_name(request.worker), request.result
    demand(request.HasField("result"), "a report has a result")
    demand(result.step_id != "", "a report names its step")
    pid, slash, number = result.step_id.partition("/")
    demand(bool(slash) and is_pid(pid) and number.isdecimal(), "it is no step", NOT_FOUND)
    session = kernel.session(request.pid)
    demand(pid == request.pid, "the step is of another process", INVALID)
    demand(1 <= int(number) <= session.steps, "there is no such step", NOT_FOUND)
    found = [each for each in session.ordered() if each.step == int(number) and each.state in sessions.OPEN]
    if not found:
        kernel.seen.refused_reports["report of ended"] += 1
        return None
    branch = found[0]
    is_holder = branch.state == sessions.LEASED and branch.worker == worker
    if not is_holder:
        names = {sessions.READY: "ready", sessions.LEASED: "another's leased", sessions.ASKING: "asking"}
        kernel.seen.refused_reports[f"report of {names[branch.state]}"] += 1
        refuse(PRECONDITION, "the worker does not have the step")
    demand(result.agent_name in ("", branch.stage), "the step is of another stage")
    metrics = result.metrics
    amounts = (metrics.llm_calls, metrics.tool_calls, metrics.tokens_in, metrics.tokens_out)
    demand(all(0 <= each <= limits.MAX_AMOUNT for each in amounts), "an amount is out of bounds")
    match result.WhichOneof("outcome"):
        case "output_json":
            limits.check_json(result.output_json)
        case "failure":
            demand(result.failure.code != "", "a failure has a code")
        case "question":
            interrupts.check(result.question)
        case _:
            refuse(INVALID, "there is no outcome")
    return branch


def _emit_end(kernel: Kernel, pid: str, branch: Any, result: orchestration_pb2.AgentExecutionResult) -> None:
    """Report that a stage has ended, with its step and its name."""
    step_id = kernel.sessions[pid].step_id(branch)
    named = orchestration_pb2.AgentExecutionResult()
    named.CopyFrom(result)
    named.step_id, named.agent_name = step_id, branch.stage
    kind = engine_pb2.PIPELINE_EVENT_KIND_STAGE_ENDED
    kernel.emit_pipeline(kind, pid, stage=branch.stage, step_id=step_id, result=named)


def conclude(
    kernel: Kernel,
    pid: str,
    branch: Any,
    result: orchestration_pb2.AgentExecutionResult,
    route: int | None,
    usage: process_pb2.Usage,
) -> None:
    """End the step of a branch with its result, and pay for what it led to."""
    session = kernel.sessions[pid]
    kernel.touched.add(f"s:{pid}")
    outcome = result.WhichOneof("outcome")
    if outcome == "question":
        kernel.charge(pid, usage)
        if not kernel.processes.all[pid].has_ended:
            kernel.ask(pid, result.question, branch)
        return
    _emit_end(kernel, pid, branch, result)
    if outcome == "failure":
        error = f"{result.failure.code}: {result.failure.message}"
        progress = session.fail(branch, error, kernel.now_us)
    else:
        progress = session.succeed(branch, result.output_json, route, kernel.now_us)
    usage.agent_hops, usage.iterations = progress.hops, progress.steps
    kernel.charge(pid, usage)
    if kernel.processes.all[pid].has_ended:
        return
    if progress.ending is not None:
        kernel.terminate(pid, *progress.ending)
    else:
        kernel.settle(pid)
