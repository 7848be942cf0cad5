"""`vesper nodes diff`: the versions that the arguments name, and their differences as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import click

from vesper.changes.diff.differences import diff_nodes
from vesper.changes.diff.revisions import RevisionProblem, revision_folder, split_revision
from vesper.changes.diff.version import NodeVersion, VersionProblem, read_version
from vesper.changes.diff.words import diff_json, summary, text_lines
from vesper.cli.exits import FINE, USAGE, WRONG_INPUT
from vesper.cli.load_node import find_node, print_diagnostics
from vesper.language.tables.files import FileProblem
from vesper.repository.locate import SUFFIX, NodeNotFound, id_of, locate, node_files, versions
from vesper.values.model import printable
from vesper.values.node_id import split_node_id


def show_diff(
    names: tuple[str, ...], root: Path, revision: str | None, style: str, with_all: bool, follow: bool
) -> int:
    """Print the differences between two versions, and return the exit code."""
    with ExitStack() as stack:
        try:
            before, after = (stack.enter_context(each) for each in _versions(names, root, revision))
            found = diff_nodes(before, after, follow)
        except VersionProblem as problem:
            print_diagnostics(problem.bag.source, problem.bag.sorted(), "full")
            click.echo(f"{printable(problem.shown)} has errors: only versions without errors are compared", err=True)
            return USAGE
        except (RevisionProblem, NodeNotFound, FileProblem) as problem:
            raise click.UsageError(printable(str(problem))) from None
    if style == "json":
        click.echo(json.dumps(diff_json(found), ensure_ascii=False, indent=2))
    else:
        for line in text_lines(found, with_all):
            click.echo(printable(line))
        click.echo("")
        click.echo(summary(found, with_all))
    return WRONG_INPUT if found.is_different else FINE


def _versions(
    names: tuple[str, ...], root: Path, revision: str | None
) -> tuple[AbstractContextManager[NodeVersion], AbstractContextManager[NodeVersion]]:
    """Return the two versions that the arguments name, before and after."""
    if revision is not None:
        if len(names) != 1:
            raise click.UsageError("--git compares one node with itself at a revision: name one NODE")
        return _at_revision(revision, names[0], root), _open_file_version(find_node(names[0], root))
    if len(names) == 2:
        return _open_version(names[0], root), _open_version(names[1], root)
    if len(names) != 1:
        raise click.UsageError("name one NODE, or two: before and after")
    if split_revision(names[0]) is not None:
        raise click.UsageError(f"{names[0]}: name the version to compare it with too")
    older, newer = _newest_two(names[0], root)
    return _open_file_version(older), _open_file_version(newer)


def _open_version(wanted: str, root: Path) -> AbstractContextManager[NodeVersion]:
    parts = split_revision(wanted)
    return _open_file_version(find_node(wanted, root)) if parts is None else _at_revision(*parts, root)


@contextmanager
def _open_file_version(path: Path) -> Iterator[NodeVersion]:
    yield read_version(path)


@contextmanager
def _at_revision(revision: str, wanted: str, root: Path) -> Iterator[NodeVersion]:
    """Yield a node as of a revision of git. A path is relative to the working directory, an id is searched there."""
    is_path = wanted.endswith(SUFFIX) or "/" in wanted
    path = Path(wanted) if is_path else root / "any.vsp"
    with revision_folder(revision, path) as (copied, collection):
        found = copied if is_path else locate(wanted, collection)
        if not found.is_file():
            raise RevisionProblem(f"there is no file `{wanted}` at `{revision}`")
        yield read_version(found, f"{revision}:{wanted if is_path else found.relative_to(collection)}", collection)


def _newest_two(wanted: str, root: Path) -> tuple[Path, Path]:
    """Return a version and its predecessor.

    The later one is the newest of a name, or that of an id or a path.
    """
    newer = find_node(wanted, root)
    parts = split_node_id(id_of(newer))
    if parts is None:
        raise click.UsageError(f"{wanted}: `{id_of(newer)}` has no version; name two nodes")
    name, number = parts
    folder = root if root.is_dir() else newer.parent
    older = next((files for version, files in versions(name, node_files([folder])).items() if version < number), None)
    if older is None:
        raise click.UsageError(
            f"{wanted}: `{name}_v{number}` is the oldest version under `{folder}`; name two nodes, or `--git REV` for "
            "an earlier text of this one"
        )
    return older[0], newer
