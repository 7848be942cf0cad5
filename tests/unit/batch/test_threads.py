"""Batches on several threads: the same rows in the same order, and nothing that goes on when nobody reads."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import vesper
from tests.unit.batch.given import NODES, echo

PARTS = 40
ROWS = PARTS * 16_384
TASKS = Path("/proc/self/task")


def numbers(count: int, failing: int | None = None) -> pa.RecordBatchReader:
    """A stream of numbers, which has an error after so many batches."""
    schema = pa.schema([("v", pa.int64())])

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(count):
            if number == failing:
                raise OSError("the disk is gone")
            yield pa.record_batch([pa.array(range(number * 1_000, (number + 1) * 1_000), pa.int64())], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def endless() -> pa.Table:
    """Return rows that take minutes. The node refuses more than 10,000 rounds, and refused rows take no time."""
    return pa.table({"seed": pa.array([1] * ROWS, pa.int64()), "n": pa.array([10_000] * ROWS, pa.int64())})


@pytest.fixture
def loops() -> vesper.Node:
    return vesper.load(NODES / "numbers" / "numeric_loop_v1.vsp", engine="interp")


def test_rows_with_errors_come_in_order_on_any_number_of_threads() -> None:
    node = vesper.load(NODES / "payments" / "payment_decision_v1.vsp", engine="jit")
    row = {"amount": "50.00", "balance": "100.00", "currency": "USD", "country": "DE", "user_age_days": 400}
    rows = [{**row, "user_age_days": each, "amount": "-1.00" if each % 977 == 0 else "50.00"} for each in range(60_000)]
    given = pa.Table.from_pylist(rows)
    alone = node.run_batch(given, keep=["user_age_days"], threads=1)
    assert alone.column("error").null_count == 60_000 - len(range(0, 60_000, 977))
    for threads in (2, 3, 16):
        assert node.run_batch(given, keep=["user_age_days"], threads=threads).equals(alone)


def test_what_came_before_an_error_of_a_stream_is_answered(tmp_path: Path) -> None:
    node = echo(tmp_path, "b")
    for threads in (1, 2):
        for failing in (1, 5, 30):
            answer = node.run_batch(numbers(PARTS, failing), threads=threads)
            found: list[int] = []
            with pytest.raises(pa.ArrowInvalid, match="the disk is gone"):
                found.extend(number for batch in answer for number in batch.column("w").to_pylist())
            assert found == list(range(failing * 1_000))


@pytest.mark.skipif(not TASKS.exists(), reason="threads are counted by their names, where a system tells them")
def test_an_answer_that_is_left_leaves_no_threads(loops: vesper.Node) -> None:
    def at_work() -> int:
        found = 0
        for task in TASKS.iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended meanwhile
                found += task.joinpath("comm").read_text().startswith("vesper-batch")
        return found

    quick = endless().slice(0, ROWS).set_column(1, "n", pa.array([0] * ROWS, pa.int64()))
    answer = loops.run_batch(pa.RecordBatchReader.from_batches(quick.schema, quick.to_batches()), threads=2)
    next(iter(answer))
    assert at_work() == 2
    del answer
    assert at_work() == 0


@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_can_be_interrupted(loops: vesper.Node, threads: int) -> None:
    assert threading.current_thread() is threading.main_thread()
    given = endless()
    timer = threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            loops.run_batch(given, threads=threads)
    finally:
        timer.cancel()  # a signal after the end of the test would interrupt another
        timer.join()


_HALF_READ = """
import sys
import pyarrow as pa
import vesper
schema = pa.schema([("seed", pa.int64()), ("n", pa.int64())])
batch = pa.record_batch([pa.array([1] * 100, pa.int64()), pa.array([10] * 100, pa.int64())], schema=schema)
stream = pa.RecordBatchReader.from_batches(schema, (batch for _ in range(100)))
answer = vesper.load(sys.argv[1], engine="interp").run_batch(stream, threads=int(sys.argv[2]))
next(iter(answer))
sys.exit(int(sys.argv[3]))
"""


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("status", ["0", "3"])
def test_a_process_may_end_with_an_answer_that_is_half_read(threads: str, status: str) -> None:
    node = NODES / "numbers" / "numeric_loop_v1.vsp"
    command = [sys.executable, "-c", _HALF_READ, str(node), threads, status]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=NODES.parent)
    assert (ended.returncode, ended.stderr) == (int(status), "")


@pytest.mark.parametrize("threads", [1, 2])
def test_a_table_may_be_made_of_another_answer_when_it_is_asked_for(tmp_path: Path, threads: int) -> None:
    """pyarrow lets go of the global lock in the middle of what the engine has asked for."""
    node = echo(tmp_path, "b")

    class Lazily:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            inner = node.run_batch(numbers(PARTS), threads=threads)
            made = pa.table({"v": inner.read_all().column("w")})
            return made.__arrow_c_stream__()

    for _ in range(3):
        answer = pa.table(node.run_batch(Lazily(), threads=threads))
        assert answer.column("w").to_pylist() == list(range(PARTS * 1_000))


def test_two_threads_that_read_one_answer_lose_no_row_silently(tmp_path: Path) -> None:
    node = echo(tmp_path, "b")
    for _ in range(5):
        answer = node.run_batch(numbers(PARTS), threads=2)
        found: list[int] = []
        told: list[str] = []

        def read(answer: pa.RecordBatchReader = answer, found: list[int] = found, told: list[str] = told) -> None:
            try:
                for batch in answer:
                    found.extend(batch.column("w").to_pylist())
            except pa.ArrowInvalid as error:
                told.append(str(error))

        readers = [threading.Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        assert all("two threads read the answer" in each for each in told)
        assert len(told) == 2 or sorted(found) == list(range(PARTS * 1_000))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_an_answer_that_was_begun_is_not_read_on_in_a_forked_process(tmp_path: Path) -> None:
    answer = echo(tmp_path, "b").run_batch(numbers(PARTS), threads=2)
    batches = iter(answer)
    first = next(batches)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            next(batches)
            said = "nothing was said"
        except (ValueError, OSError) as error:  # as pyarrow has it: any other shows as a child that fails
            said = str(error)
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        assert "forked after the batch was begun" in told.read()
    assert os.waitpid(child, 0)[1] == 0
    rest = [number for batch in batches for number in batch.column("w").to_pylist()]
    assert first.column("w").to_pylist() + rest == list(range(PARTS * 1_000))
