"""The built-in pages of a server: readiness, status, metrics, OpenAPI document and its documentation.

`/livez` is answered without Python. Unauthenticated callers see no names of people and no paths of the machine.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from vesper import __version__
from vesper.host.background_work import WorkState
from vesper.journal.journal import JournalError, Status
from vesper.serve.nodes import Service, is_hosted

_log = logging.getLogger("vesper.serve")
_KEEP_SECONDS = 1.0
"""For so long a readiness is reused: any caller may request it, and it reads the journal."""
_MAX_COUNTED = 1_000
_JSON = ("Content-Type", "application/json")
_FRESH = ("Cache-Control", "no-store")

Page = tuple[int, list[tuple[str, str]], bytes]


@dataclass(frozen=True, slots=True)
class Readiness:
    is_ready: bool
    journal: str
    """`writable`, `unavailable`, or `unused` where no node has effects."""
    in_doubt: int | None
    """Runs that wait for a person, at most 1,000 are counted; None where the journal cannot be read."""
    store_age_seconds: float | None
    """Seconds since the last contact with the migration store; None where no node is routed."""
    is_killed: bool
    """True where the kill switch keeps all nodes on Python."""


class Builtins:
    """The pages of one worker."""

    def __init__(self, facts: Callable[[], Mapping[str, int]]) -> None:
        """`facts` returns the counters of the server."""
        self._facts = facts
        self._started = time.time()
        self._lock = threading.Lock()
        self._kept: tuple[float, Service, Readiness] | None = None

    def page(self, name: str, service: Service, epoch: int, is_named: bool, accept: str | None) -> Page:
        """Return the page of this path. `is_named` is True for callers that authenticated themselves."""
        match name:
            case "/readyz":
                found = self.readiness(service)
                return _json(200 if found.is_ready else 503, asdict(found))
            case "/status":
                return _json(200, self._status(service, epoch, is_named))
            case "/metrics":
                from vesper.observe.metrics import render

                kind, text = render(accept or "")
                return 200, [("Content-Type", kind), _FRESH], text
            case "/openapi.json":
                return 200, [_JSON], service.openapi
            case "/docs":
                from vesper.serve.openapi.page import page

                return 200, [("Content-Type", "text/html; charset=utf-8")], page(service.openapi)
        raise ValueError(f"there is no page {name}")

    def readiness(self, service: Service) -> Readiness:
        """Return the readiness, at most a second old."""
        with self._lock:  # one check serves all callers that wait
            now = time.monotonic()
            if self._kept is not None and self._kept[1] is service and now - self._kept[0] < _KEEP_SECONDS:
                return self._kept[2]
            found = _read_readiness(service)
            self._kept = now, service, found
            return found

    def _status(self, service: Service, epoch: int, is_named: bool) -> dict[str, object]:
        routes = service.routes
        switch = None if routes is None else routes.migration.kill_switch
        found: dict[str, object] = {
            "version": __version__,
            "pid": os.getpid(),
            "epoch": epoch,
            "started": round(self._started, 3),
            "readiness": asdict(self.readiness(service)),
            "server": dict(self._facts()),
            "work": [] if service.work is None else _work(service.work.states(), is_named),
            "work_problems": [
                {"node": node, "problem": problem if is_named else None}
                for node, problem in service.work_problems.items()
            ],
            "nodes": [
                {
                    "id": node.id,
                    "type": node.type,
                    "semantic_hash": node.semantic_hash,
                    "engine": node.engine,
                    "mode": node.mode,
                    "has_effects": is_hosted(node),
                }
                for node in service.nodes
            ],
        }
        if is_named and switch is not None:
            found["kill_switch"] = {"who": switch.who, "why": switch.why, "at_us": switch.at_us}
        return found


def _work(states: list[WorkState], is_named: bool) -> list[dict[str, object]]:
    """Return the state of background work. Problems are shown only to named callers: they may contain paths of the
    machine.
    """
    return [asdict(each) if is_named else {"name": each.name, "is_running": each.is_running} for each in states]


def _read_readiness(service: Service) -> Readiness:
    journal, in_doubt = _read_journal(service) if service.has_effects else ("unused", 0)
    routes = service.routes
    age = None if routes is None else round(routes.migration.contact_age_seconds, 3)
    is_killed = routes is not None and routes.migration.kill_switch is not None
    return Readiness(journal != "unavailable", journal, in_doubt, age, is_killed)


def _read_journal(service: Service) -> tuple[str, int | None]:
    try:
        service.host.journal.check_writable()
        return "writable", len(service.host.journal.find(status=Status.IN_DOUBT, limit=_MAX_COUNTED))
    except JournalError as error:
        _log.error("not ready: %s", service.host.redact(str(error)))
        return "unavailable", None


def _json(status: int, value: object) -> Page:
    return status, [_JSON, _FRESH], json.dumps(value).encode()
