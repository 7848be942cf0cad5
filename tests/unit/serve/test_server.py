"""The binding of the HTTP server: native calls of programs and routes, calls for Python, TLS."""

from __future__ import annotations

import http.client
import json
import queue
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import vesper
from tests.support.waiting import eventually
from tests.support.web import Authority
from tests.unit.migration.router.test_route import Here
from tests.unit.migration.support.routed import payment, put_into
from vesper._direct import HttpCall, HttpServer, HttpStream
from vesper.api.node import Node
from vesper.config.serve import ServeSettings
from vesper.engines.engine import FastEntry
from vesper.migration.control.modes import Mode
from vesper.serve.table import build_table

ROOT = Path(__file__).parents[3]
DECISION = ROOT / "nodes" / "payments" / "payment_decision_v1.vsp"
LOOP = ROOT / "nodes" / "numbers" / "numeric_loop_v1.vsp"
OPEN = {"keys": [], "jwt": [], "mtls": False, "is_required": False}
PATIENCE = 30.0
BODY = json.dumps({name: str(value) if name in ("amount", "balance") else value for name, value in payment().items()})


class Served:
    """A server of these nodes, and a thread that answers as `run` says."""

    def __init__(
        self,
        nodes: Sequence[Node],
        run: Callable[[Served, HttpCall], None] | None = None,
        auth: Mapping[str, object] = OPEN,
        **settings: object,
    ) -> None:
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = listener.getsockname()[1]
        self.nodes = nodes
        self.by_python: list[str | None] = []
        self.server = HttpServer(listener.detach(), json.dumps(settings).encode())
        self.load(auth)
        self._run = run or Served.run_node
        self._is_over = False
        self._thread = threading.Thread(target=self._answer)
        self._thread.start()

    def load(self, auth: Mapping[str, object] = OPEN) -> None:
        programs = [each._program.native if isinstance(each._program, FastEntry) else None for each in self.nodes]
        self.server.load(build_table(self.nodes, ServeSettings(), auth), programs)

    def _answer(self) -> None:
        while not self._is_over:
            call = self.server.next(0.05)
            if call is not None:
                self.by_python.append(call.node)
                self._run(self, call)

    def run_node(self, call: HttpCall) -> None:
        call.answer(self.nodes[call.endpoint].run_json(call.inputs), None)

    def post(self, node: str, body: str = BODY, headers: Mapping[str, str] | None = None) -> tuple[int, Any]:
        return post(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE), node, body, headers)

    def close(self) -> None:
        self.server.close()
        self._is_over = True
        self._thread.join()


def post(
    connection: http.client.HTTPConnection, node: str, body: str = BODY, headers: Mapping[str, str] | None = None
) -> tuple[int, Any]:
    given = {"Content-Type": "application/json", **(headers or {})}
    with closing(connection):
        connection.request("POST", f"/nodes/{node}", body, given)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


@pytest.fixture
def served() -> Iterator[Callable[..., Served]]:
    all_of_them: list[Served] = []

    def make(*args: Any, **settings: Any) -> Served:
        all_of_them.append(Served(*args, **settings))
        return all_of_them[-1]

    yield make
    for each in all_of_them:
        each.close()


def test_a_pure_node_on_the_direct_engine_never_reaches_python(served: Callable[..., Served]) -> None:
    node = vesper.load(DECISION, engine="jit")
    here = served([node], span_sample=1.0)
    expected = json.loads(node.run_json(BODY.encode()))["value"]
    for _ in range(200):  # interpreted, then compiled
        assert here.post("payment_decision_v1") == (200, expected)
    assert not here.by_python
    status, problem = here.post("payment_decision_v1", "{}")
    assert status == 422
    assert len(problem["problems"]) == 5
    assert here.by_python == ["payment_decision_v1"]
    facts = here.server.facts()
    assert (facts["requests"], facts["native_requests"], facts["queued"]) == (201, 200, 0)
    spans = here.server.take_spans()
    assert len(spans) == 200
    node_id, trace, span, parent, start, end, kind = spans[0]
    assert (node_id, parent, kind) == ("payment_decision_v1", 0, "returned")
    assert trace > 0 < span
    assert start <= end


