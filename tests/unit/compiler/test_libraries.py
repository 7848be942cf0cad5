"""Libraries: which is found, what a node takes from it, and what is reported where."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner

import vesper as api
from vesper.cli.main import vesper
from vesper.compiler import Compiled, compile_file
from vesper.compiler.check_files import check_files
from vesper.compiler.node_cache import NodeCache
from vesper.engines.outcome import ContractBroken, Returned
from vesper.engines.registry import ENGINES
from vesper.language.diagnostics.diagnostic import Diagnostic
from vesper.language.ir import nodes as ir

BASE = """\
library_id: base_v1
intent: Common definitions
types:
  Percent: {type: decimal, constraints: [{min: 0}, value <= most()]}
constants:
  cap: {type: decimal, value: 1}
  unused: {type: decimal, value: 7}
functions:
  most: {returns: decimal, value: cap}
  half: {params: {x: decimal}, returns: decimal, value: x / 2}
"""
RATES = """\
library_id: rates_v1
intent: Rates
use: [base_v1]
types:
  Line:
    fields: {net: decimal, rate: Percent}
    constraints: [net >= 0]
constants:
  cap: {type: decimal, value: 100}
functions:
  tax:
    params: {line: Line, extra: decimal}
    returns: decimal
    value: min(cap, half(line.net * line.rate) + extra)
"""
PRICE = """\
node_id: price_v1
type: function
intent: Work out a tax
use: {use}
inputs:
  line: Line
  cap_of_node: decimal
outputs:
  success: {{total: decimal}}
flow:
  - step: total
    operation: compute
    value: {value}
  - operation: return
    success: [total]
