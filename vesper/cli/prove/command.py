"""`vesper prove`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click

from vesper.cli.exits import FINE, WRONG_INPUT
from vesper.cli.load_node import find_nodes, print_diagnostics
from vesper.cli.number_ranges import FiniteRange
from vesper.cli.options import NODE, format_option, nodes_option
from vesper.cli.output.outcomes import json_text
from vesper.cli.output.progress import Progress
from vesper.cli.prove.reports import ProveResults, prove_json, prove_junit
from vesper.cli.prove.text import lost_text, node_text, total_text
from vesper.compiler import Compiled, compile_file
from vesper.compiler.load_cache import distrust_node
from vesper.compiler.reading import shown_path
from vesper.engines.proven_checks import PROOFS_NAME
from vesper.proof.claims.claims_file import (
    ProofsFileProblem,
    lost_proofs,
    proofs_text,
    read_proofs,
    saved_entries,
)
from vesper.proof.claims.model import NodeProof
from vesper.proof.claims.proving import DEFAULT_SECONDS
from vesper.proof.claims.stored import store_proof, stored_proof
from vesper.proof.claims.worker import prove_within
from vesper.repository.locate import FOLDER


@click.command("prove")
@click.argument("paths", type=NODE, nargs=-1)
@nodes_option
@click.option(
    "--time-limit",
    type=FiniteRange(0.1, 10**5),
    metavar="S",
    default=DEFAULT_SECONDS,
    show_default=True,
    help="Time limit of each node in seconds; a claim that is not decided by then is unknown.",
)
@click.option(
    "--no-cache",
    is_flag=True,
    envvar="VESPER_NO_CACHE",
    show_envvar=True,
    help="Prove every node again, and store nothing.",
)
@click.option("--all", "shows_all", is_flag=True, help="List proven claims too.")
@click.option("--save", is_flag=True, help=f"Write the results to {PROOFS_NAME} in the folder of nodes, to commit.")
@click.option(
    "--check",
    is_flag=True,
    help=f"Fail if a clause that {PROOFS_NAME} has as proven is not proven any more; unchanged nodes are sampled.",
)
@format_option("text", "json", "junit")
def command(
    paths: tuple[str, ...],
    root: Path,
    time_limit: float,
    no_cache: bool,
    shows_all: bool,
    save: bool,
    check: bool,
    style: str,
) -> None:
    """Prove clauses of nodes for every legal input, or refute them.

    Each postcondition, invariant and validation, each operation that may fail, each decision table, row and condition
    is proven, refuted with an input that both engines ran, or unknown with the reason. Inputs are legal if they meet
    constraints and preconditions. PATHS are files, folders or node names; by default every node under --nodes. Needs
    `pip install 'vesper[solver]'`. See docs/how-to/prove-clauses.md.

    Exit codes: 0 no clause or table is refuted, 1 one is, a node has errors, or --check found a lost proof, 2 usage, 3
    a bug in Vesper.
    """
    if save and check:
        raise click.UsageError("--save writes what --check compares with: use one of them")
    _require_solver()
    begun = time.monotonic()
    files = find_nodes(paths, root)
    if not files:
        raise click.UsageError("no .vsp files found: name files or folders, or the folder of nodes with --nodes")
    run = ProveResults(time_limit=time_limit)
    nodes = _compile_files(files, run)
    if check:
        _check(run, nodes, root, is_complete=not paths, no_cache=no_cache)
    else:
        with Progress("proving", len(nodes)) as progress:
            for compiled in progress.over(_NodeLabel(each) for each in nodes):
                proof = _prove(compiled.node, time_limit, no_cache)
                run.add(compiled.node, proof)
                if style == "text":
                    click.echo(node_text(compiled.node, proof, shows_all))
    run.seconds = time.monotonic() - begun
    if save:
        _save(run, root, keeps_others=bool(paths))
    _print_end(run, style)
    sys.exit(WRONG_INPUT if run.is_failed else FINE)


class _NodeLabel:
    """A node that progress shows by its id."""

    def __init__(self, node: Compiled) -> None:
        self.node = node

    def __str__(self) -> str:
        return self.node.node.node_id


def _require_solver() -> None:
    from vesper.proof.solver import SolverMissing, require_solver

    try:
        require_solver()
    except SolverMissing as missing:
        raise click.UsageError(str(missing)) from None


def _compile_files(files: list[Path], run: ProveResults) -> list[Compiled]:
    found: list[Compiled] = []
    for path in files:
        compiled, bag = compile_file(path)
        if compiled is None:
            print_diagnostics(bag.source, bag.sorted(), "full")
            run.refused.append(shown_path(path.as_posix()))
        elif (reason := distrust_node(compiled)) is not None:
            raise click.ClickException(reason)
        else:
            found.append(compiled)
    return found


def _prove(compiled: Compiled, seconds: float, no_cache: bool) -> NodeProof:
    """Return the results of a node from the cache, else prove it."""
    found = None if no_cache else stored_proof(compiled.node.node_id, compiled.semantic_hash, seconds)
    if found is not None:
        return found
    proof = prove_within(compiled, seconds)
    if not no_cache:
        store_proof(proof)
    return proof


def _check(run: ProveResults, nodes: list[Compiled], root: Path, is_complete: bool, no_cache: bool) -> None:
    path = _proofs_file(root)
    try:
        saved = read_proofs(path)
    except ProofsFileProblem as problem:
        raise click.UsageError(f"{path.as_posix()} {problem}") from None

    def prove(compiled: Compiled) -> NodeProof:
        proof = _prove(compiled, run.time_limit, no_cache)
        run.add(compiled, proof)
        return proof

    with Progress("checking proofs", len(nodes)) as progress:
        run.lost = lost_proofs(saved, _with_progress(nodes, progress), prove, is_complete)
    run.saved = sum(len(each.proven) for each in saved.nodes.values())
    run.is_check = True


def _with_progress(nodes: list[Compiled], progress: Progress) -> Iterator[Compiled]:
    for named in progress.over(_NodeLabel(each) for each in nodes):
        yield named.node


def _proofs_file(root: Path) -> Path:
    return (root if root.is_dir() else Path(FOLDER)) / PROOFS_NAME


def _save(run: ProveResults, root: Path, keeps_others: bool) -> None:
    path = _proofs_file(root)
    others = saved_entries(path) if keeps_others else {}
    text = proofs_text([proof for _, proof in run.nodes], others)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from None


def _print_end(run: ProveResults, style: str) -> None:
    if style == "json":
        click.echo(json_text(prove_json(run), is_ascii=False))
    elif style == "junit":
        click.echo(prove_junit(run))
    else:
        for each in run.lost:
            click.echo(lost_text(each))
        click.echo(total_text(run))
