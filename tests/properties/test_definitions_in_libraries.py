"""Random programs whose definitions move to a library: the same meaning, expression by expression."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from vesper.compiler import Compiled, compile_source
from vesper.compiler.callees import Collection, Neighbours
from vesper.language.diagnostics.source import SourceFile
from vesper.verify.programs.nodes import draw_program

PROGRAMS = 50
_SHARED = ("types:", "constants:", "parameters:", "functions:", "tables:")


def split(text: str) -> tuple[str, str]:
    """Return the text of a node that uses a library, and of the library with its definitions."""
    node, library = ["use: [shared_v1]"], ["library_id: shared_v1", "intent: Definitions of a program"]
    target = node
    for line in text.splitlines():
        if line and not line.startswith((" ", "#", "-")):
            target = library if line.startswith(_SHARED) else node
        target.append(line)
    return "\n".join((*node, "")), "\n".join((*library, ""))


def meaning(compiled: Compiled) -> dict[str, Any]:
    """Return the semantics with the plain names of constants and functions; only the used constants count."""
    semantics: dict[str, Any] = json.loads(compiled.ir)["semantics"]
    used = {each["constant"].lstrip("_") for each in semantics["expressions"] if "constant" in each}
    for each in semantics["expressions"]:
        if "constant" in each:
            each["constant"] = each["constant"].lstrip("_")
        if "apply" in each:
            each["apply"]["function"] = each["apply"]["function"].lstrip("_")
    for each in semantics.get("functions", []):
        each["name"] = each["name"].lstrip("_")
    named = {each["name"].lstrip("_"): {**each, "name": each["name"].lstrip("_")} for each in semantics["constants"]}
    semantics["constants"] = {name: each for name, each in named.items() if name in used}
    return semantics


def test_definitions_mean_the_same_in_a_library(tmp_path: Path) -> None:
    moved = 0
    for seed in range(9_000, 9_000 + PROGRAMS):
        text = draw_program(seed).text()
        plain, bag = compile_source(SourceFile(f"program_{seed}_v1.vsp", text), judge_contracts=False)
        node, library = split(text)
        if plain is None or library.count("\n") < 3:
            continue
        (tmp_path / "shared_v1.vsp").write_text(library, encoding="utf-8")
        neighbours = Neighbours(Collection(tmp_path), (plain.node.node_id,))
        source = SourceFile(f"program_{seed}_v1.vsp", node)
        shared, bag = compile_source(source, neighbours, judge_contracts=False)
        assert shared is not None, (seed, [each.headline for each in bag.sorted()], node, library)
        assert meaning(shared) == meaning(plain), seed
        lines = node.count("\n") + 1
        assert all(each.place.end_line <= lines for each in shared.node.expressions()), seed
        moved += 1
    assert moved > PROGRAMS // 3
