"""A way that lies is reported with its name, its inputs are shrunk, and the compared executions are counted."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.nodes import PAYMENT_DECISION, ROOT, compiled, compiled_text
from vesper.api.json_calls import outcome_of_json
from vesper.cli.verify.reports import VerifiedNode, VerifyResults, verify_json, verify_junit, verify_sarif
from vesper.cli.verify.text import difference_text
from vesper.cli.verify.ways.columns import ColumnMaker, fits_column, is_cell, read_cells
from vesper.cli.verify.ways.json_texts import RunJson, bare_json
from vesper.cli.verify.ways.node_calls import load_node
from vesper.cli.verify.ways.public import WAYS
from vesper.cli.verify.ways.routed import RoutedCalls
from vesper.compiler import Compiled
from vesper.engines.direct_engine import DirectEngine, DirectProgram
from vesper.engines.engine import Done, Engine
from vesper.engines.outcome import ContractBroken, DeclaredError, Failed, LimitHit, Outcome, Returned
from vesper.engines.tiering import INTERPRETED
from vesper.migration.control.modes import LADDER, Mode
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import Problem, ProblemKind
from vesper.values.types import DECIMAL, INTEGER, declared_type
from vesper.verify.differential.forms import COMPARED, FormsEngine, FormsProgram
from vesper.verify.differential.regressions import regression_text
from vesper.verify.differential.verifier import Report, Verifier
from vesper.verify.differential.ways.way import Given

SCALED = """\
node_id: scaled_v1
type: function
intent: Return small numbers
inputs: {amount: decimal}
outputs: {success: {tiny: decimal}}
flow:
  - {operation: return, success: {tiny: amount * 0.0000000000000000001}}
"""

HEAD = """\
node_id: head_v1
type: function
intent: Loop over a collection that takes memory
inputs: {a: integer}
outputs: {success: {n: integer}}
flow:
  - {operation: loop, step: s, over: "value IN [a FOR key IN [1]]", collect: a}
  - {operation: return, success: {n: length(s.collected)}}
"""

ECHO = """\
node_id: echo_v1
type: function
intent: Return a text
inputs: {t: string}
outputs: {success: {u: string}}
flow: [{operation: return, success: {u: t}}]
"""

ALWAYS_COMPARED = {"call", "node", "map", "run_json", "run_batch", "json_lines"}
SOMETIMES_COMPARED = {"forced_deopt", "metered", "start", "warm_cache", *(f"routed_{mode.value}" for mode in LADDER)}


class Lying:
    """The direct engine with one entry replaced."""

    name = "interp-optimised"

    def __init__(self, lie: Callable[[DirectProgram], None]) -> None:
        self._lie = lie

    def load(self, compiled: Compiled) -> FormsProgram:
        program = DirectEngine(INTERPRETED).load(compiled)
        self._lie(program)
        return FormsProgram(program)


def verified(node: Compiled, lie: Callable[[DirectProgram], None], inputs: int = 50) -> Report:
    engines: dict[str, Engine] = {"python": COMPARED["python"], "interp-optimised": Lying(lie)}
    return Verifier(node, engines, 1, ways=WAYS).run(inputs)


def replace_json(program: DirectProgram, change: Callable[[bytes], bytes]) -> None:
    """Change the answers of `run_json`, with and without messages."""

    def changed(run: Callable[..., bytes]) -> Any:
        return lambda text, *now: change(run(text, *now))

    entry = program.json_entry
    program.run_json = changed(program.run_json)
    program.json_entry = lambda explain=None: changed(entry(explain))  # type: ignore[method-assign]


def short_scale(program: DirectProgram) -> None:
    """Write decimals with at most 18 places, as a fault of `run_json` did."""

    def change(text: bytes) -> bytes:
        answer = json.loads(text)
        if answer["kind"] != "returned":
            return text
        whole, point, places = answer["value"]["tiny"].partition(".")
        answer["value"]["tiny"] = whole + point + places[:18]
        return json.dumps(answer, separators=(",", ":"), sort_keys=True).encode()

    replace_json(program, change)


def test_run_json_that_cuts_places_is_reported_by_name_and_shrunk() -> None:
    report = verified(compiled_text(SCALED), short_scale)
    (difference,) = report.differences
    assert difference.way_name == "run_json"
    assert not report.passed
    wanted, found = (each.outcome for each in difference.answers.values())
    assert isinstance(wanted, Returned)
    assert isinstance(found, Returned)
    assert (str(wanted.value["tiny"]), str(found.value["tiny"])) == ("0E-19", "0E-18")
    assert difference.inputs == {"amount": Decimal(0)}


def test_every_format_names_the_way() -> None:
    node = compiled_text(SCALED)
    report = verified(node, short_scale)
    (difference,) = report.differences
    text = difference_text(node, difference, None)
    assert "the way `run_json` does not" in text
    assert "run_json (" in text
    assert "python answers returned tiny=" in text
    found = VerifyResults(["python"], 1, None, [VerifiedNode(node, report, [Path("x")])], [], None, 0.0)
    whole = verify_json(found)
    assert whole["nodes"][0]["disagreements"][0]["way"].startswith("run_json (")
    assert whole["ways"]["run_json"] >= 50
    assert 'type="way-disagrees"' in verify_junit(found)
    (result,) = verify_sarif(found)["runs"][0]["results"]
    assert result["ruleId"] == "way-disagrees"
    assert "run_json" in result["message"]["text"]
    assert '  way: "run_json"\n' in regression_text(node, difference)


def one_over(program: DirectProgram) -> None:
    """Accept a refused text in `run_json`."""
    accepted = b'{"kind":"returned","value":{"size":6}}'
    replace_json(program, lambda answer: accepted if b'"constraint"' in answer else answer)


def test_run_json_that_accepts_a_text_over_its_limit_is_reported() -> None:
    node = compiled_text(
        """node_id: short_v1
