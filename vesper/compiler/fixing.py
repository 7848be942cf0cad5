"""Verification of fixes, and their application to a text.

A fix counts as safe only after the fixed node has been checked: with an error left on a line that the fix changed, it
is a suggestion and is not applied. Nothing here writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from vesper.compiler.check_result import Checked, check_bytes
from vesper.language.diagnostics.diagnostic import Diagnostic, Severity
from vesper.language.diagnostics.fix import Edit, Fix, Safety, apply_edits, can_be_applied_together
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax.repairs import with_fix

_MAX_ROUNDS = 100
"""Limit on rounds of fixes. YAML reports its first error only, so each error of syntax takes a round."""

Check: TypeAlias = Callable[[SourceFile], Checked]


def _check(source: SourceFile) -> Checked:
    """Check a text among the files on disk."""
    return check_bytes(source.path, source.text.encode("utf-8"))


@dataclass(frozen=True, slots=True)
class AppliedFix:
    """An applied fix and its place."""

    code: str
    path: str
    line: int
    column: int
    description: str


@dataclass(frozen=True, slots=True)
class RepairedText:
    """A text after its fixes, and its remaining diagnostics."""

    source: SourceFile
    diagnostics: tuple[Diagnostic, ...]
    is_wrong: bool
    applied: tuple[AppliedFix, ...]


def with_proved_fixes(
    source: SourceFile, diagnostics: Iterable[Diagnostic], check: Check = _check
) -> tuple[Diagnostic, ...]:
    """Add fixes to the diagnostics. Only fixes that a check of the fixed node confirms are safe."""
    found = [with_fix(source, diagnostic) for diagnostic in diagnostics]
    proved = _prove(source, [each.fix for each in found if each.fix and each.fix.safety is Safety.SAFE], check)
    return tuple(each if each.fix is None or each.fix in proved else _mark_suggested(each, each.fix) for each in found)


def _mark_suggested(diagnostic: Diagnostic, fix: Fix) -> Diagnostic:
    return replace(diagnostic, fix=replace(fix, safety=Safety.SUGGESTED))


def safe_fixes(diagnostics: Iterable[Diagnostic]) -> list[Fix]:
    """Return the distinct safe fixes; two diagnostics may share one (`&&`)."""
    fixes = (diagnostic.fix for diagnostic in diagnostics)
    return list(dict.fromkeys(fix for fix in fixes if fix is not None and fix.safety is Safety.SAFE))


def repair(source: SourceFile, diagnostics: Sequence[Diagnostic], check: Check = _check) -> RepairedText:
    """Apply safe fixes in rounds."""
    applied: list[AppliedFix] = []
    found = with_proved_fixes(source, diagnostics, check)
    is_wrong = _has_errors(found)
    for _ in range(_MAX_ROUNDS):
        fixes = safe_fixes(found)
        if not fixes:
            break
        for fix in fixes:
            code = next(each.code.number for each in found if each.fix == fix)
            line, column = source.position(fix.edits[0].span.start)
            applied.append(AppliedFix(code, source.path, line, column, fix.description))
        source = SourceFile(source.path, apply_edits(source.text, _edits(fixes)))
        checked = check(source)
        is_wrong = checked.is_wrong
        found = with_proved_fixes(source, _without_notes(checked), check)
    return RepairedText(source, found, is_wrong, tuple(applied))


def _prove(source: SourceFile, fixes: list[Fix], check: Check) -> list[Fix]:
    """Return the fixes that combine and leave no error on the lines that they change."""
    kept: list[Fix] = []
    for fix in dict.fromkeys(fixes):
        if can_be_applied_together(_edits([*kept, fix])):
            kept.append(fix)
    while kept:
        after = SourceFile(source.path, apply_edits(source.text, _edits(kept)))
        found = check(after).diagnostics
        wrong = {after.position(each.primary.span.start)[0] for each in found if each.severity is Severity.ERROR}
        good = [fix for fix in kept if not wrong & _judged_lines(source, fix)]
        if len(good) == len(kept):
            break
        kept = good
    return kept


def _judged_lines(source: SourceFile, fix: Fix) -> set[int]:
    """Return the lines on which an error disproves the fix. Lines that are only indented do not count."""
    return {source.position(edit.span.start)[0] for edit in fix.edits if edit.replacement.strip()}


def _edits(fixes: Iterable[Fix]) -> list[Edit]:
    return [edit for fix in fixes for edit in fix.edits]


def _without_notes(checked: Checked) -> list[Diagnostic]:
    return [each for each in checked.diagnostics if each.severity is not Severity.NOTE]


def _has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    return any(diagnostic.severity is Severity.ERROR for diagnostic in diagnostics)
