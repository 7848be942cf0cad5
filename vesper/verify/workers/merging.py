"""Reports of several tasks as one."""

from __future__ import annotations

from dataclasses import fields

from vesper.compiler import Compiled
from vesper.verify.differential.coverage import Coverage, CoverageCollector, CoverageState
from vesper.verify.differential.verifier import BrokenPromise, Difference, Report
from vesper.verify.programs.campaign import ProgramsReport

_PARAMETERS = ("seed",)
"""Numbers of a report that are equal in all its parts."""


def empty_report(
    compiled: Compiled, engines: tuple[str, ...], seed: int, against: str | None, known: CoverageState | None
) -> Report:
    """Return the report of a node of which nothing was verified but in earlier runs."""
    collector = CoverageCollector(compiled)
    collector.begin(known)
    collector.finish()
    report = Report(compiled.node.node_id, compiled.semantic_hash, engines, seed, against=against)
    report.coverage = collector.coverage
    return report


def add_report(total: Report | ProgramsReport, part: Report | ProgramsReport) -> None:
    """Add a part: counts are summed, findings appended unless they are known, coverage is that of the part."""
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
    """Return what makes a finding the same although another input shows it."""
    match finding:
        case Difference():
            return finding.place, finding.step, finding.with_function, (finding.way or "").partition(" (")[0]
        case BrokenPromise():
            return finding.index
        case _:
            return finding