type: function
intent: Take short texts
inputs: {code: {type: string, constraints: [{max_length: 5}]}}
outputs: {success: {size: integer}}
flow: [{operation: return, success: {size: length(code)}}]
"""
    )
    (difference,) = verified(node, one_over, 150).differences
    assert difference.way_name == "run_json"
    assert isinstance(difference.answers["python"].outcome, ContractBroken)


def test_a_text_over_the_limit_of_the_language_is_refused() -> None:
    node = compiled_text(ECHO)
    verifier = Verifier(node, COMPARED, 1, ways=())
    subject = verifier.subject
    done = subject.reference.start({"t": ""}).advance(())
    assert isinstance(done, Done)
    ways = [RunJson(load_node(replace(subject, seed=seed))) for seed in range(30)]
    answers = [each for way in ways for each in way.answers([Given(1, {"t": ""}, done)])]
    long = [each for each in answers if each.detail]
    assert 0 < len(long) < 6
    assert {each.detail for each in long} == {"t of 10,000,001 code points"}
    refused = Failed(ErrorCode.BAD_INPUT, None, (Problem("t", ProblemKind.OUT_OF_RANGE),))
    assert all(each.found == each.wanted == refused for each in long)


@pytest.mark.parametrize("mode", LADDER)
def test_a_routed_call_finds_a_leader_that_differs(mode: Mode) -> None:
    """The outputs of the leader are wrong, so a direct engine that follows or serves must differ."""
    subject = Verifier(compiled_text(ECHO), COMPARED, 1, ways=()).subject
    right = Given(1, {"t": "a"}, Done(Returned({"u": "a"}), ()))
    wrong = Given(1, {"t": "a"}, Done(Returned({"u": "b"}), ()))
    way = RoutedCalls(load_node(subject), mode)
    assert [each.differs for each in way.answers([right])] == [False]
    is_compared = mode is not Mode.PYTHON_ONLY
    assert [each.differs for each in way.answers([wrong])] == [is_compared]


def wrong_integers(program: DirectProgram) -> None:
    """Read an integer column into a decimal input one too large."""
    real = program.batches

    def batches(table: Any, explain: Any, **options: Any) -> Any:
        if options["form"] == "typed":
            for place, column in enumerate(table.columns):
                name = table.column_names[place]
                if name == "amount" and pa.types.is_integer(column.type):
                    values = [None if each is None else each + 1 for each in column.to_pylist()]
                    table = table.set_column(place, name, pa.chunked_array([pa.array(values, pa.int64())]))
        return real(table, explain, **options)

    program.batches = batches  # type: ignore[method-assign]


def test_an_integer_column_that_is_read_wrong_is_reported() -> None:
    differences = verified(compiled_text(SCALED), wrong_integers, 300).differences
    assert [each.way_name for each in differences] == ["run_batch"]
    assert "int" in str(differences[0].way)


def test_a_table_whose_rows_are_swapped_is_reported() -> None:
    def lie(program: DirectProgram) -> None:
        real = program.batches
        program.batches = lambda table, explain, **options: real(  # type: ignore[method-assign]
            table.take(list(reversed(range(len(table))))), explain, **options
        )

    names = {each.way_name for each in verified(compiled_text(SCALED), lie).differences}
    assert {"run_batch", "json_lines"} <= names


def test_limits_that_are_off_by_one_are_reported() -> None:
    def lie(program: DirectProgram) -> None:
        real = program.call

        def call(inputs: Any, now: Any = None, limits: Any = None) -> Outcome:
            return real(inputs, now, None if limits is None else replace(limits, fuel=limits.fuel + 1))

        program.call = call  # type: ignore[method-assign]

    report = verified(compiled_text(HEAD), lie)
    assert [each.way for each in report.differences] == ["metered (fuel 1)"]


def test_the_memory_of_a_collection_that_a_loop_goes_over_is_kept() -> None:
    report = Verifier(compiled_text(HEAD), COMPARED, 1).run(20)
    assert report.ways["metered"] > 0
    assert report.differences == []


def test_every_way_is_compared_and_counted() -> None:
    report = Verifier(compiled(PAYMENT_DECISION), COMPARED, 1, ways=WAYS).run(60)
    assert report.differences == []
    assert set(report.ways) == ALWAYS_COMPARED | SOMETIMES_COMPARED
    assert all(report.ways[name] >= 60 for name in ALWAYS_COMPARED)


def test_a_node_with_effects_is_compared_where_a_way_applies() -> None:
    report = Verifier(compiled(ROOT / "nodes" / "access" / "api_key_issue_v1.vsp"), COMPARED, 1, ways=WAYS).run(30)
    assert report.differences == []
    assert set(report.ways) == {"forced_deopt", "metered", "start", "warm_cache"}


def test_engines_without_forms_have_no_ways() -> None:
    engines = {name: COMPARED[name] for name in ("python", "interp")}
    assert Verifier(compiled(PAYMENT_DECISION), engines, 1, ways=WAYS).run(10).ways == {}


def test_the_same_seed_compares_the_same() -> None:
    node = compiled(PAYMENT_DECISION)
    forms: dict[str, Engine] = {"python": COMPARED["python"], "jit": FormsEngine("jit", INTERPRETED)}
    first, second = (Verifier(node, forms, 7, ways=WAYS).run(55).ways for _ in range(2))
    assert first == second


# -- columns and texts ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_a_column_holds_most_values_or_is_wide(seed: int) -> None:
    maker = ColumnMaker(pa, random.Random(seed))
    values = [1, 2**40, -5, None, "no number"]
    cells = read_cells(pa, maker.column(INTEGER, values))
    assert len(cells) == len(values)
    assert cells[3] is None
    assert sum(each is not None for each in cells) >= 2


def test_drawn_columns_use_every_integer_and_decimal_type() -> None:
    found = {
        str(ColumnMaker(pa, random.Random(seed)).column(DECIMAL, [Decimal(1), Decimal(2)]).type) for seed in range(300)
    }
    kinds = {each.partition("(")[0] for each in found}
    assert kinds >= {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "string"}
    assert kinds >= {"decimal32", "decimal64", "decimal128", "decimal256"}


def test_cells_are_compared_exactly() -> None:
    column = pa.decimal128(38, 2)
    assert is_cell(pa, DECIMAL, column, Decimal("1.5"), Decimal("1.50"))
    assert not is_cell(pa, DECIMAL, column, Decimal("1.5"), Decimal("1.51"))
    assert not is_cell(pa, DECIMAL, pa.string(), Decimal("1.5"), "1.50")
    assert fits_column(pa, DECIMAL, column, Decimal("1.500"))
    assert not fits_column(pa, DECIMAL, column, Decimal("1.505"))
    assert not fits_column(pa, DECIMAL, column, Decimal(10) ** 36)
    listed = declared_type("map<string, decimal>")
    assert is_cell(pa, listed, pa.map_(pa.string(), pa.string()), {"a": Decimal("1.0")}, [("a", "1.0")])


@pytest.mark.parametrize(
    "outcome",
    [
        Failed(ErrorCode.BAD_INPUT, None, (Problem("amount", ProblemKind.MISSING),)),
        Failed(ErrorCode.DIVISION_BY_ZERO, 3),
        ContractBroken("precondition", 0, {"amount": Decimal("0.00")}),
        LimitHit("fuel"),
        DeclaredError({}),
    ],
    ids=lambda each: each.kind,
)
def test_an_outcome_without_messages_can_be_read_back(outcome: Outcome) -> None:
    node = compiled(PAYMENT_DECISION).node
    if isinstance(outcome, DeclaredError) and node.errors:
        return
    assert outcome_of_json(node, bare_json(node, outcome).encode()) == outcome
