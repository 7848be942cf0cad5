"""Finding a node: NODE in every command is a path, an id with its version, or a name without one (then the newest).

The ids that the files declare decide. A file is named after the id of its node, so for an id only the file with that
name is read, if it declares it. Of a name without a version the newest may be in any file that mentions it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from vesper.language.diagnostics.suggest import did_you_mean
from vesper.values.node_id import split_node_id

SUFFIX = ".vsp"
FOLDER = "nodes"
"""Where nodes are looked for, unless somebody says otherwise."""
FOLDER_VARIABLE = "VESPER_NODES"
"""The variable of the environment that says otherwise."""
_MAX_BYTES = 1024 * 1024
"""No node is longer; what is may be without end."""


class NodeNotFound(Exception):
    """No node answers to this; the message says what was looked for, where, and what is close."""


def node_files(roots: list[Path]) -> list[Path]:
    """Every node file under the roots, in a fixed order. A root may be a file itself."""
    found: list[Path] = []
    for root in roots:
        if root.is_file():
            found.append(root)
        elif root.is_dir():
            found += sorted(path for path in root.rglob(f"*{SUFFIX}") if path.is_file())
        else:
            raise NodeNotFound(f"there is no file or folder `{root}`")
    return list(dict.fromkeys(found))


def id_of(path: Path) -> str:
    """The id that a file declares; for a file in which none can be read, its name without the suffix."""
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


_FIRST = re.compile(r"(?:[ ]*(?:#[^\n]*)?\n)*node_id:[ ]+([a-z][a-z0-9_]*)[ ]*(?:#[^\n]*)?\n(?:[ ]*+\n)*+(?![ \t\r])")


def plain_id(text: str) -> str | None:
    """The id of a text that begins with it in the usual way, as one word on its line and with nothing that could go on
    with it; None for any other, of which only the parser can tell."""
    found = _FIRST.match(text)
    # What YAML does not let stand in a text at all is for the parser, too.
    return found[1] if found is not None and not _UNUSUAL.search(text) else None


_UNUSUAL = re.compile("[^\\t\\n\\x20-\\x7e\\xa0-\\ud7ff\\ue000-\\ufefe\\uff00-\\ufffd\\U00010000-\\U0010ffff]")


def versions(name: str, files: Iterable[Path], id_: Callable[[Path], str] = id_of) -> dict[int, list[Path]]:
    """The files of every version of a name, the newest first."""
    found: dict[int, list[Path]] = {}
    for path in files:
        match split_node_id(id_(path)):
            case (str(other), int(version)) if other == name:
                found.setdefault(version, []).append(path)
    return dict(sorted(found.items(), reverse=True))


def locate(wanted: str, root: Path) -> Path:
    """The file of a node. Two that answer to the same are an error, which names both."""
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
    # A file that is called so and declares something else counts only if nobody declares it.
    matches = [path for path in files if path.stem == wanted and read(path) == wanted]
    if not matches and split_node_id(wanted) is None:
        start = f"{wanted}_v"  # a file that cannot be read goes by its name
        matches = _matches(
            wanted, [path for path in files if path.stem.startswith(start) or _mentions(path, start)], read
        )
    matches = matches or _matches(wanted, files, read) or _matches(wanted, files, lambda path: path.stem)
    if len(matches) > 1:
        raise NodeNotFound(f"`{wanted}` is in {' and in '.join(f'`{path}`' for path in matches)}; name one file")
    if not matches:
        ids = {path.stem for path in files} | {read(path) for path in files}
        names = ids | {parts[0] for each in ids if (parts := split_node_id(each))}
        # Of many names not all are compared: those that begin alike come first, and the order is always the same.
        hint = did_you_mean(wanted, sorted(names, key=lambda each: (each[:1] != wanted[:1], each)))
        raise NodeNotFound(f"no node `{wanted}` under `{root}`" + (f"; {hint}" if hint else ""))
    return matches[0]


def _mentions(path: Path, word: str) -> bool:
    """Whether the bytes of a file have this word: looking is much faster than parsing. An id may be written otherwise,
    with escapes, so that a file does not mention it says nothing until none does."""
    try:
        with path.open("rb") as file:
            return word.encode("utf-8", "surrogateescape") in file.read(_MAX_BYTES)
    except OSError:
        return False


def _matches(wanted: str, files: list[Path], id_: Callable[[Path], str]) -> list[Path]:
    """The files with this id, or else those with the newest version of this name."""
    exact = [path for path in files if id_(path) == wanted]
    return exact or next(iter(versions(wanted, files, id_).values()), [])
