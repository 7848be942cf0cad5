"""Nodes that call nodes: which is found, what is known of it, and what is said where it cannot be called."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner

from vesper.cli.main import vesper
from vesper.compiler import Compiled, compile_file
from vesper.compiler.check_files import check_files
from vesper.compiler.node_cache import NodeCache
from vesper.engines.engine import Limits
from vesper.engines.outcome import ContractBroken, DeclaredError, Failed, LimitHit, Returned
from vesper.engines.python_engine import PythonEngine
from vesper.engines.registry import ENGINES
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.repository.lock import LOCK_NAME, PinnedNode, lock_text
from vesper.values.limits import MAX_CALL_DEPTH

FEE = """\
node_id: fee_v{version}
type: function
intent: Work out a fee
inputs:
  amount: decimal
  rate: {{type: decimal, default: {rate}}}
outputs:
  success: {{fee: decimal}}
  error:
    error_code: enum[too_much]
    message: string
contracts:
  preconditions: [amount >= 0]
flow:
  - operation: raise
    when: amount > 1000
    error: {{error_code: too_much, message: "{{amount}} is too much"}}
  - operation: return
    success:
      fee: amount * rate
"""
PRICE = """\
node_id: price_v1
type: function
intent: Add a fee
inputs:
  amount: decimal
outputs:
  success: {{total: decimal}}
flow:
  - step: fee
    operation: call_node
    node: {callee}
    inputs: {{{inputs}}}
{more}
  - operation: return
    success:
      total: amount + fee.fee
