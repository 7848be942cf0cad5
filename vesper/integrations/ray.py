"""Nodes on Ray: `map_batches` of a dataset, and the parts of `vesper run --batch --on ray`.

A cluster is trusted: Ray unpickles what its processes send, and access to its ports suffices to run code on it.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import ray
import ray.data
from ray.exceptions import RayError, RayTaskError, UserCodeException

from vesper.api.load import load
from vesper.api.node import Node
from vesper.batch.errors import BatchError
from vesper.batch.partitioned_job import Work
from vesper.batch.partitions import FinishedPart, Partition, run_partition
from vesper.batch.table import Wanted
from vesper.integrations.shipped_batch import ShippedBatch, ship_node

if TYPE_CHECKING:
    from vesper.batch.table import Decimals

LOCAL = "ray"
"""The address of a cluster that a job starts and ends."""
_AUTO = "ray:auto"
_MIN_STORE_BYTES = 128 << 20
"""Memory for objects of a local cluster: only names of parts and their records pass through it."""
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "fatal", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
_AWAKE = {"RAY_worker_niceness": "0"}
"""Workers of a local cluster are this process's own work; Ray's default of 15 starves them on a busy machine."""
_TASKS_PER_WORKER = 2
"""One that runs and one that waits: more would leave the last parts to one worker while others are idle."""


def map_batches(
    dataset: ray.data.Dataset,
    node: Node | str | os.PathLike[str],
    /,
    *,
    nodes: str | os.PathLike[str] | None = None,
    keep: Iterable[str] = (),
    decimals: Decimals = None,
    error_column: str = "error",
    now: datetime | None = None,
    workers: int | tuple[int, int] = 1,
    **options: Any,
) -> ray.data.Dataset:
    """Add a node on every row of a dataset to its plan.

    `workers` actors of one processor, or from one number to another, load the node once and run Arrow blocks.
    `options` are those of `Dataset.map_batches`, such as `batch_size`; the others are those of `node.run_batch`. `now`
    is by default the time of this call, for all rows.
    """
    found = node if isinstance(node, Node) else load(node, nodes=nodes)
    shipped = ship_node(found, Wanted(1, list(keep), decimals, error_column), now or datetime.now(UTC))
    least, most = workers if isinstance(workers, tuple) else (workers, workers)
    strategy = ray.data.ActorPoolStrategy(min_size=least, max_size=most)
    given = {"batch_size": None, "num_cpus": 1, **options}
    return dataset.map_batches(
        _BlockWorker, fn_constructor_args=(shipped,), batch_format="pyarrow", compute=strategy, **given
    )


class _BlockWorker:
    """An actor that runs the rows of blocks."""

    def __init__(self, shipped: ShippedBatch) -> None:
        self._run = shipped.load()

    def __call__(self, block: pa.Table) -> pa.Table:
        return self._run("typed", block)


# -- parts of files -------------------------------------------------------------------------------


@contextmanager
def cluster(address: str, workers: int | None) -> Iterator[int]:
    """Connect to a cluster, or start one that ends with the block; yield the number of its workers."""
    settings = {**_QUIET, **(_AWAKE if address == LOCAL else {})}
    os.environ.update({name: value for name, value in settings.items() if name not in os.environ})
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    folder = None
    if address == LOCAL:
        folder = tempfile.mkdtemp(prefix="vesper-ray-")
        quiet |= {"include_dashboard": False, "_node_ip_address": "127.0.0.1", "_temp_dir": folder}
        quiet |= {"num_cpus": workers or len(os.sched_getaffinity(0)), "object_store_memory": _MIN_STORE_BYTES}
    target = {LOCAL: "local", _AUTO: "auto"}.get(address) or address
    try:
        try:
            with _without_native_log():
                ray.init(address=target, **quiet)
        except Exception as error:  # noqa: BLE001  # Ray raises it bare where a node does not start in time
            raise BatchError(f"--on {address}: there is no Ray cluster to use: {error}") from None
        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        processors = int(resources.get("CPU", 0))
        if processors == 0:
            raise BatchError(f"--on {address}: the cluster has no processors")
        yield min(workers or processors, processors)
    finally:
        ray.shutdown()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _without_native_log() -> Iterator[None]:
    """Drop lines that Ray's libraries write to the error stream of the system, such as that of their log level."""
    sys.stderr.flush()
    kept = os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


def run_parts(work: Work, shipped: ShippedBatch, workers: int) -> Iterator[FinishedPart]:
    """Run parts on the cluster to which this process is connected, and yield each when it is finished."""
    blocks = [pa.table({name: [getattr(part, name)] for name in _FIELDS}) for part in work.parts]
    with _quiet_context():
        ran = ray.data.from_arrow(blocks).map_batches(
            _PartWorker,
            fn_constructor_args=(shipped, str(work.folder.resolve()), work.kind),
            batch_size=None,
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(
                size=min(workers, len(blocks)), max_tasks_in_flight_per_actor=_TASKS_PER_WORKER
            ),
            num_cpus=1,
        )
        try:
            records: Iterable[Any] = ran.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0)
            for block in records:
                for row in block.to_pylist():
                    if row["problem"]:
                        raise BatchError(row["problem"])
                    yield FinishedPart(row["output"], row["rows"], dict(row["errors"]), row["sha256"])
        except (RayTaskError, UserCodeException):
            raise  # an exception of this program in a worker
        except RayError as error:
            said = str(error).strip().partition("\n")[0]
            raise BatchError(
                f"the cluster did not run the parts: {type(error).__name__}: {said}; continue with --resume"
            ) from None


_FIELDS = tuple(Partition.__dataclass_fields__)
_FINISHED = pa.schema(
    [
        ("problem", pa.string()),
        ("output", pa.string()),
        ("rows", pa.int64()),
        ("errors", pa.map_(pa.string(), pa.int64())),
        ("sha256", pa.string()),
    ]
)


class _PartWorker:
    """An actor that reads, runs and writes parts. A problem of the job is a value: Ray would retry an exception."""

    def __init__(self, shipped: ShippedBatch, folder: str, kind: str) -> None:
        self._shipped = shipped
        self._folder = Path(folder)
        self._kind = kind
        self._problem: str | None = None
        try:
            self._run = shipped.load()
        except BatchError as problem:
            self._problem = str(problem)

    def __call__(self, block: pa.Table) -> pa.Table:
        return pa.Table.from_pylist([self._finished(Partition(**row)) for row in block.to_pylist()], schema=_FINISHED)

    def _finished(self, part: Partition) -> dict[str, Any]:
        if self._problem is None:
            try:
                done = run_partition(part, self._folder, self._kind, self._shipped.wanted.error_column, self._run)
            except BatchError as problem:
                return {"problem": str(problem)}
            return {**asdict(done), "errors": list(done.errors.items())}
        return {"problem": self._problem}


@contextmanager
def _quiet_context() -> Iterator[None]:
    """Silence the progress bars and lines of Ray Data: a job reports its own progress."""
    context = ray.data.DataContext.get_current()
    before = context.enable_progress_bars
    logger = logging.getLogger("ray.data")
    level = logger.level
    context.enable_progress_bars = False
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        context.enable_progress_bars = before
        logger.setLevel(level)
