"""Bounds, lengths and patterns that clauses of a node put on single values.

Reads constraints, preconditions and postconditions in the IR. A clause over several values gives no facts, because no
schema can express it; the service checks it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias

from vesper.language.ir import nodes as ir
from vesper.values.types import MapOf

Path: TypeAlias = tuple[str, ...]
"""Input or output, then fields; `ITEM` is an item of a collection or a value of a map, `KEY` a key of a map."""
ITEM, KEY = "[]", "{}"
_FLIPPED = {
    "greater": "less",
    "less": "greater",
    "greater_or_equal": "less_or_equal",
    "less_or_equal": "greater_or_equal",
}


@dataclass(slots=True)
class Facts:
    """The bounds, lengths and patterns of the values at one path."""

    low: Decimal | None = None
    high: Decimal | None = None
    is_low_open: bool = False
    is_high_open: bool = False
    min_length: int | None = None
    max_length: int | None = None
    patterns: list[str] = field(default_factory=list)

    def compare(self, verb: str, bound: Decimal) -> None:
        """Add `value VERB bound`."""
        if verb in ("greater", "greater_or_equal", "equal") and (self.low is None or bound >= self.low):
            self.is_low_open = verb == "greater" or (self.is_low_open and bound == self.low)
            self.low = bound
        if verb in ("less", "less_or_equal", "equal") and (self.high is None or bound <= self.high):
            self.is_high_open = verb == "less" or (self.is_high_open and bound == self.high)
            self.high = bound

    def compare_length(self, verb: str, bound: int) -> None:
        """Add `length(value) VERB bound`."""
        if verb in ("greater", "greater_or_equal", "equal"):
            self.min_length = max(self.min_length or 0, bound + (verb == "greater"))
        if verb in ("less", "less_or_equal", "equal"):
            most = bound - (verb == "less")
            self.max_length = most if self.max_length is None else min(self.max_length, most)


def find_facts(clauses: Iterable[ir.Clause], kind: str) -> dict[Path, Facts]:
    """Return the facts about names of a kind, `input` or `output`, by path."""
    reader = _Reader(kind)
    for clause in clauses:
        reader.read(clause.holds, {})
    return reader.found


class _Reader:
    def __init__(self, kind: str) -> None:
        self._kind = kind
        self.found: dict[Path, Facts] = {}

    def read(self, holds: ir.Expression, locals_: dict[int, Path], under: Path = ()) -> None:
        """Add the facts of a condition about values at and below the path `under`."""
        match holds:
            case ir.Logical(kind="and", left=left, right=right):
                self.read(left, locals_, under)
                self.read(right, locals_, under)
            case ir.Logical(kind="or", left=ir.Call(op="optional.is_null", args=(subject,)), right=right):
                # A schema has null beside the value, so what follows holds for the value and its parts, and only there.
                path = self._path(subject, locals_)
                if path is not None and path[: len(under)] == under:
                    self.read(right, locals_, path)
            case ir.For(kind="forall", where=None, over=over):
                path = self._path(over, locals_)
                if path is not None:
                    parts = (KEY, ITEM) if isinstance(over.type, MapOf) else (ITEM,)
                    inner = dict(zip(holds.locals, ((*path, part) for part in parts), strict=False))
                    self.read(holds.value, locals_ | inner, under)
            case ir.Call(op="regex.matches", args=(subject, ir.Literal(value=str(pattern)))):
                facts = self._facts(subject, locals_, under)
                if facts is not None:
                    facts.patterns.append(pattern)
            case ir.Call(op=op, args=(left, ir.Literal() as bound)):
                self._compare(op.rpartition(".")[2], left, bound, locals_, under)
            case ir.Call(op=op, args=(ir.Literal() as bound, right)):
                verb = op.rpartition(".")[2]
                self._compare(_FLIPPED.get(verb, verb), right, bound, locals_, under)

    def _compare(
        self, verb: str, value: ir.Expression, bound: ir.Literal, locals_: dict[int, Path], under: Path
    ) -> None:
        number = bound.value
        if (
            verb not in (*_FLIPPED, "equal")
            or isinstance(number, bool)
            or not isinstance(number, int | float | Decimal)
        ):
            return
        exact = Decimal(str(number))
        if not exact.is_finite():
            return
        if isinstance(value, ir.Call) and value.op.endswith(".length") and len(value.args) == 1:
            facts = self._facts(value.args[0], locals_, under)
            if facts is not None and isinstance(number, int):
                facts.compare_length(verb, number)
            return
        facts = self._facts(value, locals_, under)
        if facts is not None:
            facts.compare(verb, exact)

    def _facts(self, value: ir.Expression, locals_: dict[int, Path], under: Path) -> Facts | None:
        path = self._path(value, locals_)
        return None if path is None or path[: len(under)] != under else self.found.setdefault(path, Facts())

    def _path(self, value: ir.Expression, locals_: dict[int, Path]) -> Path | None:
        match value:
            case ir.Ref(kind=kind, name=name):
                return (name,) if kind == self._kind else None
            case ir.Local(number=number):
                return locals_.get(number)
            case ir.Field(of=base, name=name):
                path = self._path(base, locals_)
                return None if path is None else (*path, name)
            case ir.Call(op="optional.unwrap", args=(inner,)):
                return self._path(inner, locals_)
            case _:
                return None
