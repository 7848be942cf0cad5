"""All that the routed nodes of one configuration share: the store and its thread, the followers, the direct engines.

    routes = Routes(config)
    program = routes.program(compiled)

`close` follows what waits, and tells the store everything.
"""

from __future__ import annotations

import os
import threading
from datetime import UTC, date, datetime
from weakref import WeakSet

from vesper.compiler import Compiled
from vesper.engines.registry import ENGINES
from vesper.host.config import Config
from vesper.host.plans import plans_of
from vesper.migration.admission import Admission
from vesper.migration.adopting import FunctionComparator
from vesper.migration.carry import epoch_of
from vesper.migration.comparator import Comparator
from vesper.migration.divergence import Divergence
from vesper.migration.diverged import divergence_of
from vesper.migration.followers import Followers
from vesper.migration.live import now_us
from vesper.migration.process import Migration
from vesper.migration.reports import Disagreement, Fault
from vesper.migration.router import Direct, RoutedProgram
from vesper.migration.routing import Shares
from vesper.migration.state import Diverged, EngineFaulted
from vesper.migration.store import Happened, NodeKey, Store

_WHOLE = 10_000


class Routes:
    def __init__(self, config: Config, store: Store | None = None) -> None:
        self.config = config
        self.settings = config.migrating()
        self.migration = Migration(self.settings, config.folder / ".vesper" / "migration", store)
        self.followers = Followers(Admission(self.settings.follow_cpu, self.settings.follow_memory))
        self.migration.chores.append(self.followers.admission.adjust)
        self._programs: dict[NodeKey, RoutedProgram] = {}
        self._lock = threading.RLock()
        self.is_closed = False
        _ALL.add(self)

    def program(self, compiled: Compiled) -> RoutedProgram:
        """A node that is routed; the same one for the same node."""
        comparator = Comparator(compiled, self.settings.of(compiled.node.node_id).tolerances, _today)
        return self._found(compiled, comparator, "")

    def adopted(self, compiled: Compiled, function: str) -> RoutedProgram:
        """A node behind a function, which is named; it is called beside each time."""
        tolerances = self.settings.of(compiled.node.node_id).tolerances
        return self._found(compiled, FunctionComparator(compiled, tolerances, _today), function)

    def _found(self, compiled: Compiled, comparator: Comparator, function: str) -> RoutedProgram:
        version = f"{comparator.version} {function}" if function else comparator.version
        key = NodeKey(compiled.node.node_id, epoch_of(compiled, version))
        with self._lock:
            found = self._programs.get(key)
            if found is None:
                found = self._programs[key] = self._made(key, compiled, comparator, bool(function))
            return found

    def _made(self, key: NodeKey, compiled: Compiled, comparator: Comparator, is_adopted: bool) -> RoutedProgram:
        node = self.settings.of(compiled.node.node_id)
        is_sensitive = plans_of(compiled).is_sensitive

        def happened(report: Disagreement | Fault) -> Happened:
            return happened_of(report, divergence_of(report, compiled, is_sensitive, now_us()))

        live = self.migration.node(key, compiled, happened)
        canary = self.settings.canary if node.canary is None else node.canary
        return RoutedProgram(
            compiled,
            ENGINES["python"].load(compiled),
            self._direct(compiled),
            live,
            comparator,
            self.followers,
            self.migration,
            Shares(round(canary * _WHOLE), round(self.settings.sample * _WHOLE)),
            node.routing_key,
            self.settings.deadline,
            is_adopted,
        )

    def _direct(self, compiled: Compiled) -> Direct:
        if self.settings.isolation == "process":
            from vesper.migration.isolation import IsolatedProgram

            return IsolatedProgram(compiled, self.settings.deadline)
        from vesper.engines.direct_engine import DirectEngine

        return DirectEngine().load(compiled)

    def after_fork(self) -> None:
        self._lock = threading.RLock()
        self.followers.after_fork()

    def close(self) -> None:
        self.is_closed = True
        self.followers.close()
        self.migration.close()


def happened_of(report: Disagreement | Fault, divergence: Divergence) -> Happened:
    """What the controller is told of it."""
    if isinstance(report, Fault):
        return Happened(EngineFaulted(divergence.where), divergence)
    event = Diverged(divergence.path, divergence.fingerprint, report.difference.is_effect)
    return Happened(event, divergence, report.fingerprint)


def _today() -> date:
    return datetime.now(UTC).date()


_ALL: WeakSet[Routes] = WeakSet()


def _forked() -> None:
    for each in list(_ALL):
        each.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
