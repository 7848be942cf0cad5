"""`vesper run --batch`: a node on every row of a file, with a progress bar."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vesper.api.batch import Batch, batch_of
from vesper.batch import job as jobs
from vesper.batch.errors import BatchError
from vesper.batch.job import Progress
from vesper.batch.table import MAX_DIGITS, Decimals, Wanted
from vesper.cli.engine_names import FIRST_TIER
from vesper.cli.exits import FINE, OUR_BUG, WRONG_INPUT
from vesper.cli.load_node import compile_or_exit, load_or_exit
from vesper.cli.output.outcomes import json_text
from vesper.cli.output.progress import Progress as ProgressLine
from vesper.cli.run.inputs import read_start
from vesper.cli.run.options import RunOptions
from vesper.compiler import Compiled
from vesper.engines.engine import Program
from vesper.engines.registry import ENGINES, REFERENCE
from vesper.values.model import scalar_text

if TYPE_CHECKING:
    import pyarrow as pa

    from vesper.batch.files import Source


def run_batch(path: Path, options: RunOptions) -> int:
    """Run the node on every row of the tables, print a summary, and return the exit code."""
    out = _output(options)
    compiled = compile_or_exit(path, overlay=options.overlay)
    engine = FIRST_TIER if options.engine == REFERENCE else options.engine
    program = load_or_exit(ENGINES[engine], compiled)
    began = time.perf_counter()

    def report(done: Progress) -> None:
        speed = (done.rows - done.resumed) / max(time.perf_counter() - began, 1e-9)
        failed = sum(done.errors.values())
        line.reach(done.share, f"{_row_count(done.rows)}, {failed:,} with errors, {speed:,.0f} rows/s")

    try:
        with ProgressLine("running", 1.0) as line:
            if _is_one_file(options, out):
                progress = _job(compiled, program, options.batch[0], out, options).do(options.resume, report)
            else:
                from vesper.cli.run.partitions import run_partitions

                node = batch_of(compiled, program, options.limits_for(compiled))
                progress = run_partitions(node, engine, out, options, report)
    except BatchError as error:
        click.echo(f"error: {error}", err=True)
        return WRONG_INPUT
    except OSError as error:
        click.echo(f"error: {error.filename or options.batch[0]}: {error.strerror or error}", err=True)
        return WRONG_INPUT
    except KeyboardInterrupt:
        click.echo("stopped; the same command with --resume continues", err=True)
        return WRONG_INPUT
    _print_summary(progress, out, time.perf_counter() - began, options.style)
    if any(name.startswith("engine_fault") for name in progress.errors):
        return OUR_BUG
    return WRONG_INPUT if progress.errors else FINE


def _is_one_file(options: RunOptions, out: Path) -> bool:
    """Return whether one file is read in order into another one, without partitions."""
    from vesper.batch.partitioned_job import is_file_name
    from vesper.batch.partitions import is_pattern

    (first, *more) = options.batch
    is_one = not more and not first.is_dir() and not is_pattern(first)
    return is_one and options.cluster is None and is_file_name(out)


def _job(compiled: Compiled, program: Program, table: Path, out: Path, options: RunOptions) -> jobs.Job:
    from vesper.batch.files import format_of

    node = batch_of(compiled, program, options.limits_for(compiled))
    decimals = read_decimals(options.decimals, format_of(out))
    return jobs.Job(
        table,
        out,
        compiled.node.node_id,
        compiled.semantic_hash,
        job_options(node, options, decimals),
        scalar_text(read_start(options.start)),
        _runner(node, options, decimals),
        rows_a_part=jobs.ROWS_A_PART,
    )


def job_options(node: Batch, options: RunOptions, decimals: Decimals) -> dict[str, Any]:
    """Return the options that must be equal when a job is continued."""
    limits = node.limits
    assert limits is not None
    return {
        "keep": options.keep,
        "decimals": decimals,
        "start": options.start,
        "limits": [limits.fuel, limits.seconds, limits.memory],
    }


def _output(options: RunOptions) -> Path:
    if "-" in map(str, (*options.batch, options.output)):
        raise click.UsageError("--batch needs files, because it can be resumed: replace `-` by a file name")
    if options.output is None:
        raise click.UsageError("--batch needs -o OUT, a file for the results")
    if options.output.resolve() in [each.resolve() for each in options.batch]:
        raise click.UsageError("-o OUT is the file that --batch reads: name another one")
    twice = next((name for name in options.keep if options.keep.count(name) > 1), None)
    if twice is not None:
        raise click.UsageError(f"--keep {twice} is given twice")
    return options.output


def read_decimals(text: str | None, kind: str) -> Decimals:
    """Read `--decimals`. Files without column types get texts, which keep the digits of each number."""
    if text is None:
        return "text" if kind in ("csv", "jsonl") else None
    if text == "text":
        return "text"
    if not (text.isascii() and text.isdecimal() and len(text) < 4 and int(text) <= MAX_DIGITS):
        raise click.UsageError(f"--decimals {text}: write a number of decimal places from 0 to {MAX_DIGITS}, or `text`")
    return int(text)


def _runner(node: Batch, options: RunOptions, decimals: Decimals) -> Any:
    wanted = Wanted(options.threads, options.keep, decimals)

    def run(source: Source, table: pa.Table, start: str) -> pa.Table:
        return node.run_form(source.form, table, wanted, read_start(start))

    return run


def _print_summary(progress: Progress, out: Path, seconds: float, style: str) -> None:
    ran = progress.rows - progress.resumed
    failed = sum(progress.errors.values())
    if style == "json":
        document = {
            "rows": progress.rows,
            "resumed": progress.resumed,
            "errors": dict(sorted(progress.errors.items())),
            "seconds": round(seconds, 3),
            "output": str(out),
        }
        click.echo(json_text(document))
        return
    speed = f", {ran / seconds:,.0f} rows/s" if seconds > 0 and ran else ""
    again = f" ({progress.resumed:,} of them earlier)" if progress.resumed else ""
    click.echo(f"{_row_count(progress.rows)}{again} in {seconds:.1f} s{speed}, written to {out}")
    if failed:
        click.echo(f"{_row_count(failed)} {'has' if failed == 1 else 'have'} an error:")
        width = max(len(f"{count:,}") for count in progress.errors.values())
        for name, count in progress.errors.most_common():
            click.echo(f"  {count:>{width},}  {name}")


def _row_count(count: int) -> str:
    return f"{count:,} {'row' if count == 1 else 'rows'}"
