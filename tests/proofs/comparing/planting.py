"""Planted changes of nodes: one place of the text changed as an author would change it, drawn by a seed.

Seven kinds: cells of tables, bounds, operators, the order of rows, parameters and constants, rounding, null handling.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from vesper.compiler import Compiled, compile_file, compile_source
from vesper.compiler.callees import Collection, Neighbours, collection_folder
from vesper.language.diagnostics.source import SourceFile

ROOT = Path(__file__).parents[3]
_NUMBER = re.compile(r"(?<![\w.'-])\d+(?:\.\d+)?(?![\w.'-])")
_ROW = re.compile(r"^ +- (?:\{(?:when|otherwise)|\[)")
_ROUNDINGS = ("half_even", "half_up", "half_down", "up", "down", "floor", "ceiling")
_OPERATORS = {
    " + ": " - ", " - ": " + ", " * ": " + ", " / ": " * ", " AND ": " OR ", " OR ": " AND ", " == ": " != ",
    " != ": " == ", "SUM(": "MAX(", "MAX(": "MIN(", "MIN(": "MAX(", "max(": "min(", "min(": "max(",
    "FORALL": "EXISTS", "EXISTS": "FORALL",
}  # fmt: skip
_BOUNDS = {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", "positive": "non_negative",
           "non_negative": "positive", "non_empty": "{min_length: 2}"}  # fmt: skip
_NULLS = {" IS NULL": " IS NOT NULL", " IS NOT NULL": " IS NULL"}


@dataclass(frozen=True)
class Edit:
    """One replacement in a text."""

    start: int
    end: int
    text: str

    def apply(self, text: str) -> str:
        return text[: self.start] + self.text + text[self.end :]


@dataclass(frozen=True)
class Planted:
    """A node before and after a planted change."""

    kind: str
    node: str
    line: int
    before: Compiled
    after: Compiled
    was: str
    """The line before. `now` is the line after."""
    now: str


def _is_any(_line: str) -> bool:
    return True


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the offset and the text of each line before `testing:`, but for comments and prose."""
    at = 0
    for line in text.splitlines(keepends=True):
        if line.startswith("testing:"):
            return
        if not re.match(r"\s*(#|intent:|author:|tags:|message:|metadata:)", line):
            yield at, line.partition(" #")[0]
        at += len(line)


def _words(text: str, table: dict[str, str], fits: Callable[[str], bool]) -> Iterator[Edit]:
    for at, line in _lines(text):
        if fits(line):
            for word, other in table.items():
                for found in re.finditer(re.escape(word), line):
                    yield Edit(at + found.start(), at + found.end(), other)


def _numbers(text: str, fits: Callable[[str], bool]) -> Iterator[Edit]:
    for at, line in _lines(text):
        if fits(line):
            for found in _NUMBER.finditer(line):
                yield Edit(at + found.start(), at + found.end(), _next(found[0]))


def _next(number: str) -> str:
    """Return the number one unit of its last place higher."""
    whole, point, places = number.partition(".")
    digits = str(int(whole + places) + 1).rjust(len(places) + 1, "0")
    cut = len(digits) - len(places)
    return f"{digits[:cut]}{point}{digits[cut:]}"


def cells(text: str) -> Iterator[Edit]:
    yield from _numbers(text, lambda line: bool(_ROW.match(line)))


def bounds(text: str) -> Iterator[Edit]:
    yield from _words(text, _BOUNDS, lambda line: "=>" not in line)
    yield from _numbers(text, lambda line: bool(re.search(r"\b(min|max|min_length|max_length|length):", line)))


def operators(text: str) -> Iterator[Edit]:
    yield from _words(text, _OPERATORS, _is_any)


