"""Uncovered branches and refused inputs of a node, as text and JSON, for `vesper test` and `vesper verify`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vesper.compiler import Compiled
from vesper.values.model import printable
from vesper.verify.branches import NodeBranch

MAX_SHOWN_BRANCHES = 10
_OFTEN_REFUSED = 0.5


def uncovered_lines(path: str, uncovered: Sequence[NodeBranch], maximum: int = MAX_SHOWN_BRANCHES) -> list[str]:
    """Return a line for each uncovered branch, with its place."""
    lines = [f"not covered: {path}:{each.place.line}: {printable(str(each))}" for each in uncovered[:maximum]]
    left = len(uncovered) - maximum
    return lines if left <= 0 else [*lines, f"not covered: {left} more; --format json lists all"]


def uncovered_json(uncovered: Sequence[NodeBranch]) -> list[dict[str, Any]]:
    return [
        {
            "kind": each.kind,
            "line": each.place.line,
            "column": each.place.column,
            "text": each.text,
            "missing": each.missing,
        }
        for each in uncovered
    ]


def below_text(node_id: str, percent: float, minimum: float) -> str:
    """Render that a node misses `--min-coverage`."""
    return f"error: {node_id} covers {percent:.1f} % of its branches, less than --min-coverage {minimum:g}"


def refusal_notes(compiled: Compiled, refused: Mapping[tuple[str, int], int], drawn: int) -> list[str]:
    """Return a note for each clause that refused more than half of the drawn inputs."""
    phases = dict(compiled.node.phases())
    found = []
    for (phase, index), count in refused.items():
        if phase in phases and count > _OFTEN_REFUSED * drawn:
            clause = phases[phase][index]
            found.append(
                f"{phase} `{printable(clause.text)}` (line {clause.holds.place.line}) broke in {count} of {drawn} "
                f"drawn inputs ({100 * count // drawn} %): add cases whose inputs meet it"
            )
    return found


def refused_json(compiled: Compiled, refused: Mapping[tuple[str, int], int]) -> list[dict[str, Any]]:
    """Return the clauses that refused drawn inputs, the most frequent first."""
    phases = dict(compiled.node.phases())
    listed = sorted(refused.items(), key=lambda each: (-each[1], each[0]))
    return [
        {"phase": phase, "clause": phases[phase][index].text, "line": phases[phase][index].holds.place.line}
        | {"inputs": count}
        for (phase, index), count in listed
        if phase in phases
    ]
