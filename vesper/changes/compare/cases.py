"""Witnesses as cases: added to one of the compared nodes, or as a new file of cases."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from vesper.changes.compare.comparing import CompareResult
from vesper.changes.compare.versions import Version
from vesper.changes.compare.witness import Witness
from vesper.compiler import compile_source
from vesper.language.diagnostics.source import SourceFile
from vesper.migration.compare.rerun_from_log import Given, LoggedCompletion
from vesper.replay.divergence_case import CannotKeep, given_case, text_with_lines
from vesper.storage.write_file import create_text, write_bytes

__all__ = ["CannotKeep", "KeptCases", "keep_witnesses"]


@dataclass
class KeptCases:
    count: int = 0
    notes: list[str] = field(default_factory=list)
    """Why some witnesses are no cases."""


def keep_witnesses(result: CompareResult, path: Path) -> KeptCases:
    """Write witnesses as cases with the outcome of one version: the node at the path, else the version after.

    Raises `CannotKeep`; then nothing was written.
    """
    pair, kept = result.pair, KeptCases()
    own = next((each for each in pair.versions if _is_file(each, path)), None)
    version = own or pair.after
    cases = [_lines(version, each, number, result, kept) for number, each in enumerate(result.witnesses, start=1)]
    written = [each for each in cases if each]
    kept.count = len(written)
    if not written:
        return kept
    if own is not None:
        write_bytes(path, _with_cases(own, written).encode())
        return kept
    lines = [
        f"# Cases of {version.node.node_id}",
        "testing:",
        "  test_cases:",
        *(line for each in written for line in each),
    ]
    try:
        create_text(path, "\n".join(lines) + "\n", is_private=True)
    except FileExistsError:
        raise CannotKeep(f"{path} exists and is none of the two nodes: name a new file, or one of the nodes") from None
    except OSError as error:
        raise CannotKeep(f"{path}: {error.strerror or error}") from None
    return kept


def _is_file(version: Version, path: Path) -> bool:
    own = Path(version.compiled.source.path)
    return path.exists() and own.exists() and own.samefile(path)


def _with_cases(version: Version, cases: list[list[str]]) -> str:
    compiled = version.compiled
    for lines in cases:
        text = text_with_lines(compiled, lines)
        changed, _ = compile_source(SourceFile(compiled.source.path, text))
        assert changed is not None, "a text with a case was checked"
        compiled = changed
    return compiled.source.text


def _lines(version: Version, witness: Witness, number: int, result: CompareResult, kept: KeptCases) -> list[str]:
    pair, given = result.pair, witness.given
    other = pair.after if version is pair.before else pair.before
    completions = witness.run.before if version is pair.before else witness.run.after
    paths = [each.path for each in completions.requests]
    answers = tuple(
        LoggedCompletion(path, each.value, each.failure) for path, each in zip(paths, completions.answers, strict=True)
    )
    name = f"differs from {other.node.node_id} ({result.seed}.{number})"
    comment = f"found by vesper compare: {witness.changed.where} differs from {other.node.node_id}"
    stored = Given(version.own_inputs(given.inputs), given.now if pair.reads_now else None, answers)
    try:
        return given_case(version.compiled, stored, name, comment)
    except CannotKeep as problem:
        kept.notes.append(f"witness {number} is no case: {problem}")
        return []
