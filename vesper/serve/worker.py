"""A worker of a server: answers requests on the socket that its supervisor has bound.

    python -m vesper.serve.worker LISTENER CHANNEL OPTIONS

It reports `ready` or `failed`, and on a message `reload` it reports `loaded` or `kept`. On SIGTERM, and when the
supervisor is gone, it answers the requests that it has and ends.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from vesper._direct import HttpServer
from vesper.config.code_folder import search_code_folder
from vesper.effects.settings import ConfigError
from vesper.observe.logs import configure
from vesper.observe.spans import Tracing
from vesper.serve.builtins import Builtins
from vesper.serve.control import Channel, Options
from vesper.serve.keys import read_auth
from vesper.serve.nodes import Service, native_program
from vesper.serve.run_call import describe_error, run_call
from vesper.serve.runs.endpoints import ENDPOINTS
from vesper.serve.runs.operations import Watch
from vesper.serve.runs.watches import Watches
from vesper.serve.streams import Streams, wants_stream
from vesper.serve.table import build_table
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper._direct import HttpCall
    from vesper.compiler import Compiled
    from vesper.config.settings import Config

_log = logging.getLogger("vesper.serve")
_access = logging.getLogger("vesper.serve.access")
_POLL_SECONDS = 1.0
_LAST_SECONDS = 2.0
"""Time of the Host and the routes to close after the last request, beyond the grace."""


class Worker:
    def __init__(self, options: Options, listener: socket.socket) -> None:
        """Load everything and begin to answer. Raises `VesperError` if that is not possible."""
        self._options = options
        self._services: dict[int, Service] = {}
        self._epoch = 0
        self._auth: Mapping[str, object] = {}
        self._keys_due = float("inf")
        self._is_done = False
        self._subjects: dict[str, Compiled] = {}
        """Nodes of all epochs by id, for spans of requests that Python has not seen."""
        config = self._read_config()
        auth = read_auth(config)
        service = Service(config, options, None)
        settings = server_settings(config)
        self._tls = settings["tls"]
        self._server = HttpServer(listener.detach(), json.dumps(settings).encode())
        self._builtins = Builtins(self._server.facts)
        self._watches = Watches()
        self._streams = Streams()
        self._load(service, auth)
        for n in range(options.threads or config.serve.threads):
            self._start(f"vesper-serve-{n}", is_for_builtins=False)
        self._start("vesper-serve-builtins", is_for_builtins=True)

    @property
    def _service(self) -> Service:
        return self._services[self._epoch]

    def _read_config(self) -> Config:
        config = self._options.read_config()
        search_code_folder(config)
        return config

    def _start(self, name: str, is_for_builtins: bool) -> None:
        threading.Thread(target=self._answer_calls, args=(is_for_builtins,), name=name, daemon=True).start()

    # -- epochs -----------------------------------------------------------------------------------

    def reload(self) -> None:
        """Load settings, secrets and nodes into a new epoch. Raises `VesperError`; then the old epoch remains."""
        config = self._read_config()
        if server_settings(config)["tls"] != self._tls:
            raise ConfigError("serve.tls", "a reload reads the files again; other files, or none, need a restart")
        auth = read_auth(config)
        old = self._service
        service = Service(config, self._options, old.routes)
        try:
            self._load(service, auth)
        except BaseException:
            service.close(0.0)
            raise
        service.inherit_routes(old)
        threading.Thread(target=self._retire, args=(old,), name="vesper-retire", daemon=True).start()

    def _load(self, service: Service, auth: Mapping[str, object]) -> None:
        """Make a service the next epoch of the server. Raises `VesperError`; then nothing has changed."""
        table = build_table(service.nodes, service.config.serve, auth, has_runs=service.has_runs)
        epoch = self._epoch + 1
        self._services[epoch] = service  # first: a request may come at once
        try:
            others = [None] * len(ENDPOINTS) if service.has_runs else []
            self._server.load(table, [*(native_program(each) for each in service.nodes), *others])
        except ValueError as problem:
            del self._services[epoch]
            raise ConfigError("serve", str(problem)) from None
        self._epoch, self._auth = epoch, auth
        service.start_work()
        self._subjects |= {each.id: each._compiled for each in service.nodes}
        observe = service.config.observe
        configure(self._options.log_format or observe.logs, observe.levels)
        refresh = [each.refresh for each in service.config.serve.jwt]
        self._keys_due = time.monotonic() + min(refresh, default=float("inf"))

    def _retire(self, service: Service) -> None:
        """Close the service of old epochs once no request belongs to them."""
        epochs = [epoch for epoch, each in self._services.copy().items() if each is service]
        if service.work is not None:
            service.work.stop(0.0)
        self._watches.end(service)
        until = time.monotonic() + self._options.grace
        while time.monotonic() < until and self._server.facts()["oldest_epoch"] <= max(epochs):
            time.sleep(_POLL_SECONDS)
        for epoch in epochs:
            del self._services[epoch]
        service.close(self._options.grace)

    def _refresh_keys(self) -> None:
        """Read the keys of issuers again. If that fails, the known keys remain in use."""
        service = self._service
        self._keys_due = time.monotonic() + min(each.refresh for each in service.config.serve.jwt)
        try:
            auth = read_auth(service.config)
            if auth != self._auth:
                self._load(service, auth)
        except VesperError as problem:
            _log.error("the keys of issuers cannot be read again, and the known ones stay: %s", problem)

    # -- requests ---------------------------------------------------------------------------------

    def _answer_calls(self, is_for_builtins: bool) -> None:
        while not self._is_done:
            call = self._server.next(_POLL_SECONDS, builtins=is_for_builtins)
            if call is not None:
                self._answer(call)
            del call  # its epoch is in use until then

    def _answer(self, call: HttpCall) -> None:
        service = self._services.get(call.epoch)
        if service is None:
            call.refuse("closing", None, 1.0, None)
            return
        node = None
        try:
            if call.builtin is not None:
                is_named = call.actor is not None
                call.send(*self._builtins.page(call.builtin, service, call.epoch, is_named, call.accept))
            elif call.is_abandoned:
                call.refuse("closing", None, None, None)
            elif call.endpoint >= len(service.nodes):
                found = service.runs.answer(call.endpoint - len(service.nodes), call, call.inputs)
                if isinstance(found, Watch):
                    self._watches.add(call, found, service)
            else:
                node = service.nodes[call.endpoint]
                if wants_stream(call.accept, node):
                    self._streams.add(call, node, service)
                    return
                run_call(call, node, call.inputs, call.seconds_left, service, service.has_runs)
        except Exception as error:  # noqa: BLE001  # a bug of one request must not end its thread
            _log.error("%s broke\n%s", call.builtin or call.node, describe_error(error, service, node))
            call.refuse("internal", None, None, None)

    # -- the main thread --------------------------------------------------------------------------

    def serve(self, channel: Channel, is_ending: Callable[[], bool], wakes: socket.socket) -> None:
        """Answer until SIGTERM, or until the supervisor is gone."""
        _send_message(channel, kind="ready", nodes=len(self._service.nodes))
        awaited: list[socket.socket | Channel] = [channel, wakes]
        refused: Service | None = None
        while not is_ending():
            ready, _, _ = select.select(awaited, [], [], _POLL_SECONDS)
            if wakes in ready:
                wakes.recv(4096)
            if channel in ready:
                messages = channel.receive()
                if messages is None:
                    _log.error("the supervisor is gone: this worker ends")
                    break
                if any(each["kind"] == "reload" for each in messages):
                    self._report_reload(channel)
            if self._service.has_new_lead and self._service is not refused:
                refused = self._service  # tried once: its nodes have the new lead already, its document has not
                self._report_reload(channel)
            if time.monotonic() > self._keys_due:
                self._refresh_keys()
            self._report_requests()
        self.close()

    def _report_reload(self, channel: Channel) -> None:
        try:
            self.reload()
        except VesperError as problem:
            _send_message(channel, kind="kept", why=str(problem))
        except Exception as error:  # noqa: BLE001  # whatever a reload comes to, the old epoch serves
            _send_message(channel, kind="kept", why=describe_error(error, self._service, None))
        else:
            _send_message(channel, kind="loaded", nodes=len(self._service.nodes))

    def _report_requests(self) -> None:
        """Log the server's faults and the requests since the last call, and export the spans of native requests."""
        for text in self._server.take_logs():
            _log.error("%s", text)
        for method, template, node, status, _, duration_ns, trace in self._server.take_access():
            path = template or "-"  # of no node
            extra = {"node": node, "trace_id": trace}
            _access.info("%s %s %s %.1f ms", method, path, status, duration_ns / 1e6, extra=extra)
        if rows := self._server.take_spans():
            Tracing(self._service.config.observe).export_native(rows, self._subjects)

    def close(self) -> None:
        """Accept no more requests, answer the open ones within the grace, and flush journal and evidence."""
        self._server.stop_accepting()
        self._watches.end()
        for service in set(self._services.values()):
            if service.work is not None:
                service.work.stop(0.0)
        until = time.monotonic() + self._options.grace
        if not self._server.drain(self._options.grace):
            _log.warning("requests have not ended within %g s; they are cut off", self._options.grace)
        self._is_done = True
        self._server.close()
        self._report_requests()
        for service in set(self._services.values()):
            service.close(max(_LAST_SECONDS, until - time.monotonic()))


