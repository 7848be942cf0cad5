"""The cache on disk of checked nodes, loaded without the parser and the generator.

The name of an entry is a hash of the shown path, the bytes of the file and the fingerprint of Vesper and Python. The
entry of a node that calls others or uses libraries has its dependencies too, which must be unchanged: the files of the
collection, `vesper.lock`, and the bytes of every node that is called and every library that is used, at any depth.
"""

from __future__ import annotations

import marshal
import os
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from vesper.cache.entries import Entries, digest, entries
from vesper.cache.fingerprint import compiler_digest
from vesper.cache.node_facts import Facts
from vesper.compiler.compiled import Compiled, Restored
from vesper.storage.trust import distrust

if TYPE_CHECKING:
    from vesper.language.diagnostics.diagnostic import DiagnosticBag

_MAX_BYTES = 1024 * 1024
_MAX_TABLE = 64 * 1024 * 1024
_MAY_READ_OTHERS = re.compile(
    rb"""call_node|ask_agent|(use|file|tools|node)["']?\s*:|[a-z0-9_]\(\s*[a-z][a-z0-9_]*\s*:"""
)
"""Found in every node that reads other files, except one that spells such a word with escapes, which is not cached."""
_SUFFIX, _LOCK, _CONFIG, _FOLDER = ".vsp", "vesper.lock", "vesper.toml", "nodes"
"""As in `vesper.compiler.callees` and `vesper.repository`; a test compares them."""

Rendered = Callable[["DiagnosticBag"], tuple[str, ...]]


def compile_cached(path: str, rendered: Rendered) -> tuple[Compiled | None, tuple[str, ...]]:
    """Return the node of a file and its rendered diagnostics, from the cache if possible.

    Nodes with errors are not cached: their file is about to change.
    """
    cache = entries()
    data = None if cache is None else _read_file(path)
    if cache is None or data is None:
        return _compile(path, rendered)[:2]
    name = digest(compiler_digest(), os.fsencode(path), data).hex()
    found = cache.find(name)
    if found is not None:
        form = marshal.loads(found)  # the MAC was right: this user wrote it  # noqa: S302
        if not form["depends"] or form["depends"] == _hash_dependencies(path, form["called"]):
            kept = _Entry(cache, name, form)
            return kept.restore(), tuple(form["said"])
        cache.kept.counters.hits -= 1
        cache.kept.counters.misses += 1
    before = _hash_dependencies(path, ()) if _MAY_READ_OTHERS.search(data) else None
    compiled, said, reads_others = _compile(path, rendered)
    # A file that changes meanwhile gives what was read, and nothing of it is cached.
    if compiled is None or not all(map(_is_same, _closure(compiled))):
        return compiled, said
    if reads_others and (before is None or before != _hash_dependencies(path, ())):
        return compiled, said
    called = sorted(_all_files(compiled) - {compiled.path})
    depends = _hash_dependencies(path, called) if reads_others else b""
    form = {"depends": depends, "called": called, "said": list(said)}
    return _Entry(cache, name, form).with_facts(compiled), said


def node_to_bytes(compiled: Compiled) -> bytes:
    """Return a node with its text, IR and callees as bytes.

    They are for a process that has none of its files. It is the form of an entry: only the same version of Vesper and
    Python reads it (`source_hash`).
    """
    form: dict[str, Any] = {}
    _Entry(None, "", form).with_facts(compiled)
    return marshal.dumps(form)


def node_from_bytes(data: bytes) -> Compiled:
    """Return the node of `node_to_bytes`. Only for bytes of this user: they decide what runs."""
    form: dict[str, Any] = marshal.loads(data)  # the caller vouches for them  # noqa: S302
    return _Entry(None, "", form).restore()


def restore_from_bytes(compiled: Compiled) -> Compiled:
    """Return the node as a warm start has it, through the bytes of an entry."""
    return node_from_bytes(node_to_bytes(compiled))


def distrust_node(compiled: Compiled) -> str | None:
    """Return why a node must not run, or None if it is trusted.

    Its file, or that of a node it calls, may be another user's.
    """
    return next((reason for each in sorted(_all_files(compiled)) if (reason := distrust(each))), None)


