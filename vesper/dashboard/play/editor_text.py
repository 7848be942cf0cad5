"""The text of the editor as a node: compiled beside the file that it will become."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from vesper.compiler import Compiled, compile_bytes
from vesper.compiler.reading import MAX_BYTES
from vesper.dashboard.problem import BadRequest, Problem
from vesper.dashboard.stores import require_trusted
from vesper.language.diagnostics.diagnostic import Severity
from vesper.repository.locate import SUFFIX
from vesper.values.model import printable

_MAX_PATH_CHARACTERS = 200


class Faulty(Problem):
    """The text of the editor is no node without errors."""

    status = 422
    title = "The node has errors"


def file_in(folder: Path, path: str) -> Path:
    """Return the file of a path below the folder of nodes. Raises `BadRequest` for any other path."""
    parts = PurePosixPath(path).parts
    is_hidden = any(each.startswith(".") for each in parts)  # `..` too
    is_plain = parts and not is_hidden and not path.startswith("/") and "\\" not in path and path.isprintable()
    if not is_plain or not path.endswith(SUFFIX) or len(path) > _MAX_PATH_CHARACTERS:
        shown = printable(path[:_MAX_PATH_CHARACTERS])
        raise BadRequest(
            f"`{shown}` is no path of a node below {printable(str(folder))}",
            f"Use a name such as `fee_v1{SUFFIX}`, or `pricing/fee_v1{SUFFIX}`.",
        )
    found = folder.joinpath(*parts)
    if not found.resolve().is_relative_to(folder.resolve()):
        raise BadRequest(f"`{path}` leads out of {printable(str(folder))} by a link", "Name the file itself.")
    return found


def path_in(folder: Path, uri: str) -> str | None:
    """Return the path of a file URI; None outside of the folder, also by a link.

    Editors escape URIs differently.
    """
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    path, root = PurePosixPath(unquote(parts.path)), folder.resolve()
    is_plain = parts.scheme == "file" and ".." not in path.parts and str(path).isprintable()
    is_below = is_plain and path.is_relative_to(root) and Path(os.path.realpath(path)).is_relative_to(root)
    return path.relative_to(root).as_posix() if is_below else None


def compile_text(file: Path, text: str) -> Compiled:
    """Compile the text as if the file had it. Raises `Faulty`, and `Refused` for files of other users."""
    data = text.encode("utf-8", "replace")
    if len(data) > MAX_BYTES:
        raise Faulty("the text is larger than 1 MiB", "Split the node: `vesper play` runs what `vesper run` runs.")
    compiled, bag = compile_bytes(file.as_posix(), data)
    if compiled is None:
        errors = [each for each in bag.sorted() if each.severity is Severity.ERROR]
        line = bag.source.position(errors[0].primary.span.start)[0]
        more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
        raise Faulty(f"line {line}: {errors[0].headline}{more}", "Correct what the editor underlines; F8 goes there.")
    require_trusted(compiled)
    return compiled


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
