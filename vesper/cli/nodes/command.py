"""`vesper nodes`: the nodes of a repository. Writes only the cache of checked nodes, and vesper.lock."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vesper.cli.load_node import cache_file, compile_or_exit, find_node, find_nodes
from vesper.cli.options import NODE, config_option, format_option, no_cache_option, nodes_option, style_option
from vesper.storage.write_file import write_bytes

if TYPE_CHECKING:
    from vesper.compiler import Compiled
    from vesper.compiler.check_result import Checked
    from vesper.compiler.node_cache import NodeCache
    from vesper.language.check.cases import Case
    from vesper.language.ir.nodes import Input, Node, Output
    from vesper.repository.lock import PinnedNode


@dataclass(frozen=True, slots=True)
class _ListedNode:
    """A file of the repository, with facts about its node if it has no errors."""

    node_id: str
    path: str
    about: dict[str, Any] | None
    errors: int


@click.group("nodes")
def command() -> None:
    """List nodes and show their contents."""


def _check_nodes(root: Path, no_cache: bool) -> Iterator[tuple[Path, Checked, NodeCache | None]]:
    """Check every file under the root; yield each with the cache that is in use."""
    from vesper.compiler.check_files import check_files
    from vesper.compiler.node_cache import NodeCache

    files = find_nodes((), root, with_libraries=True)
    where = cache_file(root, no_cache)
    with nullcontext() if where is None else NodeCache(where) as cache:
        for path, each in zip(files, check_files(files, cache), strict=True):
            yield path, each, cache


def _list_nodes(root: Path, no_cache: bool) -> list[_ListedNode]:
    """Return every file under the root, ordered by id."""
    from vesper.compiler.reading import shown_path

    found = []
    for path, checked, _ in _check_nodes(root, no_cache):
        errors = len(checked.diagnostics) - checked.warning_count
        found.append(_ListedNode(_node_id(path, checked), shown_path(path.as_posix()), checked.about, errors))
    return sorted(found, key=lambda each: (each.node_id, each.path))


def _node_id(path: Path, checked: Checked) -> str:
    from vesper.compiler.reading import shown_path

    return shown_path(path.stem) if checked.node_id is None else checked.node_id[0]


def decode_nodes(root: Path, no_cache: bool) -> dict[str, Node | None]:
    """Return every node by id, ordered by id; None for a node with errors."""
    from vesper.compiler import compile_file
    from vesper.language.ir.decode import decode

    found: dict[str, Node | None] = {}
    for path, checked, cache in _check_nodes(root, no_cache):
        if checked.is_library:
            continue
        ir = checked.ir or (None if cache is None or checked.is_wrong else cache.ir(path))
        node = None if ir is None else decode(ir)
        if node is None and not checked.is_wrong:  # the cache of IR is limited
            compiled, _ = compile_file(path)
            node = None if compiled is None else compiled.node
        found[_node_id(path, checked)] = node
    return dict(sorted(found.items()))


# -- list -----------------------------------------------------------------------------------------


@command.command("list")
@nodes_option
@no_cache_option
@style_option
def list_command(root: Path, no_cache: bool, style: str) -> None:
    """List every node with its intent, inputs and outputs."""
    listed = _list_nodes(root, no_cache)
    if style == "json":
        _print_json([_listed_json(each) for each in listed])
        return
    for each in listed:
        click.echo("\n".join(_listed_lines(each)))
    wrong = sum(each.about is None for each in listed)
    click.echo(_number(len(listed), "node") + (f", {wrong} with errors; `vesper check` shows them" if wrong else ""))


def _listed_lines(each: _ListedNode) -> list[str]:
    from vesper.repository.describe import signature
    from vesper.values.model import printable

    name, about = printable(each.node_id), each.about
    if about is None:
        return [f"{name}  {_number(each.errors, 'error')}  {each.path}", ""]
    if "definitions" in about:
        facts = [name, about["type"], about["semantic_hash"][:12], each.path]
        return ["  ".join(facts), f"  {printable(about['intent'])}", f"  {', '.join(about['definitions'])}", ""]
    facts = [name, about["type"], about["semantic_hash"][:12], _number(about["cases"], "case"), each.path]
    inputs, outputs = ([(it["name"], it["type"]) for it in about[which]] for which in ("inputs", "outputs"))
    return ["  ".join(facts), f"  {printable(about['intent'])}", f"  {signature(inputs, outputs)}", ""]


def _listed_json(each: _ListedNode) -> dict[str, Any]:
    return {"id": each.node_id, "path": each.path, "errors": each.errors, **(each.about or {})}


# -- show -----------------------------------------------------------------------------------------


@command.command("show")
@click.argument("node", type=NODE)
@nodes_option
@style_option
def show_command(node: str, root: Path, style: str) -> None:
    """Show a node: interface, contracts, steps and cases."""
    path = find_node(node, root)
    compiled = compile_or_exit(path, is_run=False)
    if style == "json":
        from vesper.cli.nodes.show_node import show_json

        _print_json(show_json(path, compiled))
        return
    click.echo("\n".join(_show_lines(path, compiled)))


def _show_lines(path: Path, compiled: Compiled) -> list[str]:
    from vesper.repository.describe import operations, record_types
    from vesper.values.model import printable, show

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
        *_section("outputs", [(each.name, str(each.type), _outside_note(each)) for each in node.outputs]),
        *_section("errors", [(each.name, str(each.type)) for each in node.errors]),
        *_section("constants", [(each.name, str(each.type), show(each.value)) for each in node.constants]),
        *_section("preconditions", [(printable(each.text),) for each in node.preconditions]),
        *_section("postconditions", [(printable(each.text),) for each in node.postconditions]),
        *_section("invariants", [(printable(each.text),) for each in node.invariants]),
        *_section("steps", _steps(node)),
        *_section("calls", [(each.node, each.semantic_hash[:12]) for each in node.calls]),
        *_section("capabilities", [(each,) for each in node.grants.required]),
        *_section("cases", [_case(node, each) for each in compiled.cases]),
        *_section("hashes", [("semantic", compiled.semantic_hash), ("source", node.source.sha256)]),
        *_section("IR", [(size,)]),
        *_section("operations", [(op, f"used {_number(n, 'time')}") for op, n in operations(node).items()]),
    ]


def _outside_note(each: Input | Output) -> str:
    from vesper.values.model import printable

    return "" if each.outside is None else f"as {printable(each.outside)}"


def _inputs(node: Node) -> Sequence[tuple[str, ...]]:
    from vesper.values.model import printable, show

    rows = []
    for each in node.inputs:
        notes = [printable(clause.text) for clause in node.constraints if clause.input == each.name]
        notes += [] if each.outside is None else [_outside_note(each)]
        notes += [] if each.default is None else [f"default {show(each.default)}"]
        rows.append((each.name, str(each.type), "; ".join(notes)))
    return rows


def _steps(node: Node) -> Sequence[tuple[str, ...]]:
    from vesper.language.ir.statements import Raise, Require, Return, all_statements, value_type

    steps = [each for each in all_statements(node.body) if not isinstance(each, Return | Raise | Require)]
    named = [each for each in steps if not each.name.startswith("_")]
    return [(each.name, str(value_type(each) or "no value"), f"line {each.place.line}") for each in named]


def _case(node: Node, case: Case) -> tuple[str, ...]:
    from vesper.values.model import printable, show

    if case.error is not None:
        wanted = ", ".join(f"{name} = {show(value)}" for name, value in case.error.items())
        return printable(case.name), f"ends with {wanted}"
    if case.fails is not None:
        return printable(case.name), f"fails with {case.fails}"
    if case.breaks is None:
        wanted = ", ".join(f"{name} = {show(value)}" for name, value in (case.expect or {}).items())
        return printable(case.name), f"gives {wanted}"
    phase, index = case.breaks
    return printable(case.name), f"breaks `{printable(dict(node.phases())[phase][index].text)}`"


def _section(title: str, rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Render a heading and aligned rows; nothing without rows."""
    if not rows:
        return []
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]
    return ["", title, *(f"  {line}".rstrip() for line in lines)]


