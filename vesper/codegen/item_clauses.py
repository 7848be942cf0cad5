"""Clauses about each item of one collection, merged so that one pass tests all of them.

Only clauses that cannot fail are merged: with others the order in which items and clauses are evaluated would decide
which failure is the outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import TypeAlias

from vesper.codegen.same import is_same_path
from vesper.codegen.spelling import SPELLINGS, Itself
from vesper.language.ir import nodes as ir
from vesper.values.generated.operations import OPERATIONS

NumberedClause: TypeAlias = tuple[str, int, ir.Clause]
"""A clause with its phase and its index in the phase."""


def split_runs(clauses: Sequence[NumberedClause]) -> list[list[NumberedClause]]:
    """Split clauses into runs of neighbours about the items of one collection. Any other clause is its own run."""
    runs: list[list[NumberedClause]] = []
    for each in clauses:
        if runs and _is_shareable(runs[-1][-1][2].holds, each[2].holds):
            runs[-1].append(each)
        else:
            runs.append([each])
    return runs


def _is_shareable(left: ir.Expression, right: ir.Expression) -> bool:
    return not _is_fallible(left) and not _is_fallible(right) and _is_about_same(left, right, {})


def _is_fallible(holds: ir.Expression) -> bool:
    """Return whether the Python of a clause may raise. An operation that is written as its argument does not."""
    return any(
        bool(OPERATIONS[each.op].raises) and not isinstance(SPELLINGS.get(each.op), Itself)
        if isinstance(each, ir.Call)
        else isinstance(each, ir.Apply) or (isinstance(each, ir.For) and each.kind not in ("forall", "exists", "count"))
        for each in ir.walk(holds)
    )


def _is_about_same(left: ir.Expression, right: ir.Expression, locals_: dict[int, int]) -> bool:
    """Return whether both are FORALL over one collection."""
    return (
        isinstance(left, ir.For)
        and isinstance(right, ir.For)
        and left.kind == right.kind == "forall"
        and left.where is None
        and right.where is None
        and len(left.locals) == len(right.locals)
        and is_same_path(left.over, right.over, locals_)
    )


def merge_clauses(clauses: Sequence[ir.Clause], atoms: dict[int, ir.Expression]) -> ir.For:
    """Return one FORALL that holds where all clauses of a run hold.

    In it, the locals of the later clauses are those of the first clause; `atoms` receives that mapping.
    """
    merged = _merge([clause.holds for clause in clauses], {}, atoms)
    assert isinstance(merged, ir.For)
    return merged


def _merge(
    conditions: Sequence[ir.Expression], locals_: dict[int, int], atoms: dict[int, ir.Expression]
) -> ir.Expression:
    groups: list[list[ir.Expression]] = []
    for each in conditions:
        if groups and _is_about_same(groups[-1][0], each, locals_):
            first = groups[-1][0]
            assert isinstance(first, ir.For)
            assert isinstance(each, ir.For)
            types = ir.item_types(first.over.type)
            for number, name, old, type_ in zip(first.locals, first.names, each.locals, types, strict=False):
                locals_[old] = number
                atoms[old] = ir.Local(number, name, type_, each.place)
            groups[-1].append(each)
        else:
            groups.append([each])
    return reduce(
        lambda left, right: ir.Logical("and", left, right, left.place),
        [_merge_loops(group, locals_, atoms) for group in groups],
    )


def _merge_loops(
    group: Sequence[ir.Expression], locals_: dict[int, int], atoms: dict[int, ir.Expression]
) -> ir.Expression:
    first = group[0]
    if len(group) == 1 or not isinstance(first, ir.For):
        return first
    values = [each.value for each in group if isinstance(each, ir.For)]
    return replace(first, value=_merge(values, locals_, atoms))
