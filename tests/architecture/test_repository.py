"""What holds for the files of the repository as files: where they are, how long, what they mention."""

from __future__ import annotations

import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FOLDERS = {"vesper", "direct_runtime", "schemas", "nodes", "codegen_templates", "tests", "dashboards", "docs", ".ci"}
MAX_LINES = 800

MACHINE_PATH = re.compile(r"(?<![\w.~$})-])/(?:root|work|home)(?![\w-])")
REGISTRY_HOST = re.compile(r"\b(?:pypi|pythonhosted|crates)\.(?:org|io)\b")
NAMES_ITS_REGISTRY = {"direct_runtime/Cargo.lock"}
"""Cargo writes the index's name into its lock; there is no way to tell it not to."""

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


@cache
def repository_files() -> tuple[Path, ...]:
    """Every file that is committed, or would be by `git add .`."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return tuple(sorted(path for name in listing.split("\0") if name and (path := ROOT / name).is_file()))


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", errors="replace")


def matches(pattern: re.Pattern[str], allowed: frozenset[str] | set[str] = frozenset()) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}"
        for path in repository_files()
        if path.relative_to(ROOT).as_posix() not in allowed
        for number, line in enumerate(text_of(path).splitlines(), start=1)
        if pattern.search(line)
    ]


def test_no_file_mentions_a_path_of_a_machine() -> None:
    assert matches(MACHINE_PATH) == []


def test_no_file_names_a_package_registry() -> None:
    assert matches(REGISTRY_HOST, NAMES_ITS_REGISTRY) == []


def test_the_patterns_find_what_they_are_for() -> None:
    for folder in ("root", "work", "home"):
        assert MACHINE_PATH.search(f"see /{folder}/x")
        assert MACHINE_PATH.search(f'"/{folder}"')
        assert not MACHINE_PATH.search(f"docs/{folder}/x")
        assert not MACHINE_PATH.search(f"/{folder}ing")
    for host in (("pypi", "org"), ("files", "pythonhosted", "org"), ("crates", "io")):
        assert REGISTRY_HOST.search(".".join(host))


def test_the_top_level_folders_are_the_fixed_ones() -> None:
    found = {path.relative_to(ROOT).parts[0] for path in repository_files() if path.parent != ROOT}
    assert found == FOLDERS


def test_no_source_file_is_too_long() -> None:
    lengths = {
        path.relative_to(ROOT).as_posix(): len(text_of(path).splitlines())
        for path in repository_files()
        if path.suffix in {".py", ".rs"}
    }
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


def markdown_files() -> list[Path]:
    return [path for path in repository_files() if path.suffix == ".md"]


@pytest.mark.parametrize("path", markdown_files(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_relative_link_leads_somewhere(path: Path) -> None:
    for target in LINK.findall(without_code(text_of(path))):
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, anchor = target.partition("#")
        linked = (path.parent / name) if name else path
        assert linked.exists(), f"{target} does not exist"
        assert linked.resolve().is_relative_to(ROOT), f"{target} leaves the repository"
        if anchor:
            assert anchor in anchors(linked), f"{target}: no such heading"


def without_code(text: str) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


def anchors(path: Path) -> set[str]:
    """The names by which the headings of a page are linked."""
    text = re.sub(r"```.*?```", "", text_of(path), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_runtime_dependencies_are_named_alike_in_both_places() -> None:
    project = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]
    lines = text_of(ROOT / "requirements.in").splitlines()
    assert sorted(project["dependencies"]) == sorted(line for line in lines if line and not line.startswith("#"))


def test_the_development_tools_are_named_alike_in_both_places() -> None:
    groups = tomllib.loads(text_of(ROOT / "pyproject.toml"))["dependency-groups"]
    lines = text_of(ROOT / "requirements-dev.in").splitlines()
    tools = {line for line in lines if line and not line.startswith(("#", "-"))}
    assert tools == {*groups["dev"], "pip"}


def test_every_locked_package_has_its_hash_and_no_address() -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = text_of(ROOT / name)
        assert "://" not in text
        entries = re.split(r"^(?=[a-z])", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE), flags=re.MULTILINE)
        packages = [entry for entry in entries if entry.strip()]
        assert packages
        assert [entry.split()[0] for entry in packages if "--hash=sha256:" not in entry] == []