# -- graph and capabilities -----------------------------------------------------------------------


@command.command("flow")
@click.argument("node")
@nodes_option
def flow_command(node: str, root: Path) -> None:
    """Draw the flow of a node as SVG: the main way from top to bottom, alternatives and handlers to its right."""
    compiled = compile_or_exit(find_node(node, root), is_run=False)
    from vesper.dashboard.draw.flow import draw_flow

    click.echo(draw_flow(compiled, is_file=True), nl=False)


@command.command("schedule")
@click.argument("node", type=NODE)
@nodes_option
@style_option
def schedule_command(node: str, root: Path, style: str) -> None:
    """Show the waves of a node: the requests and calls that are open at the same time."""
    compiled = compile_or_exit(find_node(node, root), is_run=False)
    from vesper.cli.nodes.schedule import schedule_json, schedule_lines, waves_of

    waves = waves_of(compiled.node.body)
    if style == "json":
        _print_json(schedule_json(compiled.node, waves))
        return
    requests = sum(map(len, waves))
    click.echo("\n".join(schedule_lines(waves)) + "\n" if waves else "", nl=False)
    what = "request or call" if requests == 1 else "requests and calls"
    click.echo(f"{requests:,} {what} in {_number(len(waves), 'wave')}")


@command.command("cost")
@click.argument("node", type=NODE)
@click.option("--model", metavar="NAME", help="A configured model, or one of the table of prices, instead of its own.")
@nodes_option
@config_option("with the models")
@style_option
def cost_command(node: str, model: str | None, root: Path, config: Path | None, style: str) -> None:
    """Show the most that one execution of a node spends on models."""
    compiled = compile_or_exit(find_node(node, root), is_run=False)
    from vesper.cli.nodes.cost import cost_json, cost_lines, worst_case

    report = worst_case(compiled, model, config)
    if style == "json":
        _print_json(cost_json(compiled, report))
        return
    click.echo("\n".join(cost_lines(compiled, report)))


