"""Random records: mostly of things that exist and can be done, sometimes of neither."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.proofs.machines.messages import (
    engine_pb2,
    interrupt_pb2,
    kernel_pb2,
    log_message,
    orchestration_pb2,
    process_pb2,
    registry_pb2,
)
from tests.proofs.machines.pipelines import FAULTY, SOUND, nested_pipeline
from tests.proofs.machines.reference import interrupts, sessions
from tests.proofs.machines.reference.kernel import Kernel, Settings
from tests.proofs.machines.reference.limits import (
    COUNTERS,
    HOUR_US,
    LONGEST_TTL_US,
    MAX_AMOUNT,
    MAX_AT_A_TIME,
    MINUTE_US,
    SECOND_US,
)
from tests.proofs.machines.reference.processes import BLOCKED, NEW, READY, RUNNING, WAITING

BEGIN_US = 1_790_000_000_000_000
GAPS = (0, 0, 0, 0, 1, 300_000, SECOND_US, 7 * SECOND_US, 31 * SECOND_US, 5 * MINUTE_US, HOUR_US)
USERS = ("ada", "ada", "ada", "bo", "bo", "")
_WORKERS = ("w1", "w1", "w2", "w3")
_REQUESTS = (*[""] * 20, *"aaabbc", "r2", "r3", "r4", "r5", "r2.1")
_JSON = ("1", "{}", '"yes"', "[1, 2]", "true")
_BAD_JSON = ("", "{", "nope")
_LEASES = (*[0] * 16, *[SECOND_US, 5 * SECOND_US] * 5, HOUR_US, HOUR_US, SECOND_US - 1, HOUR_US + 1, -1)
_AMOUNTS = (0, 0, 1, 1, 2, 3, 10)
_BAD_AMOUNTS = (-1, MAX_AMOUNT, MAX_AMOUNT + 1)
_METRICS = ("llm_calls", "tool_calls", "tokens_in", "tokens_out")
_Draw = Callable[[random.Random, Kernel], dict[str, Any]]
Theme = tuple[_Draw, ...]
_RoutedResult, _WorkerTakes = log_message("RoutedResult"), log_message("WorkerTakes")
_WorkerEnds, _WorkerRenews = log_message("WorkerEnds"), log_message("WorkerRenews")


def raw(number: int) -> Any:
    """Return a member of an enumeration by its number, also one that it does not have."""
    return number


def some_settings(chance: random.Random, theme: Theme) -> Settings:
    quota = some_quota(chance) if chance.random() < 0.15 else process_pb2.Quota()
    retention_us = chance.choice((10 * SECOND_US, HOUR_US))
    if chance.random() > (0.9 if theme is RATES else 0.1):
        return Settings(quota, retention_us=retention_us)
    return Settings(
        quota,
        burst=0 if chance.random() < 0.04 else chance.choice((None, 1, 2)),
        per_minute=0 if chance.random() < 0.04 else chance.choice((None, None, 2, 3)),
        per_hour=0 if chance.random() < 0.04 else chance.choice((None, None, 4)),
        retention_us=retention_us,
    )


def some_quota(chance: random.Random) -> process_pb2.Quota:
    quota = process_pb2.Quota()
    for name in COUNTERS:
        if chance.random() < 0.25:
            setattr(quota, f"max_{name}", chance.choice((0, 1, 2, 3, 5, 5)))
    if chance.random() < 0.4:
        quota.timeout_us = chance.choice((0, 1, 40 * SECOND_US, 10 * MINUTE_US, 10 * MINUTE_US))
    return quota


def some_given_quota(chance: random.Random) -> process_pb2.Quota:
    """Draw a quota of a client, which may be out of bounds."""
    quota = some_quota(chance)
    if chance.random() < 0.03:
        quota.max_tool_calls = chance.choice(_BAD_AMOUNTS)
    return quota


def some_usage(chance: random.Random) -> process_pb2.Usage:
    usage = process_pb2.Usage(**{chance.choice(COUNTERS): chance.choice(_AMOUNTS)})
    if chance.random() < 0.05:
        setattr(usage, chance.choice(COUNTERS), chance.choice(_BAD_AMOUNTS))
    return usage


def some_json(chance: random.Random) -> str:
    return chance.choice(_BAD_JSON) if chance.random() < 0.04 else chance.choice(_JSON)


def some_texts(chance: random.Random) -> dict[str, str]:
    return {chance.choice("abc"): some_json(chance)} if chance.random() < 0.3 else {}


def some_pid(chance: random.Random, kernel: Kernel, *states: int) -> str:
    """Draw a process, rather of these states; sometimes one that does not exist."""
    rest = chance.random()
    known = kernel.processes.all
    if rest < 0.03 or not known:
        return chance.choice(("", "p999", "p01", "x", "q1"))
    fitting = [pid for pid, process in known.items() if process.state in states] if rest < 0.85 else []
    return chance.choice(fitting or list(known))


def some_session(chance: random.Random, kernel: Kernel) -> str:
    if kernel.sessions and chance.random() < 0.93:
        return chance.choice(list(kernel.sessions))
    return some_pid(chance, kernel)


def some_worker(chance: random.Random) -> str:
    return chance.choice(("", "w" * 1001)) if chance.random() < 0.02 else chance.choice(_WORKERS)


def some_service(chance: random.Random) -> str:
    return chance.choice(("agents", "agents", "agents", "models", "models", ""))


def _process(chance: random.Random, kernel: Kernel) -> kernel_pb2.CreateProcessRequest:
    request = kernel_pb2.CreateProcessRequest(
        request_id=chance.choice(_REQUESTS),
        user_id=chance.choice(USERS),
        session_id=chance.choice(("", "s1")),
        priority=raw(9 if chance.random() < 0.02 else chance.randrange(6)),
    )
    if chance.random() < 0.3:
        request.quota.CopyFrom(some_given_quota(chance))
    if chance.random() < 0.1:
        request.parent_pid = some_pid(chance, kernel)
    if chance.random() < 0.01:
        setattr(request, chance.choice(("request_id", "user_id", "session_id")), "u" * 1001)
    return request


def _create(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    return {"create_process": _process(chance, kernel)}


def _submit(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    return {"submit": kernel_pb2.SubmitRequest(process=_process(chance, kernel))}


def _schedule(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    return {"schedule_process": kernel_pb2.ScheduleProcessRequest(pid=some_pid(chance, kernel, NEW, BLOCKED))}


def _next(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    request = kernel_pb2.GetNextRunnableRequest(worker=some_worker(chance), lease_us=chance.choice(_LEASES))
    return {"take_runnable": request}


def _transition(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    pid = some_pid(chance, kernel)
    process = kernel.processes.all.get(pid)
    state = chance.randrange(1, 8)
    if process is not None and process.state == RUNNING and chance.random() < 0.3:
        state = BLOCKED
    reason = chance.randrange(1, 9) if (state == 6) != (chance.random() < 0.05) else 0
    if chance.random() < 0.02:
        state, reason = chance.choice(((0, 0), (8, 0), (6, 99), (2, 99)))
    request = kernel_pb2.TransitionStateRequest(
        pid=pid, terminal_reason=raw(reason), message=chance.choice(("", "done"))
    )
    request.state = raw(state)
    return {"transition_state": request}


def _terminate(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    pid = some_pid(chance, kernel, READY, RUNNING, WAITING)
    reason = 99 if chance.random() < 0.02 else chance.randrange(9)
    return {"terminate_process": kernel_pb2.TerminateProcessRequest(pid=pid, reason=raw(reason), message="stop")}


def _usage(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    pid = some_pid(chance, kernel, NEW, READY, RUNNING, WAITING, BLOCKED)
    return {"record_usage": kernel_pb2.RecordUsageRequest(pid=pid, usage=some_usage(chance))}


def _rate(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    user = "u" * 1001 if chance.random() < 0.01 else chance.choice(USERS)
    return {"record_request": kernel_pb2.CheckRateLimitRequest(user_id=user, record=chance.random() < 0.7)}


def _renew(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    request = kernel_pb2.RenewLeaseRequest(pid=some_pid(chance, kernel, RUNNING), lease_us=chance.choice(_LEASES))
    process = kernel.processes.all.get(request.pid)
    holder = process.message.worker if process is not None and chance.random() < 0.6 else ""
    request.worker = holder or some_worker(chance)
    return {"renew_lease": request}


def _question(chance: random.Random, question: interrupts.Question) -> None:
    question.kind = raw(chance.randrange(1, 8))
    question.message = "Go on?"
    if chance.random() < 0.2:
        question.data_json = some_json(chance)
    if chance.random() < 0.3:
        question.ttl_us = chance.choice((1, SECOND_US, MINUTE_US, 0, -1, LONGEST_TTL_US + 1))
    if chance.random() < 0.03:
        question.kind = raw(chance.choice((0, 9)))


def _ask(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    request = interrupt_pb2.CreateInterruptRequest(pid=some_pid(chance, kernel, RUNNING, WAITING))
    _question(chance, request)
    if chance.random() < 0.2:
        request.run_id = "run-1"
    return {"create_interrupt": request}


def some_interrupt(chance: random.Random, kernel: Kernel) -> str:
    rest = chance.random()
    pending = [name for name, each in kernel.interrupts.items() if each.status == interrupts.PENDING]
    if pending and rest < 0.8:
        return chance.choice(pending)
    if kernel.interrupts and rest < 0.97:
        return chance.choice(list(kernel.interrupts))
    return chance.choice(("", "i999", "i01", "p1"))


def _resolve(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    if not kernel.interrupts and chance.random() < 0.8:
        return _ask(chance, kernel)
    request = interrupt_pb2.ResolveInterruptRequest(interrupt_id=some_interrupt(chance, kernel))
    if chance.random() < 0.85:
        request.response.value_json = some_json(chance)
        request.response.by = "ada"
    return {"resolve_interrupt": request}


def _cancel(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    if not kernel.interrupts and chance.random() < 0.8:
        return _ask(chance, kernel)
    request = interrupt_pb2.CancelInterruptRequest(interrupt_id=some_interrupt(chance, kernel))
    request.by = chance.choice(("", "ada"))
    return {"cancel_interrupt": request}


def _register(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    info = registry_pb2.ServiceInfo(name=some_service(chance), version="1", capabilities=["m"])
    info.type = raw(chance.randrange(1, 5))
    info.status = raw(chance.randrange(5))
    info.max_concurrent = chance.choice((1, 2, 3, 5))
    rest = chance.random()
    if rest < 0.15:
        fault = chance.randrange(7)
        for number, name in enumerate(("current_load", "last_health_check_us", "workers")):
            if fault == number:
                setattr(info, name, 1)
        if fault == 3:
            info.type = raw(chance.choice((0, 9)))
        elif fault == 4:
            info.max_concurrent = chance.choice((0, -1, MAX_AT_A_TIME + 1))
        elif fault == 5:
            info.status = raw(9)
        elif fault == 6:
            info.name = "s" * 1001
    return {"register_service": registry_pb2.RegisterServiceRequest(service=info)}


def _unregister(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    return {"unregister_service": registry_pb2.UnregisterServiceRequest(name=some_service(chance))}


def _health(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    request = registry_pb2.UpdateHealthRequest(name=some_service(chance))
    request.status = raw(chance.choice((0, 9)) if chance.random() < 0.05 else chance.randrange(1, 5))
    return {"update_health": request}


def some_pipeline(chance: random.Random) -> orchestration_pb2.PipelineConfig:
    return chance.choice(SOUND if chance.random() < 0.95 else FAULTY)


def _session(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    fresh = [pid for pid, each in kernel.processes.all.items() if pid not in kernel.sessions and not each.has_ended]
    pid = chance.choice(fresh) if fresh and chance.random() < 0.85 else some_pid(chance, kernel)
    request = orchestration_pb2.InitializeSessionRequest(
        pid=pid, inputs_json=some_texts(chance), metadata=some_texts(chance)
    )
    if chance.random() < 0.98:
        request.pipeline.CopyFrom(some_pipeline(chance))
    return {"initialize_session": request}


def _execute(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    request = engine_pb2.ExecutePipelineRequest(
        process=_process(chance, kernel),
        pipeline=some_pipeline(chance),
        inputs_json=some_texts(chance),
        metadata=some_texts(chance),
    )
    return {"execute_pipeline": request}


def _fork(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    return {"execute_pipeline": engine_pb2.ExecutePipelineRequest(pipeline=nested_pipeline())}


def _step(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    pid, worker = some_session(chance, kernel), some_worker(chance)
    request = orchestration_pb2.GetNextInstructionRequest(pid=pid, worker=worker, lease_us=chance.choice(_LEASES))
    return {"take_step": request}


def _takes(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    ready = [
        session.stage_of(branch).service
        for session in kernel.sessions.values()
        for branch in session.branches.values()
        if branch.state == sessions.READY
    ]
    if not ready and chance.random() < 0.5:
        return _execute(chance, kernel)
    service = chance.choice(ready) if ready else some_service(chance)
    return {"worker_takes": _WorkerTakes(worker=some_worker(chance), service=service, lease_us=chance.choice(_LEASES))}


def _leased(chance: random.Random, kernel: Kernel) -> tuple[str, Any] | None:
    found = [(pid, branch) for pid, session in kernel.sessions.items() for branch in session.leased()]
    return chance.choice(found) if found else None


def _report(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    found = _leased(chance, kernel) if chance.random() < 0.95 else None
    if found is None and chance.random() < 0.8:
        return _takes(chance, kernel)
    if found is None:
        pid, worker = some_session(chance, kernel), some_worker(chance)
        step, branch = f"{some_session(chance, kernel)}/{chance.choice((0, 1, 1, 1, 2, 3, 99, 'x'))}", None
    else:
        pid, branch = found
        worker, step = branch.worker, f"{pid}/{branch.step}"
    request = orchestration_pb2.ReportAgentResultRequest(pid=pid, worker=worker)
    result = request.result
    result.step_id = step
    _outcome(chance, result)
    if chance.random() < 0.3:
        setattr(result.metrics, chance.choice(_METRICS), chance.choice(_AMOUNTS))
    if chance.random() < 0.06:
        _spoil(chance, request)
    routed = _RoutedResult(request=request)
    if branch is not None and result.WhichOneof("outcome") == "output_json":
        routes = len(kernel.sessions[pid].stage_of(branch).routes)
        if routes and chance.random() < 0.9:
            routed.route = chance.randrange(routes)
        elif chance.random() < 0.15:
            routed.routing_error = "The condition failed."
    return {"report_result": routed}


def _outcome(chance: random.Random, result: orchestration_pb2.AgentExecutionResult) -> None:
    rest = chance.random()
    if rest < 0.72:
        result.output_json = some_json(chance)
    elif rest < 0.84:
        result.failure.code = "" if chance.random() < 0.05 else "broken"
        result.failure.message = "no"
    else:
        _question(chance, result.question)


def _spoil(chance: random.Random, request: orchestration_pb2.ReportAgentResultRequest) -> None:
    fault = chance.randrange(5)
    if fault == 0:
        request.ClearField("result")
    elif fault == 1:
        request.result.ClearField("outcome")
    elif fault == 2:
        request.result.agent_name = chance.choice(("read", "law"))
    elif fault == 3:
        setattr(request.result.metrics, chance.choice(_METRICS), chance.choice(_BAD_AMOUNTS))
    else:
        request.worker = some_worker(chance)


def _ends(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    return {"worker_ends": _WorkerEnds(worker=chance.choice(_WORKERS))}


def _renews(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    return {"worker_renews": _WorkerRenews(worker=some_worker(chance), lease_us=chance.choice(_LEASES))}


def _end_session(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    request = orchestration_pb2.TerminateSessionRequest(pid=some_session(chance, kernel), message="stop")
    request.reason = raw(99 if chance.random() < 0.03 else chance.randrange(9))
    return {"terminate_session": request}


def _drop_session(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    return {"cleanup_session": orchestration_pb2.CleanupSessionRequest(pid=some_session(chance, kernel))}


def some_envelope(chance: random.Random, kernel: Kernel) -> str:
    found = list(kernel.envelopes)
    found += [f"{pid}/e{number}" for pid, each in kernel.sessions.items() for number in each.branches or (1, 2)]
    return chance.choice(found) if found and chance.random() < 0.94 else chance.choice(("", "e999", "p999/e1", "p1/e9"))


def _new_envelope(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    request = engine_pb2.CreateEnvelopeRequest(
        request_id=chance.choice(_REQUESTS),
        user_id=chance.choice(USERS),
        inputs_json=some_texts(chance),
        metadata=some_texts(chance),
    )
    if chance.random() < 0.03:
        setattr(request, chance.choice(("request_id", "user_id", "session_id")), "u" * 1001)
    if chance.random() < 0.6:
        request.bounds.CopyFrom(some_given_quota(chance))
    return {"create_envelope": request}


def _update(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    name = some_envelope(chance, kernel)
    pid, slash, number = name.partition("/e")
    session = kernel.sessions.get(pid) if slash else None
    branch = session.branches.get(int(number)) if session is not None else None
    known = kernel.envelopes.get(name) if branch is None else branch.envelope
    version = known.version if known is not None and chance.random() < 0.85 else chance.randrange(4)
    request = engine_pb2.UpdateEnvelopeRequest(envelope_id=name, version=version)
    request.outputs_json.update(some_texts(chance))
    request.metadata.update(some_texts(chance))
    request.current_stage = chance.choice(("", "", "law"))
    if chance.random() < (0.1 if slash else 0.5):
        request.usage.CopyFrom(some_usage(chance))
    return {"update_envelope": request}


def _clone(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    return {"clone_envelope": engine_pb2.CloneEnvelopeRequest(envelope_id=some_envelope(chance, kernel))}


def _cleanup(chance: random.Random, kernel: Kernel) -> dict[str, Any]:
    return {"cleanup": kernel_pb2.CleanupRequest()}


LIFE: Theme = (
    *(_create, _create, _submit, _schedule, _schedule, _next, _next, _next, _transition, _transition, _transition),
    *(_transition, _terminate, _usage, _usage, _renew, _cleanup),
)
ASKING: Theme = (
    *(_submit, _next, _next, _ask, _ask, _ask, _resolve, _resolve, _cancel, _cleanup, _cleanup, _transition, _usage),
)
STEPS: Theme = (
    *(_execute, _step, _step, _takes, _takes, _takes, *[_report] * 8, _resolve, _resolve, _cancel, _ask, _ends),
    *(_renews, _renew, _cleanup, _cleanup, _session, _next, _transition, _update),
)
ENDING: Theme = (
    *(_execute, _session, _takes, _step, _report, _report, _end_session, _drop_session, _terminate, _transition),
    *(_cleanup, _cleanup, _usage, _clone, _submit),
)
SERVICES: Theme = (_register, _register, _register, _health, _unregister)
ENVELOPES: Theme = (_new_envelope, _new_envelope, _update, _update, _update, _clone, _execute, _cleanup)
RATES: Theme = (_rate, _rate, _rate, _rate, _submit, _submit, _execute, _cleanup)
FORKS: Theme = (_takes, _takes, _report, _report, _report)
_ALL: Theme = LIFE + ASKING + STEPS + ENDING + SERVICES + ENVELOPES + RATES
_RUN: Theme = (_submit, _next)
THEMES: tuple[tuple[Theme, Theme], ...] = (
    *[((_create, _schedule, _next), LIFE)] * 3,
    *[((*_RUN, _ask), ASKING)] * 2,
    *[((_execute, _takes), STEPS)] * 6,
    *[((_fork, _takes, _report, _takes), FORKS)] * 2,
    *[((_execute, _takes), ENDING)] * 2,
    ((_register,), SERVICES),
    ((_new_envelope,), ENVELOPES),
    ((), RATES),
    (_RUN, _ALL),
)
"""What a sequence begins with, and what it is about."""
