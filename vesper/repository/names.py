"""Check of file names, ids and routes. A file is named after its node; ids and routes are unique.

Takes the files of one check one by one and returns diagnostics. The contents of the files are not checked here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import Diagnostic, DiagnosticBag
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.http_binding import route_of
from vesper.repository.locate import SUFFIX
from vesper.values.node_id import split_node_id


class Names:
    """The first file of each declared id, and the first node of each route."""

    def __init__(self) -> None:
        self._first: dict[str, Path] = {}
        self._routes: dict[str, tuple[str, Path]] = {}

    def problems(self, path: Path, node_id: str, span: Span) -> list[Diagnostic]:
        """Return the diagnostics about the id of this file, given the files seen before."""
        if split_node_id(node_id) is None:
            return []  # reported already, and no valid file name
        bag = DiagnosticBag(SourceFile(path.as_posix(), ""))
        first = self._first.setdefault(node_id, path)
        if first != path and not _is_same_file(first, path):
            help_ = "give one of them another name, or the next version"
            bag.error(Code.DUPLICATE_NODE, span, "the second one", id=node_id, path=first.as_posix(), help=help_)
        elif path.stem != node_id:
            help_ = f"rename the file to `{node_id}{SUFFIX}`"
            bag.warning(Code.FILE_NAME, span, "declared here", file=path.name, id=node_id, help=help_)
        return bag.sorted()

    def route_problems(
        self, place: Path, node_id: str, method: str, path: str, text: Callable[[], str]
    ) -> list[Diagnostic]:
        """Return the diagnostics about the route of this node. Versions of one node may share a route."""
        route = route_of(method, path)
        name, first = self._routes.setdefault(route, (node_id, place))
        if name.rpartition("_v")[0] == node_id.rpartition("_v")[0] or _is_same_file(first, place):
            return []
        bag = DiagnosticBag(SourceFile(place.as_posix(), text()))
        start = bag.source.text.find(path, bag.source.text.find("\nhttp:") + 1)
        span = Span(start, start + len(path)) if start >= 0 else Span(0, 0)
        bag.error(Code.DUPLICATE_ROUTE, span, "the second one", route=route, node=name, path=first.as_posix())
        return bag.sorted()


def _is_same_file(one: Path, other: Path) -> bool:
    """Return whether two paths lead to one file. A file removed meanwhile counts as the same."""
    try:
        return one.samefile(other)
    except OSError:
        return True
