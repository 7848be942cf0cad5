"""Spans of runs, effects and comparisons for OpenTelemetry.

Spans go to the application's TracerProvider where it has one, and else to that of `[observe]` (`export.py`). This
module imports OpenTelemetry only after either exists: a run without spans pays for one check.
"""

from __future__ import annotations

import random
import sys
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from vesper.observe import attributes as names
from vesper.observe.context import TraceParent, parse_traceparent
from vesper.observe.settings import ObserveSettings

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanContext, Tracer

UsageRow: TypeAlias = tuple[str, int, int, str]
EffectRow: TypeAlias = tuple[str, str, str, int, int, int, int, str | None, UsageRow | None]
"""As `Running.take_spans` returns it: path, effect, class, id, start and end, attempts, failure, usage of a model."""
NativeRow: TypeAlias = tuple[str, int, int, int, int, int, str]
"""As `HttpServer.take_spans` returns it: node, ids of trace, span and parent, start and end, kind of the outcome."""
_SCOPE = "vesper"
_MAX_REMEMBERED = 1024
"""Sampled runs whose comparisons can still be linked to them."""
_ACTIVE: ContextVar[RunSpan | None] = ContextVar("vesper_run_span", default=None)
_remembered: OrderedDict[str, tuple[Tracer, SpanContext]] = OrderedDict()
_reported: set[str] = set()
"""Divergences of unsampled runs that have a span already."""
_application: tuple[object, Tracer] | None = None


class Subject(Protocol):
    """The part of a compiled node that its spans have."""

    @property
    def node(self) -> Any: ...
    @property
    def semantic_hash(self) -> str: ...


def _attributes(subject: Subject) -> dict[str, str]:
    node = subject.node
    return names.node_attributes(node.node_id, node.type, node.source.intent, subject.semantic_hash)


def application_tracer() -> Tracer | None:
    """Return the tracer of the application's provider; None where it has set none."""
    global _application  # noqa: PLW0603  # one provider for each process, as in OpenTelemetry
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None or not hasattr(trace, "NoOpTracerProvider"):  # absent, or still being imported
        return None
    provider = trace.get_tracer_provider()
    if _application is None or _application[0] is not provider:
        if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
            return None
        _application = provider, provider.get_tracer(_SCOPE)
    return _application[1]


class Tracing:
    """The source of spans for the runs of one configuration."""

    def __init__(self, settings: ObserveSettings | None) -> None:
        self._settings = settings or ObserveSettings()
        self._has_export = self._settings.otlp is not None

    def begin(
        self,
        subject: Subject,
        execution: str | None = None,
        traceparent: str | None = None,
        tracestate: str | None = None,
    ) -> RunSpan | None:
        """Begin the span of a run; None where there is nothing to record or to carry on.

        The parent is the current span, else `traceparent`.
        """
        tracer = application_tracer()
        if tracer is None and not self._has_export and traceparent is None:
            return None
        parent = current_parent() or parse_traceparent(traceparent)
        if tracer is None:
            is_sampled = self._has_export and (
                random.random() < self._settings.sample if parent is None else parent.is_sampled
            )
            if not is_sampled:
                return None if parent is None else RunSpan(None, None, str(parent), tracestate)
            tracer = self._own_tracer()
        return _start_span(tracer, subject, execution, parent, tracestate)

    def start(self) -> None:
        """Start the export of metrics, where the settings have one."""
        if self._has_export:
            self._own_tracer()

    def tracer(self) -> Tracer | None:
        """Return the tracer of spans that no run decides on."""
        return application_tracer() or (self._own_tracer() if self._has_export else None)

    def _own_tracer(self) -> Tracer:
        from vesper.observe.export import exporter_of

        return exporter_of(self._settings).tracer

    def export_native(self, rows: Iterable[NativeRow], subjects: Mapping[str, Subject]) -> None:
        """Export the spans of requests that the server answered without Python. `subjects` are the nodes by id."""
        tracer = self.tracer()
        if tracer is None:
            return
        for node_id, trace_id, span_id, parent_id, start_ns, end_ns, outcome in rows:
            took_ms = (end_ns - start_ns) / 1_000_000
            found = {
                **_attributes(subjects[node_id]),
                **names.end_attributes("jit", took_ms, outcome, None, is_diverged=False),
            }
            parent = TraceParent(trace_id, parent_id, True) if parent_id else None
            _emit(tracer, names.EXECUTE, (trace_id, span_id), parent, (start_ns, end_ns), found, outcome == "returned")


def current_parent() -> TraceParent | None:
    """Return the current span of OpenTelemetry, where there is one."""
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None or not hasattr(trace, "get_current_span"):
        return None
    found = trace.get_current_span().get_span_context()
    return TraceParent(found.trace_id, found.span_id, found.trace_flags.sampled) if found.is_valid else None


def _start_span(
    tracer: Tracer,
    subject: Subject,
    execution: str | None,
    parent: TraceParent | None,
    tracestate: str | None,
) -> RunSpan:
    from opentelemetry import trace

    context = None
    if parent is not None and not trace.get_current_span().get_span_context().is_valid:
        state = trace.TraceState.from_header([tracestate]) if tracestate else None
        remote = trace.SpanContext(parent.trace_id, parent.span_id, True, trace.TraceFlags(parent.is_sampled), state)
        context = trace.set_span_in_context(trace.NonRecordingSpan(remote))
    span = tracer.start_span(names.EXECUTE, context, attributes=_attributes(subject))
    found = span.get_span_context()
    state_text = found.trace_state.to_header() or None
    own = str(TraceParent(found.trace_id, found.span_id, found.trace_flags.sampled))
    if not span.is_recording():
        return RunSpan(None, None, own, state_text)
    if execution is not None:
        _remembered[execution] = tracer, found
        while len(_remembered) > _MAX_REMEMBERED:
            _remembered.popitem(last=False)
    return RunSpan(tracer, span, own, state_text, subject.node.node_id)


