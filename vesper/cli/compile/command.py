"""`vesper compile`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from vesper.cli.exits import FINE, WRONG_INPUT
from vesper.cli.load_node import compile_or_exit, find_node
from vesper.cli.options import NODE, nodes_option
from vesper.cli.write_file import create_text, replace_text
from vesper.compiler import Compiled
from vesper.compiler.generated import State, is_generated, module_text, read_text, refresh_command, state_of

DEFAULT_PACKAGE = Path("generated")
LOOKS = ("ir-optimized", "bytecode", "clif", "asm")
"""Intermediate forms of the direct engine, for reading only."""


@click.command("compile")
@click.argument("node", type=NODE, metavar="NODE|DIR", required=False)
@nodes_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Output file instead of standard output; with --all, the folder, `generated` by default.",
)
@click.option(
    "--emit",
    type=click.Choice(["python", "python-traced", "ir", *LOOKS]),
    default="python",
    show_default=True,
    help="Python, Python with the marks that the verifier reads, or the canonical IR. For reading, forms of the direct "
    "engine: optimised IR, bytecode, and machine code as Cranelift IR or as assembly.",
)
@click.option("--all", "is_all", is_flag=True, help="Write every node under DIR, or under --nodes, as one package.")
@click.option("--check", "is_check", is_flag=True, help="Write nothing; exit with 1 where a file would be written.")
@click.option("--prune", is_flag=True, help="With --all: remove generated files whose node no longer exists.")
def command(
    node: str | None, root: Path, output: Path | None, emit: str, is_all: bool, is_check: bool, prune: bool
) -> None:
    """Generate readable Python or IR from a node, or a package from a folder of nodes.

    The Python requires only vesper.kernels, not the compiler. A file that is up to date is not touched; a file that
    Vesper did not generate is never overwritten.

    Exit codes: 0 success, 1 the node has errors, or --check found files that are missing, stale, edited or orphaned,
    2 usage, 3 a bug in Vesper.
    """
    if is_all:
        from vesper.cli.compile.package import compile_all

        if emit != "python":
            raise click.UsageError(f"--all writes a Python package: omit --emit {emit}")
        if is_check and prune:
            raise click.UsageError("--check writes and removes nothing: omit --prune or --check")
        sys.exit(compile_all(root if node is None else Path(node), output or DEFAULT_PACKAGE, is_check, prune))
    if prune:
        raise click.UsageError("--prune requires --all")
    if node is None:
        raise click.UsageError("name a NODE, or give --all")
    if is_check and output is None:
        raise click.UsageError("--check compares a file: name the file with -o")
    if emit in LOOKS and output is not None:
        raise click.UsageError(f"--emit {emit} is for reading and changes between releases: omit -o")
    compiled = compile_or_exit(find_node(node, root))
    text = _emit(compiled, emit)
    if output is None:
        click.echo(text, nl=not text.endswith("\n"))
        return
    try:
        if is_check:
            named = node if Path(node).is_file() else compiled.node.node_id  # a file may be outside --nodes
            sys.exit(_check(output, named, text, root, emit))
        _write(output, compiled, text)
    except OSError as error:
        raise click.UsageError(f"cannot write {output}: {error.strerror}") from None


def _emit(compiled: Compiled, emit: str) -> str:
    if emit == "ir":
        return compiled.ir.decode("utf-8")
    if emit in LOOKS:
        from vesper.engines.direct_engine import DirectEngine, NotCompiled
        from vesper.engines.tiering import ALWAYS, INTERPRETED

        try:
            return DirectEngine(ALWAYS if emit in ("clif", "asm") else INTERPRETED).load(compiled).look(emit)
        except NotCompiled as problem:
            raise click.ClickException(f"{compiled.node.node_id} has no machine code: {problem}") from None
    return module_text(compiled, traced=emit == "python-traced")


def _file_state(output: Path, text: str) -> State:
    """Compare the file with its expected text. IR has no header and no hash: it is fresh only if equal."""
    if output.is_dir():
        raise click.UsageError(f"{output} is a folder: name a file, or give --all")
    found = read_text(output)
    if found is None or not text.startswith(_IR_START):
        state = state_of(found, text)
        return State.STALE if state is State.FOREIGN and found is not None and found.startswith(_IR_START) else state
    if found == text:
        return State.FRESH
    return State.STALE if found.startswith(_IR_START) or is_generated(found) else State.FOREIGN


_IR_START = '{"ir_version":'


def _check(output: Path, node: str, text: str, root: Path, emit: str) -> int:
    state = _file_state(output, text)
    if state is State.FRESH:
        click.echo(f"{output} is up to date")
        return FINE
    more = "" if emit == "python" else f" --emit {emit}"
    click.echo(f"{state.value:<8}  {output}", err=True)
    if state is State.FOREIGN:
        click.echo("it was not generated by Vesper: move it, or write to another file", err=True)
    else:
        click.echo(f"refresh it: {refresh_command(node, output, root)}{more}", err=True)
    return WRONG_INPUT


def _write(output: Path, compiled: Compiled, text: str) -> None:
    state = _file_state(output, text)
    about = f"{compiled.node.node_id}, semantic hash {compiled.semantic_hash[:12]}"
    if state is State.FOREIGN:
        raise click.UsageError(
            f"{output} was not generated by Vesper and is not overwritten: move it, or write to another file"
        )
    if state is State.FRESH:
        click.echo(f"{output} is up to date ({about})", err=True)
        return
    if state is State.MISSING:
        create_text(output, text)
    else:
        replace_text(output, text)
    edited = "; manual edits were overwritten" if state is State.EDITED else ""
    click.echo(f"wrote {output} ({about}){edited}", err=True)
