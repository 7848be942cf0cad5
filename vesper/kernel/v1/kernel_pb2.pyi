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

class KernelEventKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KERNEL_EVENT_KIND_UNSPECIFIED: _ClassVar[KernelEventKind]
    KERNEL_EVENT_KIND_PROCESS_CREATED: _ClassVar[KernelEventKind]
    KERNEL_EVENT_KIND_PROCESS_STATE_CHANGED: _ClassVar[KernelEventKind]
    KERNEL_EVENT_KIND_PROCESS_TERMINATED: _ClassVar[KernelEventKind]
    KERNEL_EVENT_KIND_RESOURCE_EXCEEDED: _ClassVar[KernelEventKind]
    KERNEL_EVENT_KIND_INTERRUPT_CREATED: _ClassVar[KernelEventKind]
    KERNEL_EVENT_KIND_INTERRUPT_RESOLVED: _ClassVar[KernelEventKind]
KERNEL_EVENT_KIND_UNSPECIFIED: KernelEventKind
KERNEL_EVENT_KIND_PROCESS_CREATED: KernelEventKind
KERNEL_EVENT_KIND_PROCESS_STATE_CHANGED: KernelEventKind
KERNEL_EVENT_KIND_PROCESS_TERMINATED: KernelEventKind
KERNEL_EVENT_KIND_RESOURCE_EXCEEDED: KernelEventKind
KERNEL_EVENT_KIND_INTERRUPT_CREATED: KernelEventKind
KERNEL_EVENT_KIND_INTERRUPT_RESOLVED: KernelEventKind

class CreateProcessRequest(_message.Message):
    __slots__ = ("request_id", "user_id", "session_id", "parent_pid", "priority", "quota")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_PID_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    QUOTA_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    user_id: str
    session_id: str
    parent_pid: str
    priority: _process_pb2.Priority
    quota: _process_pb2.Quota
    def __init__(self, request_id: _Optional[str] = ..., user_id: _Optional[str] = ..., session_id: _Optional[str] = ..., parent_pid: _Optional[str] = ..., priority: _Optional[_Union[_process_pb2.Priority, str]] = ..., quota: _Optional[_Union[_process_pb2.Quota, _Mapping]] = ...) -> None: ...

class CreateProcessResponse(_message.Message):
    __slots__ = ("process",)
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    process: _process_pb2.Process
    def __init__(self, process: _Optional[_Union[_process_pb2.Process, _Mapping]] = ...) -> None: ...

class GetProcessRequest(_message.Message):
    __slots__ = ("pid",)
    PID_FIELD_NUMBER: _ClassVar[int]
    pid: str
    def __init__(self, pid: _Optional[str] = ...) -> None: ...

class GetProcessResponse(_message.Message):
    __slots__ = ("process",)
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    process: _process_pb2.Process
    def __init__(self, process: _Optional[_Union[_process_pb2.Process, _Mapping]] = ...) -> None: ...

class ScheduleProcessRequest(_message.Message):
    __slots__ = ("pid",)
    PID_FIELD_NUMBER: _ClassVar[int]
    pid: str
    def __init__(self, pid: _Optional[str] = ...) -> None: ...

class ScheduleProcessResponse(_message.Message):
    __slots__ = ("process",)
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    process: _process_pb2.Process
    def __init__(self, process: _Optional[_Union[_process_pb2.Process, _Mapping]] = ...) -> None: ...

class GetNextRunnableRequest(_message.Message):
    __slots__ = ("worker", "lease_us")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    LEASE_US_FIELD_NUMBER: _ClassVar[int]
    worker: str
    lease_us: int
    def __init__(self, worker: _Optional[str] = ..., lease_us: _Optional[int] = ...) -> None: ...

class GetNextRunnableResponse(_message.Message):
    __slots__ = ("process",)
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    process: _process_pb2.Process
    def __init__(self, process: _Optional[_Union[_process_pb2.Process, _Mapping]] = ...) -> None: ...

class TransitionStateRequest(_message.Message):
    __slots__ = ("pid", "state", "terminal_reason", "message")
    PID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    TERMINAL_REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    pid: str
    state: _process_pb2.ProcessState
    terminal_reason: _process_pb2.TerminalReason
    message: str
    def __init__(self, pid: _Optional[str] = ..., state: _Optional[_Union[_process_pb2.ProcessState, str]] = ..., terminal_reason: _Optional[_Union[_process_pb2.TerminalReason, str]] = ..., message: _Optional[str] = ...) -> None: ...