@command.command("graph")
@nodes_option
@no_cache_option
@format_option("text", "dot", "json")
def graph_command(root: Path, no_cache: bool, style: str) -> None:
    """Show which nodes call which."""
    from vesper.repository.describe import dependencies
    from vesper.values.model import printable

    needs = {
        name: None if node is None else dependencies(node) for name, node in decode_nodes(root, no_cache).items()
    }  # None: the node has errors
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
        listed = "has errors" if others is None else ", ".join(others) or "calls no other node"
        click.echo(f"{printable(name)}  {listed}")
    if not edges:
        click.echo("\nno node calls another")


@command.command("capabilities")
@nodes_option
@no_cache_option
@style_option
@config_option("with the grants")
@click.argument("names", type=NODE, nargs=-1, metavar="[NODE]...")
def capabilities_command(root: Path, no_cache: bool, style: str, config: Path | None, names: tuple[str, ...]) -> None:
    """Show needed capabilities, and whether they are granted.

    Lists the steps that need them. By default all nodes are shown. `pay/charge` is the step `charge` of the node that
    the step `pay` calls.
    """
    from vesper.cli.nodes.capabilities import judge_nodes, report_json, report_lines

    found = judge_nodes(decode_nodes(root, no_cache), names, config)
    if style == "json":
        _print_json(report_json(found))
        return
    for line in report_lines(found):
        click.echo(line)


@command.command("parameters")
@nodes_option
@click.option("--on", "day", metavar="DATE", help="Show only the value in force at this date.")
@style_option
@click.argument("names", type=NODE, nargs=-1, metavar="[NAME]...")
def parameters_command(root: Path, day: str | None, style: str, names: tuple[str, ...]) -> None:
    """List parameters of nodes and libraries, with the dates of their values.

    NAME is a parameter, a node or a library; by default all are listed.
    """
    from vesper.cli.nodes.parameters import find_parameters, parameter_json, parameter_lines, read_day

    on = read_day(day)
    found = find_parameters(root, names)
    if style == "json":
        _print_json([parameter_json(each, on) for each in found])
        return
    for each in found:
        click.echo("\n".join(parameter_lines(each, on)))
    click.echo(_number(len(found), "parameter"))


