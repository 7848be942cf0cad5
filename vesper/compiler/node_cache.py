"""Checked nodes on disk, so that unchanged files are not checked again.

One file holds everything: a line with the compiler and the checksum of the index, the index, then the IR of the nodes.
A check of unchanged files reads the line and the index and writes nothing. A file of another compiler, a damaged one
and an absent one count as an empty cache, which the next save replaces atomically, so concurrent checks lose at most
each other's work. The cache is optional: where it cannot be read or written, nodes are checked without it.

INVARIANT: a cached result depends on the compiler, the shown path and the bytes of that one file. One that depends on
other files too, such as libraries, is not cached.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from vesper.cache.fingerprint import stamps
from vesper.compiler.check_result import (
    Checked,
    diagnostic_from_data,
    diagnostic_to_data,
    node_id_from_data,
    node_id_to_data,
)
from vesper.compiler.reading import Stamp, read_stamped, stamp_of
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.storage.file_access import make_private_folder

FORMAT = "vesper-checked-3"
MAX_NODES = 50_000
MAX_IR_BYTES = 64 * 1024 * 1024
_FRONT_END = ("compiler", "language", "values")


@dataclass(slots=True)
class _Entry:
    stamp: Stamp | None
    """None where the file was too new to be recognised by its stamp."""
    sha256: str
    semantic_hash: str | None
    diagnostics: list[Any]
    node_id: tuple[str, Span] | None
    about: dict[str, Any] | None
    ir_at: tuple[int, int, int] | None = None
    """Offset in the file of the cache, length and checksum."""
    new_ir: bytes | None = None


def cache_path(nodes: Path) -> Path | None:
    """Return `.vesper/cache/checked` beside the folder of nodes; None where there is no such folder."""
    return Path(nodes).absolute().resolve().parent / ".vesper" / "cache" / "checked" if nodes.is_dir() else None


def compiler_fingerprint() -> str:
    """Return a hash that changes with the front end and Python. Reads no file."""
    package = Path(__file__).parents[1]
    folders = [package / name for name in _FRONT_END]
    seen: list[object] = [FORMAT, sys.version]
    for folder in folders:
        found = stamps(str(folder))
        seen += [(os.path.relpath(place, package), *rest) for place, *rest in found]
    return hashlib.sha256(repr(seen).encode()).hexdigest()


class NodeCache:
    """The entries of one cache file, by shown path. `save` writes them when something changed."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._compiler = compiler_fingerprint()
        self._entries: dict[str, _Entry] = {}
        self._handle: int | None = None
        self._changed = False
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            self._load()

    # -- asking -----------------------------------------------------------------------------------

    def find(self, path: Path) -> Checked | None:
        """Return the result of an earlier check of the same bytes, or None."""
        shown = path.as_posix()
        entry = self._entries.get(shown)
        if entry is None:
            return None
        try:
            if not entry.diagnostics and entry.stamp is not None and entry.stamp == stamp_of(shown):
                return Checked(SourceFile(shown, ""), (), entry.semantic_hash, None, entry.node_id, entry.about)
            data, stamp = read_stamped(path)
        except OSError:
            return None
        if hashlib.sha256(data).hexdigest() != entry.sha256:
            return None
        if stamp != entry.stamp:
            entry.stamp = stamp
            self._changed = True
        try:
            diagnostics = tuple(diagnostic_from_data(each) for each in entry.diagnostics)
        except (ValueError, TypeError, KeyError):
            return None
        source = SourceFile(shown, data.decode("utf-8"))
        return Checked(source, diagnostics, entry.semantic_hash, None, entry.node_id, entry.about)

    def ir(self, path: Path) -> bytes | None:
        """Return the IR of a cached node, or None. `find` tells whether the node is unchanged."""
        entry = self._entries.get(path.as_posix())
        return None if entry is None else self._ir(entry)

    def _ir(self, entry: _Entry) -> bytes | None:
        if entry.new_ir is not None or entry.ir_at is None or self._handle is None:
            return entry.new_ir
        offset, length, checksum = entry.ir_at
        with contextlib.suppress(OSError, OverflowError):
            data = os.pread(self._handle, length, offset)
            if len(data) == length and zlib.crc32(data) == checksum:
                return data
        return None

    # -- telling ----------------------------------------------------------------------------------

    def put(self, checked: Checked, sha256: str, stamp: Stamp | None) -> None:
        """Store the result of a check.

        An unreadable file is not stored: its text is not available to show. A result without a hash depends on more
        than its bytes, and is not stored.
        """
        shown = checked.source.path
        self._entries.pop(shown, None)  # the newest come last
        without_text = (Code.UNREADABLE_FILE, Code.NOT_A_NODE)
        if not sha256 or any(diagnostic.code in without_text for diagnostic in checked.diagnostics):
            return
        diagnostics = [diagnostic_to_data(each) for each in checked.diagnostics]
        self._entries[shown] = _Entry(
            stamp, sha256, checked.semantic_hash, diagnostics, checked.node_id, checked.about, None, checked.ir
        )
        self._changed = True

    def save(self) -> None:
        """Replace the file, if there is something new, atomically."""
        if not self._changed:
            return
        with contextlib.suppress(OSError):
            self._save()
        self._changed = False

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- the file ---------------------------------------------------------------------------------

    def _load(self) -> None:
        self._handle = os.open(self._file, os.O_RDONLY | os.O_CLOEXEC)
        head = os.pread(self._handle, 512, 0).split(b"\n", 1)[0]
        name, compiler, length, checksum = head.decode("ascii").split(" ")
        if (name, compiler) != (FORMAT, self._compiler):
            return
        index = os.pread(self._handle, int(length), len(head) + 1)
        if hashlib.sha256(index).hexdigest() != checksum:
            return
        base = len(head) + 1 + len(index)
        self._entries = {shown: _entry_from_data(form, base) for shown, form in json.loads(index).items()}

    def _save(self) -> None:
        kept = dict(list(self._entries.items())[-MAX_NODES:])
        blobs: dict[str, bytes] = {}
        size = 0
        for shown, entry in reversed(kept.items()):
            ir = self._ir(entry)
            if ir is not None and size + len(ir) <= MAX_IR_BYTES:
                size += len(ir)
                blobs[shown] = ir
        index: dict[str, list[Any]] = {}
        offset = 0
        for shown, entry in kept.items():
            place = None
            if (blob := blobs.get(shown)) is not None:
                place = (offset, len(blob), zlib.crc32(blob))
                offset += len(blob)
            node_id = node_id_to_data(entry.node_id)
            facts = [entry.stamp, entry.sha256, entry.semantic_hash, entry.diagnostics, node_id, entry.about]
            index[shown] = [*facts, place]
        text = json.dumps(index, ensure_ascii=True, separators=(",", ":")).encode("ascii")
        head = f"{FORMAT} {self._compiler} {len(text)} {hashlib.sha256(text).hexdigest()}\n".encode("ascii")
        self._replace([head, text, *(blobs[shown] for shown in kept if shown in blobs)])

    def _replace(self, parts: list[bytes]) -> None:
        folder = self._file.parent
        make_private_folder(folder)
        ignore = folder.parent / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="ascii")
        handle, name = tempfile.mkstemp(prefix=".checked-", dir=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(parts)
            os.replace(name, self._file)  # noqa: PTH105  # the name is a string already
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)  # noqa: PTH108  # the same
            raise


def _entry_from_data(form: list[Any], base: int) -> _Entry:
    stamp, sha256, semantic_hash, diagnostics, node_id, about, place = form
    ir_at = None if place is None else (base + place[0], place[1], place[2])
    known = None if stamp is None else tuple(stamp)
    return _Entry(known, sha256, semantic_hash, diagnostics, node_id_from_data(node_id), about, ir_at)
