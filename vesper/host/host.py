"""The Host: prepares nodes, runs them, and finishes what others left unfinished.

    host = Host.from_file("vesper.toml")
    ran = host.run(host.prepare(compiled, program, "python"), inputs, now)

Any number of threads may use one. `close` waits for what is running. A process that was forked has to make its own.
"""

from __future__ import annotations

import contextvars
import logging
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Self

from vesper.compiler import Compiled
from vesper.diagnostics.source import SourceFile
from vesper.engines.engine import UNLESS_SAID, Limits, Program
from vesper.engines.outcome import Failed, Outcome
from vesper.engines.registry import ENGINES
from vesper.host.attempts import Attempts
from vesper.host.auditing import Auditing
from vesper.host.config import Config, default_config, find_config, read_config
from vesper.host.gate import Gate
from vesper.host.grants import Handle, Mint
from vesper.host.performers import Performers
from vesper.host.plans import Plans, plans_of
from vesper.host.running import InDoubt, Running, fault
from vesper.ir.decode import decode
from vesper.journal.entry import Definition
from vesper.journal.execution_id import trace_id
from vesper.journal.journal import Beginning, Fenced, Journal, JournalError, NotTaken, Run, UnknownExecution
from vesper.spec.errors import ErrorCode

if TYPE_CHECKING:
    from vesper.effects.performer import Performer

