"""Nodes for tests: worked ones, small ones from text, and ones around a single operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from vesper.compiler import Compiled, compile_file, compile_source
from vesper.language.check.expressions.checker import ExpressionChecker
from vesper.language.check.scope import Scope
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.render.full import render_full
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir import nodes as ir
from vesper.language.ir.encode import encode, semantic_hash
from vesper.language.syntax import ast
from vesper.language.syntax.expression_parser import parse_expression
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_tree import Mapping as Mapping_
from vesper.language.syntax.yaml_tree import Scalar
from vesper.repository.locate import is_library_file
from vesper.values.generated.operations import OPERATIONS
from vesper.values.model import Value
from vesper.values.types import Type, declared_type, match_declared, substitute

ROOT = Path(__file__).parents[2]
PAYMENT_DECISION = ROOT / "nodes" / "payments" / "payment_decision_v1.vsp"
_HERE = ir.Place(1, 1, 1, 1)


def worked_nodes() -> list[Path]:
    """Return the nodes under `nodes/`, without the libraries there."""
    return [path for path in sorted((ROOT / "nodes").rglob("*.vsp")) if not is_library_file(path)]


def written_for_tests() -> list[Path]:
    """Return the nodes written for tests, which use every form of the language."""
    return sorted((ROOT / "tests" / "integration" / "differential" / "nodes").glob("*.vsp"))


def compiled(path: Path) -> Compiled:
    """Return the node of a file, compiled once; files do not change during tests."""
    return _compiled_once(path) if path.is_relative_to(ROOT) else compiled_anew(path)


@cache
def _compiled_once(path: Path) -> Compiled:
    return compiled_anew(path)


def compiled_anew(path: Path) -> Compiled:
    """Compile a file without the cache, for tests of compilation."""
    node, bag = compile_file(path)
    assert node is not None, "\n".join(render_full(bag.source, each) for each in bag.sorted())
    return node


def compiled_text(text: str, path: str = "test.vsp") -> Compiled:
    """Return the node of a text, even if no caller can satisfy its contracts.

    `path` is the base for nodes that it calls.
    """
    node, bag = compile_source(SourceFile(path, text), judge_contracts=False)
    assert node is not None, "\n".join(render_full(bag.source, each) for each in bag.sorted())
    return node


def small_node(inputs: str, flow: str, outputs: str = "result: decimal", rest: str = "") -> Compiled:
    """Return a node from the parts that a test needs."""
    indent = "\n".join
    return compiled_text(
        indent(
            [
                "node_id: small_v1",
                "type: function",
                "intent: Test",
                "inputs:",
                *(f"  {line}" for line in inputs.splitlines()),
                "outputs:",
                "  success:",
                *(f"    {line}" for line in outputs.splitlines()),
                "flow:",
                *(f"  {line}" for line in flow.splitlines()),
                rest,
            ]
        )
    )


def compiled_ir(node: ir.Node) -> Compiled:
    """Compiled IR without a source; for nodes that are built and not written."""
    numbered = ir.number_expressions(node)
    return Compiled(SourceFile("test.vsp", ""), numbered, (), encode(numbered), semantic_hash(numbered))


def operation_node(op: str, of: Sequence[Type], args: Sequence[tuple[Type, Value]]) -> Compiled:
    """Return a node of one operation; its arguments are inputs, except required literals."""
    spec = OPERATIONS[op]
    bindings: dict[str, Type] = dict(zip((name for name, _ in spec.type_params), of, strict=True))
    inputs: list[ir.Input] = []
    operands: list[ir.Expression] = []
    for (name, pattern), (type_, value) in zip(spec.params, args, strict=True):
        wanted = substitute(declared_type(pattern), bindings)
        assert match_declared(wanted, type_, bindings), f"{op}: {name} is {type_}, declared {pattern}"
        if name in spec.literals:
            operands.append(ir.Literal(type_, value, _HERE))
            continue
        inputs.append(ir.Input(name, type_, None))
        operands.append(ir.Ref("input", name, type_, _HERE))
    result = substitute(declared_type(spec.returns), bindings)
    call = ir.Call(op, tuple(of), tuple(operands), result, _HERE)
    answer = ir.Ref("step", "the_answer", result, _HERE)
    body = (ir.Step("the_answer", call, _HERE), ir.Return((("result", answer),)))
    source = ir.Source("test.vsp", "0" * 64, "Test one operation")
    node = ir.Node(
        "operation_v1", "function", tuple(inputs), (ir.Output("result", result),), (), (), (), body, (), source
    )
    return compiled_ir(node)


def expression_node(text: str, inputs: Mapping[str, Type]) -> Compiled:
    """Return a node of one expression over its inputs."""
    shown = "".join(f"  {name}: '{type_}'\n" for name, type_ in inputs.items())
    quoted = text.replace("'", "''")
    bag = DiagnosticBag(SourceFile("test.vsp", f"inputs:\n{shown}value: '{quoted}'\n"))
    tree = read_yaml(bag)
    assert isinstance(tree, Mapping_)
    slot = tree.entries[-1][1]
    assert isinstance(slot, Scalar)
    parsed = parse_expression(slot, bag)
    assert parsed is not None
    scope = Scope()
    for name, type_ in inputs.items():
        scope.declare("input", ast.Word(name, slot.span), type_, bag)
    found = ExpressionChecker(scope, bag).infer(parsed, None)
    assert found is not None, [each.headline for each in bag.sorted()]
    answer = ir.Ref("step", "the_answer", found.type, _HERE)
    body = (ir.Step("the_answer", found, _HERE), ir.Return((("result", answer),)))
    declared = tuple(ir.Input(name, type_, None) for name, type_ in inputs.items())
    source = ir.Source("test.vsp", "0" * 64, "Test one expression")
    outputs = (ir.Output("result", found.type),)
    return compiled_ir(ir.Node("expression_v1", "function", declared, outputs, (), (), (), body, (), source))
