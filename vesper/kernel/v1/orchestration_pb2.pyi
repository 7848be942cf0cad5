from vesper.kernel.v1 import envelope_pb2 as _envelope_pb2
from vesper.kernel.v1 import interrupt_pb2 as _interrupt_pb2
from vesper.kernel.v1 import process_pb2 as _process_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class InstructionKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INSTRUCTION_KIND_UNSPECIFIED: _ClassVar[InstructionKind]
    INSTRUCTION_KIND_RUN_AGENT: _ClassVar[InstructionKind]
    INSTRUCTION_KIND_TERMINATE: _ClassVar[InstructionKind]
    INSTRUCTION_KIND_WAIT_INTERRUPT: _ClassVar[InstructionKind]
    INSTRUCTION_KIND_WAIT_STEPS: _ClassVar[InstructionKind]
INSTRUCTION_KIND_UNSPECIFIED: InstructionKind
INSTRUCTION_KIND_RUN_AGENT: InstructionKind
INSTRUCTION_KIND_TERMINATE: InstructionKind
INSTRUCTION_KIND_WAIT_INTERRUPT: InstructionKind
INSTRUCTION_KIND_WAIT_STEPS: InstructionKind

class PipelineConfig(_message.Message):
    __slots__ = ("name", "agents", "edge_limits")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    EDGE_LIMITS_FIELD_NUMBER: _ClassVar[int]
    name: str
    agents: _containers.RepeatedCompositeFieldContainer[AgentConfig]
    edge_limits: _containers.RepeatedCompositeFieldContainer[EdgeLimit]
    def __init__(self, name: _Optional[str] = ..., agents: _Optional[_Iterable[_Union[AgentConfig, _Mapping]]] = ..., edge_limits: _Optional[_Iterable[_Union[EdgeLimit, _Mapping]]] = ...) -> None: ...

class AgentConfig(_message.Message):
    __slots__ = ("name", "agent", "service", "routes", "on_error", "timeout_us", "settings")
    class SettingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    ROUTES_FIELD_NUMBER: _ClassVar[int]
    ON_ERROR_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_US_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    name: str
    agent: str
    service: str
    routes: _containers.RepeatedCompositeFieldContainer[RoutingRule]
    on_error: str
    timeout_us: int
    settings: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., agent: _Optional[str] = ..., service: _Optional[str] = ..., routes: _Optional[_Iterable[_Union[RoutingRule, _Mapping]]] = ..., on_error: _Optional[str] = ..., timeout_us: _Optional[int] = ..., settings: _Optional[_Mapping[str, str]] = ...) -> None: ...

class RoutingRule(_message.Message):
    __slots__ = ("targets", "join", "condition", "condition_ir")
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    JOIN_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    CONDITION_IR_FIELD_NUMBER: _ClassVar[int]
    targets: _containers.RepeatedScalarFieldContainer[str]
    join: str
    condition: str
    condition_ir: str
    def __init__(self, targets: _Optional[_Iterable[str]] = ..., join: _Optional[str] = ..., condition: _Optional[str] = ..., condition_ir: _Optional[str] = ...) -> None: ...

class EdgeLimit(_message.Message):
    __slots__ = ("to", "max_traversals")
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    MAX_TRAVERSALS_FIELD_NUMBER: _ClassVar[int]
    to: str
    max_traversals: int
    def __init__(self, to: _Optional[str] = ..., max_traversals: _Optional[int] = ..., **kwargs) -> None: ...

