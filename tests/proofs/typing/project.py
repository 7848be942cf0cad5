"""A project as a user has it: nodes, their stubs, an application, and settings of both type checkers."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from tests.support.nodes import compiled
from tests.unit.api.given import ASKING, BASKET, CLOCK, ODD, ROOT
from vesper.api.stubs import stubs

APP = Path(__file__).parent / "app"
OWN_NODES = (ASKING, BASKET, CLOCK, ODD)


def write_project(folder: Path, nodes: Iterable[Path]) -> list[Path]:
    """Write the application and the stubs of these nodes and of its own; return the modules of nodes."""
    files = list(nodes)
    for text in OWN_NODES:
        name = text.split("\n", 1)[0].removeprefix("node_id: ")
        files.append(folder / f"{name}.vsp")
        files[-1].write_text(text, encoding="utf-8")
    for stub, body in stubs(compiled(each).node for each in files).items():
        path = folder / "typings" / stub
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body, encoding="utf-8")
    for each in APP.glob("*.py"):
        shutil.copy(each, folder)
    # As for an installed package, whose own code a user's run does not check.
    installed = "[mypy-vesper.*]\nignore_errors = true\nfollow_imports = silent\n"
    (folder / "mypy.ini").write_text(
        f"[mypy]\nstrict = true\nmypy_path = typings:{ROOT}\n{installed}", encoding="utf-8"
    )
    settings = {"typeCheckingMode": "strict", "extraPaths": [str(ROOT)], "reportUnnecessaryTypeIgnoreComment": False}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    return sorted((folder / "typings" / "vesper_nodes").rglob("*_v*.pyi"))


def mistakes() -> dict[int, str]:
    """Return the lines of the deliberate mistakes, each with its reason."""
    lines = (APP / "mistakes.py").read_text(encoding="utf-8").splitlines()
    found = {number: re.search(r"# MISTAKE: (.*)", line) for number, line in enumerate(lines, start=1)}
    return {number: match[1] for number, match in found.items() if match is not None}


def mypy_errors(output: str) -> dict[str, set[int]]:
    """Return the lines with errors in the output of mypy, by file."""
    return _by_file((file, int(line)) for file, line in re.findall(r"^(\S+?):(\d+): error", output, re.MULTILINE))


def pyright_errors(output: str) -> dict[str, set[int]]:
    """Return the same of the JSON of pyright."""
    return _by_file(
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1)
        for each in json.loads(output)["generalDiagnostics"]
        if each["severity"] == "error"
    )


def _by_file(found: Iterable[tuple[str, int]]) -> dict[str, set[int]]:
    by_file: dict[str, set[int]] = {}
    for file, line in found:
        by_file.setdefault(file, set()).add(line)
    return by_file
