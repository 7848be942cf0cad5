"""Generated entry code accepts and rejects inputs as docs/spec/values.md defines.

`accept_inputs` is the definition: its result, passed to the typed function, must give the same outcome. Inputs are
drawn and then altered: by lying subclasses, edges of every type, and names.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Context, Decimal, DecimalException, getcontext, localcontext
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from tests.properties.lying_objects import lying
from tests.support.nodes import compiled, small_node, worked_nodes, written_for_tests
from vesper.compiler import Compiled
from vesper.engines.engine import DEFAULT_LIMITS, run_observed
from vesper.engines.outcome import Returned
from vesper.engines.python_engine import PythonEngine, PythonProgram
from vesper.kernels import raised
from vesper.kernels.runtime.meter import Meter
from vesper.kernels.work import LargeCall
from vesper.values.inputs import accept_inputs
from vesper.values.model import plain, same
from vesper.verify.inputs.generator import InputGenerator

DRAWN = 40
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
EDGES: tuple[object, ...] = (
    None, True, False, 0, -1, 2**63, -(2**63) - 1, 2**63 - 1, 10**1001, 0.1, 1.0, float("nan"), float("inf"), "", "x",
    "\ud800", "a\udfffb", "é", "1e3", "NaN", b"x", [], (), {}, set(), object(), Decimal("NaN"), Decimal("sNaN"),
    Decimal("Infinity"), Decimal("-Infinity"), Decimal("-0"), Decimal("-0.00"), Decimal("0E+5"), Decimal("1E+3"),
    Decimal("1E+1000"), Decimal("1E-1000"), Decimal("1E-1001"), Decimal("0E-1001"), Decimal("10E-1001"),
    Decimal("9" * 1000), Decimal("9" * 1001), Decimal("1E+999999999"), Decimal("1E-999999999"),
)  # fmt: skip
NAMES: tuple[object, ...] = ("zeta", "", "\ud800", 1, None, ("a",))


def pure_nodes() -> list[Path]:
    return [path for path in (*worked_nodes(), *written_for_tests()) if compiled(path).node.is_pure()]


@cache
def every_type() -> Compiled:
    """Return a node with inputs of every form that the entry reads separately, all returned."""
    inputs = """\