class Instruction(_message.Message):
    __slots__ = ("kind", "pid", "step_id", "agent_name", "agent_config", "envelope", "terminal_reason", "termination_message", "interrupt", "interrupt_pending", "lease_until_us")
    KIND_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_NAME_FIELD_NUMBER: _ClassVar[int]
    AGENT_CONFIG_FIELD_NUMBER: _ClassVar[int]
    ENVELOPE_FIELD_NUMBER: _ClassVar[int]
    TERMINAL_REASON_FIELD_NUMBER: _ClassVar[int]
    TERMINATION_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_PENDING_FIELD_NUMBER: _ClassVar[int]
    LEASE_UNTIL_US_FIELD_NUMBER: _ClassVar[int]
    kind: InstructionKind
    pid: str
    step_id: str
    agent_name: str
    agent_config: AgentConfig
    envelope: _envelope_pb2.Envelope
    terminal_reason: _process_pb2.TerminalReason
    termination_message: str
    interrupt: _interrupt_pb2.FlowInterrupt
    interrupt_pending: bool
    lease_until_us: int
    def __init__(self, kind: _Optional[_Union[InstructionKind, str]] = ..., pid: _Optional[str] = ..., step_id: _Optional[str] = ..., agent_name: _Optional[str] = ..., agent_config: _Optional[_Union[AgentConfig, _Mapping]] = ..., envelope: _Optional[_Union[_envelope_pb2.Envelope, _Mapping]] = ..., terminal_reason: _Optional[_Union[_process_pb2.TerminalReason, str]] = ..., termination_message: _Optional[str] = ..., interrupt: _Optional[_Union[_interrupt_pb2.FlowInterrupt, _Mapping]] = ..., interrupt_pending: _Optional[bool] = ..., lease_until_us: _Optional[int] = ...) -> None: ...

class AgentExecutionMetrics(_message.Message):
    __slots__ = ("llm_calls", "tool_calls", "tokens_in", "tokens_out", "duration_us")
    LLM_CALLS_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_IN_FIELD_NUMBER: _ClassVar[int]
    TOKENS_OUT_FIELD_NUMBER: _ClassVar[int]
    DURATION_US_FIELD_NUMBER: _ClassVar[int]
    llm_calls: int
    tool_calls: int
    tokens_in: int
    tokens_out: int
    duration_us: int
    def __init__(self, llm_calls: _Optional[int] = ..., tool_calls: _Optional[int] = ..., tokens_in: _Optional[int] = ..., tokens_out: _Optional[int] = ..., duration_us: _Optional[int] = ...) -> None: ...

class AgentExecutionResult(_message.Message):
    __slots__ = ("step_id", "agent_name", "output_json", "failure", "question", "metrics")
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_NAME_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_JSON_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    step_id: str
    agent_name: str
    output_json: str
    failure: AgentFailure
    question: AgentQuestion
    metrics: AgentExecutionMetrics
    def __init__(self, step_id: _Optional[str] = ..., agent_name: _Optional[str] = ..., output_json: _Optional[str] = ..., failure: _Optional[_Union[AgentFailure, _Mapping]] = ..., question: _Optional[_Union[AgentQuestion, _Mapping]] = ..., metrics: _Optional[_Union[AgentExecutionMetrics, _Mapping]] = ...) -> None: ...

class AgentFailure(_message.Message):
    __slots__ = ("code", "message")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class AgentQuestion(_message.Message):
    __slots__ = ("kind", "message", "data_json", "run_id", "ttl_us")
    KIND_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DATA_JSON_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TTL_US_FIELD_NUMBER: _ClassVar[int]
    kind: _interrupt_pb2.InterruptKind
    message: str
    data_json: str
    run_id: str
    ttl_us: int
    def __init__(self, kind: _Optional[_Union[_interrupt_pb2.InterruptKind, str]] = ..., message: _Optional[str] = ..., data_json: _Optional[str] = ..., run_id: _Optional[str] = ..., ttl_us: _Optional[int] = ...) -> None: ...

class InitializeSessionRequest(_message.Message):
    __slots__ = ("pid", "pipeline", "inputs_json", "metadata")
    class InputsJsonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PID_FIELD_NUMBER: _ClassVar[int]
    PIPELINE_FIELD_NUMBER: _ClassVar[int]
    INPUTS_JSON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    pid: str
    pipeline: PipelineConfig
    inputs_json: _containers.ScalarMap[str, str]
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, pid: _Optional[str] = ..., pipeline: _Optional[_Union[PipelineConfig, _Mapping]] = ..., inputs_json: _Optional[_Mapping[str, str]] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class InitializeSessionResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: SessionState
    def __init__(self, session: _Optional[_Union[SessionState, _Mapping]] = ...) -> None: ...

class GetNextInstructionRequest(_message.Message):
    __slots__ = ("pid", "worker", "lease_us")
    PID_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    LEASE_US_FIELD_NUMBER: _ClassVar[int]
    pid: str
    worker: str
    lease_us: int
    def __init__(self, pid: _Optional[str] = ..., worker: _Optional[str] = ..., lease_us: _Optional[int] = ...) -> None: ...

