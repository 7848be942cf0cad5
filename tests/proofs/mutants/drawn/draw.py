"""Draw mutants of the direct engine: a share for each crate by its lines, and for each kind of change in turn."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.proofs.mutants.drawn.changes import Edit, changes
from tests.proofs.mutants.drawn.tokens import Function, Source, functions

_LEFT_OUT = (
    *("vesper-sandbox/", "vesper-ir/src/generated/", "vesper-ir/src/unicode/tables.rs"),
    *("vesper-host/", "vesper-py/src/host"),
)
"""The filter of system calls, tables generated from `schemas/`, and the Host, which no two engines differ in."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one line or a few, which a person could have made by mistake."""

    name: str
    """Hash of file, line and change, which moving the line does not alter."""
    kind: str
    file: str
    """Below `direct_runtime/crates`."""
    function: str
    body: tuple[int, int]
    """Start and end of the braces of the function."""
    edits: tuple[Edit, ...]
    line: int
    before: str
    """The lines as they are."""
    after: str

    @property
    def crate(self) -> str:
        return self.file.partition("/")[0]

    @property
    def span(self) -> tuple[int, int]:
        return self.edits[0][0], self.edits[-1][1]


def source_files(crates: Path) -> list[Path]:
    """Return the sources that mutants are drawn from."""
    return [
        path
        for path in sorted(crates.glob("*/src/**/*.rs"))
        if path.name != "tests.rs"
        and "tests" not in path.parts[len(crates.parts) :]
        and not path.relative_to(crates).as_posix().startswith(_LEFT_OUT)
    ]


def candidates(file: str, text: str) -> list[Mutant]:
    """Return every mutant of a file, in the order of their places."""
    source = Source(text)
    seen = Counter[str]()
    found = []
    for function in functions(source):
        for change in changes(source, function):
            before, after = _shown(text, change.edits)
            label = f"{file}\n{function.name}\n{before}\n{after}"
            seen[label] += 1
            name = hashlib.sha256(f"{label}\n{seen[label]}".encode()).hexdigest()[:10]
            line = text.count("\n", 0, change.edits[0][0]) + 1
            body = _braces(source, function)
            found.append(Mutant(name, change.kind, file, function.name, body, change.edits, line, before, after))
    return found


def _braces(source: Source, function: Function) -> tuple[int, int]:
    return source.tokens[function.opening].start, source.tokens[function.closing].end


def _shown(text: str, edits: tuple[Edit, ...]) -> tuple[str, str]:
    """Return the lines of a change before and after it."""
    start = text.rfind("\n", 0, edits[0][0]) + 1
    end = text.find("\n", edits[-1][1])
    before = text[start:end]
    after = edited(before, [(first - start, last - start, new) for first, last, new in edits])
    return _joined(before), _joined(after)


def _joined(lines: str) -> str:
    return " ⏎ ".join(line.strip() for line in lines.split("\n") if line.strip())


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with edits that do not overlap."""
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def shares(lines: Mapping[str, int], count: int) -> dict[str, int]:
    """Return how many of `count` each crate gets by its lines; the largest remainders are rounded up."""
    total = sum(lines.values())
    exact = {crate: number * count / total for crate, number in lines.items()}
    given = {crate: int(share) for crate, share in exact.items()}
    by_remainder = sorted(exact, key=lambda crate: (given[crate] - exact[crate], crate))
    for crate in by_remainder[: count - sum(given.values())]:
        given[crate] += 1
    return given


def draw(crates: Path, seed: int) -> tuple[dict[str, list[Mutant]], dict[str, int]]:
    """Return every crate's mutants in the order of drawing, and its lines.

    Kinds take turns, so that each is drawn alike however often it is found. No two mutants overlap.
    """
    by_crate: dict[str, list[Mutant]] = {}
    lines = Counter[str]()
    for path in source_files(crates):
        file, text = path.relative_to(crates).as_posix(), path.read_text(encoding="utf-8")
        by_crate.setdefault(file.partition("/")[0], []).extend(candidates(file, text))
        lines[file.partition("/")[0]] += text.count("\n")
    return {crate: _in_turns(found, f"{seed} {crate}") for crate, found in sorted(by_crate.items())}, dict(lines)


def _in_turns(found: list[Mutant], seed: str) -> list[Mutant]:
    """Return mutants in an order by their names, so that a change of other lines draws the same ones."""
    waiting: dict[str, list[Mutant]] = {}
    for each in sorted(found, key=lambda each: hashlib.sha256(f"{seed} {each.name}".encode()).digest()):
        waiting.setdefault(each.kind, []).append(each)
    drawn: list[Mutant] = []
    taken: dict[str, list[tuple[int, int]]] = {}
    kinds = sorted(waiting, key=lambda kind: hashlib.sha256(f"{seed} {kind}".encode()).digest())
    while any(waiting.values()):
        for kind in kinds:
            while waiting[kind]:
                each = waiting[kind].pop(0)
                spans = taken.setdefault(each.file, [])
                if not any(each.span[0] <= end and start <= each.span[1] for start, end in spans):
                    spans.append(each.span)
                    drawn.append(each)
                    break
    return drawn
