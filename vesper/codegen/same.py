"""Test whether two expressions of the IR are written alike, at any place in the node."""

from __future__ import annotations

from collections.abc import Mapping

from vesper.language.ir import nodes as ir

_NO_LOCALS: Mapping[int, int] = {}


def is_same_path(left: ir.Expression, right: ir.Expression, locals_: Mapping[int, int] = _NO_LOCALS) -> bool:
    """Return whether both are equal literals, or read the same name or the same field of it.

    `locals_` maps a local of `right` to the local of `left` that it corresponds to.
    """
    match left, right:
        case ir.Literal(), ir.Literal():
            return left.type == right.type and repr(left.value) == repr(right.value)
        case ir.Ref(), ir.Ref():
            return (left.kind, left.name) == (right.kind, right.name)
        case ir.Local(), ir.Local():
            return left.number == locals_.get(right.number, right.number)
        case ir.Field(), ir.Field():
            return left.name == right.name and is_same_path(left.of, right.of, locals_)
        case ir.Call(op="optional.unwrap", args=(of,)), ir.Call(op="optional.unwrap", args=(other,)):
            return is_same_path(of, other, locals_)
        case _:
            return False
