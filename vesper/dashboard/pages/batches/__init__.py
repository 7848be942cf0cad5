"""Batches: jobs of `vesper run --batch` that run or were stopped."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vesper.batch.unfinished import UnfinishedJob, find_jobs
from vesper.dashboard.page import Context, NotFound, Page, Unavailable
from vesper.values.model import printable

_MAX_FOLDERS = 2_000


@dataclass(frozen=True, slots=True)
class ErrorCount:
    """Rows with one kind of error."""

    error: str
    rows: int


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A job that has not ended."""

    node: str
    source: str
    """The file that it reads."""
    out: str
    """The file that it writes at its end."""
    folder: str
    """The folder of its finished parts."""
    rows: int
    share: float | None
    errors: tuple[ErrorCount, ...]
    failed_rows: int
    parts: int
    part_bytes: int
    changed_us: int
    is_running: bool
    is_resumable: bool
    obstacles: tuple[str, ...]
    """Why it cannot continue."""
    command: str
    """How it continues."""


@dataclass(frozen=True, slots=True)
class Batches:
    """Jobs below the folder of the project, last changed first."""

    folder: str
    jobs: tuple[BatchJob, ...]
    is_complete: bool
    """False where the folder has more folders than are searched."""
    searched_folders: int


def read_batches(context: Context) -> Batches:
    """Find the jobs of the project."""
    root = context.stores.config.folder

    def hash_of(node: str) -> str | None:
        try:
            compiled, _ = context.stores.nodes.compiled(node)
        except (NotFound, Unavailable):
            return None  # a node of another folder
        return "" if compiled is None else compiled.semantic_hash

    jobs, is_complete = find_jobs(root, _MAX_FOLDERS, hash_of)
    return Batches(printable(str(root)), tuple(_view(each, root) for each in jobs), is_complete, _MAX_FOLDERS)


def _view(job: UnfinishedJob, root: Path) -> BatchJob:
    def shown(path: Path | None) -> str:
        if path is None:
            return ""
        return printable(str(path.relative_to(root) if path.is_relative_to(root) else path))

    source, out = shown(job.source), shown(job.out)
    return BatchJob(
        printable(job.node),
        source,
        out,
        shown(job.folder),
        job.rows,
        job.share,
        tuple(ErrorCount(printable(name), rows) for name, rows in job.errors.items()),
        sum(job.errors.values()),
        job.parts,
        job.part_bytes,
        job.changed_us,
        job.is_running,
        not job.is_running and not job.obstacles,
        tuple(map(printable, job.obstacles)),
        f"vesper run {printable(job.node)} --batch {source} -o {out} --resume",
    )


PAGES = (
    Page(
        name="batches",
        path="/batches",
        title="Batches",
        read=read_batches,
        template="batches/list.html",
        summary="Batch jobs of the project that run or were stopped, with progress, errors and how to continue.",
        menu="Batches",
    ),
)
