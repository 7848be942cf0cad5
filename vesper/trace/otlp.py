"""Traces as OTLP JSON for OpenTelemetry: one span per execution and one per request.

Attribute names are promises of the founding document (`sir.node_id`, `sir.execution_path`, …). No values are exported,
so sensitive data stays private.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from vesper.engines.outcome import Returned, outcome_code
from vesper.host.stub_answers import plain_step
from vesper.observe import attributes as names
from vesper.trace.masking import masked_trace
from vesper.trace.model import Exchange, Trace
from vesper.trace.programs import compiled_of

_INTERNAL, _CLIENT = 1, 3
_OK, _ERROR = 1, 2
_OTLP_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)


def otlp_document(traces: Iterable[Trace], version: str) -> dict[str, Any]:
    """Return an `ExportTraceServiceRequest` for `/v1/traces` of an OTLP/HTTP receiver."""
    spans = [span for trace in traces for span in _spans(trace)]
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": [_attribute("service.name", "vesper")]},
                "scopeSpans": [{"scope": {"name": "vesper", "version": version}, "spans": spans}],
            }
        ]
    }


def _spans(trace: Trace) -> list[dict[str, Any]]:
    trace = masked_trace(trace)  # a code may be sensitive too
    trace_id = trace.trace_id.replace("-", "")
    if not _OTLP_ID.fullmatch(trace_id):  # a foreign id is hashed to the form that OpenTelemetry requires
        trace_id = hashlib.sha256(trace.trace_id.encode()).hexdigest()[:32]
    root_id = _span_id(trace_id, "")
    node = compiled_of(trace.definition).node
    took = trace.duration_us or 0
    attributes: dict[str, object] = {
        **names.node_attributes(trace.node_id, node.type, node.source.intent, trace.semantic_hash),
        **names.end_attributes(
            trace.engines[0],
            took / 1000,
            "unfinished" if trace.outcome is None else trace.outcome.kind,
            outcome_code(trace.outcome),
            is_diverged=trace.divergence is not None,
        ),
    }
    events = [
        _event("state_transition", _at(trace, each.after), machine=each.machine, before=each.before, to=each.to)
        for each in trace.transitions
    ]
    events += [
        _event("contract_violation", _at(trace, each.after), phase=each.phase, index=each.index, clause=each.text)
        for each in trace.contracts
        if not each.holds
    ]
    if trace.divergence is not None:
        events.append(_event(names.DIVERGENCE_EVENT, trace.started_us + took, where=trace.divergence))
    is_fine = trace.outcome is None or isinstance(trace.outcome, Returned)
    root = _span(trace_id, root_id, names.EXECUTE, trace.started_us, trace.started_us + took, attributes, is_fine)
    root["kind"] = _INTERNAL
    root["events"] = sorted(events, key=lambda each: int(each["timeUnixNano"]))
    return [root, *(_request_span(trace, trace_id, root_id, each) for each in trace.exchanges)]


def _request_span(trace: Trace, trace_id: str, root_id: str, exchange: Exchange) -> dict[str, Any]:
    started = trace.started_us if exchange.asked_us is None else exchange.asked_us
    ended = started if exchange.answered_us is None else exchange.answered_us
    attributes = names.effect_attributes(
        trace.node_id,
        plain_step(exchange.path),
        exchange.effect,
        exchange.effect_class,
        exchange.attempts,
        exchange.failure,
    )
    name = f"sir.step {plain_step(exchange.path)}"
    span = _span(
        trace_id, _span_id(trace_id, exchange.path), name, started, ended, attributes, exchange.failure is None
    )
    span["kind"] = _CLIENT
    span["parentSpanId"] = root_id
    span["events"] = [
        _event("policy", each.at_us if each.at_us is not None else started, attempt=each.attempt, **each.said)
        for each in exchange.decisions
    ]
    return span


def _span(
    trace_id: str, span_id: str, name: str, start_us: int, end_us: int, attributes: Mapping[str, object], is_fine: bool
) -> dict[str, Any]:
    return {
        "traceId": trace_id,
        "spanId": span_id,
        "name": name,
        "startTimeUnixNano": str(start_us * 1000),
        "endTimeUnixNano": str(max(start_us, end_us) * 1000),
        "attributes": [_attribute(key, value) for key, value in attributes.items()],
        "status": {"code": _OK if is_fine else _ERROR},
    }


def _span_id(trace_id: str, path: str) -> str:
    return hashlib.sha256(f"{trace_id} {path}".encode()).hexdigest()[:16]


def _at(trace: Trace, after: int) -> int:
    """Return the time at which this many requests were completed."""
    found = trace.exchanges[after - 1].answered_us if after else None
    return trace.started_us if found is None else found


def _event(name: str, at_us: int, **attributes: object) -> dict[str, Any]:
    return {
        "timeUnixNano": str(at_us * 1000),
        "name": name,
        "attributes": [_attribute(key, value) for key, value in attributes.items()],
    }


def _attribute(key: str, value: object) -> dict[str, Any]:
    match value:
        case bool():
            held: dict[str, object] = {"boolValue": value}
        case int():
            held = {"intValue": str(value)}
        case float():
            held = {"doubleValue": value}
        case _:
            held = {"stringValue": str(value)}
    return {"key": key, "value": held}
