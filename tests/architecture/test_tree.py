"""The shape of the tree: small folders, no families of prefixed files, a folder per command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.nodes import ROOT
from vesper.cli.main import COMMANDS

MAX_FILES = 25
MAX_FAMILY = 3
PRODUCT = ("vesper", "direct_runtime/crates")
GENERATED = "Do not edit"


def sources(folder: Path) -> Iterator[Path]:
    """Yield the handwritten Python and Rust files directly in a folder."""
    for path in sorted(folder.iterdir()):
        if path.suffix in (".py", ".rs") and GENERATED not in path.read_text(encoding="utf-8")[:400]:
            yield path


def folders(*tops: str) -> list[Path]:
    """Return every folder with sources below the given ones."""
    found = {path.parent for top in tops for suffix in ("py", "rs") for path in (ROOT / top).rglob(f"*.{suffix}")}
    return sorted(each for each in found if "target" not in each.parts and "__pycache__" not in each.parts)


@pytest.mark.parametrize("folder", folders(*PRODUCT, "tests"), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_folder_has_at_most_25_source_files(folder: Path) -> None:
    names = [path.name for path in sources(folder)]
    assert len(names) <= MAX_FILES, f"{folder.relative_to(ROOT)} has {len(names)} source files: give a part a folder"


@pytest.mark.parametrize("folder", folders(*PRODUCT), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_folder_has_no_family_of_prefixed_files(folder: Path) -> None:
    counts = Counter(path.stem.split("_")[0] for path in sources(folder) if not path.stem.startswith("__"))
    families = {prefix: count for prefix, count in counts.items() if count > MAX_FAMILY and prefix != "test"}
    assert not families, f"{folder.relative_to(ROOT)}: files that share a prefix want a folder: {families}"


def test_every_command_has_a_folder_of_its_own() -> None:
    found = {path.parent.name.rstrip("_") for path in (ROOT / "vesper" / "cli").glob("*/command.py")}
    assert found == set(COMMANDS)


def test_unit_tests_mirror_the_package() -> None:
    """Every folder below tests/unit is named like a package, except test data and support."""
    apart = {"schemas", "support", "golden", "goldens", "nodes", "transcripts"}
    unit = ROOT / "tests" / "unit"
    wrong = [
        folder.relative_to(unit).as_posix()
        for folder in folders("tests/unit")
        if folder != unit
        and not apart & set(folder.relative_to(unit).parts)
        and not (ROOT / "vesper" / folder.relative_to(unit)).is_dir()
    ]
    assert not wrong, f"no package of vesper/ has these names: {wrong}"
