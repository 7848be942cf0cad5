"""Weave the planted faults into a copy of the Rust engine.

    python -m tests.proofs.faults.weave           write the copy to .proofs/faults/direct_runtime
    python -m tests.proofs.faults.weave --check   only check that every fault matches its place exactly once

Each `*.toml` file beside this one lists faults: the source text to find, the expression in it that is right, and the
wrong expression (docs/how-to/plant-faults.md). In the copy every right expression becomes
`planted!(name, right, wrong)`, so that one build carries all faults and selects one at run time. The sources that users
build have neither the macro nor the selection; both are in `rust/`.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDER = Path(__file__).parent
RUNTIME = ROOT / "direct_runtime"
WOVEN = ROOT / ".proofs" / "faults" / "direct_runtime"

_REQUIRED = {"name", "file", "find", "wrong"}
_OPTIONAL = {"kind", "right"}
_NOT_COPIED = {"target", "fuzz"}


class WeavingError(ValueError):
    """Lists the faults that do not fit the sources, one a line."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place of the sources where a fault is planted; some faults have several."""

    name: str
    kind: str | None
    """Stands at the first place of a fault only."""
    file: str
    """Below `direct_runtime/crates`."""
    find: str
    right: str
    wrong: str

    def span(self, text: str) -> tuple[int, int]:
        """Return where the right expression stands. Raises `WeavingError` unless it is there exactly once."""
        for what, within, label in ((self.find, text, self.file), (self.right, self.find, "its `find`")):
            count = within.count(what)
            if count != 1:
                raise WeavingError(f"{self.name}: found {count} times in {label} instead of once: {what.strip()}")
        start = text.index(self.find) + self.find.index(self.right)
        return start, start + len(self.right)

    def macro(self, right: str) -> str:
        path = "crate" if self.file.startswith("vesper-ir/") else "vesper_ir"
        return f'{path}::planted!("{self.name}", {right}, {self.wrong})'


@dataclass(frozen=True, slots=True)
class Hook:
    """Text that only the copy has: behind `after`, which must match exactly once, or at the end of the file."""

    file: str
    text: str
    after: str | None = None

    def added_to(self, text: str) -> str:
        if self.after is None:
            return text + self.text
        count = text.count(self.after)
        if count != 1:
            raise WeavingError(f"found {count} times in {self.file} instead of once: {self.after.strip()}")
        return text.replace(self.after, self.after + self.text)


def read_places(folder: Path = FOLDER) -> list[Place]:
    """Read every fault. Raises `WeavingError` for fields that are missing or unknown, and for kinds named twice."""
    places = []
    for path in sorted(folder.glob("*.toml")):
        for number, entry in enumerate(tomllib.loads(path.read_text(encoding="utf-8"))["fault"], start=1):
            wrong_fields = (_REQUIRED - set(entry)) | (set(entry) - _REQUIRED - _OPTIONAL)
            if wrong_fields:
                named = entry.get("name", f"entry {number}")
                raise WeavingError(f"{named} in {path.name}: missing or unknown: {', '.join(sorted(wrong_fields))}")
            places.append(Place(**{"kind": None, "right": entry["find"], **entry}))
    kinds = Counter(each.name for each in places if each.kind is not None)
    wrong = [f"{name}: has {kinds[name]} kinds, not one" for name in {each.name for each in places} if kinds[name] != 1]
    if wrong:
        raise WeavingError("\n".join(sorted(wrong)))
    return places


def kinds_of(places: Iterable[Place]) -> dict[str, str]:
    """Return the name and the kind of every fault."""
    return {each.name: each.kind for each in places if each.kind is not None}


def woven_files(places: Iterable[Place], runtime: Path = RUNTIME) -> dict[str, str]:
    """Return the sources with faults in them, by their path below the workspace.

    Raises `WeavingError` with every fault that does not match its place exactly once.
    """
    by_file: dict[str, list[Place]] = {}
    for each in places:
        by_file.setdefault(each.file, []).append(each)
    files, wrong = {}, []
    for file, planted in by_file.items():
        path = runtime / "crates" / file
        if not path.is_file():
            wrong += [f"{each.name}: there is no {file}" for each in planted]
            continue
        try:
            files[f"crates/{file}"] = _with_faults(path.read_text(encoding="utf-8"), planted)
        except WeavingError as error:
            wrong.append(str(error))
    if wrong:
        raise WeavingError("\n".join(wrong))
    return files