"""


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "nodes"
    folder.mkdir()
    (folder / "base_v1.vsp").write_text(BASE.replace("use: [base_v1]\n", ""))
    (folder / "rates_v1.vsp").write_text(RATES.replace("use: [base_v1]", "use: {base_v1: [Percent, half]}"))
    monkeypatch.chdir(tmp_path)
    return folder


def price(nodes: Path, value: str = "tax(line, cap_of_node)", use: str = "[rates_v1]") -> Path:
    path = nodes / "price_v1.vsp"
    path.write_text(PRICE.format(value=value, use=use))
    return path


def compiled(path: Path) -> Compiled:
    found, bag = compile_file(path)
    assert found is not None, bag.sorted()
    return found


def errors(path: Path) -> list[Diagnostic]:
    found, bag = compile_file(path)
    assert found is None
    return bag.sorted()


LINE = {"net": Decimal(60), "rate": Decimal("0.5")}


@pytest.mark.parametrize("engine", ENGINES)
def test_definitions_are_inlined_on_every_engine(nodes: Path, engine: str) -> None:
    program = ENGINES[engine].load(compiled(price(nodes)))
    assert program.call({"line": LINE, "cap_of_node": Decimal(1)}) == Returned({"total": Decimal(16)})
    assert program.call({"line": LINE, "cap_of_node": Decimal(99)}) == Returned({"total": Decimal(100)})
    broken = program.call({"line": {**LINE, "rate": Decimal(2)}, "cap_of_node": Decimal(1)})
    assert isinstance(broken, ContractBroken)


def test_only_used_definitions_are_in_the_ir(nodes: Path) -> None:
    both = compiled(price(nodes)).node
    assert [(each.name, each.value) for each in both.constants] == [("_cap", 1), ("__cap", 100)]
    none = compiled(price(nodes, "line.net + cap_of_node")).node
    assert [each.name for each in none.constants] == ["_cap"], "the constraint of Percent uses it"
    before = compiled(price(nodes)).semantic_hash
    (nodes / "base_v1.vsp").write_text(BASE.replace("value: 7", "value: 8").replace("Common", "Shared"))
    assert compiled(price(nodes)).semantic_hash == before
    (nodes / "base_v1.vsp").write_text(BASE.replace("x / 2", "x / 4"))
    assert compiled(price(nodes)).semantic_hash != before


def test_places_are_in_the_file_of_the_node(nodes: Path) -> None:
    path = price(nodes)
    node = compiled(path).node
    lines = len(path.read_text().splitlines())
    assert all(each.place.end_line <= lines for each in node.expressions())
    (step, *_) = node.body
    assert isinstance(step, ir.Step)
    assert {each.place.line for each in ir.walk(step.value)} == {13}


@pytest.mark.parametrize(
    "value, use, expected",
    [
        ("half(line.net)", "[rates_v1]", "no function is named `half`"),
        ("line.net", "[ratez_v1]", "there is no library `ratez_v1`"),
        ("line.net", "{rates_v1: [Line, taxx]}", "no definition of `rates_v1` is named `taxx`"),
        ("tax(line)", "[rates_v1]", "`tax` takes 2 arguments, not 1"),
        ("cap + cap_of_node", "[rates_v1, base_v1]", "a constant of `base_v1` cannot be called `cap`: a constant of"),
    ],
)
def test_errors_of_a_use_are_at_the_node(nodes: Path, value: str, use: str, expected: str) -> None:
    (found,) = errors(price(nodes, value, use))
    assert found.headline.startswith(expected)


def test_names_of_the_node_may_not_be_those_of_a_library(nodes: Path) -> None:
    path = price(nodes)
    path.write_text(path.read_text().replace("cap_of_node", "cap"))
    (found,) = errors(path)
    assert found.headline == "this input cannot be called `cap`: a constant of `rates_v1` has that name"
    path.write_text(path.read_text().replace("[rates_v1]", "{rates_v1: [Line, tax]}"))
    compiled(path)


def test_errors_of_a_library_are_at_its_own_line(nodes: Path) -> None:
    path = price(nodes)
    (nodes / "base_v1.vsp").write_text(BASE.replace("x / 2", "x / y"))
    (found,) = errors(path)
    assert found.headline == "the library `rates_v1` has errors"
    done = CliRunner().invoke(vesper, ["check", "--format", "concise", "nodes"])
    assert done.exit_code != 0
    assert "nodes/base_v1.vsp:10:" in done.output
    assert "nodes/rates_v1.vsp:3:" in done.output
    assert "the library `base_v1` has errors" in done.output


def test_constraints_of_an_unused_type_are_checked(nodes: Path) -> None:
    (nodes / "base_v1.vsp").write_text(BASE.replace("value <= most()", "value <= least()"))
    done = CliRunner().invoke(vesper, ["check", "--format", "concise", "nodes/base_v1.vsp"])
    assert "nodes/base_v1.vsp:4:" in done.output


def test_libraries_do_not_use_themselves(nodes: Path) -> None:
    (nodes / "base_v1.vsp").write_text(BASE.replace("types:", "use: [rates_v1]\ntypes:"))
    done = CliRunner().invoke(vesper, ["check", "--format", "concise", "nodes"])
    assert "uses itself: rates_v1 → base_v1 → rates_v1" in done.output
    assert "uses itself: base_v1 → rates_v1 → base_v1" in done.output


def test_a_library_does_not_run(nodes: Path) -> None:
    (found,) = errors(nodes / "base_v1.vsp")
    assert found.headline == "`base_v1` is a library, and libraries do not run"
    price(nodes)
    done = CliRunner().invoke(vesper, ["test", "--max-examples", "0", "nodes"])
    assert "1 node tested" in done.output, done.output


def test_the_lock_pins_used_libraries(nodes: Path) -> None:
    path = price(nodes, use="[rates]")
    assert CliRunner().invoke(vesper, ["nodes", "lock"]).exit_code == 0
    lock = (nodes / "vesper.lock").read_text()
    assert 'id = "base_v1"' in lock
    assert 'id = "rates_v1"' in lock
    (nodes / "rates_v2.vsp").write_text(
        (nodes / "rates_v1.vsp").read_text().replace("rates_v1", "rates_v2").replace("100", "1")
    )
    first = compiled(path).semantic_hash
    (nodes / "base_v1.vsp").write_text("# another comment\n" + BASE)
    assert compiled(path).semantic_hash == first, "pinned to rates_v1, and a comment means nothing"
    (nodes / "base_v1.vsp").write_text(BASE.replace("x / 2", "x / 4"))
    assert "has errors" in errors(path)[0].headline
    (nodes / "vesper.lock").unlink()
    assert compiled(path).semantic_hash != first


def test_caches_depend_on_the_bytes_of_libraries(nodes: Path, tmp_path: Path) -> None:
    path = price(nodes)
    for each in nodes.iterdir():
        os.utime(each, (1_700_000_000, 1_700_000_000))
    files = sorted(nodes.glob("*.vsp"))

    def checked() -> list[str | None]:
        with NodeCache(tmp_path / "checked") as cache:
            return [each.semantic_hash for each in check_files(files, cache)]

    def loaded() -> Decimal:
        total = api.load(str(path)).call({"line": LINE, "cap_of_node": 1})["total"]
        assert isinstance(total, Decimal)
        return total

    before = checked()
    assert checked() == before
    assert None not in before
    assert (loaded(), loaded()) == (Decimal(16), Decimal(16))
    (nodes / "base_v1.vsp").write_text(BASE.replace("x / 2", "x / 3"))
    assert checked() != before
    assert loaded() == Decimal(11), "the library at depth two has changed"
    (nodes / "base_v1.vsp").write_text(BASE)
    assert loaded() == Decimal(16)


RULES = """\
library_id: rules_v1
intent: A table and a recursive function
constants: {one: {type: integer, value: 1}}
functions:
  depth: {params: {n: integer}, returns: integer, max_depth: 5, value: "IF n <= 0 THEN 0 ELSE one + depth(n - 1)"}
  rate_of: {params: {n: integer}, returns: decimal, value: rate(n) * 2}
