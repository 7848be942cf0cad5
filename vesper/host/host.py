"""The Host: prepares nodes, runs them, and finishes abandoned runs.

    host = Host.from_file("vesper.toml")
    ran = host.run(host.prepare(compiled, program, "python"), inputs, now)

A Host is safe in threads and after a fork. `close` waits for the runs under way.
"""

from __future__ import annotations

import atexit
import contextvars
import logging
import os
import threading
import traceback
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Self, overload
from weakref import WeakSet, ref

from vesper._direct import RunWorkers, forget_runtime, hold_runtime, release_runtime, size_of
from vesper.compiler import Compiled
from vesper.config.grants import Handle, Mint, refuse_void
from vesper.config.locate import config_for
from vesper.config.settings import Config, default_config
from vesper.engines.engine import (
    Done,
    Limits,
    Program,
)
from vesper.engines.outcome import EngineFault, Outcome
from vesper.engines.registry import ENGINES
from vesper.host.audit.auditing import Auditing
from vesper.host.background import Repeating
from vesper.host.budgets import set_budgets
from vesper.host.driving import KNOWN_ANSWERS, Replayed, Steps, drive
from vesper.host.in_doubt import InDoubt
from vesper.host.keeper import STARTED, Keeper
from vesper.host.keyed_runs import Repeat, Waiters, claim
from vesper.host.limits import ModelAdmission, budgets_of, limits_of_run, open_budgets, open_limits
from vesper.host.masking import Masks
from vesper.host.outcomes import never_began
from vesper.host.performers import Performers
from vesper.host.permissions import declared_by, denied_inside, needed
from vesper.host.plans import Plans, plans_of
from vesper.host.prepared import Prepared, Ran, Recovered, definition_of
from vesper.host.recovery.resuming import RESUMED, Resuming
from vesper.host.routed import HostedProgram
from vesper.host.run_context import RunContext, current_context, entered
from vesper.host.run_metrics import HostWatch, RunTimer
from vesper.host.run_spans import drive_traced
from vesper.host.streaming.coroutine_runs import CoroutineRun
from vesper.host.streaming.events import Listener, RunEvent
from vesper.host.waiting import RunWaits
from vesper.journal.execution_id import trace_id
from vesper.journal.journal import (
    Beginning,
    Journal,
    JournalError,
    KeyTaken,
    NotTaken,
    Run,
    Summary,
    UnknownExecution,
)
from vesper.kernels.raised import BadInput
from vesper.language.ir.nodes import Node
from vesper.observe.logs import redact_with
from vesper.observe.spans import Tracing
from vesper.sessions.errors import SessionError
from vesper.storage.after_fork import Order, register
from vesper.storage.sources import SYSTEM_SOURCES, Sources
from vesper.values.inputs import read_inputs
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper._direct import PreparedNode, Running, SharedBudgets
    from vesper.effects.events.memory import Subscriber
    from vesper.effects.events.performer import EventPerformer
    from vesper.effects.performer import Performer
    from vesper.journal.journal import KeyRing
    from vesper.sessions.store import SessionStore

_log = logging.getLogger("vesper.host")


class HostClosed(VesperError):
    """A run was requested from a Host after it was closed."""


