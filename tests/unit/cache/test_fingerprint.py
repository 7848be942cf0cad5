"""What a kept node depends on besides the node changes its name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vesper.cache.fingerprint import _PARTS, compiler_digest, package_digest, source_hash


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for part in ("", *_PARTS):
        (tmp_path / "vesper" / part).mkdir(exist_ok=True, parents=True)
        (tmp_path / "vesper" / part / "one.py").write_text("1")
    (tmp_path / "libs" / "libcst").mkdir(parents=True)
    (tmp_path / "libs" / "libcst" / "__init__.py").write_text("")
    return tmp_path


def now(package: Path, version: str = "3") -> bytes:
    package_digest.cache_clear()
    return package_digest(str(package / "vesper"), (str(package / "libs"),), version)


def test_it_is_the_same_while_nothing_changes(package: Path) -> None:
    assert now(package) == now(package)
    assert compiler_digest() == compiler_digest()
    assert source_hash() == source_hash()


@pytest.mark.parametrize("part", ["", *_PARTS])
def test_every_part_of_vesper_counts(package: Path, part: str) -> None:
    before = now(package)
    file = package / "vesper" / part / "one.py"
    os.utime(file, (1, 1))
    assert now(package) != before
    file.write_text("22")
    os.utime(file, (1, 1))
    assert now(package) != before


def test_the_parser_and_python_count(package: Path) -> None:
    before = now(package)
    assert now(package, "4") != before
    (package / "libs" / "libcst" / "reader.py").write_text("")
    assert now(package) != before
