"""Vendored files are those that their list names, small enough, and need no exception beyond the page's policy."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import pytest

from vesper.dashboard.rendering import STATIC

FOLDERS = sorted(each.parent for each in STATIC.glob("vendor/*/vendor.toml"))
MAX_BYTES = 4_000_000
BUILD = Path(__file__).parents[2] / "support" / "vendor"


def test_every_vendored_folder_has_a_list() -> None:
    assert [each for each in sorted((STATIC / "vendor").iterdir()) if each.is_dir()] == FOLDERS


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda each: each.name)
def test_the_files_are_those_of_the_list(folder: Path) -> None:
    listed = tomllib.loads((folder / "vendor.toml").read_text())
    found = {each.name: each.read_bytes() for each in folder.iterdir() if each.name != "vendor.toml"}
    assert {name: hashlib.sha256(data).hexdigest() for name, data in found.items()} == listed["sha256"]
    assert {"name", "version", "licence", "made"} <= listed.keys()
    assert "LICENSE" in found
    assert sum(map(len, found.values())) <= MAX_BYTES
    assert not any(b"sourceMappingURL" in data for data in found.values())


def test_the_editor_is_the_version_that_its_build_pins() -> None:
    listed = tomllib.loads((STATIC / "vendor" / "monaco" / "vendor.toml").read_text())
    assert f'"monaco-editor": "{listed["version"]}"' in (BUILD / "monaco" / "package.json").read_text()
