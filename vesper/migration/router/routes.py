"""The parts that all routed nodes of one configuration share: store, shadow queue, direct engines.

    routes = Routes(config)
    program = routes.program(compiled)

`close` follows queued executions, and sends all findings to the store.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache, partial
from typing import TYPE_CHECKING
from weakref import WeakSet

from vesper.compiler import Compiled
from vesper.config.settings import Config
from vesper.effects.settings import ConfigError, close_to
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.python_engine import PythonEngine, PythonProgram
from vesper.engines.registry import REFERENCE
from vesper.engines.tiering import tiering
from vesper.host.host import Host
from vesper.host.limits import limits_of_run
from vesper.host.masking import masks_of_versions
from vesper.host.plans import plans_of
from vesper.migration.compare.comparator import Comparator
from vesper.migration.compare.divergence import Divergence
from vesper.migration.compare.divergence_record import PathsByPlace, divergence_of
from vesper.migration.compare.reports import Disagreement, Fault
from vesper.migration.control.routing import Shares
from vesper.migration.control.state import Diverged, EngineFaulted, Noisy
from vesper.migration.router.background_checks import BackgroundChecks
from vesper.migration.router.context import RoutingContext, Rules
from vesper.migration.router.epoch import epoch_of
from vesper.migration.router.node_state import now_us
from vesper.migration.router.router import RoutedProgram
from vesper.migration.router.spool import spool_folder
from vesper.migration.router.store_sync import Migration
from vesper.migration.shadow.admission import Admission
from vesper.migration.shadow.guarded_direct import PathedProgram
from vesper.migration.shadow.shadow_queue import Followers
from vesper.migration.stores.store import Happened, NodeKey, Store, StoreAway, StoreError
from vesper.migration.workers.counted_program import ExecutionCounters
from vesper.migration.workers.helper import Helper
from vesper.storage.after_fork import Order, register
from vesper.storage.trust import distrust

if TYPE_CHECKING:
    from vesper.config.versions import VersionSettings
    from vesper.migration.candidates.live_candidate import LiveCandidate
    from vesper.migration.router.adoption import AdoptedProgram
    from vesper.migration.workers.isolation import Workers

_log = logging.getLogger("vesper.migration")
_WHOLE = 10_000


class Routes:
    def __init__(self, config: Config, store: Store | None = None) -> None:
        self.config = config
        self.settings = config.migration_settings()
        self._folder = spool_folder(config.folder)
        if (reason := distrust(self._folder)) is not None:
            raise StoreError(reason)
        self.migration = Migration(self.settings, self._folder, store)
        self.helper = Helper()
        self._hosts: WeakSet[Host] = WeakSet()
        """Hosts of routed nodes, which know the secrets to redact."""
        self._tended: list[BackgroundChecks] = []
        self.followers = Followers(Admission(self.settings.follow_cpu, self.settings.follow_memory))
        self.migration.lull = self.followers.lull
        self.migration.gatherers.append(self._drain)
        self.followers.on_exhausted = self.migration.stop_following
        self.migration.chores += (self.followers.check, self.followers.admission.adjust)
        self._counting = ExecutionCounters(self._folder / "flights", self.migration.send_event)
        self.migration.chores.append(self._counting.look)
        self._programs: dict[NodeKey, RoutedProgram] = {}
        self._candidates: dict[tuple[str, str], LiveCandidate] = {}
        """By name and pair."""
        self._candidate_problems: dict[tuple[str, str], str] = {}
        """What the log has said of what the store holds of a name."""
        self.migration.chores.append(self._sync_candidates)
        self._lock = threading.Lock()
        self.is_closed = False
        """True as soon as closing begins."""
        self._has_closed = False
        self._workers: Workers | None = None
        """Worker processes of the direct engine; None where it runs in this process."""
        _ALL.add(self)

    def program(self, compiled: Compiled) -> RoutedProgram:
        """Return the routed node; the same one for the same node."""
        comparator = Comparator(compiled, self.settings.of(compiled.node.node_id).tolerances)
        _warn_of_expired_tolerances(comparator, compiled.node.node_id)
        key = NodeKey(compiled.node.node_id, epoch_of(compiled, comparator.version))
        with self._lock:
            found = self._programs.get(key)
            if found is None:
                context = self._context(key, compiled, comparator)
                found = self._programs[key] = RoutedProgram(
                    context, _python(compiled), self._start_background_checks(context).agreed, self.attach
                )
            return found

    def attach(self, host: Host) -> None:
        """Register a Host that performs effects of a routed node or of a lead."""
        self._hosts.add(host)
        self.migration.forward_alerts(host)

    def adopted(self, compiled: Compiled, function: str) -> AdoptedProgram:
        """Return a node behind a function; `function` names it and is part of the epoch (`function_name`)."""
        from vesper.migration.router.adoption import AdoptedProgram, FunctionComparator  # slow to import

        comparator = FunctionComparator(compiled, self.settings.of(compiled.node.node_id).tolerances)
        _warn_of_expired_tolerances(comparator, compiled.node.node_id)
        key = NodeKey(compiled.node.node_id, epoch_of(compiled, f"{comparator.version} {function}"))
        with self._lock:
            return AdoptedProgram(self._context(key, compiled, comparator, leader=function.partition("#")[0]))

    def candidate(self, name: str, settings: VersionSettings, lead: Compiled, candidate: Compiled) -> LiveCandidate:
        """Return the candidate of a name in this process. It is one object for equal definitions and settings."""
        from vesper.migration.candidates.comparison import Comparison, Side
        from vesper.migration.candidates.live_candidate import Bounds, LiveCandidate
        from vesper.migration.candidates.record import Pair

        pair = Pair.of(lead, candidate)
        with self._lock:
            found = self._candidates.get((name, f"{pair.id} {settings}"))
            if found is not None:
                return found
            lead_side, candidate_side = (
                Side(each, cache(partial(self._direct, each)), masks)
                for each, masks in zip((lead, candidate), masks_of_versions(lead, candidate), strict=True)
            )
            deadline = self.settings.deadline
            is_ready = _always_ready
            if self.settings.isolation != "none":
                candidate_side.program()  # starts the workers
                assert self._workers is not None
                is_ready = self._workers.is_ready
            found = LiveCandidate(
                name,
                settings,
                pair,
                Comparison(lead_side, candidate_side, deadline, self._redact),
                self.followers,
                Bounds(deadline, self.settings.isolation != "none", is_ready),
                lambda: self.migration.process,
            )
            self._candidates[name, f"{pair.id} {settings}"] = found
        try:
            self._sync_candidate(found)
        except StoreError as error:
            _log.warning("%s: decisions about its candidate are not known yet: %s", name, error)
        self.migration.start()
        return found

    def _sync_candidates(self) -> None:
        """Sync all. A name whose record cannot be read delays neither the others nor the chores after this one."""
        for key, each in list(self._candidates.items()):
            try:
                self._sync_candidate(each)
            except StoreAway:
                raise
            except StoreError as error:
                if self._candidate_problems.get(key) != str(error):
                    self._candidate_problems[key] = str(error)
                    _log.warning("%s: decisions about its candidate, and its counts, have to wait: %s", key[0], error)
            else:
                self._candidate_problems.pop(key, None)

    def _sync_candidate(self, candidate: LiveCandidate, is_all: bool = False) -> None:
        candidate.sync(self.migration.store, is_all, is_killed=self.migration.kill_switch is not None)

    def _close_candidates(self) -> None:
        for each in list(self._candidates.values()):
            try:
                self._sync_candidate(each, is_all=True)
            except StoreError as error:
                _log.warning("the last counts of the candidate of %s are lost: %s", each.name, error)

    def wait_until_ready(self, seconds: float) -> bool:
        """Wait until the direct engine can follow; return False after `seconds`.

        Requests never wait for a worker. A command with a single request waits here to have it compared.
        """
        return self._workers is None or self._workers.is_ready() or self._workers.wait_until_up(seconds)

    def _context(
        self, key: NodeKey, compiled: Compiled, comparator: Comparator, leader: str = REFERENCE
    ) -> RoutingContext:
        """Build all parts of one routed node. Raises `ConfigError` before any of them is registered."""
        rules, plans = self._rules(compiled), plans_of(compiled)
        direct = self._count_executions(key, self._direct(compiled))

        paths = PathsByPlace()

        def happened(report: Disagreement | Fault) -> Happened:
            engines = (leader, DirectEngine.name)
            kept = divergence_of(
                report, compiled, plans.is_sensitive, now_us(), engines, redact=self._redact, paths=paths
            )
            return happened_of(report, kept)

        return RoutingContext(
            compiled,
            key,
            plans,
            rules,
            comparator,
            direct,
            live=self.migration.node(key, compiled, happened),
            keyed=self.migration,
            followers=self.followers,
            is_ready=_always_ready if self._workers is None else self._workers.is_ready,
        )

    def _start_background_checks(self, context: RoutingContext) -> BackgroundChecks:
        """Start the background checks of one node."""
        store, retention = self.migration.store, self.settings.retention
        tending = BackgroundChecks(context, store, self.helper, self._folder, self._redact, retention)
        self._tended.append(tending)
        self.migration.chores += (tending.look, tending.flush)
        tending.begin()
        return tending

    def _rules(self, compiled: Compiled) -> Rules:
        node = self.settings.of(compiled.node.node_id)
        _check_routing_key(compiled, node.routing_key)
        canary = self.settings.canary if node.canary is None else node.canary
        shares = Shares(round(canary * _WHOLE), round(self.settings.sample * _WHOLE))
        has_workers = self.settings.isolation != "none"
        return Rules(shares, node.routing_key, self.settings.deadline, node.tolerances, has_workers)

    def _count_executions(self, key: NodeKey, direct: PathedProgram) -> PathedProgram:
        """Return the program with its running executions counted, unless workers run it.

        A crash of a worker ends no caller.
        """
        return direct if self.settings.isolation != "none" else self._counting.program(key, direct)

    def _direct(self, compiled: Compiled) -> PathedProgram:
        if self.settings.isolation != "none":
            from vesper.migration.workers.isolation import IsolatedProgram, Workers

            if self._workers is None:
                is_sandboxed = self.settings.isolation == "sandbox"
                self._workers = Workers(deadline=self.settings.deadline, is_owned=True, is_sandboxed=is_sandboxed)
            return IsolatedProgram(compiled, self._workers)
        return DirectEngine(tiering(self.config.engine)).load(compiled)

    def _drain(self) -> None:
        for program in list(self._programs.values()):
            program.drain()

    def _redact(self, text: str) -> str:
        for host in list(self._hosts):
            text = host.redact(text)
        return text

    def after_fork(self) -> None:
        """Restart the shared parts in the child of a fork.

        Closed parts stay closed; the parent ends its own closing.
        """
        self._lock = threading.Lock()
        self.is_closed = self._has_closed
        self.followers.after_fork()
        if self._has_closed:
            self.followers.close(0.0)
        else:
            self.helper.reopen()
        for tending in self._tended:
            tending.after_fork()
        for program in self._programs.values():
            program.after_fork()
        for candidate in self._candidates.values():
            candidate.after_fork()

    def close(self) -> None:
        """Close all parts in order, each also where the one before failed. The store receives all evidence."""
        self.is_closed = True
        with ExitStack() as stack:
            stack.callback(self._counting.close)
            stack.callback(self.migration.close)
            if self._workers is not None:
                stack.callback(self._workers.close)
            for tending in reversed(self._tended):
                stack.callback(tending.close)
            stack.callback(self.helper.close)
            stack.callback(self._close_candidates)
            stack.callback(self.followers.close)
            for program in reversed(list(self._programs.values())):
                stack.callback(program.close)
        self._has_closed = True


def _always_ready() -> bool:
    return True


def _python(compiled: Compiled) -> PythonProgram:
    """Load every form that a request may need. Generating one takes a tenth of a second under the GIL."""
    python = PythonEngine().load(compiled)
    python.form("traced")
    if python.is_counted(limits_of_run(None, compiled.node.grants.policy)):
        python.form("metered")
    return python


def _warn_of_expired_tolerances(comparator: Comparator, node: str) -> None:
    for each in comparator.expired():
        _log.warning("%s: the tolerance of `%s` ended on %s and holds no more", node, each.field, each.until)


def _check_routing_key(compiled: Compiled, names: Sequence[str]) -> None:
    """Refuse a routing key without inputs: it would put all callers into the canary, or none."""
    inputs = [each.name for each in compiled.node.inputs]
    for name in names:
        if name not in inputs:
            where = f"migration.nodes.{compiled.node.node_id}.routing_key"
            raise ConfigError(where, f"`{name}` is no input; there are {', '.join(inputs)}{close_to(name, inputs)}")


def happened_of(report: Disagreement | Fault, divergence: Divergence) -> Happened:
    """Return the event for the controller, with the divergence to store."""
    if isinstance(report, Fault):
        return Happened(EngineFaulted(divergence.where), divergence)
    if report.difference.kind == "noise":
        return Happened(Noisy(divergence.fingerprint, divergence.where), divergence)
    event = Diverged(divergence.path, divergence.fingerprint, report.difference.is_effect)
    return Happened(event, divergence, report.fingerprint)


_ALL: WeakSet[Routes] = WeakSet()


def _forked() -> None:
    for each in list(_ALL):
        each.after_fork()


register(order=Order.ROUTER, after_in_child=_forked)
