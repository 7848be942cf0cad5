"""Calls of every RPC with the status code that the documentation gives for each; the first one succeeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.integration.kernel_reflection.world import HOUR_US, PACKAGE, WORKER, World
from tests.support.work.reflected import Json

LONG_NAME = "n" * 1_001
TEXT = object()
"""Any text that is not empty."""
REASON = "TERMINAL_REASON_CANCELLED"


@dataclass(frozen=True)
class Case:
    """One call: the request that `make` returns, the expected code, and members of the first answer."""

    code: str
    make: Callable[[World], Json]
    members: Json = field(default_factory=dict)


def ok(make: Callable[[World], Json], **members: Any) -> Case:
    return Case("OK", make, members)


def invalid(make: Callable[[World], Json]) -> Case:
    return Case("INVALID_ARGUMENT", make)


def unknown(make: Callable[[World], Json]) -> Case:
    return Case("NOT_FOUND", make)


def wrong_state(make: Callable[[World], Json]) -> Case:
    return Case("FAILED_PRECONDITION", make)


def too_long(*names: str) -> list[Case]:
    requests: list[Json] = [{name: LONG_NAME} for name in names]
    return [invalid(partial(_given, request)) for request in requests]


def _given(request: Json, world: World) -> Json:
    return request


def of_pid(make: Callable[[World], str]) -> Callable[[World], Json]:
    return lambda world: {"pid": make(world)}


def agent(world: World, service: str, **more: Any) -> Json:
    return {"agent": {"name": "stage", "agent": "node", "service": service}, "envelope_id": world.envelope(), **more}


def initialize(world: World, **stage: Any) -> Json:
    return {"pid": world.ready(), "pipeline": world.pipeline(**stage)}


def execute(world: World, **more: Any) -> Json:
    return {"process": {"request_id": world.name(), **more}, "pipeline": world.pipeline(), "inputs_json": {"a": "1"}}


def a_report(world: World, **more: Any) -> Json:
    step = world.step()
    result = {"step_id": step["step_id"], "agent_name": "first", "metrics": {"llm_calls": 1}, **more}
    return {"pid": step["pid"], "worker": step["worker"], "result": result}


def next_runnable(world: World) -> Json:
    world.ready()
    return {"worker": WORKER, "lease_us": HOUR_US}


def events_from(world: World) -> Json:
    sequence = world.sequence()
    return {"pid": world.ready(), "after_sequence": sequence, "kinds": ["KERNEL_EVENT_KIND_PROCESS_CREATED"]}


def renewal(world: World, **more: Any) -> Json:
    step = world.step()
    return {"pid": step["pid"], "worker": step["worker"], "lease_us": HOUR_US, **more}


def a_question(world: World, **more: Any) -> Json:
    asked = {"kind": "INTERRUPT_KIND_CONFIRMATION", "message": "Go on?", "data_json": "{}", "ttl_us": HOUR_US}
    return {"pid": world.running(), **asked, **more}


def a_service(world: World, **more: Any) -> Json:
    described = {"type": "SERVICE_TYPE_FLOW", "status": "SERVICE_STATUS_HEALTHY", "max_concurrent": 3}
    return {"service": {"name": world.name(), **described, **more}}


KERNEL: dict[str, list[Case]] = {
    "CreateProcess": [
        ok(
            lambda w: {
                "request_id": w.name(),
                "user_id": "ann",
                "parent_pid": w.new(),
                "priority": "PRIORITY_HIGH",
                "quota": {"max_llm_calls": 3, "timeout_us": HOUR_US},
            }
        ),
        Case("ALREADY_EXISTS", lambda w: {"request_id": w.taken()}),
        wrong_state(lambda w: {"parent_pid": w.ended()}),
        *too_long("request_id", "user_id", "session_id"),
    ],
    "GetProcess": [ok(of_pid(World.new))],
    "ScheduleProcess": [ok(of_pid(World.new)), wrong_state(of_pid(World.ready)), wrong_state(of_pid(World.ended))],
    "GetNextRunnable": [ok(next_runnable), invalid(lambda _: {}), invalid(lambda _: {"worker": LONG_NAME})],
    "TransitionState": [
        ok(lambda w: {"pid": w.ready(), "state": "PROCESS_STATE_RUNNING"}),
        ok(lambda w: {"pid": w.new(), "state": "PROCESS_STATE_TERMINATED", "terminal_reason": REASON}),
        wrong_state(lambda w: {"pid": w.new(), "state": "PROCESS_STATE_RUNNING"}),
        invalid(lambda w: {"pid": w.new(), "state": "PROCESS_STATE_TERMINATED"}),
        invalid(lambda w: {"pid": w.ready(), "state": "PROCESS_STATE_RUNNING", "terminal_reason": REASON}),
    ],
    "TerminateProcess": [ok(lambda w: {"pid": w.new(), "reason": REASON}), wrong_state(of_pid(World.ended))],
    "CheckQuota": [ok(of_pid(World.new), within_quota=True), ok(of_pid(World.exhausted), exceeded=["llm_calls"])],
    "RecordUsage": [
        ok(lambda w: {"pid": w.running(), "usage": {"tokens_in": 7}}),
        wrong_state(lambda w: {"pid": w.ended(), "usage": {"tokens_in": 7}}),
    ],
    "CheckRateLimit": [
        ok(lambda w: {"user_id": w.name(), "record": True}, allowed=True),
        ok(lambda w: {"user_id": w.busy_user()}, exceeded="hour"),
        invalid(lambda _: {}),
        invalid(lambda _: {"user_id": LONG_NAME}),
    ],
    "ListProcesses": [
        ok(lambda w: {"state": "PROCESS_STATE_NEW", "page_size": 1, "page_token": w.new()}),
        unknown(lambda _: {"page_token": "zzz"}),
        invalid(lambda _: {"page_size": 1_001}),
    ],
    "GetProcessCounts": [ok(lambda _: {})],
    "Submit": [
        ok(lambda w: {"process": {"request_id": w.name(), "priority": "PRIORITY_LOW"}}, created=True),
        Case("RESOURCE_EXHAUSTED", lambda w: {"process": {"user_id": w.busy_user()}}),
        invalid(lambda _: {"process": {"request_id": LONG_NAME}}),
        wrong_state(lambda w: {"process": {"parent_pid": w.ended()}}),
    ],
    "RenewLease": [
        ok(renewal),
        wrong_state(lambda w: renewal(w, worker="another")),
        invalid(lambda w: renewal(w, worker="")),
        invalid(lambda w: renewal(w, lease_us=HOUR_US + 1)),
    ],
    "RecordToolCall": [ok(of_pid(World.running)), wrong_state(of_pid(World.ended))],
    "RecordAgentHop": [ok(of_pid(World.running)), wrong_state(of_pid(World.ended))],
    "GetRemainingBudget": [ok(lambda w: {"pid": w.new(quota={"max_tool_calls": 4})})],
    "GetSystemStatus": [ok(lambda _: {})],
    "GetRequestStatus": [ok(of_pid(World.session))],
    "SubscribeEvents": [
        ok(events_from, kind="KERNEL_EVENT_KIND_PROCESS_CREATED"),
        Case("OUT_OF_RANGE", lambda _: {"after_sequence": -1}),
        invalid(lambda _: {"kinds": [0]}),
        invalid(lambda _: {"kinds": [99]}),
    ],
    "Cleanup": [ok(lambda _: {})],
}
ENGINE: dict[str, list[Case]] = {
    "CreateEnvelope": [
        ok(lambda w: {"request_id": w.name(), "inputs_json": {"a": "1"}, "bounds": {"max_llm_calls": 1}}, version="1"),
        *too_long("request_id", "user_id", "session_id"),
    ],
    "UpdateEnvelope": [
        ok(
            lambda w: {
                "envelope_id": w.envelope(),
                "version": 1,
                "outputs_json": {"stage": "1"},
                "usage": {"llm_calls": 1},
            },
            version="2",
        ),
        Case("ABORTED", lambda w: {"envelope_id": w.envelope(), "version": 7}),
        invalid(lambda w: {"envelope_id": f"{w.session()}/e1", "version": 1, "usage": {"llm_calls": 1}}),
        wrong_state(lambda w: {"envelope_id": f"{w.ended_session()}/e1", "version": 1}),
    ],
    "CheckBounds": [ok(lambda w: {"envelope_id": w.envelope()}, within_bounds=True)],
    "ExecutePipeline": [
        ok(execute, kind="PIPELINE_EVENT_KIND_STARTED"),
        Case("RESOURCE_EXHAUSTED", lambda w: execute(w, user_id=w.busy_user())),
        invalid(lambda _: {}),
        invalid(lambda w: execute(w) | {"pipeline": {"name": "empty"}}),
    ],
    "ExecuteAgent": [
        ok(lambda w: agent(w, w.worked(), pid=w.running()), output_json="1"),
        ok(lambda w: agent(w, w.worked()), output_json="1"),
        Case("UNAVAILABLE", lambda w: agent(w, w.service())),
        Case("ABORTED", lambda w: agent(w, w.worked(is_failing=True))),
        Case("RESOURCE_EXHAUSTED", lambda w: agent(w, w.worked(), pid=w.exhausted())),
        wrong_state(lambda w: agent(w, w.worked(), pid=w.ended())),
        unknown(lambda w: agent(w, "zzz")),
        invalid(lambda w: agent(w, "")),
        invalid(lambda w: {"envelope_id": w.envelope()}),
    ],
    "CloneEnvelope": [ok(lambda w: {"envelope_id": w.envelope()}, version="1")],
}
ORCHESTRATION: dict[str, list[Case]] = {
    "InitializeSession": [
        ok(lambda w: initialize(w) | {"inputs_json": {"a": "1"}}),
        Case("ALREADY_EXISTS", lambda w: initialize(w) | {"pid": w.session()}),
        wrong_state(lambda w: initialize(w) | {"pid": w.ended()}),
        invalid(of_pid(World.ready)),
        invalid(lambda w: initialize(w, service="")),
        invalid(lambda w: initialize(w, agent="")),
        invalid(lambda w: initialize(w, name="a->b")),
        invalid(lambda w: initialize(w, on_error="nowhere")),
        invalid(lambda w: initialize(w, timeout_us=0)),
        invalid(lambda w: initialize(w, routes=[{"targets": ["nowhere"]}])),
        invalid(lambda w: initialize(w, routes=[{"targets": ["first", "second"]}])),
        invalid(lambda w: initialize(w, routes=[{"targets": ["second"], "condition": "true"}])),
        invalid(lambda w: initialize(w, routes=[{"condition": "true", "condition_ir": "{}"}])),
        invalid(lambda w: initialize(w, routes=[{}] * 1_001)),
    ],
    "GetNextInstruction": [
        ok(
            lambda w: {"pid": w.session(), "worker": WORKER, "lease_us": HOUR_US},
            kind="INSTRUCTION_KIND_RUN_AGENT",
            agent_name="first",
        ),
        ok(lambda w: {"pid": w.ended_session(), "worker": WORKER}, kind="INSTRUCTION_KIND_TERMINATE"),
        wrong_state(lambda w: {"pid": w.ready(), "worker": WORKER}),
        invalid(of_pid(World.session)),
    ],
    "ReportAgentResult": [
        ok(lambda w: a_report(w, output_json='{"a": 1}'), accepted=True),
        ok(lambda w: a_report(w, failure={"code": "broken"}), accepted=True),
        ok(lambda w: a_report(w, question={"kind": "INTERRUPT_KIND_CONFIRMATION", "data_json": "1"}), accepted=True),
        ok(World.reported),
        wrong_state(lambda w: a_report(w, output_json="1") | {"worker": "another"}),
        invalid(a_report),
        invalid(lambda w: a_report(w, failure={})),
        invalid(lambda w: a_report(w, question={})),
        invalid(lambda w: a_report(w, output_json="1", agent_name="second")),
        unknown(lambda w: a_report(w, output_json="1") | {"pid": "p999999"}),
    ],
    "GetSessionState": [ok(of_pid(World.session), pipeline_name="two"), wrong_state(of_pid(World.ready))],
    "TerminateSession": [
        ok(lambda w: {"pid": w.session(), "reason": REASON}),
        wrong_state(of_pid(World.ready)),
        wrong_state(of_pid(World.ended_session)),
    ],
    "CleanupSession": [ok(of_pid(World.ended_session)), wrong_state(of_pid(World.session))],
}
COMM_BUS: dict[str, list[Case]] = {
    "Publish": [
        ok(lambda w: {"topic": w.listened(), "payload": "AA==", "headers": {"a": "b"}}, receivers="1"),
        ok(lambda w: {"topic": w.name()}),
        invalid(lambda _: {"payload": "AA=="}),
    ],
    "Send": [ok(lambda w: {"recipient": w.listened(), "sender": "test"})],
    "Query": [
        ok(lambda w: {"topic": w.replied(), "timeout_us": HOUR_US}, responder="test"),
        Case("UNAVAILABLE", lambda w: {"topic": w.name()}),
        Case("DEADLINE_EXCEEDED", lambda w: {"topic": w.listened(), "timeout_us": 50_000}),
        invalid(lambda _: {}),
    ],
    "Subscribe": [
        ok(World.kept),
        invalid(lambda _: {}),
        invalid(lambda _: {"topics": [""]}),
        invalid(lambda _: {"topics": ["a"] * 1_001}),
        invalid(lambda _: {"name": "a", "max_in_flight": 65_537}),
    ],
    "Reply": [ok(lambda w: {"query_id": w.open_query(), "payload": "AA=="})],
    "Acknowledge": [
        ok(lambda w: w.delivered(acknowledges=True), acknowledged="1"),
        wrong_state(lambda w: w.delivered(acknowledges=False)),
    ],
}
INTERRUPT: dict[str, list[Case]] = {
    "CreateInterrupt": [
        ok(a_question),
        wrong_state(lambda w: a_question(w) | {"pid": w.new()}),
        wrong_state(lambda w: a_question(w) | {"pid": w.ended()}),
        invalid(lambda w: a_question(w, kind="INTERRUPT_KIND_CHECKPOINT")),
        invalid(lambda w: a_question(w, kind="INTERRUPT_KIND_UNSPECIFIED")),
    ],
    "GetInterrupt": [ok(lambda w: {"interrupt_id": w.interrupt()})],
    "ResolveInterrupt": [
        ok(lambda w: {"interrupt_id": w.interrupt(), "response": {"value_json": "true", "by": "ann"}}),
        ok(lambda w: {"interrupt_id": w.interrupt("INTERRUPT_KIND_CHECKPOINT")}),
        wrong_state(lambda w: {"interrupt_id": w.resolved(), "response": {"value_json": "true"}}),
        invalid(lambda w: {"interrupt_id": w.interrupt()}),
    ],
    "CancelInterrupt": [
        ok(lambda w: {"interrupt_id": w.interrupt(), "by": "ann"}),
        wrong_state(lambda w: {"interrupt_id": w.resolved()}),
    ],
    "ListInterrupts": [
        ok(lambda w: {"pid": w.running(), "status": "INTERRUPT_STATUS_PENDING", "page_size": 1_000}),
        unknown(lambda _: {"page_token": "zzz"}),
        invalid(lambda _: {"page_size": 1_001}),
    ],
}
REGISTRY: dict[str, list[Case]] = {
    "RegisterService": [
        ok(a_service),
        invalid(lambda _: {}),
        invalid(lambda w: a_service(w, name="")),
        invalid(lambda w: a_service(w, name=LONG_NAME)),
        invalid(lambda w: a_service(w, type="SERVICE_TYPE_UNSPECIFIED")),
        invalid(lambda w: a_service(w, current_load=1)),
        invalid(lambda w: a_service(w, max_concurrent=0)),
    ],
    "UnregisterService": [ok(lambda w: {"name": w.service()}), wrong_state(lambda w: {"name": w.loaded()})],
    "ListServices": [ok(lambda _: {"type": "SERVICE_TYPE_FLOW"})],
    "UpdateHealth": [ok(lambda w: {"name": w.service(), "status": "SERVICE_STATUS_DEGRADED"})],
    "CanAccept": [
        ok(lambda w: {"name": w.service()}, can_accept=True),
        ok(lambda w: {"name": w.loaded(2)}, reason=TEXT),
    ],
    "AcquireSlot": [
        ok(lambda w: {"name": w.service()}),
        Case("RESOURCE_EXHAUSTED", lambda w: {"name": w.loaded(2)}),
    ],
    "ReleaseSlot": [ok(lambda w: {"name": w.loaded()}), wrong_state(lambda w: {"name": w.service()})],
    "Dispatch": [
        ok(lambda w: {"service": w.worked(), "request": {"metadata": {"node": "n"}}}),
        Case("UNAVAILABLE", lambda w: {"service": w.service()}),
        Case("ABORTED", lambda w: {"service": w.worked(is_failing=True)}),
    ],
    "DispatchInference": [
        ok(lambda w: {"model": w.inference(), "input_json": "[1]"}, output_json="1"),
        Case("UNAVAILABLE", lambda w: {"model": w.idle_model(), "input_json": "1"}),
        Case("ABORTED", lambda w: {"model": w.inference(is_failing=True), "input_json": "1"}),
    ],
    "GetServiceStats": [ok(lambda _: {})],
    # The first message of a stream; its test sends what is derived from it, too.
    "Work": [
        ok(lambda w: {"start": {"service": w.service(), "worker": w.name(), "max_concurrent": 1}}),
        Case("ALREADY_EXISTS", lambda w: {"start": w.busy_worker()}),
        invalid(lambda _: {"heartbeat": {}}),
        invalid(lambda _: {}),
        invalid(lambda w: {"start": {"service": w.service(), "worker": "", "max_concurrent": 1}}),
        invalid(lambda w: {"start": {"service": w.service(), "worker": LONG_NAME, "max_concurrent": 1}}),
        invalid(lambda w: {"start": {"service": w.service(), "worker": "w", "max_concurrent": 0}}),
        invalid(lambda w: {"start": {"service": w.service(), "worker": "w", "max_concurrent": 65_537}}),
    ],
}
HEALTH: dict[str, list[Case]] = {
    name: [
        ok(lambda _: {"service": f"{PACKAGE}.KernelService"}, status="SERVING"),
        ok(lambda _: {}, status="SERVING"),
        unknown(lambda _: {"service": "zzz"}),
    ]
    for name in ("Check", "Watch")
}
REFLECTION: dict[str, list[Case]] = {
    "ServerReflectionInfo": [
        ok(lambda _: {"list_services": "*"}),
        unknown(lambda _: {"file_containing_symbol": "zzz"}),
        unknown(lambda _: {"file_by_filename": "zzz"}),
        invalid(lambda _: {}),
    ]
}


def cases_of(version: str) -> dict[str, list[Case]]:
    """Return the cases by the whole name of the RPC."""
    services = {
        f"{PACKAGE}.KernelService": KERNEL,
        f"{PACKAGE}.EngineService": ENGINE,
        f"{PACKAGE}.OrchestrationService": ORCHESTRATION,
        f"{PACKAGE}.CommBusService": COMM_BUS,
        f"{PACKAGE}.InterruptService": INTERRUPT,
        f"{PACKAGE}.RegistryService": REGISTRY,
        "grpc.health.v1.Health": HEALTH,
        f"grpc.reflection.{version}.ServerReflection": REFLECTION,
    }
    return {f"{service}/{name}": cases for service, rpcs in services.items() for name, cases in rpcs.items()}
