"""`vesper run --batch --on ray` and `map_batches` on a local cluster, which a process of its own starts and ends."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyarrow import array, int64, parquet, table

import vesper
from tests.unit.batch.given import NODES, payments
from vesper.batch.table import Wanted
from vesper.integrations.shipped_batch import ship_node

_TIMEOUT_SECONDS = 600
SESSION = Path(__file__).with_name("ray_session.py")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], str, list[str]]:
    folder = tmp_path_factory.mktemp("ray")
    given = payments(200)
    parquet.write_table(given.append_column("id", array(range(200), int64())), folder / "in.parquet", row_group_size=50)
    environment = {**os.environ, "VESPER_TEST_RAY": str(folder)}
    ran = subprocess.run(
        [sys.executable, str(SESSION), str(NODES), str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=_TIMEOUT_SECONDS,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return json.loads(ran.stdout.splitlines()[-1]), ran.stderr, _processes_after(folder, seconds=60)


def _processes_after(folder: Path, seconds: float) -> list[str]:
    """Return the processes of the session that have not ended by then; a worker ends when it misses its cluster."""
    deadline = time.monotonic() + seconds
    while (found := _processes(folder)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def _processes(folder: Path) -> list[str]:
    """Return the processes that inherited the environment of the session and still run."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit() and int(each.name) != os.getpid():
            try:
                if f"VESPER_TEST_RAY={folder}".encode() in (each / "environ").read_bytes():
                    found.append((each / "cmdline").read_bytes().decode(errors="replace"))
            except OSError:
                continue
    return found


def test_parts_on_workers_are_those_of_one_process(session: tuple[dict[str, object], str, list[str]]) -> None:
    found, _, _ = session
    assert found["workers"] == 2
    assert found["exit codes"] == [1, 1]
    assert found["is same"]
    assert "200 rows in" in str(found["output"])


def test_a_worker_runs_blocks_of_a_node_that_it_has_no_file_of(tmp_path: Path) -> None:
    import vesper.integrations.ray as ours

    path = tmp_path / "payment_decision_v1.vsp"
    shutil.copy(NODES / "payments" / path.name, path)
    node = vesper.load(path, engine="interp")
    shipped = pickle.dumps(ship_node(node, Wanted(1, ["amount"]), datetime.now(UTC)))
    path.unlink()
    given = payments(100)
    found = ours._BlockWorker(pickle.loads(shipped))(given)
    assert found.to_pylist() == node.run_batch(given, keep=["amount"]).to_pylist()


def test_a_worker_of_another_version_says_so() -> None:
    import vesper.integrations.ray as ours

    node = vesper.load("payment_decision", nodes=NODES, engine="interp")
    shipped = replace(ship_node(node, Wanted(1), None), version=b"another")
    worker = ours._PartWorker(shipped, "out", "parquet")
    part = {"path": "x", "unit": "file", "begin": 0, "end": 0, "size": 0, "output": "part-00000.parquet"}
    (row,) = worker(table({name: [value] for name, value in part.items()})).to_pylist()
    assert "another version of Vesper or Python" in row["problem"]


def test_a_local_cluster_leaves_nothing(session: tuple[dict[str, object], str, list[str]]) -> None:
    found, errors, processes = session
    assert not found["is connected"]
    assert processes == []
    assert found["new folders"] == []
    assert errors == ""


def test_a_cluster_that_does_not_start_is_no_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    import vesper.integrations.ray as ours

    def init(**_: object) -> None:
        raise Exception("The current node timed out during startup.")  # as Ray does

    monkeypatch.setattr(ray, "init", init)
    said = "--on ray: there is no Ray cluster to use: The current node timed out"
    with pytest.raises(vesper.BatchError, match=said), ours.cluster("ray", 1):
        pass
