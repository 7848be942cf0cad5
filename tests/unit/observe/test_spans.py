"""Spans of runs, effects and comparisons, as the application's TracerProvider receives them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler

import vesper
from tests.support.web import Web, closes, says
from tests.unit.host.small import host_in, node_from
from tests.unit.host.test_policies import RETRY, _node
from tests.unit.host.world import answers
from tests.unit.migration.router.test_router import Here
from tests.unit.migration.support.routed import lying, payment, put_into
from vesper.engines.registry import ENGINES
from vesper.host.host import Host
from vesper.migration.control.modes import Mode
from vesper.observe import spans as module
from vesper.observe.context import parse_traceparent

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
CALLER = f"00-{TRACE}-{PARENT}-01"
FUNCTION = """
node_id: rest_v1
type: function
intent: Divide ten by a number
inputs:
  n: integer
outputs:
  success: {rest: integer}
flow:
  - operation: return
    success: {rest: "mod(10, n)"}
"""


@dataclass
class Spans:
    exporter: InMemorySpanExporter
    tracer: trace.Tracer

    def take(self) -> list[ReadableSpan]:
        found = list(self.exporter.get_finished_spans())
        self.exporter.clear()
        return found


def provider(monkeypatch: pytest.MonkeyPatch, sampler: Sampler) -> Spans:
    """Set a provider as an application does; OpenTelemetry itself allows that only once for each process."""
    made, exporter = TracerProvider(sampler), InMemorySpanExporter()
    made.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: made)
    monkeypatch.setattr(module, "_application", None)
    return Spans(exporter, made.get_tracer("test"))


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Spans:
    return provider(monkeypatch, ALWAYS_ON)


@dataclass
class Place:
    folder: Path
    web: Web
    host: Host

    def node(self, engine: str = "python", policy: str = RETRY) -> vesper.Node:
        return node_from(_node(policy), self.folder, self.host, engine)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Web() as web:
        web.on("/it", says("yes"))
        shop = {"base_url": web.url, "allow_private_addresses": True}
        with host_in(tmp_path, {"providers": {"shop": shop}}) as host:
            yield Place(tmp_path, web, host)


def context_of(span: ReadableSpan) -> trace.SpanContext:
    found: trace.SpanContext | None = span.context
    assert found is not None
    return found


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_has_a_span_and_each_effect_one_below_it(place: Place, spans: Spans, engine: str) -> None:
    place.web.on("/it", answers(closes, says("yes")))
    with spans.tracer.start_as_current_span("caller") as caller:
        assert place.node(engine)(event_id="e").ok
    effect, run, _ = spans.take()
    assert (effect.name, run.name) == ("sir.effect", "sir.execute")
    assert run.parent == caller.get_span_context()
    assert effect.parent is not None
    assert (effect.parent.trace_id, effect.parent.span_id) == (context_of(run).trace_id, context_of(run).span_id)
    assert effect.kind is trace.SpanKind.CLIENT
    found = attributes(run)
    assert found.pop("sir.duration_ms") > 0
    assert len(found.pop("sir.semantic_hash")) == 64
    assert found == {
        "sir.node_id": "asks_v1",
        "sir.node_type": "event_handler",
        "sir.intent": "Ask a provider under policies",
        "sir.execution_path": "python" if engine == "python" else "direct",
        "sir.outcome": "returned",
    }
    assert attributes(effect) == {
        "sir.node_id": "asks_v1",
        "sir.step": "call",
        "sir.effect": "http_request",
        "sir.effect_class": "keyed",
        "sir.attempts": 2,
    }
    assert run.start_time is not None
    assert effect.start_time is not None
    assert run.start_time <= effect.start_time <= (effect.end_time or 0) <= (run.end_time or 0)
    own = f"00-{context_of(run).trace_id:032x}-{context_of(effect).span_id:016x}-01"
    assert [got.headers["traceparent"] for got in place.web.got] == [own] * 2


def test_a_coroutine_has_the_same_spans(place: Place, spans: Spans) -> None:
    async def main() -> None:
        with spans.tracer.start_as_current_span("caller"):
            assert (await place.node().arun(event_id="e")).ok
            assert trace.get_current_span().get_span_context().is_valid

    asyncio.run(main())
    effect, run, caller = spans.take()
    assert run.parent == context_of(caller)
    assert effect.parent is not None
    assert effect.parent.span_id == context_of(run).span_id


def test_a_failed_run_has_its_code(place: Place, spans: Spans) -> None:
    place.web.on("/it", says("no", 402))
    assert not place.node()(event_id="e").ok
    effect, run = spans.take()
    assert attributes(run)["sir.error"] == attributes(effect)["sir.error"] == "http_402"
    assert {run.status.status_code, effect.status.status_code} == {trace.StatusCode.ERROR}


def test_the_callers_trace_is_carried_on(place: Place, spans: Spans) -> None:
    with vesper.run_context(traceparent=CALLER, tracestate="shop=1"):
        place.node()(event_id="e")
    effect, run = spans.take()
    assert run.parent is not None
    assert (run.parent.trace_id, run.parent.span_id) == (int(TRACE, 16), int(PARENT, 16))
    (got,) = place.web.got
    assert got.headers["traceparent"] == f"00-{TRACE}-{context_of(effect).span_id:016x}-01"
    assert got.headers["tracestate"] == "shop=1"


def test_an_unsampled_run_has_no_span_and_carries_the_context(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    spans = provider(monkeypatch, ALWAYS_OFF)
    with vesper.run_context(traceparent=CALLER):
        place.node()(event_id="e")
    assert spans.take() == []
    carried = parse_traceparent(place.web.got[0].headers["traceparent"])
    assert carried is not None
    assert (carried.trace_id, carried.is_sampled) == (int(TRACE, 16), False)


def test_without_a_provider_the_callers_context_passes_through(place: Place) -> None:
    place.node()(event_id="a")
    with vesper.run_context(traceparent=CALLER):
        place.node()(event_id="b")
    assert [got.headers.get("traceparent") for got in place.web.got] == [None, CALLER]


def test_calls_of_a_function_have_spans(tmp_path: Path, spans: Spans) -> None:
    path = tmp_path / "rest_v1.vsp"
    path.write_text(FUNCTION.lstrip("\n"), encoding="utf-8")
    for engine in ("python", "interp"):
        node = vesper.load(path, engine=engine)
        with spans.tracer.start_as_current_span("caller") as caller:
            assert node(n=5).ok
            assert node(n=0).error is not None
            node.run_json(b'{"n":2}')
            node.run_json(b'{"n":0}')
            node(b'{"n":2}')
        *found, _ = spans.take()
        assert [attributes(each)["sir.outcome"] for each in found] == [
            "returned", "failed", "returned", "failed", "returned",
        ]  # fmt: skip
        assert [attributes(each).get("sir.error") for each in found] == [
            None, "division_by_zero", None, "division_by_zero", None,
        ]  # fmt: skip
        assert {attributes(each)["sir.execution_path"] for each in found} == {
            "python" if engine == "python" else "direct"
        }
        assert all(each.parent == caller.get_span_context() for each in found)


def test_a_divergence_of_a_follower_has_a_span_of_its_own(tmp_path: Path, spans: Spans) -> None:
    module._reported.clear()
    here = Here(tmp_path)
    put_into(here.routes, here.program, Mode.SHADOW_DIRECT)
    here.direct.does = lying
    for _ in range(3):
        here.program.call(payment())
    here.told()
    here.routes.close()
    (found,) = spans.take()
    assert (found.name, found.parent) == ("sir.compare", None)
    assert attributes(found) == {"sir.node_id": here.node.node.node_id, "sir.divergence": True}
    assert [each.name for each in found.events] == ["divergence_detected"]


def test_a_comparison_is_linked_to_its_run(spans: Spans, place: Place) -> None:
    execution = place.node()(event_id="e").trace_id
    assert execution is not None
    _, run = spans.take()
    module.export_comparison("asks_v1", execution, 1, None)
    module.export_comparison("asks_v1", execution, 1, ("outputs.said", "outcome"))
    module.export_comparison("asks_v1", "another run", 1, None)
    agreed, diverged = spans.take()
    for each in (agreed, diverged):
        assert [link.context.span_id for link in each.links] == [context_of(run).span_id]
        assert context_of(each).trace_id == context_of(run).trace_id
    assert [each.name for each in diverged.events] == ["divergence_detected"]
    assert not agreed.events


def test_a_divergence_inside_a_run_is_an_event_of_its_span(spans: Spans, tmp_path: Path) -> None:
    here = Here(tmp_path)
    put_into(here.routes, here.program, Mode.CANARY_DIRECT)
    here.direct.does = lying
    span = module.Tracing(None).begin(here.node, "run")
    assert span is not None
    span.enter()
    here.program._paired().call(payment())
    span.end("python", "returned", None)
    here.routes.close()
    (run,) = [each for each in spans.take() if each.name == "sir.execute"]
    assert attributes(run)["sir.divergence"] is True
    assert [each.name for each in run.events] == ["divergence_detected"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00-0-0-00",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"{CALLER}-x",
    ],
)
def test_an_invalid_traceparent_is_ignored(text: str) -> None:
    assert parse_traceparent(text) is None
    assert str(parse_traceparent(CALLER)) == CALLER
