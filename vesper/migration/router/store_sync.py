"""The synchronisation of all routed nodes of one process with the store, in one thread.

No request waits for the store. The thread polls several times a second; a loss of trust wakes it. If the store is away,
the last modes hold for a while (`hold`), then Python runs alone until it is back.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from weakref import WeakSet

from vesper.compiler import Compiled
from vesper.config.migration import MigrationSettings
from vesper.host.host import Host
from vesper.journal.owner import this_owner
from vesper.migration.compare.paths import PathNote
from vesper.migration.compare.reports import Disagreement, Fault
from vesper.migration.control.modes import Mode, Reason
from vesper.migration.control.state import Event, Kill, Latch, Settings
from vesper.migration.router.alerts import Alerts
from vesper.migration.router.node_gauges import set_node_gauges
from vesper.migration.router.node_state import Live, highest_mode, now_us
from vesper.migration.router.spool import Spool
from vesper.migration.stores import ledger
from vesper.migration.stores.kill_scope import inherited_kill
from vesper.migration.stores.store import WHOLE, Batch, Happened, NodeKey, Store, StoreAway, StoreError, open_store
from vesper.migration.stores.traffic import TRAFFIC, traffic_of
from vesper.storage.after_fork import Order, register
from vesper.values.model import printable

_log = logging.getLogger("vesper.migration")
_FLUSH_INTERVAL_SECONDS = 1.0
"""Seconds between two batches of agreements; findings are sent at once."""
_DAMAGED_AFTER_FAILURES = 2
"""Number of failures in a row from which a store counts as damaged. A deleted file fails once, and is then made
anew."""
_LEFTOVER_SCAN_SECONDS = 5.0
_MAX_LAST_ROUNDS = 5
"""Maximum number of rounds before the end, while the store causes new findings."""


REPLACED_STORE_NOTE = "known from before the store was replaced"


class Migration:
    """The routed nodes of one process. After a fork the child gets its own name, thread and spool."""

    def __init__(self, settings: MigrationSettings, folder: Path, store: Store | None = None) -> None:
        self.settings = settings
        self._folder = folder
        self.store = open_store(settings.store) if store is None else store
        self._owns_store = store is None
        self._rules = Settings(frozenset(Mode(each) for each in settings.approvals))
        self._alerts = Alerts(settings.webhook)
        self._nodes: dict[NodeKey, Live] = {}
        self._versions: dict[NodeKey, int] = {}
        self._damaged: set[tuple[str, NodeKey]] = set()
        """Nodes whose stored state cannot be used, with the failing step (`tell` or `ask`)."""
        self._switch: ledger.KillSwitch | None = None
        """Kill switch, as known to this process."""
        self._has_warned = False
        self._is_closed = False
        self.key = b""
        """Key of fingerprints and of routing, shared by all users of the store; empty until it was read. Until then
        every node runs on Python, and needs no key."""
        self.gatherers: list[Callable[[], None]] = []
        """Functions that deliver collected findings before a batch is sent."""
        self.lull: Callable[[], None] = _skip_lull
        """Waits briefly for a moment without callers."""
        self.chores: list[Callable[[], None]] = []
        """Functions that run after each round."""
        self._begin_process()
        _ALL.add(self)

    def _begin_process(self) -> None:
        self.process = f"{this_owner()}+{secrets.token_hex(4)}"
        self._spool = Spool(self._folder, self.process)
        self._lock = threading.RLock()
        self._round_lock = threading.Lock()
        self._spool_lock = threading.Lock()
        """Lock of the spool."""
        self._wakes: SimpleQueue[None] = SimpleQueue()
        """Wakes the thread. A queue, because Ctrl-C could leave a lock held."""
        self._is_closing = self._is_closed
        self._thread: threading.Thread | None = None
        self._last_seen = time.monotonic()
        self._warned_at: float | None = None
        """Time of the last contact before the warning about a long outage."""
        self._last_flush = 0.0
        self._last_look_around = 0.0
        self._is_away = False
        self._is_following = True
        self._lasting_failures = 0
        """Number of failures, transient ones aside, since the last contact."""

    def _after_fork(self) -> None:
        """Restart in the child of a fork. A closed one stays closed; the parent ends its own closing."""
        started = self._thread is not None
        self._spool.forked()
        self._begin_process()
        for live in self._nodes.values():
            live.after_fork(self.process)
        if started:
            self.start()

    @property
    def contact_age_seconds(self) -> float:
        """Seconds since the last contact with the store."""
        return time.monotonic() - self._last_seen

    @property
    def kill_switch(self) -> ledger.KillSwitch | None:
        """The kill switch, as known to this process."""
        return self._switch

    # -- nodes ------------------------------------------------------------------------------------

    def node(self, key: NodeKey, compiled: Compiled, divergence_of: Callable[[Disagreement | Fault], Happened]) -> Live:
        """Return the state of a node in this process.

        It reads the store once; without a store the node begins on Python.
        """
        with self._lock:
            live = self._nodes.get(key)
            if live is None:
                most = highest_mode(self.settings.of(key.node).max_mode)
                live = Live(key, compiled, self.process, most, self._write, self._wake, divergence_of)
                self._nodes[key] = live
                live.set_followed(self._is_following)
                try:
                    self._read_key()
                    live.set_killed(self._switch is not None or ledger.read_kill_switch(self.store) is not None)
                    self._read(live, self.store.versions().get(key, 0))
                except StoreError as error:
                    self._note_failure(error)
                    live.set_held(True)
                except Exception as error:  # noqa: BLE001  # whatever the store contains, the node runs
                    self._hold_damaged("ask", live, error)
            self.start()
            return live

    def _read_key(self) -> None:
        if not self.key:
            self.key = self.store.secret()

    def _write(self, key: NodeKey, batch: Batch, is_synced: bool) -> None:
        with self._spool_lock:
            self._spool.write(key, batch, is_synced)

    def _wake(self) -> None:
        if self._wakes.empty():  # one is enough; read each time, as a fork replaces it
            self._wakes.put(None)

    # -- the thread -------------------------------------------------------------------------------

    def start(self) -> None:
        with self._lock:
            if self._thread is None and not self._is_closing:
                thread = threading.Thread(target=self._work, name="vesper-migration", daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:
                    # Without the thread a kill would go unnoticed. The next node that is loaded tries again.
                    _log.error("the thread of the migration cannot be started, and Python runs alone: %s", error)
                    for live in self._nodes.values():
                        live.set_held(True)
                    return
                self._thread = thread

    def _work(self) -> None:
        while True:
            with suppress(Empty):
                self._wakes.get(timeout=self.settings.refresh)
            if self._is_closing:  # `close` runs the last round, maybe in a call that a lull would wait for
                return
            try:
                self._run_round()
            except Exception:  # noqa: BLE001  # this thread must survive, or a kill would go unnoticed
                _log.exception("what is done for nodes now and then broke; it is tried again")

    def _run_round(self) -> None:
        if self._is_flush_due(time.monotonic()) and not any(live.has_unsent for live in self._nodes.copy().values()):
            self.lull()  # agreements take milliseconds and can wait; findings cannot
        self.tend()

    def _is_flush_due(self, now: float) -> bool:
        return now - self._last_flush >= _FLUSH_INTERVAL_SECONDS

    def tend(self, is_all: bool = False) -> None:
        """Send due batches, or all, and read the states of all nodes.

        It raises nothing, and handles every failure of the store.
        """
        with self._round_lock:
            self._gather()
            try:
                self._send_due(is_all)
                self._refresh()
            except Exception as error:  # noqa: BLE001  # whatever the error, old modes must not hold for ever
                self._note_failure(error)
            else:
                self._note_contact()
            self._run_chores()

    def _gather(self) -> None:
        for gather in self.gatherers:
            try:
                gather()
            except Exception:  # noqa: BLE001  # logged; the batches must not wait for it
                _log.exception("what was gathered elsewhere could not be taken over")

    def _run_chores(self) -> None:
        """Run the chores last: a failing one delays no batch."""
        for chore in self.chores:
            try:
                chore()
            except StoreError as error:
                if not self._is_away:
                    _log.warning("what is kept beside the evidence has to wait: %s", error)
                return
            except Exception:  # noqa: BLE001  # logged, and retried: this thread must not end
                _log.exception("what is done beside the evidence failed")

    def _send_due(self, is_all: bool) -> None:
        now = time.monotonic()
        is_due = is_all or self._is_flush_due(now)
        written = self._spool.written
        if is_due:
            is_telling = any(live.has_unsent or live.has_gathered for live in self._nodes.copy().values())
            self._notice_replaced(self.store.versions(), is_telling)
        for live in list(self._nodes.copy().values()):
            with self._holding_damaged("tell", live):
                self._send_batches(live, is_due)
        if not any(live.has_unsent for live in self._nodes.copy().values()):
            with self._spool_lock:
                self._spool.clear(written)
        if is_due:
            self._last_flush = now
        if now - self._last_look_around >= _LEFTOVER_SCAN_SECONDS:
            self._last_look_around = now
            self._send_leftovers()

    def _send_batches(self, live: Live, is_due: bool) -> None:
        batches = live.due(is_due)
        if batches and self._versions.get(live.key) == 0:
            self._inherit_kill(live.key)  # the node may have been killed since this process began with it
        for batch in batches:
            applied = ledger.apply(self.store, live.key, batch, self._rules, now_us())
            live.remove_sent(batch)  # only now: until the result is known the same batch is sent again
            self._alerts.decided(live.key, applied.decisions)
        if any(batch.served for batch in batches):
            self._set_gauges(live)

    def _set_gauges(self, live: Live) -> None:
        traffic = traffic_of(self.store.document(live.key, TRAFFIC), live.key.node)
        set_node_gauges(live.state, live.local.mode, traffic, now_us())

    def _inherit_kill(self, key: NodeKey) -> None:
        """Latch a new epoch of a node that was killed in every epoch.

        An epoch is new if the store does not have it. Raises `StoreError`.
        """
        kill = inherited_kill(self.store, key, self._rules)
        if kill is not None:
            self.send_event(key, kill)

    def send_event(self, key: NodeKey, event: Event) -> None:
        """Send an event of any node to the store, also of an unrouted one. Raises `StoreError`."""
        applied = ledger.apply_event(self.store, key, event, self._rules, now_us())
        self._alerts.decided(key, applied.decisions)

    def forward_alerts(self, host: Host) -> None:
        """Post the alerts of a Host too."""
        if self._alerts.host not in host.watch.listeners:
            host.watch.listeners.append(self._alerts.host)

    def stop_following(self, abandoned: int) -> None:
        """Run every node of this process on Python alone: without followers no outcome is checked."""
        self._is_following = False
        for live in self._nodes.copy().values():
            live.set_followed(False)
        self._alerts.following_stopped(abandoned)

    @contextmanager
    def _holding_damaged(self, step: str, live: Live) -> Iterator[None]:
        """Hold one node where its stored state is damaged. Errors of the store itself are raised."""
        try:
            yield
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001  # a document of another version, or a damaged one
            self._hold_damaged(step, live, error)
        else:
            self._damaged.discard((step, live.key))

    def _hold_damaged(self, step: str, live: Live, error: Exception) -> None:
        if (step, live.key) not in self._damaged:
            _log.error(
                "%s: what the store has of it cannot be used, and Python runs alone: %s: %s",
                live.key.node, type(error).__name__, error,
            )  # fmt: skip
        if all(key != live.key for _, key in self._damaged):
            self._alerts.store_damaged(live.key)
        self._damaged.add((step, live.key))
        live.set_held(True)

    def _send_leftovers(self) -> None:
        """Send the batches that dead processes had spooled."""
        for path, batches in self._spool.read_leftovers():
            try:
                for key, batch in batches:
                    applied = ledger.apply(self.store, key, batch, self._rules, now_us(), is_in_use=False)
                    self._alerts.decided(key, applied.decisions)
            except StoreError:
                raise
            except Exception as error:  # noqa: BLE001  # a damaged state of that node must not block the others
                _log.error("%s has to wait, because the store does not take it: %s", path, error)
                continue
            self._spool.forget(path)

    def _refresh(self) -> None:
        self._read_key()
        if not self._has_warned:
            self._has_warned = True
            for text in self.store.warnings():
                _log.warning("the store of migration state: %s", text)  # the text contains the name of the store
        versions = self.store.versions()
        self._notice_replaced(versions)
        if versions.get(WHOLE, 0) != self._versions.get(WHOLE, 0):
            self._notice_switch(ledger.read_kill_switch(self.store))
            self._versions[WHOLE] = versions.get(WHOLE, 0)
        for key, live in list(self._nodes.items()):
            live.set_killed(self._switch is not None)
            with self._holding_damaged("ask", live):
                if versions.get(key, 0) != self._versions.get(key, -1):
                    self._read(live, versions.get(key, 0))

    def _notice_switch(self, switch: ledger.KillSwitch | None) -> None:
        """Log a change of the kill switch, which no node's decisions show."""
        if switch is not None and self._switch is None:
            _log.warning(
                "every node of this process runs on Python alone: all were stopped by %s: %s",
                printable(switch.who), printable(switch.why),
            )  # fmt: skip
        elif switch is None and self._switch is not None:
            _log.warning("every node of this process is in its own mode again: nobody stops all of them any more")
        self._switch = switch

    def _notice_replaced(self, versions: Mapping[NodeKey, int], is_telling: bool = False) -> None:
        """Notice a replaced store by its other key, and begin anew.

        Agreements under the old key would count twice under the new one. The new store may have the same versions by
        now, from other processes: so the key is read again whenever a version differs, and before each batch.
        """
        is_as_known = all(versions.get(each, 0) == known for each, known in self._versions.copy().items())
        if not self.key or (is_as_known and not is_telling):
            return
        key = self.store.secret()
        if key != self.key:
            self._carry_stops()  # first, so that it is repeated if the store fails meanwhile
            _log.warning(
                "the store of migration state was replaced: all nodes begin anew, and what was stopped stays so"
            )
            self._alerts.store_replaced()
            self.key = key
            self._versions.clear()  # read everything again, whatever its version there
            for live in list(self._nodes.values()):
                live.drop_agreements()

    def _carry_stops(self) -> None:
        """Write the kill switch and the latches that this process knows of into the new store.

        Nothing that gives trust is carried over. A node that was released in the new store is not stopped again.
        Raises `StoreError`; a second attempt changes nothing that was done."""
        if self._switch is not None and self.store.read(WHOLE) is None:
            ledger.kill_all(self.store, self._switch.who, _add_note(self._switch.why), now_us())
        for live in list(self._nodes.values()):
            with self._holding_damaged("tell", live):
                self._carry_latches(live.key, live.state.latches)

    def _carry_latches(self, key: NodeKey, latches: Sequence[Latch]) -> None:
        """Latch a node as a kill. A latch that no person set passes on its reason alone: its text may be an engine's,
        and the text of a kill is passed on."""
        if not latches or ledger.load(self.store, key, self._rules).latches or self._was_released(key):
            return
        people = [each for each in latches if each.reason is Reason.KILL]
        whys = [each.why if each.reason is Reason.KILL else each.reason.value for each in latches]
        self.send_event(key, Kill((people or latches)[0].who, _add_note("; ".join(whys))))

    def _was_released(self, key: NodeKey) -> bool:
        return any(json.loads(line.text)["kind"] == "released" for line in self.store.history(key))

    def _read(self, live: Live, version: int) -> None:
        if version == 0:
            self._inherit_kill(live.key)
        state = ledger.load(self.store, live.key, self._rules)
        notes = {path: PathNote.from_text(text) for path, text in self.store.paths(live.key).items()}
        before = live.state.mode
        live.update_state(state, version, notes)
        self._set_gauges(live)
        if live.key in self._versions and before is not state.mode:
            # The deciding process has logged the reason; here the change takes effect.
            _log.info("%s: %s → %s in this process", live.key.node, before.value, state.mode.value)
        self._versions[live.key] = version

    def _note_failure(self, error: Exception) -> None:
        if not self._is_away:
            _log.warning("the store of migration state cannot be used: %s: %s", type(error).__name__, error)
        self._is_away = True
        self._lasting_failures += not isinstance(error, StoreAway)
        if self._lasting_failures == _DAMAGED_AFTER_FAILURES and not isinstance(error, StoreAway):
            self._alerts.store_damaged()
        self._warn_of_long_outage()
        if time.monotonic() - self._last_seen > self.settings.hold:
            for live in list(self._nodes.values()):
                live.set_held(True)

    def _warn_of_long_outage(self) -> None:
        """Log a long outage once, with its consequence for callers."""
        if time.monotonic() - self._last_seen > self.settings.hold and self._warned_at != self._last_seen:
            self._warned_at = self._last_seen
            _log.warning(
                "the store of migration state has been away for more than %g s (`hold`): every node of this process "
                "runs on Python alone until it is back", self.settings.hold,
            )  # fmt: skip
            self._alerts.store_away(self.settings.hold)

    def _note_contact(self) -> None:
        self._last_seen = time.monotonic()
        self._lasting_failures = 0
        if self._is_away:
            _log.warning("the store of migration state can be used again")
            self._is_away = False
        spoilt = {key for _, key in self._damaged}
        for live in list(self._nodes.values()):
            live.set_held(live.key in spoilt)

    @property
    def is_away(self) -> bool:
        """True where the last use of the store failed."""
        return self._is_away

    def close(self) -> None:
        """Send everything that the store accepts, and close it."""
        self._is_closing = True
        self._wakes.put(None)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        for _ in range(_MAX_LAST_ROUNDS):
            self.tend(is_all=True)
            self._gather()  # the new states may have set something aside; findings that waited for it were sent alone
            if self._is_away or not any(live.has_unsent or live.has_gathered for live in self._nodes.values()):
                break
        for live in list(self._nodes.values()):
            live.log_unsaved()
        with self._spool_lock:
            self._spool.close()
        self._alerts.close(2.0)
        if self._owns_store:
            self.store.close()
        self._is_closed = True


def _add_note(why: str) -> str:
    return why if REPLACED_STORE_NOTE in why else f"{why} ({REPLACED_STORE_NOTE})"


def _skip_lull() -> None:
    """Return at once: without a shadow queue there is no information about callers."""


_ALL: WeakSet[Migration] = WeakSet()


def _forked() -> None:
    for each in list(_ALL):
        each._after_fork()


register(order=Order.ROUTER, after_in_child=_forked)