"""


def write(folder: Path, text: str) -> Path:
    node_id = text.partition("node_id: ")[2].partition("\n")[0]
    path = folder / f"{node_id}.vsp"
    path.write_text(text, encoding="utf-8")
    return path


def price(callee: str = "fee_v1", inputs: str = "amount: amount", more: str = "") -> str:
    return PRICE.format(callee=callee, inputs=inputs, more=more)


def fee(version: int = 1, rate: str = "0.02") -> str:
    return FEE.format(version=version, rate=rate)


def found(path: Path) -> tuple[Compiled | None, set[Code]]:
    compiled, bag = compile_file(path)
    return compiled, codes(bag)


def codes(bag: DiagnosticBag) -> set[Code]:
    return {each.code for each in bag.sorted()}


def test_a_call_gives_the_outputs_and_its_failures_are_failures(tmp_path: Path) -> None:
    write(tmp_path, fee())
    compiled, said = found(write(tmp_path, price()))
    assert said == set()
    assert compiled is not None
    program = PythonEngine().load(compiled)
    assert program.call({"amount": "100"}) == Returned({"total": Decimal("102.00")})
    outcome = program.call({"amount": "2000"})
    assert isinstance(outcome, Failed)
    assert outcome.code == "too_much"
    broken = program.call({"amount": "-1"})
    assert isinstance(broken, Failed)
    assert broken.code == "contract_broken"


def test_a_handler_takes_a_declared_error_of_the_callee(tmp_path: Path) -> None:
    write(tmp_path, fee())
    handled = "    on_error:\n      too_much: {value: '{fee: 20}'}"
    compiled, said = found(write(tmp_path, price(more=handled)))
    assert said == set()
    assert compiled is not None
    assert PythonEngine().load(compiled).call({"amount": "2000"}) == Returned({"total": 2020})


def test_the_callers_hash_changes_with_the_callee(tmp_path: Path) -> None:
    write(tmp_path, fee())
    path = write(tmp_path, price())
    first, _ = compile_file(path)
    write(tmp_path, fee(rate="0.03"))
    second, _ = compile_file(path)
    assert first is not None
    assert second is not None
    assert first.semantic_hash != second.semantic_hash


def test_a_name_without_version_is_the_newest_or_what_the_lock_says(tmp_path: Path) -> None:
    write(tmp_path, fee(1))
    write(tmp_path, fee(10, rate="0.10"))
    write(tmp_path, fee(9, rate="0.09"))
    path = write(tmp_path, price("fee"))
    newest, _ = compile_file(path)
    assert newest is not None
    assert [each.node for each in newest.node.calls] == ["fee_v10"]
    first, _ = compile_file(tmp_path / "fee_v1.vsp")
    assert first is not None
    (tmp_path / LOCK_NAME).write_text(lock_text([PinnedNode("fee_v1", first.semantic_hash)]), encoding="utf-8")
    pinned, _ = compile_file(path)
    assert pinned is not None
    assert [each.node for each in pinned.node.calls] == ["fee_v1"]


@pytest.mark.parametrize(
    "callee, inputs, code",
    [
        ("fee_v2", "amount: amount", Code.UNKNOWN_NODE),
        ("fees", "amount: amount", Code.UNKNOWN_NODE),
        ("fee_v1", "", Code.MISSING_KEY),
        ("fee_v1", "amount: amount, ammount: 1", Code.UNKNOWN_KEY),
        ("fee_v1", "amount: true", Code.TYPE_MISMATCH),
    ],
)
def test_a_call_that_does_not_fit(tmp_path: Path, callee: str, inputs: str, code: Code) -> None:
    write(tmp_path, fee())
    compiled, said = found(write(tmp_path, price(callee, inputs)))
    assert compiled is None
    assert said == {code}


def test_a_wrong_callee(tmp_path: Path) -> None:
    write(tmp_path, fee().replace("amount * rate", "amount * rat"))
    assert found(write(tmp_path, price()))[1] == {Code.WRONG_CALLEE}


def test_a_cycle_is_shown_as_a_path(tmp_path: Path) -> None:
    other = price("price_v1").replace("price_v1\ntype", "other_v1\ntype").replace("total: decimal", "fee: decimal")
    write(tmp_path, other.replace("total: amount + fee.fee", "fee: amount"))
    path = write(tmp_path, price("price_v1"))
    _, bag = compile_file(path)
    assert codes(bag) == {Code.DEPENDENCY_CYCLE}
    assert "price_v1 → price_v1" in bag.sorted()[0].headline


def caller(name: str, callee: str) -> str:
    return (
        f"node_id: {name}_v1\ntype: function\nintent: Call another node\nmetadata: {{dependencies: [{callee}_v1]}}\n"
        "inputs: {n: integer}\noutputs: {success: {r: integer}}\n"
        f"flow:\n  - step: other\n    operation: call_node\n    node: {callee}\n    inputs: [n]\n"
        "  - operation: return\n    success: {r: other.r}\n"
    )


def test_every_node_of_a_cycle_shows_the_cycle(tmp_path: Path) -> None:
    names = ("ping", "pong", "pang")
    paths = [write(tmp_path, caller(*pair)) for pair in zip(names, (*names[1:], names[0]), strict=True)]
    for name, path in zip(names, paths, strict=True):
        start = names.index(name)
        cycle = " → ".join(f"{each}_v1" for each in (*names[start:], *names[:start], name))
        (diagnostic,) = compile_file(path)[1].sorted()
        assert diagnostic.code is Code.DEPENDENCY_CYCLE
        assert diagnostic.headline == f"`{name}_v1` calls itself: {cycle}"
        assert diagnostic.help is not None


def test_a_caller_outside_the_cycle_names_it(tmp_path: Path) -> None:
    write(tmp_path, caller("ping", "pong"))
    write(tmp_path, caller("pong", "ping"))
    (diagnostic,) = compile_file(write(tmp_path, caller("outside", "ping")))[1].sorted()
    assert diagnostic.code is Code.WRONG_CALLEE
    assert diagnostic.help == "`ping_v1` calls itself: ping_v1 → pong_v1 → ping_v1"


def test_the_command_for_a_wrong_callee_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nodes" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "nodes" / "deep", fee().replace("amount * rate", "amount * rat"))
    _, bag = compile_file(write(tmp_path / "nodes", price()))
    (diagnostic,) = bag.sorted()
    assert diagnostic.help is not None
    command = re.search(r"`vesper (.*)`", diagnostic.help)
    assert command is not None
    result = CliRunner().invoke(vesper, command[1].split())
    assert result.exit_code == 1
    assert "`rat`" in result.output


def test_dependencies_may_list_a_called_node_with_errors(tmp_path: Path) -> None:
    write(tmp_path, caller("broken", "absent"))
    assert found(write(tmp_path, caller("user", "broken")))[1] == {Code.WRONG_CALLEE}
    assert found(tmp_path / "broken_v1.vsp")[1] == {Code.UNKNOWN_NODE}


def test_two_versions_of_one_node(tmp_path: Path) -> None:
    write(tmp_path, fee(1))
    write(tmp_path, fee(2))
    second = "  - step: other\n    operation: call_node\n    node: fee_v2\n    inputs: [amount]"
    assert Code.VERSION_CONFLICT in found(write(tmp_path, price(more=second)))[1]


@pytest.mark.parametrize(
    "text",
    [
        "no toml",
        '[fee]\nid = "fee_v1"\n',
        '[fee]\nid = "price_v1"\nhash = "0"\n',
        '[fee]\nid = "fee_v7"\nhash = "' + "0" * 64 + '"\n',
        '[fee]\nid = "fee_v1"\nhash = "' + "0" * 64 + '"\n',
    ],
)
def test_a_lock_that_cannot_be_followed(tmp_path: Path, text: str) -> None:
    write(tmp_path, fee())
    (tmp_path / LOCK_NAME).write_text(text, encoding="utf-8")
    assert found(write(tmp_path, price("fee")))[1] == {Code.BAD_LOCK}


def test_the_declared_errors_of_a_function(tmp_path: Path) -> None:
    compiled, said = found(write(tmp_path, fee()))
    assert said == set()
    assert compiled is not None
    program = PythonEngine().load(compiled)
    error = DeclaredError({"error_code": "too_much", "message": "2000 is too much"})
    assert program.call({"amount": "2000"}) == error
    assert isinstance(program.call({"amount": "-1"}), ContractBroken)


def test_what_is_said_of_a_caller_is_not_kept(tmp_path: Path) -> None:
    write(tmp_path, fee())
    path = write(tmp_path, price())
    with NodeCache(tmp_path / "cache") as cache:
        assert [each.is_wrong for each in check_files([path], cache)] == [False]
    write(tmp_path, fee().replace("amount * rate", "amount * rat"))
    with NodeCache(tmp_path / "cache") as cache:
        assert [each.is_wrong for each in check_files([path], cache)] == [True]


def test_calls_may_be_so_deep_by_whatever_way(tmp_path: Path) -> None:
    """A node that was found by a short way first counts from where the long way comes to it."""
    link = """\
node_id: {name}
type: function
intent: Test
inputs: {{x: integer}}
outputs: {{success: {{x: integer}}}}
flow:
{calls}
  - {{operation: return, success: {{x: x}}}}
"""
    call = "  - {{step: of_{callee}, operation: call_node, node: {callee}, inputs: {{x: x}}}}"

    def node(name: str, *callees: str) -> Path:
        return write(tmp_path, link.format(name=name, calls="\n".join(call.format(callee=each) for each in callees)))

    names = [f"link_{number}_v1" for number in range(1, MAX_CALL_DEPTH)]
    for name, *callees in ((name, *names[place + 1 : place + 2]) for place, name in enumerate(names)):
        node(name, *callees)
    deepest, said = found(node("deepest_v1", names[0]))
    assert said == set()
    assert deepest is not None
    for engine in ENGINES.values():
        program = engine.load(deepest)
        assert program.call({"x": 7}) == Returned({"x": 7})
        assert program.call({"x": 7}, None, Limits(MAX_CALL_DEPTH - 2)) == LimitHit("fuel")
    node("between_v1", names[0])
    assert found(node("too_deep_v1", "deepest_v1"))[0] is None
    assert found(node("two_ways_v1", names[0], "between_v1"))[0] is None
