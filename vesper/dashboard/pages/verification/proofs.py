"""Proofs of a project: summaries of long campaigns in `docs/proofs`, and whether their sources changed since.

A proof may name its sources: `"sources": ["nodes/", "vesper/verify/"]`. Without git, its age decides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from vesper.journal.moments import number
from vesper.repository.git import distrust_repository, git_text
from vesper.storage.file_access import read_regular
from vesper.values.model import printable

FOLDER: Final = "docs/proofs"
DEFAULT_SOURCES: Final = ("vesper/", "direct_runtime/", "nodes/")
MAX_AGE_DAYS: Final = 30
"""Age from which a proof is stale where there is no git."""
_MAX_COMMITS: Final = 1_000
_MAX_VERSIONS: Final = 50
"""Maximum number of older versions of the planted faults that are read."""
_MAX_BYTES: Final = 1 << 20
_DAY_US: Final = 86_400_000_000
_FAULTS: Final = "faults.json"
_NO_COUNTS: Final = frozenset({"seed", "quick"})
_FAILURES: Final = frozenset({"disagreements", "differences", "failures", "crashes", "problems", "wrong", "leaks"})
"""Keys of what a proof must not find."""


@dataclass(frozen=True, slots=True)
class Count:
    name: str
    number: float


@dataclass(frozen=True, slots=True)
class Proof:
    """A summary of a campaign."""

    name: str
    made_us: int | None
    """Time of the commit of the summary, or of the file without git."""
    commit: str | None
    seed: int | None
    counts: tuple[Count, ...]
    failures: int
    """Number of findings that the proof must not have."""
    is_stale: bool
    why: str
    """Why it is stale or fresh."""


@dataclass(frozen=True, slots=True)
class FaultsProof:
    """A version of the campaign of planted faults."""

    at_us: int
    faults: int
    noticed: int
    share: float


@dataclass(frozen=True, slots=True)
class _Commit:
    hash: str
    at_us: int
    files: tuple[str, ...]


def read_proofs(project: Path, now_us: int) -> tuple[tuple[Proof, ...], tuple[FaultsProof, ...], str]:
    """Return the proofs of a project, the versions of its planted faults, and the rule for stale ones."""
    folder = project / FOLDER
    files = sorted(folder.glob("*.json"))
    if not files:
        return (), (), ""
    reason = distrust_repository(project)
    commits = _commits(project) if reason is None else None
    if commits is None:
        why = "This is no git checkout" if reason is None else f"git is not asked, because {printable(reason)}"
        rule = f"{why}: a proof is stale after {MAX_AGE_DAYS} days."
        return tuple(_by_age(each, now_us) for each in files), (), rule
    rule = (
        "A proof is stale when a later commit changed its sources: those that it names, otherwise "
        f"{', '.join(DEFAULT_SOURCES)}."
    )
    return tuple(_by_commits(each, commits) for each in files), _faults(project, commits), rule


def _by_commits(path: Path, commits: Sequence[_Commit]) -> Proof:
    name = f"{FOLDER}/{path.name}"
    found = _document(path)
    sources = tuple(str(each) for each in found.get("sources") or ()) or DEFAULT_SOURCES
    changes = 0
    for commit in commits:
        if name in commit.files:
            why = f"{number(changes, 'later commit')} changed its sources" if changes else "its sources are unchanged"
            return _proof(path, found, commit.at_us, commit.hash[:10], changes > 0, why)
        changes += any(each.startswith(sources) for each in commit.files)
    is_old = len(commits) >= _MAX_COMMITS
    why = f"it is older than the last {_MAX_COMMITS:,} commits" if is_old else "it is not committed yet"
    return _proof(path, found, _changed_us(path), None, is_old and changes > 0, why)


def _by_age(path: Path, now_us: int) -> Proof:
    made_us = _changed_us(path)
    days = max(0, now_us - (made_us or now_us)) // _DAY_US
    return _proof(path, _document(path), made_us, None, days >= MAX_AGE_DAYS, f"{number(days, 'day')} old")


def _proof(
    path: Path, found: Mapping[str, Any], made_us: int | None, commit: str | None, is_stale: bool, why: str
) -> Proof:
    seed = found.get("seed")
    counts = [
        Count(printable(name), each)
        for name, each in found.items()
        if type(each) in (int, float) and name not in _NO_COUNTS
    ]
    failures = sum(map(_count, map(found.get, _FAILURES)))
    return Proof(
        path.stem, made_us, commit, seed if type(seed) is int else None, tuple(counts[:6]), failures, is_stale, why
    )


def _count(found: object) -> int:
    """Return a number, or the number of listed findings."""
    return found if type(found) is int else len(found) if isinstance(found, list | dict) else 0


def _faults(project: Path, commits: Sequence[_Commit]) -> tuple[FaultsProof, ...]:
    """Return the versions of the campaign of planted faults, newest first."""
    name = f"{FOLDER}/{_FAULTS}"
    made = [each for each in commits if name in each.files][:_MAX_VERSIONS]
    found = []
    for commit in made:
        try:
            version = json.loads(_file_at(project, commit.hash, name) or "")
            share = float(version["share"])
            found.append(FaultsProof(commit.at_us, int(version["not_equivalent"]), int(version["killed"]), share))
        except (ValueError, KeyError, TypeError):
            continue  # another form of an earlier version
    return tuple(found)


def _document(path: Path) -> dict[str, Any]:
    """Return the summary; empty where it cannot be read."""
    try:
        found = json.loads(read_regular(path, _MAX_BYTES))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _changed_us(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns // 1000
    except OSError:
        return None


# -- git ------------------------------------------------------------------------------------------


def _commits(project: Path) -> tuple[_Commit, ...] | None:
    """Return the newest commits with their files, relative to the project; None without git."""
    head = git_text(project, "rev-parse", "HEAD")
    return None if not head else _commits_at(project, head.strip())


@lru_cache(maxsize=4)
def _commits_at(project: Path, head: str) -> tuple[_Commit, ...] | None:
    text = git_text(
        project, "log", "--format=%x1e%H%x1f%ct", "--name-only", "--relative", f"-n{_MAX_COMMITS}", head, "--", "."
    )
    if text is None:
        return None
    found = []
    for part in text.split("\x1e")[1:]:
        first, *files = part.splitlines()
        commit, _, seconds = first.partition("\x1f")
        found.append(_Commit(commit, int(seconds) * 1_000_000, tuple(filter(None, files))))
    return tuple(found)


@lru_cache(maxsize=2 * _MAX_VERSIONS)
def _file_at(project: Path, commit: str, name: str) -> str | None:
    return git_text(project, "cat-file", "blob", f"{commit}:./{name}")  # never runs a filter of the repository