class RunSpan:
    """The span of one run, or the trace context that an unsampled run carries on."""

    __slots__ = ("_began", "_node_id", "_span", "_tokens", "_tracer", "is_diverged", "traceparent", "tracestate")

    def __init__(
        self,
        tracer: Tracer | None,
        span: Span | None,
        traceparent: str,
        tracestate: str | None,
        node_id: str = "",
    ) -> None:
        self._tracer = tracer
        self._span = span
        self.traceparent = traceparent
        self.tracestate = tracestate
        self._node_id = node_id
        self._began = time.perf_counter_ns()
        self._tokens: tuple[Any, Any] | None = None
        self.is_diverged = False

    @property
    def is_recorded(self) -> bool:
        return self._span is not None

    @property
    def has_effect_spans(self) -> bool:
        """True where the tracer is the SDK's, so that spans can have chosen ids."""
        return hasattr(self._tracer, "span_processor")

    def enter(self) -> None:
        """Make the span current, for effects of the application and for comparisons inside the run."""
        if self._span is not None:
            from opentelemetry import context as contexts
            from opentelemetry import trace

            token = contexts.attach(trace.set_span_in_context(self._span))
            self._tokens = token, _ACTIVE.set(self)

    def note_divergence(self, where: str, fingerprint: str) -> None:
        """Note that the engines differed inside this run."""
        self.is_diverged = True
        if self._span is not None:
            self._span.add_event(names.DIVERGENCE_EVENT, {"where": where, "fingerprint": fingerprint})

    def end(self, engine: str, outcome: str, code: str | None, effects: Iterable[EffectRow] = ()) -> None:
        """End the span, and build those of its effects."""
        if self._span is None:
            return
        from opentelemetry import context as contexts
        from opentelemetry.trace import Status, StatusCode

        if self._tokens is not None:
            contexts.detach(self._tokens[0])
            _ACTIVE.reset(self._tokens[1])
        parent = parse_traceparent(self.traceparent)
        assert parent is not None
        assert self._tracer is not None
        for path, effect, effect_class, span_id, start_ns, end_ns, attempts, failure, usage in effects:
            found = names.effect_attributes(self._node_id, path, effect, effect_class, attempts, failure, usage)
            ids, times = (parent.trace_id, span_id), (start_ns, end_ns)
            _emit(self._tracer, names.EFFECT, ids, parent, times, found, failure is None, is_client=True)
        took_ms = (time.perf_counter_ns() - self._began) / 1_000_000
        self._span.set_attributes(names.end_attributes(engine, took_ms, outcome, code, self.is_diverged))
        self._span.set_status(Status(StatusCode.OK if outcome in ("returned", "waiting") else StatusCode.ERROR))
        self._span.end()


def _emit(
    tracer: Any,
    name: str,
    ids: tuple[int, int],
    parent: TraceParent | None,
    times: tuple[int, int],
    attributes: Mapping[str, Any],
    is_fine: bool,
    is_client: bool = False,
) -> None:
    """Pass a finished span with its own ids to the SDK's span processors."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import ReadableSpan

    sampled = trace.TraceFlags(trace.TraceFlags.SAMPLED)
    above = None if parent is None else trace.SpanContext(parent.trace_id, parent.span_id, False, sampled)
    tracer.span_processor.on_end(
        ReadableSpan(
            name,
            trace.SpanContext(ids[0], ids[1], False, sampled),
            above,
            tracer.resource,
            attributes,
            kind=trace.SpanKind.CLIENT if is_client else trace.SpanKind.INTERNAL,
            status=trace.Status(trace.StatusCode.OK if is_fine else trace.StatusCode.ERROR),
            start_time=times[0],
            end_time=times[1],
            instrumentation_scope=_scope(),
        )
    )


def _scope() -> Any:
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    return InstrumentationScope(_SCOPE)


def active_span() -> RunSpan | None:
    """Return the recorded span of the run that this thread or task works on."""
    return _ACTIVE.get()


def export_comparison(node_id: str, execution: str | None, start_ns: int, difference: tuple[str, str] | None) -> None:
    """Export the span of a shadow comparison, linked to the span of its run.

    Without a sampled run, only the first divergence of each kind has one. `difference` is its place and its kind.
    """
    if not _remembered and difference is None:
        return
    tracer, linked = _remembered.get(execution or "", (None, None))
    if tracer is None:
        if difference is None or f"{node_id} {difference}" in _reported:
            return
        tracer = application_tracer() or _exporting_tracer()
        if tracer is None:
            return
        _reported.add(f"{node_id} {difference}")
    from opentelemetry import context as contexts
    from opentelemetry import trace

    links = () if linked is None else (trace.Link(linked),)
    context = contexts.Context()
    if linked is not None:
        context = trace.set_span_in_context(trace.NonRecordingSpan(linked), context)
    found: dict[str, str | bool] = {"sir.node_id": node_id, "sir.divergence": difference is not None}
    span = tracer.start_span(names.COMPARE, context, attributes=found, links=links, start_time=start_ns)
    if difference is not None:
        span.add_event(names.DIVERGENCE_EVENT, {"where": difference[0], "kind": difference[1]})
        span.set_status(trace.Status(trace.StatusCode.ERROR))
    span.end()


def _exporting_tracer() -> Tracer | None:
    """Return the tracer of an exporter that is under way in this process."""
    module: Any = sys.modules.get("vesper.observe.export")
    found = None if module is None else module.running_exporter()
    return None if found is None else found.tracer