def test_a_long_run_does_not_hold_the_connections(served: Callable[..., Served]) -> None:
    node = vesper.load(LOOP, engine="interp")
    here = served([node, vesper.load(DECISION, engine="jit")])
    expected = json.loads(node.run_json(b'{"n": 10000}'))["value"]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: here.post("numeric_loop_v1", '{"n": 10000}'), range(8)))
    assert found == [(200, expected)] * 8
    assert not here.by_python
    assert here.post("payment_decision_v1")[0] == 200
    eventually(lambda: here.server.facts()["native_runs"] == 0)


def test_a_route_is_native_only_in_direct_only_on_trusted_paths(served: Callable[..., Served], tmp_path: Path) -> None:
    routed = Here(tmp_path)
    here = served([routed.node])
    expected = json.loads(routed.node.run_json(BODY.encode()))["value"]

    def ask() -> int:
        """Return how many of ten requests Python served."""
        before = len(here.by_python)
        assert [here.post("payment_decision_v1") for _ in range(10)] == [(200, expected)] * 10
        return len(here.by_python) - before

    for mode in (Mode.PYTHON_ONLY, Mode.SHADOW_DIRECT):
        put_into(routed.routes, routed.program, mode)
        assert ask() == 10
    put_into(routed.routes, routed.program, Mode.DIRECT_ONLY)  # no path is trusted yet
    routed.sample(0.0)
    assert ask() == 10
    put_into(routed.routes, routed.program, Mode.DIRECT_ONLY, routed.note(payment()))
    routed.sample(0.0)
    before = routed.served().get("direct_only/direct", 0)
    assert ask() == 0
    assert routed.served()["direct_only/direct"] == before + 10
    routed.sample(1.0)
    assert ask() == 10  # the sample is compared
    routed.sample(0.0)
    put_into(routed.routes, routed.program, Mode.PYTHON_ONLY)
    assert ask() == 10
    routed.routes.close()


def test_calls_carry_their_identity_and_end_once(served: Callable[..., Served]) -> None:
    seen: list[tuple[object, ...]] = []

    def run(here: Served, call: HttpCall) -> None:
        seen.append((call.endpoint, call.builtin, call.key, call.traceparent, call.tracestate, call.epoch, call.actor))
        assert call.seconds_left is not None
        assert 0 < call.seconds_left <= 20
        assert call.inputs == b"{}"
        assert not call.is_abandoned
        with pytest.raises(ValueError, match="no refusal `nonsense`"):
            call.refuse("nonsense")
        call.refuse("key_reused", "Other inputs.", None, "run-1")
        with pytest.raises(RuntimeError, match="has an answer"):
            call.answer(b"{}", None)

    here = served([vesper.load(DECISION, engine="python")], run)
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    headers = {"Idempotency-Key": "k1", "Vesper-Timeout": "20", "traceparent": parent, "tracestate": "a=b"}
    status, problem = here.post("payment_decision_v1", "{}", headers)
    assert status == 422
    assert problem["type"] == "urn:vesper:problem:key_reused"
    assert (problem["trace_id"], problem["execution"]) == ("4bf92f3577b34da6a3ce929d0e0e4736", "run-1")
    assert seen == [(0, None, "k1", parent, "a=b", 1, None)]


def test_pages_have_a_queue_of_their_own(served: Callable[..., Served]) -> None:
    def run(here: Served, call: HttpCall) -> None:
        if call.builtin is None:
            page = here.server.next(PATIENCE, builtins=True)  # while the only thread for nodes is busy
            assert page is not None
            page.send(200, [("Content-Type", "text/plain")], f"{page.builtin} {page.accept}".encode())
            here.run_node(call)

    here = served([vesper.load(DECISION, engine="python")], run)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(here.post, "payment_decision_v1")
        eventually(lambda: bool(here.by_python))
        connection = http.client.HTTPConnection("127.0.0.1", here.port, timeout=PATIENCE)
        with closing(connection):
            connection.request("GET", "/metrics", headers={"Accept": "text/plain"})
            assert connection.getresponse().read() == b"/metrics text/plain"
        assert answer.result()[0] == 200


