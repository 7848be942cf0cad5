"""All nodes and libraries of the workspace, with the newest texts of the editor, each checked at most once per text.

The texts are changed by one thread, the event loop; `check` may run in another. A lock keeps files from appearing and
disappearing during a check. A result of the front end is kept until the text of its file changes, or the meaning of a
file that it depends on.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from vesper.compiler import callees
from vesper.compiler.check_result import Checked, check_bytes, unreadable_file
from vesper.compiler.compiled import Compiled
from vesper.compiler.libraries import CompiledLibrary, UsedLibraries
from vesper.compiler.node_cache import NodeCache, cache_path
from vesper.compiler.reading import read_bytes
from vesper.language.check.callees import Callees, Interface, NotCallable
from vesper.language.check.libraries import Library
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import Diagnostic
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax.declared_id import declared_id
from vesper.lsp.view import Parsed, View, parse
from vesper.repository.locate import FOLDER, SUFFIX, is_library_text, plain_id
from vesper.repository.names import Names
from vesper.values.node_id import split_node_id

_SKIPPED_FOLDERS = ("node_modules", "__pycache__")


@dataclass(frozen=True, slots=True)
class _Result:
    """A result of the front end, and what it depends on."""

    data: bytes | OSError
    checked: Checked
    wanted: frozenset[str] = frozenset()
    """Words that name other files."""
    reached: frozenset[str] = frozenset()
    """Ids of the files that it calls or uses, at any depth."""
    cycles: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Entry:
    """One file: its newest bytes, and what is known about them."""

    path: Path
    folder: Folder
    data: bytes | OSError
    """Bytes on disk or in the editor, or why there are none."""
    file_id: str
    """The id under which calls find the file: its name, where that is an id, or the id that it declares."""
    is_library: bool
    is_open: bool = False
    result: _Result | None = None
    """The newest result; None where it must be computed."""
    settled: _Result | None = None
    """The result whose diagnostics and dependents were handled."""
    compiled: Compiled | CompiledLibrary | None = None
    problems: tuple[Diagnostic, ...] = ()
    """Problems of its id, file name and route, which depend on the other files."""
    parsed: Parsed | None = None
    built: Parsed | None = None

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace") if isinstance(self.data, bytes) else ""

    @property
    def words(self) -> set[str]:
        """Words that callers find the file by."""
        parts = split_node_id(self.file_id)
        return {self.file_id} if parts is None else {self.file_id, parts[0]}

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        found = () if self.settled is None else self.settled.checked.diagnostics
        return tuple(sorted((*found, *self.problems), key=lambda each: each.primary.span.start))


class Folder(callees.Collection):
    """The files that find each other below one folder, as the compiler's `Collection`, but by texts in memory."""

    def __init__(self, root: Path, collection: Collection) -> None:
        super().__init__(root)
        self._entries = collection.entries
        self._prefix = f"{root}{os.sep}"
        self._wanted: list[set[str]] = []
        self._reached: list[set[str]] = []
        """Words and ids of the checks in progress, the innermost last."""

    def forget(self) -> None:
        """Read ids and `vesper.lock` again at the next check."""
        self._files, self._lock = None, None

    def files(self) -> dict[str, Path]:
        if self._files is None:
            self._files = {}
            for entry in sorted(self._entries.values(), key=lambda each: str(each.path)):
                if self.holds(entry.path):
                    self._files.setdefault(entry.file_id, entry.path)
        return self._files

    def holds(self, path: Path) -> bool:
        return str(path).startswith(self._prefix)

    def is_library(self, node_id: str) -> bool:
        return self._entries[self.files()[node_id]].is_library

    def resolve(self, wanted: str, libraries: bool = False) -> str | NotCallable:
        found = super().resolve(wanted, libraries)
        if self._wanted:
            self._wanted[-1].add(wanted)
            self._reached[-1] |= {found} if isinstance(found, str) else set()
        return found

    def compiled(self, node_id: str, stack: tuple[str, ...]) -> tuple[Compiled, Interface] | None:
        found = self._compiled_file(node_id, stack)
        return (found, callees.interface_of(found)) if isinstance(found, Compiled) else None

    def compiled_library(self, library_id: str, stack: tuple[str, ...]) -> CompiledLibrary | None:
        found = self._compiled_file(library_id, stack)
        return found if isinstance(found, CompiledLibrary) else None

    def _compiled_file(self, node_id: str, stack: tuple[str, ...]) -> Compiled | CompiledLibrary | None:
        entry = self._entries[self.files()[node_id]]
        result = self.check(entry, (*stack, node_id), needs_node=True)
        self.cycles |= result.cycles
        if self._reached:
            self._reached[-1] |= result.reached
        return result.checked.compiled

    def check(self, entry: Entry, stack: tuple[str, ...], needs_node: bool = False) -> _Result:
        """Return the result of the newest text, from before where nothing has changed since."""
        known, data = entry.result, entry.data
        # A known result of a node that calls its caller is of the time before that call.
        if known is not None and known.data is data and known.reached.isdisjoint(stack):
            if known.checked.compiled is not None or known.checked.is_wrong or not needs_node:
                return known
        if isinstance(data, OSError):
            entry.result = _Result(data, unreadable_file(entry.path.as_posix(), data))
            return entry.result
        result = self.check_bytes(entry.path, data, stack)
        checked = result.checked
        if checked.is_wrong and entry.settled is not None:
            # An error may have ended the check before it read the names of others.
            result = replace(result, wanted=result.wanted | entry.settled.wanted)
        # Only these errors depend on the calls that led here.
        if len(stack) == 1 or not (result.cycles or any(each.code is Code.TOO_DEEP for each in checked.diagnostics)):
            entry.result = result
        return result

    def check_bytes(self, path: Path, data: bytes, stack: tuple[str, ...]) -> _Result:
        """Return the result of a text, and what it depends on."""
        outer, self.cycles = self.cycles, {}
        self._wanted.append(set())
        self._reached.append(set())
        try:
            checked = check_bytes(path.as_posix(), data, self, stack)
        finally:
            wanted, reached = self._wanted.pop(), self._reached.pop()
            cycles, self.cycles = self.cycles, outer
        return _Result(data, checked, frozenset(wanted), frozenset(reached), cycles)


