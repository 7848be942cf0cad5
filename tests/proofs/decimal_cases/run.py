"""The General Decimal Arithmetic cases of CPython's test suite, on the engines: counts, and what disagrees.

    python -m tests.proofs.decimal_cases.run [--reference-only]

With `--reference-only` on the python engine alone, which needs no Rust extension. Ends with 1 where anything disagrees,
the files are missing, or fewer cases than ever are mapped. The rules are in `mapping.py`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.proofs.decimal_cases.dectest import Case, CasesMissing, case_folder, read_cases
from tests.proofs.decimal_cases.forms import Disagreement, disagreements
from tests.proofs.decimal_cases.mapping import Check, LeftOut, checks_of
from vesper.engines.engine import Engine
from vesper.engines.python_engine import PythonEngine

AT_LEAST = 31_000
"""Cases that were mapped when this was written; fewer means that a rule or a file went missing."""


@dataclass
class Tally:
    files: int = 0
    cases: Counter[str] = field(default_factory=Counter)
    mapped: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)
    left_out: Counter[LeftOut] = field(default_factory=Counter)
    disagreements: list[tuple[Case, Disagreement]] = field(default_factory=list)

    @property
    def agreed(self) -> int:
        return self.mapped.total() - len({case.file + case.id for case, _ in self.disagreements})


def run(folder: Path, engines: Mapping[str, Engine]) -> Tally:
    tally = Tally(files=len(list(folder.glob("*.decTest"))))
    origin: dict[int, Case] = {}
    checks: list[Check] = []
    for case in read_cases(folder):
        tally.cases[case.operation] += 1
        found = checks_of(case)
        if isinstance(found, LeftOut):
            tally.left_out[found] += 1
            continue
        tally.mapped[case.operation] += 1
        tally.checks[case.operation] += len(found)
        for check in found:
            origin[id(check)] = case
            checks.append(check)
    tally.disagreements = [(origin[id(each.check)], each) for each in disagreements(checks, engines)]
    return tally


def report(tally: Tally, engines: Mapping[str, Engine], seconds: float) -> str:
    head = (
        f"General Decimal Arithmetic on {' and '.join(engines)}: {tally.files} files, {tally.cases.total():,} cases, "
        f"{tally.mapped.total():,} mapped to {tally.checks.total():,} checks, {tally.agreed:,} agreed, {seconds:.1f} s"
    )
    lines = [
        head,
        "",
        f"  {'operation':<14}{'cases':>8}{'mapped':>8}{'checks':>8}",
    ]
    lines += [
        f"  {operation:<14}{tally.cases[operation]:>8,}{count:>8,}{tally.checks[operation]:>8,}"
        for operation, count in sorted(tally.mapped.items())
    ]
    lines += ["", f"  {tally.left_out.total():,} left out, because"]
    lines += [f"  {count:>8,}  {reason.value}" for reason, count in tally.left_out.most_common()]
    lines += [
        f"\n{case.file} {case.id}: {case.operation} {' '.join(case.operands)} -> {case.result}"
        f" {' '.join(sorted(case.conditions))}  ({case.settings})"
        f"\n  {each.engine} gives {each.got} for {each.check}"
        for case, each in tally.disagreements[:20]
    ]
    if tally.disagreements:
        lines.append(f"\n{len(tally.disagreements):,} checks DISAGREE")
    return "\n".join(lines)


def _engines(reference_only: bool) -> Mapping[str, Engine]:
    if reference_only:
        return {PythonEngine.name: PythonEngine()}
    from vesper.engines.registry import ENGINES  # loads the Rust extension

    return ENGINES


def main() -> int:
    parser = argparse.ArgumentParser(description="the General Decimal Arithmetic cases on Vesper's engines")
    parser.add_argument("--reference-only", action="store_true", help="on the python engine alone")
    engines = _engines(parser.parse_args().reference_only)
    start = time.perf_counter()
    try:
        tally = run(case_folder(), engines)
    except CasesMissing as missing:
        print(f"error: {missing}", file=sys.stderr)
        return 1
    print(report(tally, engines, time.perf_counter() - start))
    if tally.mapped.total() < AT_LEAST:
        print(f"error: only {tally.mapped.total():,} cases were mapped, and there are {AT_LEAST:,}", file=sys.stderr)
        return 1
    return 1 if tally.disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
