from vesper.kernel.v1 import envelope_pb2 as _envelope_pb2
from vesper.kernel.v1 import interrupt_pb2 as _interrupt_pb2
from vesper.kernel.v1 import kernel_pb2 as _kernel_pb2
from vesper.kernel.v1 import orchestration_pb2 as _orchestration_pb2
from vesper.kernel.v1 import process_pb2 as _process_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PipelineEventKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PIPELINE_EVENT_KIND_UNSPECIFIED: _ClassVar[PipelineEventKind]
    PIPELINE_EVENT_KIND_STARTED: _ClassVar[PipelineEventKind]
    PIPELINE_EVENT_KIND_STAGE_STARTED: _ClassVar[PipelineEventKind]
    PIPELINE_EVENT_KIND_STAGE_ENDED: _ClassVar[PipelineEventKind]
    PIPELINE_EVENT_KIND_INTERRUPTED: _ClassVar[PipelineEventKind]
    PIPELINE_EVENT_KIND_RESUMED: _ClassVar[PipelineEventKind]
    PIPELINE_EVENT_KIND_ENDED: _ClassVar[PipelineEventKind]
PIPELINE_EVENT_KIND_UNSPECIFIED: PipelineEventKind
PIPELINE_EVENT_KIND_STARTED: PipelineEventKind
PIPELINE_EVENT_KIND_STAGE_STARTED: PipelineEventKind
PIPELINE_EVENT_KIND_STAGE_ENDED: PipelineEventKind
PIPELINE_EVENT_KIND_INTERRUPTED: PipelineEventKind
PIPELINE_EVENT_KIND_RESUMED: PipelineEventKind
PIPELINE_EVENT_KIND_ENDED: PipelineEventKind

class CreateEnvelopeRequest(_message.Message):
    __slots__ = ("request_id", "user_id", "session_id", "inputs_json", "metadata", "bounds")
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
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    INPUTS_JSON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    BOUNDS_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    user_id: str
    session_id: str
    inputs_json: _containers.ScalarMap[str, str]
    metadata: _containers.ScalarMap[str, str]
    bounds: _process_pb2.Quota
    def __init__(self, request_id: _Optional[str] = ..., user_id: _Optional[str] = ..., session_id: _Optional[str] = ..., inputs_json: _Optional[_Mapping[str, str]] = ..., metadata: _Optional[_Mapping[str, str]] = ..., bounds: _Optional[_Union[_process_pb2.Quota, _Mapping]] = ...) -> None: ...

class UpdateEnvelopeRequest(_message.Message):
    __slots__ = ("envelope_id", "version", "outputs_json", "metadata", "current_stage", "usage")
    class OutputsJsonEntry(_message.Message):
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
    ENVELOPE_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_JSON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    CURRENT_STAGE_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    envelope_id: str
    version: int
    outputs_json: _containers.ScalarMap[str, str]
    metadata: _containers.ScalarMap[str, str]
    current_stage: str
    usage: _process_pb2.Usage
    def __init__(self, envelope_id: _Optional[str] = ..., version: _Optional[int] = ..., outputs_json: _Optional[_Mapping[str, str]] = ..., metadata: _Optional[_Mapping[str, str]] = ..., current_stage: _Optional[str] = ..., usage: _Optional[_Union[_process_pb2.Usage, _Mapping]] = ...) -> None: ...

class CheckBoundsRequest(_message.Message):
    __slots__ = ("envelope_id",)
    ENVELOPE_ID_FIELD_NUMBER: _ClassVar[int]
    envelope_id: str
    def __init__(self, envelope_id: _Optional[str] = ...) -> None: ...

class BoundsCheckResult(_message.Message):
    __slots__ = ("within_bounds", "exceeded", "remaining")
    WITHIN_BOUNDS_FIELD_NUMBER: _ClassVar[int]
    EXCEEDED_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    within_bounds: bool
    exceeded: _containers.RepeatedScalarFieldContainer[str]
    remaining: _process_pb2.RemainingBudget
    def __init__(self, within_bounds: _Optional[bool] = ..., exceeded: _Optional[_Iterable[str]] = ..., remaining: _Optional[_Union[_process_pb2.RemainingBudget, _Mapping]] = ...) -> None: ...

class ExecutePipelineRequest(_message.Message):
    __slots__ = ("process", "pipeline", "inputs_json", "metadata")
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
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    PIPELINE_FIELD_NUMBER: _ClassVar[int]
    INPUTS_JSON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    process: _kernel_pb2.CreateProcessRequest
    pipeline: _orchestration_pb2.PipelineConfig
    inputs_json: _containers.ScalarMap[str, str]
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, process: _Optional[_Union[_kernel_pb2.CreateProcessRequest, _Mapping]] = ..., pipeline: _Optional[_Union[_orchestration_pb2.PipelineConfig, _Mapping]] = ..., inputs_json: _Optional[_Mapping[str, str]] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class PipelineEvent(_message.Message):
    __slots__ = ("kind", "sequence", "at_us", "pid", "stage", "step_id", "result", "interrupt", "process", "envelope")
    KIND_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    AT_US_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    ENVELOPE_FIELD_NUMBER: _ClassVar[int]
    kind: PipelineEventKind
    sequence: int
    at_us: int
    pid: str
    stage: str
    step_id: str
    result: _orchestration_pb2.AgentExecutionResult
    interrupt: _interrupt_pb2.FlowInterrupt
    process: _process_pb2.Process
    envelope: _envelope_pb2.Envelope
    def __init__(self, kind: _Optional[_Union[PipelineEventKind, str]] = ..., sequence: _Optional[int] = ..., at_us: _Optional[int] = ..., pid: _Optional[str] = ..., stage: _Optional[str] = ..., step_id: _Optional[str] = ..., result: _Optional[_Union[_orchestration_pb2.AgentExecutionResult, _Mapping]] = ..., interrupt: _Optional[_Union[_interrupt_pb2.FlowInterrupt, _Mapping]] = ..., process: _Optional[_Union[_process_pb2.Process, _Mapping]] = ..., envelope: _Optional[_Union[_envelope_pb2.Envelope, _Mapping]] = ...) -> None: ...

class ExecuteAgentRequest(_message.Message):
    __slots__ = ("agent", "envelope_id", "pid")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    ENVELOPE_ID_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    agent: _orchestration_pb2.AgentConfig
    envelope_id: str
    pid: str
    def __init__(self, agent: _Optional[_Union[_orchestration_pb2.AgentConfig, _Mapping]] = ..., envelope_id: _Optional[str] = ..., pid: _Optional[str] = ...) -> None: ...

class CloneEnvelopeRequest(_message.Message):
    __slots__ = ("envelope_id",)
    ENVELOPE_ID_FIELD_NUMBER: _ClassVar[int]
    envelope_id: str
    def __init__(self, envelope_id: _Optional[str] = ...) -> None: ...