class Host:
    after_run: Callable[[Prepared, str], None] | None = None
    """Called with each run that has ended, and its id; for breakpoints of running services. It raises nothing."""
    before_close: Callable[[], None] | None = None
    """Called when no run is under way any more, while the journal is still open: the last runs may have to be read yet.
    It raises nothing."""
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
        """`performers` replace those of the configuration, effect by effect, for tests. `sources` replace the clocks
        and random bytes of the system, also for tests. A given `journal` keeps its own."""
        if config is not None and not isinstance(config, Config):
            raise TypeError(
                f"a Host has settings, not a {type(config).__name__}: "
                "vesper.Host.from_file(PATH) reads them from a file, vesper.config.settings.config_from from a dict"
            )
        self.config = default_config(Path.cwd()) if config is None else config
        self._sources = sources
        self._performers = Performers(self.config, performers or {}, sources)
        self.guard = self._performers.guard
        """Rules of tools; its `confirm` answers those that ask."""
        self._mint = Mint(self.config.grants)
        self._limits = open_limits(self.config.policies)
        self._budgets: SharedBudgets | None = None
        self._performers.open_budgets = partial(budgets_of, ref(self))  # performers that hold a Host keep it for ever
        self._tracing = Tracing(self.config.observe)
        self._admission = ModelAdmission(self.config.parts.models, self._limits, lambda: self._performers.models)
        self._journal = journal
        self._owns_journal = journal is None
        self._prepared: dict[tuple[str, str, str], Prepared] = {}
        """By semantic hash, engine, and the name that a candidate follows."""
        self._selecting: dict[str, Prepared] = {}
        """By semantic hash: nodes whose program selects the engines of each run."""
        self._resuming = Resuming(self)
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
        """Create the state that belongs to one process. A fork copies locks as they are and no threads, so a child
        creates this state again, with the settings, nodes and performers of its parent."""
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
        # In a thread of its own: finishing the run of another process may take long, and leases must not wait.
        self._chores = Repeating("vesper-recovery", self.config.recovery.every, self._do_chores)
        self.keeper = Keeper(self, self.config.keeper.threads)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str] | None = None) -> Self:
        """Return the Host of a `vesper.toml`: of `path`, of `VESPER_CONFIG`, or of the nearest one upwards. Without a
        file, nothing is granted."""
        return cls(config_for(explicit=path))

    # -- preparing --------------------------------------------------------------------------------

    def prepare(self, compiled: Compiled, program: Program, engine: str) -> Prepared:
        """Prepare the runs of a node on an engine, once for each pair of them. Raises `ConfigError` where the node
        requests an effect whose target is not configured: before half of a run is done."""
        name = (compiled.semantic_hash, engine, program.served_name if isinstance(program, HostedProgram) else "")
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
                if isinstance(program, HostedProgram) and (name[2] or name[0] not in self._selecting):
                    self._selecting[name[0]] = found
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
        """Return a node in the form of the run loop. A joined run is part of its caller's transaction."""
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
            self.budgets,
            self._pace,
            None if self._sources is SYSTEM_SOURCES else self._sources,
            is_joined,
        )

    def check_equipped(self, node: Node, plans: Plans) -> None:
        """Check that the custom effects of a node are registered and its secrets can be read. Raises `ConfigError`."""
        requests = plans.requests.values()
        self._performers.check_registered(requests)
        prefix = "secrets.read."
        names = [each.removeprefix(prefix) for each in needed(node, plans) if each.startswith(prefix)]
        self._performers.check_secrets(requests, names)

    # -- running ----------------------------------------------------------------------------------

    def now_us(self) -> int:
        """Return microseconds since 1970 by the clock of this Host."""
        return self._sources.now_us()

    def new_execution(self) -> str:
        """Return the id of a new run."""
        return trace_id(self._sources.now_ns(), self._sources.random_bytes)

    def moment(self) -> datetime:
        """Return the start time of a run whose caller gives none: the current time, except in tests."""
        return _EPOCH + timedelta(microseconds=self._sources.now_us())

    def run(
        self,
        prepared: Prepared,
        inputs: Mapping[str, object],
        now: datetime,
        limits: Limits | None = None,
        on_begun: Callable[[Running], None] | None = None,
    ) -> Ran:
        """Run a node to its end, for the caller of `run_context`. Raises `JournalError` if the journal cannot be
        written, and `InDoubt` if the result of a step is unknown; `RunWaits` if the run has left memory to wait;
        `ModelBusy` if a model with backpressure makes requests wait; `HostClosed` if the Host was closed; `KeyReused`
        and `KeyRunning` for a key that another run has."""
        entry = object()
        try:
            self._enter(entry, threading.get_ident())
            return self._run(prepared, inputs, now, limits, on_begun)
        except KeyTaken:
            return self._repeat(prepared, inputs).wait()
        finally:
            self._leave(entry)

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
        self._check_admission(prepared)
        execution = self.new_execution()
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
            if isinstance(step, Done) and never_began(step.outcome):
                timer.ended(step.outcome)
                return Ran(execution, step.outcome)
            timer.failed("journal")
            raise
        if plans.writes and not self._warned:
            self._warn_if_volatile()
        steps = self._drive_run(prepared, run, inputs, now, limits, on_begun, is_joined, context)
        events = self._performers.events
        if events.is_followed(execution):
            events.publish(RunEvent(execution, "run_started", text=prepared.compiled.node.node_id))
        try:
            outcome = yield from drive_traced(steps, self._tracing, prepared, execution, context)
        except (InDoubt, JournalError) as error:
            timer.failed("in_doubt" if isinstance(error, InDoubt) else "journal")
            raise
        except RunWaits:  # it has not ended: the process that resumes it counts it
            self.keeper.notice()
            raise
        timer.ended(outcome)
        if events.is_followed(execution):
            events.publish(RunEvent(execution, "run_ended", text=outcome.kind))
        if self.after_run is not None:
            self.after_run(prepared, execution)
        return Ran(execution, outcome)

    def _check_admission(self, prepared: Prepared) -> None:
        """Raise `ModelBusy` if the run must not begin now. A replay requests no model."""
        if self._pace == "policies" and KNOWN_ANSWERS.get() is None:
            now_us = None if self._sources is SYSTEM_SOURCES else self._sources.monotonic_ns() // 1000
            self._admission.check(prepared.compiled.node.node_id, prepared.plans.targets, now_us)

    def put_run(
        self,
        prepared: Prepared,
        inputs: Mapping[str, object],
        now: datetime,
        *,
        queue: str = STARTED,
        lane: str = "",
        priority: int = 0,
        due_us: int | None = None,
        body: str = "{}",
    ) -> str:
        """Record a run for a worker of `queue`, by default for a keeper, and return its id. The run is durable on
        return. Raises `BadInput`, `KeyTaken` for a key that another run has, and `JournalError`."""
        node = prepared.compiled.node
        _, refusals = read_inputs(node.declared_inputs, dict(inputs))
        if refusals:
            raise BadInput(refusals)
        context = current_context()
        execution = self.new_execution()
        record = None if context is None else claim(self.journal, context, node.node_id, execution)
        engine = prepared.engine if prepared.engine in ENGINES else "python"  # a route selects it when it is taken
        plans = prepared.plans
        writes = plans.writes and self._syncs_writes
        beginning = Beginning(
            execution, prepared.definition, inputs, now, engine, plans.is_sensitive, writes, False, record
        )
        self.journal.begin_queued(beginning, queue, lane, priority, due_us, body)
        self.start()
        self.keeper.notice()
        return execution

    def _repeat(self, prepared: Prepared, inputs: Mapping[str, object]) -> Repeat:
        return Repeat(self.journal, self._key_waiters, self._recover_keyed, prepared, inputs)

    def _recover_keyed(self, summary: Summary) -> None:
        if self._is_ours(summary):
            raise NotTaken("a thread of this process is running it")
        self.resume(summary.execution, self.config.recovery.engine)

    async def arun(
        self,
        prepared: Prepared,
        inputs: Mapping[str, object],
        now: datetime,
        limits: Limits | None = None,
        on_begun: Callable[[Running], None] | None = None,
    ) -> Ran:
        """Run a node as `run` does, for a coroutine. If it is cancelled before the run has changed anything, the run
        ends and its reads are dropped; later the run continues to its end without its caller."""
        import asyncio

        entry = object()
        run = CoroutineRun(asyncio.get_running_loop(), lambda: self._leave(entry), on_begun)
        steps = self._run_steps(prepared, inputs, now, limits, run.note_begun)
        self._enter(entry)
        try:
            self._workers.spawn(contextvars.copy_context(), partial(run.begin, steps), partial(run.finish, steps))
        except BaseException:
            self._leave(entry)
            raise
        try:
            return await run.answer
        except asyncio.CancelledError:
            run.cancel()
            raise
        except KeyTaken:
            pass
        self._enter(entry)
        try:
            return await self._repeat(prepared, inputs).wait_async()
        finally:
            self._leave(entry)

    def _enter(self, entry: object, thread: int = 0) -> None:
        with self._lock:
            if self._is_closed:
                raise HostClosed("the Host was closed: it runs nothing more. Make another one")
            self._active[entry] = thread

    def _leave(self, entry: object) -> None:
        """Remove a run that has come back. The last one wakes the threads that wait for a quiet Host."""
        self._active.pop(entry, None)
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
        """Wait at most `seconds` for a moment without a run; return whether there was one."""
        with self._lock:
            return self._quiet.wait_for(lambda: not self._active, seconds)

    def when_quiet(self, then: Callable[[], None]) -> bool:
        """Register a callback for the moment when no run is under way. Returns False, without a call, if none is now.
        It is called once, in the thread of the run that ends last."""
        with self._lock:
            if not self._active:
                return False
            if then not in self._when_quiet:  # a Host may never be quiet, and be asked often
                self._when_quiet.append(then)
            return True

    def _drive_run(
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
        replayed = self._known_answers(run)
        running = prepared.native(is_joined).begin(
            run, inputs, audit, level == "detailed", replayed, threading.get_ident()
        )
        mistake: Exception | None = None
        if on_begun is not None:
            on_begun(running)
        left = None if context is None else context.seconds_left()
        if left is not None:
            running.limit(left)
        set_budgets(self, running, context)
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
            except (InDoubt, RunWaits, JournalError, KeyTaken):
                raise
            except Exception as error:  # noqa: BLE001  # whatever an engine raises is its fault
                if self._performers.is_mistake_of_caller(error):
                    mistake = error
                else:
                    self._log_fault(error, prepared, run.execution)
                outcome = EngineFault(self.redact(f"{type(error).__name__}: {error}"))
            ended = running.end(outcome)
            if mistake is not None:  # the run has ended: no other process could finish a joined one
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

    def _known_answers(self, run: Run) -> Replayed | None:
        """Return the known answers of a run; a Host that replays has some."""
        return KNOWN_ANSWERS.get()

    # -- recovery ---------------------------------------------------------------------------------

    def recover(self, engine: str | None = None, limit: int = 100) -> list[Recovered]:
        """Take over abandoned runs and finish them: on `engine`, or on the one that each was begun on. A run that
        cannot be finished is reported, and does not hold up the others."""
        found: list[Recovered] = []
        # Those that are not due stand first, because they are the oldest.
        for summary in self.journal.unfinished(limit + len(self._resuming.deferred)):
            if self._is_closed or len(found) >= limit:
                break
            if (not summary.owner and self.keeper.is_running) or self._is_ours(summary):
                continue
            try:
                chosen = engine or self.config.recovery.engine
                recovered = self._resuming.attempt(summary.execution, summary.node_id, chosen, is_left=True)
            except HostClosed:
                break
            if recovered is not None:
                found.append(recovered)
        return found

    def resume(self, execution: str, engine: str | None = None) -> Recovered:
        """Finish one run, or bring it to its next wait. Raises `NotTaken` if another process works on it, or it waits
        or has ended."""
        with self._count_run():
            return self._resuming.resume(execution, engine)

    def prepared_of(self, summary: Summary, inputs: Mapping[str, object], engine: str | None = None) -> Prepared:
        """Return the definition of a run on an engine; without `engine` as `Resuming.prepared_of` selects it."""
        return self._resuming.prepared_of(summary, inputs, engine)

    def finish(self, run: Run, prepared: Prepared) -> Recovered:
        """Finish a run that this process has taken over, or bring it to its next wait."""
        with self._count_run():
            return self._resuming.finish(run, prepared)

    def keep(self) -> list[Recovered]:
        """Wake all due waits and resume the woken runs in this thread, for a Host without its keeper."""
        return self.keeper.keep()

    @contextmanager
    def _count_run(self) -> Generator[None, None, None]:
        """Count a run of this thread as under way."""
        entry = object()
        try:
            self._enter(entry, threading.get_ident())
            yield
        finally:
            self._leave(entry)

    def _is_ours(self, summary: Summary) -> bool:
        """Return whether a thread of this process, on this Host or another, executes the run. Its lease may have run
        out nevertheless, if the machine slept or the journal was unavailable."""
        return summary.owner == self.journal.owner and _OURS.get(summary.execution) == summary.owner

    # -- in the background ------------------------------------------------------------------------

    def start(self) -> None:
        """Start the background work. It renews leases, finishes abandoned runs, wakes waiting runs, empties outboxes
        and deletes old runs. The first run starts it; a server calls this because its first run may come late."""
        self._tracing.start()
        with self._lock:
            self._leases.start()
            if self.config.recovery.enabled:
                self._chores.start()
                if self.config.keeper.enabled:
                    self.keeper.start()

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
                _log.info("%s recovered: %s", recovered.execution, recovered.ending)
            self.watch.look_at_journal(self.journal)
            retention = self.config.journal.retention
            if self._sources.now_ns() - self._last_prune > _HOUR_NS:
                self._last_prune = self._sources.now_ns()
                if self._budgets is not None:
                    self._budgets.prune()
                if retention is not None:
                    self.journal.prune(self._sources.now_us() - int(retention * 1_000_000))
                self._performers.prune_sessions(self._sources.now_us())
        except JournalError as error:
            _log.warning("recovery has to wait: %s", error)
        except SessionError as error:
            _log.warning("old sessions stay: %s", error)
        self._performers.relay_outboxes(self.watch.look_at_outbox)

    # -- parts ------------------------------------------------------------------------------------

    @property
    def journal(self) -> Journal:
        """Return the journal of the configuration, opened at its first use."""
        if self._journal is None:
            with self._lock:
                if self._journal is None:
                    self._journal = self._performers.open_journal()
        return self._journal

    @property
    def budgets(self) -> SharedBudgets:
        """Return the count of budgets, opened at its first use."""
        with self._lock:
            if self._budgets is None:
                self._budgets = open_budgets(self.config.policies, self.journal)
            return self._budgets

    @overload
    def subscribe(self, topic: str, subscriber: Subscriber) -> Callable[[], None]: ...
    @overload
    def subscribe(self, *, runs: Listener, execution: str | None = None) -> Callable[[], None]: ...
    def subscribe(
        self,
        topic: str | None = None,
        subscriber: Subscriber | None = None,
        *,
        runs: Listener | None = None,
        execution: str | None = None,
    ) -> Callable[[], None]:
        """Call a function with events as they happen; call the result to end that. `subscriber` gets each event that
        runs of this Host publish to a topic in memory, one after the other in a thread; raises `ConfigError` for a
        topic that is not in memory. `runs` gets the events of the runs themselves, or of one `execution`: chunks of
        answers, begin and end (`vesper.host.streaming.events`)."""
        if runs is not None:
            return self._performers.events.subscribe(runs, execution)
        if topic is None or subscriber is None:
            raise TypeError("subscribe takes a topic and its subscriber, or `runs=`")
        return self._performers.subscribe(topic, subscriber)

    def event_topics(self) -> EventPerformer:
        """Return the performer of all topics. Raises `ConfigError` where a test replaced it."""
        return self._performers.event_topics()

    def sessions(self, name: str) -> SessionStore:
        """Return the sessions that `[sessions.NAME]` configures. Raises `ConfigError` where there are none."""
        return self._performers.sessions(name)

    def redact(self, text: str) -> str:
        """Return the text without any secret that was read on this Host."""
        return self._performers.secrets.redact(text)

    def key_ring(self) -> KeyRing:
        """Return the keys that encrypt sensitive executions."""
        return self._performers.key_ring()

    def knows(self, execution: str) -> bool:
        """Return whether the journal has the run. A run whose inputs were refused has no entry."""
        try:
            self.journal.read(execution)
        except UnknownExecution:
            return False
        return True

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def close(self, timeout: float | None = None) -> None:
        """Refuse new runs, wait for those under way, and close connections. Runs that have not ended after `timeout`
        seconds are left to recovery."""
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
                self.keeper.stop(0)
                return
        self.keeper.stop()
        if self.before_close is not None:
            self.before_close()
        self._chores.stop()
        self._leases.stop()
        self._limits.close()
        if self._budgets is not None:
            self._budgets.close()
        self._performers.close()
        if self._journal is not None and self._owns_journal:
            self._journal.close()

    def _is_quiet_within(self, seconds: float | None) -> bool:
        """Wait for a moment without a run; return whether there was one. It also polls: the last run may have been
        interrupted before it could signal its end."""
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
"""Poll interval, in seconds, of a wait for the last run, for an end that is not signalled."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR_NS = 3_600_000_000_000
_HOSTS: WeakSet[Host] = WeakSet()
_OURS: dict[str, str] = {}
"""What threads of this process are running, and the name of the owner under which each does."""


def running_host(execution: str) -> Host | None:
    """Return the Host of this process that is running an execution. Effects that use its journal call this."""
    return next((each for each in list(_HOSTS) if execution in each._running), None)


def _reset_after_fork() -> None:
    forget_runtime()
    _OURS.clear()
    RESUMED.clear()
    for host in list(_HOSTS):
        host._after_fork()


def _await_coroutines() -> None:
    """Wait for runs without a thread: no worker of the runtime may call Python once it is gone."""
    for host in list(_HOSTS):
        with host._lock:
            host._quiet.wait_for(lambda host=host: 0 not in host._active.values())  # type: ignore[misc]


atexit.register(_await_coroutines)
register(order=Order.HOST, before=hold_runtime, after_in_parent=release_runtime, after_in_child=_reset_after_fork)