def test_a_load_that_fails_keeps_the_last_one_and_settings_are_checked(served: Callable[..., Served]) -> None:
    here = served([vesper.load(DECISION, engine="jit")])
    with pytest.raises(ValueError, match="table"):
        here.server.load(b"{}", [])
    with pytest.raises(TypeError, match="not str"):
        here.server.load(build_table([], ServeSettings(), OPEN), ["x"])
    assert here.server.facts()["epoch"] == 1
    assert here.post("payment_decision_v1")[0] == 200
    with pytest.raises(ValueError, match="no setting `quue`"):
        HttpServer(-1, b'{"quue": 1}')
    with pytest.raises(ValueError, match="not a descriptor"):
        HttpServer(-1, b"{}")


def test_a_drain_answers_what_was_asked(served: Callable[..., Served]) -> None:
    here = served([vesper.load(DECISION, engine="python")])
    clients = [http.client.HTTPConnection("127.0.0.1", here.port, timeout=PATIENCE) for _ in range(5)]
    for each in clients:
        each.request("POST", "/nodes/payment_decision_v1", BODY, {"Content-Type": "application/json"})
    here.server.stop_accepting()
    with pytest.raises(ConnectionRefusedError):
        here.post("payment_decision_v1")
    assert here.server.drain(PATIENCE)
    for each in clients:
        assert each.getresponse().status == 200
        each.close()
    assert here.server.next(PATIENCE) is None  # at once


def test_tls_with_client_certificates_and_their_renewal(served: Callable[..., Served], tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    def issue(name: str) -> Path:
        authority.server(name)
        return max(tmp_path.glob(f"{name}-*.pem"))

    certificate = tmp_path / "server.pem"
    certificate.write_bytes(issue("127.0.0.1").read_bytes())
    seen: list[tuple[str | None, str | None]] = []

    def run(here: Served, call: HttpCall) -> None:
        seen.append((call.actor, call.via))
        here.run_node(call)

    tls = {"certificate": str(certificate), "key": str(certificate), "client_authorities": str(authority.ca_file)}
    here = served(
        [vesper.load(DECISION, engine="python")], run, auth={**OPEN, "mtls": True, "is_required": True}, tls=tls
    )

    def ask(client: Path | None) -> int:
        context = ssl.create_default_context(cafile=str(authority.ca_file))
        if client is not None:
            context.load_cert_chain(client)
        connection = http.client.HTTPSConnection("127.0.0.1", here.port, context=context, timeout=PATIENCE)
        return post(connection, "payment_decision_v1")[0]

    assert ask(issue("billing")) == 200
    assert ask(None) == 401
    assert seen == [("CN=billing", "mtls")]
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    Authority(stranger).server("billing")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        ask(next(stranger.glob("billing-*.pem")))
    certificate.write_bytes(b"no certificate")
    with pytest.raises(ValueError, match="has no certificate"):
        here.load()
    assert ask(issue("billing")) == 200
    plain = http.client.HTTPConnection("127.0.0.1", here.port, timeout=PATIENCE)
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        post(plain, "payment_decision_v1")


def test_an_answer_is_written_part_by_part_until_its_stream_or_its_client_ends(served: Callable[..., Served]) -> None:
    streams: queue.Queue[HttpStream] = queue.Queue()

    def run(here: Served, call: HttpCall) -> None:
        streams.put(call.stream(200, [("Content-Type", "text/event-stream")]))
        with pytest.raises(RuntimeError, match="answer already"):
            call.send(200, [], b"")

    here = served([vesper.load(DECISION, engine="python")], run)
    request = "POST /nodes/payment_decision_v1 HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    request += f"Content-Length: {len(BODY)}\r\n\r\n{BODY}"
    with socket.create_connection(("127.0.0.1", here.port), PATIENCE) as client:
        client.sendall(request.encode())
        stream = streams.get(timeout=PATIENCE)
        assert stream.send(b"one\n")
        answer = client.makefile("rb")
        head = b"".join(iter(answer.readline, b"\r\n"))
        assert b"content-length" not in head
        assert b"connection: close" in head
        assert answer.readline() == b"one\n"  # before the next part exists
        assert stream.send(b"two\n")
        stream.close()
        assert not stream.send(b"three\n")
        assert answer.read() == b"two\n"
    with socket.create_connection(("127.0.0.1", here.port), PATIENCE) as client:
        client.sendall(request.encode())
        stream = streams.get(timeout=PATIENCE)
    eventually(lambda: not stream.send(b""))  # noticed without a write
