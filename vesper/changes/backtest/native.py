"""The backtest of a journal on all processors, without Python's lock (docs/adr/0052).

The extension reads the runs, replays both versions and counts; Python gets the counts and the ids of examples. It
compares outcomes by their typed JSON, so versions whose common fields cannot be compared as texts are left to
`Backtest`, which counts the same. So are versions with sensitive codes of errors, which segments would show.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, cast

from vesper._direct import Journal as StoredJournal
from vesper._direct import JournalBacktest
from vesper.changes.backtest.backtest import Comparison
from vesper.changes.backtest.cases import ERASED, NO_INPUTS, UNREADABLE, not_ended_reason
from vesper.changes.backtest.journal_runs import Selection
from vesper.changes.backtest.measures import ExactSum, Measure, Side
from vesper.changes.backtest.tally import Example, Group, Sums, Tally
from vesper.compiler import Compiled
from vesper.engines.direct_engine import all_callees
from vesper.engines.version_outcomes import common_type
from vesper.journal.journal import Journal
from vesper.journal.typed_json import encode_text
from vesper.language.ir.nodes import Output
from vesper.trace.expressions import names_of_inputs
from vesper.values.types import BOOLEAN, STRING, ArrayOf, Enum, MapOf, OptionalOf, Record, Type

_REASONS = {"unreadable": UNREADABLE, "erased": ERASED, "no_inputs": NO_INPUTS}


def is_native(comparison: Comparison) -> bool:
    """Return whether the extension compares these versions by the rule of `VersionOutcomes`."""
    before, after = comparison.before.node, comparison.after.node
    is_plain = not (before.flagged or after.flagged or comparison.kinds.hides_codes)
    return is_plain and all(
        _has_equal_texts(*types)
        for fields in ((before.outputs, after.outputs), (before.errors, after.errors))
        for types in _common_fields(*fields).values()
    )


def _common_fields(before: Sequence[Output], after: Sequence[Output]) -> dict[str, tuple[Type, Type]]:
    others = {each.name: each.type for each in after}
    found = {each.name: (each.type, others[each.name]) for each in before if each.name in others}
    return {name: types for name, types in found.items() if common_type(*types) is not None}


def _has_equal_texts(left: Type, right: Type) -> bool:
    """Return whether values of both types that are the same have the same typed JSON."""
    match left, right:
        case _ if left == right:
            return True
        case (OptionalOf(), _) | (_, OptionalOf()):
            return _has_equal_texts(*(each.inner if isinstance(each, OptionalOf) else each for each in (left, right)))
        case (Enum(), Enum()) | (Enum(), _) | (_, Enum()):
            return True
        case ArrayOf(element), ArrayOf(other):
            return _has_equal_texts(element, other)
        case MapOf(_, value), MapOf(_, other):
            return _has_equal_texts(value, other)
        case Record(fields), Record(others):
            return [name for name, _ in fields] == [name for name, _ in others] and all(
                _has_equal_texts(own, other) for (_, own), (_, other) in zip(fields, others, strict=True)
            )
        case _:
            return False


class NativeBacktest:
    """A backtest of a journal, advanced by pages. `tally` has the counts so far, at any time."""

    def __init__(
        self, comparison: Comparison, journal: Journal, selection: Selection, threads: int | None = None
    ) -> None:
        measures, kinds = comparison.measures, comparison.kinds
        before, after = comparison.before, comparison.after
        self._native = JournalBacktest(
            cast(StoredJournal, journal),
            _documents(before),
            _documents(after),
            before.semantic_hash,
            outputs=[(name, _mode(type_, name in kinds.hidden)) for name, type_ in kinds.outputs.items()],
            errors=list(_common_fields(before.node.errors, after.node.errors)),
            hides_codes=kinds.hides_codes,
            by=[_measure(each) for each in measures.by],
            sums=[_measure(each) for each in measures.sums],
            selection=None if measures.where is None else _measure(measures.where),
            nodes=list(selection.nodes),
            since_us=selection.since_us,
            until_us=selection.until_us,
            limit=selection.limit,
            threads=threads or len(os.sched_getaffinity(0)),
        )

    @property
    def total(self) -> int:
        """Number of selected runs."""
        return self._native.total()

    def step(self) -> bool:
        """Replay and count the next page of runs. Return False if none is left."""
        return self._native.step()

    @property
    def progress(self) -> tuple[int, int]:
        """Number of runs seen, and of those whose outcome changes."""
        return self._native.progress()

    @property
    def tally(self) -> Tally:
        return _tally(self._native.tally())


def _documents(compiled: Compiled) -> tuple[bytes, list[bytes]]:
    return compiled.ir, [each.ir for each in all_callees(compiled)]


def _measure(measure: Measure) -> tuple[Any, Any]:
    return _side(measure.before), _side(measure.after)


def _side(side: Side | None) -> Any:
    if side is None:
        return None
    constants = names_of_inputs(side.compiled, {})
    given = [
        (kind, encode_text(constants[kind, name].value) if kind == "constant" else name)
        for kind, name in side.bound.mentions
    ]
    return _documents(side.bound.compiled), given


def _mode(type_: Type, is_hidden: bool) -> str:
    inner = type_.inner if isinstance(type_, OptionalOf) else type_
    if is_hidden:
        return "hidden"
    return "quoted" if isinstance(inner, Enum) or inner in (BOOLEAN, STRING) else "plain"


def _tally(found: dict[str, Any]) -> Tally:
    tally = Tally(_group(found["total"]), _group(found["apart"]))
    for reason, status, runs, names in found["excluded"]:
        tally.exclude(_REASONS.get(reason) or not_ended_reason(status), runs, names)
    tally.not_selected, tally.not_decided = found["not_selected"], found["not_decided"]
    tally.apart_other_definition = found["apart_other_definition"]
    tally.not_compared.update(found["not_compared"])
    tally.unanswered_before.update(found["unanswered_before"])
    tally.unanswered_after.update(found["unanswered_after"])
    for kind, runs, example in found["kinds"]:
        tally.add_kind(kind, runs, None if example is None else Example(*example))
    tally.groups = [{label: _group(each) for label, each in groups.items()} for groups in found["groups"]]
    return tally


def _group(found: tuple[int, int, list[Any]]) -> Group:
    runs, changed, sums = found
    return Group(runs, changed, [Sums(_sum(before), _sum(after), none, later) for before, after, none, later in sums])


def _sum(parts: list[tuple[str, int]]) -> ExactSum:
    total = ExactSum()
    for coefficient, scale in parts:
        total.merge(ExactSum({scale: int(coefficient)}))
    return total
