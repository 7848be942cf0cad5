"""Calls that have to be refused, derived from one that succeeds by the descriptors of its request."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from tests.support.work.reflected import Json

NO_VALUE = 99
"""A number that no enumeration has."""
OPTIONAL = {"parent_pid", "ListInterruptsRequest.pid", "ExecuteAgentRequest.pid", "SubscribeEventsRequest.pid"}
THINGS = {
    "pid",
    "parent_pid",
    "interrupt_id",
    "envelope_id",
    "step_id",
    "subscription_id",
    "query_id",
    "recipient",
    "model",
}
"""Members that name a thing of the kernel; also `service`, and `name` of a request."""
AMOUNTS = {
    "agent_hops",
    "iterations",
    "lease_us",
    "llm_calls",
    "page_size",
    "timeout_us",
    "tokens_in",
    "tokens_out",
    "tool_calls",
    "ttl_us",
}
EXTREMES = (-(2**63), -(2**31), -1, 2**31 - 1, 2**63 - 1)
_WIDE = (FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_UINT64)
_NARROW = (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_UINT32)


def refused(of: Descriptor, request: Json) -> Iterator[tuple[str, str, Json]]:
    """Return what was changed, the expected code, and the request."""
    for field in of.fields:
        name, given = str(field.name), field.name in request
        if field.type == FieldDescriptor.TYPE_ENUM:
            yield name, "INVALID_ARGUMENT", request | {name: [NO_VALUE] if field.is_repeated else NO_VALUE}
        elif name.endswith("_json") and given:
            is_map = isinstance(request[name], dict)
            yield name, "INVALID_ARGUMENT", request | {name: {"a": "{"} if is_map else "{"}
        elif given and _is_thing(of, field):
            yield name, "NOT_FOUND", request | {name: "zzz"}
            if not {name, f"{of.name}.{name}"} & OPTIONAL:
                yield name, "INVALID_ARGUMENT", request | {name: ""}
        elif given and (name in AMOUNTS or name.startswith("max_")):
            yield name, "INVALID_ARGUMENT", request | {name: -1}
        elif given and isinstance(request[name], dict) and name != "pipeline" and field.message_type is not None:
            if not field.message_type.GetOptions().map_entry:
                for place, code, changed in refused(field.message_type, request[name]):
                    yield f"{name}.{place}", code, request | {name: changed}


def extreme(of: Descriptor, request: Json) -> Iterator[Json]:
    """Return requests with an extreme number in each place that takes one."""
    for field in of.fields:
        name = str(field.name)
        others = field.containing_oneof.fields if field.containing_oneof is not None else ()
        if field.is_repeated or any(each.name in request for each in others if each.name != name):
            continue
        if field.type in (*_WIDE, *_NARROW):
            fitting = [each for each in EXTREMES if field.type in _WIDE or abs(each) <= 2**31]
            yield from (request | {name: each} for each in fitting)
        elif field.message_type is not None and field.message_type.file.package == of.file.package:
            for changed in extreme(field.message_type, request.get(name, {})):
                yield request | {name: changed}


def _is_thing(of: Descriptor, field: FieldDescriptor) -> bool:
    if field.name == "service":
        return bool(field.type == FieldDescriptor.TYPE_STRING and of.name != "HealthCheckRequest")
    return field.name in THINGS or (field.name == "name" and str(of.name).endswith("Request"))