@command.command("diff")
@nodes_option
@click.option("--git", "revision", metavar="REV", help="Compare NODE with itself at this revision of git.")
@click.option("--all", "with_all", is_flag=True, help="List differences in tests and in text alone too.")
@click.option("--follow", is_flag=True, help="Show the differences of called nodes too.")
@style_option
@click.argument("names", type=NODE, nargs=-1, required=True, metavar="NODE [NODE]")
def diff_command(
    root: Path, revision: str | None, with_all: bool, follow: bool, style: str, names: tuple[str, ...]
) -> None:
    """Show what changed between two versions of a node, in words.

    With one NODE its newest version is compared with the one before. A NODE may be one of a revision of git:
    `HEAD~1:nodes/fee_v1.vsp`. The exit code is 0 without a difference in meaning, 1 with one, 2 for wrong arguments.
    """
    from vesper.cli.nodes.diff import show_diff

    sys.exit(show_diff(names, root, revision, style, with_all, follow))


@command.command("lock")
@nodes_option
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if the file is not up to date.")
def lock_command(root: Path, check: bool) -> None:
    """Pin called nodes and used libraries by hash, in vesper.lock."""
    from vesper.compiler.callees import Collection, Neighbours
    from vesper.compiler.pipeline import compile_file
    from vesper.repository.lock import LOCK_NAME, PinnedNode, lock_text

    found: dict[str, PinnedNode] = {}
    # Ignores the present lock file, because it pins the present nodes.
    collection = Collection(root, follows_lock=False)
    wrong = []
    for path in find_nodes((), root):
        neighbours = Neighbours(collection, (path.stem,))
        compiled, bag = compile_file(path, neighbours)
        if compiled is None:
            wrong.append(bag.source.path)
            continue
        waiting = list(compiled.callees)
        while waiting:
            callee = waiting.pop()
            found[callee.node.node_id] = PinnedNode(callee.node.node_id, callee.semantic_hash)
            waiting += callee.callees
        for each in neighbours.libraries.values():
            found |= {name: PinnedNode(name, used.hash) for name, used in each.closure().items()}
    if wrong:
        raise click.ClickException(
            f"{_number(len(wrong), 'node')} with errors: {', '.join(wrong[:3])}; `vesper check` shows them"
        )
    path, text = root / LOCK_NAME, lock_text(_newest_versions(found.values()))
    current = path.read_text(encoding="utf-8") if path.is_file() else None
    if check:
        if current != text and (found or current is not None):
            raise click.ClickException(f"{path.as_posix()} is not up to date; run `vesper nodes lock`")
        click.echo(f"{path.as_posix()} is up to date")
        return
    if current is None and not found:
        click.echo("no node calls another or uses a library: nothing to pin")
        return
    if current == text:
        click.echo(f"{path.as_posix()} is up to date, {_number(len(found), 'node')}")
        return
    try:
        write_bytes(path, text.encode("utf-8"))
    except OSError as error:
        raise click.ClickException(f"cannot write {path.as_posix()}: {error.strerror}") from None
    click.echo(f"wrote {path.as_posix()}, {_number(len(found), 'node')}")


def _newest_versions(pinned: Iterable[PinnedNode]) -> list[PinnedNode]:
    """Return the newest version of each name, which the name without a version refers to."""
    from vesper.values.node_id import split_node_id

    found: dict[str, tuple[int, PinnedNode]] = {}
    for each in pinned:
        parts = split_node_id(each.node_id)
        if parts is not None and found.get(parts[0], (0, each))[0] < parts[1]:
            found[parts[0]] = (parts[1], each)
    return [each for _, each in found.values()]


def _number(count: int, one: str) -> str:
    return f"{count:,} {one if count == 1 else one + 's'}"


def _print_json(value: object) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))
