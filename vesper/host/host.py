"""The Host: prepares nodes, runs them, and finishes what others left unfinished.

    host = Host.from_file("vesper.toml")
    ran = host.run(host.prepare(compiled, program, "python"), inputs, now)

Any number of threads may use one, and processes that are forked from the one that made it. `close` waits for what is
running.
"""

from __future__ import annotations

import atexit
import contextvars
import logging
import os
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Self
from weakref import WeakSet

from vesper._direct import RunWorkers, SharedLimits, forget_runtime, hold_runtime, release_runtime, size_of
from vesper.compiler import Compiled
from vesper.config.grants import Handle, Mint, refuse_void
from vesper.config.locate import config_for
from vesper.config.settings import Config, PolicySettings, default_config
from vesper.effects.settings import ConfigError
from vesper.engines.engine import (
    DEFAULT_LIMITS,
    Done,
    EngineUnavailable,
    Execution,
    Limits,
    Program,
    limits_of_node,
)
from vesper.engines.outcome import EngineFault, Failed, Outcome
from vesper.engines.registry import ENGINES
from vesper.host.auditing import Auditing
from vesper.host.background import Repeating
from vesper.host.driving import Replayed, Steps, deliver, drive, send
from vesper.host.in_doubt import InDoubt
from vesper.host.keyed_runs import Repeat, Waiters, claim
from vesper.host.masking import Masks
from vesper.host.performers import Performers
from vesper.host.permissions import declared_by, denied_inside, needed
from vesper.host.plans import Plans, plans_of
from vesper.host.prepared import Prepared, Ran, Recovered, compiled_from, definition_of
from vesper.host.recovering import Deferred
from vesper.host.routed import HostedProgram
from vesper.host.run_context import RunContext, current_context, entered
from vesper.host.run_metrics import HostWatch, RunTimer, count_recovery
from vesper.host.run_spans import traced
from vesper.journal.entry import Kind
from vesper.journal.execution_id import trace_id
from vesper.journal.journal import (
    Beginning,
    Fenced,
    Journal,
    JournalError,
    KeyTaken,
    NotTaken,
    Recorded,
    Run,
    Summary,
    UnknownExecution,
)
from vesper.journal.owner import is_dead
from vesper.language.ir.nodes import Node
from vesper.observe.logs import redact_with
from vesper.observe.spans import Tracing
from vesper.storage.after_fork import Order, register
from vesper.storage.sources import SYSTEM_SOURCES, Sources
from vesper.values.generated.errors import ErrorCode
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper._direct import PreparedNode, Running
    from vesper.effects.events.memory import Subscriber
    from vesper.effects.performer import Performer
    from vesper.journal.journal import KeyRing

_log = logging.getLogger("vesper.host")


class HostClosed(VesperError):
    """Somebody asked a Host for a run after it was closed."""