def row_order(text: str) -> Iterator[Edit]:
    """Exchange neighbouring rows."""
    lines = list(_lines(text))
    for (at, one), (other_at, other) in pairwise(lines):
        is_pair = _ROW.match(one) and _ROW.match(other) and "otherwise" not in one + other
        if is_pair and one.endswith("\n") and other.endswith("\n") and at + len(one) == other_at:
            yield Edit(at, other_at + len(other), other + one)


def parameters(text: str) -> Iterator[Edit]:
    yield from _numbers(text, lambda line: bool(re.search(r"\{type: .*value:|^ +\d{4}-\d\d-\d\d:", line)))


def rounding(text: str) -> Iterator[Edit]:
    for at, line in _lines(text):
        for found in re.finditer(r"\b(half_even|half_up|half_down|floor|ceiling)\b", line):
            for other in _ROUNDINGS:
                if other != found[0]:
                    yield Edit(at + found.start(), at + found.end(), other)
        for found in re.finditer(r"(?<=, )\d(?=, (half|floor|ceil|up|down))", line):
            yield Edit(at + found.start(), at + found.end(), _next(found[0]))


def null_handling(text: str) -> Iterator[Edit]:
    yield from _words(text, _NULLS, _is_any)
    for at, line in _lines(text):
        for found in re.finditer(r"(?<=\?\? )(\d+(\.\d+)?|'[^']*'|true|false)", line):
            old = found[0]
            new = {"true": "false", "false": "true"}.get(old) or (f"{old[:-1]}x'" if old[0] == "'" else _next(old))
            yield Edit(at + found.start(), at + found.end(), new)


KINDS = {
    "cells": cells, "bounds": bounds, "operators": operators, "row order": row_order, "parameters": parameters,
    "rounding": rounding, "null handling": null_handling,
}  # fmt: skip


@dataclass(frozen=True)
class Site:
    """A place of a node with another text."""

    kind: str
    path: Path
    edit: Edit
    text: str

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.edit.start)

    @property
    def id(self) -> str:
        was, now = (each.splitlines()[self.line].strip() for each in (self.text, self.edit.apply(self.text)))
        return f"{self.kind}: {self.path.stem}:{self.line + 1}: {was} => {now}"

    def compile(self) -> Planted | None:
        """Return both versions; None where the checker refuses the changed one."""
        before, _ = compile_file(self.path)
        changed = self.edit.apply(self.text)
        after = None if before is None else compile_changed(before, changed)
        if before is None or after is None:
            return None
        was, now = (each.splitlines()[self.line].strip() for each in (self.text, changed))
        return Planted(self.kind, before.node.node_id, self.line + 1, before, after, was, now)


def planted_sites(seed: int, nodes: list[Path]) -> Iterator[Site]:
    """Yield places to change, by kinds in turn and by nodes in turn, each place once."""
    chance = random.Random(f"planted {seed}")
    waiting: dict[str, list[Site]] = {kind: [] for kind in KINDS}
    for path in nodes:
        text = path.read_text(encoding="utf-8")
        if not text.startswith("node_id:"):
            continue  # a library
        for kind, edits in KINDS.items():
            waiting[kind] += [Site(kind, path, each, text) for each in edits(text)]
    used: dict[Path, int] = dict.fromkeys(nodes, 0)
    for each in waiting.values():
        chance.shuffle(each)
    while any(waiting.values()):
        for sites in waiting.values():
            if sites:
                # The node with the fewest changes comes next, so that the changes are spread over all.
                site = min(sites, key=lambda site: used[site.path])
                sites.remove(site)
                used[site.path] += 1
                yield site


def compile_changed(before: Compiled, text: str) -> Compiled | None:
    """Compile a changed text at the place of its node; without its cases where these no longer fit."""
    path = Path(before.source.path)
    for each in (text, text.partition("\ntesting:")[0] + "\n"):
        source = SourceFile(before.source.path, each)
        neighbours = Neighbours(Collection(collection_folder(path)), (before.node.node_id,))
        found, _ = compile_source(source, neighbours, judge_contracts=False)
        if found is not None:
            return found
    return None
