"""Places of a file: which field of which mapping an offset is in, by the declared kinds of fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree
from vesper.lsp.features.reference import Field, Shape, alternatives, inside, shapes, step_shapes

_PASSED_ON = ("expression", "literal", "template")
"""Kinds of which the values inside a mapping or list are too."""


@dataclass(frozen=True, slots=True)
class Place:
    """A scalar of the file, or the key of an entry."""

    scalar: Scalar
    kind: str
    """Kind of the value: `expression`, `type`, `word` …; of a key, that of the mapping."""
    is_key: bool
    field: Field | None
    """The declared field whose key or value it is; for an entry of a map or list, the field around it."""
    shape: Shape | None
    """The mapping that has the field."""
    path: tuple[str, ...]
    """Keys from the top, without positions in lists."""
    around: tuple[Mapping, ...]
    """Mappings around it, the innermost last."""

    @property
    def present(self) -> set[str]:
        """Return the keys beside it."""
        return {key.text for key, _ in self.around[-1].entries} if self.around else set()

    def value(self, key: str, up: int = 0) -> Tree | None:
        """Return the value of a key in the mapping around it, or `up` mappings further out."""
        if len(self.around) <= up:
            return None
        return next((value for name, value in self.around[-1 - up].entries if name.text == key), None)


def places(tree: Tree) -> Iterator[Place]:
    """Yield every key and scalar of a file, in the order of the file."""
    is_library = isinstance(tree, Mapping) and any(key.text == "library_id" for key, _ in tree.entries)
    yield from _walk(tree, "library" if is_library else "node", None, None, (), ())


def place_at(tree: Tree, offset: int) -> Place | None:
    """Return the innermost key or scalar that an offset touches."""
    found = None
    for place in places(tree):
        span = place.scalar.span
        if span.start <= offset <= span.end:
            found = place
        elif span.start > offset:
            break
    return found


def place_before(tree: Tree, text: str, offset: int) -> Place | None:
    """Return the place at an offset, or where only spaces follow, the one before them."""
    found = place_at(tree, offset)
    return place_at(tree, len(text[:offset].rstrip(" "))) if found is None else found


def _walk(
    tree: Tree,
    kind: str,
    field: Field | None,
    shape: Shape | None,
    path: tuple[str, ...],
    around: tuple[Mapping, ...],
) -> Iterator[Place]:
    if isinstance(tree, Scalar):
        yield Place(tree, _scalar_kind(kind), False, field, shape, path, around)
    elif isinstance(tree, Sequence):
        inner = next((found for each in alternatives(kind) if (found := inside(each, "list"))), None)
        for item in tree.items:
            yield from _walk(item, inner or _passed_on(kind), field, shape, path, around)
    else:
        yield from _walk_mapping(tree, kind, field, shape, path, around)


def _walk_mapping(
    tree: Mapping,
    kind: str,
    field: Field | None,
    outer: Shape | None,
    path: tuple[str, ...],
    around: tuple[Mapping, ...],
) -> Iterator[Place]:
    shape = shape_of(tree, kind)
    entries = next((found for each in alternatives(kind) if (found := inside(each, "map"))), None)
    here = (*around, tree)
    for key, value in tree.entries:
        below = (*path, key.text)
        own = None if shape is None else shape.field(key.text)
        if shape is not None:
            yield Place(key, shape.name, True, own, shape, path, here)
            yield from _walk(value, "" if own is None else own.kind, own, shape, below, here)
        elif kind == "step":
            yield Place(key, "step", True, None, None, path, here)
            yield from _walk(value, "", None, None, below, here)
        else:
            inner = entries or _passed_on(kind)
            yield Place(key, f"map<{inner}>", True, field, outer, path, here)
            yield from _walk(value, inner, field, outer, below, here)


def shape_of(tree: Mapping, kind: str) -> Shape | None:
    """Return the declared mapping that a mapping of this kind is; the one with most of its keys."""
    keys = {key.text for key, _ in tree.entries}
    if kind == "step":
        return _step_shape(tree, keys)
    known = [shapes()[each] for each in alternatives(kind) if each in shapes()]
    return max(known, key=lambda each: len(keys & set(each.fields)), default=None)


def _step_shape(tree: Mapping, keys: set[str]) -> Shape | None:
    operation = next((value for key, value in tree.entries if key.text == "operation"), None)
    if isinstance(operation, Scalar):
        fitting = [each for each in step_shapes() if each.step == operation.text]
        return max(fitting, key=lambda each: len(keys & set(each.fields)), default=None)
    # A short form comes first, then later operations: a table may have `value`s.
    short = (each for each in step_shapes() if each.short is not None and each.step in keys)
    return next(short, None) or next((each for each in reversed(step_shapes()) if keys & set(each.keys)), None)


def _scalar_kind(kind: str) -> str:
    """Return the alternative of a kind that a scalar is; the whole where none is one."""
    simple = [each for each in alternatives(kind) if "<" not in each and each not in shapes() and each != "step"]
    return simple[0] if simple else kind


def _passed_on(kind: str) -> str:
    return next((each for each in alternatives(kind) if each in _PASSED_ON), "")
