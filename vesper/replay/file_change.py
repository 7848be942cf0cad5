"""Changes of a node's file since a run was recorded.

A replay runs the recorded definition, whatever has become of its file. Readers of the file are told that it differs.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vesper.compiler import compile_file
from vesper.trace.model import Trace
from vesper.values.model import printable

MAX_DIFF_LINES = 20
_SHOWN_DIGITS = 12


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that differs from the definition of a run."""

    trace_id: str
    path: str
    state: str
    """`changed`, `text` (the meaning is unchanged), `invalid` (no such node any more) or `missing`."""
    recorded_hash: str
    current_hash: str | None
    """Semantic hash of the file; None without a node."""
    diff: tuple[str, ...] = ()
    """Removed and added lines, with `-` and `+`; none for a file that is no such node."""

    def lines(self) -> list[str]:
        """Return the change as text: the run, both hashes, and the lines that differ."""
        path, recorded = printable(self.path), self.recorded_hash[:_SHOWN_DIGITS]
        run = f"run {printable(self.trace_id)} ({recorded})"
        if self.state == "missing":
            return []  # a trace may be replayed where its nodes are not
        if self.state == "invalid":
            return [f"{path} changed since {run}: it is no longer this node without errors; `vesper check` shows why"]
        what = (
            "only in text, not in meaning" if self.state == "text" else f"and is now {(self.current_hash or '')[:12]}"
        )
        shown = [f"  {printable(line)}" for line in self.diff[:MAX_DIFF_LINES]]
        left = len(self.diff) - MAX_DIFF_LINES
        more = [f"  … {left} more lines differ"] if left > 0 else []
        return [f"{path} changed since {run}, {what}; the replay runs the recorded text:", *shown, *more]

    def json(self) -> dict[str, object]:
        return {
            "path": self.path,
            "state": self.state,
            "recorded_hash": self.recorded_hash,
            "current_hash": self.current_hash,
            "diff": list(self.diff),
        }


def find_change(trace: Trace, find_file: Callable[[], Path]) -> FileChange | None:
    """Return how the file of the node differs from the recorded definition; None without a difference."""
    definition = trace.definition
    path = find_file()

    def change(state: str, current: str | None, diff: tuple[str, ...] = ()) -> FileChange:
        return FileChange(trace.trace_id, path.as_posix(), state, definition.semantic_hash, current, diff)

    if not path.is_file():
        return change("missing", None)
    compiled, bag = compile_file(path)
    if compiled is None or compiled.node.node_id != definition.node_id:
        return change("invalid", None)  # its lines are not shown: a trace may name any file
    if bag.source.text == definition.source and compiled.semantic_hash == definition.semantic_hash:
        return None
    differences = difflib.unified_diff(definition.source.splitlines(), bag.source.text.splitlines(), lineterm="", n=0)
    lines = tuple(line for line in list(differences)[2:] if not line.startswith("@@"))
    is_same = compiled.semantic_hash == definition.semantic_hash
    return change("text" if is_same else "changed", compiled.semantic_hash, lines)
