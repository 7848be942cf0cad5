"""Nodes of a git revision: the files of their collection, copied into a folder of their own and compiled there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from vesper.compiler.callees import collection_folder
from vesper.repository.git import distrust_repository, git_text, run_git

MAX_FILES = 20_000
MAX_BYTES = 64 * 1024 * 1024
"""Maximum size in bytes of the files of a collection in a revision."""
_SUFFIXES = (".vsp", ".csv", ".xlsx")
_NAMES = ("vesper.toml", "vesper.lock")
_REVISION = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_./@^~{}+-]*")


class RevisionProblem(Exception):
    """A revision that cannot be read, and why."""


def split_revision(wanted: str) -> tuple[str, str] | None:
    """Return revision and path of `REV:PATH`; None for another text."""
    revision, colon, path = wanted.partition(":")
    return (revision, path) if colon and path and _REVISION.fullmatch(revision) else None


@contextmanager
def revision_folder(revision: str, path: Path) -> Iterator[tuple[Path, Path]]:
    """Copy the collection of a file as of a revision; yield the file there and the folder of the collection.

    No filter and no hook of the repository runs, and links are left out.
    """
    if not _REVISION.fullmatch(revision):
        raise RevisionProblem(f"`{revision}` is no revision of git")
    folder = next((each for each in path.absolute().parents if each.is_dir()), Path.cwd())
    reason = distrust_repository(folder)
    if reason is not None:
        raise RevisionProblem(f"git is not asked for `{revision}`, because {reason}")
    top = (git_text(folder, "rev-parse", "--show-toplevel") or "").strip()
    if not top:
        raise RevisionProblem(f"`{folder}` is in no repository of git, so there is no revision `{revision}`")
    commit = (git_text(folder, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}") or "").strip()
    if not commit:
        raise RevisionProblem(f"there is no revision `{revision}` in the repository at `{top}`")
    root = collection_folder(path).resolve()
    inside = PurePosixPath(root.relative_to(Path(top).resolve()).as_posix())
    with TemporaryDirectory(prefix="vesper-diff-") as temporary:
        # The name stays: a folder `nodes` is a collection.
        copied = Path(temporary).resolve() / (root.name or "nodes")
        _copy(Path(top), commit, inside, copied)
        yield copied / (path.parent.resolve() / path.name).relative_to(root), copied


def _copy(top: Path, commit: str, inside: PurePosixPath, folder: Path) -> None:
    below = f"{inside}/" if str(inside) != "." else "."
    listed = run_git(top, "--literal-pathspecs", "ls-tree", "-r", "-z", "-l", "--full-tree", commit, "--", below)
    if listed is None:
        raise RevisionProblem(f"git cannot list `{inside}` at `{commit[:12]}`")
    wanted: list[tuple[str, PurePosixPath, int]] = []
    for entry in filter(None, listed.split(b"\0")):
        facts, _, name = entry.partition(b"\t")
        mode, kind, object_id, size = facts.decode("ascii").split()
        path = PurePosixPath(name.decode("utf-8", "surrogateescape"))
        is_wanted = path.suffix.lower() in _SUFFIXES or path.name in _NAMES
        if kind == "blob" and mode != "120000" and is_wanted and ".." not in path.parts:
            wanted.append((object_id, path.relative_to(inside), int(size)))
    if len(wanted) > MAX_FILES or sum(size for _, _, size in wanted) > MAX_BYTES:
        raise RevisionProblem(f"`{inside}` at `{commit[:12]}` has more than {MAX_FILES:,} files or {MAX_BYTES:,} bytes")
    asked = b"".join(object_id.encode("ascii") + b"\n" for object_id, _, _ in wanted)
    contents = run_git(top, "cat-file", "--batch", given=asked)
    if contents is None:
        raise RevisionProblem(f"git cannot read the files of `{inside}` at `{commit[:12]}`")
    folder.mkdir(parents=True)
    at = 0
    for _, relative, length in wanted:
        start = contents.index(b"\n", at) + 1
        copied = folder / relative
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.write_bytes(contents[start : start + length])
        at = start + length + 1
