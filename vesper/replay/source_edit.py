"""Edit of one parameter of one step in a node's text; all other text stays unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.syntax.expression_slot import quote_scalar
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Tree
from vesper.language.syntax.yaml_tree import Sequence as Items
from vesper.values.vesper_error import VesperError

_PARAMETERS_KEY = "parameters"
"""Key under which a step may hold its parameters."""


class EditRejected(VesperError):
    """The text cannot be edited this way; the message gives the reason. Nothing was changed."""


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
        value = _entry(parent, key)
        if value is None and depth == 0 and isinstance(moved := _entry(parent, _PARAMETERS_KEY), Mapping):
            parent, value = moved, _entry(moved, key)
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
    found = _entry(step, "step")
    return found.text if isinstance(found, Scalar) else None


def _entry(mapping: Mapping, key: str) -> Tree | None:
    return next((value for name, value in mapping.entries if name.text == key), None)


def _is_flow(source: SourceFile, tree: Tree) -> bool:
    return source.text[tree.span.start : tree.span.start + 1] in ("{", "[")


def _replace(source: SourceFile, parent: Mapping, key: str, value: Tree, new: str) -> EditedText:
    is_block = not isinstance(value, Scalar) and not _is_flow(source, value)
    if is_block or (isinstance(value, Scalar) and value.style in ("|", ">")):
        raise EditRejected(f"`{key}` has several lines: change one of its parts, or the file itself")
    before = source.slice(value.span)
    to_yaml = _to_yaml(new, _is_flow(source, parent), isinstance(value, Scalar))
    text = source.text
    return EditedText(text[: value.span.start] + to_yaml + text[value.span.end :], before)


def _insert(source: SourceFile, parent: Mapping, key: str, new: str) -> str:
    text = source.text
    if _is_flow(source, parent):
        end = parent.span.end - 1
        entry = f"{key}: {_to_yaml(new, True, True)}"
        return f"{text[:end].rstrip()}{', ' if parent.entries else ''}{entry}{text[end:]}"
    # Insert below the operation, where its parameters usually are; otherwise below the first key.
    name, first = next(((name, value) for name, value in parent.entries if name.text == "operation"), parent.entries[0])
    column = source.position(name.span.start)[1] - 1
    line_end = text.find("\n", first.span.end)
    end = len(text) if line_end == -1 else line_end
    return f"{text[:end]}\n{' ' * column}{key}: {_to_yaml(new, False, True)}{text[end:]}"


def _to_yaml(new: str, is_flow: bool, is_scalar: bool) -> str:
    """Return the value as YAML: plain if YAML reads it back as the same text, else quoted."""
    if "\n" in new or "\r" in new:
        raise EditRejected("a value on one line is expected")
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
