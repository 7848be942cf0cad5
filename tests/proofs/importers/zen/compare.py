"""Import every model of zen, evaluate its tests on both engines, and compare the results with zen's.

A result counts where both engines return what the test expects. Any other outcome must have a reason: a part of the
model that the import lists, or an outcome of the node that is no result. A different result without one is *wrong*.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import vesper
from vesper.importers.zen.importer import Imported, import_model
from vesper.importers.zen.model import ModelError
from vesper.importers.zen.terms import inside_names
from vesper.importers.zen.types import ArrayOf, Record, Slot, resolve

MODELS = Path(__file__).parent / "models"
ENGINES = ("python", "interp")
PASSED, WRONG = "passed", "wrong"


@dataclass(frozen=True, slots=True)
class Verdict:
    model: str
    case: int
    reason: str
    detail: str = ""


def verdicts(path: Path) -> Iterator[Verdict]:
    """Yield the verdict of every test of a model."""
    tests = json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal).get("tests", [])
    try:
        imported = import_model(path.read_text(encoding="utf-8"), path.stem, lambda key: _beside(path, key))
    except ModelError as error:
        yield from (Verdict(path.stem, at, "no model", str(error)) for at in range(len(tests)))
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{imported.node_id}.vsp"
        file.write_text(imported.text, encoding="utf-8")
        try:
            nodes = [vesper.load(file, engine=engine) for engine in ENGINES]
        except vesper.NodeError as error:
            yield from (Verdict(path.stem, at, "the node has errors", str(error)) for at in range(len(tests)))
            return
        for at, test in enumerate(tests):
            yield _verdict(path.stem, at, test, imported, nodes)


def _beside(path: Path, key: str) -> str | None:
    file = path.parent / Path(key).name
    return file.read_text(encoding="utf-8") if file.is_file() else None


def _verdict(model: str, at: int, test: dict[str, Any], imported: Imported, nodes: list[Any]) -> Verdict:
    inputs = inside_of(test["input"], Slot(imported.inputs))
    outcomes = [node(**inputs) for node in nodes]
    if outcomes[0] != outcomes[1]:
        return Verdict(model, at, WRONG, f"the engines differ: {outcomes[0]!r} and {outcomes[1]!r}")
    if not outcomes[0].ok:
        error = outcomes[0].error
        reason = "refused by name" if error.code == "not_translated" else f"{error.kind}: {error.code}"
        return Verdict(model, at, reason, str(error))
    found = outside_of(outcomes[0].value, Slot(imported.outputs))
    found = found.get("result") if imported.is_whole else found
    differences = differences_of(test["output"], found)
    if not differences:
        return Verdict(model, at, PASSED)
    if "now()" in imported.text:
        return Verdict(model, at, "the expected result depends on the day of zen's run", "; ".join(differences))
    return Verdict(model, at, WRONG, "; ".join(differences))


def inside_of(value: Any, slot: Slot) -> Any:
    """Return a value of a test with the inside names of its type."""
    type_ = resolve(slot.type)
    if isinstance(value, dict) and isinstance(type_, Record) and type_.fields:
        names = inside_names(type_)
        return {names[key]: inside_of(each, type_.fields[key]) for key, each in value.items()}
    if isinstance(value, list) and isinstance(type_, ArrayOf):
        return [inside_of(each, type_.item) for each in value]
    return value


def outside_of(value: Any, slot: Slot) -> Any:
    """Return an output with the outside names of its type."""
    type_ = resolve(slot.type)
    if isinstance(value, dict) and isinstance(type_, Record) and type_.fields:
        names = {inside: key for key, inside in inside_names(type_).items()}
        return {names[key]: outside_of(each, type_.fields[names[key]]) for key, each in value.items()}
    if isinstance(value, list) and isinstance(type_, ArrayOf):
        return [outside_of(each, type_.item) for each in value]
    return value


def differences_of(expected: Any, found: Any) -> list[str]:
    """Return the places where a result differs from the expected one."""
    return list(_differences(_bare(expected), _bare(found), ""))


def _bare(value: Any) -> Any:
    """Return a value without keys that are null: zen leaves them out where it merges, a node writes null."""
    if isinstance(value, dict):
        bare = {key: _bare(each) for key, each in value.items()}
        return {key: each for key, each in bare.items() if each not in (None, {})}
    return [_bare(each) for each in value] if isinstance(value, list) else value


def _differences(expected: Any, found: Any, place: str) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted({*expected, *found}):
            yield from _differences(expected.get(key), found.get(key), f"{place}.{key}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for at, (left, right) in enumerate(zip(expected, found, strict=True)):
            yield from _differences(left, right, f"{place}[{at}]")
    elif not _is_equal(expected, found):
        yield f"{place or '.'}: expected {expected!r}, found {found!r}"


def _is_equal(expected: Any, found: Any) -> bool:
    """Compare two values; zen writes a number as the nearest binary one."""
    numbers = [isinstance(each, int | Decimal) and not isinstance(each, bool) for each in (expected, found)]
    if all(numbers):
        return bool(expected == found) or float(expected) == float(found)
    return type(expected) is type(found) and bool(expected == found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--sample", type=int, help="evaluate this many models only")
    parser.add_argument("--least", type=float, default=85.0, help="percentage of models and of cases that must pass")
    arguments = parser.parse_args()
    paths = sorted(arguments.models.glob("*.json"))
    if arguments.sample:
        paths = paths[:: max(1, len(paths) // arguments.sample)]
    started = dt.datetime.now(dt.UTC)
    found = [verdict for path in paths for verdict in verdicts(path)]
    reasons = Counter(verdict.reason for verdict in found)
    failed = {verdict.model for verdict in found if verdict.reason != PASSED}
    for verdict in found:
        if verdict.reason != PASSED:
            print(f"{verdict.model}, test {verdict.case + 1}: {verdict.reason}\n    {verdict.detail}")
    cases = 100 * reasons[PASSED] / len(found)
    models = 100 * (len(paths) - len(failed)) / len(paths)
    print(f"| {'outcome':55} | cases |\n|{'-' * 57}|------:|")
    for reason, count in reasons.most_common():
        print(f"| {reason:55} | {count:5} |")
    seconds = (dt.datetime.now(dt.UTC) - started).total_seconds()
    passed = f"{reasons[PASSED]} of {len(found)} cases ({cases:.1f} %)"
    print(f"{passed}, {len(paths) - len(failed)} of {len(paths)} models ({models:.1f} %), {seconds:.0f} s")
    return 0 if reasons[WRONG] == 0 and min(cases, models) >= arguments.least else 1


if __name__ == "__main__":
    sys.exit(main())
