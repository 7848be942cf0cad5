"""Edit of one parameter of one step in a node's text; all other text stays unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.syntax.yaml.edits import EditRejected, entry_of, is_flow, write_scalar
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Tree
from vesper.language.syntax.yaml_tree import Sequence as Items

__all__ = ["EditRejected", "EditedText", "edit_step"]

_PARAMETERS_KEY = "parameters"
"""Key under which a step may hold its parameters."""


@dataclass(frozen=True, slots=True)
class EditedText:
    text: str
    before: str | None
    """Previous text of the value; None if it was not set."""


def edit_step(source: SourceFile, step: str, keys: Sequence[str], new: str) -> EditedText:
    """Return the text with a new value for `keys` of a step, such as `("retry", "attempts")`.

    Raises `EditRejected`.
    """
    tree = read_yaml(DiagnosticBag(source))
    found = next((each for each in _steps(tree) if _name(each) == step), None)
    if found is None:
        names = [name for each in _steps(tree) if (name := _name(each)) is not None]
        hint = did_you_mean(step, names) or f"its steps are {', '.join(names)}"
        raise EditRejected(f"{source.path} has no step `{step}`; {hint}")
    parent: Tree = found
    for depth, key in enumerate(keys):
        if not isinstance(parent, Mapping):
            raise EditRejected(f"`{'.'.join((step, *keys[:depth]))}` has no parts: it is {source.slice(parent.span)}")
        value = entry_of(parent, key)
        if value is None and depth == 0 and isinstance(moved := entry_of(parent, _PARAMETERS_KEY), Mapping):
            parent, value = moved, entry_of(moved, key)
        if value is None:
            if depth < len(keys) - 1:
                raise EditRejected(f"`{step}` has no `{'.'.join(keys[: depth + 1])}`: set all of it, as `{key}={{…}}`")
            return EditedText(_insert(source, parent, key, new), None)
        if depth == len(keys) - 1:
            return _replace(source, parent, key, value, new)
        parent = value
    raise EditRejected(f"name a parameter of `{step}`: `{step}.timeout=60s`")


def _steps(tree: Tree | None) -> Iterator[Mapping]:
    """Yield every mapping with a `step` key, at any depth."""
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
    found = entry_of(step, "step")
    return found.text if isinstance(found, Scalar) else None


def _replace(source: SourceFile, parent: Mapping, key: str, value: Tree, new: str) -> EditedText:
    is_block = not isinstance(value, Scalar) and not is_flow(source.text, value)
    if is_block or (isinstance(value, Scalar) and value.style in ("|", ">")):
        raise EditRejected(f"`{key}` has several lines: change one of its parts, or the file itself")
    before = source.slice(value.span)
    to_yaml = _to_yaml(new, is_flow(source.text, parent), isinstance(value, Scalar))
    text = source.text
    return EditedText(text[: value.span.start] + to_yaml + text[value.span.end :], before)


def _insert(source: SourceFile, parent: Mapping, key: str, new: str) -> str:
    text = source.text
    if is_flow(source.text, parent):
        end = parent.span.end - 1
        entry = f"{key}: {_to_yaml(new, True, True)}"
        return f"{text[:end].rstrip()}{', ' if parent.entries else ''}{entry}{text[end:]}"
    # Insert below the operation, where its parameters usually are; otherwise below the first key.
    name, first = next(((name, value) for name, value in parent.entries if name.text == "operation"), parent.entries[0])
    column = source.position(name.span.start)[1] - 1
    line_end = text.find("\n", first.span.end)
    end = len(text) if line_end == -1 else line_end
    return f"{text[:end]}\n{' ' * column}{key}: {_to_yaml(new, False, True)}{text[end:]}"


def _to_yaml(new: str, in_flow: bool, is_scalar: bool) -> str:
    """Return the value as YAML: a list or a mapping as given, else a scalar."""
    if "\n" in new or "\r" in new:
        raise EditRejected("a value on one line is expected")
    return new if not is_scalar or new.startswith(("{", "[")) else write_scalar(new, in_flow)