class TransitionStateResponse(_message.Message):
    __slots__ = ("process",)
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    process: _process_pb2.Process
    def __init__(self, process: _Optional[_Union[_process_pb2.Process, _Mapping]] = ...) -> None: ...

class TerminateProcessRequest(_message.Message):
    __slots__ = ("pid", "reason", "message")
    PID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    pid: str
    reason: _process_pb2.TerminalReason
    message: str
    def __init__(self, pid: _Optional[str] = ..., reason: _Optional[_Union[_process_pb2.TerminalReason, str]] = ..., message: _Optional[str] = ...) -> None: ...

class TerminateProcessResponse(_message.Message):
    __slots__ = ("process",)
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    process: _process_pb2.Process
    def __init__(self, process: _Optional[_Union[_process_pb2.Process, _Mapping]] = ...) -> None: ...

class CheckQuotaRequest(_message.Message):
    __slots__ = ("pid",)
    PID_FIELD_NUMBER: _ClassVar[int]
    pid: str
    def __init__(self, pid: _Optional[str] = ...) -> None: ...

class CheckQuotaResponse(_message.Message):
    __slots__ = ("within_quota", "exceeded", "usage", "remaining")
    WITHIN_QUOTA_FIELD_NUMBER: _ClassVar[int]
    EXCEEDED_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    within_quota: bool
    exceeded: _containers.RepeatedScalarFieldContainer[str]
    usage: _process_pb2.Usage
    remaining: _process_pb2.RemainingBudget
    def __init__(self, within_quota: _Optional[bool] = ..., exceeded: _Optional[_Iterable[str]] = ..., usage: _Optional[_Union[_process_pb2.Usage, _Mapping]] = ..., remaining: _Optional[_Union[_process_pb2.RemainingBudget, _Mapping]] = ...) -> None: ...

class RecordUsageRequest(_message.Message):
    __slots__ = ("pid", "usage")
    PID_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    pid: str
    usage: _process_pb2.Usage
    def __init__(self, pid: _Optional[str] = ..., usage: _Optional[_Union[_process_pb2.Usage, _Mapping]] = ...) -> None: ...

class RecordUsageResponse(_message.Message):
    __slots__ = ("process", "remaining")
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    process: _process_pb2.Process
    remaining: _process_pb2.RemainingBudget
    def __init__(self, process: _Optional[_Union[_process_pb2.Process, _Mapping]] = ..., remaining: _Optional[_Union[_process_pb2.RemainingBudget, _Mapping]] = ...) -> None: ...

class CheckRateLimitRequest(_message.Message):
    __slots__ = ("user_id", "record")
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    user_id: str
    record: bool
    def __init__(self, user_id: _Optional[str] = ..., record: _Optional[bool] = ...) -> None: ...

class CheckRateLimitResponse(_message.Message):
    __slots__ = ("allowed", "exceeded", "retry_after_us", "usage")
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    EXCEEDED_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_US_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    allowed: bool
    exceeded: str
    retry_after_us: int
    usage: RateLimitUsage
    def __init__(self, allowed: _Optional[bool] = ..., exceeded: _Optional[str] = ..., retry_after_us: _Optional[int] = ..., usage: _Optional[_Union[RateLimitUsage, _Mapping]] = ...) -> None: ...

class RateLimitUsage(_message.Message):
    __slots__ = ("last_second", "last_minute", "last_hour")
    LAST_SECOND_FIELD_NUMBER: _ClassVar[int]
    LAST_MINUTE_FIELD_NUMBER: _ClassVar[int]
    LAST_HOUR_FIELD_NUMBER: _ClassVar[int]
    last_second: int
    last_minute: int
    last_hour: int
    def __init__(self, last_second: _Optional[int] = ..., last_minute: _Optional[int] = ..., last_hour: _Optional[int] = ...) -> None: ...

