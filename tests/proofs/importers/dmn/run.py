"""`make proof-dmn`: the models of the DMN TCK in this folder, imported and run on both engines.

Each expected result is evaluated by a node of its own decision or service, on the python engine and the direct one.
The two must agree; a result that differs from the expected one is wrong. Prints the share of right results by level,
and the reasons of the others. `--wrong` and `--reason TEXT` list results; `--only NAME` selects folders.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[4]
sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.proof import PROOFS, write_json  # noqa: E402
from vesper.compiler import compile_source  # noqa: E402  # after the path is set
from vesper.engines.outcome import Failed, Returned  # noqa: E402
from vesper.engines.registry import engine_named  # noqa: E402
from vesper.importers.dmn.cases import Temporal, TestCase, read_cases  # noqa: E402
from vesper.importers.dmn.importing import import_file  # noqa: E402
from vesper.importers.dmn.nodes import ImportedNode  # noqa: E402
from vesper.importers.dmn.types import Ty, field_names  # noqa: E402
from vesper.language.diagnostics.diagnostic import Severity  # noqa: E402
from vesper.language.diagnostics.source import SourceFile  # noqa: E402

TCK = Path(__file__).parent / "tck"
TOLERANCE = Decimal("0.00000001")
"""Allowed difference of numbers: that of the TCK's own runner."""
GOALS = {"level 2": 0.95, "level 3, with inputs": 0.80, "level 3, without inputs": 0.50}


@dataclass(slots=True)
class Result:
    """One expected result, and what became of it."""

    level: str
    folder: str
    case: TestCase
    verdict: str
    """`right`, `wrong`, or `refused`."""
    reason: str
    detail: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--folder", type=Path, default=TCK)
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--reason", default="")
    parser.add_argument("--sample", type=int, default=1, help="every n-th folder")
    parser.add_argument("--write", action="store_true", help="write docs/proofs/dmn.json")
    options = parser.parse_args()
    begin = time.process_time()
    results = list(run_folder(options.folder, options.only, options.sample))
    for result in results:
        if (options.wrong and result.verdict == "wrong") or (options.reason and options.reason in result.reason):
            print(f"{result.folder}: {result.case.name}: {result.reason}: {result.detail}")
    is_met = report(results)
    seconds = round(time.process_time() - begin, 1)
    print(f"{seconds} s of processor time")
    if options.write:
        write_json(PROOFS / "dmn.json", summarize(results))
    return 0 if is_met else 1


def run_folder(folder: Path, only: str = "", every: int = 1) -> Iterator[Result]:
    """Run all tests of a folder of the TCK."""
    files = sorted(folder.glob("compliance-level-*/*/*.xml"))
    for path in files[::every]:
        if only in path.parent.name:
            yield from run_tests(path)


def run_tests(path: Path) -> Iterator[Result]:
    """Run the tests of one file."""
    model_name, cases = read_cases(path)
    model = path.with_name(model_name)
    level = f"level {path.parent.parent.name[-1]}"
    runners: dict[tuple[str, str], Runner] = {}
    for case in cases:
        key = (case.service, case.decision)
        if key not in runners:
            runners[key] = Runner(model, case.service or case.decision, case.service != "")
        verdict, reason, detail = runners[key].run(case)
        label = level if level == "level 2" else f"{level}, {'with' if case.inputs else 'without'} inputs"
        yield Result(label, path.parent.name, case, verdict, reason, detail)


class Runner:
    """A node of a decision or service, loaded on both engines."""

    def __init__(self, model: Path, name: str, is_service: bool) -> None:
        self.problem: tuple[str, str] | None = None
        imported = import_file(model, [name], [])
        self.node: ImportedNode | None = imported.nodes[0] if imported.nodes else None
        if self.node is None or self.node.problems:
            problems = self.node.problems if self.node else imported.problems
            found = problems[0]
            self.problem = (f"{found.category}: {found.reason}", found.text)
            return
        compiled, bag = compile_source(SourceFile(f"{self.node.node_id}.vsp", self.node.text))
        if compiled is None:
            errors = [each for each in bag.sorted() if each.severity is Severity.ERROR]
            span = errors[0].primary.span
            self.problem = (f"check: {errors[0].headline}", self.node.text[span.start : span.end])
            return
        self.programs = [engine_named(name).load(compiled) for name in ("python", "interp")]

    def run(self, case: TestCase) -> tuple[str, str, str]:
        """Return the verdict, the reason and the details of a case."""
        if self.problem is not None:
            return "refused", *self.problem
        assert self.node is not None
        try:
            inputs = {
                inside: to_input(case.inputs.get(name), ty)
                for name, (inside, ty) in self.node.inputs.items()
                if name in case.inputs or ty.is_nullable
            }
        except ValueError as error:
            return "refused", f"input: {error}", ""
        outcomes = [program.call(inputs, NOW) for program in self.programs]
        if outcomes[0] != outcomes[1]:
            return "wrong", "the engines differ", str(outcomes)
        outcome = outcomes[0]
        if isinstance(outcome, Returned):
            value = from_output(outcome.value[self.node.output], self.node.output_type)
            if self.node.kind == "decision service" and isinstance(value, dict) and case.decision in value:
                value = value[case.decision]
            if is_same(value, case.expected):
                return "right", "", ""
            return "wrong", "another value", f"expected {case.expected!r}, got {value!r}"
        if isinstance(outcome, Failed):
            kinds = ", ".join(sorted({each.kind for each in outcome.problems}))
            return "refused", f"run: {outcome.code} {kinds}".strip(), ""
        return "refused", f"run: {outcome.kind}", str(outcome)[:200]


