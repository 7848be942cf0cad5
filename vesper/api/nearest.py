"""Whether the nearest configuration has to be read before a node is loaded: most have nothing to say to one without
effects, and reading a configuration takes longer than all the rest of a warm start."""

from __future__ import annotations

import os


def mentions(node_path: str, word: bytes) -> bool:
    """True where the nearest configuration may have a table of this name: looked at as text, for a start that loads
    nothing of it where it has not."""
    named = os.environ.get("VESPER_CONFIG")
    files = [named] if named else [_above(os.getcwd()), _above(os.path.dirname(os.path.abspath(node_path)))]  # noqa: PTH100, PTH109, PTH120
    for file in files:
        if file is not None:
            try:
                with open(file, "rb") as opened:  # noqa: PTH123
                    return word in opened.read(1 << 20)
            except OSError:
                return True  # whoever reads it says what is wrong
    return False


def _above(folder: str) -> str | None:
    """The nearest `vesper.toml`, without `pathlib`."""
    folder = os.path.realpath(folder)
    while True:
        file = os.path.join(folder, "vesper.toml")  # noqa: PTH118
        if os.path.isfile(file):  # noqa: PTH113
            return file
        upper = os.path.dirname(folder)  # noqa: PTH120
        if upper == folder:
            return None
        folder = upper