def _send_message(channel: Channel, **message: object) -> None:
    """Send a message. Ignored if the supervisor is gone: the end of its stream drains the worker."""
    with contextlib.suppress(OSError):
        channel.send(**message)


def server_settings(config: Config) -> dict[str, Any]:
    """Return the settings of the native server."""
    settings, tls = config.serve, config.serve.tls
    found: dict[str, Any] = {
        **asdict(settings.limits),
        "is_access_logged": settings.has_access_log,
        "span_sample": 0.0 if config.observe.otlp is None else config.observe.sample,
        "tls": None,
    }
    if tls is not None:
        authorities = None if tls.client_ca is None else str(tls.client_ca)
        # Callers with another kind of credentials need no certificate.
        is_required = authorities is not None and not settings.keys and not settings.jwt
        found["tls"] = {
            "certificate": str(tls.certificate),
            "key": str(tls.key),
            "client_authorities": authorities,
            "is_client_required": is_required,
        }
    return found


def main() -> None:
    listener, end, text = sys.argv[1:]
    options = Options.from_json(text)
    wakes, waking = socket.socketpair()
    waking.setblocking(False)
    signals: list[int] = []
    signal.set_wakeup_fd(waking.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, lambda number, _: signals.append(number))
    for each in (listener, end):
        os.set_inheritable(int(each), False)
    channel = Channel(socket.socket(fileno=int(end)))
    configure(options.log_format or "text")
    try:
        worker = Worker(options, socket.socket(fileno=int(listener)))
    except VesperError as problem:
        _send_message(channel, kind="failed", why=str(problem))
        signal.set_wakeup_fd(-1)  # the sockets are closed before the interpreter takes its last signals
        sys.exit(1)
    worker.serve(channel, lambda: bool(signals), wakes)
    # Threads that native code holds must not meet the end of the interpreter.
    atexit._run_exitfuncs()
    os._exit(0)


if __name__ == "__main__":
    main()
