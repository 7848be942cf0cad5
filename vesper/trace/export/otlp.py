"""Traces as OTLP JSON for OpenTelemetry: one span per execution and one per request.

Attribute names are promises of the founding document (`sir.node_id`, `sir.execution_path`, …). No values are exported,
so sensitive data stays private.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vesper.engines.outcome import Returned, outcome_code
from vesper.host.stub_answers import plain_step
from vesper.observe import attributes as names
from vesper.trace.export.call_records import CallRecord, call_records, gen_ai_attributes, span_name
from vesper.trace.export.span_ids import otlp_trace_id, span_id
from vesper.trace.masking import masked_trace
from vesper.trace.model import Exchange, Trace
from vesper.trace.programs import compiled_of

_INTERNAL, _CLIENT = 1, 3
_OK, _ERROR = 1, 2


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
    records: dict[tuple[str, str], CallRecord] = {(each.kind, each.path): each for each in call_records(trace)}
    trace = masked_trace(trace)  # a code may be sensitive too
    trace_id = otlp_trace_id(trace.trace_id)
    root_id = span_id(trace_id, "")
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
    run = records.get(("agent", ""))
    if run is not None:
        attributes |= gen_ai_attributes(run)
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
    agents = [_agent_span(each) for each in records.values() if each.kind == "agent" and each.path]
    return [root, *agents, *(_request_span(trace, trace_id, root_id, each, records) for each in trace.exchanges)]


def _agent_span(record: CallRecord) -> dict[str, Any]:
    """Return the span of an agent that the run calls."""
    end_us = record.started_us + record.latency_ms * 1000
    attributes, is_fine = gen_ai_attributes(record), record.status == "ok"
    span = _span(record.trace_id, record.span_id, span_name(record), record.started_us, end_us, attributes, is_fine)
    span["kind"] = _INTERNAL
    span["parentSpanId"] = record.parent_span
    span["events"] = []
    return span


def _request_span(
    trace: Trace, trace_id: str, root_id: str, exchange: Exchange, records: Mapping[tuple[str, str], CallRecord]
) -> dict[str, Any]:
    started = trace.started_us if exchange.asked_us is None else exchange.asked_us
    ended = started if exchange.answered_us is None else exchange.answered_us
    attributes: dict[str, object] = {
        **names.effect_attributes(
            trace.node_id,
            plain_step(exchange.path),
            exchange.effect,
            exchange.effect_class,
            exchange.attempts,
            exchange.failure,
        )
    }
    name = f"sir.step {plain_step(exchange.path)}"
    call = records.get(("model", exchange.path))
    if call is not None:
        name = span_name(call)
        attributes |= gen_ai_attributes(call)
    span = _span(trace_id, span_id(trace_id, exchange.path), name, started, ended, attributes, exchange.failure is None)
    span["kind"] = _CLIENT
    span["parentSpanId"] = root_id if call is None else call.parent_span
    span["events"] = [
        _event("policy", each.at_us if each.at_us is not None else started, **{**each.said, "attempt": each.attempt})
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
