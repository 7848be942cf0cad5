from __future__ import annotations

import faulthandler
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.journalled import dead_owner
from tests.support.nodes import ROOT
from tests.unit.migration.support import routed
from tests.unit.migration.support.routed import routes_in
from vesper.engines.path import Pathed
from vesper.journal.owner import this_owner
from vesper.migration.control.controller import step
from vesper.migration.control.modes import Mode, Reason
from vesper.migration.control.state import NodeState
from vesper.migration.stores.sqlite_store import SqliteMigrationStore
from vesper.migration.stores.store import NodeKey
from vesper.migration.workers.inflight_counters import SIZE, SLOTS, Flights, LostFlights, claim_lost

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # of Python 3.12: servers do
KEY, OTHER = NodeKey("pay_v1", "e1"), NodeKey("ship_v1", "e1")


@pytest.fixture
def flights(tmp_path: Path) -> Iterator[Flights]:
    made = Flights.open(tmp_path)
    yield made
    made.close()
    assert not list(tmp_path.glob("*.flights"))


_DIES = """
import os, sys
from pathlib import Path
from vesper.migration.workers.inflight_counters import Flights
from vesper.migration.stores.store import NodeKey
flights = Flights.open(Path(sys.argv[1]))
for node, began, ended in (("pay_v1", 7, 4), ("ship_v1", 5, 5)):
    slot = flights.slot(NodeKey(node, "e1"))
    for _ in range(began):
        slot.enter()
    for _ in range(ended):
        slot.leave()
os.abort()
"""


def died(folder: Path) -> Path:
    """Return the file of a process that aborted with three running executions of pay_v1."""
    before = set(folder.glob("*.flights"))
    command = [sys.executable, "-c", _DIES, str(folder)]
    assert subprocess.run(command, cwd=ROOT, check=False, preexec_fn=_no_core).returncode == -6
    (path,) = set(folder.glob("*.flights")) - before
    return path


def _no_core() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def test_running_executions_of_an_aborted_process_are_found_once(tmp_path: Path) -> None:
    died(tmp_path)
    (found,) = claim_lost(tmp_path)
    assert (found.key, found.count) == (KEY, 3)
    assert claim_lost(tmp_path) == []
    assert list(tmp_path.iterdir()) == []
    state = NodeState("pay_v1", "e1")
    for event in found.events():
        state, _ = step(state, event, 1)
    assert state.mode is Mode.PYTHON_ONLY
    assert state.latches[0].reason.value == "lost_runs"


def test_living_processes_are_left_alone(tmp_path: Path, flights: Flights) -> None:
    flights.slot(KEY).enter()
    assert claim_lost(tmp_path) == []
    with subprocess.Popen(
        [sys.executable, "-c", _DIES.replace("os.abort()", "print(flush=True); input()"), str(tmp_path)],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        assert claim_lost(tmp_path) == []
        # Nor where its name says nothing, as in another container: it holds its lock.
        (theirs,) = [each for each in tmp_path.glob("*.flights") if this_owner() not in each.name]
        elsewhere = theirs.rename(theirs.with_name(f"other:1:1:elsewhere@1{theirs.suffix}"))
        assert claim_lost(tmp_path) == []
        process.kill()
    assert claim_lost(tmp_path) == []  # it names another owner than its name does
    assert not elsewhere.exists()
    assert len(list((tmp_path / "aside").iterdir())) == 1


def test_one_of_several_scans_claims_the_file(tmp_path: Path) -> None:
    died(tmp_path)
    children = []
    for _ in range(4):
        if (child := os.fork()) == 0:
            os._exit(100 + len(claim_lost(tmp_path)))
        children.append(child)
    statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert sorted(statuses) == [100, 100, 100, 101]


def test_an_unreported_file_is_found_again(tmp_path: Path) -> None:
    died(tmp_path)

    def refuses(_: LostFlights) -> None:
        raise RuntimeError("the store is away")

    with pytest.raises(RuntimeError, match="away"):
        claim_lost(tmp_path, refuses)
    first = claim_lost(tmp_path)
    assert len(first) == 1
    # And where the one that claimed it died, another takes it, and it is the same.
    died(tmp_path)
    if (child := os.fork()) == 0:
        claim_lost(tmp_path, lambda _: os._exit(9))
    os.waitpid(child, 0)
    assert [each.count for each in claim_lost(tmp_path)] == [3]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "data, why",
    [
        (b"", "0 bytes"),
        (b"x" * 100, "100 bytes"),
        (b"x" * SIZE, "no file of flights"),
        (b"x" * (SIZE + 1), "bytes"),
    ],
)
def test_an_unreadable_file_is_moved_aside(
    tmp_path: Path, data: bytes, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / f"{dead_owner()}@1.flights").write_bytes(data)
    (tmp_path / "somebody-else.txt").write_bytes(b"kept")
    with caplog.at_level(logging.ERROR, "vesper.migration"):
        assert claim_lost(tmp_path) == []
    assert why in caplog.text
    assert len(list((tmp_path / "aside").iterdir())) == 1
    assert (tmp_path / "somebody-else.txt").exists()
    assert claim_lost(tmp_path) == []


