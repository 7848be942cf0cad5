"""Merging of contexts as zen does it: a later object replaces keys of an earlier one, objects inside are merged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from vesper.importers.zen.expressions import Expressions
from vesper.importers.zen.terms import COALESCE, OPEN, Leaf, Term, Tree, Untranslatable, Value, field_term, plain
from vesper.importers.zen.types import JSON, NOTHING, Record, Slot, Variable, join, resolve

Contribution = tuple[Value | None, str]
"""A value of a parent, and the condition under which the parent contributes it; empty: always."""
Keep = Callable[[str, Term], Term]
"""Stores a computed term as a step that is named after a key, and returns its path."""


def explode(leaf: Leaf) -> Tree | None:
    """Return a record as an object with known keys; None for any other type."""
    type_ = resolve(leaf.term.type)
    if isinstance(type_, Variable):
        type_.bound = Record("value", is_open=True)
        type_ = type_.bound
    if not isinstance(type_, Record) or not leaf.term.is_path:
        return None
    term = replace(leaf.term, type=type_)
    fields: dict[str, Value] = {}
    for key in list(type_.fields):
        inner = field_term(term, key)
        fields[key] = Leaf(inner, leaf.condition, is_absent_if_null=bool(inner.checks))
    return Tree(fields, type_ if type_.is_open and not term.checks else None, f"{term.text}.")


class Merger:
    """Merges values; computed values become steps, so that every value of a context is a path."""

    def __init__(self, expressions: Expressions, keep: Keep) -> None:
        self.expressions = expressions
        self.keep = keep

    def patch(self, older: Value | None, newer: Value, key: str = "value") -> Value:
        """Return `older` with the keys of `newer`."""
        if older is None or older == newer:
            return newer
        if isinstance(newer, Leaf) and newer.term.type == NOTHING:
            return older if newer.is_absent_if_null else newer
        left = older if isinstance(older, Tree) else self._tree(older) if self._is_object(newer) else None
        right = newer if isinstance(newer, Tree) else self._tree(newer) if left is not None else None
        if left is not None and right is not None:
            fields = dict(left.fields)
            for name, value in right.fields.items():
                fields[name] = self.patch(fields.get(name), value, name)
            base = left if left.source is not None else right
            return Tree(fields, base.source, base.prefix)
        if isinstance(newer, Tree) or not newer.is_absent_if_null or not newer.term.is_nullable:
            if isinstance(newer, Tree) and isinstance(older, Leaf) and resolve(older.term.type) == JSON:
                raise Untranslatable(f"keys of `{key}`, whose type the tests leave open")
            return newer
        if isinstance(older, Tree):
            raise Untranslatable(f"`{key}` is an object in one case and not in another")
        return self._either(newer, older, key)

    def _is_object(self, value: Value) -> bool:
        return isinstance(value, Tree) or isinstance(resolve(value.term.type), Record)

    def _tree(self, leaf: Leaf) -> Tree | None:
        if isinstance(resolve(leaf.term.type), Variable):
            return explode(leaf)
        return explode(leaf) if isinstance(resolve(leaf.term.type), Record) else None

    def _either(self, newer: Leaf, older: Leaf, key: str) -> Leaf:
        """Return the newer value, or the older one where the newer is absent."""
        if older.term.type == NOTHING:
            return newer
        slot = join([Slot(newer.term.type), Slot(older.term.type, older.term.is_nullable)], key)
        first, second = self.expressions.fit(plain(newer.term), slot), self.expressions.fit(plain(older.term), slot)
        text = f"{first.at(COALESCE + 1)} ?? {second.at(COALESCE)}"
        term = self.keep(key, Term(text, slot.type, COALESCE, is_optional=slot.is_optional))
        return Leaf(term, is_absent_if_null=older.is_absent_if_null)

    def gather(self, parts: list[Contribution], condition: str, key: str = "value") -> Value:
        """Return the merge of the parents' values, in order, where `condition` holds."""
        present = [(value, when) for value, when in parts if value is not None]
        if not present:
            return Tree()
        first = present[0][0]
        if len(present) == len(parts) and all(value == first for value, _ in present):
            return first
        if len(present) == 1 and present[0][1] in ("", condition):
            return first
        trees = [(value if isinstance(value, Tree) else self._tree(value), when) for value, when in present]
        if all(tree is not None for tree, _ in trees) and (len(trees) > 1):
            return self._gather_trees([(tree, when) for tree, when in trees if tree is not None], parts, condition)
        merged: Value | None = None
        for value, when in present:
            merged = self.patch(merged, value if when in ("", condition) else self._only_if(value, when, key), key)
        assert merged is not None
        return merged

    def _gather_trees(self, trees: list[tuple[Tree, str]], parts: list[Contribution], condition: str) -> Tree:
        keys = dict.fromkeys(key for tree, _ in trees for key in tree.fields)
        absent: list[Contribution] = [(None, "")] * (len(parts) - len(trees))
        merged = Tree()
        for key in keys:
            found: list[Contribution] = [(tree.fields.get(key), when) for tree, when in trees]
            merged.fields[key] = self.gather([*absent, *found], condition, key)
        sources = {id(tree.source) for tree, _ in trees}
        if len(sources) == 1 and not absent:
            merged.source, merged.prefix = trees[0][0].source, trees[0][0].prefix
        return merged

    def _only_if(self, value: Value, when: str, key: str) -> Value:
        """Return a value that is absent where the condition does not hold."""
        if isinstance(value, Tree):
            return Tree({name: self._only_if(each, when, name) for name, each in value.fields.items()})
        if value.term.type == NOTHING or (value.condition == when and value.term.checks):
            return replace(value, is_absent_if_null=True)
        text = f"IF {when} THEN {plain(value.term).text} ELSE null"
        return Leaf(self.keep(key, Term(text, value.term.type, OPEN, is_optional=True)), is_absent_if_null=True)
