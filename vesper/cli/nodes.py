"""`vesper nodes`: what is in the repository. Reads and prints; writes nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vesper.cli.loading import compile_or_exit, find_node, find_nodes, nodes_option

if TYPE_CHECKING:
    from vesper.check.cases import Case
    from vesper.compiler import Compiled
    from vesper.ir.nodes import Node

_NO_CALLS = "no node depends on another: this version of Vesper has no calls between nodes"
_NO_EFFECTS = "no node needs a capability: this version of Vesper has pure nodes only"


@dataclass(frozen=True, slots=True)
class _Listed:
    """A file of the repository, with its node if that has no errors."""

    node_id: str
    path: Path
    compiled: Compiled | None
    errors: int


@click.group("nodes")
def command() -> None:
    """List nodes and show what is in them."""


def _all(root: Path) -> list[_Listed]:
    """Every file under the root, in the order of ids."""
    from vesper.compiler import compile_file
    from vesper.repository.locate import id_of

    found = []
    for path in find_nodes((), root):
        compiled, bag = compile_file(path)
        node_id = id_of(path) if compiled is None else compiled.node.node_id
        found.append(_Listed(node_id, path, compiled, bag.error_count))
    return sorted(found, key=lambda each: (each.node_id, each.path.as_posix()))


# -- list -----------------------------------------------------------------------------------------


@command.command("list")
@nodes_option
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
def list_command(root: Path, style: str) -> None:
    """List every node: what it is for, what goes in, what comes out."""
    listed = _all(root)
    if style == "json":
        _print_json([_listed_json(each) for each in listed])
        return
    for each in listed:
        click.echo("\n".join(_listed_lines(each)))
    wrong = sum(each.compiled is None for each in listed)
    click.echo(
        _number(len(listed), "node")
        + (f", {wrong} with errors; `vesper check` says what is wrong with them" if wrong else "")
    )


def _listed_lines(each: _Listed) -> list[str]:
    from vesper.repository.describe import signature
    from vesper.spec.values import printable

    name, path = printable(each.node_id), each.path.as_posix()
    if each.compiled is None:
        return [f"{name}  {_number(each.errors, 'error')}  {path}", ""]
    node = each.compiled.node
    facts = [name, node.type, each.compiled.semantic_hash[:12], _number(len(each.compiled.cases), "case"), path]
    return ["  ".join(facts), f"  {printable(node.source.intent)}", f"  {signature(node)}", ""]


def _listed_json(each: _Listed) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": each.node_id, "path": each.path.as_posix(), "errors": each.errors}
    if each.compiled is not None:
        node = each.compiled.node
        shown |= {
            "type": node.type,
            "intent": node.source.intent,
            "inputs": [{"name": it.name, "type": str(it.type)} for it in node.inputs],
            "outputs": [{"name": it.name, "type": str(it.type)} for it in node.outputs],
            "semantic_hash": each.compiled.semantic_hash,
            "cases": len(each.compiled.cases),
        }
    return shown


# -- show -----------------------------------------------------------------------------------------


@command.command("show")
@click.argument("node")
@nodes_option
def show_command(node: str, root: Path) -> None:
    """Show a node in full: its interface, contracts, steps and cases, its hashes and what it is made of."""
    path = find_node(node, root)
    click.echo("\n".join(_shown(path, compile_or_exit(path))))


def _shown(path: Path, compiled: Compiled) -> list[str]:
    from vesper.repository.describe import operations, record_types
    from vesper.spec.values import printable, show

    node = compiled.node
    types = [
        (name, "{" + ", ".join(f"{field}: {type_}" for field, type_ in record.fields) + "}")
        for name, record in record_types(node).items()
    ]
    size = f"{len(compiled.ir):,} bytes, {_number(len(node.expressions()), 'expression')}"
    return [
        f"{node.node_id}  {node.type}  {path.as_posix()}",
        f"  {printable(node.source.intent)}",
        *_section("types", types),
        *_section("inputs", _inputs(node)),
        *_section("outputs", [(each.name, str(each.type)) for each in node.outputs]),
        *_section("constants", [(each.name, str(each.type), show(each.value)) for each in node.constants]),
        *_section("preconditions", [(printable(each.text),) for each in node.preconditions]),
        *_section("postconditions", [(printable(each.text),) for each in node.postconditions]),
        *_section("steps", _steps(node)),
        *_section("cases", [_case(node, each) for each in compiled.cases]),
        *_section("hashes", [("semantic", compiled.semantic_hash), ("source", node.source.sha256)]),
        *_section("IR", [(size,)]),
        *_section("operations", [(op, f"at {_number(n, 'place')}") for op, n in operations(node).items()]),
    ]


def _inputs(node: Node) -> Sequence[tuple[str, ...]]:
    from vesper.spec.values import printable, show

    rows = []
    for each in node.inputs:
        said = [printable(clause.text) for clause in node.constraints if clause.input == each.name]
        said += [] if each.default is None else [f"default {show(each.default)}"]
        rows.append((each.name, str(each.type), "; ".join(said)))
    return rows


def _steps(node: Node) -> Sequence[tuple[str, ...]]:
    from vesper.ir.nodes import Step

    steps = [each for each in node.body if isinstance(each, Step)]
    return [(each.name, str(each.value.type), f"line {each.place.line}") for each in steps]


def _case(node: Node, case: Case) -> tuple[str, ...]:
    from vesper.spec.values import printable, show

    if case.breaks is None:
        wanted = ", ".join(f"{name} = {show(value)}" for name, value in (case.expect or {}).items())
        return printable(case.name), f"gives {wanted}"
    phase, index = case.breaks
    return printable(case.name), f"breaks `{printable(dict(node.phases())[phase][index].text)}`"


def _section(title: str, rows: Sequence[tuple[str, ...]]) -> list[str]:
    """A heading and its rows in columns; nothing for no rows."""
    if not rows:
        return []
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]
    return ["", title, *(f"  {line}".rstrip() for line in lines)]


# -- graph and capabilities -----------------------------------------------------------------------


@command.command("graph")
@nodes_option
@click.option("--format", "style", type=click.Choice(["text", "dot", "json"]), default="text", show_default=True)
def graph_command(root: Path, style: str) -> None:
    """Show which nodes depend on which."""
    from vesper.repository.describe import dependencies
    from vesper.spec.values import printable

    needs = {
        each.node_id: None if each.compiled is None else dependencies(each.compiled.node) for each in _all(root)
    }  # None: it has errors, so nobody knows
    edges = [(name, other) for name, others in needs.items() for other in others or ()]
    if style == "json":
        _print_json({"nodes": list(needs), "edges": [{"from": name, "to": other} for name, other in edges]})
        return
    if style == "dot":
        lines = [f"  {json.dumps(name)};" for name in needs]
        lines += [f"  {json.dumps(name)} -> {json.dumps(other)};" for name, other in edges]
        click.echo("\n".join(["digraph nodes {", *lines, "}"]))
        return
    for name, others in needs.items():
        said = "has errors" if others is None else ", ".join(others) or "depends on none"
        click.echo(f"{printable(name)}  {said}")
    if not edges:
        click.echo(f"\n{_NO_CALLS}")


@command.command("capabilities")
@nodes_option
def capabilities_command(root: Path) -> None:
    """Show what each node must be granted to run."""
    from vesper.repository.describe import capabilities
    from vesper.spec.values import printable

    any_needed = False
    for each in _all(root):
        needed = () if each.compiled is None else capabilities(each.compiled.node)
        any_needed = any_needed or bool(needed)
        said = "has errors" if each.compiled is None else ", ".join(needed) or "none"
        click.echo(f"{printable(each.node_id)}  {said}")
    if not any_needed:
        click.echo(f"\n{_NO_EFFECTS}")


def _number(count: int, one: str) -> str:
    return f"{count:,} {one if count == 1 else one + 's'}"


def _print_json(value: object) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))
