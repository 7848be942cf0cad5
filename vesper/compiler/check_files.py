"""Many files checked: from the cache where it knows them, the others on all processors."""

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
"""So many files are checked sooner than a process is made for them."""
MAX_PROCESSES = 8
_ALLOCATIONS = 50_000
"""So many more objects than before are made between two searches for cycles; one node makes some thousands."""

_Result = tuple[Checked, str, Stamp | None]


def check_files(paths: Sequence[Path], cache: NodeCache | None) -> Iterator[Checked]:
    """What there is to say about each file, in the given order. The cache is saved when the last was given."""
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
    # What is said of a node that calls others depends on them too: it is not kept, and checked each time.
    sha256 = "" if b"call_node" in data else hashlib.sha256(data).hexdigest()
    return check_bytes(path.as_posix(), data), sha256, stamp


# -- processes ------------------------------------------------------------------------------------


def _check_all(paths: list[Path]) -> list[_Result]:
    """The files dealt out to processes. A share that comes to nothing is done here, where its failure can be seen."""
    count = min(MAX_PROCESSES, _processors(), len(paths) // FEW + 1)
    import vesper.compiler.pipeline  # noqa: F401  # before the processes part, so that it is loaded once

    # What a check leaves behind it has no cycles to speak of. Looking for some costs a tenth of the time, so it is done
    # seldom, and never among what was loaded before.
    gc.freeze()
    before = gc.get_threshold()
    gc.set_threshold(_ALLOCATIONS)
    try:
        return _dealt_out(paths, count)
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _dealt_out(paths: list[Path], count: int) -> list[_Result]:
    shares = [paths[first::count] for first in range(count)]
    others = [_start(share) for share in shares[1:]] if _may_fork() else [None for _ in shares[1:]]
    done = [[_check(path) for path in shares[0]]]
    for share, other in zip(shares[1:], others, strict=True):
        done.append((None if other is None else _finish(*other, share)) or [_check(path) for path in share])
    return [done[number % count][number // count] for number in range(len(paths))]


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _may_fork() -> bool:
    """A copy of a process with threads may hold a lock for ever."""
    threading = sys.modules.get("threading")
    return hasattr(os, "fork") and (threading is None or threading.active_count() == 1)


def _start(share: list[Path]) -> tuple[int, IO[bytes]]:
    # A file and not a pipe: nobody need read it while it is written.
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
