"""Random decision tables with cells, columns and every hit policy.

A table that the check refuses is no program, so rows of `unique` and `any` either split the values of a column or have
conditions that the analysis does not decide.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, timedelta
from itertools import pairwise

from vesper.language.tables.model import HITS, LIST_HITS, RANKED_HITS, SINGLE_HITS
from vesper.values.types import (
    BOOLEAN,
    DATE,
    DECIMAL,
    DURATION,
    INTEGER,
    STRING,
    ArrayOf,
    OptionalOf,
    Type,
    optional,
    without_null,
)
from vesper.verify.programs.terms import Scope, Term
from vesper.verify.programs.text import Tree

_COLUMNS: tuple[Type, ...] = (INTEGER, INTEGER, DECIMAL, DECIMAL, STRING, BOOLEAN, DATE)
_UNDECIDED: dict[Type, tuple[str, ...]] = {
    INTEGER: ("mod(value, 3) == 1", "bit_and(value, 6) == 2", "abs(value) > 4"),
    DECIMAL: ("round(value, 0, half_up) > 2.0", "value * 2.0 < 7.0", "scale(value) == 1"),
    STRING: ("length(value) > 2", "starts_with(value, 'a')"),
    DATE: ("month(value) == 3", "weekday_number(value) < 4"),
}
"""Conditions over a value that the analysis of tables does not decide."""
_SUMMED: tuple[Type, ...] = (INTEGER, DECIMAL, DURATION)
_ORDERED: tuple[Type, ...] = (INTEGER, DECIMAL, STRING, DATE)
_RANKED = ("'high'", "'middle'", "'low'")


class TableDrawing:
    """Draws tables; `draw` returns a term of a type."""

    def __init__(self, source: random.Random, draw: Callable[[Type, Scope, int], Term], pool: list[Type]) -> None:
        self._random = source
        self._draw = draw
        self._pool = pool

    def table(self, name: str, scope: Scope) -> tuple[dict[str, Tree], Type]:
        """Return the fields of a table step, and the type of its value."""
        hit = self._random.choice(HITS)
        columns = {f"{name}_{letter}": self._column_type() for letter in "ab"[: self._random.choice((1, 1, 2))]}
        fields: dict[str, Tree] = {"step": name, "operation": "decision_table"}
        if hit != "first" or self._random.random() < 0.5:
            fields["hit"] = hit
        fields["columns"] = {each: self._draw(type_, scope, 1) for each, type_ in columns.items()}
        cells, is_complete = self._cells(hit, columns)
        type_, result = self._results(hit, scope)
        outputs = self._outputs(hit, type_)
        if outputs is not None:
            fields["outputs"] = outputs
        has_results = hit != "count" or self._random.random() < 0.5
        rows: list[Tree] = [self._row(each, result if has_results else None) for each in cells]
        has_default = self._has_default(hit, is_complete)
        if has_default:
            rows.append({"otherwise": result()})
        fields["rows"] = rows
        return fields, _value_type(hit, type_, has_default or is_complete is True)

    def _has_default(self, hit: str, is_complete: bool | None) -> bool:
        """Draw whether there is an `otherwise`; one is needed where it decides the type of the value."""
        if hit == "count":
            return False
        if is_complete is None and (hit in SINGLE_HITS or hit in ("min", "max")):
            return True
        return self._random.random() < (0.3 if is_complete else 0.5)

    # -- columns and cells ------------------------------------------------------------------------

    def _column_type(self) -> Type:
        type_ = self._random.choice(_COLUMNS)
        return OptionalOf(type_) if self._random.random() < 0.2 else type_

    def _cells(self, hit: str, columns: dict[str, Type]) -> tuple[list[dict[str, str]], bool | None]:
        """Return the cells of each row, and whether the analysis finds that they match everything; None if unknown."""
        name, type_ = next(iter(columns.items()))
        is_exclusive = hit in ("unique", "any")
        if without_null(type_) in _UNDECIDED and self._random.random() < (0.5 if is_exclusive else 0.15):
            count = self._random.choice((1, 2, 2, 3))
            return [{name: self._undecided(type_, is_exclusive)} for _ in range(count)], False
        if is_exclusive or self._random.random() < 0.2:
            return [{name: text} for text in self._split(type_)], True
        rows = [
            {each: self._cell(column) for each, column in columns.items() if self._random.random() < 0.8}
            for _ in range(self._random.choice((1, 2, 3, 4, 6)))
        ]
        return [row or {name: "-"} for row in rows], None

    def _undecided(self, type_: Type, may_match_null: bool = False) -> str:
        """Return a condition in braces. Null is a gap that the check finds, unless every row may match it."""
        condition = self._random.choice(_UNDECIDED[without_null(type_)])
        if isinstance(type_, OptionalOf):
            forms = (("IS NULL", "OR"),) if may_match_null else (("IS NOT NULL", "AND"), ("IS NULL", "OR"))
            word, joined = self._random.choice(forms)
            condition = f"value {word} {joined} {condition}"
        return f"{{{condition}}}"

    def _split(self, type_: Type) -> list[str]:
        """Return cells of which exactly one matches any value."""
        inner = without_null(type_)
        if inner == BOOLEAN:
            found = ["true", "false"]
        else:
            cuts = self._literals(inner)
            found = [f"< {cuts[0]}", *(f"[{low}..{high})" for low, high in pairwise(cuts))]
            found.append(f">= {cuts[-1]}")
        if isinstance(type_, OptionalOf):
            place = self._random.randrange(len(found) + 1)
            if place == len(found):
                found.append("null")
            else:
                found[place] += ", null"
        self._random.shuffle(found)
        return found

    def _cell(self, type_: Type) -> str:
        inner = without_null(type_)
        if isinstance(type_, OptionalOf) and self._random.random() < 0.2:
            return self._random.choice(("null", "not(null)"))
        if inner == BOOLEAN:
            return self._random.choice(("true", "false", "-", "not(true)"))
        texts = self._literals(inner)
        low, high = texts[0], texts[-1]
        one = self._random.choice(texts)
        forms = ["-", one, ", ".join(texts), f"not({one})", f"!= {one}"]
        forms += [f"{operator} {one}" for operator in ("<", "<=", ">", ">=")]
        if low != high:
            forms += [f"[{low}..{high}]", f"({low}..{high}]", f"not([{low}..{high}))"]
        if inner in _UNDECIDED and self._random.random() < 0.15:
            return self._undecided(type_)
        return self._random.choice(forms)

    def _literals(self, type_: Type) -> list[str]:
        """Return some literals of a type in ascending order, spelled as operands of cells."""
        count = self._random.choice((1, 2, 2, 3))
        if type_ == DATE:
            days = sorted(self._random.sample(range(0, 4000, 3), count))
            return [(date(2020, 1, 1) + timedelta(days=day)).isoformat() for day in days]
        if type_ == STRING:
            return [f"'{text}'" for text in sorted(self._random.sample(("a", "ab", "b", "zz", "é", "B"), count))]
        numbers = sorted(self._random.sample(range(-4, 12), count))
        return [f"{number}.5" if type_ == DECIMAL and number % 2 else str(number) for number in numbers]

    # -- results ----------------------------------------------------------------------------------

    def _results(self, hit: str, scope: Scope) -> tuple[Type, Callable[[], Term]]:
        """Return the type of the results, and how to draw one."""
        if hit in RANKED_HITS:
            return STRING, lambda: Term(STRING, (self._random.choice(_RANKED),))
        choices = {"sum": _SUMMED, "min": _ORDERED, "max": _ORDERED}.get(hit, tuple(self._pool))
        type_ = self._random.choice(choices)
        return type_, lambda: self._draw(type_, scope, 1)

    def _outputs(self, hit: str, type_: Type) -> Tree | None:
        if hit not in RANKED_HITS:
            return None
        order = [*_RANKED]
        self._random.shuffle(order)
        values: list[Tree] = [text.strip("'") for text in order]
        return {"result": {"type": str(type_), "values": values}}

    def _row(self, cells: dict[str, str], result: Callable[[], Term] | None) -> Tree:
        row: dict[str, Tree] = {"in": {name: _quoted(text) for name, text in cells.items()}}
        if result is not None:
            row["then"] = result()
        if self._random.random() < 0.1:
            row["annotation"] = "a drawn row"
        return row


def _value_type(hit: str, type_: Type, has_hit: bool) -> Type:
    if hit == "count":
        return INTEGER
    if hit in LIST_HITS:
        return ArrayOf(type_)
    return type_ if has_hit or hit == "sum" else optional(type_)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
