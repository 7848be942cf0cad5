"""Facts about null, which narrow optional values. After `x IS NOT NULL AND` the right side may use `x` as a value.

A fact is a path: a declaration and the fields that lead from it. Facts follow from conditions that hold or fail. They
are computed on the AST, before types, because they decide the type of a name.
"""

from __future__ import annotations

from typing import TypeAlias

from vesper.language.check.scope import Declared, Scope
from vesper.language.syntax import ast

Path: TypeAlias = tuple[Declared, tuple[str, ...]]
Facts: TypeAlias = frozenset[Path]
NOTHING: Facts = frozenset()


def path_of(expression: ast.Expression, scope: Scope) -> Path | None:
    """Return the path of a name or of a field of a path, else None."""
    match expression:
        case ast.Name(text=text):
            declared = scope.find(text)
            return None if declared is None else (declared, ())
        case ast.Field(base=ast.Name(text="input" | "output" | "error" as kind), name=name):
            declared = scope.member(kind, name.text)
            return None if declared is None else (declared, ())
        case ast.Field(base=base, name=name):
            path = path_of(base, scope)
            return None if path is None else (path[0], (*path[1], name.text))
        case ast.Call(function=ast.Word(text="old"), arguments=(inner,)):
            with scope.at_start():
                return path_of(inner, scope)
        case _:
            return None


_NULL_OPERATORS = frozenset(("==", "!=", "AND", "OR", "=>"))
"""Operators whose result can imply facts about null."""


def facts_when(condition: ast.Expression, holds: bool, scope: Scope) -> Facts:
    """Return the paths that are not null where the condition holds, or where it fails."""
    if isinstance(condition, ast.Infix) and condition.operator.text not in _NULL_OPERATORS:  # the common case
        return NOTHING
    match condition:
        case ast.IsNull(operand=operand, is_negated=is_negated):
            path = path_of(operand, scope) if is_negated == holds else None
            return NOTHING if path is None else frozenset({path})
        case ast.Infix(left=left, operator=ast.Word(text="==" | "!=" as word), right=right):
            return _facts_of_equality(condition, (word == "==") == holds, left, right, scope)
        case ast.Prefix(operator=ast.Word(text="NOT"), operand=operand):
            return facts_when(operand, not holds, scope)
        case ast.Infix(left=left, operator=ast.Word(text="AND" | "OR" as word), right=right):
            first, second = facts_when(left, holds, scope), facts_when(right, holds, scope)
            # An AND that holds and an OR that fails give the facts of both sides; otherwise only facts common to both
            # remain.
            return first | second if (word == "AND") == holds else first & second
        case ast.Infix(left=left, operator=ast.Word(text="=>"), right=right):
            first, second = facts_when(left, not holds, scope), facts_when(right, holds, scope)
            return first & second if holds else first | second
        case _:
            return NOTHING


def _facts_of_equality(
    condition: ast.Infix, are_equal: bool, left: ast.Expression, right: ast.Expression, scope: Scope
) -> Facts:
    """Return the facts of an equality. An operand that equals a value without null is not null."""
    if isinstance(left, ast.Null) or isinstance(right, ast.Null):
        path = None if are_equal else path_of(right if isinstance(left, ast.Null) else left, scope)
        return NOTHING if path is None else frozenset({path})
    if not are_equal or id(condition) not in scope.equal_to_a_value:
        return NOTHING
    return frozenset(path for path in (path_of(left, scope), path_of(right, scope)) if path is not None)