NOW = datetime.fromisoformat("2026-11-17T20:00:00+00:00")


def to_input(value: Any, ty: Ty) -> Any:
    """Return a value of a test as an input of a node."""
    if isinstance(value, Temporal):
        return value.text
    if ty.kind == "any":
        return _json(value)
    if isinstance(value, list) and ty.kind == "list":
        return [to_input(each, ty.item) for each in value]
    if isinstance(value, dict) and ty.kind == "context":
        names = field_names(ty)
        unknown = [name for name in value if name not in names]
        if unknown:
            raise ValueError(f"a field that the type does not have: {unknown[0]}")
        types = dict(zip(ty.names, ty.items, strict=True))
        return {names[name]: to_input(each, types[name]) for name, each in value.items()}
    return value


def _json(value: Any) -> Any:
    if isinstance(value, Temporal):
        raise ValueError("a date, time or duration for an input of any type")
    if isinstance(value, list):
        return [_json(each) for each in value]
    if isinstance(value, dict):
        return {name: _json(each) for name, each in value.items()}
    return value


def from_output(value: Any, ty: Ty) -> Any:
    """Return an output with the names of the model."""
    if value is None:
        return None
    if ty.kind == "list":
        return [from_output(each, ty.item) for each in value]
    if ty.kind == "context":
        names = field_names(ty)
        return {name: from_output(value[names[name]], inner) for name, inner in zip(ty.names, ty.items, strict=True)}
    if ty.kind in ("date", "time", "datetime", "duration", "period"):
        return Temporal(ty.kind, show(value))
    if ty.kind == "any":
        return plain(value)
    return value


def plain(value: Any) -> Any:
    """Return a json as Python's lists, dicts and scalars."""
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return Decimal(value)
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return value


def show(value: Any) -> str:
    """Return the text of a date or duration."""
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        from vesper.values.times import duration_text

        return duration_text(value)
    return str(value)


def is_same(value: Any, expected: Any) -> bool:
    """Compare as the TCK does: numbers within a tolerance, times by value and offset."""
    if isinstance(expected, Decimal):
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            return False
        return abs(Decimal(value) - expected) <= TOLERANCE * max(Decimal(1), abs(expected))
    if isinstance(expected, Temporal):
        return isinstance(value, Temporal) and canonical(value.text) == canonical(expected.text)
    if isinstance(expected, list):
        return isinstance(value, list) and len(value) == len(expected) and all(map(is_same, value, expected))
    if isinstance(expected, dict):
        return (
            isinstance(value, dict)
            and set(value) == set(expected)
            and all(is_same(value[k], expected[k]) for k in value)
        )
    if isinstance(value, Temporal):
        return False
    return type(value) is type(expected) and bool(value == expected)


def canonical(text: str) -> str:
    """Return one text for a time or duration in several spellings."""
    if text.lstrip("-").startswith("P"):
        sign = -1 if text.startswith("-") else 1
        date_part, _, time_part = text.partition("T")
        months = sum(
            Decimal(n) * f
            for n, u in re.findall(r"([\d.]+)([YM])", date_part)
            for k, f in (("Y", 12), ("M", 1))
            if u == k
        )
        seconds = sum(
            Decimal(n) * f
            for n, u in re.findall(r"([\d.]+)([DHMS])", "".join(re.findall(r"\d+D", date_part)) + time_part)
            for k, f in (("D", 86400), ("H", 3600), ("M", 60), ("S", 1))
            if u == k
        )
        return f"{sign * months} months {sign * seconds} seconds"
    text = re.sub(r"(\.\d*?)0+(?=[Z+@-]|$)", r"\1", text)
    text = re.sub(r"\.(?=[Z+@-]|$)", "", text)
    return re.sub(r"(?:Z|\+00:00|-00:00)$", "Z", text)


def summarize(results: list[Result]) -> dict[str, Any]:
    """Return counts by level, and of the categories of refusals."""
    levels = {}
    for level, goal in GOALS.items():
        counts = Counter(each.verdict for each in results if each.level == level)
        levels[level] = {"results": counts.total(), "goal": goal, **{key: counts[key] for key in sorted(counts)}}
    refused = Counter(each.reason.partition(":")[0] for each in results if each.verdict == "refused")
    return {"levels": levels, "refused": dict(refused.most_common())}


def report(results: list[Result]) -> bool:
    """Print shares and reasons; return whether the goals are met."""
    is_met = True
    for level, goal in GOALS.items():
        those = [each for each in results if each.level == level]
        if not those:
            continue
        counts = Counter(each.verdict for each in those)
        share = counts["right"] / len(those)
        is_met = is_met and share >= goal and not counts["wrong"]
        print(
            f"{level}: {counts['right']} of {len(those)} right ({share:.1%}, goal {goal:.0%}), "
            f"{counts['wrong']} wrong, {counts['refused']} refused"
        )
    reasons = Counter((each.verdict, each.reason) for each in results if each.verdict != "right")
    for (verdict, reason), count in reasons.most_common():
        print(f"{count:5} {verdict}: {reason[:150]}")
    return is_met


if __name__ == "__main__":
    sys.exit(main())
