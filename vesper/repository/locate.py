"""Lookup of a node by path, id with version, or name (then the newest version).

The ids that files declare decide. A file is named after its node's id, so for an id only the file with that name is
read, if it declares the id. For a name without version every file that mentions it is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from vesper.language.diagnostics.suggest import did_you_mean_node
from vesper.values.node_id import split_node_id

SUFFIX = ".vsp"
FOLDER = "nodes"
"""Default folder of nodes."""
FOLDER_VARIABLE = "VESPER_NODES"
"""Environment variable with another folder of nodes."""
_MAX_BYTES = 1024 * 1024
"""Maximum number of bytes read; no node is longer, and a file may be unbounded."""


class NodeNotFound(Exception):
    """No node matches. The message names the wanted node, the place searched, and close matches."""


def node_files(roots: list[Path]) -> list[Path]:
    """Return every node file under the roots, in a fixed order. A root may be a file."""
    found: list[Path] = []
    for root in roots:
        if root.is_file():
            found.append(root)
        elif root.is_dir():
            found += sorted(path for path in root.rglob(f"*{SUFFIX}") if path.is_file())
        else:
            raise NodeNotFound(f"there is no file or folder `{root}`")
    return list(dict.fromkeys(found))


_LIBRARY = re.compile(rb"""(?:^|[\n{,])[ \t]*["']?library_id["']?[ \t]*:""")


def is_library_text(data: bytes) -> bool:
    """Return whether the bytes of a file declare a library."""
    return _LIBRARY.search(data) is not None


def is_library_file(path: Path) -> bool:
    """Return whether a file declares a library."""
    try:
        with path.open("rb") as file:
            return is_library_text(file.read(_MAX_BYTES))
    except OSError:
        return False


def id_of(path: Path) -> str:
    """Return the id that a file declares. Where none can be read, its name without suffix."""
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return path.stem
    if (plain := plain_id(text)) is not None:
        return plain
    from vesper.language.syntax.declared_id import declared_id  # loads the parser, which most commands can do without

    declared = declared_id(text)
    return path.stem if declared is None else declared[0]


_FIRST = re.compile(
    r"(?:[ ]*(?:#[^\n]*)?\n)*(?:node|library)_id:[ ]+([a-z][a-z0-9_]*)[ ]*(?:#[^\n]*)?\n(?:[ ]*+\n)*+(?![ \t\r])"
)


def plain_id(text: str) -> str | None:
    """Return the id that begins a text as one word on its line. None where only the parser can decide."""
    found = _FIRST.match(text)
    # Characters that YAML rejects are left to the parser.
    return found[1] if found is not None and not _UNUSUAL.search(text) else None


_UNUSUAL = re.compile("[^\\t\\n\\x20-\\x7e\\xa0-\\ud7ff\\ue000-\\ufefe\\uff00-\\ufffd\\U00010000-\\U0010ffff]")


def versions(name: str, files: Iterable[Path], id_: Callable[[Path], str] = id_of) -> dict[int, list[Path]]:
    """Return the files of every version of a name, the newest first."""
    found: dict[int, list[Path]] = {}
    for path in files:
        match split_node_id(id_(path)):
            case (str(other), int(version)) if other == name:
                found.setdefault(version, []).append(path)
    return dict(sorted(found.items(), reverse=True))


def locate(wanted: str, root: Path) -> Path:
    """Return the file of a node. Two matching files are an error, which names both."""
    if wanted.endswith(SUFFIX) or "/" in wanted:
        path = Path(wanted)
        if not path.is_file():
            raise NodeNotFound(f"there is no file `{wanted}`")
        return path
    if not root.is_dir():
        raise NodeNotFound(
            f"no node `{wanted}`: there is no folder `{root}`; name a file, or the folder (--nodes, in Python nodes=)"
        )
    files = node_files([root])
    read = cache(id_of)
    # A file of this name that declares another id counts only if no file declares the wanted one.
    matches = [path for path in files if path.stem == wanted and read(path) == wanted]
    if not matches and split_node_id(wanted) is None:
        start = f"{wanted}_v"  # a file that cannot be read is matched by its name
        matches = _matches(
            wanted, [path for path in files if path.stem.startswith(start) or _mentions(path, start)], read
        )
    matches = matches or _matches(wanted, files, read) or _matches(wanted, files, lambda path: path.stem)
    if len(matches) > 1:
        raise NodeNotFound(f"`{wanted}` is in {' and in '.join(f'`{path}`' for path in matches)}; name one file")
    if not matches:
        ids = {path.stem for path in files} | {read(path) for path in files}
        names = ids | {parts[0] for each in ids if (parts := split_node_id(each))}
        # The number of compared names is bounded: names with the same beginning come first, in a fixed order.
        hint = did_you_mean_node(wanted, sorted(names, key=lambda each: (each[:1] != wanted[:1], each)))
        raise NodeNotFound(f"no node `{wanted}` under `{root}`" + (f"; {hint}" if hint else ""))
    return matches[0]


def _mentions(path: Path, word: str) -> bool:
    """Return whether a file contains this word. That is much faster than parsing.

    An id may be written with escapes, so every file is parsed where no file contains the word.
    """
    try:
        with path.open("rb") as file:
            return word.encode("utf-8", "surrogateescape") in file.read(_MAX_BYTES)
    except OSError:
        return False


def _matches(wanted: str, files: list[Path], id_: Callable[[Path], str]) -> list[Path]:
    """Return the files with this id, or else of the name's newest version."""
    exact = [path for path in files if id_(path) == wanted]
    return exact or next(iter(versions(wanted, files, id_).values()), [])
