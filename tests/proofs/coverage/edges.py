"""Edges of the instrumented extension: which were taken, and where each is in the sources.

Sets of edges are integers with a bit per edge, so that union and difference of 100,000 edges take microseconds.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.proofs.coverage.build import CRATES, LIBRARY, WORK

_CRATE = re.compile(r"direct_runtime/crates/vesper-(\w+)/src/(.*)")


@dataclass(frozen=True, slots=True)
class Place:
    """Where an edge is in the sources."""

    crate: str
    file: str
    """Below `src` of the crate."""
    line: int
    column: int
    function: str
    """Its name with its modules, without type arguments."""


class Counters:
    """The counters of this process, in which the instrumented extension is loaded."""

    def __init__(self) -> None:
        library = ctypes.CDLL(str(LIBRARY))
        count = ctypes.c_size_t.in_dll(library, "coverage_count").value
        start = ctypes.c_void_p.in_dll(library, "coverage_counters").value
        places = ctypes.c_void_p.in_dll(library, "coverage_places").value
        if start is None or places is None:
            raise RuntimeError("the extension that is loaded has no counters")
        self.count = count
        self._bytes = (ctypes.c_ubyte * count).from_address(start)
        self._places = (ctypes.c_size_t * (2 * count)).from_address(places)

    def take(self) -> int:
        """Return the edges taken since the last call, and forget them."""
        taken = edges_of(bytes(self._bytes))
        ctypes.memset(self._bytes, 0, self.count)
        return taken

    def addresses(self, extension: Path) -> list[int]:
        """Return the address of each edge in the file of the extension."""
        base = _load_address(extension)
        return [self._places[2 * index] - base for index in range(self.count)]


def edges_of(counters: bytes) -> int:
    """Return the set of edges whose counter is not zero."""
    # One binary digit for each counter, the first counter last: its bit is bit 0.
    digits = counters[::-1].translate(_DIGITS)
    return int(digits, 2) if digits else 0


_DIGITS = bytes([ord("0"), *(ord("1") for _ in range(255))])


def members(edges: int) -> list[int]:
    """Return the indices of a set of edges, in ascending order."""
    return [index for index, digit in enumerate(reversed(f"{edges:b}")) if digit == "1"]


def _load_address(extension: Path) -> int:
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[5] == str(extension.resolve()):
            return int(fields[0].split("-")[0], 16) - int(fields[2], 16)
    raise RuntimeError(f"{extension} is not loaded")


def read_places(counters: Counters, extension: Path) -> list[Place | None]:
    """Return the place of every edge; None for code of other crates and of the standard library.

    The answer of the symbolizer is kept beside the build.
    """
    digest = hashlib.sha256(extension.read_bytes()).hexdigest()[:16]
    kept = WORK / f"places_{digest}.json"
    if not kept.is_file():
        found = symbolise(counters.addresses(extension), extension)
        kept.write_text(json.dumps([None if each is None else _fields(each) for each in found]), encoding="utf-8")
    return [None if each is None else Place(*each) for each in json.loads(kept.read_text(encoding="utf-8"))]


def _fields(place: Place) -> list[str | int]:
    return [place.crate, place.file, place.line, place.column, place.function]


def symbolise(addresses: Sequence[int], extension: Path) -> list[Place | None]:
    """Return the place of every address, by `llvm-symbolizer`: `addr2line` reports no columns."""
    command = ["llvm-symbolizer", f"--obj={extension}", "--output-style=JSON", "--inlines", "--demangle"]
    given = "".join(f"{address:#x}\n" for address in addresses)
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    found = [json.loads(line).get("Symbol", ()) for line in done.stdout.splitlines()]
    if len(found) != len(addresses):
        raise RuntimeError(f"llvm-symbolizer answered {len(found)} of {len(addresses)} addresses")
    return [place_of(frames) for frames in found]


def place_of(frames: Iterable[Mapping[str, Any]]) -> Place | None:
    """Return the innermost frame that is in one of our crates; frames are inlined calls, innermost first.

    Code of the standard library counts where ours calls it. Line 0 is code that the compiler added.
    """
    for frame in frames:
        found = _CRATE.search(frame["FileName"])
        if found is not None and found[1] in CRATES and frame["Line"]:
            return Place(found[1], found[2], frame["Line"], frame["Column"], short_name(frame["FunctionName"]))
    return None


def short_name(function: str) -> str:
    """Return the name of a function with its type or module, without hash and type arguments."""
    name = re.sub(r"::h[0-9a-f]{16}$", "", function)
    for written, meant in _MANGLED:
        name = name.replace(written, meant)
    implemented = re.match(r"_?<(?:impl )?&?(?:mut )?([\w:]+)[^>]*(?:<.*>)?[^>]*>::", name)
    if implemented:
        name = f"{implemented[1]}::{name[implemented.end() :]}"
    previous = ""
    while previous != name:
        previous, name = name, re.sub(r"(::)?<[^<>]*>", "", name)
    return "::".join([each for each in name.split("::") if each][-2:])


_MANGLED = (
    ("$LT$", "<"),
    ("$GT$", ">"),
    ("$u20$", " "),
    ("$RF$", "&"),
    ("$C$", ","),
    ("$u7b$", "{"),
    ("$u7d$", "}"),
    ("..", "::"),
)
