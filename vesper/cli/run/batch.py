"""`vesper run --batch`: a file of a table through a node, with a bar that says how far it is."""

from __future__ import annotations

import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vesper.api.batch import Batch, batch_of
from vesper.batch import job as jobs
from vesper.batch.errors import BatchError
from vesper.batch.job import Progress
from vesper.batch.table import MOST_DIGITS, Decimals, Wanted
from vesper.cli.exits import FINE, OUR_BUG, WRONG_INPUT
from vesper.cli.load_node import compile_or_exit, load_or_exit
from vesper.cli.output.outcomes import json_text
from vesper.engines.engine import Limits
from vesper.engines.registry import ENGINES, REFERENCE
from vesper.values.limits import DEFAULT_FUEL
from vesper.values.model import scalar_text

if TYPE_CHECKING:
    import pyarrow as pa

    from vesper.batch.files import Source

_WIDTH = 30
_A_SECOND = 1.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line says."""

    batch: Path
    output: Path | None
    resume: bool
    threads: int | None
    keep: tuple[str, ...]
    decimals: str | None
    start: str | None
    fuel: int | None
    seconds: float | None
    engine: str
    style: str


def run_batch(path: Path, asked: Asked) -> int:
    """Run a file, say how it went, and give the exit code."""
    from vesper.batch.files import format_of
    from vesper.cli.run.command import read_start

    out = _out(asked)
    compiled = compile_or_exit(path)
    engine = "interp" if asked.engine == REFERENCE else asked.engine
    program = load_or_exit(ENGINES[engine], compiled)
    limits = Limits(DEFAULT_FUEL if asked.fuel is None else asked.fuel, asked.seconds)
    bar = _Bar(sys.stderr.isatty())
    try:
        node = batch_of(compiled, program, limits)
        decimals = _decimals(asked.decimals, format_of(out))
        options = {
            "keep": asked.keep,
            "decimals": decimals,
            "start": asked.start,
            "limits": [limits.fuel, limits.seconds],
        }
        start = scalar_text(read_start(asked.start))
        job = jobs.Job(
            asked.batch,
            out,
            compiled.node.node_id,
            compiled.semantic_hash,
            options,
            start,
            _runner(node, asked, decimals),
            rows_a_part=jobs.ROWS_A_PART,
        )
        began = time.perf_counter()
        progress = job.do(asked.resume, bar.show)
    except BatchError as error:
        bar.clear()
        click.echo(f"error: {error}", err=True)
        return WRONG_INPUT
    except OSError as error:
        bar.clear()
        click.echo(f"error: {error.filename or asked.batch}: {error.strerror or error}", err=True)
        return WRONG_INPUT
    except KeyboardInterrupt:
        bar.clear()
        click.echo("stopped; the same command with --resume goes on where it was", err=True)
        return WRONG_INPUT
    bar.clear()
    _summary(progress, out, time.perf_counter() - began, asked.style)
    if any(name.startswith("engine_fault") for name in progress.errors):
        return OUR_BUG
    return WRONG_INPUT if progress.errors else FINE


def _out(asked: Asked) -> Path:
    if str(asked.batch) == "-" or str(asked.output) == "-":
        raise click.UsageError("--batch reads and writes files that it can come back to: `-` is none, name a file")
    if asked.output is None:
        raise click.UsageError("--batch needs -o OUT: the answers of many rows are written into a file")
    if asked.output.resolve() == asked.batch.resolve():
        raise click.UsageError("-o OUT is the file that --batch reads: name another one")
    twice = next((name for name in asked.keep if asked.keep.count(name) > 1), None)
    if twice is not None:
        raise click.UsageError(f"--keep {twice} is given twice")
    return asked.output


def _decimals(said: str | None, kind: str) -> Decimals:
    """Files without types of their own have texts, which keep the digits of each number."""
    if said is None:
        return "text" if kind in ("csv", "jsonl") else None
    if said == "text":
        return "text"
    if not (said.isascii() and said.isdecimal() and len(said) < 4 and int(said) <= MOST_DIGITS):
        raise click.UsageError(
            f"--decimals {said}: write a number of digits after the point, from 0 to {MOST_DIGITS}, or `text`"
        )
    return int(said)


def _runner(node: Batch, asked: Asked, decimals: Decimals) -> Any:
    from vesper.batch.files import split_lines, with_kept
    from vesper.cli.run.command import read_start

    def run(source: Source, table: pa.Table, start: str) -> pa.Table:
        if source.form == "json" and asked.keep:
            lines, kept = split_lines(table, asked.keep)
            wanted = Wanted(asked.threads, (), decimals, form=source.form)
            return with_kept(kept, node.run(lines, wanted, read_start(start)))
        wanted = Wanted(asked.threads, asked.keep, decimals, form=source.form)
        return node.run(table, wanted, read_start(start))

    return run


def _summary(progress: Progress, out: Path, seconds: float, style: str) -> None:
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
    again = f" ({progress.resumed:,} of them before)" if progress.resumed else ""
    click.echo(f"{_rows(progress.rows)}{again} in {seconds:.1f} s{speed}, written to {out}")
    if failed:
        click.echo(f"{_rows(failed)} {'has' if failed == 1 else 'have'} an error:")
        width = max(len(f"{count:,}") for count in progress.errors.values())
        for name, count in progress.errors.most_common():
            click.echo(f"  {count:>{width},}  {name}")


def _rows(count: int) -> str:
    return f"{count:,} {'row' if count == 1 else 'rows'}"


@dataclass(slots=True)
class _Bar:
    """How far it is, on a terminal alone."""

    is_shown: bool
    last: float = field(default=0.0)
    began: float = field(default_factory=time.perf_counter)

    def show(self, progress: Progress) -> None:
        now = time.perf_counter()
        if not self.is_shown or now - self.last < _A_SECOND / 10:
            return
        self.last = now
        speed = (progress.rows - progress.resumed) / max(now - self.began, 1e-9)
        failed = sum(progress.errors.values())
        filled = int(progress.share * _WIDTH)
        head = f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {progress.share:4.0%}  "
        text = f"{head}{_rows(progress.rows)}, {failed:,} with errors, {speed:,.0f} rows/s"
        # A line that wraps is not wiped away by the next one.
        width = shutil.get_terminal_size().columns - 1
        click.echo(f"\r\x1b[2K{text[:width]}", nl=False, err=True)

    def clear(self) -> None:
        if self.is_shown and self.last:
            click.echo("\r\x1b[2K", nl=False, err=True)
