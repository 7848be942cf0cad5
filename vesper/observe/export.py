"""Export of spans and metrics to an OTLP/HTTP receiver, configured by `[observe]`.

Importing this module imports the OpenTelemetry SDK. Its environment variables add what `[observe]` does not have, such
as `OTEL_EXPORTER_OTLP_HEADERS` for credentials and `OTEL_RESOURCE_ATTRIBUTES`.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from itertools import groupby
from typing import Any

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from vesper.observe.context import ANNOUNCED_TRACE
from vesper.observe.metrics import BOUNDS_MS, Distribution, Sample, snapshot
from vesper.observe.settings import ObserveSettings
from vesper.storage.per_process import PerProcess

_TIMEOUT_SECONDS = 5.0
_SPAN_DELAY_MS = 1000
_CUMULATIVE = AggregationTemporality.CUMULATIVE


class _AnnouncedIds(RandomIdGenerator):
    """Ids of traces that the server has announced to its client, and else random ones."""

    def generate_trace_id(self) -> int:
        announced = ANNOUNCED_TRACE.get()
        return super().generate_trace_id() if announced is None else int(announced, 16)


class Exporter:
    """The export of one process."""

    def __init__(self, settings: ObserveSettings) -> None:
        assert settings.otlp is not None
        base = settings.otlp.rstrip("/")
        self._resource = Resource.create({"service.name": settings.service, "service.instance.id": str(os.getpid())})
        self.provider = TracerProvider(ALWAYS_ON, self._resource, id_generator=_AnnouncedIds())
        spans = OTLPSpanExporter(f"{base}/v1/traces", timeout=_TIMEOUT_SECONDS)
        self.provider.add_span_processor(BatchSpanProcessor(spans, schedule_delay_millis=_SPAN_DELAY_MS))
        self.tracer = self.provider.get_tracer("vesper")
        self._began_ns = time.time_ns()
        self._metrics = OTLPMetricExporter(f"{base}/v1/metrics", timeout=_TIMEOUT_SECONDS)
        self._push_seconds = settings.push_seconds
        self._is_ending = threading.Event()
        threading.Thread(target=self._push, name="vesper-metrics", daemon=True).start()
        atexit.register(self.close)

    def close(self) -> None:
        """Send the last metrics. The provider sends its last spans by itself when the process ends."""
        if not self._is_ending.is_set():
            self._is_ending.set()
            self.push_metrics()

    def push_metrics(self) -> None:
        """Send the metrics of this process. OpenTelemetry logs a failure, and the next push has all metrics."""
        self._metrics.export(metrics_data(snapshot(is_own=True), self._resource, self._began_ns, time.time_ns()))

    def _push(self) -> None:
        while not self._is_ending.wait(self._push_seconds):
            self.push_metrics()


def metrics_data(samples: list[Sample], resource: Resource, began_ns: int, now_ns: int) -> MetricsData:
    """Return samples in the form of the SDK, with cumulative sums since `began_ns`."""
    found = []
    for spec, group in groupby(sorted(samples, key=lambda each: each.metric.place), key=lambda each: each.metric):
        numbers: list[NumberDataPoint] = []
        buckets: list[HistogramDataPoint] = []
        for each in group:
            labels = dict(zip(spec.labels, each.labels, strict=True))
            if isinstance(each.value, Distribution):
                counts = each.value.counts
                extremes: Any = None  # not counted, and optional in OTLP
                total, times = each.value.sum_ms, (began_ns, now_ns)
                point = HistogramDataPoint(labels, *times, sum(counts), total, counts, BOUNDS_MS, extremes, extremes)
                buckets.append(point)
            else:
                numbers.append(NumberDataPoint(labels, began_ns, now_ns, each.value))
        data: Sum | Gauge | Histogram = Histogram(buckets, _CUMULATIVE) if buckets else Gauge(numbers)
        if spec.kind == "counter":
            data = Sum(numbers, _CUMULATIVE, is_monotonic=True)
        found.append(Metric(spec.name, None, spec.unit, data))
    scope = ScopeMetrics(InstrumentationScope("vesper"), found, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


_exporters: PerProcess[dict[tuple[str | None, str], Exporter]] = PerProcess(dict)
_lock = PerProcess(threading.Lock)


def exporter_of(settings: ObserveSettings) -> Exporter:
    """Return the exporter of this process for these settings, made at its first use."""
    key = settings.otlp, settings.service
    found = _exporters.get().get(key)
    if found is None:
        with _lock.get():
            found = _exporters.get().get(key) or _exporters.get().setdefault(key, Exporter(settings))
    return found


def running_exporter() -> Exporter | None:
    """Return an exporter that was made in this process, for spans that belong to no configuration."""
    return next(iter(_exporters.get().values()), None)
