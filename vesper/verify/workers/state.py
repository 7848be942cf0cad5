"""State of a long run in a folder, from which a later run continues.

There is one file for each seed. The inputs and programs of a file are not repeated; the coverage of all files tells a
run where something new is left to find. Failed inputs and programs are not stored as done, so a later run reports them
again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vesper.cache.fingerprint import source_hash
from vesper.compiler import Compiled
from vesper.verify.differential.coverage import CoverageState

_VERSION = 1


class UnreadableState(Exception):
    """A file of the folder is no state; the message names it."""


@dataclass(slots=True)
class NodeState:
    """Inputs of one node that are done."""

    inputs: int = 0
    interval: int = 1
    coverage: CoverageState = field(default_factory=CoverageState)


@dataclass(slots=True)
class RunState:
    """State of one seed."""

    folder: Path
    seed: int
    engines: tuple[str, ...]
    nodes: dict[str, NodeState] = field(default_factory=dict)
    """By semantic hash: a changed node begins anew."""
    programs: set[int] = field(default_factory=set)

    @property
    def path(self) -> Path:
        return self.folder / f"seed_{self.seed}.json"

    def save(self) -> None:
        """Write the state atomically: a run that is stopped meanwhile leaves the former state."""
        self.folder.mkdir(parents=True, exist_ok=True)
        nodes = {
            key: {"inputs": each.inputs, "interval": each.interval, "coverage": _coverage_data(each.coverage)}
            for key, each in sorted(self.nodes.items())
        }
        data = {**_identity(self.engines), "nodes": nodes, "programs": to_ranges(self.programs)}
        scratch = self.path.with_suffix(".new")
        scratch.write_text(json.dumps(data) + "\n", encoding="utf-8")
        scratch.replace(self.path)


def read_state(folder: Path, seed: int, engines: tuple[str, ...], nodes: Sequence[Compiled]) -> RunState:
    """Return the state of a seed, with the coverage of all seeds; that of another build of Vesper is ignored."""
    state = RunState(folder, seed, engines)
    for path in sorted(folder.glob("seed_*.json")):
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if {name: data.get(name) for name in _identity(engines)} == _identity(engines):
                _add(state, data, path == state.path)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            problem = f"{path.as_posix()} is no state of a run ({type(error).__name__}: {error}); remove it"
            raise UnreadableState(problem) from None
    wanted = {each.semantic_hash for each in nodes}
    for key in wanted:
        state.nodes.setdefault(key, NodeState())
    return state


def _add(state: RunState, data: dict[str, Any], is_own: bool) -> None:
    for key, each in data["nodes"].items():
        node = state.nodes.setdefault(key, NodeState())
        node.coverage = _union(node.coverage, _coverage_of(each["coverage"]))
        if is_own:
            node.inputs, node.interval = int(each["inputs"]), int(each["interval"])
    if is_own:
        state.programs = {number for first, last in data["programs"] for number in range(first, last + 1)}


def to_ranges(numbers: Iterable[int]) -> list[list[int]]:
    """Return numbers as first and last of each sequence without gaps."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ranges


def _identity(engines: tuple[str, ...]) -> dict[str, object]:
    """Return the version, build and engines for which the stored results are valid."""
    return {"version": _VERSION, "build": source_hash().hex(), "engines": list(engines)}


def _coverage_data(state: CoverageState) -> dict[str, object]:
    return {
        "guards": sorted(map(list, state.guards)),
        "branches": sorted(map(list, state.branches)),
        "marked": to_ranges(state.marked),
        "ends": sorted(state.ends),
    }


def _coverage_of(data: dict[str, Any]) -> CoverageState:
    return CoverageState(
        frozenset((int(index), bool(result)) for index, result in data["guards"]),
        frozenset((str(kind), int(index), bool(result)) for kind, index, result in data["branches"]),
        frozenset(index for first, last in data["marked"] for index in range(first, last + 1)),
        frozenset(map(str, data["ends"])),
    )


def _union(one: CoverageState, other: CoverageState) -> CoverageState:
    return CoverageState(
        one.guards | other.guards, one.branches | other.branches, one.marked | other.marked, one.ends | other.ends
    )
