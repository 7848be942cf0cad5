"""A Host for tests: no server, no configuration file, no waiting. A subclass answers the requests of its nodes.

Every capability that a node requires is granted, except those that it denies itself. The journal is a file in a folder
of its own, which is deleted with the Host.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from vesper.compiler import Compiled
from vesper.config.effect_tables import Parts
from vesper.config.grants import Grant
from vesper.config.settings import Config, JournalSettings, PolicySettings, RecoverySettings
from vesper.effects.database.settings import DatabaseSettings
from vesper.effects.performer import Ask, EffectFailed
from vesper.engines.engine import Limits, Program
from vesper.host.attempts import Attempts, Note, Once
from vesper.host.host import Host, Prepared, Ran
from vesper.host.performers import Performers
from vesper.host.plans import Plan
from vesper.host.running import InDoubt, Running
from vesper.journal.journal import Journal, open_journal
from vesper.policies import retry
from vesper.values.generated.effects import EFFECTS


@dataclass(slots=True)
class ActiveRun:
    """A run in progress."""

    prepared: Prepared
    problem: Exception | None = None
    """The first mistake of the test."""


class _Local(threading.local):
    """The run of this thread."""

    here: ActiveRun | None = None


class OfflineHost(Host):
    """A Host that answers requests with `answered`, in the thread that runs the node."""

    def __init__(self, *, retries: bool = False) -> None:
        self.folder = _new_folder()
        """The folder of all its files; deleted when the Host is closed."""
        self._databases: dict[str, DatabaseSettings] = {}
        config = Config(
            None,
            self.folder,
            (Grant(("*",), ("*",), (), type(self).__name__),),
            JournalSettings(f"sqlite:{self.folder / 'journal.db'}"),
            RecoverySettings(enabled=False),
            parts=Parts(databases=self._databases),
        )
        journal = open_journal(config.journal.dsn)
        performer = _Performer(weakref.ref(self))
        super().__init__(config, journal=journal, performers=dict.fromkeys(EFFECTS, performer))
        self._attempts = _SingleAttempts(retries)
        self._warned = True  # a volatile journal is intended here
        self._real = Performers(config, {})
        """Performs effects inside the process: databases of the test."""
        self._local = _Local()
        self._close = weakref.finalize(self, _release, journal, self._real, self.folder)

    @abstractmethod
    def answered(self, ask: Ask) -> object:
        """Return the result of a request, in its Python form. Raises `EffectFailed`; `give_up` ends the run."""

    def prepare(self, compiled: Compiled, program: Program, engine: str) -> Prepared:
        prepared = super().prepare(compiled, program, engine)
        self._real.know_machines(prepared.plans.machines, compiled.node.node_id)
        # The journal of a test need not survive a loss of power: it need not wait for the disk.
        return replace(prepared, plans=replace(prepared.plans, writes=False))

    def _run(
        self,
        prepared: Prepared,
        inputs: Mapping[str, object],
        now: datetime,
        limits: Limits | None,
        on_begun: Callable[[Running], None] | None = None,
    ) -> Ran:
        """Run as any Host does; raise a mistake of the test when the node has ended."""
        here, outer = ActiveRun(prepared), self._local.here
        self._local.here = here
        try:
            ran = super()._run(prepared, inputs, now, limits, on_begun)
        except _RunAborted as given_up:
            raise given_up.problem from None
        finally:
            self._local.here = outer  # a function that answers may itself run a node
        if here.problem is not None:
            raise here.problem
        return ran

    @property
    def here(self) -> ActiveRun:
        """The run of this thread."""
        found = self._local.here
        assert found is not None  # only a run reads it
        return found

    def give_up(self, problem: Exception) -> NoReturn:
        """End the run of this thread: the caller of the node gets the problem, or the first one reported."""
        raise _RunAborted(self.here.problem or problem)

    def record_problem(self, problem: Exception) -> None:
        """Report a problem to the caller of the node when it has ended; the first one counts."""
        self.here.problem = self.here.problem or problem

    def close(self, timeout: float | None = None) -> None:
        super().close(timeout)
        self._close()

    def start(self) -> None:
        """Start no background work: runs of a test need no recovery, and no lease is renewed."""


class _RunAborted(InDoubt):
    """Ends a run. The Host does not treat this exception as an engine fault."""

    def __init__(self, problem: Exception) -> None:
        super().__init__("", str(problem), "")
        self.problem = problem


class _Performer:
    """Hands every request to the Host. The reference is weak, so that an unclosed Host is collected."""

    def __init__(self, host: weakref.ref[OfflineHost]) -> None:
        self._host = host

    def perform(self, ask: Ask) -> object:
        host = self._host()
        assert host is not None, "the Host runs the node that asks"
        return host.answered(ask)

    def probe(self, ask: Ask) -> object:
        raise EffectFailed("unavailable", f"`{ask.path}`: a test Host does not recover runs, so it cannot probe")

    def close(self) -> None:
        """Do nothing."""


class _SingleAttempts(Attempts):
    """Settles a request with one answer, as in the cases of a node: policies are not applied.

    With `retries`, each attempt that the step's `retry` allows requests an answer, without waiting.
    """

    def __init__(self, retries: bool) -> None:
        super().__init__(PolicySettings())
        self._retries = retries

    def perform(
        self, plan: Plan, effect_class: str, once: Once, note: Note, deadline: float | None
    ) -> tuple[object, EffectFailed | None]:
        state = retry.State(retry.Rule.of(plan.policy, effect_class), None)
        number = 1
        while True:
            try:
                return once(plan.timeout, number > 1), None
            except EffectFailed as failure:
                if not self._retries or "attempts" not in plan.policy:
                    return None, failure
                state, decided = retry.step(state, retry.Failed(failure.code, 0, None), 0)
                note(decided.to_record(), number)
                if isinstance(decided, retry.GiveUp):
                    return None, failure
                number = decided.attempt


def _new_folder() -> Path:
    """Make a folder: in memory where the system has room there, unless TMPDIR names another place.

    A database that waits for the disk takes ten times as long, and a test has nothing to lose.
    """
    memory = None
    if "TMPDIR" not in os.environ and _MEMORY_FOLDER.is_dir() and os.access(_MEMORY_FOLDER, os.W_OK):
        memory = _MEMORY_FOLDER if shutil.disk_usage(_MEMORY_FOLDER).free >= _MIN_FREE_BYTES else None
    return Path(tempfile.mkdtemp(prefix="vesper-test-", dir=memory))


_MEMORY_FOLDER = Path("/dev/shm")
_MIN_FREE_BYTES = 256 << 20


def _release(journal: Journal, real: Performers, folder: Path) -> None:
    real.close()
    journal.close()
    shutil.rmtree(folder, ignore_errors=True)
