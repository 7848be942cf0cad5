"""Function nodes called in expressions: as statements where always evaluated, inlined elsewhere."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

import vesper as api
from vesper.compiler import Compiled, compile_file
from vesper.engines.outcome import ContractBroken, Failed, Returned
from vesper.engines.registry import ENGINES
from vesper.language.ir import nodes as ir

FEE = """\
node_id: fee_v1
type: function
intent: Work out a fee
inputs:
  amount: decimal
  rate: {type: decimal, default: 0.1}
outputs: {success: {fee: decimal, rest: decimal}}
constants: {least: {type: decimal, value: 2}}
flow:
  - step: raw
    operation: compute
    value: LET r = rate IN SUM(x * r FOR x IN [amount])
  - step: fee
    operation: compute
    value: max(least, raw)
  - operation: return
    success: {fee: fee, rest: 100 / amount}
"""
PRICE = """\
node_id: price_v1
type: function
intent: Add fees
inputs: {{amount: decimal, xs: array<decimal>}}
outputs: {{success: {{total: decimal}}}}
flow:
  - step: total
    operation: compute
    value: {value}
    {more}
  - operation: return
    success: [total]
"""


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "fee_v1.vsp").write_text(FEE)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "nodes"


def price(nodes: Path, value: str, more: str = "") -> Path:
    (nodes / "price_v1.vsp").write_text(PRICE.format(value=f"'{value}'", more=more))
    return nodes / "price_v1.vsp"


def compiled(path: Path) -> Compiled:
    found, bag = compile_file(path)
    assert found is not None, bag.sorted()
    return found


def calls(node: ir.Node) -> int:
    return sum(isinstance(each, ir.CallNode) for each in node.body)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "value, statements, expected",
    [
        ("fee(amount: amount).fee", 1, "5"),
        ("fee_v1(amount: amount, rate: 0.5).fee + 1", 1, "26"),
        ("fee(amount: fee(amount: amount).fee).fee", 2, "2"),
        ("IF amount > 1 THEN fee(amount: amount).fee ELSE 0", 0, "5"),
        ("IF fee(amount: amount).fee > 1 THEN fee(rate: 0.5, amount: amount).fee ELSE 0", 1, "25"),
        ("SUM(fee(amount: x).fee + amount FOR x IN xs)", 0, "106"),
        ("SUM(fee(amount: fee(amount: x).fee * x).fee FOR x IN xs)", 0, "20"),
        ("LET a = fee(amount: amount) IN a.fee + a.rest", 1, "7"),
        ("LET a = amount IN fee(amount: a).fee", 0, "5"),
    ],
)
def test_value_of_a_call(nodes: Path, engine: str, value: str, statements: int, expected: str) -> None:
    found = compiled(price(nodes, value))
    assert calls(found.node) == statements
    outcome = ENGINES[engine].load(found).call({"amount": Decimal(50), "xs": [Decimal(20), Decimal(40)]})
    assert outcome == Returned({"total": Decimal(expected)})


@pytest.mark.parametrize("engine", ENGINES)
def test_inlined_steps_fail_although_their_value_is_not_used(nodes: Path, engine: str) -> None:
    program = ENGINES[engine].load(compiled(price(nodes, "IF amount < 1 THEN fee(amount: amount).fee ELSE 0")))
    outcome = program.call({"amount": Decimal(0), "xs": []})
    assert isinstance(outcome, Failed)
    assert outcome.code == "division_by_zero"


def test_call_in_a_return_precedes_it(nodes: Path) -> None:
    path = price(nodes, "amount")
    text = path.read_text().replace("success: [total]", "success:\n      total: 'total + fee(amount: amount).fee'")
    path.write_text(text)
    program = ENGINES["python"].load(compiled(path))
    assert program.call({"amount": Decimal(50), "xs": []}) == Returned({"total": Decimal(55)})


def test_contracts_of_the_called_node(nodes: Path) -> None:
    (nodes / "fee_v1.vsp").write_text(FEE.replace("flow:", "contracts: {preconditions: [amount > 0]}\nflow:"))
    program = ENGINES["interp"].load(compiled(price(nodes, "fee(amount: amount).fee")))
    outcome = program.call({"amount": Decimal(-1), "xs": []})
    assert isinstance(outcome, Failed | ContractBroken)
    _, bag = compile_file(price(nodes, "IF amount > 1 THEN fee(amount: amount).fee ELSE 0"))
    (found,) = bag.sorted()
    assert found.headline.startswith("an expression cannot hold a call of `fee_v1` here, because it has contracts")
    assert found.help is not None
    assert "operation: call_node" in found.help


def test_a_node_with_recursive_functions_is_called_in_a_step(nodes: Path) -> None:
    value = "IF n < 1 THEN 0 ELSE n + sum_to(n - 1)"
    functions = f"functions:\n  sum_to: {{params: {{n: integer}}, returns: integer, max_depth: 9, value: {value}}}\n"
    text = FEE.replace("flow:", f"{functions}flow:").replace("max(least, raw)", "max(least, raw) + sum_to(3)")
    (nodes / "fee_v1.vsp").write_text(text)
    program = ENGINES["interp"].load(compiled(price(nodes, "fee(amount: amount).fee")))
    assert program.call({"amount": Decimal(50), "xs": []}) == Returned({"total": Decimal(11)})
    _, bag = compile_file(price(nodes, "IF amount > 1 THEN fee(amount: amount).fee ELSE 0"))
    assert [each.code.title for each in bag.sorted()] == ["not-inlined"]


@pytest.mark.parametrize(
    "value, more, expected",
    [
        ("fee(amont: amount).fee", "", ["unknown-key", "missing-key"]),
        ("IF amount > 1 THEN fee(amont: amount).fee ELSE 0", "", ["missing-key", "unknown-key"]),
        ("fees(amount: amount).fee", "", ["unknown-node"]),
        ("fee(amount: true).fee", "", ["type-mismatch"]),
        ("fee(amount: amount).fees", "", ["unknown-name"]),
        ("price(amount: amount, xs: xs).total", "", ["dependency-cycle"]),
    ],
)
def test_refused(nodes: Path, value: str, more: str, expected: list[str]) -> None:
    _, bag = compile_file(price(nodes, value, more))
    assert sorted(each.code.title for each in bag.sorted()) == sorted(expected)


def test_caches_depend_on_inlined_nodes(nodes: Path) -> None:
    path = str(price(nodes, "IF amount > 1 THEN fee(amount: amount).fee ELSE 0"))

    def total() -> object:
        return api.load(path).call({"amount": 50, "xs": []})["total"]

    assert (total(), total()) == (Decimal(5), Decimal(5))
    (nodes / "fee_v1.vsp").write_text(FEE.replace("default: 0.1", "default: 0.2"))
    assert total() == Decimal(10)
