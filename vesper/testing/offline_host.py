"""A Host for tests: no server, no configuration file, no waiting. A subclass answers the requests of its nodes.

Every capability that a node requires is granted, except those that it denies itself. The journal is a file in a folder
of its own, which is deleted with the Host.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from vesper.compiler import Compiled
from vesper.config.effect_tables import EffectSettings
from vesper.config.grants import Grant
from vesper.config.settings import Config, JournalSettings, RecoverySettings
from vesper.effects.database.settings import DatabaseSettings
from vesper.effects.performer import Ask, EffectFailed
from vesper.engines.engine import Limits, Program
from vesper.host.driving import Steps
from vesper.host.host import Host
from vesper.host.in_doubt import InDoubt
from vesper.host.performers import Performers
from vesper.host.prepared import Prepared, Ran
from vesper.journal.journal import Journal, open_journal
from vesper.values.generated.effects import EFFECTS
from vesper.values.problem import ValueProblem
from vesper.values.times import SleepClock

if TYPE_CHECKING:
    from vesper._direct import Running


@dataclass(slots=True)
class ActiveRun:
    """A run in progress."""

    prepared: Prepared
    problem: Exception | None = None
    """The first mistake of the test."""


_HERE: ContextVar[ActiveRun] = ContextVar("vesper_active_run")


class OfflineHost(Host):
    """A Host that answers requests with `answered`, in the thread that runs the node."""

    # The journal of a test need not survive a loss of power.
    _syncs_writes = False

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
            parts=EffectSettings(databases=self._databases),
        )
        journal = open_journal(config.journal.dsn)
        performer = _Performer(weakref.ref(self))
        super().__init__(config, journal=journal, performers=dict.fromkeys(EFFECTS, performer))
        self._pace = "immediate" if retries else "once"
        self._warned = True  # a volatile journal is intended here
        self._real = Performers(config, {})
        """Performs effects inside the process: databases of the test."""
        self._close = weakref.finalize(self, _release, journal, self._real, self.folder)

    @abstractmethod
    def answered(self, ask: Ask) -> object:
        """Return the result of a request, in its Python form. Raises `EffectFailed`; `give_up` ends the run."""

    def prepare(self, compiled: Compiled, program: Program, engine: str) -> Prepared:
        prepared = super().prepare(compiled, program, engine)
        self._real.know_machines(prepared.plans.machines, compiled.node.node_id)
        return prepared

    def _run_steps(
        self,
        prepared: Prepared,
        inputs: Mapping[str, object],
        now: datetime,
        limits: Limits | None,
        on_begun: Callable[[Running], None] | None,
    ) -> Steps[Ran]:
        """Run as any Host does; raise a mistake of the test when the node has ended."""
        here = ActiveRun(prepared)
        outer = _HERE.set(here)
        try:
            ran = yield from super()._run_steps(prepared, inputs, now, limits, on_begun)
        except _RunAborted as given_up:
            raise given_up.problem from None
        finally:
            _HERE.reset(outer)  # a function that answers may itself run a node
        if here.problem is not None:
            raise here.problem
        return ran

    @property
    def here(self) -> ActiveRun:
        """The run that requests an answer."""
        return _HERE.get()

    def give_up(self, problem: Exception) -> NoReturn:
        """End the run: the caller of the node gets the problem, or the first one reported."""
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


def sleep(clock: SleepClock, ask: Ask, due: object = None) -> datetime:
    """Return the time at which a sleep is due by the clock, which it moves."""
    try:
        return clock.sleep(ask.arguments, due)
    except ValueProblem:
        raise EffectFailed("invalid_argument", "the sleep would end outside the years 1 to 9999") from None


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
