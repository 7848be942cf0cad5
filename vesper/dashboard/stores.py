"""The stores of a configuration, opened when a page first reads them and closed with the application."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from vesper.config.code_folder import search_code_folder
from vesper.config.settings import Config
from vesper.dashboard.problem import NotFound, Refused, Unavailable
from vesper.repository.locate import FOLDER, FOLDER_VARIABLE, id_of, is_library_file, node_files
from vesper.values.model import printable
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper.compiler import Compiled
    from vesper.host.performers import Performers
    from vesper.journal.journal import Journal
    from vesper.language.diagnostics.diagnostic import DiagnosticBag
    from vesper.migration.stores.store import Store
    from vesper.trace.library import Traces

T = TypeVar("T")
_Stamp = dict[str, tuple[int, int]]
"""Time of change and size by path."""


class Topic(Enum):
    """A source of data whose changes refresh pages."""

    MIGRATION = "migration"
    JOURNAL = "journal"
    TRACES = "traces"
    AUDIT = "audit"
    FILES = "files"


class Nodes:
    """The node files of a project. Files are compiled on demand, through the caches of the commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._stamp: _Stamp | None = None
        self._paths: dict[str, Path] = {}
        self._compiled: dict[Path, tuple[object, Compiled | None, DiagnosticBag]] = {}

    def stamp(self) -> _Stamp:
        """Return times and sizes of all files of the folder, tables of nodes among them."""
        return _stamps(str(self.folder))

    def paths(self) -> dict[str, Path]:
        """Return the files by the id that they declare, without libraries. Raises `Unavailable`."""
        return self._read()[1]

    def _read(self) -> tuple[_Stamp, dict[str, Path]]:
        if not self.folder.is_dir():
            raise Unavailable(
                "the nodes",
                f"there is no folder {printable(str(self.folder))}",
                f"Set {FOLDER_VARIABLE}, or start the dashboard with the vesper.toml beside the folder `{FOLDER}`.",
            )
        with self._lock:
            stamp, old = self.stamp(), self._stamp or {}
            if stamp != old:
                known = {path: node for node, path in self._paths.items() if stamp.get(str(path)) == old.get(str(path))}
                files = [each for each in node_files([self.folder]) if each in known or not is_library_file(each)]
                self._paths = {known.get(each) or id_of(each): each for each in files}
                self._stamp = stamp
            return stamp, self._paths

    def path(self, node: str) -> Path:
        """Return the file of a node. Raises `NotFound`."""
        found = self.paths().get(node)
        if found is None:
            raise NotFound(
                f"no file under {printable(str(self.folder))} declares the node `{printable(node[:80])}`",
                "It may be a node of another project, or one that was renamed: see `vesper nodes list`.",
            )
        return found

    def compiled(self, node: str) -> tuple[Compiled | None, DiagnosticBag]:
        """Return the checked node, None with errors, and its diagnostics; again only after a change of a file."""
        from vesper.compiler import compile_file

        stamp = self._read()[0]  # of all files, because nodes use others
        path = self.path(node)
        with self._lock:
            kept = self._compiled.get(path)
            if kept is None or kept[0] != stamp:
                kept = (stamp, *compile_file(path))
                self._compiled[path] = kept
        return kept[1], kept[2]


def require_trusted(compiled: Compiled) -> None:
    """Raise `Refused` for a node that commands do not run.

    Its file, or that of a callee, may be another user's.
    """
    from vesper.compiler.load_cache import distrust_node

    reason = distrust_node(compiled)
    if reason is not None:
        what, _, remedy = reason.partition("\n")
        raise Refused(what, remedy)