_log = logging.getLogger("vesper.host")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A node on an engine, with everything that a run of it needs."""

    compiled: Compiled
    program: Program
    engine: str
    plans: Plans
    handles: Mapping[str, Handle]
    refused: Mapping[str, str]
    definition: Definition


@dataclass(frozen=True, slots=True)
class Ran:
    """How a run ended."""

    execution: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Recovered:
    """What became of a run that somebody else had left."""

    execution: str
    node_id: str
    outcome: Outcome | None
    """None where it is in doubt, or could not be finished."""
    why: str = ""


class Host:
    def __init__(
        self,
        config: Config | None = None,
        *,
        journal: Journal | None = None,
        performers: Mapping[str, Performer] | None = None,
    ) -> None:
        """`performers` stand in for those of the configuration, effect by effect: for tests."""
        self.config = default_config(Path.cwd()) if config is None else config
        self._performers = Performers(self.config, performers or {})
        self._mint = Mint(self.config.grants)
        self._gate = Gate(self._mint, self._performers, self._performers.secrets)
        self._attempts = Attempts(self.config.policies)
        self._journal = journal
        self._owns_journal = journal is None
        self._prepared: dict[tuple[str, str], Prepared] = {}
        self._lock = threading.RLock()
        self._running: dict[str, Running] = {}
        self._workers: ThreadPoolExecutor | None = None
        self._keeper: threading.Thread | None = None
        self._closing = threading.Event()
        self._pid = os.getpid()
        self._warned = False

    @classmethod
    def from_file(cls, path: str | os.PathLike[str] | None = None) -> Self:
        """The Host of a `vesper.toml`: the one named, the one that VESPER_CONFIG names, or the nearest upwards. Where
        there is none, nothing is granted."""
        found = find_config() if path is None else Path(path)
        return cls(None if found is None else read_config(found))

    # -- preparing --------------------------------------------------------------------------------

    def prepare(self, compiled: Compiled, program: Program, engine: str) -> Prepared:
        """Reads off a node what its runs need. The same node on the same engine is prepared once."""
        name = (compiled.semantic_hash, engine)
        found = self._prepared.get(name)
        if found is None:
            plans = plans_of(compiled)
            self._performers.know_machines(plans.machines, compiled.node.node_id)
            node = compiled.node
            needed = [capability for plan in plans.requests.values() for capability in plan.capabilities]
            needed += [word for word in node.grants.required if word.startswith("secrets.read.")]
            handles, refused = self._mint.handles(node.node_id, node.grants.required, node.grants.denied, needed)
            found = Prepared(compiled, program, engine, plans, handles, refused, definition_of(compiled))
            with self._lock:
                found = self._prepared.setdefault(name, found)
        return found

    # -- running ----------------------------------------------------------------------------------

    def moment(self) -> datetime:
        """When a run starts whose caller does not say: this moment, except in tests."""
        return datetime.now(UTC)

    def run(
        self,
        prepared: Prepared,
        inputs: Mapping[str, object],
        now: datetime,
        limits: Limits | None = None,
        on_begun: Callable[[Running], None] | None = None,
    ) -> Ran:
        """Runs a node to its end. Raises `JournalError` where the journal cannot be written, and `InDoubt` where a
        step came to what nobody knows."""
        self._check_process()
        execution = trace_id(time_ns())
        node = prepared.compiled.node
        beginning = Beginning(
            execution,
            prepared.definition,
            inputs,
            now,
            prepared.engine,
            bool(node.grants.sensitive),
            prepared.plans.writes,
            self._performers.is_joined(),
        )
        run = self.journal.begin(beginning)
        if prepared.plans.writes and not self._warned:
            self._warn_if_volatile()
        return Ran(execution, self._drive(prepared, run, inputs, now, limits, on_begun))

    async def arun(
        self, prepared: Prepared, inputs: Mapping[str, object], now: datetime, limits: Limits | None = None
    ) -> Ran:
        """The same for coroutines. Cancelled before anything was changed, the run ends; after that it goes on to its
        end without its caller."""
        import asyncio

        begun: list[Running] = []
        context = contextvars.copy_context()
        future = asyncio.get_running_loop().run_in_executor(
            self._pool(), lambda: context.run(self.run, prepared, inputs, now, limits, begun.append)
        )
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            for running in begun:
                running.is_cancelled = True
            future.add_done_callback(_said)
            raise

    def _drive(
        self,
        prepared: Prepared,
        run: Run,
        inputs: Mapping[str, object],
        now: datetime,
        limits: Limits | None,
        on_begun: Callable[[Running], None] | None = None,
    ) -> Outcome:
        policy = prepared.compiled.node.grants.policy
        running = Running(run, self._gate, self._attempts, prepared.plans, prepared.handles, prepared.refused, policy)
        auditing = Auditing(prepared.compiled.node, run)
        running.on_effect = auditing.effect if auditing.level == "detailed" else None
        if on_begun is not None:
            on_begun(running)
        with self._lock:
            self._running[run.execution] = running
        self._keep_going()
        try:
            try:
                outcome = running.go(
                    prepared.program.start(inputs, now, _limits(limits, policy), is_traced=False), inputs
                )
            except (InDoubt, JournalError):
                raise
            except Exception as error:  # noqa: BLE001  # whatever an engine raises is its fault
                _log.exception("%s: %s broke", run.execution, prepared.compiled.node.node_id)
                outcome = fault(error)
            if _never_began(outcome) and not running.has_committed:
                return outcome  # the inputs do not fit: nothing happened that a journal should know of
            auditing.end(inputs, outcome, now)
            running.end(outcome)
            return outcome
        finally:
            with self._lock:
                self._running.pop(run.execution, None)

    # -- recovery ---------------------------------------------------------------------------------

    def recover(self, engine: str | None = None, limit: int = 100) -> list[Recovered]:
        """Takes over the runs that nobody works on any more, and finishes them: on `engine`, or on the one that each
        was begun on."""
        self._check_process()
        found = []
        for summary in self.journal.unfinished(limit):
            try:
                found.append(self.resume(summary.execution, engine or self.config.recovery.engine))
            except NotTaken:
                continue  # another process was faster
        return found

    def resume(self, execution: str, engine: str | None = None) -> Recovered:
        """Finishes one run. Raises `NotTaken` where somebody else works on it, or it has ended."""
        summary = self.journal.read(execution).summary
        chosen = engine or summary.engine
        definition = self.journal.definition(summary.semantic_hash)
        run = self.journal.take_over(summary.execution, chosen)
        try:
            compiled = compiled_from(definition)
            prepared = self._prepared.get((compiled.semantic_hash, chosen))
            if prepared is None:
                prepared = self.prepare(compiled, ENGINES[chosen].load(compiled), chosen)
            body = run.recorded[0].body
            inputs, now = body["inputs"], body["now"]
            assert isinstance(inputs, Mapping)
            assert isinstance(now, datetime)
            outcome = self._drive(prepared, run, inputs, now, None)
        except (InDoubt, Fenced) as reason:
            return Recovered(summary.execution, summary.node_id, None, str(reason))
        return Recovered(summary.execution, summary.node_id, outcome)

    def _keep_going(self) -> None:
        """Starts the thread that renews leases and takes over what others left."""
        with self._lock:
            if self._keeper is None:
                self._keeper = threading.Thread(target=self._keep, name="vesper-host", daemon=True)
                self._keeper.start()

    def _keep(self) -> None:
        every = min(self.config.journal.lease / 3, self.config.recovery.every)
        last_prune = 0
        while not self._closing.wait(every):
            with self._lock:
                running = list(self._running.values())
            for each in running:
                try:
                    each.renew()
                except JournalError as error:
                    _log.warning("a lease could not be renewed: %s", error)
            if not self.config.recovery.enabled:
                continue
            try:
                for recovered in self.recover():
                    _log.info("%s recovered: %s", recovered.execution, recovered.outcome or recovered.why)
                retention = self.config.journal.retention
                if retention is not None and time_ns() - last_prune > _HOUR_NS:
                    last_prune = time_ns()
                    self.journal.prune(time_ns() // 1000 - int(retention * 1_000_000))
            except JournalError as error:
                _log.warning("recovery has to wait: %s", error)
            except Exception:  # noqa: BLE001  # said, and tried again: this thread must not end
                _log.exception("recovery broke; it is tried again")

    # -- parts ------------------------------------------------------------------------------------

    @property
    def journal(self) -> Journal:
        """The journal of the configuration, opened when it is first needed."""
        if self._journal is None:
            with self._lock:
                if self._journal is None:
                    self._journal = self._performers.open_journal()
        return self._journal

    def knows(self, execution: str) -> bool:
        """True where the journal has the run; one whose inputs do not fit is in none."""
        try:
            self.journal.read(execution)
        except UnknownExecution:
            return False
        return True

    def close(self) -> None:
        """Waits for what is running, and lets go of connections."""
        self._closing.set()
        if os.getpid() == self._pid:
            if self._workers is not None:
                self._workers.shutdown(wait=True)
            if self._keeper is not None and self._keeper is not threading.current_thread():
                self._keeper.join()
            self._performers.close()
            if self._journal is not None and self._owns_journal:
                self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _pool(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._workers is None:
                self._workers = ThreadPoolExecutor(self.config.workers, thread_name_prefix="vesper-run")
            return self._workers

    def _check_process(self) -> None:
        """A forked child has the threads of its parent no more: it starts anew with the same settings."""
        if os.getpid() != self._pid:
            self._lock = threading.RLock()
            self._pid = os.getpid()
            self._running, self._workers, self._keeper = {}, None, None
            self._closing = threading.Event()

    def _warn_if_volatile(self) -> None:
        self._warned = True
        reason = self._performers.volatile_journal()
        if reason is not None:
            _log.warning("nodes that change things are journalled where it may not last: %s", reason)


_HOUR_NS = 3_600_000_000_000


def definition_of(compiled: Compiled) -> Definition:
    """What a run of the node is pinned to."""
    return Definition(
        compiled.semantic_hash,
        compiled.node.node_id,
        compiled.source.path,
        compiled.source.text,
        compiled.ir,
        tuple(map(definition_of, compiled.callees)),
    )


def compiled_from(definition: Definition) -> Compiled:
    """The node as it was when the run began."""
    return Compiled(
        SourceFile(definition.path, definition.source),
        decode(definition.ir),
        (),
        definition.ir,
        definition.semantic_hash,
        tuple(map(compiled_from, definition.callees)),
    )


def _limits(limits: Limits | None, policy: Mapping[str, object]) -> Limits:
    """The limits of a run; an execution may not compute for longer than it may take."""
    found = UNLESS_SAID if limits is None else limits
    total = policy.get("total_timeout_us")
    if isinstance(total, int) and (found.seconds is None or found.seconds > total / 1_000_000):
        return Limits(found.fuel, total / 1_000_000)
    return found


def _never_began(outcome: Outcome) -> bool:
    return isinstance(outcome, Failed) and outcome.code == ErrorCode.BAD_INPUT and outcome.at is None


def _said(future: object) -> None:
    """What a run that nobody waits for came to is in its journal; an error is logged, not lost."""
    from concurrent.futures import CancelledError
    from typing import Any, cast

    try:
        error = cast(Any, future).exception()
    except CancelledError:
        return
    if error is not None:
        _log.error("a run whose caller has gone failed: %s", error)
