"""The JSON Schema of `.vsp` files for editors, and the comment by which a node refers to it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from vesper import language

SCHEMA_FILE = "vsp.schema.json"
_PROJECT_MARKS = (".git", "vesper.toml")
_MODELINE = re.compile(rf"# yaml-language-server: \$schema=\S*{re.escape(SCHEMA_FILE)}\n")


def schema_text() -> str:
    """Return the JSON Schema of this version."""
    return Path(language.__file__).with_name(SCHEMA_FILE).read_text(encoding="utf-8")


def with_modeline(text: str, folder: Path) -> str:
    """Return the text of a node in this folder with a comment that names the project's schema, if it has one."""
    schema = _project_schema(folder.resolve())
    if schema is None:
        return text
    path = Path(os.path.relpath(schema, folder.resolve())).as_posix()
    return f"# yaml-language-server: $schema={path}\n" + _MODELINE.sub("", text, count=1)


def _project_schema(folder: Path) -> Path | None:
    """Return the nearest schema in the folder or above it, at most up to the folder of the project."""
    for each in (folder, *folder.parents):
        if (each / SCHEMA_FILE).is_file():
            return each / SCHEMA_FILE
        if any((each / mark).exists() for mark in _PROJECT_MARKS):
            return None
    return None