def test_torn_counters_are_no_loss(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = died(tmp_path)
    data = bytearray(path.read_bytes())
    data[1024 + 8] = 200  # more ended than began
    path.write_bytes(data)
    assert claim_lost(tmp_path) == []
    assert "cannot be" in caplog.text


def test_threads_lose_no_counts(flights: Flights) -> None:
    slot = flights.slot(KEY)
    assert flights.slot(KEY) is slot
    counters = memoryview(bytearray(16)).cast("Q")
    slot.bind((counters, 0), (memoryview(bytearray(16)).cast("Q"), 0))

    def count() -> None:
        for _ in range(300):
            slot.enter()
            slot.leave()

    threads = [threading.Thread(target=count) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert counters.tolist() == [1200, 1200]


def test_a_forked_process_counts_in_its_own_file(tmp_path: Path, flights: Flights) -> None:
    slot, other = flights.slot(KEY), flights.slot(OTHER)
    slot.enter()
    if (child := os.fork()) == 0:
        other.enter()
        os._exit(0)  # with one under way, as if it had been killed
    os.waitpid(child, 0)
    (found,) = claim_lost(tmp_path)
    assert (found.key, found.count) == (OTHER, 1)
    slot.leave()
    assert claim_lost(tmp_path) == []


def test_nodes_beyond_the_slots_are_logged(flights: Flights, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(SLOTS // 2):
        flights.slot(NodeKey(f"n_v{number}", "e"))
    assert not caplog.records
    flights.slot(NodeKey("one_too_many_v1", "e")).enter()
    assert "one_too_many_v1 under way are not counted" in caplog.text


def test_a_folder_that_is_not_there_has_lost_nothing(tmp_path: Path) -> None:
    assert claim_lost(tmp_path / "none") == []


def test_a_disk_that_is_full_is_an_error_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, at: int, size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space"):
        Flights.open(tmp_path)
    assert list(tmp_path.iterdir()) == []


class Aborting(routed.Misbehaving):
    """A direct engine that aborts the process for one amount."""

    def call_pathed(self, inputs: Mapping[str, object], *rest: Any) -> Pathed:
        if inputs["amount"] == 66:
            os.abort()
        return super().call_pathed(inputs, *rest)


def _serve_until_it_aborts(folder: Path, is_first: bool) -> None:
    _no_core()
    faulthandler.disable()  # pytest's would print where it aborts
    routes = routes_in(folder, SqliteMigrationStore(str(folder / "migration.db")), sample="0.01%")
    routes._direct = Aborting  # type: ignore[assignment]
    program = routes.program(routed.compiled())
    if is_first:
        routed.put_into(routes, program, Mode.DIRECT_ONLY)
    assert program.live.local.mode is Mode.DIRECT_ONLY
    assert program.call(routed.payment()).kind == "returned"
    program.call(routed.payment("66"))


def test_a_node_whose_direct_engine_takes_the_process_with_it_twice_is_latched(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for is_first in (True, False):
        if (child := os.fork()) == 0:
            try:
                _serve_until_it_aborts(tmp_path, is_first)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -6
    routes = routes_in(tmp_path, SqliteMigrationStore(str(tmp_path / "migration.db")))
    try:
        program = routes.program(routed.compiled())
        routes.migration.tend(is_all=True)
        state = routed.state_of(routes, program)
        assert state.mode is Mode.PYTHON_ONLY
        assert [each.reason for each in state.latches] == [Reason.LOST_RUNS]
        latched = "latched in python_only until a person resumes it: runs began under the direct engine and never ended"
        assert [each.levelname for each in caplog.records if latched in each.getMessage()] == ["ERROR"]
        assert program.call(routed.payment()).kind == "returned"
    finally:
        routes.close()
    assert not list((tmp_path / ".vesper" / "migration" / "flights").iterdir())
