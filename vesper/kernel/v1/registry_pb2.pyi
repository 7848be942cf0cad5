from vesper.kernel.v1 import envelope_pb2 as _envelope_pb2
from vesper.kernel.v1 import orchestration_pb2 as _orchestration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ServiceType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SERVICE_TYPE_UNSPECIFIED: _ClassVar[ServiceType]
    SERVICE_TYPE_FLOW: _ClassVar[ServiceType]
    SERVICE_TYPE_WORKER: _ClassVar[ServiceType]
    SERVICE_TYPE_VERTICAL: _ClassVar[ServiceType]
    SERVICE_TYPE_INFERENCE: _ClassVar[ServiceType]

class ServiceStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SERVICE_STATUS_UNSPECIFIED: _ClassVar[ServiceStatus]
    SERVICE_STATUS_HEALTHY: _ClassVar[ServiceStatus]
    SERVICE_STATUS_DEGRADED: _ClassVar[ServiceStatus]
    SERVICE_STATUS_UNHEALTHY: _ClassVar[ServiceStatus]
    SERVICE_STATUS_UNKNOWN: _ClassVar[ServiceStatus]
SERVICE_TYPE_UNSPECIFIED: ServiceType
SERVICE_TYPE_FLOW: ServiceType
SERVICE_TYPE_WORKER: ServiceType
SERVICE_TYPE_VERTICAL: ServiceType
SERVICE_TYPE_INFERENCE: ServiceType
SERVICE_STATUS_UNSPECIFIED: ServiceStatus
SERVICE_STATUS_HEALTHY: ServiceStatus
SERVICE_STATUS_DEGRADED: ServiceStatus
SERVICE_STATUS_UNHEALTHY: ServiceStatus
SERVICE_STATUS_UNKNOWN: ServiceStatus

class ServiceInfo(_message.Message):
    __slots__ = ("name", "type", "version", "capabilities", "max_concurrent", "current_load", "status", "last_health_check_us", "metadata", "workers")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENT_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LOAD_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    LAST_HEALTH_CHECK_US_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: ServiceType
    version: str
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    max_concurrent: int
    current_load: int
    status: ServiceStatus
    last_health_check_us: int
    metadata: _containers.ScalarMap[str, str]
    workers: int
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[ServiceType, str]] = ..., version: _Optional[str] = ..., capabilities: _Optional[_Iterable[str]] = ..., max_concurrent: _Optional[int] = ..., current_load: _Optional[int] = ..., status: _Optional[_Union[ServiceStatus, str]] = ..., last_health_check_us: _Optional[int] = ..., metadata: _Optional[_Mapping[str, str]] = ..., workers: _Optional[int] = ...) -> None: ...

