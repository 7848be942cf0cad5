"""An OTLP/HTTP receiver on loopback that keeps the spans and the metrics that it gets."""

from __future__ import annotations

import gzip
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Received:
    """A span as it was received."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]
    events: tuple[str, ...]
    links: tuple[str, ...]


@dataclass
class Receiver:
    spans: list[Received] = field(default_factory=list)
    metrics: dict[tuple[str, str, str, tuple[tuple[str, str], ...]], float] = field(default_factory=dict)
    """The last value of each series by service, instance, name and labels; of a histogram the count."""

    def __enter__(self) -> Self:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.take(self.path, body)
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/traces":
            for traces in ExportTraceServiceRequest.FromString(body).resource_spans:
                service = _attributes(traces.resource.attributes)["service.name"]
                self.spans += [_received(service, span) for scope in traces.scope_spans for span in scope.spans]
        else:
            for found in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                about = _attributes(found.resource.attributes)
                for metric in (each for scope in found.scope_metrics for each in scope.metrics):
                    self._take_metric(about["service.name"], about["service.instance.id"], metric)

    def _take_metric(self, service: str, instance: str, metric: Any) -> None:
        kind = metric.WhichOneof("data")
        for point in getattr(metric, kind).data_points:
            labels = tuple(sorted(_attributes(point.attributes).items()))
            value = point.count if kind == "histogram" else getattr(point, point.WhichOneof("value"))
            self.metrics[service, instance, metric.name, labels] = value

    def sum_of(self, service: str, name: str, **labels: str) -> float:
        """Return the sum over the processes of a service of all series with these labels."""
        return sum(
            value
            for (of, _, named, has), value in self.metrics.items()
            if (of, named) == (service, name) and labels.items() <= dict(has).items()
        )


def _received(service: str, span: Any) -> Received:
    return Received(
        service,
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        _attributes(span.attributes),
        tuple(each.name for each in span.events),
        tuple(each.span_id.hex() for each in span.links),
    )


def _attributes(found: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in found}
