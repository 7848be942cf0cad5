"""History of `vesper verify` in a project: one JSON line for each run, for the dashboard.

A line is a summary of the document that `--format json` prints. It holds no inputs.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vesper.storage.file_access import PRIVATE_FILE, STATE_FOLDER, make_private_folder

MAX_RUNS = 1_000
"""Maximum number of runs in the file; older ones are dropped."""
MAX_BYTES = 16 << 20
"""Maximum size of the file, for projects with many nodes."""
MAX_BRANCHES = 20
"""Maximum number of uncovered branches of a node in one line."""
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class UncoveredBranch:
    """A branch that no input of a run covered."""

    line: int
    text: str
    """The branch as written, and what did not happen: `amount > 100` is never true."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A place at which the engines differed in a run."""

    step: str | None
    line: int | None
    way: str | None
    """Way into the node that differs from the engines; None where the engines differ."""


@dataclass(frozen=True, slots=True)
class NodeRun:
    """One node in a run."""

    node: str
    executions: int
    crashes: int
    branches_covered: int
    branches_total: int
    passed: bool
    disagreements: tuple[Disagreement, ...] = ()
    uncovered: tuple[UncoveredBranch, ...] = ()


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run of `vesper verify`, without its nodes."""

    at_us: int
    """End of the run."""
    version: str
    """Version of Vesper."""
    seed: int
    seconds: float
    nodes: int
    refused: int
    """Number of files with errors, which were not verified."""
    executions: int
    programs: int
    """Number of random programs."""
    branches_covered: int
    branches_total: int
    disagreements: int
    """Number of disagreements, failed random programs and broken relations."""
    crashes: int
    passed: bool
    is_interrupted: bool


@dataclass(frozen=True, slots=True)
class VerifyRun:
    summary: RunSummary
    nodes: tuple[NodeRun, ...]


def run_of(document: Mapping[str, Any], version: str) -> VerifyRun:
    """Return the summary of a run that `vesper verify --format json` would print."""
    nodes = tuple(map(_node_run, document["nodes"]))
    campaigns = [each for each in (document["random_programs"], document["relations"]) if each is not None]
    summary = RunSummary(
        time.time_ns() // 1000,
        version,
        document["seed"],
        document["elapsed_seconds"],
        len(nodes),
        len(document["refused"]),
        document["executions"],
        document["programs"],
        sum(each.branches_covered for each in nodes),
        sum(each.branches_total for each in nodes),
        sum(len(each.disagreements) for each in nodes) + sum(len(each["failures"]) for each in campaigns),
        sum(each.crashes for each in nodes),
        document["passed"],
        document["interrupted"],
    )
    return VerifyRun(summary, nodes)


def _node_run(found: Mapping[str, Any]) -> NodeRun:
    return NodeRun(
        found["node"],
        found["executions"],
        len(found["crashes"]),
        found["branches_covered"],
        found["branches_total"],
        found["passed"],
        tuple(Disagreement(each["step"], each["line"], each["way"]) for each in found["disagreements"]),
        tuple(
            UncoveredBranch(each["line"], f"`{each['text']}` {each['missing']}")
            for each in found["uncovered_branches"][:MAX_BRANCHES]
        ),
    )


def history_path(project: Path) -> Path:
    return project / STATE_FOLDER / "verify.jsonl"


def append_run(project: Path, run: VerifyRun) -> None:
    """Add a run to the history of a project, and drop the oldest beyond the limits. Raises `OSError`."""
    path = history_path(project)
    make_private_folder(path.parent)
    line = json.dumps({"format": _FORMAT, **asdict(run)}, ensure_ascii=True).encode() + b"\n"
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)
    with os.fdopen(handle, "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        lines = [*file.read().splitlines(keepends=True), line]
        kept = _within_limits(lines)
        if len(kept) < len(lines):
            file.truncate(0)
            file.write(b"".join(kept))
        else:
            file.write(line)


def _within_limits(lines: Sequence[bytes]) -> list[bytes]:
    """Return the newest lines that fit, at least the last."""
    size, kept = 0, 0
    for line in reversed(lines[-MAX_RUNS:]):
        size += len(line)
        if kept and size > MAX_BYTES:
            break
        kept += 1
    return list(lines[-kept:])


def read_runs(project: Path) -> tuple[list[VerifyRun], int]:
    """Return the runs, newest first, and the number of lines that this version cannot read. Raises `OSError`."""
    try:
        with history_path(project).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            lines = file.read().splitlines()
    except FileNotFoundError:
        return [], 0
    found = [run for line in reversed(lines) if (run := _read_run(line)) is not None]
    return found, len(lines) - len(found)


def _read_run(line: bytes) -> VerifyRun | None:
    try:
        found = json.loads(line)
        if found["format"] != _FORMAT:
            return None
        nodes = []
        for each in found["nodes"]:
            each["disagreements"] = tuple(Disagreement(**part) for part in each["disagreements"])
            each["uncovered"] = tuple(UncoveredBranch(**part) for part in each["uncovered"])
            nodes.append(NodeRun(**each))
        return VerifyRun(RunSummary(**found["summary"]), tuple(nodes))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
