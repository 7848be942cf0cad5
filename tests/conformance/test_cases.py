"""The cases of `cases/*.yaml` on every engine.

A case has an `expression` over typed `inputs`, or a `node` with plain ones, and its expected result: `returns`, `fails`
with a code, `breaks` a clause, or a declared `error`. Inputs may be `json` text over declared `types`, which is also
passed to engines that read JSON. Engines that fail a case are listed with the reason in `known_gaps.yaml`, and a listed
gap that is closed fails too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance.forms import typed_form
from tests.support.nodes import compiled_text, expression_node
from vesper.api.input_conversion import inputs_of_json
from vesper.engines.outcome import ContractBroken, DeclaredError, Failed, Outcome, Returned
from vesper.engines.registry import ENGINES
from vesper.language.ir.nodes import Input
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import same
from vesper.values.types import declared_type

FOLDER = Path(__file__).parent
CASES: dict[str, dict[str, Any]] = {
    f"{path.stem}: {case['case']}": case
    for path in sorted((FOLDER / "cases").glob("*.yaml"))
    for case in yaml.safe_load(path.read_text(encoding="utf-8"))
}
GAPS: list[dict[str, str]] = yaml.safe_load((FOLDER / "known_gaps.yaml").read_text(encoding="utf-8")) or []
KNOWN = {(gap["case"], gap["engine"]): gap["why"] for gap in GAPS}


def outcome_of(case: dict[str, Any], engine: str) -> Outcome:
    if "node" in case:
        return ENGINES[engine].load(compiled_text(case["node"])).call(case.get("inputs", {}))
    if "json" in case:
        types = {name: declared_type(type_) for name, type_ in case["types"].items()}
        plain = inputs_of_json(tuple(Input(name, type_, None) for name, type_ in types.items()), case["json"])
        if plain.refused:
            return Failed(ErrorCode.BAD_INPUT, None, plain.refused)
        return ENGINES[engine].load(expression_node(case["expression"], types)).call(plain.inputs)
    typed = {name: typed_form(form) for name, form in case.get("inputs", {}).items()}
    compiled = expression_node(case["expression"], {name: type_ for name, (type_, _) in typed.items()})
    return ENGINES[engine].load(compiled).call({name: value for name, (_, value) in typed.items()})


def problem(case: dict[str, Any], outcome: Outcome) -> str | None:
    """Return how an outcome differs from the expectation."""
    match outcome:
        case Returned(value) if "returns" in case:
            wanted = {"result": case["returns"]} if "expression" in case else case["returns"]
            return _differs(dict(value), wanted)
        case DeclaredError(value) if "error" in case:
            return _differs(dict(value), case["error"])
        case Failed(code) if "fails" in case:
            return None if str(code) == case["fails"] else f"failed {code}"
        case ContractBroken(phase, index) if "breaks" in case:
            return None if [phase, index] == case["breaks"] else f"{phase} {index} broken"
        case _:
            return f"came to {outcome}"


def _differs(found: dict[str, Any], wanted: dict[str, Any]) -> str | None:
    for name, form in wanted.items():
        _, value = typed_form(form)
        if not same(found[name], value):
            return f"{name} is {found[name]!r} and not {value!r}"
    return None


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CASES)
def test_case(name: str, engine: str) -> None:
    found = problem(CASES[name], outcome_of(CASES[name], engine))
    if (name, engine) in KNOWN:
        assert found is not None, f"{name} is met by {engine} now: take it out of known_gaps.yaml"
        return
    assert found is None, found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "json" in case])
def test_case_as_the_engine_reads_it(name: str, engine: str) -> None:
    case = CASES[name]
    types = {each: declared_type(type_) for each, type_ in case["types"].items()}
    program = ENGINES[engine].load(expression_node(case["expression"], types))
    read: Callable[[bytes], bytes] | None = getattr(program, "run_json", None)
    if read is None:
        assert engine != "interp", "the Rust engine reads JSON text itself"
        return
    told = json.loads(read(case["json"].encode()))
    if "fails" in case:
        assert (told["kind"], told["code"]) == ("failed", case["fails"])
    else:
        assert told == {"kind": "returned", "value": {"result": case["returns"]["string"]}}


def test_known_gaps_name_cases_and_engines() -> None:
    """A gap of a renamed case or a removed engine must be deleted."""
    for gap in GAPS:
        assert set(gap) == {"case", "engine", "why"}, gap
        assert gap["case"] in CASES, gap
        assert gap["engine"] in ENGINES, gap
    assert len(KNOWN) == len(GAPS)


def test_a_case_that_is_not_met_is_noticed() -> None:
    case = {"expression": "1 + 1", "returns": {"integer": 3}}
    for engine in ENGINES:
        assert problem(case, outcome_of(case, engine)) == "result is 2 and not 3"
    assert problem({"fails": "overflow"}, Returned({})) is not None
    assert problem({"breaks": ["precondition", 0]}, ContractBroken("precondition", 1, {})) is not None


def test_there_are_cases() -> None:
    kinds = {kind for case in CASES.values() for kind in ("returns", "fails", "breaks", "error") if kind in case}
    assert kinds == {"returns", "fails", "breaks", "error"}
    assert len(CASES) >= 60
