"""Export of spans and metrics to an OTLP/HTTP receiver, as `[observe]` asks."""

from __future__ import annotations

import os
import threading
from contextvars import ContextVar

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from vesper.observe.settings import ObserveSettings
from vesper.storage.per_process import PerProcess

_TIMEOUT_SECONDS = 5.0
ROOT_TRACE_ID: ContextVar[int | None] = ContextVar("vesper_root_trace_id", default=None)
"""Trace id of the next root span, where the server has announced one to its client."""


class _AnnouncedIds(RandomIdGenerator):
    def generate_trace_id(self) -> int:
        announced = ROOT_TRACE_ID.get()
        ROOT_TRACE_ID.set(None)
        return super().generate_trace_id() if announced is None else announced


class Exporter:
    """The export of one process."""

    def __init__(self, settings: ObserveSettings) -> None:
        assert settings.otlp is not None
        base = settings.otlp.rstrip("/")
        resource = Resource.create({"service.name": settings.service, "service.instance.id": str(os.getpid())})
        self.provider = TracerProvider(ALWAYS_ON, resource, id_generator=_AnnouncedIds())
        exporter = OTLPSpanExporter(f"{base}/v1/traces", timeout=_TIMEOUT_SECONDS)
        self.provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=1000))
        self.tracer = self.provider.get_tracer("vesper")

    def flush(self, seconds: float) -> bool:
        """Send what is queued; return False after `seconds`."""
        return self.provider.force_flush(int(seconds * 1000))


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
