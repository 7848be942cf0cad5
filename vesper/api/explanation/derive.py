"""The explanation of a trace, derived from its marks (docs/spec/explanations.md).

A trace holds every evaluated condition as a mark, so an explanation needs no second execution, and a plain call pays
nothing for it. The result does not depend on the engine that gave the marks.
"""

from __future__ import annotations

from dataclasses import replace

from vesper.api.explanation.known_values import KnownValues
from vesper.api.explanation.model import Condition, Explanation, MatchedRow, UsedParameter
from vesper.api.explanation.places import NodePlaces, Role, node_places
from vesper.compiler import Compiled
from vesper.host.masking import SENSITIVE
from vesper.language.ir import nodes as ir
from vesper.trace.model import MarkKind, Trace
from vesper.trace.programs import LeastRecentlyUsed, compiled_of
from vesper.values.model import show

MAX_ENTRIES = 1_000
"""Maximum of distinct conditions, and of distinct rows, in one explanation."""
_known: LeastRecentlyUsed[NodePlaces] = LeastRecentlyUsed()


def explain_trace(trace: Trace) -> Explanation:
    """Return the explanation of a trace, without a nearest input. A masked trace gives a masked explanation."""
    compiled = compiled_of(trace.definition)
    return _Derivation(compiled, trace).explanation()


def places_of(compiled: Compiled) -> NodePlaces:
    return _known.get((compiled.semantic_hash, compiled.source.sha256), lambda: node_places(compiled))


class _Derivation:
    def __init__(self, compiled: Compiled, trace: Trace) -> None:
        self._compiled = compiled
        self._trace = trace
        self._places = places_of(compiled)
        self._values = KnownValues(compiled.node, trace.inputs, trace.outcome, _is_masked(trace))
        self._conditions: dict[object, Condition] = {}
        self._rows: dict[tuple[int, int], MatchedRow] = {}
        self._reasons: dict[str, None] = {}
        self._parameters: dict[object, UsedParameter] = {}
        self._evaluations: dict[int, list[tuple[int, bool]]] = {}
        """Results of each table in its current evaluation, by the index of the condition."""
        self._omitted = 0

    def explanation(self) -> Explanation:
        for mark in self._trace.marks:
            self._values.note(mark.index, mark.value)
            role = self._places.roles.get(mark.index)
            if role is not None:
                self._note_row(mark.index, mark.value is True)
                self._note_condition(role, mark.value is True)
                self._note_parameter(mark.index, mark.value is True)
        for table in list(self._evaluations):
            self._end_evaluation(table)
        node = self._compiled.node
        return Explanation(
            node.node_id,
            self._compiled.semantic_hash,
            self._trace.outcome,
            tuple(self._reasons),
            tuple(self._rows.values()),
            tuple(self._conditions.values()),
            tuple(self._parameters.values()),
            None,
            self._omitted,
            node,
        )

    # -- conditions -------------------------------------------------------------------------------

    def _note_condition(self, role: Role, holds: bool) -> None:
        values = self._values.mentioned(role.expression)
        index = role.expression.index
        shown = tuple((name, show(each.value)) for name, each in values.items())
        key = (index, holds, shown)
        known = self._conditions.get(key)
        if known is not None:
            self._conditions[key] = replace(known, times=known.times + 1)
            return
        reason = self._reason(role, holds)
        if reason is not None:
            self._reasons.setdefault(reason)
        if len(self._conditions) >= MAX_ENTRIES:
            self._omitted += 1
            return
        line = role.expression.place.line
        self._conditions[key] = Condition(index, role.kind, role.step, role.text, line, holds, values, reason)

    def _reason(self, role: Role, holds: bool) -> str | None:
        """Return the reason of a condition that does not hold: that of its first guard that fails."""
        if holds:
            return None
        for part in _conjuncts(role.expression):
            reason = self._places.reasons.get(part.index)
            if part is role.expression:
                return reason
            if self._values.value(part) is False:
                return reason
        return None

    # -- rows -------------------------------------------------------------------------------------

    def _note_row(self, index: int, holds: bool) -> None:
        place = self._places.row_of.get(index)
        if place is None:
            return
        table, position = place
        current = self._evaluations.setdefault(table, [])
        if current and index <= current[-1][0]:  # conditions are evaluated in order, so this is the next evaluation
            self._end_evaluation(table)
            current = self._evaluations.setdefault(table, [])
        current.append((index, holds))
        if holds:
            self._match(table, position)

    def _end_evaluation(self, table: int) -> None:
        """Match the default row where every condition was evaluated and none held."""
        results = self._evaluations.pop(table)
        rows = self._places.tables[table]
        if any(holds for _, holds in results) or len(results) < sum(row.when is not None for row in rows):
            return
        for position, row in enumerate(rows):
            if row.when is None:
                self._match(table, position)

    def _match(self, table: int, position: int) -> None:
        known = self._rows.get((table, position))
        if known is not None:
            self._rows[table, position] = replace(known, times=known.times + 1)
            return
        row = self._places.tables[table][position]
        if row.reason is not None:
            self._reasons.setdefault(row.reason)
        if len(self._rows) >= MAX_ENTRIES:
            self._omitted += 1
            return
        text = "otherwise" if row.when is None else self._places.roles[row.when].text
        self._rows[table, position] = MatchedRow(
            row.table, row.hit, row.number, row.line, text, row.cells, row.annotation, row.reason
        )

    # -- parameters -------------------------------------------------------------------------------

    def _note_parameter(self, index: int, holds: bool) -> None:
        """Note the entry in force after the last date comparison of a lookup."""
        lookup = self._places.lookups.get(index)
        if lookup is None:
            return
        found = lookup.then if holds else lookup.otherwise
        if found is None:
            return
        number, value = found
        parameter = lookup.parameter
        entry = parameter["entries"][number - 1] if number else {}
        date = self._values.value(lookup.date)
        used = UsedParameter(
            parameter["name"],
            None if date is None else show(date),
            entry.get("since"),
            value,
            entry.get("reference", parameter.get("reference")),
            parameter.get("unit"),
            lookup.date.place.line,
        )
        self._parameters.setdefault((used.name, used.since, used.date), used)


def _is_masked(trace: Trace) -> bool:
    """Return whether sensitive values of the trace are masked."""
    values = (trace.inputs, *(mark.value for mark in trace.marks if mark.kind is MarkKind.VALUE))
    return trace.is_sensitive and any(SENSITIVE in repr(each) for each in values)


def _conjuncts(expression: ir.Expression) -> list[ir.Expression]:
    """Return the conditions that the checker joined by AND, in order; a single one is the expression itself."""
    if isinstance(expression, ir.Logical) and expression.kind == "and" and expression.place == expression.left.place:
        return [*_conjuncts(expression.left), expression.right]
    return [expression]