class ReportAgentResultRequest(_message.Message):
    __slots__ = ("pid", "worker", "result")
    PID_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    pid: str
    worker: str
    result: AgentExecutionResult
    def __init__(self, pid: _Optional[str] = ..., worker: _Optional[str] = ..., result: _Optional[_Union[AgentExecutionResult, _Mapping]] = ...) -> None: ...

class ReportAgentResultResponse(_message.Message):
    __slots__ = ("accepted", "session")
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    accepted: bool
    session: SessionState
    def __init__(self, accepted: _Optional[bool] = ..., session: _Optional[_Union[SessionState, _Mapping]] = ...) -> None: ...

class GetSessionStateRequest(_message.Message):
    __slots__ = ("pid",)
    PID_FIELD_NUMBER: _ClassVar[int]
    pid: str
    def __init__(self, pid: _Optional[str] = ...) -> None: ...

class SessionState(_message.Message):
    __slots__ = ("pid", "pipeline_name", "envelope", "edge_traversals", "terminated", "terminal_reason", "terminal_message", "steps", "created_us", "last_activity_us")
    class EdgeTraversalsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    PID_FIELD_NUMBER: _ClassVar[int]
    PIPELINE_NAME_FIELD_NUMBER: _ClassVar[int]
    ENVELOPE_FIELD_NUMBER: _ClassVar[int]
    EDGE_TRAVERSALS_FIELD_NUMBER: _ClassVar[int]
    TERMINATED_FIELD_NUMBER: _ClassVar[int]
    TERMINAL_REASON_FIELD_NUMBER: _ClassVar[int]
    TERMINAL_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    CREATED_US_FIELD_NUMBER: _ClassVar[int]
    LAST_ACTIVITY_US_FIELD_NUMBER: _ClassVar[int]
    pid: str
    pipeline_name: str
    envelope: _envelope_pb2.Envelope
    edge_traversals: _containers.ScalarMap[str, int]
    terminated: bool
    terminal_reason: _process_pb2.TerminalReason
    terminal_message: str
    steps: _containers.RepeatedCompositeFieldContainer[StepState]
    created_us: int
    last_activity_us: int
    def __init__(self, pid: _Optional[str] = ..., pipeline_name: _Optional[str] = ..., envelope: _Optional[_Union[_envelope_pb2.Envelope, _Mapping]] = ..., edge_traversals: _Optional[_Mapping[str, int]] = ..., terminated: _Optional[bool] = ..., terminal_reason: _Optional[_Union[_process_pb2.TerminalReason, str]] = ..., terminal_message: _Optional[str] = ..., steps: _Optional[_Iterable[_Union[StepState, _Mapping]]] = ..., created_us: _Optional[int] = ..., last_activity_us: _Optional[int] = ...) -> None: ...

class StepState(_message.Message):
    __slots__ = ("step_id", "stage", "worker", "lease_until_us", "interrupt_id")
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    LEASE_UNTIL_US_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_ID_FIELD_NUMBER: _ClassVar[int]
    step_id: str
    stage: str
    worker: str
    lease_until_us: int
    interrupt_id: str
    def __init__(self, step_id: _Optional[str] = ..., stage: _Optional[str] = ..., worker: _Optional[str] = ..., lease_until_us: _Optional[int] = ..., interrupt_id: _Optional[str] = ...) -> None: ...

class TerminateSessionRequest(_message.Message):
    __slots__ = ("pid", "reason", "message")
    PID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    pid: str
    reason: _process_pb2.TerminalReason
    message: str
    def __init__(self, pid: _Optional[str] = ..., reason: _Optional[_Union[_process_pb2.TerminalReason, str]] = ..., message: _Optional[str] = ...) -> None: ...

class TerminateSessionResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: SessionState
    def __init__(self, session: _Optional[_Union[SessionState, _Mapping]] = ...) -> None: ...

class CleanupSessionRequest(_message.Message):
    __slots__ = ("pid",)
    PID_FIELD_NUMBER: _ClassVar[int]
    pid: str
    def __init__(self, pid: _Optional[str] = ...) -> None: ...

class CleanupSessionResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
