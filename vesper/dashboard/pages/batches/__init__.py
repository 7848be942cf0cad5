"""Batches: jobs of `vesper run --batch` that run or were stopped."""

from __future__ import annotations

from dataclasses import dataclass

from vesper.batch.unfinished import UnfinishedJob, find_jobs
from vesper.dashboard.page import Context, NotFound, Page, Unavailable
from vesper.values.model import printable

_MAX_FOLDERS = 2_000


@dataclass(frozen=True, slots=True)
class Batches:
    """Jobs below the folder of the project, last changed first."""

    folder: str
    jobs: tuple[UnfinishedJob, ...]
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
    return Batches(printable(str(root)), tuple(jobs), is_complete, _MAX_FOLDERS)


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