class Host:
    after_run: Callable[[Prepared, str], None] | None = None
    """Told of each run that has ended, and its id; for breakpoints of running services. It raises nothing."""
    before_close: Callable[[], None] | None = None
    """Called when no run is under way any more, while the journal is still open: who was told of the last runs may have
    to look at them yet. It raises nothing."""
    _pace = "policies"
    """Application of retries and shared limits: `once` and `immediate` are for tests."""
    _syncs_writes = True
    """True where commits of runs that change something wait for the disk."""

    def __init__(
        self,
        config: Config | None = None,
        *,
        journal: Journal | None = None,
        performers: Mapping[str, Performer] | None = None,
        sources: Sources = SYSTEM_SOURCES,
    ) -> None:
        """`performers` stand in for those of the configuration, effect by effect, and `sources` for the clocks and the
        random bytes of the system: for tests. A `journal` that is handed over has its own."""
        if config is not None and not isinstance(config, Config):
            raise TypeError(
                f"a Host has settings, not a {type(config).__name__}: "
                "vesper.Host.from_file(PATH) reads them from a file, vesper.config.settings.config_from from a dict"
            )
        self.config = default_config(Path.cwd()) if config is None else config
        self._sources = sources
        self._performers = Performers(self.config, performers or {}, sources)
        self._mint = Mint(self.config.grants)
        self._limits = _limits_of(self.config.policies)
        self._tracing = Tracing(self.config.observe)
        self._journal = journal
        self._owns_journal = journal is None
        self._prepared: dict[tuple[str, str], Prepared] = {}
        self._deferred = Deferred()
        self.watch = HostWatch()
        self._is_closed = False
        self.on_lost: list[Callable[[Summary], None]] = []
        """Told of each run that began under the direct engine, and whose process is gone."""
        self._warned = False
        self._last_prune = 0
        self._begin_process()
        _HOSTS.add(self)
        redact_with(self.redact)

    def _begin_process(self) -> None:
        """What a process has for itself. A fork leaves no thread behind, and locks as they were: a child starts anew,
        with the same settings, nodes and performers."""
        self._lock = threading.RLock()
        self._quiet = threading.Condition(self._lock)
        self._when_quiet: list[Callable[[], None]] = []
        self._active: dict[object, int] = {}
        """Runs that were accepted and have not come back, those that wait for a worker among them, each with the thread
        that it is in. One goes in a single step, without a lock: a run that Ctrl-C interrupts while it ends must not
        count for ever."""
        self._running: dict[str, Running] = {}
        self._key_waiters = Waiters()
        self._workers = RunWorkers(self.config.workers)
        every = self.config.journal.lease / 3
        self._leases = Repeating("vesper-leases", every, self._renew)
        # In a thread of its own: a run that is finished for somebody else may take long, and leases must not wait.
        self._chores = Repeating("vesper-recovery", self.config.recovery.every, self._do_chores)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str] | None = None) -> Self:
        """The Host of a `vesper.toml`: the one named, the one that VESPER_CONFIG names, or the nearest upwards. Where
        there is none, nothing is granted."""
        return cls(config_for(explicit=path))

    # -- preparing --------------------------------------------------------------------------------

    def prepare(self, compiled: Compiled, program: Program, engine: str) -> Prepared:
        """Reads off a node what its runs need. The same node on the same engine is prepared once. Raises `ConfigError`
        where it asks for something of somebody who is not configured: before half of it is done."""
        name = (compiled.semantic_hash, engine)
        found = self._prepared.get(name)
        if found is None:
            plans = plans_of(compiled)
            self._performers.know_machines(plans.machines, compiled.node.node_id)
            node = compiled.node
            for node_id, declared in declared_by(compiled):
                refuse_void(node_id, declared, self.config.grants)
            handles, refused = self._mint.handles(
                node.node_id, node.grants.required, node.grants.denied, needed(node, plans)
            )
            refused = {**refused, **denied_inside(node.node_id, plans, self._mint.denial)}
            if not refused:  # otherwise it does nothing anyway
                self._performers.check_targets(plans.targets, node.node_id)
            native = cache(partial(self._native_node, compiled, plans, handles, refused))
            found = Prepared(
                compiled,
                program,
                engine,
                plans,
                handles,
                refused,
                definition_of(compiled),
                native,
                cache(partial(Masks, compiled)),
            )
            with self._lock:
                found = self._prepared.setdefault(name, found)
            if isinstance(program, HostedProgram):
                program.attach_host(self)
        return found

    def _native_node(
        self,
        compiled: Compiled,
        plans: Plans,
        handles: Mapping[str, Handle],
        refused: Mapping[str, str],
        is_joined: bool,
    ) -> PreparedNode:
        """Return a node in the form of the run loop. Joined runs are part of a transaction of their caller."""
        from vesper._direct import PreparedNode
        from vesper.engines.direct_engine import all_callees

        granted = [capability for capability, handle in handles.items() if self._mint.opens(handle, capability)]
        return PreparedNode(
            compiled.ir,
            [each.ir for each in all_callees(compiled)],
            plans.requests,
            dict(compiled.node.grants.policy),
            granted,
            list(refused.items()),
            self._performers,
            partial(self._performers.secret, frozenset(granted)),
            self._limits,
            self._pace,
            None if self._sources is SYSTEM_SOURCES else self._sources,
            is_joined,
        )

    def check_equipped(self, node: Node, plans: Plans) -> None:
        """That the application's own effects that a node asks for are registered by now, and that the secrets that it
        needs can be had. Raises `ConfigError`."""
        requests = plans.requests.values()
        self._performers.check_registered(requests)
        prefix = "secrets.read."
        names = [each.removeprefix(prefix) for each in needed(node, plans) if each.startswith(prefix)]
        self._performers.check_secrets(requests, names)

    # -- running ----------------------------------------------------------------------------------

    def moment(self) -> datetime:
        """When a run starts whose caller does not say: this moment, except in tests."""
        return _EPOCH + timedelta(microseconds=self._sources.now_us())

    def run(
        self,
        prepared: Prepared,
        inputs: Mapping[str, object],
        now: datetime,
        limits: Limits | None = None,
        on_begun: Callable[[Running], None] | None = None,
    ) -> Ran:
        """Runs a node to its end, for the caller of `run_context`. Raises `JournalError` where the journal cannot be
        written, and `InDoubt` where a step came to what nobody knows; `HostClosed` where the Host was closed;
        `KeyReused` and `KeyRunning` for a key that another run has."""
        entry = object()
        try:
            self._enter(entry, threading.get_ident())
            return self._run(prepared, inputs, now, limits, on_begun)
        except KeyTaken:
            return self._repeat(prepared, inputs).wait()
        finally:
            self._active.pop(entry, None)
            self._left()

    def _run(
        self,
        prepared: Prepared,
        inputs: Mapping[str, object],
        now: datetime,
        limits: Limits | None,
        on_begun: Callable[[Running], None] | None,
    ) -> Ran:
        return drive(self._run_steps(prepared, inputs, now, limits, on_begun))

    def _run_steps(  # what a kind of Host does otherwise stands here: `run` and `arun` both come this way
        self,
        prepared: Prepared,
        inputs: Mapping[str, object],
        now: datetime,
        limits: Limits | None,
        on_begun: Callable[[Running], None] | None,
    ) -> Steps[Ran]:
        context = current_context()
        execution = trace_id(self._sources.now_ns(), self._sources.random_bytes)
        record = None if context is None else claim(self.journal, context, prepared.compiled.node.node_id, execution)
        if isinstance(prepared.program, HostedProgram):
            prepared = prepared.program.route(prepared, inputs, execution)
        plans, timer = prepared.plans, RunTimer(prepared, context)
        is_joined = self._performers.is_joined(plans.targets)
        beginning = Beginning(
            execution,
            prepared.definition,
            inputs,
            now,
            prepared.engine,
            plans.is_sensitive,
            plans.writes and self._syncs_writes,
            is_joined,
            record,
        )
        try:
            run = self.journal.begin(beginning)
        except JournalError:
            # No journal takes what is no value. Where the node does not take it either, that is what the caller reads.
            step = prepared.program.start(inputs, now, limits, is_traced=False).advance(())
            if isinstance(step, Done) and _never_began(step.outcome):
                timer.ended(step.outcome)
                return Ran(execution, step.outcome)
            timer.failed("journal")
            raise
        if plans.writes and not self._warned:
            self._warn_if_volatile()
        steps = self._driven(prepared, run, inputs, now, limits, on_begun, is_joined, context)
        try:
            outcome = yield from traced(steps, self._tracing, prepared, execution, context)
        except (InDoubt, JournalError) as error:
            timer.failed("in_doubt" if isinstance(error, InDoubt) else "journal")
            raise
        timer.ended(outcome)
        if self.after_run is not None:
            self.after_run(prepared, execution)
        return Ran(execution, outcome)

    def _repeat(self, prepared: Prepared, inputs: Mapping[str, object]) -> Repeat:
        return Repeat(self.journal, self._key_waiters, self._recover_keyed, prepared, inputs)

    def _recover_keyed(self, summary: Summary) -> None:
        if self._is_ours(summary):
            raise NotTaken("a thread of this process is running it")
        self.resume(summary.execution, self.config.recovery.engine)

    async def arun(
        self, prepared: Prepared, inputs: Mapping[str, object], now: datetime, limits: Limits | None = None
    ) -> Ran:
        """The same for coroutines. Cancelled before anything was changed, the run ends; after that it goes on to its
        end without its caller."""
        import asyncio

        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Ran] = loop.create_future()
        begun: list[Running] = []
        steps = self._run_steps(prepared, inputs, now, limits, begun.append)
        entry = object()

        def begin() -> tuple[Running, Execution, int] | None:
            if answer.cancelled():  # before a worker took it up: nothing of it is done
                steps.close()
                return None
            try:
                found = next(steps)
            except StopIteration as end:
                ended.append(end.value)
                return None
            if answer.cancelled():
                found[0].cancel()
            return found

        def finish(outcome: Outcome | None, error: BaseException | None) -> None:
            try:
                if begun and not ended:
                    send(steps, outcome, error)
                elif error is not None:
                    raise error
                found: Ran | BaseException | None = ended[0] if ended else None
            except StopIteration as end:
                found = end.value
            except BaseException as raised:  # noqa: BLE001  # the caller gets it
                found = raised
            self._active.pop(entry, None)
            self._left()
            deliver(loop, answer, found)

        ended: list[Ran] = []
        self._enter(entry)
        try:
            self._workers.spawn(contextvars.copy_context(), begin, finish)
        except BaseException:
            self._active.pop(entry, None)
            self._left()
            raise
        try:
            return await answer
        except asyncio.CancelledError:
            for running in begun:
                running.cancel()
            raise
        except KeyTaken:
            pass
        self._enter(entry)
        try:
            return await self._repeat(prepared, inputs).wait_async()
        finally:
            self._active.pop(entry, None)
            self._left()

    def _enter(self, entry: object, thread: int = 0) -> None:
        with self._lock:
            if self._is_closed:
                raise HostClosed("the Host was closed: it runs nothing more. Make another one")
            self._active[entry] = thread

    def _left(self) -> None:
        """A run has left; where it was the last one, that is said."""
        if self._active:
            return
        then: list[Callable[[], None]] = []
        with self._lock:
            if not self._active:
                self._quiet.notify_all()
                then, self._when_quiet = self._when_quiet, then
        for each in then:
            each()

    def lull(self, seconds: float) -> bool:
        """Waits so long, at most, for a moment in which no run is under way; whether there is one."""
        with self._lock:
            return self._quiet.wait_for(lambda: not self._active, seconds)

    def when_quiet(self, then: Callable[[], None]) -> bool:
        """Calls it once, in the thread of the run that ends last, when no run is under way any more; False where none
        is, and then it is not called."""
        with self._lock:
            if not self._active:
                return False
            if then not in self._when_quiet:  # a Host may never be quiet, and be asked often
                self._when_quiet.append(then)
            return True

    def _driven(
        self,
        prepared: Prepared,
        run: Run,
        inputs: Mapping[str, object],
        now: datetime,
        limits: Limits | None,
        on_begun: Callable[[Running], None] | None = None,
        is_joined: bool = False,
        context: RunContext | None = None,
    ) -> Steps[Outcome]:
        policy = prepared.compiled.node.grants.policy
        auditing = Auditing(prepared.compiled, run, prepared.masks, self._sources, context)
        level = auditing.level
        audit = None if level == "none" else auditing
        replayed = self._replayed(run)
        running = prepared.native(is_joined).begin(
            run, inputs, audit, level == "detailed", replayed, threading.get_ident()
        )
        mistake: Exception | None = None
        if on_begun is not None:
            on_begun(running)
        left = None if context is None else context.seconds_left()
        if left is not None:
            running.limit(left)
        try:
            with self._lock:
                self._running[run.execution] = running
                _OURS[run.execution] = self.journal.owner
            self.start()
            try:
                size = size_of(inputs) if "memory_limit_mb" in policy else 0
                started = prepared.program.start(inputs, now, limits_of_run(limits, policy, left), is_traced=False)
                if context is None:
                    return (yield running, started, size)
                with entered(context.of_nested_run()):
                    return (yield running, started, size)
            except (InDoubt, JournalError, KeyTaken):
                raise
            except Exception as error:  # noqa: BLE001  # whatever an engine raises is its fault
                if self._performers.is_mistake_of_caller(error):
                    mistake = error
                else:
                    self._log_fault(error, prepared, run.execution)
                outcome = EngineFault(self.redact(f"{type(error).__name__}: {error}"))
            ended = running.end(outcome)
            if mistake is not None:  # it has ended like that: nobody else could finish what is joined to a transaction
                raise mistake
            return ended
        except JournalError as error:
            if running.has_committed:
                error.add_note(
                    f"execution {run.execution} of {prepared.compiled.node.node_id} has begun, and is finished by "
                    "recovery once its lease is over: do not begin it anew before `vesper journal show` says that it "
                    "has ended"
                )
            raise
        finally:
            mistake = None  # its traceback holds this frame: together they would be a ring
            with self._lock:
                self._running.pop(run.execution, None)
                _OURS.pop(run.execution, None)

    def _log_fault(self, error: Exception, prepared: Prepared, execution: str) -> None:
        lines = traceback.format_exception(error)
        if prepared.plans.is_sensitive:  # its message may repeat any value
            lines = [*traceback.format_tb(error.__traceback__), type(error).__name__]
        node_id = prepared.compiled.node.node_id
        _log.error("%s: %s broke\n%s", execution, node_id, self.redact("".join(lines)))

    def _replayed(self, run: Run) -> Replayed | None:
        """Return the known answers of a run; a Host that replays has some."""
        return None

    # -- recovery ---------------------------------------------------------------------------------

    def recover(self, engine: str | None = None, limit: int = 100) -> list[Recovered]:
        """Takes over the runs that nobody works on any more, and finishes them: on `engine`, or on the one that each
        was begun on. One that cannot be finished is said, and is in nobody's way."""
        found: list[Recovered] = []
        # Those that are not due stand first, because they are the oldest.
        for summary in self.journal.unfinished(limit + len(self._deferred)):
            if self._is_closed or len(found) >= limit:
                break
            if not self._deferred.is_due(summary.execution) or self._is_ours(summary):
                continue
            try:
                recovered = self.resume(summary.execution, engine or self.config.recovery.engine)
            except HostClosed:
                break
            except NotTaken:
                self._deferred.failed(summary.execution)  # another process was faster, or nobody can take it
                continue
            except Exception as error:  # noqa: BLE001  # whatever it is, it is about this run, and others wait
                self._deferred.failed(summary.execution)
                _log.warning("%s of %s cannot be finished yet: %s", summary.execution, summary.node_id, error)
                recovered = Recovered(summary.execution, summary.node_id, None, f"{type(error).__name__}: {error}")
                count_recovery(recovered)
            else:
                self._deferred.done(summary.execution)
            found.append(recovered)
        return found

    def resume(self, execution: str, engine: str | None = None) -> Recovered:
        """Finishes one run. Raises `NotTaken` where somebody else works on it, or it has ended."""
        entry = object()
        try:
            self._enter(entry, threading.get_ident())
            recovered = self._resume(execution, engine)
            count_recovery(recovered)
            return recovered
        finally:
            self._active.pop(entry, None)
            self._left()

    def _resume(self, execution: str, engine: str | None) -> Recovered:
        recorded = self.journal.read(execution)
        summary = recorded.summary
        if self._is_ours(summary):
            raise NotTaken(f"execution {summary.execution} cannot be taken over: this process is running it")
        # A process that died under the direct engine may have died of it: the reference finishes what it left.
        is_lost = _engine_of(recorded) in ("interp", "jit") and is_dead(summary.owner)
        chosen = engine or ("python" if is_lost else _engine_of(recorded))
        # What can go wrong with the node goes wrong before the run is ours.
        compiled = compiled_from(self.journal.definition(summary.semantic_hash))
        prepared = self._prepared.get((compiled.semantic_hash, chosen))
        if prepared is None:
            if chosen not in ENGINES:
                raise EngineUnavailable(f"there is no engine `{chosen}` here; the engines are {', '.join(ENGINES)}")
            prepared = self.prepare(compiled, ENGINES[chosen].load(compiled), chosen)
        self.check_equipped(compiled.node, prepared.plans)
        run = self.journal.take_over(summary.execution, chosen)
        if is_lost:
            for tell in self.on_lost:
                tell(summary)
        body = run.recorded[0].body
        inputs, now = body["inputs"], body["now"]
        assert isinstance(inputs, Mapping)
        assert isinstance(now, datetime)
        record = body.get("context")
        context = RunContext.from_record(record) if isinstance(record, Mapping) else None
        try:
            steps = self._driven(prepared, run, inputs, now, None, context=context)
            outcome = drive(traced(steps, self._tracing, prepared, execution, context))
        except InDoubt as doubt:
            return Recovered(summary.execution, summary.node_id, None, doubt.why)
        except Fenced as reason:
            return Recovered(summary.execution, summary.node_id, None, str(reason))
        return Recovered(summary.execution, summary.node_id, outcome)

    def _is_ours(self, summary: Summary) -> bool:
        """True where a thread of this process, on this Host or another, is running it: the lease may have run out all
        the same, because the machine slept or the journal was away."""
        return summary.owner == self.journal.owner and _OURS.get(summary.execution) == summary.owner

    # -- in the background ------------------------------------------------------------------------

    def start(self) -> None:
        """Starts what is done in the background: leases are renewed, what others left is finished, outboxes are
        emptied, old runs are deleted. The first run does it; a server that may wait long for one calls this."""
        self._tracing.start()
        with self._lock:
            self._leases.start()
            if self.config.recovery.enabled:
                self._chores.start()

    def _renew(self) -> None:
        with self._lock:
            running = list(self._running.items())
        for execution, each in running:
            try:
                each.renew()
            except JournalError as error:
                if execution in self._running:  # and has not ended meanwhile
                    _log.warning("the lease of %s could not be renewed: %s", execution, error)

    def _do_chores(self) -> None:
        try:
            for recovered in self.recover():
                _log.info("%s recovered: %s", recovered.execution, _told(recovered))
            self.watch.look_at_journal(self.journal)
            retention = self.config.journal.retention
            if retention is not None and self._sources.now_ns() - self._last_prune > _HOUR_NS:
                self._last_prune = self._sources.now_ns()
                self.journal.prune(self._sources.now_us() - int(retention * 1_000_000))
        except JournalError as error:
            _log.warning("recovery has to wait: %s", error)
        self._performers.relay_outboxes(self.watch.look_at_outbox)

    # -- parts ------------------------------------------------------------------------------------

    @property
    def journal(self) -> Journal:
        """The journal of the configuration, opened when it is first needed."""
        if self._journal is None:
            with self._lock:
                if self._journal is None:
                    self._journal = self._performers.open_journal()
        return self._journal

    def subscribe(self, topic: str, subscriber: Subscriber) -> Callable[[], None]:
        """Calls `subscriber` with every event that runs of this Host publish to a topic in memory, one after the other
        in a thread; what is given back ends that. Raises `ConfigError` for a topic that is not there or is in Redis."""
        return self._performers.subscribe(topic, subscriber)

    def redact(self, text: str) -> str:
        """The text without any secret that was read here."""
        return self._performers.secrets.redact(text)

    def key_ring(self) -> KeyRing:
        """The keys that sensitive executions are sealed with."""
        return self._performers.key_ring()

    def knows(self, execution: str) -> bool:
        """True where the journal has the run; one whose inputs do not fit is in none."""
        try:
            self.journal.read(execution)
        except UnknownExecution:
            return False
        return True

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def close(self, timeout: float | None = None) -> None:
        """Takes no more runs, waits for those that are under way, and lets go of connections. Runs that have not come
        back after `timeout` seconds are left to recovery."""
        me = threading.get_ident()
        with self._lock:
            if any(each.thread == me for each in self._running.values()):
                raise RuntimeError("an effect cannot close the Host that performs it")
            if me in self._active.values():
                raise RuntimeError("a run cannot close its Host")
            self._is_closed = True
            # Leases are renewed as long as anything runs.
            if not self._is_quiet_within(timeout):
                _log.warning("%s runs have not ended; they are left to recovery", len(self._active))
                return
        if self.before_close is not None:
            self.before_close()
        self._chores.stop()
        self._leases.stop()
        self._limits.close()
        self._performers.close()
        if self._journal is not None and self._owns_journal:
            self._journal.close()

    def _is_quiet_within(self, seconds: float | None) -> bool:
        """Looks by itself now and then: the last run may have been interrupted before it said that it has ended."""
        until = None if seconds is None else monotonic() + seconds
        while True:
            left = _LOOK if until is None else until - monotonic()
            if self._quiet.wait_for(lambda: not self._active, min(left, _LOOK)):
                return True
            if left <= 0:
                return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _after_fork(self) -> None:
        self._begin_process()
        self._performers.after_fork()

    def _warn_if_volatile(self) -> None:
        self._warned = True
        reason = self._performers.volatile_journal()
        if reason is not None:
            _log.warning("nodes that change things are journalled where it may not last: %s", reason)


