"""The diagrams in docs/architecture.md equal the enforced layers, and imports obey them.

Layers are drawn in the page and declared for import-linter; crates are drawn and declared in each Cargo.toml. Both
directions are compared.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "vesper"

Layers = list[list[tuple[str, bool]]]
"""Highest first; each entry is a package and whether it exists already."""


def test_the_drawing_and_the_contract_are_the_same_layers() -> None:
    assert contract_layers() == drawn_layers()


def test_every_package_has_a_layer_and_only_absent_ones_are_in_parentheses() -> None:
    drawn = {name for layer in drawn_layers() for name, exists in layer if exists}
    planned = {name for layer in drawn_layers() for name, exists in layer if not exists}
    assert drawn == packages(), "docs/architecture.md draws other packages than vesper/ has"
    assert not planned & packages(), "an existing package is still drawn in parentheses"


def test_no_package_is_drawn_twice() -> None:
    names = [name for layer in drawn_layers() for name, _ in layer]
    assert len(names) == len(set(names))


def test_imports_go_down_only() -> None:
    run = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_only_the_direct_engine_imports_the_engine_of_the_extension() -> None:
    """The Host, the journal and the effects import their own parts of it by name."""
    engine = {"Batches", "Entry", "Execution", "Flight", "Program", "Route", "Way"}
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "_direct" not in text or path == PACKAGE / "engines" / "direct_engine.py":
            continue  # most files need no parsing
        tree = ast.parse(text)
        if "vesper._direct" not in imported_names(tree):
            continue
        imports = [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
        names = {name.name for each in imports if each.module == "vesper._direct" for name in each.names}
        assert names, f"{path} imports the whole extension"
        assert not names & engine, path


def test_the_search_for_imports_sees_every_spelling() -> None:
    for source in (
        "import vesper._direct",
        "import vesper._direct as native",
        "from vesper import _direct",
        "from vesper._direct import Program",
        "def load():\n    from vesper import _direct",
        "import importlib\nimportlib.import_module('vesper._direct')",
    ):
        assert "vesper._direct" in imported_names(ast.parse(source)), source
    assert "vesper._direct" not in imported_names(ast.parse('"""Not an import: vesper._direct."""'))


def test_the_crates_depend_on_each_other_as_drawn() -> None:
    assert declared_crates() == drawn_crates()


def drawn_layers() -> Layers:
    layers = []
    numbers = []
    for line in block("layers"):
        number, *names = line.split()
        numbers.append(int(number))
        layers.append([(name.strip("()"), not name.startswith("(")) for name in names])
    assert numbers == list(range(len(numbers) - 1, -1, -1)), "layers are drawn from the highest number to 0"
    return layers


def contract_layers() -> Layers:
    contract = layers_contract()
    assert contract["containers"] == ["vesper"]
    assert contract["exhaustive"] is True
    assert "ignore_imports" not in contract, "an exception to the layers belongs in the drawing, so there is none"
    assert not any(":" in layer for layer in contract["layers"]), "`:` would let siblings import each other"
    return [
        [(name.strip(" ()"), not name.strip().startswith("(")) for name in layer.split("|")]
        for layer in contract["layers"]
    ]


def layers_contract() -> dict[str, Any]:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = configuration["tool"]["importlinter"]["contracts"]
    (contract,) = [each for each in contracts if each["id"] == "layers"]  # other contracts are internal to a package
    assert isinstance(contract, dict)
    return contract


def packages() -> set[str]:
    """Return every package and module directly under vesper/, except entry point and extension."""
    found = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    found |= {path.stem for path in PACKAGE.glob("*.py")}
    return found - {"__init__", *layers_contract()["exhaustive_ignores"]}


def imported_names(tree: ast.Module) -> set[str]:
    """Yield dotted names of all imports, including `import_module` and `__import__`."""
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                names |= {alias.name for alias in node.names}
            case ast.ImportFrom(module=str(module), level=0):
                names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
            case ast.Call(args=[ast.Constant(value=str(name)), *_]):
                names.add(name)
    return names


def drawn_crates() -> dict[str, set[str]]:
    crates = {}
    for line in block("crates"):
        name, _, targets = line.partition("->")
        crates[name.strip()] = set(targets.split())
    return crates


def declared_crates() -> dict[str, set[str]]:
    manifests = [
        tomllib.loads(path.read_text(encoding="utf-8"))
        for path in (ROOT / "direct_runtime" / "crates").glob("*/Cargo.toml")
    ]
    names = {manifest["package"]["name"] for manifest in manifests}
    return {
        manifest["package"]["name"]: {name for table in dependency_tables(manifest) for name in table if name in names}
        for manifest in manifests
    }


def dependency_tables(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    kinds = ("dependencies", "dev-dependencies", "build-dependencies")
    return [place.get(kind, {}) for place in (manifest, *manifest.get("target", {}).values()) for kind in kinds]


def block(name: str) -> list[str]:
    """Return the lines of the fenced block of that name in docs/architecture.md."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf"^```{name}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line for line in found.splitlines() if line.strip()]
    assert lines
    return lines