class ListProcessesRequest(_message.Message):
    __slots__ = ("state", "user_id", "session_id", "page_size", "page_token")
    STATE_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    state: _process_pb2.ProcessState
    user_id: str
    session_id: str
    page_size: int
    page_token: str
    def __init__(self, state: _Optional[_Union[_process_pb2.ProcessState, str]] = ..., user_id: _Optional[str] = ..., session_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListProcessesResponse(_message.Message):
    __slots__ = ("processes", "next_page_token")
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    processes: _containers.RepeatedCompositeFieldContainer[_process_pb2.Process]
    next_page_token: str
    def __init__(self, processes: _Optional[_Iterable[_Union[_process_pb2.Process, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetProcessCountsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetProcessCountsResponse(_message.Message):
    __slots__ = ("by_state", "total")
    class ByStateEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    BY_STATE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    by_state: _containers.ScalarMap[str, int]
    total: int
    def __init__(self, by_state: _Optional[_Mapping[str, int]] = ..., total: _Optional[int] = ...) -> None: ...

class SubmitRequest(_message.Message):
    __slots__ = ("process",)
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    process: CreateProcessRequest
    def __init__(self, process: _Optional[_Union[CreateProcessRequest, _Mapping]] = ...) -> None: ...

class SubmitResponse(_message.Message):
    __slots__ = ("process", "created")
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    process: _process_pb2.Process
    created: bool
    def __init__(self, process: _Optional[_Union[_process_pb2.Process, _Mapping]] = ..., created: _Optional[bool] = ...) -> None: ...

class RenewLeaseRequest(_message.Message):
    __slots__ = ("pid", "worker", "lease_us")
    PID_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    LEASE_US_FIELD_NUMBER: _ClassVar[int]
    pid: str
    worker: str
    lease_us: int
    def __init__(self, pid: _Optional[str] = ..., worker: _Optional[str] = ..., lease_us: _Optional[int] = ...) -> None: ...

class RenewLeaseResponse(_message.Message):
    __slots__ = ("lease_until_us",)
    LEASE_UNTIL_US_FIELD_NUMBER: _ClassVar[int]
    lease_until_us: int
    def __init__(self, lease_until_us: _Optional[int] = ...) -> None: ...

class RecordToolCallRequest(_message.Message):
    __slots__ = ("pid",)
    PID_FIELD_NUMBER: _ClassVar[int]
    pid: str
    def __init__(self, pid: _Optional[str] = ...) -> None: ...

class RecordToolCallResponse(_message.Message):
    __slots__ = ("process", "remaining")
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    process: _process_pb2.Process
    remaining: _process_pb2.RemainingBudget
    def __init__(self, process: _Optional[_Union[_process_pb2.Process, _Mapping]] = ..., remaining: _Optional[_Union[_process_pb2.RemainingBudget, _Mapping]] = ...) -> None: ...

class RecordAgentHopRequest(_message.Message):
    __slots__ = ("pid",)
    PID_FIELD_NUMBER: _ClassVar[int]
    pid: str
    def __init__(self, pid: _Optional[str] = ...) -> None: ...

class RecordAgentHopResponse(_message.Message):
    __slots__ = ("process", "remaining")
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    process: _process_pb2.Process
    remaining: _process_pb2.RemainingBudget
    def __init__(self, process: _Optional[_Union[_process_pb2.Process, _Mapping]] = ..., remaining: _Optional[_Union[_process_pb2.RemainingBudget, _Mapping]] = ...) -> None: ...

class GetRemainingBudgetRequest(_message.Message):
    __slots__ = ("pid",)
    PID_FIELD_NUMBER: _ClassVar[int]
    pid: str
    def __init__(self, pid: _Optional[str] = ...) -> None: ...

class GetRemainingBudgetResponse(_message.Message):
    __slots__ = ("remaining",)
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    remaining: _process_pb2.RemainingBudget
    def __init__(self, remaining: _Optional[_Union[_process_pb2.RemainingBudget, _Mapping]] = ...) -> None: ...

class GetSystemStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetSystemStatusResponse(_message.Message):
    __slots__ = ("uptime_us", "process_counts", "total_processes", "service_counts", "pending_interrupts", "live_sessions", "rate_limit_usage", "last_sequence", "bus", "draining")
    class ProcessCountsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class ServiceCountsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class RateLimitUsageEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: RateLimitUsage
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[RateLimitUsage, _Mapping]] = ...) -> None: ...
    UPTIME_US_FIELD_NUMBER: _ClassVar[int]
    PROCESS_COUNTS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_PROCESSES_FIELD_NUMBER: _ClassVar[int]
    SERVICE_COUNTS_FIELD_NUMBER: _ClassVar[int]
    PENDING_INTERRUPTS_FIELD_NUMBER: _ClassVar[int]
    LIVE_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    RATE_LIMIT_USAGE_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    BUS_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    uptime_us: int
    process_counts: _containers.ScalarMap[str, int]
    total_processes: int
    service_counts: _containers.ScalarMap[str, int]
    pending_interrupts: int
    live_sessions: int
    rate_limit_usage: _containers.MessageMap[str, RateLimitUsage]
    last_sequence: int
    bus: BusStatus
    draining: bool
    def __init__(self, uptime_us: _Optional[int] = ..., process_counts: _Optional[_Mapping[str, int]] = ..., total_processes: _Optional[int] = ..., service_counts: _Optional[_Mapping[str, int]] = ..., pending_interrupts: _Optional[int] = ..., live_sessions: _Optional[int] = ..., rate_limit_usage: _Optional[_Mapping[str, RateLimitUsage]] = ..., last_sequence: _Optional[int] = ..., bus: _Optional[_Union[BusStatus, _Mapping]] = ..., draining: _Optional[bool] = ...) -> None: ...

class BusStatus(_message.Message):
    __slots__ = ("subscribers", "topics", "queued", "open_queries")
    SUBSCRIBERS_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    OPEN_QUERIES_FIELD_NUMBER: _ClassVar[int]
    subscribers: int
    topics: int
    queued: int
    open_queries: int
    def __init__(self, subscribers: _Optional[int] = ..., topics: _Optional[int] = ..., queued: _Optional[int] = ..., open_queries: _Optional[int] = ...) -> None: ...

class GetRequestStatusRequest(_message.Message):
    __slots__ = ("pid",)
    PID_FIELD_NUMBER: _ClassVar[int]
    pid: str
    def __init__(self, pid: _Optional[str] = ...) -> None: ...

class GetRequestStatusResponse(_message.Message):
    __slots__ = ("process", "envelope", "pending_interrupt", "remaining")
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    ENVELOPE_FIELD_NUMBER: _ClassVar[int]
    PENDING_INTERRUPT_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    process: _process_pb2.Process
    envelope: _envelope_pb2.Envelope
    pending_interrupt: _interrupt_pb2.FlowInterrupt
    remaining: _process_pb2.RemainingBudget
    def __init__(self, process: _Optional[_Union[_process_pb2.Process, _Mapping]] = ..., envelope: _Optional[_Union[_envelope_pb2.Envelope, _Mapping]] = ..., pending_interrupt: _Optional[_Union[_interrupt_pb2.FlowInterrupt, _Mapping]] = ..., remaining: _Optional[_Union[_process_pb2.RemainingBudget, _Mapping]] = ...) -> None: ...

class SubscribeEventsRequest(_message.Message):
    __slots__ = ("pid", "kinds", "after_sequence")
    PID_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    AFTER_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    pid: str
    kinds: _containers.RepeatedScalarFieldContainer[KernelEventKind]
    after_sequence: int
    def __init__(self, pid: _Optional[str] = ..., kinds: _Optional[_Iterable[_Union[KernelEventKind, str]]] = ..., after_sequence: _Optional[int] = ...) -> None: ...

class KernelEvent(_message.Message):
    __slots__ = ("sequence", "at_us", "kind", "pid", "process", "old_state", "resource", "interrupt")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    AT_US_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    OLD_STATE_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    at_us: int
    kind: KernelEventKind
    pid: str
    process: _process_pb2.Process
    old_state: _process_pb2.ProcessState
    resource: str
    interrupt: _interrupt_pb2.FlowInterrupt
    def __init__(self, sequence: _Optional[int] = ..., at_us: _Optional[int] = ..., kind: _Optional[_Union[KernelEventKind, str]] = ..., pid: _Optional[str] = ..., process: _Optional[_Union[_process_pb2.Process, _Mapping]] = ..., old_state: _Optional[_Union[_process_pb2.ProcessState, str]] = ..., resource: _Optional[str] = ..., interrupt: _Optional[_Union[_interrupt_pb2.FlowInterrupt, _Mapping]] = ...) -> None: ...

class CleanupRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CleanupResponse(_message.Message):
    __slots__ = ("expired_interrupts", "returned_processes", "timed_out_processes", "removed_processes")
    EXPIRED_INTERRUPTS_FIELD_NUMBER: _ClassVar[int]
    RETURNED_PROCESSES_FIELD_NUMBER: _ClassVar[int]
    TIMED_OUT_PROCESSES_FIELD_NUMBER: _ClassVar[int]
    REMOVED_PROCESSES_FIELD_NUMBER: _ClassVar[int]
    expired_interrupts: int
    returned_processes: int
    timed_out_processes: int
    removed_processes: int
    def __init__(self, expired_interrupts: _Optional[int] = ..., returned_processes: _Optional[int] = ..., timed_out_processes: _Optional[int] = ..., removed_processes: _Optional[int] = ...) -> None: ...
