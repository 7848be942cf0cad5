"""`vesper run --batch` in partitions: several files, a folder as output, or workers on Ray."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vesper.api.batch import Batch
from vesper.batch.errors import BatchError
from vesper.batch.files import format_of
from vesper.batch.job import Progress
from vesper.batch.partitioned_job import PartitionedJob, Work, is_file_name, run_here
from vesper.batch.partitions import FinishedPart, Partition, find_inputs, run_partition
from vesper.batch.table import Form, Wanted
from vesper.cli.run.batch import job_options, read_decimals
from vesper.cli.run.inputs import read_start
from vesper.cli.run.options import RunOptions
from vesper.values.model import scalar_text

if TYPE_CHECKING:
    import pyarrow as pa

_NEEDED = "batches on a cluster need Ray, which is not installed: pip install 'vesper[ray]'"


def run_partitions(
    node: Batch, engine: str, out: Path, options: RunOptions, report: Callable[[Progress], None]
) -> Progress:
    """Run the files in partitions, here or on a cluster."""
    inputs = find_inputs(options.batch)
    kind = format_of(out if is_file_name(out) else inputs[0])
    wanted = Wanted(options.threads, options.keep, read_decimals(options.decimals, kind))
    start = read_start(options.start)

    def rows(form: Form, table: pa.Table) -> pa.Table:
        return node.run_form(form, table, wanted, start)

    job = PartitionedJob(
        inputs,
        out,
        kind,
        node.compiled.node.node_id,
        node.compiled.semantic_hash,
        job_options(node, options, wanted.decimals),
        scalar_text(start),
        rows,
    )
    if options.cluster is None:
        return job.do(options.resume, run_here(_run_part(node, wanted)), report)
    try:
        from vesper.integrations import ray
    except ImportError as problem:
        if (problem.name or "").partition(".")[0] != "ray":
            raise
        raise BatchError(_NEEDED) from None
    from vesper.integrations.shipped_batch import ship_batch

    cluster = options.cluster

    def run_on_cluster(work: Work) -> Iterator[FinishedPart]:
        alone = replace(wanted, threads=1)  # a worker has one processor
        shipped = ship_batch(node.compiled, engine, node.limits, alone, read_start(work.start))
        with ray.cluster(cluster, options.threads) as workers:
            yield from ray.run_parts(work, shipped, workers)

    return job.do(options.resume, run_on_cluster, report)


def _run_part(node: Batch, wanted: Wanted) -> Callable[[Partition, Work], FinishedPart]:
    def run(part: Partition, work: Work) -> FinishedPart:
        start = read_start(work.start)

        def rows(form: Form, table: pa.Table) -> pa.Table:
            return node.run_form(form, table, wanted, start)

        return run_partition(part, work.folder, work.kind, wanted.error_column, rows)

    return run
