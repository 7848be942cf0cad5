"""Two services under a real collector and a real Prometheus: every parent, every counter, and an alert.

    $ make proof-observe            # builds the collector once, with Go; needs the Debian package of Prometheus
    $ python -m tests.proofs.observe.run --sample    # without both: the services export to a receiver of this process

`front` calls `back` by an HTTP effect; both are `vesper serve` with two workers. Each request has the spans
`sir.execute` (front), `sir.effect`, `sir.execute` (back), one below the other, and the counters of all workers are the
requests that were sent. Then `back` runs with a direct engine that lies, and the alert `VesperDivergence` fires.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.proofs.robustness.proof import PROOFS, ROOT, STATE, whole_hash, write_json
from tests.support.otlp_receiver import Received, Receiver

_HERE = Path(__file__).parent
_TOOLS = STATE / "observe"
_BUILDER = "go.opentelemetry.io/collector/cmd/builder@v0.160.0"
_WAIT_SECONDS = 60.0
_REQUESTS = {"sample": 40, "whole": 1000}
_FRONT = """\
node_id: front_v1
type: event_handler
intent: Ask the other service for a rest
inputs:
  event_id: string
  n: integer
outputs:
  success: {said: json}
flow:
  - step: call
    operation: external_api_call
    provider: back
    method: POST
    endpoint: /nodes/back_v1
    effect: keyed
    body: {n: "{n}"}
  - operation: return
    success: {said: call}
security:
  capabilities_required: [network.http_client.back]
"""
_BACK = """\
node_id: back_v1
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
_MANIFEST = """\
dist:
  name: collector
  output_path: ./built
conf_resolver:
  default_uri_scheme: file
receivers:
  - gomod: go.opentelemetry.io/collector/receiver/otlpreceiver v0.160.0
exporters:
  - gomod: go.opentelemetry.io/collector/exporter/otlphttpexporter v0.160.0
providers:
  - gomod: go.opentelemetry.io/collector/confmap/provider/fileprovider v1.66.0
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", action="store_true", help="without collector and Prometheus")
    is_sample = parser.parse_args().sample
    count = _REQUESTS["sample" if is_sample else "whole"]
    with tempfile.TemporaryDirectory() as name, Receiver() as receiver:
        folder = Path(name)
        if is_sample:
            found = _parentage(folder, receiver, receiver.url, count)
        else:
            with _collector(folder, receiver.url) as url:
                found = _parentage(folder, receiver, url, count)
            found = {**found, **_alert(folder / "alert")}
    print(json.dumps(found))
    if not is_sample:
        write_json(PROOFS / "observe.json", {"sources": whole_hash(), **found})


# -- spans and counters ---------------------------------------------------------------------------


def _parentage(folder: Path, receiver: Receiver, otlp: str, count: int) -> dict[str, object]:
    """Send requests through both services, end them, and check all that arrived."""
    callers: dict[str, str] = {}
    announced: set[str] = set()
    with (
        _service(folder, "back", _BACK, otlp, "direct") as back,
        _service(folder, "front", _FRONT, otlp, "auto", back) as front,
    ):
        connection = http.client.HTTPConnection("127.0.0.1", front, timeout=_WAIT_SECONDS)
        for number in range(count):
            body = json.dumps({"event_id": f"e{number}", "n": number % 9 + 1}).encode()
            headers = {"Content-Type": "application/json"}
            if number % 2:  # the other half begins a trace
                caller = os.urandom(16).hex()
                callers[caller] = os.urandom(8).hex()
                headers["traceparent"] = f"00-{caller}-{callers[caller]}-01"
            connection.request("POST", "/nodes/front_v1", body, headers)
            answer = connection.getresponse()
            announced.add((answer.getheader("traceparent") or "").split("-")[1])
            said = answer.read()
            assert (answer.status, json.loads(said)) == (200, {"said": {"rest": 10 % (number % 9 + 1)}}), said
    _wait("spans", lambda: sum(each.name != "sir.compare" for each in receiver.spans) >= 3 * count)
    traces: dict[str, dict[str, Received]] = {}
    for span in receiver.spans:
        assert traces.setdefault(span.trace_id, {}).setdefault(f"{span.service} {span.name}", span) is span, span
    assert traces.keys() == announced, len(traces)
    assert len(traces) == count
    for trace, spans in traces.items():
        compare = spans.pop("front sir.compare", None)  # a follower admits as many runs as its share of time allows
        assert set(spans) == {"front sir.execute", "front sir.effect", "back sir.execute"}, spans
        assert spans["front sir.execute"].parent_id == callers.get(trace, ""), spans
        assert spans["front sir.effect"].parent_id == spans["front sir.execute"].span_id, spans
        assert spans["back sir.execute"].parent_id == spans["front sir.effect"].span_id, spans
        if compare is not None:
            run = spans["front sir.execute"].span_id
            assert (compare.parent_id, compare.links, compare.events) == (run, (run,), ()), compare
    assert callers.keys() <= traces.keys()
    for service, node in (("front", "front_v1"), ("back", "back_v1")):
        for metric in ("sir.requests.total", "sir.executions.total"):
            _wait(f"{metric} of {service}", lambda s=service, m=metric, n=node: receiver.sum_of(s, m, node=n) == count)  # type: ignore[misc]
    return {"requests": count, "spans": len(receiver.spans), "traces": len(traces)}


@contextmanager
def _service(
    folder: Path, name: str, node: str, otlp: str | None, engine: str, back: int | None = None, **environment: str
) -> Iterator[int]:
    """Run `vesper serve` with two workers; yield its port. SIGTERM ends it, and its workers send what they have."""
    home = folder / name
    home.mkdir(parents=True)
    (home / f"{name}_v1.vsp").write_text(node, encoding="utf-8")
    lines = ["[observe]", f'service = "{name}"', 'push = "1s"', *([] if otlp is None else [f'otlp = "{otlp}"'])]
    if back is not None:
        lines += ["[[grants]]", 'nodes = ["*"]', 'allow = ["*"]', "[providers.back]"]
        lines += [f'base_url = "http://127.0.0.1:{back}"', "allow_private_addresses = true"]
    (home / "vesper.toml").write_text("\n".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "vesper", "serve", str(home), "--port", "0", "--workers", "2", "--expose", "*"]
    command += ["--engine", engine, "--config", str(home / "vesper.toml")]
    log = home / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **environment}, stdout=stream, stderr=subprocess.STDOUT
        )
    try:
        port = re.compile(r"http://127\.0\.0\.1:(\d+)")
        _wait(name, lambda: port.search(log.read_text()) is not None or process.poll() is not None)
        found = port.search(log.read_text())
        assert found is not None, log.read_text()
        yield int(found[1])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(_WAIT_SECONDS)
    assert process.returncode == 0, log.read_text()


@contextmanager
def _collector(folder: Path, sink: str) -> Iterator[str]:
    """Run the collector, which passes on to `sink` what it receives; yield its URL."""
    port = _free_port()
    config = folder / "collector.yaml"
    config.write_text(
        f"""\
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{otlphttp: {{endpoint: "{sink}"}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [otlp], exporters: [otlphttp]}}
    metrics: {{receivers: [otlp], exporters: [otlphttp]}}
