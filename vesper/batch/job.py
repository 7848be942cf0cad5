"""A file through a node into a file: in parts, so that what was stopped goes on where it was.

Beside the file that is written stands a folder while the job lasts: the parts that are done, and `state.json`, which
says of what. A part is written before the state says so, and a part that the state does not know is written anew. At
the end the parts become one file, and the folder goes.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vesper.batch.errors import BatchError
from vesper.batch.files import Source, format_of, join_parts, open_source, write_part

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_A_PART = 262_144
"""What is held in memory at a time, and what is done again at most."""

_VERSION = 1
_OURS = re.compile(r"state\.(json|new)|[0-9]{6}\.[a-z]+|\.[0-9]{6}\.[a-z]+\.new", re.ASCII)
"""What a job writes into its folder. Beginning anew empties it, so nothing else may stand there."""


@dataclass(slots=True)
class Progress:
    """How far a job is."""

    rows: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    """By kind and code: `failed bad_input`."""
    share: float = 0.0
    """How much of the file was read, from 0 to 1."""
    resumed: int = 0
    """How many of the rows an earlier run had done."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be done, and with what: a job that goes on must be the same."""

    source: Path
    out: Path
    node: str
    semantic_hash: str
    options: dict[str, Any]
    start: str
    """When every row begins. A job that goes on keeps the time at which it began first."""
    run: Callable[[Source, pa.Table, str], pa.Table]
    error_column: str = "error"
    rows_a_part: int = ROWS_A_PART

    @property
    def folder(self) -> Path:
        return self.out.with_name(f"{self.out.name}.parts")

    def do(self, is_resumed: bool, tell: Callable[[Progress], None]) -> Progress:
        """Run all of it, or what is left of it."""
        kind = format_of(self.out)
        source = open_source(self.source)
        if self.out.is_dir():
            raise BatchError(f"{self.out} is a folder: name a file to write")
        with self._claimed():
            state = self._begun(is_resumed)
            try:
                return self._done(source, state, kind, tell)
            except BatchError:
                if not state["done"]:  # there is nothing to go on with
                    shutil.rmtree(self.folder, ignore_errors=True)
                raise

    @contextmanager
    def _claimed(self) -> Iterator[None]:
        """The folder for this job alone, as long as it lasts: beginning anew empties it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BatchError(f"another process is writing {self.out}: let it come to its end, or stop it") from None
            yield
        finally:
            os.close(handle)

    def _done(self, source: Source, state: dict[str, Any], kind: str, tell: Callable[[Progress], None]) -> Progress:
        progress = Progress()
        for done in state["done"]:
            progress.rows += done["rows"]
            progress.errors.update(done["errors"])
        progress.resumed = progress.rows
        progress.share = progress.rows / source.rows if source.rows else 0.0
        tell(progress)
        for table in source.parts(progress.rows, self.rows_a_part):
            answer = self.run(source, table, state["start"])
            write_part(self._part(len(state["done"]), kind), answer, kind)
            errors = _errors(answer.column(self.error_column))
            state["done"].append({"rows": table.num_rows, "errors": dict(errors)})
            self._write(state)
            progress.rows += table.num_rows
            progress.errors.update(errors)
            progress.share = progress.rows / source.rows if source.rows else source.read.share
            tell(progress)
        progress.share = 1.0
        tell(progress)
        join_parts([self._part(number, kind) for number in range(len(state["done"]))], self.out, kind)
        shutil.rmtree(self.folder)
        return progress

    def _part(self, number: int, kind: str) -> Path:
        return self.folder / f"{number:06}.{kind}"

    def _same(self) -> dict[str, Any]:
        """What must not have changed when a job goes on."""
        status = self.source.stat()
        return {
            "version": _VERSION,
            "source": str(self.source.resolve()),
            "size": status.st_size,
            "changed": status.st_mtime_ns,
            "node": self.node,
            "semantic_hash": self.semantic_hash,
            "rows_a_part": self.rows_a_part,
            "options": hashlib.sha256(json.dumps(self.options, sort_keys=True).encode()).hexdigest(),
        }

    def _begun(self, is_resumed: bool) -> dict[str, Any]:
        path = self.folder / "state.json"
        same = self._same()
        if is_resumed and path.exists():
            state = self._read(path)
            other = dict.fromkeys(
                _WORDS.get(name, name) for name, value in same.items() if state["of"].get(name) != value
            )
            if other:
                raise BatchError(
                    f"{self.folder} is of another job ({', '.join(other)}): leave --resume away to begin anew, or run "
                    "that job to its end"
                )
            kind = format_of(self.out)
            lost = next((n for n in range(len(state["done"])) if not self._part(n, kind).is_file()), None)
            if lost is not None:
                raise BatchError(f"{self._part(lost, kind)} is gone: leave --resume away to begin anew")
            return state
        there = list(self.folder.iterdir())
        foreign = next((each.name for each in there if not _OURS.fullmatch(each.name)), None)
        if foreign is not None:
            raise BatchError(
                f"{self.folder} is where the parts of {self.out.name} would stand, and `{foreign}` in it is of no "
                "batch: move it away, or write to another file"
            )
        for each in there:
            each.unlink()
        state = {"of": same, "start": self.start, "done": []}
        self._write(state)
        return state

    def _read(self, path: Path) -> dict[str, Any]:
        """What `state.json` says. A person may have touched it: what is no state is refused before anything is run."""
        try:
            state: Any = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise BatchError(f"{path} is damaged ({error}): leave --resume away to begin anew") from None
        match state:
            case {"of": dict(), "start": str(), "done": [*done]} if all(map(_is_done, done)):
                found: dict[str, Any] = state
                return found
            case _:
                raise BatchError(f"{path} is damaged: leave --resume away to begin anew")

    def _write(self, state: dict[str, Any]) -> None:
        path = self.folder / "state.json"
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(state), encoding="utf-8")
        temporary.replace(path)


_WORDS = {
    "source": "it reads another file",
    "size": "the file that it reads has changed",
    "changed": "the file that it reads has changed",
    "node": "it runs another node",
    "semantic_hash": "the node has changed",
    "options": "its options differ",
}


def _is_done(part: object) -> bool:
    match part:
        case {"rows": int(), "errors": dict(errors)}:
            return all(type(count) is int for count in errors.values())
        case _:
            return False


def _errors(column: pa.ChunkedArray) -> Counter[str]:
    """How many rows have an error, by its kind and code."""
    if column.null_count == len(column):
        return Counter()
    from pyarrow import compute  # not part of pyarrow until somebody imports it

    named = compute.binary_join_element_wise(
        compute.struct_field(column, "kind"), compute.struct_field(column, "code"), " "
    )
    counted = compute.value_counts(compute.drop_null(named)).to_pylist()
    return Counter({each["values"]: each["counts"] for each in counted})
