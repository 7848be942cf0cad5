"""Check of many files: from the cache where possible, the others on all processors."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from vesper.compiler.check_result import (
    Checked,
    check_bytes,
    diagnostic_from_data,
    diagnostic_to_data,
    node_id_from_data,
    node_id_to_data,
    unreadable_file,
)
from vesper.compiler.node_cache import NodeCache
from vesper.compiler.reading import Stamp, read_stamped
from vesper.language.diagnostics.source import SourceFile

FEW = 48
"""Number of files below which a process of its own does not pay."""
MAX_PROCESSES = 8
_ALLOCATIONS = 50_000
"""Allocations between two collections of cycles; one node makes some thousands."""

_Result = tuple[Checked, str, Stamp | None]


def check_files(paths: Sequence[Path], cache: NodeCache | None) -> Iterator[Checked]:
    """Return the diagnostics of each file, in the given order. The cache is saved after the last."""
    known = {} if cache is None else {path: found for path in paths if (found := cache.find(path)) is not None}
    unknown = [path for path in paths if path not in known]
    results = dict(zip(unknown, _check_all(unknown), strict=True)) if len(unknown) > FEW else {}
    for path in paths:
        if path in known:
            yield known[path]
            continue
        checked, sha256, stamp = results.get(path) or _check(path)
        if cache is not None:
            cache.put(checked, sha256, stamp)
        yield checked
    if cache is not None:
        cache.save()


def _check(path: Path) -> _Result:
    try:
        data, stamp = read_stamped(path)
    except OSError as error:
        return unreadable_file(path.as_posix(), error), "", None
    checked = check_bytes(path.as_posix(), data)
    # A result that depends on other files is not cached.
    return checked, "" if checked.reads_others else hashlib.sha256(data).hexdigest(), stamp


# -- processes ------------------------------------------------------------------------------------


def _check_all(paths: list[Path]) -> list[_Result]:
    """Distribute the files to processes. The share of a process that fails is checked here, where the failure shows."""
    count = min(MAX_PROCESSES, _processors(), len(paths) // FEW + 1)
    import vesper.compiler.pipeline  # noqa: F401  # before the fork, so that it is imported once

    # A check leaves few cycles behind. Collecting them takes a tenth of the time, so it is done seldom, and never
    # among objects that existed before.
    gc.freeze()
    before = gc.get_threshold()
    gc.set_threshold(_ALLOCATIONS)
    try:
        return _distribute(paths, count)
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _distribute(paths: list[Path], count: int) -> list[_Result]:
    shares = [paths[first::count] for first in range(count)]
    others = [_start(share) for share in shares[1:]] if _may_fork() else [None for _ in shares[1:]]
    done = [[_check(path) for path in shares[0]]]
    for share, other in zip(shares[1:], others, strict=True):
        done.append((None if other is None else _finish(*other, share)) or [_check(path) for path in share])
    return [done[number % count][number // count] for number in range(len(paths))]


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _may_fork() -> bool:
    """Return whether no thread could hold a lock in a forked copy."""
    threading = sys.modules.get("threading")
    return hasattr(os, "fork") and (threading is None or threading.active_count() == 1)


def _start(share: list[Path]) -> tuple[int, IO[bytes]]:
    # A file and no pipe: it needs no reader while it is written.
    results = tempfile.TemporaryFile()  # noqa: SIM115  # `_finish` closes it
    child = os.fork()
    if child:
        return child, results
    status = 1
    try:
        for path in share:
            _write(results, _check(path))
        results.flush()
        status = 0
    finally:
        os._exit(status)


def _finish(child: int, results: IO[bytes], share: list[Path]) -> list[_Result] | None:
    _, status = os.waitpid(child, 0)
    with results:
        if status != 0:
            return None
        results.seek(0)
        return [_read(results) for _ in share]


def _write(file: IO[bytes], result: _Result) -> None:
    checked, sha256, stamp = result
    diagnostics = [diagnostic_to_data(each) for each in checked.diagnostics]
    text = checked.source.text if diagnostics else ""
    ir = checked.ir or b""
    node_id = node_id_to_data(checked.node_id)
    form = [
        checked.source.path,
        text,
        diagnostics,
        checked.semantic_hash,
        len(ir),
        node_id,
        checked.about,
        sha256,
        stamp,
    ]
    file.write(json.dumps(form).encode("ascii") + b"\n" + ir)


def _read(file: IO[bytes]) -> _Result:
    form: list[Any] = json.loads(file.readline())
    path, text, diagnostics, semantic_hash, length, node_id, about, sha256, stamp = form
    ir = file.read(length) if semantic_hash is not None else None
    found = tuple(diagnostic_from_data(each) for each in diagnostics)
    checked = Checked(SourceFile(path, text), found, semantic_hash, ir, node_id_from_data(node_id), about)
    return checked, sha256, None if stamp is None else tuple(stamp)