""",
        encoding="utf-8",
    )
    with _running([_built_collector(), "--config", config]):
        _wait("the collector", lambda: _is_open(port))
        yield f"http://127.0.0.1:{port}"


def _built_collector() -> Path:
    """Return the collector, built once from the modules of the Go proxy."""
    built = _TOOLS / "built" / "collector"
    if not built.exists():
        _TOOLS.mkdir(parents=True, exist_ok=True)
        (_TOOLS / "manifest.yaml").write_text(_MANIFEST, encoding="utf-8")
        subprocess.run(["go", "run", _BUILDER, "--config", "manifest.yaml"], cwd=_TOOLS, check=True)
    return built


# -- the alert ------------------------------------------------------------------------------------


def _alert(folder: Path) -> dict[str, object]:
    """Plant a divergence, and wait until Prometheus fires the shipped alert."""
    prometheus, promtool = _prometheus()
    rules = ROOT / "dashboards" / "prometheus" / "alerts.yml"
    subprocess.run([promtool, "check", "rules", rules], check=True)
    paths = f"{_HERE / 'planted'}{os.pathsep}{ROOT}"
    with _service(folder, "back", _BACK, None, "auto", PYTHONPATH=paths) as back:
        _call_back(back)
        metrics = _get(f"http://127.0.0.1:{back}/metrics")
        subprocess.run([promtool, "check", "metrics"], input=metrics, check=True)
        port = _free_port()
        (folder / "prometheus.yml").write_text(
            f"""\
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{rules}"]
scrape_configs: [{{job_name: vesper, static_configs: [{{targets: ["127.0.0.1:{back}"]}}]}}]
""",
            encoding="utf-8",
        )
        command = [prometheus, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
        with _running([*command, f"--web.listen-address=127.0.0.1:{port}"]):
            began = time.monotonic()

            def is_firing() -> bool:
                _call_back(back)
                if not _is_open(port):
                    return False
                alerts = json.loads(_get(f"http://127.0.0.1:{port}/api/v1/alerts"))["data"]["alerts"]
                firing = Counter(each["labels"]["alertname"] for each in alerts if each["state"] == "firing")
                return "VesperDivergence" in firing

            _wait("the alert VesperDivergence", is_firing)
            return {"alert": "VesperDivergence", "alert_seconds": round(time.monotonic() - began, 1)}


def _prometheus() -> tuple[str, str]:
    """Return the commands of Prometheus: those installed, or those of its Debian package, unpacked once."""
    if (found := shutil.which("prometheus")) and (tool := shutil.which("promtool")):
        return found, tool
    folder = _TOOLS / "prometheus"
    if not folder.exists():
        _TOOLS.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", "prometheus"], cwd=_TOOLS, check=True)
        (package,) = _TOOLS.glob("prometheus_*.deb")
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
    return str(folder / "usr" / "bin" / "prometheus"), str(folder / "usr" / "bin" / "promtool")


# -- small parts ----------------------------------------------------------------------------------


@contextmanager
def _running(command: list[str | Path]) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(_WAIT_SECONDS)


def _call_back(port: int) -> None:
    request = urllib.request.Request(  # loopback
        f"http://127.0.0.1:{port}/nodes/back_v1", b'{"n":3}', {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=_WAIT_SECONDS) as answer:  # noqa: S310  # loopback
        assert json.load(answer) == {"rest": 1}


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=_WAIT_SECONDS) as answer:  # noqa: S310  # loopback
        found: bytes = answer.read()
        return found


def _free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _is_open(port: int) -> bool:
    import socket

    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def _wait(what: str, is_done: Callable[[], bool]) -> None:
    until = time.monotonic() + _WAIT_SECONDS
    while not is_done():
        if time.monotonic() > until:
            raise AssertionError(f"{what} did not come within {_WAIT_SECONDS:g} s")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
