"""`node.run_batch` on Arrow tables, and lines of JSON in a batch: rows with outputs and with errors together."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from vesper.api.batch import Batch, batch_of
from vesper.batch.errors import BatchError
from vesper.batch.table import Wanted
from vesper.cli.verify.ways.columns import ColumnMaker, fits_column, is_cell, read_cells
from vesper.cli.verify.ways.json_texts import bare_json, json_inputs
from vesper.cli.verify.ways.node_calls import LoadedNode
from vesper.engines.direct_engine import outcome_of_raw
from vesper.engines.outcome import ContractBroken, EngineFault, Failed, Outcome, Returned
from vesper.language.ir.nodes import record_of
from vesper.values.generated.errors import ErrorCode
from vesper.values.inputs import Absence, accept_inputs
from vesper.values.model import Value, plain
from vesper.values.outside_names import spelled_record, to_inside, to_outside
from vesper.values.problem import ProblemKind
from vesper.values.types import Outside, Type
from vesper.verify.differential.ways.way import Answer, Given, Way

_SHARE = 8
_KEPT = "kept_row"
_ERROR = "row_error"
_TEXT_SHARE = 0.5
_EXPLAINED_SHARE = 0.05
_LINE = "line"

Words: TypeAlias = tuple[str, str, str | None, str]
"""Kind, code, place and message of a row with an error."""


class Tables(Way):
    """`node.run_batch` on tables of one or several batches, with drawn column types."""

    name = "run_batch"
    share = _SHARE

    def __init__(self, loaded: LoadedNode, pa: Any) -> None:
        self._loaded = loaded
        self._pa = pa
        self._whole = record_of(loaded.subject.compiled.node.inputs)
        self._columns = spelled_record(self._whole, columns=True)

    def answers(self, given: Sequence[Given]) -> Iterator[Answer]:
        by_names: dict[tuple[str, ...], list[Given]] = {}
        for each in given:
            by_names.setdefault(tuple(sorted(each.inputs)), []).append(each)
        for rows in by_names.values():
            cells = [to_outside(self._whole, dict(each.inputs), columns=True) for each in rows]
            yield from self._table(sorted(cells[0]), rows, cells)

    def _table(
        self, names: Sequence[str], given: Sequence[Given], drawn: Sequence[Mapping[str, object]]
    ) -> Iterator[Answer]:
        pa, subject = self._pa, self._loaded.subject
        chance = random.Random(f"{subject.seed} {self.name} {given[0].number}")
        maker = ColumnMaker(pa, chance)
        types = dict(self._columns.fields)
        columns = {
            name: maker.column(types[name], [each[name] for each in drawn]) if name in types else pa.nulls(len(given))
            for name in names
        }
        cells = {name: read_cells(pa, column) for name, column in columns.items()}
        inputs = [{name: cells[name][row] for name in names} for row in range(len(given))]
        now = self._loaded.shared_start(given)
        wanted = [self._expect(each, row, now) for each, row in zip(given, inputs, strict=True)]
        detail = ", ".join(f"{name}: {column.type}" for name, column in columns.items())
        table = pa.table({**columns, _KEPT: pa.array(range(len(given)))})
        batch = self._batch(chance.randrange(2), is_explained=chance.random() < _EXPLAINED_SHARE)
        decimals: Literal["text"] | None = "text" if chance.random() < _TEXT_SHARE else None
        options = Wanted(chance.choice((1, 2)), [_KEPT], decimals, _ERROR)
        try:
            answer = batch.run(_in_batches(pa, table, chance), options, now)
        except BatchError as error:
            found = [_refused_outcome(outcome, str(error)) for outcome in wanted]
        else:
            found = self._rows(batch, answer, inputs, wanted)
        for each, outcome, expected in zip(given, found, wanted, strict=True):
            yield Answer(each, outcome, expected, detail)

    def _expect(self, given: Given, row: Mapping[str, object], now: datetime | None) -> Outcome:
        """Run the reference on a row. With outside names, which no engine takes as objects, the row is read here."""
        subject = self._loaded.subject
        if self._columns is self._whole:
            return subject.expect(given, dict(row), now)
        defaults = {name: default for name, _, default in subject.compiled.node.declared_inputs}
        outside = self._whole.outside or Outside()
        flagged = {flag: name for name, flag in outside.flags}
        declared = [
            (
                column,
                type_,
                Absence(outside.name_of(flagged[name])) if name in flagged else _default(of, defaults[name]),
            )
            for (column, type_), (name, of) in zip(self._columns.fields, self._whole.fields, strict=True)
        ]
        values, problems = accept_inputs(declared, row)
        if problems:
            return Failed(ErrorCode.BAD_INPUT, None, tuple(problems))
        read = {name: plain(value) for name, value in values.items()}
        return subject.expect(given, to_inside(self._whole, read, columns=True), now)

    def _batch(self, number: int, is_explained: bool) -> RowBatch:
        subject = self._loaded.subject
        return row_batch(batch_of(subject.compiled, subject.program(number), None), is_explained)

    def _rows(
        self, batch: RowBatch, answer: Any, inputs: Sequence[Mapping[str, object]], wanted: Sequence[Outcome]
    ) -> list[Outcome]:
        rows = answer.to_pylist()
        kept = [each.get(_KEPT) for each in rows]
        if kept != list(range(len(wanted))):
            return [EngineFault(f"the kept column has {kept}")] * len(wanted)
        reader = RowReader(self._pa, batch, answer.schema)
        return [reader.outcome(*each) for each in zip(rows, wanted, inputs, strict=True)]


class JsonLines(Way):
    """Lines of JSON in a batch, as `vesper run --batch` reads them."""

    name = "json_lines"
    share = _SHARE

    def __init__(self, loaded: LoadedNode, pa: Any) -> None:
        self._loaded = loaded
        self._pa = pa

    def answers(self, given: Sequence[Given]) -> Iterator[Answer]:
        pa, subject = self._pa, self._loaded.subject
        now = self._loaded.shared_start(given)
        lines = [json_inputs(subject, each, now) for each in given]
        is_explained = random.Random(f"{subject.seed} {self.name} {given[0].number}").random() < _EXPLAINED_SHARE
        batch = row_batch(batch_of(subject.compiled, subject.program(given[0].number), None), is_explained)
        table = pa.table({_LINE: pa.array([each.text for each in lines], pa.string())})
        answer = batch.run(table, Wanted(threads=1, decimals="text", error_column=_ERROR, form="json"), now)
        reader = RowReader(pa, batch, answer.schema)
        for each, line, row in zip(given, lines, answer.to_pylist(), strict=True):
            yield Answer(each, reader.outcome(row, line.wanted, line.text), line.wanted)


@dataclass(frozen=True, slots=True)
class RowBatch(Batch):
    """A batch that explains broken clauses only sometimes, because their texts take long."""

    is_explained: bool = True

    def explain_raw(self, raw: Any, given: Any) -> Words:
        return self.describe_outcome(outcome_of_raw(raw), given)

    def describe_outcome(self, outcome: Outcome, given: Any) -> Words:
        """Return kind, code, place and message of an outcome; `given` is a row, or its JSON text."""
        if isinstance(outcome, ContractBroken) and not self.is_explained:
            return outcome.kind, outcome.phase, None, bare_json(self.compiled.node, outcome)
        return Batch.explain_outcome(self, outcome, given)


def row_batch(batch: Batch, is_explained: bool) -> RowBatch:
    return RowBatch(batch.compiled, batch.program, batch.limits, batch.declared, is_explained)


class RowReader:
    """A comparison of the rows of a result with outcomes."""

    def __init__(self, pa: Any, batch: RowBatch, schema: Any) -> None:
        self._pa = pa
        self._batch = batch
        self._whole = record_of(batch.compiled.node.outputs)
        columns = spelled_record(self._whole, columns=True)
        self._columns = {name: (type_, schema.field(name).type) for name, type_ in columns.fields}

    def outcome(self, row: Mapping[str, Any], wanted: Outcome, given: Any) -> Outcome:
        """Return the wanted outcome if the row agrees with it, otherwise the row's outputs or an engine fault."""
        error, outputs = row[_ERROR], {name: row[name] for name in self._columns}
        returned = to_outside(self._whole, wanted.value, columns=True) if isinstance(wanted, Returned) else {}
        if error is None:
            is_wanted = isinstance(wanted, Returned) and all(
                is_cell(self._pa, *types, returned[name], outputs[name]) for name, types in self._columns.items()
            )
            return wanted if is_wanted else Returned(outputs)
        if any(each is not None for each in outputs.values()):
            return EngineFault(f"the row has outputs and an error: {outputs}, {error}")
        if isinstance(wanted, Returned):
            is_misfit = error["code"] == "does_not_fit" and not all(
                fits_column(self._pa, *types, returned[name]) for name, types in self._columns.items()
            )
            return wanted if is_misfit else EngineFault(f"the row ends with {error}")
        words = self._batch.describe_outcome(wanted, given)
        is_same = tuple(error[name] for name in ("kind", "code", "where", "message")) == words
        return wanted if is_same else EngineFault(f"the row ends with {error}, and a call with {words}")


def _default(type_: Type, default: Value | Absence) -> Value:
    return None if default is None or isinstance(default, Absence) else to_outside(type_, default, columns=True)


def _in_batches(pa: Any, table: Any, chance: random.Random) -> Any:
    """Return the table as one batch or as slices, whose arrays begin at an offset."""
    if chance.random() < _TEXT_SHARE:
        return table
    (batch,) = table.combine_chunks().to_batches(max_chunksize=len(table))
    cut = chance.randrange(len(table) + 1)
    return pa.Table.from_batches([batch.slice(0, cut), batch.slice(cut)], table.schema)


def _refused_outcome(wanted: Outcome, message: str) -> Outcome:
    """Return the outcome of a row whose table was refused.

    The wanted outcome, if it refuses a missing or unknown field; otherwise an engine fault.
    """
    kinds = {ProblemKind.MISSING, ProblemKind.UNKNOWN}
    if isinstance(wanted, Failed) and any(each.kind in kinds for each in wanted.problems):
        return wanted
    return EngineFault(f"the table is refused: {message}")
