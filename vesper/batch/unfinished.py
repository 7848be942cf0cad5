"""Batch jobs that have not ended, found by the folders of their parts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from vesper.batch.errors import BatchError
from vesper.batch.job import differences, is_held, read_state
from vesper.values.model import printable

_SUFFIX = ".parts"
_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages"})


@dataclass(frozen=True, slots=True)
class UnfinishedJob:
    """A job that runs, or was stopped."""

    node: str
    """Empty where the state cannot be read."""
    source: str
    """The file that it reads; like all paths relative to the folder that was searched, if it is there."""
    out: str
    """The file that it writes at its end."""
    folder: str
    """The folder of its finished parts."""
    rows: int
    share: float | None
    """Share of the file that was read; None for a job of an earlier Vesper."""
    errors: Mapping[str, int]
    """Rows with an error, by its kind and code."""
    parts: int
    part_bytes: int
    changed_us: int
    is_running: bool
    obstacles: tuple[str, ...]
    """Why `--resume` would refuse it; none for a job that can continue."""
    command: str
    """How it continues; its other options are needed too."""


def find_jobs(root: Path, max_folders: int, hash_of: Callable[[str], str | None]) -> tuple[list[UnfinishedJob], bool]:
    """Return the jobs below a folder, last changed first, and whether all of it was searched.

    `hash_of` returns the semantic hash that a node has now; None where it is unknown. Hidden folders are left out.
    """
    found: list[UnfinishedJob] = []
    for visited, folder in enumerate(_folders(root)):
        if visited == max_folders:
            return sorted(found, key=lambda each: -each.changed_us), False
        if folder.name.endswith(_SUFFIX) and (job := _read(root, folder, hash_of)) is not None:
            found.append(job)
    return sorted(found, key=lambda each: -each.changed_us), True


def _folders(root: Path) -> Iterator[Path]:
    for path, names, _ in os.walk(root):
        names[:] = sorted(each for each in names if not each.startswith(".") and each not in _SKIPPED)
        yield Path(path)


def _read(root: Path, folder: Path, hash_of: Callable[[str], str | None]) -> UnfinishedJob | None:
    """Return the job of a folder; None for another folder, or a job that ended meanwhile."""
    path = folder / "state.json"
    out, parts = (_display_path(root, each) for each in (folder.with_name(folder.name.removesuffix(_SUFFIX)), folder))
    changed_us = 0
    try:
        changed_us = path.stat().st_mtime_ns // 1000
        sizes = [each.stat().st_size for each in folder.iterdir() if each.name[:6].isdigit()]
        is_running = is_held(folder)
        state = read_state(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, BatchError) as problem:
        obstacles = (printable(str(problem)),)
        return UnfinishedJob("", "", out, parts, 0, None, {}, 0, 0, changed_us, False, obstacles, "")
    of, done, share = state["of"], state["done"], state.get("share")
    errors: Counter[str] = Counter()
    for part in done:
        errors.update({printable(name): count for name, count in part["errors"].items()})
    source, node = Path(str(of.get("source", ""))), str(of.get("node", ""))
    shown = _display_path(root, source)
    return UnfinishedJob(
        printable(node),
        shown,
        out,
        parts,
        sum(part["rows"] for part in done),
        float(share) if isinstance(share, int | float) else None,
        dict(errors.most_common()),
        len(done),
        sum(sizes),
        changed_us,
        is_running,
        tuple(_obstacles(of, source, hash_of(node), len(done), len(sizes))),
        f"vesper run {printable(node)} --batch {shown} -o {out} --resume",
    )


def _display_path(root: Path, path: Path) -> str:
    return printable(str(path.relative_to(root) if path.is_relative_to(root) else path))


def _obstacles(of: Mapping[str, object], source: Path, node_hash: str | None, done: int, parts: int) -> Iterator[str]:
    try:
        status = source.stat()
    except OSError:
        yield "the file that it reads is gone"
    else:
        yield from differences(of, {"size": status.st_size, "changed": status.st_mtime_ns})
    if node_hash is not None:
        yield from differences(of, {"semantic_hash": node_hash})
    if parts < done:
        yield "a part is gone"
