"""`vesper new`."""

from __future__ import annotations

from pathlib import Path

import click

from vesper.cli.options import nodes_option
from vesper.repository.editor_schema import with_modeline
from vesper.repository.locate import SUFFIX, node_files, versions
from vesper.repository.starter import STARTERS, name_problem, replace_id, starter
from vesper.storage.write_file import create_text


@click.command("new")
@click.argument("name")
@nodes_option
@click.option(
    "--in",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the new file; by default the folder of nodes, with --next the folder of the copied version.",
)
@click.option("--type", "type_", type=click.Choice(list(STARTERS)), default="function", show_default=True)
@click.option("--next", "is_next", is_flag=True, help="Copy the newest version of NAME as the next one.")
def command(name: str, root: Path, folder: Path | None, type_: str, is_next: bool) -> None:
    """Create a node from a template, or the next version of a node.

    NAME is the name of the node without its version: `vesper new fee` writes fee_v1.vsp. No file is overwritten.
    """
    problem = name_problem(name)
    if problem is not None:
        raise click.UsageError(problem)
    places = [place for place in (root, folder) if place is not None and place.is_dir()]
    known = versions(name, node_files(places))
    newest = max(known, default=0)
    if newest and not is_next:
        path, follows = known[newest][0].as_posix(), f"{name}_v{newest + 1}"
        raise click.UsageError(
            f"{name}_v{newest} already exists: {path}\n`vesper new {name} --next` copies it as {follows}"
        )
    if is_next and not newest:
        raise click.UsageError(f"there is no version of `{name}` to copy: omit --next")
    node_id = f"{name}_v{newest + 1}"
    if newest:
        copied = _only_file(name, newest, known[newest])
        text = _copy_text(copied, node_id)
        target = (folder or copied.parent) / f"{node_id}{SUFFIX}"
        message = f"wrote {target.as_posix()}, a copy of {copied.as_posix()}"
    else:
        text = starter(node_id, type_)
        target = (folder or root) / f"{node_id}{SUFFIX}"
        message = f"wrote {target.as_posix()}"
    try:
        create_text(target, with_modeline(text, target.parent))
    except FileExistsError as error:
        raise click.UsageError(f"{error.filename} already exists and is not overwritten") from None
    except OSError as error:
        raise click.UsageError(f"cannot write {target.as_posix()}: {error.strerror}") from None
    click.echo(message)
    click.echo(_next_steps(node_id, target, root, has_starter=not newest))


def _only_file(name: str, version: int, paths: list[Path]) -> Path:
    if len(paths) > 1:
        listed = " and in ".join(f"`{path.as_posix()}`" for path in paths)
        raise click.UsageError(f"`{name}_v{version}` is in {listed}; remove all but one before copying it")
    return paths[0]


def _copy_text(path: Path, node_id: str) -> str:
    from vesper.compiler.reading import NotText, read_bytes, text_of

    try:
        text = replace_id(text_of(read_bytes(path)), node_id)
    except OSError as error:
        raise click.UsageError(f"cannot read {path.as_posix()}: {error.strerror}") from None
    except NotText as reason:
        raise click.UsageError(f"cannot copy {path.as_posix()}: {reason}") from None
    if text is None:
        raise click.UsageError(
            f"cannot copy {path.as_posix()}: it declares no node_id; `vesper check` shows its errors"
        )
    return text


def _next_steps(node_id: str, path: Path, root: Path, has_starter: bool) -> str:
    """Suggest commands to paste. A node outside the folder of nodes is named by its path."""
    node = node_id if path.resolve().is_relative_to(root.resolve()) else path.as_posix()
    steps = [f"vesper check {node}"]
    steps += [f"vesper run {node} --input amount=50.00"] if has_starter else []
    steps += [f"vesper verify {node}"]
    return "\n".join(["", "try next:", *(f"  {step}" for step in steps)])