tables:
  rate:
    inputs: {n: integer}
    outputs: {rate: decimal}
    rows:
      - {in: {n: "< 10"}, then: 0.1, annotation: small}
      - {otherwise: 0.2}
"""
RULED = """\
node_id: ruled_v1
type: function
intent: Use a table and a recursive function of a library
use: [rules_v1]
inputs: {n: integer}
outputs: {success: {d: integer, r: decimal}}
functions:
  depth_of: {params: {n: integer}, returns: integer, value: depth(n)}
flow:
  - operation: return
    success:
      d: depth_of(n) + depth(n)
      r: rate(n) + rate(n + 1)
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_tables_and_recursive_functions_of_libraries(nodes: Path, engine: str) -> None:
    (nodes / "rules_v1.vsp").write_text(
        RULES.replace("  rate_of: {params: {n: integer}, returns: decimal, value: rate(n) * 2}\n", "")
    )
    (nodes / "ruled_v1.vsp").write_text(RULED)
    found = compiled(nodes / "ruled_v1.vsp")
    program = ENGINES[engine].load(found)
    assert program.call({"n": 3}) == Returned({"d": 6, "r": Decimal("0.2")})
    assert program.call({"n": 9}).kind == "failed"
    assert [each.name for each in found.node.functions] == ["_depth"]
    assert [each.name for each in found.node.constants] == ["_one"]
    assert len(found.node.tables) == 2, "a table occurs once for each call"
    assert {row.line for table in found.node.tables for row in table.rows} == {13}
    assert {each.place.line for each in ir.walk(found.node.functions[0].value)} == {8}


def test_functions_of_a_library_see_those_above(nodes: Path) -> None:
    (nodes / "rules_v1.vsp").write_text(RULES)
    done = CliRunner().invoke(vesper, ["check", "--format", "concise", "nodes/rules_v1.vsp"])
    assert "nodes/rules_v1.vsp:6:" in done.output
    assert "`rate`, which is declared below it" in done.output
