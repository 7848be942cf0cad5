"""The nodes that a node calls, found by id or by name.

A name is resolved by `vesper.lock`, or to its newest version.

Called nodes are in the same collection: below the nearest folder that has a `vesper.toml` or a `vesper.lock` or is
called `nodes`, else in the folder of the caller.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vesper.language.check.callees import Interface, NotCallable
from vesper.language.check.taint import TaintAnalysis
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.suggest import did_you_mean_node
from vesper.language.ir.failures import callee_codes
from vesper.language.ir.nodes import CallNode, Node, Request
from vesper.language.ir.statements import all_statements
from vesper.repository.locate import id_of, is_library_file, node_files
from vesper.repository.lock import LOCK_NAME, Lock, LockProblem, read_lock
from vesper.values.limits import MAX_CALL_DEPTH
from vesper.values.node_id import split_node_id
from vesper.values.types import OptionalOf

if TYPE_CHECKING:
    from vesper.compiler.libraries import CompiledLibrary
    from vesper.compiler.pipeline import Compiled
    from vesper.language.check.libraries import Library
    from vesper.language.check.overlay import Overlay


def collection_folder(path: Path) -> Path:
    """Return the folder that is searched for the neighbours of a node."""
    for folder in path.absolute().parents:
        if folder.name == "nodes" or (folder / "vesper.toml").is_file() or (folder / LOCK_NAME).is_file():
            return folder
    return path.parent


class Collection:
    """The nodes below a folder, each compiled at most once, at its first call."""

    def __init__(self, root: Path, follows_lock: bool = True, overlay: Overlay | None = None) -> None:
        self.root = root
        self.overlay = overlay
        self._follows_lock = follows_lock
        self._files: dict[str, Path] | None = None
        self._lock: Lock | LockProblem | None = None
        self._compiled: dict[str, tuple[Compiled, Interface] | None] = {}
        self._libraries: dict[str, CompiledLibrary | None] = {}
        self._are_libraries: dict[str, bool] = {}
        self.cycles: dict[str, tuple[str, ...]] = {}
        """The nodes of a cycle of calls, in the order of the calls, by each of them."""

    def files(self) -> dict[str, Path]:
        """Return the file of each id; a file name that is an id counts as the id."""
        if self._files is None:
            listed = node_files([self.root]) if self.root.is_dir() else []
            self._files = {}
            for path in listed:
                node_id = path.stem if split_node_id(path.stem) else id_of(path)
                self._files.setdefault(node_id, path)
        return self._files

    def lock(self) -> Lock | LockProblem:
        if self._lock is None:
            self._lock = read_lock(self.root) if self._follows_lock else Lock({})
        return self._lock

    def is_library(self, node_id: str) -> bool:
        """Return whether the file of an id declares a library."""
        if node_id not in self._are_libraries:
            self._are_libraries[node_id] = is_library_file(self.files()[node_id])
        return self._are_libraries[node_id]

    def resolve(self, wanted: str, libraries: bool = False) -> str | NotCallable:
        """Return the id of a word in `node:`, or of one in `use:` where `libraries`."""
        files = self.files()
        if split_node_id(wanted) is not None:
            if wanted in files and self.is_library(wanted) == libraries:
                return wanted
            return self._unknown(wanted, libraries)
        lock = self.lock()
        if isinstance(lock, LockProblem):
            return NotCallable(Code.BAD_LOCK, {"problem": str(lock)}, "run `vesper nodes lock`")
        if wanted in lock.nodes:
            pinned = lock.nodes[wanted].node_id
            if pinned in files:
                return pinned
            problem = f"says `{pinned}` for `{wanted}`, and there is no such node"
            return NotCallable(Code.BAD_LOCK, {"problem": problem}, "run `vesper nodes lock`")
        versions = [
            (parts[1], each)
            for each in files
            if (parts := split_node_id(each)) and parts[0] == wanted and self.is_library(each) == libraries
        ]
        return max(versions)[1] if versions else self._unknown(wanted, libraries)

    def _unknown(self, wanted: str, libraries: bool) -> NotCallable:
        names = {parts[0] for each in self.files() if (parts := split_node_id(each))}
        close = did_you_mean_node(wanted, [*self.files(), *sorted(names)])
        help_ = close or f"{'libraries' if libraries else 'nodes'} are looked for below `{self.root.name}`"
        if wanted in self.files():
            help_ = f"`{wanted}` is a {'node' if libraries else 'library'}"
        if libraries:
            return NotCallable(Code.UNKNOWN_LIBRARY, {"library": wanted}, help_)
        return NotCallable(Code.UNKNOWN_NODE, {"node": wanted}, help_)

    def lock_problem(self, node_id: str, semantic_hash: str) -> str | None:
        """Return how a node or library differs from the lock, or None. With an overlay every difference is allowed."""
        lock = self.lock()
        if self.overlay is not None:
            return None
        return lock.differs(node_id, semantic_hash) if isinstance(lock, Lock) else None

    def compiled_library(self, library_id: str, stack: tuple[str, ...]) -> CompiledLibrary | None:
        """Return the library with this id, checked at its first use; None if it has errors."""
        from vesper.compiler.libraries import compile_library, read_library

        if library_id not in self._libraries:
            source = read_library(self.files()[library_id])
            found = None if source is None else compile_library(source, self, stack)[0]
            self._libraries[library_id] = found
        return self._libraries[library_id]

    def compiled(self, node_id: str, stack: tuple[str, ...]) -> tuple[Compiled, Interface] | None:
        from vesper.compiler.pipeline import compile_file

        if node_id not in self._compiled:
            found, _ = compile_file(self.files()[node_id], Neighbours(self, (*stack, node_id)))
            self._compiled[node_id] = None if found is None else (found, interface_of(found))
        return self._compiled[node_id]


class Neighbours:
    """The nodes that one node can call; `stack` are the calls that led to it."""

    def __init__(self, collection: Collection, stack: tuple[str, ...]) -> None:
        self._collection = collection
        self._stack = stack
        self.overlay = collection.overlay
        self.called: dict[str, Compiled] = {}
        self.libraries: dict[str, CompiledLibrary] = {}
        """Used libraries by id."""
        self.is_read = False
        """Whether the check of the node depended on other files."""

    def library(self, wanted: str) -> Library | NotCallable:
        from vesper.compiler.libraries import UsedLibraries

        self.is_read = True
        uses = UsedLibraries(self._collection, ())
        found = uses.library(wanted)
        self.libraries |= uses.used
        return found

    def find(self, wanted: str) -> Interface | NotCallable:
        self.is_read = True
        node_id = self._collection.resolve(wanted)
        if isinstance(node_id, NotCallable):
            return node_id
        if node_id in self._stack:
            cycle = self._stack[self._stack.index(node_id) :]
            self._collection.cycles |= dict.fromkeys(cycle, cycle)
            return _cycle(node_id, cycle)
        too_deep = {"limit": str(MAX_CALL_DEPTH), "what": "calls of nodes in one another"}
        if len(self._stack) >= MAX_CALL_DEPTH:
            return NotCallable(Code.TOO_DEEP, too_deep)
        found = self._collection.compiled(node_id, self._stack)
        if found is None:
            return self._wrong_callee(node_id)
        compiled, interface = found
        # A node compiled for a shorter stack has not counted the calls that led here.
        if len(self._stack) + _depth(compiled) > MAX_CALL_DEPTH:
            return NotCallable(Code.TOO_DEEP, too_deep)
        if problem := self._collection.lock_problem(interface.node_id, interface.semantic_hash):
            return NotCallable(Code.BAD_LOCK, {"problem": problem}, "run `vesper nodes lock` if the change is meant")
        self.called[node_id] = compiled
        return interface

    def _wrong_callee(self, node_id: str) -> NotCallable:
        """Return why a node with errors cannot be called: a cycle, or other errors."""
        cycle = self._collection.cycles.get(node_id, ())
        if self._stack[-1] in cycle:
            return _cycle(self._stack[-1], cycle)
        if cycle:
            help_ = f"`{node_id}` calls itself: {_path(node_id, cycle)}"
        else:
            help_ = f"`vesper check {os.path.relpath(self._collection.files()[node_id])}` says why"
        return NotCallable(Code.WRONG_CALLEE, {"node": node_id}, help_)


def _cycle(first: str, cycle: tuple[str, ...]) -> NotCallable:
    help_ = "remove one of these calls, or move what both need into a node of its own"
    return NotCallable(Code.DEPENDENCY_CYCLE, {"node": first, "path": _path(first, cycle)}, help_)


def _path(first: str, cycle: tuple[str, ...]) -> str:
    """Return a cycle of calls as text that starts and ends with `first`."""
    start = cycle.index(first)
    return " → ".join((*cycle[start:], *cycle[:start], first))


def _depth(compiled: Compiled) -> int:
    """Return the number of nodes in the longest chain of calls that starts at this node."""
    depths: dict[str, int] = {}

    def depth(each: Compiled) -> int:
        if each.node.node_id not in depths:
            depths[each.node.node_id] = 1 + max(map(depth, each.callees), default=0)
        return depths[each.node.node_id]

    return depth(compiled)


def interface_of(compiled: Compiled) -> Interface:
    """Return the interface of a checked node."""
    node: Node = compiled.node
    taint = node.taint
    if taint is None:  # read from IR without flags, such as that of an old trace
        taint = TaintAnalysis(node, {each.node.node_id: interface_of(each) for each in compiled.callees}).run()
    versions = _versions(compiled)
    success = tuple((each.name, each.type) for each in node.outputs)
    errors = tuple((each.name, each.type) for each in node.errors)
    inputs = tuple(
        (each.name, each.type, each.default is not None or isinstance(each.type, OptionalOf)) for each in node.inputs
    )
    interface = Interface(
        node.node_id,
        compiled.semantic_hash,
        node.type,
        inputs,
        success,
        errors,
        frozenset(),
        node.grants.required,
        versions,
        node.grants.sensitive,
        taint,
        _requests(compiled),
        node.flagged,
        _chains(compiled),
        node,
    )
    return replace(interface, codes=frozenset(callee_codes(interface.callee())))


def _chains(compiled: Compiled) -> dict[str, tuple[str, ...]]:
    """Return, for each required capability, the chain of ids from a node to its user."""
    below = [_chains(each) for each in compiled.callees]
    found: dict[str, tuple[str, ...]] = {}
    for capability in compiled.node.grants.required:
        rest = next((each[capability] for each in below if capability in each), ())
        found[capability] = (compiled.node.node_id, *rest)
    return found


def _requests(compiled: Compiled) -> dict[str, Request]:
    callees = {each.node.node_id: each for each in compiled.callees}
    found: dict[str, Request] = {}
    for statement in all_statements(compiled.node.body):
        if isinstance(statement, Request):
            found[statement.name] = statement
        elif isinstance(statement, CallNode):
            inner = _requests(callees[statement.node])
            found |= {f"{statement.name}/{path}": request for path, request in inner.items()}
    return found


def _versions(compiled: Compiled) -> dict[str, str]:
    found: dict[str, str] = {}
    for callee in compiled.callees:
        found |= _versions(callee)
    parts = split_node_id(compiled.node.node_id)
    return found if parts is None else found | {parts[0]: compiled.node.node_id}