class Collection:
    """All files of the workspace: by path, and by id as each file finds its neighbours."""

    def __init__(self) -> None:
        self.entries: dict[Path, Entry] = {}
        self._folders: dict[Path, Folder] = {}
        self._checking = threading.RLock()
        self._caches: dict[Path, NodeCache] | None = {}
        """Results of earlier processes by folder; None after the first check of all files."""
        self._has_new_names = False
        self.pending: dict[Path, None] = {}
        """Files to check, in the order of their changes."""

    # -- texts ------------------------------------------------------------------------------------

    def put(self, path: Path, data: bytes | OSError, is_open: bool = False) -> None:
        """Add a file, or replace its bytes."""
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else ""
        is_library = isinstance(data, bytes) and is_library_text(data)
        file_id = path.stem if split_node_id(path.stem) else _declared(text) or path.stem
        entry = self.entries.get(path)
        self._mark(path)
        if entry is None:
            with self._checking:
                folder = self._folder(callees.collection_folder(path))
                entry = self.entries[path] = Entry(path, folder, data, file_id, is_library, is_open)
                self._change_names(entry.words)
            return
        entry.is_open = is_open
        entry.data = data
        if (entry.file_id, entry.is_library) != (file_id, is_library):
            with self._checking:
                before = entry.words
                entry.file_id, entry.is_library = file_id, is_library
                self._change_names(before | entry.words)

    def remove(self, path: Path) -> None:
        """Remove a file."""
        with self._checking:
            if (entry := self.entries.pop(path, None)) is not None:
                self._has_new_names = True
                self.pending.pop(path, None)
                self._change_names(entry.words)

    def refresh(self, path: Path) -> None:
        """Check the files again that may depend on a file that is no node: `vesper.lock`, rows of a table."""
        with self._checking:
            for entry in self.entries.values():
                if entry.folder.holds(path) and entry.settled is not None and entry.settled.checked.reads_others:
                    self._invalidate(entry)
            for folder in self._folders.values():
                folder.forget()

    def _folder(self, root: Path) -> Folder:
        if root not in self._folders:
            self._folders[root] = Folder(root, self)
        return self._folders[root]

    def _mark(self, path: Path) -> None:
        self.pending.pop(path, None)
        self.pending[path] = None

    def _change_names(self, words: set[str]) -> None:
        """Check the files again for which these words may mean something else now."""
        for folder in self._folders.values():
            folder.forget()
        for entry in self.entries.values():
            if (known := entry.settled) is not None and known.wanted:
                if known.checked.is_wrong or not known.wanted.isdisjoint(words):
                    self._invalidate(entry)

    def _invalidate(self, entry: Entry) -> None:
        entry.result = None
        self.pending.setdefault(entry.path)

    # -- checks -----------------------------------------------------------------------------------

    def next_pending(self, waiting: Container[Path] = ()) -> Path | None:
        """Return the file to check next: one that is open, the latest change first, else any."""
        ready = [path for path in self.pending if path not in waiting]
        is_open = (path for path in reversed(ready) if self.entries[path].is_open)
        return next(is_open, None) or next(iter(ready), None)

    def check(self, path: Path) -> None:
        """Run the front end on a file, in any thread; `settle` takes the result over."""
        entry = self.entries.get(path)
        if entry is None:
            return
        with self._checking:
            cache, data = self._cache_of(entry), entry.data
            found = None if cache is None or entry.result is not None else cache.find(path)
            if found is not None:
                entry.result = _Result(data, replace(found, source=SourceFile(found.source.path, entry.text)))
                return
            checked = entry.folder.check(entry, (entry.file_id,)).checked
            if cache is not None and isinstance(data, bytes) and not checked.reads_others:
                cache.put(checked, hashlib.sha256(data).hexdigest(), None)

    def _cache_of(self, entry: Entry) -> NodeCache | None:
        root = entry.folder.root
        if self._caches is None or entry.is_open or root.name != FOLDER or (file := cache_path(root)) is None:
            return None
        if root not in self._caches:
            self._caches[root] = NodeCache(file)
        return self._caches[root]

    def save_caches(self) -> None:
        """Write what was checked for the first time, for the next process."""
        with self._checking:
            caches, self._caches = self._caches or {}, None
            for cache in caches.values():
                cache.save()
                cache.close()

    def settle(self, path: Path) -> set[Path]:
        """Take the result of `check` over; return the files whose diagnostics may have changed.

        Files that depend on a changed meaning become pending.
        """
        entry = self.entries.get(path)
        if entry is None or entry.result is None or entry.result.data is not entry.data:
            return set()  # removed, or changed again and still pending
        self.pending.pop(path, None)
        before, entry.settled = entry.settled, entry.result
        checked = entry.settled.checked
        entry.compiled = checked.compiled or (entry.compiled if checked.is_wrong else None)
        if before is not None and before.checked.semantic_hash != checked.semantic_hash:
            for other in self.callers(path):
                self._invalidate(self.entries[other])
        self._has_new_names |= before is None or _names(before.checked) != _names(checked)
        return {path, *(self.update_problems() if entry.is_open else ())}

    def update_problems(self) -> set[Path]:
        """Compare ids, file names and routes where one of them is new; return the files whose problems changed."""
        if not self._has_new_names:
            return set()
        self._has_new_names = False
        names: dict[Path, Names] = {}
        changed = set()
        for entry in sorted(self.entries.values(), key=lambda each: str(each.path)):
            checked = None if entry.settled is None else entry.settled.checked
            if checked is None or checked.node_id is None:
                continue
            known = names.setdefault(entry.folder.root, Names())
            problems = known.problems(entry.path, *checked.node_id)
            if (http := (checked.about or {}).get("http")) is not None:
                text = partial(getattr, entry, "text")
                problems += known.route_problems(entry.path, checked.node_id[0], http["method"], http["path"], text)
            if entry.problems != tuple(problems):
                entry.problems = tuple(problems)
                changed.add(entry.path)
        return changed

    # -- questions of features --------------------------------------------------------------------

    def view(self, path: Path) -> View | None:
        """Return what is known about a file; None for one that the workspace does not have."""
        entry = self.entries.get(path)
        if entry is None:
            return None
        source = SourceFile(path.as_posix(), entry.text)
        if entry.parsed is None or entry.parsed.source.text != source.text:
            entry.parsed = parse(source) or entry.parsed
            if entry.parsed is not None and entry.parsed.document is not None:
                entry.built = entry.parsed
        checked = None if entry.settled is None else entry.settled.checked
        return View(path, source, entry.parsed, entry.built, checked, entry.compiled, self)

    def compiled(self, path: Path) -> Compiled | CompiledLibrary | None:
        """Return the newest node or library of a file, compiled now where that is needed; None with errors."""
        entry = self.entries.get(path)
        if entry is None:
            return None
        with self._checking:
            return entry.folder.check(entry, (entry.file_id,), needs_node=True).checked.compiled

    def check_now(self, path: Path, text: str | None = None) -> Checked | None:
        """Return the result for the newest text of a file, or for another text of it; None for an unknown file."""
        entry = self.entries.get(path)
        if entry is None:
            return None
        with self._checking:
            if text is None:
                return entry.folder.check(entry, (entry.file_id,)).checked
            return entry.folder.check_bytes(path, text.encode("utf-8", "replace"), (entry.file_id,)).checked

    def neighbours(self, path: Path) -> Callees:
        """Return the nodes and libraries that a file can refer to, for checks outside of the collection."""
        entry = self.entries[path]
        kind = UsedLibraries if entry.is_library else callees.Neighbours
        return _Locked(kind(entry.folder, (entry.file_id,)), self._checking)

    def ids(self, path: Path) -> dict[str, Path]:
        """Return the files that a file can call or use, by id."""
        entry = self.entries.get(path)
        with self._checking:
            return {} if entry is None else dict(entry.folder.files())

    def is_library(self, path: Path) -> bool:
        entry = self.entries.get(path)
        return entry is not None and entry.is_library

    def resolve(self, path: Path, wanted: str, libraries: bool = False) -> Path | None:
        """Return the file that a word of `node:` (or `use:`) in the file at `path` names."""
        entry = self.entries.get(path)
        if entry is None:
            return None
        with self._checking:
            found = callees.Collection.resolve(entry.folder, wanted, libraries)
            return None if isinstance(found, NotCallable) else entry.folder.files()[found]

    def callers(self, path: Path) -> list[Path]:
        """Return the files that call or use a file, as far as they were checked."""
        entry = self.entries.get(path)
        words = set() if entry is None else entry.words
        return [
            other.path
            for other in self.entries.values()
            if other.settled is not None
            and not other.settled.wanted.isdisjoint(words)
            and other.folder.holds(path)
            and other.path != path
        ]


