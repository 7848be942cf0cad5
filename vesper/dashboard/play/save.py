"""Saving: the only writes of the playground, inside the folder of nodes.

The page shows the difference before it saves.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vesper.compiler.reading import MAX_BYTES, NotText, read_bytes, text_of
from vesper.dashboard.play.editor_text import file_in, sha256_of
from vesper.dashboard.problem import BadRequest, NotFound, Refused
from vesper.repository.editor_schema import with_modeline
from vesper.repository.locate import SUFFIX, node_files, versions
from vesper.repository.starter import STARTERS, name_problem, starter
from vesper.storage.write_file import create_text, replace_same
from vesper.values.model import printable


@dataclass(frozen=True, slots=True)
class Opened:
    """A file as the editor opens it; nothing on disk yet without a hash."""

    path: str
    """Relative to the folder of nodes."""
    uri: str
    text: str
    sha256: str | None


class ChangedMeanwhile(Refused):
    """The file on disk is not the one that the editor opened."""

    def __init__(self, found: Opened) -> None:
        super().__init__(
            f"{found.path} changed on disk since it was opened, so nothing was written",
            "Compare both texts below, then save again to replace the file.",
        )
        self.found = found


def open_file(folder: Path, path: str) -> Opened:
    """Read a file of a node. Raises `NotFound`; a file that does not exist yet has an empty text."""
    file = file_in(folder, path)
    uri = file.resolve().as_uri()
    try:
        data = read_bytes(file)
        return Opened(path, uri, text_of(data) if data else "", sha256_of(data))
    except FileNotFoundError:
        return Opened(path, uri, "", None)
    except (OSError, NotText) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else str(problem)
        raise NotFound(f"{printable(path)} cannot be opened: {reason}", "Open another node.") from None


def save(folder: Path, path: str, text: str, sha256: str | None) -> Opened:
    """Write the text where the file still has this hash; None creates the file. Raises `ChangedMeanwhile`."""
    data = text.encode("utf-8")
    if len(data) > MAX_BYTES:
        raise BadRequest("the text is larger than 1 MiB", "Split the node, or move data to a CSV file.")
    found = open_file(folder, path)
    if found.sha256 != sha256:
        raise ChangedMeanwhile(found)
    file = file_in(folder, path)
    try:
        if sha256 is None:
            create_text(file, text)
        elif not replace_same(file, text, sha256):
            raise ChangedMeanwhile(open_file(folder, path))
    except FileExistsError:
        raise ChangedMeanwhile(open_file(folder, path)) from None
    except OSError as error:
        raise Refused(f"cannot write {printable(path)}: {error.strerror}", "Nothing was changed.") from None
    return Opened(path, found.uri, text, sha256_of(data))


def new_node(folder: Path, name: str, type_: str) -> Opened:
    """Return the first text of a new node, as `vesper new` writes it. Nothing is written."""
    problem = name_problem(name)
    if problem is not None:
        raise BadRequest(problem, "Use a name such as `fee`.")
    if type_ not in STARTERS:
        raise BadRequest(f"a node cannot start as `{type_[:40]}`", f"Use one of {', '.join(STARTERS)}.")
    known = versions(name, node_files([folder]))
    if known:
        newest = max(known)
        raise Refused(f"{name}_v{newest} already exists", f"Open it, or run `vesper new {name} --next` for a copy.")
    path = f"{name}_v1{SUFFIX}"
    return Opened(
        path, file_in(folder, path).resolve().as_uri(), with_modeline(starter(f"{name}_v1", type_), folder), None
    )
