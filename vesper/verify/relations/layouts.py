"""Text of a YAML tree in block or flow style, for rewritten documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree
from vesper.verify.programs.types import quote_yaml

_FLOW_SIGNS = frozenset(",[]{}")
_STEP = "  "
BLOCK_STYLES = ("|-", ">-")
"""Styles of one line of text in a block; a block of the document itself is quoted, to keep its line ends."""


def block_text(tree: Tree) -> str:
    """Return a document in block style, each plain or quoted scalar on one line."""
    return "\n".join(_block_lines(tree, "")) + "\n"


def flow_text(tree: Tree) -> str:
    """Return a document whose top-level values are in flow style, one line each."""
    assert isinstance(tree, Mapping), "a node is a mapping"
    return "".join(f"{_scalar_text(key)}: {_flow(value)}\n" for key, value in tree.entries)


def _block_lines(tree: Tree, margin: str) -> Iterator[str]:
    if isinstance(tree, Mapping) and tree.entries:
        for key, value in tree.entries:
            yield from _after(f"{margin}{_scalar_text(key)}:", value, margin + _STEP)
    elif isinstance(tree, Sequence) and tree.items:
        for item in tree.items:
            is_nested = isinstance(item, Mapping | Sequence) and (
                item.entries if isinstance(item, Mapping) else item.items
            )
            if is_nested:
                lines = list(_block_lines(item, margin + _STEP))
                yield f"{margin}- {lines[0].removeprefix(margin + _STEP)}"
                yield from lines[1:]
            else:
                yield from _after(f"{margin}-", item, margin + _STEP)
    else:
        yield f"{margin}{_flow(tree)}"


def _after(head: str, value: Tree, margin: str) -> Iterator[str]:
    """Yield the lines of a value after its key or dash."""
    match value:
        case Scalar(text=text, style=style) if style in BLOCK_STYLES:
            yield f"{head} {style}"
            yield f"{margin}{text.strip()}"
        case Scalar(text="", style=""):
            yield head
        case Scalar():
            yield f"{head} {_scalar_text(value)}"
        case Mapping(entries=()) | Sequence(items=()):
            yield f"{head} {_flow(value)}"
        case _:
            yield head
            yield from _block_lines(value, margin)


def _scalar_text(scalar: Scalar) -> str:
    """Return a scalar on one line; a plain one stays plain, because quotes decide the values of a json."""
    if scalar.style == "" and "\n" not in scalar.text:
        return scalar.text
    if scalar.style == "'" and "\n" not in scalar.text and scalar.text.isprintable():
        return "'" + scalar.text.replace("'", "''") + "'"
    return quote_yaml(scalar.text)


def _flow(tree: Tree) -> str:
    match tree:
        case Mapping(entries=entries):
            return "{" + ", ".join(f"{_flow(key)}: {_flow(value)}" for key, value in entries) + "}"
        case Sequence(items=items):
            return "[" + ", ".join(map(_flow, items)) + "]"
        case Scalar(text=text, style=""):
            # A plain scalar with such a sign is text in every slot, so quotes do not change it.
            return quote_yaml(text) if _FLOW_SIGNS & set(text) or text.endswith(":") else _scalar_text(tree)
        case Scalar():
            return _scalar_text(tree)


def restyle(tree: Tree, style_of: Callable[[Scalar], str | None]) -> Tree:
    """Return the tree with scalars in the styles that `style_of` returns; None keeps a style."""
    match tree:
        case Scalar(text=text, span=span):
            style = style_of(tree)
            return tree if style is None else Scalar(text, style, span)
        case Sequence(items=items, span=span):
            return Sequence(tuple(restyle(item, style_of) for item in items), span)
        case Mapping(entries=entries, span=span):
            return Mapping(tuple((key, restyle(value, style_of)) for key, value in entries), span)
