"""The page of the kernel's names is complete, and all that it names exists."""

from __future__ import annotations

import re

import pytest

from emit.kernel import PROTOS, rpcs
from emit.kernel_names import Row, find_function, load
from tests.support.nodes import ROOT
from vesper.kernel import Client

SECTIONS, RPCS = load()
ROWS = [row for rows in SECTIONS.values() for row in rows]
# The names as the founding document has them, by its chapters.
SUBSYSTEMS = "LifecycleManager ResourceTracker RateLimiter InterruptService ServiceRegistry Orchestrator"
STRUCTURES = """
    KernelInterrupt FlowInterrupt InterruptResponse InterruptConfig DEFAULT_INTERRUPT_CONFIGS ServiceInfo
    ServiceHandler ServiceRequest ServiceResponse InferenceResponse OrchestrationSession SessionState
    PipelineConfig AgentConfig Instruction AgentExecutionMetrics AgentExecutionResult Envelope RemainingBudget
    KernelEventHandler SystemStatus RequestStatus RateLimitUsage ProcessControlBlock Kernel Config
"""
ENUMERATIONS = {
    "InterruptKind": "Clarification Confirmation AgentReview Checkpoint ResourceExhausted Timeout SystemError",
    "InterruptStatus": "pending resolved expired cancelled",
    "ServiceStatus": "Healthy Degraded Unhealthy Unknown",
    "service_type": "flow worker vertical inference",
    "InstructionKind": "RunAgent Terminate WaitInterrupt",
    "KernelEvent": "ProcessCreated ProcessStateChanged ProcessTerminated ResourceExceeded InterruptCreated "
    "InterruptResolved",
    "ProcessState": "",
    "TerminalReason": "",
}
KERNEL = """
    create_process get_process schedule_process get_next_runnable transition_state terminate_process
    check_quota record_usage check_rate_limit list_processes get_process_counts submit create_interrupt
    resolve_interrupt get_pending_interrupt register_service unregister_service register_handler dispatch
    dispatch_inference initialize_orchestration get_next_instruction report_agent_result
    get_orchestration_state record_tool_call record_agent_hop get_remaining_budget on_event emit_event
    get_system_status get_request_status cleanup_process cleanup shutdown store_envelope get_envelope
    get_envelope_mut
"""
PARTS = {
    "InterruptService": "new create_interrupt resolve_interrupt get_interrupt get_pending_interrupt list_interrupts "
    "cancel_interrupt expire_old_interrupts get_status has_pending cleanup_process_interrupts",
    "ServiceRegistry": "new register_service unregister_service register_handler get_service list_services "
    "list_services_by_type update_health can_accept acquire_slot release_slot dispatch get_stats",
    "Orchestrator": "new initialize_session get_next_instruction report_agent_result get_session_state "
    "terminate_session cleanup_session evaluate_routing",
    "Kernel": "new with_config",
    "Config": "from_env",
}
SERVICES = {
    "KernelService": "CreateProcess GetProcess ScheduleProcess GetNextRunnable TransitionState TerminateProcess "
    "CheckQuota RecordUsage CheckRateLimit ListProcesses GetProcessCounts Submit",
    "EngineService": "CreateEnvelope UpdateEnvelope CheckBounds ExecutePipeline ExecuteAgent CloneEnvelope",
    "OrchestrationService": "InitializeSession GetNextInstruction ReportAgentResult GetSessionState",
    "CommBusService": "Publish Send Query Subscribe",
}
MESSAGES = """
    CreateEnvelopeRequest UpdateEnvelopeRequest CheckBoundsRequest BoundsCheckResult ExecutePipelineRequest
    PipelineEvent ExecuteAgentRequest CloneEnvelopeRequest InitializeSessionRequest InitializeSessionResponse
    GetNextInstructionRequest ReportAgentResultRequest ReportAgentResultResponse GetSessionStateRequest
    PublishRequest PublishResponse SendRequest SendResponse QueryRequest QueryResponse SubscribeRequest
    Message
"""
PROGRAM = "main shutdown_signal KernelServiceImpl EngineServiceImpl OrchestrationServiceImpl CommBusServiceImpl"


def test_every_name_of_the_document_has_a_row() -> None:
    assert len(KERNEL.split()) == 37
    expected = {*f"{SUBSYSTEMS} {STRUCTURES} {KERNEL} {MESSAGES} {PROGRAM}".split(), *ENUMERATIONS, "event system"}
    expected |= {f"{part}::{name}" for part, names in PARTS.items() for name in names.split()}
    expected |= {f"{service}.{name}" for service, names in SERVICES.items() for name in names.split()}
    assert expected - {row.name for row in ROWS} == set()
    assert {row.name for row in ROWS} - expected == set()
    assert len(SECTIONS["Subsystems"]) == 7


def test_every_rpc_has_a_function() -> None:
    assert set(RPCS) == {f"{each.service}/{each.name}" for each in rpcs()}
    assert [rpc for rpc, (function, *_) in RPCS.items() if find_function(function) is None] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row.name))
def test_what_a_row_names_exists(row: Row) -> None:
    assert find_function(row.function) is not None, row.function
    methods = {f"{each.service}/{each.name}": each.method for each in rpcs()}
    if row.caller.startswith("vesper.kernel.Client."):
        assert hasattr(Client, row.caller.rpartition(".")[2])
        assert row.caller.endswith(f".{methods[row.rpc]}")
    elif row.rpc:
        caller = (ROOT / row.caller).read_text(encoding="utf-8")
        assert re.search(rf"client\.{methods[row.rpc]}\(", caller), row.caller
    file, _, name = row.test.partition(":")
    keyword = "fn" if file.endswith(".rs") else "def"
    test = rf"^(?:async )?{keyword} {name}\("
    assert re.search(test, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), row.test


@pytest.mark.parametrize("row", [row for row in ROWS if row.name in ENUMERATIONS], ids=lambda row: str(row.name))
def test_an_enumeration_has_the_values_of_the_document(row: Row) -> None:
    assert list(row.values) == ENUMERATIONS[row.name].split()
    file, _, name = row.function.partition(":")
    body = re.search(
        rf"^enum {name} \{{\n(.*?)^\}}", (PROTOS / file).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert body is not None
    for value in row.values:
        constant = re.sub(r"(?<!^)(?=[A-Z])", "_", value).upper()
        assert re.search(rf"^  \w+_{constant} = ", body.group(1), re.MULTILINE), constant


@pytest.mark.parametrize(
    "reference",
    ["kernel/queries.rs:get_nothing", "nowhere.rs:get_process", "engine.proto:Nothing", "kernel.rs:None"],
)
def test_a_function_that_does_not_exist_is_noticed(reference: str) -> None:
    assert find_function(reference) is None