def _with_faults(text: str, planted: list[Place]) -> str:
    spans, wrong = [], []
    for each in planted:
        try:
            spans.append((*each.span(text), each))
        except WeavingError as error:
            wrong.append(str(error))
    spans.sort(key=lambda span: span[:2])
    for (_, end, each), (start, _, other) in pairwise(spans):
        if start < end:
            wrong.append(f"{each.name} and {other.name} overlap in {each.file}")
    if wrong:
        raise WeavingError("\n".join(wrong))
    for start, end, each in reversed(spans):
        text = text[:start] + each.macro(text[start:end]) + text[end:]
    return text


def _hooks(kinds: Mapping[str, str]) -> tuple[dict[str, str], list[Hook]]:
    """Return the files that only the copy has, and the texts added to others."""
    rust = {path.name: path.read_text(encoding="utf-8") for path in (FOLDER / "rust").iterdir()}
    listed = "".join(f'    ("{name}", "{kind}"),\n' for name, kind in kinds.items())
    names = f"\n/// The name and the kind of every fault.\npub const FAULTS: &[(&str, &str)] = &[\n{listed}];\n"
    # The tests of the selection name two of the planted faults.
    tests = rust["fault_tests.rs"] if "integer.add_wraps" in kinds else ""
    files = {
        "crates/vesper-ir/src/fault.rs": rust["fault.rs"] + names + tests,
        "crates/vesper-py/src/selection.rs": rust["selection.rs"],
    }
    exported = "    #[pymodule_export]\n    use super::selection::{faults, note_reached, reached, select_fault};\n"
    hooks = [
        Hook("Cargo.toml", rust["profile.toml"]),
        Hook("crates/vesper-ir/src/lib.rs", "pub mod fault;\n", after="pub mod effect;\n"),
        Hook("crates/vesper-jit/tests/programs.rs", rust["jit_test.rs"]),
        Hook("crates/vesper-py/src/lib.rs", "mod selection;\n", after="mod routing;\n"),
        Hook("crates/vesper-py/src/lib.rs", exported, after="mod _direct {\n"),
    ]
    return files, hooks


def check(places: list[Place], runtime: Path = RUNTIME) -> dict[str, str]:
    """Return the files of the copy that differ from the sources. Raises `WeavingError` where one does not fit."""
    return with_selection(woven_files(places, runtime), kinds_of(places), runtime)


def with_selection(files: dict[str, str], kinds: Mapping[str, str], runtime: Path = RUNTIME) -> dict[str, str]:
    """Return changed sources together with what selects one of these faults at run time."""
    added, hooks = _hooks(kinds)
    for hook in hooks:
        text = files.get(hook.file) or (runtime / hook.file).read_text(encoding="utf-8")
        files[hook.file] = hook.added_to(text)
    return {**files, **added}


def weave(to: Path = WOVEN, folder: Path = FOLDER) -> Path:
    """Write the copy with the faults of a folder, and return its manifest."""
    return write_copy(check(read_places(folder)), to)


def write_copy(changed: Mapping[str, str], to: Path) -> Path:
    """Write a copy of the workspace with changed files, and return its manifest.

    An unchanged file keeps its modification time, so that cargo compiles only what depends on a change.
    """
    contents = {path: text.encode() for path, text in changed.items()}
    for path in RUNTIME.rglob("*"):
        relative = path.relative_to(RUNTIME)
        if path.is_file() and relative.parts[0] not in _NOT_COPIED:
            contents.setdefault(relative.as_posix(), path.read_bytes())
    for path in [path for path in to.rglob("*") if path.is_file()]:
        if path.relative_to(to).as_posix() not in contents:
            path.unlink()
    for name, content in contents.items():
        path = to / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return to / "Cargo.toml"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    try:
        if options.check:
            places = read_places()
            check(places)
            print(f"{len(kinds_of(places))} faults match their {len(places)} places")
        else:
            print(weave())
    except WeavingError as error:
        print(f"{error}\nrepair the entries in {FOLDER.relative_to(ROOT)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