class _Entry:
    """One entry, with the facts of its node and of its callees; written by `save`."""

    def __init__(self, cache: Entries | None, name: str, form: dict[str, Any]) -> None:
        """Without a cache, nothing is written."""
        self._cache = cache
        self._name = name
        self._form = form

    def restore(self) -> Compiled:
        """Return the node of an entry that was found."""
        made: list[Compiled] = []
        for form in self._form["nodes"]:  # callees precede their callers
            made.append(Restored(form, tuple(made[each] for each in form["callees"]), self._facts(form)))
        return made[-1]

    def with_facts(self, compiled: Compiled) -> Compiled:
        """Return the node with a cache of its facts."""
        from vesper.compiler.node_bytes import encode_part

        made: dict[int, tuple[int, Compiled]] = {}
        forms: list[dict[str, Any]] = []

        def wrap(each: Compiled) -> tuple[int, Compiled]:
            if id(each) not in made:
                callees = [wrap(callee) for callee in each.callees]
                form: dict[str, Any] = {
                    "path": each.path,
                    "text": each.source.text,
                    "hash": each.semantic_hash,
                    "ir": each.ir,
                    "node": encode_part(each.node),
                    "cases": encode_part(each.cases),
                    "declared": encode_part(each.declared),
                    "callees": [number for number, _ in callees],
                    "files": list(each.files),
                    "http": None if each.http is None else each.http.to_data(),
                    "agent": None if each.agent is None else each.agent.to_data(),
                    "work": None if each.work is None else each.work.to_data(),
                    "facts": {},
                }
                found = Compiled(
                    each.source,
                    each.node,
                    each.cases,
                    each.ir,
                    each.semantic_hash,
                    tuple(callee for _, callee in callees),
                    self._facts(form),
                    each.files,
                    http=each.http,
                    agent=each.agent,
                    work=each.work,
                    declared=each.declared,
                )
                forms.append(form)
                made[id(each)] = (len(forms) - 1, found)
            return made[id(each)]

        self._form["nodes"] = forms
        return wrap(compiled)[1]

    def _facts(self, form: dict[str, Any]) -> Facts:
        return Facts(form["facts"], self._save)

    def _save(self) -> None:
        if self._cache is None:
            return
        # Copies: another thread may add a fact while this one writes.
        forms = [{**form, "facts": dict(form["facts"])} for form in self._form["nodes"]]
        self._cache.put(self._name, marshal.dumps({**self._form, "nodes": forms}))


def _compile(path: str, rendered: Rendered) -> tuple[Compiled | None, tuple[str, ...], bool]:
    from pathlib import Path

    from vesper.compiler.pipeline import compile_file

    compiled, bag = compile_file(Path(path))
    return compiled, rendered(bag), bag.reads_others


def _closure(compiled: Compiled) -> Iterable[Compiled]:
    yield compiled
    for callee in compiled.callees:
        yield from _closure(callee)


def _all_files(compiled: Compiled) -> set[str]:
    """Return the paths of a node, of the nodes it calls, and of their libraries."""
    found = {each.path for each in _closure(compiled)}
    return found | {path for each in _closure(compiled) for path, _ in each.files}


def _is_same(compiled: Compiled) -> bool:
    """Return whether the files still have the compiled bytes."""
    if _read_file(compiled.path) != compiled.source.text.encode("utf-8"):
        return False
    if not compiled.files:
        return True
    import hashlib

    return all(hashlib.sha256(_read_file(path) or b"").hexdigest() == sha256 for path, sha256 in compiled.files)


def _read_file(path: str) -> bytes | None:
    """Return the bytes of a file that may be a node; None for one that is too long or unreadable."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # a warm start imports no `pathlib`
            parts = []
            while part := file.read(_MAX_BYTES + 1):
                parts.append(part)
                if sum(map(len, parts)) > (_MAX_BYTES if path.endswith(_SUFFIX) else _MAX_TABLE):
                    return None
    except (OSError, ValueError):
        return None
    return b"".join(parts)


# -- what a node that reads other files depends on ------------------------------------------------


def _hash_dependencies(path: str, called: Iterable[str]) -> bytes | None:
    """Return a hash of all that decides which nodes and libraries are used, and their content.

    None where a file cannot be read.
    """
    root = collection_folder(path)
    parts = [os.fsencode(root)]
    lock = _read_file(f"{root}/{_LOCK}")
    parts.append(b"-" if lock is None else b"+" + lock)
    for file in sorted(_list_files(root)):
        # A file without the name of a node may declare any id.
        parts.append(os.fsencode(file))
        if not _has_node_name(file.rpartition("/")[2]):
            parts.append(_read_file(file) or b"")
    for file in called:
        found = _read_file(file)
        if found is None:
            return None
        parts += [os.fsencode(file), found]
    return digest(*parts)


def collection_folder(path: str) -> str:
    """Return the folder that is searched for the neighbours of a node."""
    folder = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120
    above = folder
    while True:
        if (
            os.path.basename(above) == _FOLDER  # noqa: PTH119
            or os.path.isfile(f"{above}/{_CONFIG}")  # noqa: PTH113
            or os.path.isfile(f"{above}/{_LOCK}")  # noqa: PTH113
        ):
            return above
        upper = os.path.dirname(above)  # noqa: PTH120
        if upper == above:
            return folder
        above = upper


def _list_files(root: str) -> Iterable[str]:
    for folder, _, files in os.walk(root):
        for name in files:
            if name.endswith(_SUFFIX):
                yield f"{folder}/{name}"


def _has_node_name(file: str) -> bool:
    from vesper.values.node_id import split_node_id

    return split_node_id(file.removesuffix(_SUFFIX)) is not None