class RegisterServiceRequest(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: ServiceInfo
    def __init__(self, service: _Optional[_Union[ServiceInfo, _Mapping]] = ...) -> None: ...

class RegisterServiceResponse(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: ServiceInfo
    def __init__(self, service: _Optional[_Union[ServiceInfo, _Mapping]] = ...) -> None: ...

class UnregisterServiceRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class UnregisterServiceResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListServicesRequest(_message.Message):
    __slots__ = ("type",)
    TYPE_FIELD_NUMBER: _ClassVar[int]
    type: ServiceType
    def __init__(self, type: _Optional[_Union[ServiceType, str]] = ...) -> None: ...

class ListServicesResponse(_message.Message):
    __slots__ = ("services",)
    SERVICES_FIELD_NUMBER: _ClassVar[int]
    services: _containers.RepeatedCompositeFieldContainer[ServiceInfo]
    def __init__(self, services: _Optional[_Iterable[_Union[ServiceInfo, _Mapping]]] = ...) -> None: ...

class UpdateHealthRequest(_message.Message):
    __slots__ = ("name", "status")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    name: str
    status: ServiceStatus
    def __init__(self, name: _Optional[str] = ..., status: _Optional[_Union[ServiceStatus, str]] = ...) -> None: ...

class UpdateHealthResponse(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: ServiceInfo
    def __init__(self, service: _Optional[_Union[ServiceInfo, _Mapping]] = ...) -> None: ...

class CanAcceptRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class CanAcceptResponse(_message.Message):
    __slots__ = ("can_accept", "reason")
    CAN_ACCEPT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    can_accept: bool
    reason: str
    def __init__(self, can_accept: _Optional[bool] = ..., reason: _Optional[str] = ...) -> None: ...

class AcquireSlotRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class AcquireSlotResponse(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: ServiceInfo
    def __init__(self, service: _Optional[_Union[ServiceInfo, _Mapping]] = ...) -> None: ...

class ReleaseSlotRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ReleaseSlotResponse(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: ServiceInfo
    def __init__(self, service: _Optional[_Union[ServiceInfo, _Mapping]] = ...) -> None: ...

class ServiceRequest(_message.Message):
    __slots__ = ("pid", "envelope", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PID_FIELD_NUMBER: _ClassVar[int]
    ENVELOPE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    pid: str
    envelope: _envelope_pb2.Envelope
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, pid: _Optional[str] = ..., envelope: _Optional[_Union[_envelope_pb2.Envelope, _Mapping]] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ServiceResponse(_message.Message):
    __slots__ = ("envelope", "error", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ENVELOPE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    envelope: _envelope_pb2.Envelope
    error: str
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, envelope: _Optional[_Union[_envelope_pb2.Envelope, _Mapping]] = ..., error: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class DispatchRequest(_message.Message):
    __slots__ = ("service", "request")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    service: str
    request: ServiceRequest
    def __init__(self, service: _Optional[str] = ..., request: _Optional[_Union[ServiceRequest, _Mapping]] = ...) -> None: ...

class DispatchResponse(_message.Message):
    __slots__ = ("response",)
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    response: ServiceResponse
    def __init__(self, response: _Optional[_Union[ServiceResponse, _Mapping]] = ...) -> None: ...

class DispatchInferenceRequest(_message.Message):
    __slots__ = ("model", "input_json", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    MODEL_FIELD_NUMBER: _ClassVar[int]
    INPUT_JSON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    model: str
    input_json: str
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, model: _Optional[str] = ..., input_json: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class DispatchInferenceResponse(_message.Message):
    __slots__ = ("output_json", "service")
    OUTPUT_JSON_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    output_json: str
    service: str
    def __init__(self, output_json: _Optional[str] = ..., service: _Optional[str] = ...) -> None: ...

class GetServiceStatsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetServiceStatsResponse(_message.Message):
    __slots__ = ("total_services", "by_type", "by_status", "total_load", "total_capacity")
    class ByTypeEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class ByStatusEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    TOTAL_SERVICES_FIELD_NUMBER: _ClassVar[int]
    BY_TYPE_FIELD_NUMBER: _ClassVar[int]
    BY_STATUS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_LOAD_FIELD_NUMBER: _ClassVar[int]
    TOTAL_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    total_services: int
    by_type: _containers.ScalarMap[str, int]
    by_status: _containers.ScalarMap[str, int]
    total_load: int
    total_capacity: int
    def __init__(self, total_services: _Optional[int] = ..., by_type: _Optional[_Mapping[str, int]] = ..., by_status: _Optional[_Mapping[str, int]] = ..., total_load: _Optional[int] = ..., total_capacity: _Optional[int] = ...) -> None: ...

class WorkRequest(_message.Message):
    __slots__ = ("start", "result", "heartbeat")
    START_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    start: WorkerStart
    result: WorkResult
    heartbeat: WorkerHeartbeat
    def __init__(self, start: _Optional[_Union[WorkerStart, _Mapping]] = ..., result: _Optional[_Union[WorkResult, _Mapping]] = ..., heartbeat: _Optional[_Union[WorkerHeartbeat, _Mapping]] = ...) -> None: ...

class WorkerStart(_message.Message):
    __slots__ = ("service", "worker", "max_concurrent")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENT_FIELD_NUMBER: _ClassVar[int]
    service: str
    worker: str
    max_concurrent: int
    def __init__(self, service: _Optional[str] = ..., worker: _Optional[str] = ..., max_concurrent: _Optional[int] = ...) -> None: ...

class WorkerHeartbeat(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WorkResult(_message.Message):
    __slots__ = ("work_id", "response", "output_json", "agent", "error")
    WORK_ID_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_JSON_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    work_id: str
    response: ServiceResponse
    output_json: str
    agent: _orchestration_pb2.AgentExecutionResult
    error: str
    def __init__(self, work_id: _Optional[str] = ..., response: _Optional[_Union[ServiceResponse, _Mapping]] = ..., output_json: _Optional[str] = ..., agent: _Optional[_Union[_orchestration_pb2.AgentExecutionResult, _Mapping]] = ..., error: _Optional[str] = ...) -> None: ...

class WorkResponse(_message.Message):
    __slots__ = ("work_id", "request", "inference", "step")
    WORK_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    INFERENCE_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    work_id: str
    request: ServiceRequest
    inference: InferenceRequest
    step: _orchestration_pb2.Instruction
    def __init__(self, work_id: _Optional[str] = ..., request: _Optional[_Union[ServiceRequest, _Mapping]] = ..., inference: _Optional[_Union[InferenceRequest, _Mapping]] = ..., step: _Optional[_Union[_orchestration_pb2.Instruction, _Mapping]] = ...) -> None: ...

class InferenceRequest(_message.Message):
    __slots__ = ("model", "input_json", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    MODEL_FIELD_NUMBER: _ClassVar[int]
    INPUT_JSON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    model: str
    input_json: str
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, model: _Optional[str] = ..., input_json: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...
