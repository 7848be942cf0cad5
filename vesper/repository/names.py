"""Files and the ids they declare: a file is named after its node, and no two files declare the same id.

In: the files of one check, one after the other. Out: diagnostics. What is wrong inside a file is not looked at.
"""

from __future__ import annotations

from pathlib import Path

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import Diagnostic, DiagnosticBag
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.repository.locate import SUFFIX
from vesper.values.node_id import split_node_id


class Names:
    """Remembers who declared an id first."""

    def __init__(self) -> None:
        self._first: dict[str, Path] = {}

    def problems(self, path: Path, node_id: str, span: Span) -> list[Diagnostic]:
        """What there is to say about the id of this file, after all that were asked about before."""
        if split_node_id(node_id) is None:
            return []  # said already, and no name for a file
        bag = DiagnosticBag(SourceFile(path.as_posix(), ""))
        first = self._first.setdefault(node_id, path)
        if first != path and not _is_same_file(first, path):
            help_ = "give one of them another name, or the next version"
            bag.error(Code.DUPLICATE_NODE, span, "the second one", id=node_id, path=first.as_posix(), help=help_)
        elif path.stem != node_id:
            help_ = f"rename the file to `{node_id}{SUFFIX}`"
            bag.warning(Code.FILE_NAME, span, "declared here", file=path.name, id=node_id, help=help_)
        return bag.sorted()


def _is_same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file; what is gone meanwhile is no other."""
    try:
        return one.samefile(other)
    except OSError:
        return True
