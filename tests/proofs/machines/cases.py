"""Sequences at which the two sides once differed, each with what it decided. None may differ again."""

from __future__ import annotations

from typing import Any

from tests.proofs.machines.draws import BEGIN_US, raw
from tests.proofs.machines.messages import (
    engine_pb2,
    interrupt_pb2,
    kernel_pb2,
    log_message,
    orchestration_pb2,
    process_pb2,
    registry_pb2,
)
from tests.proofs.machines.pipelines import nested_pipeline
from tests.proofs.machines.records import Record, change, query
from tests.proofs.machines.reference.kernel import Settings
from tests.proofs.machines.reference.limits import SECOND_US
from tests.proofs.machines.reference.queries import QUERIES

_QUERIES = {each.__name__: place for place, each in enumerate(QUERIES)}
_TakeRunnable = kernel_pb2.GetNextRunnableRequest


def create(after_us: int = 0, **given: Any) -> Record:
    return change(BEGIN_US + after_us, create_process=kernel_pb2.CreateProcessRequest(**given))


def submit(after_us: int = 0, **given: Any) -> Record:
    request = kernel_pb2.SubmitRequest(process=kernel_pb2.CreateProcessRequest(**given))
    return change(BEGIN_US + after_us, submit=request)


def take(worker: str = "w1", after_us: int = 0, lease_us: int = 0) -> Record:
    return change(BEGIN_US + after_us, take_runnable=_TakeRunnable(worker=worker, lease_us=lease_us))


def transition(pid: str, state: int, reason: int = 0) -> Record:
    request = kernel_pb2.TransitionStateRequest(pid=pid)
    request.state, request.terminal_reason = raw(state), raw(reason)
    return change(BEGIN_US, transition_state=request)


def ask(pid: str, kind: int = 2) -> Record:
    request = interrupt_pb2.CreateInterruptRequest(pid=pid, message="Go on?")
    request.kind = raw(kind)
    return change(BEGIN_US, create_interrupt=request)


def cleanup(after_us: int) -> Record:
    return change(BEGIN_US + after_us, cleanup=kernel_pb2.CleanupRequest())


def execute(config: orchestration_pb2.PipelineConfig) -> Record:
    return change(BEGIN_US, execute_pipeline=engine_pb2.ExecutePipelineRequest(pipeline=config))


def named_envelope(name: str, size: int) -> Record:
    request = engine_pb2.CreateEnvelopeRequest()
    setattr(request, name, "x" * size)
    return change(BEGIN_US, create_envelope=request)


def clone(envelope: str) -> Record:
    return change(BEGIN_US, clone_envelope=engine_pb2.CloneEnvelopeRequest(envelope_id=envelope))


def step(worker: str = "w1") -> Record:
    return change(BEGIN_US, worker_takes=log_message("WorkerTakes")(worker=worker, service="agents"))


def report(number: int, route: int | None = None, error: str = "", worker: str = "w1", **outcome: Any) -> Record:
    result = orchestration_pb2.AgentExecutionResult(step_id=f"p1/{number}", **(outcome or {"output_json": "1"}))
    request = orchestration_pb2.ReportAgentResultRequest(pid="p1", worker=worker, result=result)
    routed = log_message("RoutedResult")(request=request, route=route, routing_error=error)
    return change(BEGIN_US, report_result=routed)


def state(pid: str = "p1") -> Record:
    return query(_QUERIES["session_state"], pid.encode(), BEGIN_US)


def _pipeline(**given: Any) -> orchestration_pb2.PipelineConfig:
    config = orchestration_pb2.PipelineConfig(name="one", **given)
    for name in ("read", "law"):
        config.agents.add(name=name, agent=f"{name}_v1", service="agents")
    config.agents[0].routes.add(targets=["law"])
    return config


def _limited() -> orchestration_pb2.PipelineConfig:
    config = _pipeline()
    limit = config.edge_limits.add(to="law", max_traversals=0)
    setattr(limit, "from", "read")
    return config


def _forking() -> orchestration_pb2.PipelineConfig:
    """Return a pipeline whose first stage forks whenever it has run."""
    config = orchestration_pb2.PipelineConfig(name="forking")
    for name, targets, join in (("read", ["law", "price"], "read"), ("law", ["read"], ""), ("price", ["read"], "")):
        config.agents.add(name=name, agent=f"{name}_v1", service="agents").routes.add(targets=targets, join=join)
    return config


