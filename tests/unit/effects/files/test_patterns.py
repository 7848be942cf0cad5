"""Patterns of paths below a root."""

from __future__ import annotations

from pathlib import Path

import pytest

from vesper.effects.files.patterns import path_problem
from vesper.effects.files.settings import FileSettings
from vesper.effects.settings import ConfigError, Table


def settings(tmp_path: Path, **patterns: list[str]) -> FileSettings:
    return FileSettings.from_table("data", Table("files.data", {"path": str(tmp_path), **patterns}))


@pytest.mark.parametrize(
    "pattern, allowed, refused",
    [
        (
            "docs/**/*.md",
            ["docs/a.md", "docs/b/c/d.md"],
            ["a.md", "docs/a.txt", "docs", "docs/.env.md", "docs/.git/a.md"],
        ),
        ("*.csv", ["a.csv"], ["b/a.csv", ".csv", "a.csv/b", "a.csvx", "A.CSV"]),
        ("**", ["a", "a/b"], [".env", "a/.env", ".git/config"]),
        ("**/.env", [".env", "a/.env"], [".env.old", ".git/.env"]),
        ("a/*/c", ["a/b/c"], ["a/c", "a/b/b/c"]),
    ],
)
def test_which_paths_a_pattern_allows(tmp_path: Path, pattern: str, allowed: list[str], refused: list[str]) -> None:
    found = settings(tmp_path, read=[pattern])
    assert [path for path in allowed if path_problem(found, "file_read", path)] == []
    assert [path for path in refused if not path_problem(found, "file_read", path)] == []


def test_reading_and_writing_have_patterns_of_their_own(tmp_path: Path) -> None:
    found = settings(tmp_path, read=["in/*"], write=[])
    assert path_problem(found, "file_read", "in/a") is None
    assert "it is empty" in (path_problem(found, "file_write", "in/a") or "")
    assert path_problem(settings(tmp_path), "file_append", "anything/.at/all") is None


@pytest.mark.parametrize("pattern", ["", "/etc/*", "../x", "a//b", "./a"])
def test_a_pattern_that_matches_no_path_is_refused(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(ConfigError, match="matches no path"):
        settings(tmp_path, read=[pattern])


def test_many_stars_take_no_time(tmp_path: Path) -> None:
    found = settings(tmp_path, read=["/".join(["**", "a"] * 30) + "/b"])
    assert path_problem(found, "file_read", "/".join(["a"] * 60)) is not None
