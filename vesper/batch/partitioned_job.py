"""Run files through a node in partitions, in this process or on a cluster, so that an interrupted job can continue.

The parts of the answer are in the output folder, or in `OUT.parts` until they become the one file OUT.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vesper.batch.errors import BatchError
from vesper.batch.files import FORMATS, join_parts
from vesper.batch.job import ROWS_A_PART, Progress, claim, differences
from vesper.batch.manifest import (
    NAME,
    Manifest,
    append_part,
    begin_manifest,
    complete_manifest,
    read_manifest,
)
from vesper.batch.partitions import (
    BYTES_A_PART,
    FinishedPart,
    Partition,
    RunRows,
    file_hash,
    plan_partitions,
)

_VERSION = 1
_OWN_FILES = re.compile(rf"{NAME}|part-[0-9]{{5,}}\.({'|'.join(FORMATS)})|\.(part-|{NAME}).*\.new", re.ASCII)
"""The files that a job writes into its folder. A restart removes them, and refuses a folder with others."""


@dataclass(frozen=True, slots=True)
class Work:
    """The parts that are left to run."""

    parts: Sequence[Partition]
    folder: Path
    kind: str
    start: str


RunParts = Callable[[Work], Iterable[FinishedPart]]
"""Runs parts, and yields each when it is finished, in any order."""


@dataclass(frozen=True, slots=True)
class PartitionedJob:
    """The parameters of a job; a continued job must have the same."""

    inputs: Sequence[Path]
    """Files."""
    out: Path
    """A file, or a folder for the parts."""
    kind: str
    """The format of the parts."""
    node: str
    semantic_hash: str
    options: dict[str, Any]
    start: str
    """The start of every row. A continued job keeps its first start."""
    rows: RunRows
    """Runs an empty table of the input's columns before any worker starts, so that one that does not fit is refused."""

    @property
    def is_joined(self) -> bool:
        return is_file_name(self.out)

    @property
    def folder(self) -> Path:
        return self.out.with_name(f"{self.out.name}.parts") if self.is_joined else self.out

    def do(self, is_resumed: bool, run: RunParts, tell: Callable[[Progress], None]) -> Progress:
        """Run the job, or the rest of it."""
        self._check_out()
        for each in self.inputs:
            if each.resolve() == self.out.resolve():
                raise BatchError(f"{each} is read, and is the file that is written: name another output")
            if self.folder.resolve() in each.resolve().parents:
                raise BatchError(f"{each} is read, and is in the folder that is written: name another output")
        parts, form, schema = plan_partitions(self.inputs, self.kind)
        self.rows(form, schema.empty_table())
        is_new = not self.folder.exists()
        with claim(self.folder, self.out):
            try:
                manifest = self._begun(is_resumed, parts)
                return self._done(manifest, parts, run, tell)
            except BatchError:
                if is_new and not (self.folder / NAME).exists():
                    self.folder.rmdir()
                raise

    def _check_out(self) -> None:
        if self.is_joined and self.out.is_dir():
            raise BatchError(f"{self.out} is a folder: name a file to write, or a folder without such a suffix")
        if not self.is_joined and self.out.exists() and not self.out.is_dir():
            raise BatchError(f"{self.out} is a file, and its name is that of a folder of parts")

    def _done(
        self, manifest: Manifest, parts: Sequence[Partition], run: RunParts, tell: Callable[[Progress], None]
    ) -> Progress:
        by_output = {each.output: each for each in parts}
        total = sum(each.size for each in parts)
        done = sum(by_output[name].size for name in manifest.finished)
        progress = Progress()
        for each in manifest.finished.values():
            progress.rows += each.rows
            progress.errors.update(each.errors)
        progress.resumed = progress.rows
        progress.share = done / total if total else 0.0
        tell(progress)
        left = [each for each in parts if each.output not in manifest.finished]
        for finished in run(Work(left, self.folder, self.kind, manifest.start)) if left else ():
            part = by_output[finished.output]
            append_part(self.folder / NAME, part, finished)
            manifest.finished[finished.output] = finished
            done += part.size
            progress.rows += finished.rows
            progress.errors.update(finished.errors)
            progress.share = done / total if total else 0.0
            tell(progress)
        lost = [each.output for each in parts if each.output not in manifest.finished]
        if lost:
            raise BatchError(f"{len(lost)} parts were not run, the first is {lost[0]}: continue with --resume")
        self._finish(manifest, parts)
        progress.share = 1.0
        tell(progress)
        return progress

    def _finish(self, manifest: Manifest, parts: Sequence[Partition]) -> None:
        if self.is_joined:
            join_parts([self.folder / each.output for each in parts], self.out, self.kind)
            self._remove_own_files(self.folder.iterdir())
            with contextlib.suppress(OSError):  # a file of another program is in it
                self.folder.rmdir()
            return
        self._remove_own_files(self.folder.glob(".*.new"))  # of workers that were killed
        complete_manifest(self.folder / NAME, manifest, parts)

    @staticmethod
    def _remove_own_files(files: Iterable[Path]) -> None:
        for each in list(files):
            if _OWN_FILES.fullmatch(each.name):
                each.unlink(missing_ok=True)

    # -- beginning and continuing -----------------------------------------------------------------

    def _begun(self, is_resumed: bool, parts: Sequence[Partition]) -> Manifest:
        path = self.folder / NAME
        of = self._parameters(len(parts))
        if is_resumed and path.exists():
            manifest = read_manifest(path)
            if other := differences(manifest.of, of):
                raise BatchError(
                    f"{self.folder} is of another job ({', '.join(other)}): leave --resume away to begin anew, or run "
                    "that job to its end"
                )
            outputs = {each.output for each in parts}
            recorded = [each for name, each in manifest.finished.items() if name in outputs]
            return Manifest(of, manifest.start, {each.output: each for each in recorded if self._is_intact(each)})
        there = list(self.folder.iterdir())
        foreign = next((each.name for each in there if not path.exists() or not _OWN_FILES.fullmatch(each.name)), None)
        if foreign is not None:
            raise BatchError(
                f"{self.folder} is where the parts would stand, and `{foreign}` in it is of no batch: move it away, or "
                "write to another place"
            )
        for each in there:
            each.unlink()
        begin_manifest(path, of, self.start)
        return Manifest(of, self.start, {})

    def _is_intact(self, finished: FinishedPart) -> bool:
        """Return whether the file of a finished part is there, and has the bytes that its worker wrote."""
        path = self.folder / finished.output
        return path.is_file() and file_hash(path) == finished.sha256

    def _parameters(self, parts: int) -> dict[str, Any]:
        """Return the parameters that must be unchanged when a job continues."""
        files = []
        for path in self.inputs:
            status = path.stat()
            files.append([str(path.resolve()), status.st_size, status.st_mtime_ns])
        return {
            "version": _VERSION,
            "node": self.node,
            "semantic_hash": self.semantic_hash,
            "inputs": files,
            "format": self.kind,
            "parts": parts,
            "sizes": [ROWS_A_PART, BYTES_A_PART],
            "options": hashlib.sha256(json.dumps(self.options, sort_keys=True).encode()).hexdigest(),
        }


def is_file_name(out: Path) -> bool:
    """Return whether an output is one file and no folder of parts: whether it has a suffix."""
    return bool(out.suffix) and (out.suffix.removeprefix(".").lower() in FORMATS or not out.is_dir())


def run_here(run: Callable[[Partition, Work], FinishedPart]) -> RunParts:
    """Run parts in this process, one after another."""

    def parts(work: Work) -> Iterator[FinishedPart]:
        for each in work.parts:
            yield run(each, work)

    return parts
