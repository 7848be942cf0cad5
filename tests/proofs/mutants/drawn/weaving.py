"""Weave drawn mutants into a copy of the direct engine: one build carries all of them.

A function with mutants gets a body for each beside its own, so that a change may be anything: a pattern, an arm, a
statement. The compiler decides which of them are Rust; those that are not are dropped, and the next ones drawn take
their places.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.proofs.faults.weave import RUNTIME, with_selection, write_copy
from tests.proofs.mutants.drawn.draw import Mutant, edited
from tests.proofs.mutants.drawn.tokens import Source, code_blocks, enclosing_block, functions
from tests.proofs.mutants.planted import build_environment

MAX_ROUNDS = 40
"""Each crate is checked for types and then for borrows, and only behind the crates that it needs."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Where a body stands in the woven file; the body of no mutant is that of the function itself."""

    start: int
    end: int
    mutants: tuple[str, ...]


def woven_file(
    file: str, text: str, mutants: Sequence[Mutant], numbers: Mapping[str, int]
) -> tuple[str, list[Variant]]:
    """Return a file with the bodies of mutants, and where they stand."""
    source = Source(text)
    by_opening = {source.tokens[each.opening].start: each for each in functions(source)}
    path = "crate" if file.startswith("vesper-ir/") else "vesper_ir"
    parts: list[str] = []
    variants: list[Variant] = []
    place = length = 0

    def add(part: str) -> tuple[int, int]:
        nonlocal length
        parts.append(part)
        length += len(part)
        return length - len(part), length

    for body in sorted({each.body for each in mutants}):
        own = [each for each in mutants if each.body == body]
        start, end = body
        add(text[place:start])
        begun, _ = add("{ ")
        for each in own:
            add(f"if {path}::fault::is_selected({numbers[each.name]}) ")
            edits = [(first - start, last - start, new) for first, last, new in each.edits]
            variants.append(Variant(*add(edited(text[start:end], edits)), (each.name,)))
            add(" else ")
        blocks = code_blocks(source, by_opening[start])
        notes = [
            (at - start, at - start, f" {path}::fault::note({numbers[each.name]});")
            for each in own
            for at in [enclosing_block(source, blocks, *each.span)]
        ]
        add(edited(text[start:end], notes))
        add(" }")
        variants.append(Variant(begun, length, tuple(each.name for each in own)))
        place = end
    add(text[place:])
    return "".join(parts), variants


@dataclass(frozen=True, slots=True)
class Woven:
    manifest: Path
    variants: dict[str, list[Variant]]
    """By the path of the file below the copy."""
    texts: dict[str, str]


def weave_mutants(mutants: Sequence[Mutant], dropped: Iterable[str], to: Path, runtime: Path = RUNTIME) -> Woven:
    """Write a copy with all mutants but the dropped ones."""
    numbers = {each.name: number for number, each in enumerate(mutants)}
    gone = set(dropped)
    texts: dict[str, str] = {}
    variants: dict[str, list[Variant]] = {}
    for file in sorted({each.file for each in mutants}):
        kept = [each for each in mutants if each.file == file and each.name not in gone]
        text = (runtime / "crates" / file).read_text(encoding="utf-8")
        texts[f"crates/{file}"], variants[f"crates/{file}"] = woven_file(file, text, kept, numbers)
    kinds = {each.name: f"{each.crate} {each.kind}" for each in mutants}
    return Woven(write_copy(with_selection(dict(texts), kinds, runtime), to), variants, texts)


def refused_mutants(woven: Woven, build: Sequence[str]) -> tuple[set[str], bool]:
    """Return the mutants that the compiler refuses, and whether all the rest compiles."""
    command = [*build, "--message-format", "json"]
    done = subprocess.run(command, env=build_environment(), capture_output=True, text=True, check=False)
    refused: set[str] = set()
    unexplained = []
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-message" and message["message"]["level"] == "error":
            found = _mutants_at(woven, message["message"]["spans"])
            refused |= found
            if not found and message["message"]["spans"]:
                unexplained.append(message["message"]["rendered"])
    if done.returncode != 0 and not refused:
        raise RuntimeError("\n".join(unexplained) or done.stderr)
    return refused, done.returncode == 0


def _mutants_at(woven: Woven, spans: list[dict[str, object]]) -> set[str]:
    """Return the mutants whose bodies an error is in; all of a function where it is in none."""
    found: set[str] = set()
    for span in sorted(spans, key=lambda each: not each["is_primary"]):
        file = next((name for name in woven.texts if str(span["file_name"]).endswith(name)), None)
        if file is None:
            continue
        # The compiler counts bytes, and the places here are of characters.
        raw = woven.texts[file].encode()
        start = len(raw[: int(str(span["byte_start"]))].decode(errors="ignore"))
        around = [each for each in woven.variants[file] if each.start <= start < each.end]
        if around:
            found |= set(min(around, key=lambda each: each.end - each.start).mutants)
            if span["is_primary"]:
                break
    return found
