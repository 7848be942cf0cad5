from vesper.kernel.v1 import process_pb2 as _process_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Envelope(_message.Message):
    __slots__ = ("envelope_id", "request_id", "user_id", "session_id", "inputs_json", "outputs_json", "current_stage", "history", "metadata", "bounds", "usage", "created_us", "parent_envelope_id", "version")
    class InputsJsonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
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
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    INPUTS_JSON_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_JSON_FIELD_NUMBER: _ClassVar[int]
    CURRENT_STAGE_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    BOUNDS_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    CREATED_US_FIELD_NUMBER: _ClassVar[int]
    PARENT_ENVELOPE_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    envelope_id: str
    request_id: str
    user_id: str
    session_id: str
    inputs_json: _containers.ScalarMap[str, str]
    outputs_json: _containers.ScalarMap[str, str]
    current_stage: str
    history: _containers.RepeatedCompositeFieldContainer[HistoryEntry]
    metadata: _containers.ScalarMap[str, str]
    bounds: _process_pb2.Quota
    usage: _process_pb2.Usage
    created_us: int
    parent_envelope_id: str
    version: int
    def __init__(self, envelope_id: _Optional[str] = ..., request_id: _Optional[str] = ..., user_id: _Optional[str] = ..., session_id: _Optional[str] = ..., inputs_json: _Optional[_Mapping[str, str]] = ..., outputs_json: _Optional[_Mapping[str, str]] = ..., current_stage: _Optional[str] = ..., history: _Optional[_Iterable[_Union[HistoryEntry, _Mapping]]] = ..., metadata: _Optional[_Mapping[str, str]] = ..., bounds: _Optional[_Union[_process_pb2.Quota, _Mapping]] = ..., usage: _Optional[_Union[_process_pb2.Usage, _Mapping]] = ..., created_us: _Optional[int] = ..., parent_envelope_id: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class HistoryEntry(_message.Message):
    __slots__ = ("stage", "step_id", "started_us", "ended_us", "error")
    STAGE_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    STARTED_US_FIELD_NUMBER: _ClassVar[int]
    ENDED_US_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    stage: str
    step_id: str
    started_us: int
    ended_us: int
    error: str
    def __init__(self, stage: _Optional[str] = ..., step_id: _Optional[str] = ..., started_us: _Optional[int] = ..., ended_us: _Optional[int] = ..., error: _Optional[str] = ...) -> None: ...