class Stores:
    """All stores of one configuration, for any number of threads. A property raises `Unavailable`."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.nodes = Nodes(Path(os.environ.get(FOLDER_VARIABLE) or config.folder / FOLDER))
        self._lock = threading.RLock()
        self._opened: dict[str, object] = {}

    @property
    def migration(self) -> Store:
        """The store of modes, evidence and divergences."""
        from vesper.migration.stores.store import open_store

        dsn = self.config.migration_settings().store
        remedy = 'Load a node with `vesper.load(NAME, engine="auto")` or `vesper serve` and call it to route it.'
        self._require_file("the migration store", dsn, remedy)
        return self._open("the migration store", lambda: open_store(dsn))

    @property
    def journal(self) -> Journal:
        """The journal of runs with effects."""
        dsn = self.config.dsn(self.config.journal.dsn)
        self._require_file("the journal", dsn, "Run a node with effects, or name the journal in `[journal]`.")
        return self._open("the journal", lambda: self._performers().open_journal())

    @property
    def audit(self) -> Journal:
        """The journal as the home of the audit log."""
        return self.journal

    @property
    def traces(self) -> Traces:
        """Traces of the store and of the journal."""
        from vesper.trace.library import Traces
        from vesper.trace.store import TraceStore

        try:
            journal: Journal | None = self.journal
        except Unavailable:
            journal = None
        return self._open(
            f"traces {journal is not None}",
            lambda: Traces(TraceStore(self.config.trace_settings(), self._performers().key_ring()), journal),
        )

    def close(self) -> None:
        """Close all stores that were opened."""
        with self._lock:
            opened, self._opened = self._opened, {}
        for each in opened.values():
            close = getattr(each, "close", None)
            if close is not None:
                close()

    def version(self, topic: Topic) -> object:
        """Return a value that changes with the data of a topic: a cheap call for polling."""
        match topic:
            case Topic.FILES:
                return self.nodes.stamp()
            case Topic.MIGRATION:
                try:
                    return hash(frozenset(self.migration.versions().items()))
                except VesperError as problem:
                    return str(problem)
            case Topic.TRACES:
                return _stamp_of(self.config.trace_settings().path), self.version(Topic.JOURNAL)
            case Topic.JOURNAL | Topic.AUDIT:
                dsn = self.config.dsn(self.config.journal.dsn)
                if dsn.startswith("sqlite:"):
                    return _stamp_of(Path(dsn.removeprefix("sqlite:")))
                try:
                    return self.journal.audit_head(), self.journal.find(limit=20)
                except VesperError as problem:
                    return str(problem)

    def _performers(self) -> Performers:
        from vesper.host.performers import Performers

        search_code_folder(self.config)
        return Performers(replace(self.config, modules=()), {})

    def opened(self, what: str, make: Callable[[], T]) -> T:
        """Return an object that pages use beside the stores.

        It is made once, and closed with them. Raises `Unavailable`.
        """
        return self._open(what, make)

    def _open(self, what: str, make: Callable[[], T]) -> T:
        with self._lock:
            found = self._opened.get(what)
            if found is None:
                try:
                    found = self._opened[what] = make()
                except (VesperError, OSError) as problem:
                    remedy = "Correct the settings and start the dashboard again."
                    raise Unavailable(what, printable(str(problem)), remedy) from None
            return found  # type: ignore[return-value]  # each name has one type

    def _require_file(self, what: str, dsn: str, remedy: str) -> None:
        """Raise `Unavailable` where a file of SQLite is missing: reading must not create it."""
        path = Path(dsn.removeprefix("sqlite:"))
        if dsn.startswith("sqlite:") and not path.exists():
            raise Unavailable(what, f"there is no file {printable(str(path))} yet", remedy)


def _stamps(folder: str) -> _Stamp:
    """Return the stamps of files in a folder and below it; hidden entries are left out."""
    found: _Stamp = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    found |= _stamps(entry.path)
                    continue
                try:
                    stat = entry.stat()
                except OSError:  # a link to nothing hides no other file
                    continue
                found[entry.path] = (stat.st_mtime_ns, stat.st_size)
    except OSError:  # a file or folder that vanished meanwhile
        return found
    return found


def _stamp_of(path: Path) -> tuple[int, ...]:
    """Return times and sizes of a file of SQLite and of its log."""
    found: list[int] = []
    for each in (path, path.with_name(f"{path.name}-wal")):
        try:
            stat = each.stat()
        except OSError:
            continue
        found += (stat.st_mtime_ns, stat.st_size)
    return tuple(found)


__all__ = ["Nodes", "Stores", "Topic", "Unavailable", "require_trusted"]