class _Locked:
    """Called nodes and used libraries, found while no other thread checks a file."""

    def __init__(self, inner: Callees, lock: threading.RLock) -> None:
        self._inner = inner
        self._lock = lock
        self.overlay = inner.overlay

    def library(self, wanted: str) -> Library | NotCallable:
        with self._lock:
            return self._inner.library(wanted)

    def find(self, wanted: str) -> Interface | NotCallable:
        with self._lock:
            return self._inner.find(wanted)


def _declared(text: str) -> str | None:
    """Return the id that a text declares."""
    if (plain := plain_id(text)) is not None:
        return plain
    found = declared_id(text)
    return None if found is None else found[0]


def _names(checked: Checked) -> tuple[object, ...]:
    """Return the parts of a result that the uniqueness of ids and routes depends on."""
    return checked.node_id, (checked.about or {}).get("http")


def read_file(path: Path) -> bytes | OSError:
    """Return the bytes of a file, or why it cannot be read."""
    try:
        return read_bytes(path)
    except OSError as error:
        return error


def find_files(roots: Iterable[Path]) -> Iterator[Path]:
    """Return the files of nodes and libraries below the roots, without hidden folders and environments."""
    for root in roots:
        for folder, below, files in os.walk(root):
            below[:] = [
                name
                for name in sorted(below)
                if not name.startswith(".")
                and name not in _SKIPPED_FOLDERS
                and not Path(folder, name, "pyvenv.cfg").exists()
            ]
            yield from (Path(folder, name) for name in sorted(files) if name.endswith(SUFFIX))
