"""One parameter of one step changed in the text of a node; everything else stays as its author wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.syntax.expression_slot import quote_scalar
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Tree, read_yaml
from vesper.language.syntax.yaml_tree import Sequence as Items
from vesper.values.vesper_error import VesperError

_MOVED = "parameters"
"""A step may have its parameters under this key."""


class NotEdited(VesperError):
    """The text cannot be changed so; the message says why. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Edited:
    text: str
    before: str | None
    """What stood there; None where nothing did."""


def edit_step(source: SourceFile, step: str, keys: Sequence[str], new: str) -> Edited:
    """The text with another value for `keys` of a step (`("retry", "attempts")`). Raises `NotEdited`."""
    tree = read_yaml(DiagnosticBag(source))
    found = next((each for each in _steps(tree) if _name(each) == step), None)
    if found is None:
        names = [name for each in _steps(tree) if (name := _name(each)) is not None]
        hint = did_you_mean(step, names) or f"its steps are {', '.join(names)}"
        raise NotEdited(f"{source.path} has no step `{step}`; {hint}")
    parent: Tree = found
    for depth, key in enumerate(keys):
        if not isinstance(parent, Mapping):
            raise NotEdited(f"`{'.'.join((step, *keys[:depth]))}` has no parts: it is {source.slice(parent.span)}")
        value = _entry(parent, key)
        if value is None and depth == 0 and isinstance(moved := _entry(parent, _MOVED), Mapping):
            parent, value = moved, _entry(moved, key)
        if value is None:
            if depth < len(keys) - 1:
                raise NotEdited(f"`{step}` has no `{'.'.join(keys[: depth + 1])}`: set all of it, as `{key}={{…}}`")
            return Edited(_inserted(source, parent, key, new), None)
        if depth == len(keys) - 1:
            return _replaced(source, parent, key, value, new)
        parent = value
    raise NotEdited(f"say what to change of `{step}`: `{step}.timeout=60s`")


def _steps(tree: Tree | None) -> Iterator[Mapping]:
    """Every mapping that has a `step`, at any depth."""
    waiting: list[Tree] = [] if tree is None else [tree]
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, Mapping):
            if _name(each) is not None:
                yield each
            waiting += [value for _, value in each.entries]
        elif isinstance(each, Items):
            waiting += each.items


def _name(step: Mapping) -> str | None:
    found = _entry(step, "step")
    return found.text if isinstance(found, Scalar) else None


def _entry(mapping: Mapping, key: str) -> Tree | None:
    return next((value for name, value in mapping.entries if name.text == key), None)


def _is_flow(source: SourceFile, tree: Tree) -> bool:
    return source.text[tree.span.start : tree.span.start + 1] in ("{", "[")


def _replaced(source: SourceFile, parent: Mapping, key: str, value: Tree, new: str) -> Edited:
    is_block = not isinstance(value, Scalar) and not _is_flow(source, value)
    if is_block or (isinstance(value, Scalar) and value.style in ("|", ">")):
        raise NotEdited(f"`{key}` has several lines: change one of its parts, or the file itself")
    before = source.slice(value.span)
    spelled = _spelled(new, _is_flow(source, parent), isinstance(value, Scalar))
    text = source.text
    return Edited(text[: value.span.start] + spelled + text[value.span.end :], before)


def _inserted(source: SourceFile, parent: Mapping, key: str, new: str) -> str:
    text = source.text
    if _is_flow(source, parent):
        end = parent.span.end - 1
        entry = f"{key}: {_spelled(new, True, True)}"
        return f"{text[:end].rstrip()}{', ' if parent.entries else ''}{entry}{text[end:]}"
    # Below the operation, where a reader looks for what it is told; else below the first key.
    name, first = next(((name, value) for name, value in parent.entries if name.text == "operation"), parent.entries[0])
    column = source.position(name.span.start)[1] - 1
    line_end = text.find("\n", first.span.end)
    end = len(text) if line_end == -1 else line_end
    return f"{text[:end]}\n{' ' * column}{key}: {_spelled(new, False, True)}{text[end:]}"


def _spelled(new: str, is_flow: bool, is_scalar: bool) -> str:
    """What the author would write: as it is where YAML reads it as one text, else in quotes."""
    if "\n" in new or "\r" in new:
        raise NotEdited("a value on one line is expected")
    if not is_scalar or new.startswith(("{", "[")) or _reads_as_itself(new, is_flow):
        return new
    return quote_scalar(new)


def _reads_as_itself(new: str, is_flow: bool) -> bool:
    document = f"{{k: {new}}}" if is_flow else f"k: {new}"
    tree = read_yaml(DiagnosticBag(SourceFile("", document)))
    if not isinstance(tree, Mapping) or len(tree.entries) != 1:
        return False
    value = tree.entries[0][1]
    return isinstance(value, Scalar) and document[value.span.start : value.span.end] == new