_LOOK = 1.0
"""Seconds between two looks whether anything runs, where nobody says that it has ended."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR_NS = 3_600_000_000_000
_HOSTS: WeakSet[Host] = WeakSet()
_OURS: dict[str, str] = {}
"""What threads of this process are running, and the name of the owner under which each does."""


def _forked() -> None:
    forget_runtime()
    _OURS.clear()
    for host in list(_HOSTS):
        host._after_fork()


def _await_coroutines() -> None:
    """Wait for runs without a thread: no worker of the runtime may call Python once it is gone."""
    for host in list(_HOSTS):
        with host._lock:
            host._quiet.wait_for(lambda host=host: 0 not in host._active.values())  # type: ignore[misc]


atexit.register(_await_coroutines)
register(order=Order.HOST, before=hold_runtime, after_in_parent=release_runtime, after_in_child=_forked)


def _engine_of(recorded: Recorded) -> str:
    """The engine that a run was on last: one that it was taken from is not asked again, unless somebody says so."""
    handoffs = [each.entry.body for each in recorded.entries if each.entry.kind is Kind.HANDOFF]
    return str(handoffs[-1].get("engine", recorded.summary.engine)) if handoffs else recorded.summary.engine


def _told(recovered: Recovered) -> str:
    """For a log: without the values of the run."""
    return recovered.why if recovered.outcome is None else recovered.outcome.kind


def _limits_of(settings: PolicySettings) -> SharedLimits:
    """Open the limits that runs share. Raises `ConfigError` for an invalid address."""
    try:
        return SharedLimits(settings.url, settings.prefix, settings.on_store_failure == "local")
    except ValueError:
        expected = "`redis://HOST:PORT/NUMBER`, `rediss://…` or `unix://…`, with options that there are,"
        raise ConfigError("policies.url", f"this is no address of Redis: {expected} is expected") from None


def limits_of_run(limits: Limits | None, policy: Mapping[str, object], left: float | None = None) -> Limits:
    """The limits of a run; an execution may not compute for longer than it, or its caller, may take."""
    found = limits_of_node(limits, policy) or DEFAULT_LIMITS
    if left is None:
        return found
    return replace(found, seconds=left if found.seconds is None else min(left, found.seconds))


def _never_began(outcome: Outcome) -> bool:
    return isinstance(outcome, Failed) and outcome.code == ErrorCode.BAD_INPUT and outcome.at is None
