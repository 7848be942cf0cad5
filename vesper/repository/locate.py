"""Finding a node: NODE in every command is a path, an id with its version, or a name without one (then the newest)."""

from __future__ import annotations

import re
from pathlib import Path

from vesper.diagnostics.suggest import did_you_mean

SUFFIX = ".vsp"
_VERSIONED = re.compile(r"(?P<name>.+)_v(?P<version>[0-9]+)", re.ASCII)


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


def locate(wanted: str, root: Path) -> Path:
    """The file of a node. Ids are file names: `payment_decision_v1` is in `payment_decision_v1.vsp`."""
    if wanted.endswith(SUFFIX) or "/" in wanted:
        path = Path(wanted)
        if not path.is_file():
            raise NodeNotFound(f"there is no file `{wanted}`")
        return path
    if not root.is_dir():
        raise NodeNotFound(f"no node `{wanted}`: there is no folder `{root}`; name a file, or the folder with --nodes")
    files = node_files([root])
    exact = [path for path in files if path.stem == wanted]
    versions = sorted(
        (int(m["version"]), path) for path in files if (m := _VERSIONED.fullmatch(path.stem)) and m["name"] == wanted
    )
    matches = exact or [path for number, path in versions if number == versions[-1][0]]
    if len(matches) > 1:
        raise NodeNotFound(f"`{wanted}` is in {' and in '.join(f'`{path}`' for path in matches)}; name one file")
    if not matches:
        names = {path.stem for path in files} | {m["name"] for path in files if (m := _VERSIONED.fullmatch(path.stem))}
        hint = did_you_mean(wanted, names)
        raise NodeNotFound(f"no node `{wanted}` under `{root}`" + (f"; {hint}" if hint else ""))
    return matches[0]
