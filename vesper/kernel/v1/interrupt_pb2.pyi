from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class InterruptKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INTERRUPT_KIND_UNSPECIFIED: _ClassVar[InterruptKind]
    INTERRUPT_KIND_CLARIFICATION: _ClassVar[InterruptKind]
    INTERRUPT_KIND_CONFIRMATION: _ClassVar[InterruptKind]
    INTERRUPT_KIND_AGENT_REVIEW: _ClassVar[InterruptKind]
    INTERRUPT_KIND_CHECKPOINT: _ClassVar[InterruptKind]
    INTERRUPT_KIND_RESOURCE_EXHAUSTED: _ClassVar[InterruptKind]
    INTERRUPT_KIND_TIMEOUT: _ClassVar[InterruptKind]
    INTERRUPT_KIND_SYSTEM_ERROR: _ClassVar[InterruptKind]

class InterruptStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INTERRUPT_STATUS_UNSPECIFIED: _ClassVar[InterruptStatus]
    INTERRUPT_STATUS_PENDING: _ClassVar[InterruptStatus]
    INTERRUPT_STATUS_RESOLVED: _ClassVar[InterruptStatus]
    INTERRUPT_STATUS_EXPIRED: _ClassVar[InterruptStatus]
    INTERRUPT_STATUS_CANCELLED: _ClassVar[InterruptStatus]
INTERRUPT_KIND_UNSPECIFIED: InterruptKind
INTERRUPT_KIND_CLARIFICATION: InterruptKind
INTERRUPT_KIND_CONFIRMATION: InterruptKind
INTERRUPT_KIND_AGENT_REVIEW: InterruptKind
INTERRUPT_KIND_CHECKPOINT: InterruptKind
INTERRUPT_KIND_RESOURCE_EXHAUSTED: InterruptKind
INTERRUPT_KIND_TIMEOUT: InterruptKind
INTERRUPT_KIND_SYSTEM_ERROR: InterruptKind
INTERRUPT_STATUS_UNSPECIFIED: InterruptStatus
INTERRUPT_STATUS_PENDING: InterruptStatus
INTERRUPT_STATUS_RESOLVED: InterruptStatus
INTERRUPT_STATUS_EXPIRED: InterruptStatus
INTERRUPT_STATUS_CANCELLED: InterruptStatus

class FlowInterrupt(_message.Message):
    __slots__ = ("interrupt_id", "pid", "kind", "status", "message", "data_json", "run_id", "created_us", "expires_us", "ended_us", "response", "stage", "step_id")
    INTERRUPT_ID_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DATA_JSON_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_US_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_US_FIELD_NUMBER: _ClassVar[int]
    ENDED_US_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    interrupt_id: str
    pid: str
    kind: InterruptKind
    status: InterruptStatus
    message: str
    data_json: str
    run_id: str
    created_us: int
    expires_us: int
    ended_us: int
    response: InterruptResponse
    stage: str
    step_id: str
    def __init__(self, interrupt_id: _Optional[str] = ..., pid: _Optional[str] = ..., kind: _Optional[_Union[InterruptKind, str]] = ..., status: _Optional[_Union[InterruptStatus, str]] = ..., message: _Optional[str] = ..., data_json: _Optional[str] = ..., run_id: _Optional[str] = ..., created_us: _Optional[int] = ..., expires_us: _Optional[int] = ..., ended_us: _Optional[int] = ..., response: _Optional[_Union[InterruptResponse, _Mapping]] = ..., stage: _Optional[str] = ..., step_id: _Optional[str] = ...) -> None: ...

class InterruptResponse(_message.Message):
    __slots__ = ("value_json", "by")
    VALUE_JSON_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    value_json: str
    by: str
    def __init__(self, value_json: _Optional[str] = ..., by: _Optional[str] = ...) -> None: ...

class CreateInterruptRequest(_message.Message):
    __slots__ = ("pid", "kind", "message", "data_json", "run_id", "ttl_us")
    PID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DATA_JSON_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TTL_US_FIELD_NUMBER: _ClassVar[int]
    pid: str
    kind: InterruptKind
    message: str
    data_json: str
    run_id: str
    ttl_us: int
    def __init__(self, pid: _Optional[str] = ..., kind: _Optional[_Union[InterruptKind, str]] = ..., message: _Optional[str] = ..., data_json: _Optional[str] = ..., run_id: _Optional[str] = ..., ttl_us: _Optional[int] = ...) -> None: ...

class CreateInterruptResponse(_message.Message):
    __slots__ = ("interrupt",)
    INTERRUPT_FIELD_NUMBER: _ClassVar[int]
    interrupt: FlowInterrupt
    def __init__(self, interrupt: _Optional[_Union[FlowInterrupt, _Mapping]] = ...) -> None: ...

class GetInterruptRequest(_message.Message):
    __slots__ = ("interrupt_id",)
    INTERRUPT_ID_FIELD_NUMBER: _ClassVar[int]
    interrupt_id: str
    def __init__(self, interrupt_id: _Optional[str] = ...) -> None: ...

class GetInterruptResponse(_message.Message):
    __slots__ = ("interrupt",)
    INTERRUPT_FIELD_NUMBER: _ClassVar[int]
    interrupt: FlowInterrupt
    def __init__(self, interrupt: _Optional[_Union[FlowInterrupt, _Mapping]] = ...) -> None: ...

class ResolveInterruptRequest(_message.Message):
    __slots__ = ("interrupt_id", "response")
    INTERRUPT_ID_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    interrupt_id: str
    response: InterruptResponse
    def __init__(self, interrupt_id: _Optional[str] = ..., response: _Optional[_Union[InterruptResponse, _Mapping]] = ...) -> None: ...

class ResolveInterruptResponse(_message.Message):
    __slots__ = ("interrupt",)
    INTERRUPT_FIELD_NUMBER: _ClassVar[int]
    interrupt: FlowInterrupt
    def __init__(self, interrupt: _Optional[_Union[FlowInterrupt, _Mapping]] = ...) -> None: ...

class CancelInterruptRequest(_message.Message):
    __slots__ = ("interrupt_id", "by")
    INTERRUPT_ID_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    interrupt_id: str
    by: str
    def __init__(self, interrupt_id: _Optional[str] = ..., by: _Optional[str] = ...) -> None: ...

class CancelInterruptResponse(_message.Message):
    __slots__ = ("interrupt",)
    INTERRUPT_FIELD_NUMBER: _ClassVar[int]
    interrupt: FlowInterrupt
    def __init__(self, interrupt: _Optional[_Union[FlowInterrupt, _Mapping]] = ...) -> None: ...

class ListInterruptsRequest(_message.Message):
    __slots__ = ("pid", "status", "kind", "page_size", "page_token")
    PID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    pid: str
    status: InterruptStatus
    kind: InterruptKind
    page_size: int
    page_token: str
    def __init__(self, pid: _Optional[str] = ..., status: _Optional[_Union[InterruptStatus, str]] = ..., kind: _Optional[_Union[InterruptKind, str]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListInterruptsResponse(_message.Message):
    __slots__ = ("interrupts", "next_page_token")
    INTERRUPTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    interrupts: _containers.RepeatedCompositeFieldContainer[FlowInterrupt]
    next_page_token: str
    def __init__(self, interrupts: _Optional[_Iterable[_Union[FlowInterrupt, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
