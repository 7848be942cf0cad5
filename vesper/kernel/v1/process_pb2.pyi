from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ProcessState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROCESS_STATE_UNSPECIFIED: _ClassVar[ProcessState]
    PROCESS_STATE_NEW: _ClassVar[ProcessState]
    PROCESS_STATE_READY: _ClassVar[ProcessState]
    PROCESS_STATE_RUNNING: _ClassVar[ProcessState]
    PROCESS_STATE_WAITING: _ClassVar[ProcessState]
    PROCESS_STATE_BLOCKED: _ClassVar[ProcessState]
    PROCESS_STATE_TERMINATED: _ClassVar[ProcessState]
    PROCESS_STATE_ZOMBIE: _ClassVar[ProcessState]

class Priority(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PRIORITY_UNSPECIFIED: _ClassVar[Priority]
    PRIORITY_REALTIME: _ClassVar[Priority]
    PRIORITY_HIGH: _ClassVar[Priority]
    PRIORITY_NORMAL: _ClassVar[Priority]
    PRIORITY_LOW: _ClassVar[Priority]
    PRIORITY_IDLE: _ClassVar[Priority]

class TerminalReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TERMINAL_REASON_UNSPECIFIED: _ClassVar[TerminalReason]
    TERMINAL_REASON_COMPLETED: _ClassVar[TerminalReason]
    TERMINAL_REASON_AGENT_FAILED: _ClassVar[TerminalReason]
    TERMINAL_REASON_CANCELLED: _ClassVar[TerminalReason]
    TERMINAL_REASON_QUOTA_EXCEEDED: _ClassVar[TerminalReason]
    TERMINAL_REASON_TIMED_OUT: _ClassVar[TerminalReason]
    TERMINAL_REASON_EDGE_LIMIT_EXCEEDED: _ClassVar[TerminalReason]
    TERMINAL_REASON_ROUTING_FAILED: _ClassVar[TerminalReason]
    TERMINAL_REASON_INTERRUPT_EXPIRED: _ClassVar[TerminalReason]
PROCESS_STATE_UNSPECIFIED: ProcessState
PROCESS_STATE_NEW: ProcessState
PROCESS_STATE_READY: ProcessState
PROCESS_STATE_RUNNING: ProcessState
PROCESS_STATE_WAITING: ProcessState
PROCESS_STATE_BLOCKED: ProcessState
PROCESS_STATE_TERMINATED: ProcessState
PROCESS_STATE_ZOMBIE: ProcessState
PRIORITY_UNSPECIFIED: Priority
PRIORITY_REALTIME: Priority
PRIORITY_HIGH: Priority
PRIORITY_NORMAL: Priority
PRIORITY_LOW: Priority
PRIORITY_IDLE: Priority
TERMINAL_REASON_UNSPECIFIED: TerminalReason
TERMINAL_REASON_COMPLETED: TerminalReason
TERMINAL_REASON_AGENT_FAILED: TerminalReason
TERMINAL_REASON_CANCELLED: TerminalReason
TERMINAL_REASON_QUOTA_EXCEEDED: TerminalReason
TERMINAL_REASON_TIMED_OUT: TerminalReason
TERMINAL_REASON_EDGE_LIMIT_EXCEEDED: TerminalReason
TERMINAL_REASON_ROUTING_FAILED: TerminalReason
TERMINAL_REASON_INTERRUPT_EXPIRED: TerminalReason

class Quota(_message.Message):
    __slots__ = ("max_llm_calls", "max_tool_calls", "max_agent_hops", "max_iterations", "max_tokens_in", "max_tokens_out", "timeout_us")
    MAX_LLM_CALLS_FIELD_NUMBER: _ClassVar[int]
    MAX_TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    MAX_AGENT_HOPS_FIELD_NUMBER: _ClassVar[int]
    MAX_ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_IN_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_OUT_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_US_FIELD_NUMBER: _ClassVar[int]
    max_llm_calls: int
    max_tool_calls: int
    max_agent_hops: int
    max_iterations: int
    max_tokens_in: int
    max_tokens_out: int
    timeout_us: int
    def __init__(self, max_llm_calls: _Optional[int] = ..., max_tool_calls: _Optional[int] = ..., max_agent_hops: _Optional[int] = ..., max_iterations: _Optional[int] = ..., max_tokens_in: _Optional[int] = ..., max_tokens_out: _Optional[int] = ..., timeout_us: _Optional[int] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("llm_calls", "tool_calls", "agent_hops", "iterations", "tokens_in", "tokens_out")
    LLM_CALLS_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    AGENT_HOPS_FIELD_NUMBER: _ClassVar[int]
    ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_IN_FIELD_NUMBER: _ClassVar[int]
    TOKENS_OUT_FIELD_NUMBER: _ClassVar[int]
    llm_calls: int
    tool_calls: int
    agent_hops: int
    iterations: int
    tokens_in: int
    tokens_out: int
    def __init__(self, llm_calls: _Optional[int] = ..., tool_calls: _Optional[int] = ..., agent_hops: _Optional[int] = ..., iterations: _Optional[int] = ..., tokens_in: _Optional[int] = ..., tokens_out: _Optional[int] = ...) -> None: ...

class RemainingBudget(_message.Message):
    __slots__ = ("llm_calls_remaining", "tool_calls_remaining", "agent_hops_remaining", "iterations_remaining", "tokens_in_remaining", "tokens_out_remaining", "time_remaining_us")
    LLM_CALLS_REMAINING_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALLS_REMAINING_FIELD_NUMBER: _ClassVar[int]
    AGENT_HOPS_REMAINING_FIELD_NUMBER: _ClassVar[int]
    ITERATIONS_REMAINING_FIELD_NUMBER: _ClassVar[int]
    TOKENS_IN_REMAINING_FIELD_NUMBER: _ClassVar[int]
    TOKENS_OUT_REMAINING_FIELD_NUMBER: _ClassVar[int]
    TIME_REMAINING_US_FIELD_NUMBER: _ClassVar[int]
    llm_calls_remaining: int
    tool_calls_remaining: int
    agent_hops_remaining: int
    iterations_remaining: int
    tokens_in_remaining: int
    tokens_out_remaining: int
    time_remaining_us: int
    def __init__(self, llm_calls_remaining: _Optional[int] = ..., tool_calls_remaining: _Optional[int] = ..., agent_hops_remaining: _Optional[int] = ..., iterations_remaining: _Optional[int] = ..., tokens_in_remaining: _Optional[int] = ..., tokens_out_remaining: _Optional[int] = ..., time_remaining_us: _Optional[int] = ...) -> None: ...

class Process(_message.Message):
    __slots__ = ("pid", "request_id", "user_id", "session_id", "parent_pid", "state", "priority", "quota", "usage", "created_us", "started_us", "changed_us", "ended_us", "terminal_reason", "terminal_message", "worker", "lease_until_us", "pending_interrupt_id")
    PID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_PID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    QUOTA_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    CREATED_US_FIELD_NUMBER: _ClassVar[int]
    STARTED_US_FIELD_NUMBER: _ClassVar[int]
    CHANGED_US_FIELD_NUMBER: _ClassVar[int]
    ENDED_US_FIELD_NUMBER: _ClassVar[int]
    TERMINAL_REASON_FIELD_NUMBER: _ClassVar[int]
    TERMINAL_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    LEASE_UNTIL_US_FIELD_NUMBER: _ClassVar[int]
    PENDING_INTERRUPT_ID_FIELD_NUMBER: _ClassVar[int]
    pid: str
    request_id: str
    user_id: str
    session_id: str
    parent_pid: str
    state: ProcessState
    priority: Priority
    quota: Quota
    usage: Usage
    created_us: int
    started_us: int
    changed_us: int
    ended_us: int
    terminal_reason: TerminalReason
    terminal_message: str
    worker: str
    lease_until_us: int
    pending_interrupt_id: str
    def __init__(self, pid: _Optional[str] = ..., request_id: _Optional[str] = ..., user_id: _Optional[str] = ..., session_id: _Optional[str] = ..., parent_pid: _Optional[str] = ..., state: _Optional[_Union[ProcessState, str]] = ..., priority: _Optional[_Union[Priority, str]] = ..., quota: _Optional[_Union[Quota, _Mapping]] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., created_us: _Optional[int] = ..., started_us: _Optional[int] = ..., changed_us: _Optional[int] = ..., ended_us: _Optional[int] = ..., terminal_reason: _Optional[_Union[TerminalReason, str]] = ..., terminal_message: _Optional[str] = ..., worker: _Optional[str] = ..., lease_until_us: _Optional[int] = ..., pending_interrupt_id: _Optional[str] = ...) -> None: ...