a: decimal
b: integer
c: boolean
d: string
e: enum[red, green, "two words"]
f: float
g: {type: decimal, default: 1.50}
h: optional<decimal>
i: optional<integer>
j: array<decimal>
k: array<Line>
l: Line
m: optional<Line>
n: array<enum[red, green]>
o: optional<array<integer>>
p: set<integer>
q: map<string, decimal>
r: date
s: timestamp
t: duration
u: bytes
v: json
w: array<array<integer>>
x: {type: optional<string>, default: some}
type: string
name: array<string>
inputs: array<boolean>
class: integer"""
    names = [line.partition(":")[0] for line in inputs.splitlines()]
    entries = "\n".join(f"    {name}: input.{name}" for name in names)
    outputs = "\n".join(line.replace("{type: ", "").replace(", default: 1.50}", "").replace(", default: some}", "")
                        for line in inputs.splitlines())  # fmt: skip
    rest = "types:\n  Line: {fields: {qty: integer, price: decimal, text: optional<string>, tags: array<string>}}"
    return small_node(inputs, f"- operation: return\n  success:\n{entries}", outputs, rest)


def end_of(run: Callable[[], Any]) -> tuple[object, ...]:
    """Return the outcome in a comparable form."""
    try:
        return "returned", run()
    except raised.BadInput as bad:
        return "bad input", list(bad.problems)
    except raised.ContractBroken as broken:
        return "broken", broken.phase, broken.index, plain(broken.values)  # type: ignore[arg-type]
    except raised.DeclaredError as error:
        return "error", plain(error.values)  # type: ignore[arg-type]
    except (raised.Raised, raised.ClauseFailed) as failure:
        return "failed", failure.code
    except (TypeError, DecimalException) as error:
        return "type error", str(error)


def by_meaning(program: PythonProgram, inputs: dict[Any, Any]) -> Any:
    values, problems = accept_inputs(program.node.declared_inputs, inputs)
    if problems:
        return "bad input", problems
    try:
        ending = end_of(partial(program.callable(), **values, now=NOW))
    except LargeCall:  # the plain form has no meter
        ending = end_of(partial(program.metered_callable(), Meter(DEFAULT_LIMITS.fuel), **values, now=NOW))
    return ("returned", plain(ending[1])) if ending[0] == "returned" else ending  # type: ignore[arg-type]


def agree(program: PythonProgram, inputs: dict[Any, Any]) -> str:
    try:
        expected = by_meaning(program, inputs)
    except TypeError as error:
        expected = "type error", str(error)
    found = end_of(partial(program.entry, inputs, **({"now": NOW} if program.takes_now else {})))
    assert same(list(found), list(expected)), f"{inputs!r}: {found!r}, not {expected!r}"
    return str(found[0])


def _renamed(record: dict[str, Any], field: str) -> dict[Any, Any]:
    return {lying(name) if name == field else name: value for name, value in record.items()}


def spoil(source: random.Random, inputs: dict[Any, Any]) -> None:
    """Insert or remove something at any depth, as a value or a name."""
    place: Any = inputs
    for _ in range(source.randrange(4)):
        inner = [each for each in (place.values() if isinstance(place, dict) else place) if type(each) in (dict, list)]
        if not inner:
            break
        place = source.choice(inner)
    keys = list(place) if isinstance(place, dict) else list(range(len(place)))
    match source.randrange(8):
        case 0 if isinstance(place, dict):
            place[source.choice(NAMES)] = 1
        case 1 if keys:
            del place[source.choice(keys)]
        case 2 if isinstance(place, dict) and keys:
            key = source.choice(keys)
            place[lying(key)] = place.pop(key)
        case 3 | 4 if keys:
            key = source.choice(keys)
            place[key] = lying(place[key])
        case _ if keys:
            place[source.choice(keys)] = source.choice(EDGES)
        case _:
            pass


def drawn(program: PythonProgram, count: int) -> set[str]:
    generator = InputGenerator(program.node, 5)
    source = random.Random(11)
    endings = set()
    for _ in range(count):
        inputs = generator.draw()
        endings.add(agree(program, inputs))
        for _ in range(source.randrange(1, 4)):
            spoil(source, inputs)
        endings.add(agree(program, inputs))
    return endings


@pytest.mark.parametrize("path", pure_nodes(), ids=lambda path: path.stem)
def test_of_a_worked_node(path: Path) -> None:
    program = PythonEngine().load(compiled(path))
    endings = drawn(program, DRAWN)
    if program.node.inputs:
        assert "bad input" in endings


def test_of_every_type() -> None:
    assert {"returned", "bad input"} <= drawn(PythonEngine().load(every_type()), 600)


@pytest.mark.parametrize("edge", EDGES, ids=lambda edge: repr(edge)[:20].encode("ascii", "backslashreplace").decode())
def test_every_edge_in_every_place(edge: object) -> None:
    program = PythonEngine().load(every_type())
    generator = InputGenerator(program.node, 3, seeks_boundaries=False)
    good = next(each for each in (generator.draw() for _ in range(1000)) if agree(program, each) == "returned")
    line = {"qty": 1, "price": Decimal(1), "text": "x", "tags": ["x"]}
    for name in good:
        agree(program, {**good, name: edge})
        agree(program, {**good, name: lying(edge)})
        agree(program, {**good, name: [edge]})
    for field in line:
        for record in ({**line, field: edge}, {**line, field: lying(edge)}, _renamed(line, field)):
            agree(program, {**good, "l": record})
            agree(program, {**good, "k": [line, record]})


@pytest.mark.parametrize("inputs", [None, [], "x", 5, {1: 2}, {"b": 1, ("a",): 2}], ids=repr)
def test_what_is_no_dict_of_names_is_a_type_error(inputs: Any) -> None:
    program = PythonEngine().load(every_type())
    with pytest.raises(TypeError, match="input"):
        program.entry(inputs)


def test_outputs_are_objects_of_their_own() -> None:
    """Changing inputs or outputs afterwards changes nothing inside."""
    node = small_node(
        "x: array<integer>\ny: {type: array<integer>, default: [1, 2]}",
        "- operation: return\n  success: {x: input.x, y: input.y, z: fixed, w: table}",
        "x: array<integer>\ny: array<integer>\nz: array<integer>\nw: map<string, array<integer>>",
        "constants:\n  fixed: {type: array<integer>, value: [7]}\n"
        "  table: {type: 'map<string, array<integer>>', value: {a: [1]}}",
    )
    program = PythonEngine().load(node)
    given = [5]
    first = program.entry({"x": given})
    kept = copy.deepcopy(first)
    given.append(6)
    assert first == kept
    for changed in (first["x"], first["y"], first["z"], first["w"]["a"]):
        changed.append(99)
    assert program.entry({"x": [5]}) == kept
    for _ in range(2):
        outcome = run_observed(program, {"x": [5]}).outcome
        assert isinstance(outcome, Returned)
        assert outcome.value == kept
        outcome.value["z"].append(99)  # type: ignore[union-attr]  # a list


def test_the_callers_context_comes_back_whatever_happens() -> None:
    program = PythonEngine().load(small_node("a: decimal", MULTIPLY))
    with localcontext(Context(prec=3, traps=[])) as ambient:
        for given in (Decimal("1.23456"), Decimal("9" * 600), "x", Decimal("NaN")):
            end_of(partial(program.entry, {"a": given}))
            assert getcontext() is ambient


MULTIPLY = "- {step: result, operation: compute, value: a * a}\n- {operation: return, success: [result]}"
