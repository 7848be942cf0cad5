"""Reports of several tasks as one."""

from __future__ import annotations

from dataclasses import fields

from vesper.compiler import Compiled
from vesper.verify.differential.coverage import Coverage, CoverageCollector, CoverageState
from vesper.verify.differential.verifier import BrokenPostcondition, Difference, Report
from vesper.verify.programs.campaign import ProgramsReport

_PARAMETERS = ("seed",)
"""Numbers of a report that are equal in all its parts."""


def empty_report(
    compiled: Compiled, engines: tuple[str, ...], seed: int, against: str | None, known: CoverageState | None
) -> Report:
    """Return the report of a node before its first task, with the coverage of earlier runs."""
    collector = CoverageCollector(compiled)
    collector.begin(known)
    collector.finish()
    report = Report(compiled.node.node_id, compiled.semantic_hash, engines, seed, against=against)
    report.coverage = collector.coverage
    return report


def add_report(total: Report | ProgramsReport, part: Report | ProgramsReport) -> None:
    """Add the counts and the new findings of a part to a report, and replace the coverage by that of the part."""
    for each in fields(total):
        before, found = getattr(total, each.name), getattr(part, each.name)
        match found:
            case Coverage():
                before.paths |= found.paths
                found.paths = before.paths
                setattr(total, each.name, found)
            case dict():
                for key, times in found.items():
                    before[key] = before.get(key, 0) + times
            case list():
                known = [_key(finding) for finding in before]
                before += [finding for finding in found if _key(finding) not in known]
            case int() | float() if each.name not in _PARAMETERS:
                setattr(total, each.name, before + found)
            case _:
                pass


def _key(finding: object) -> object:
    """Return the identity of a finding, which does not depend on the input that shows it."""
    match finding:
        case Difference():
            return finding.place, finding.step, finding.with_function, (finding.way or "").partition(" (")[0]
        case BrokenPostcondition():
            return finding.index
        case _:
            return finding