_QUESTION = orchestration_pb2.AgentQuestion(kind=interrupt_pb2.INTERRUPT_KIND_CONFIRMATION)
_HOUR = Settings(retention_us=3_600 * SECOND_US)
_QUOTA = process_pb2.Quota(timeout_us=7_200 * SECOND_US)
_TERMINATE = kernel_pb2.TerminateProcessRequest(pid="p1", reason=raw(99))
_ODD_SERVICE = registry_pb2.ServiceInfo(name="agents", type=registry_pb2.SERVICE_TYPE_WORKER, max_concurrent=1)
_ODD_SERVICE.status = raw(9)
_RENEW = kernel_pb2.RenewLeaseRequest(pid="p1", worker="w1", lease_us=SECOND_US)

CASES: dict[str, tuple[Settings, list[Record]]] = {
    "an interrupt and the time of a process end in one cleanup: its result can be read until the retention is over": (
        _HOUR,
        [
            *(submit(quota=_QUOTA), take(), ask("p1"), cleanup(7_200 * SECOND_US), cleanup(7_200 * SECOND_US)),
            *(cleanup(10_799 * SECOND_US), cleanup(10_800 * SECOND_US), cleanup(10_800 * SECOND_US)),
        ],
    ),
    "a request without a name gets a free one": (Settings(), [create(request_id="r2"), create(), create()]),
    "a branch that forks with the join of its own fork ends there: the join runs once": (
        Settings(),
        [
            *(execute(nested_pipeline()), step(), report(1, 0), step(), step("w2"), report(2, 0)),
            *(report(3, 0, worker="w2"), step(), step("w2"), report(4, 0), report(5, 0, worker="w2"), state()),
            *(step(), report(6, 0), state()),
        ],
    ),
    "a second fork does not make envelopes of the first one again": (
        Settings(),
        [
            *(execute(_forking()), step(), report(1, 0), clone("p1/e2"), step(), step("w2"), report(2, 0)),
            *(report(3, 0, worker="w2"), step(), report(4, 0), clone("p1/e2"), clone("p1/e4"), state()),
        ],
    ),
    "an output whose route fails is recorded": (
        Settings(),
        [execute(_pipeline()), step(), report(1, error="The condition failed."), state()],
    ),
    "an edge that was never taken is in no table": (Settings(), [execute(_limited()), step(), report(1, 0), state()]),
    "a shorter lease is answered with the one that holds": (
        Settings(),
        [submit(), take(lease_us=3_600 * SECOND_US), change(BEGIN_US, renew_lease=_RENEW)],
    ),
    "a process that has to wait is not made ready": (
        Settings(),
        [
            *(execute(_pipeline()), step(), transition("p1", 5), report(1, question=_QUESTION)),
            change(BEGIN_US, schedule_process=kernel_pb2.ScheduleProcessRequest(pid="p1")),
            transition("p1", 2),
        ],
    ),
    "a process with a step that can run is made ready beside a question of another": (
        Settings(),
        [execute(nested_pipeline()), step(), report(1, 0), step(), report(2, question=_QUESTION), transition("p1", 2)],
    ),
    "a process that a client lets wait does so until a client makes it ready": (
        Settings(),
        [
            *(execute(_pipeline()), step(), transition("p1", 4)),
            change(BEGIN_US, worker_ends=log_message("WorkerEnds")(worker="w1")),
            transition("p1", 2),
        ],
    ),
    "a reason outside of the enumeration is refused": (
        Settings(),
        [submit(), change(BEGIN_US, terminate_process=_TERMINATE), transition("p1", 6, 99), transition("p1", 2, 99)],
    ),
    "a status outside of the enumeration is refused": (
        Settings(),
        [change(BEGIN_US, register_service=registry_pb2.RegisterServiceRequest(service=_ODD_SERVICE))],
    ),
    "names of an envelope have 1,000 bytes": (
        Settings(),
        [named_envelope(name, size) for name in ("request_id", "user_id", "session_id") for size in (1_000, 1_001)],
    ),
    "a window that admits nothing is named": (
        Settings(per_hour=0),
        [change(BEGIN_US, record_request=kernel_pb2.CheckRateLimitRequest(user_id="ada"))],
    ),
    "a worker without steps ends without a change": (
        Settings(),
        [change(BEGIN_US, worker_ends=log_message("WorkerEnds")(worker="w1")), create()],
    ),
}
