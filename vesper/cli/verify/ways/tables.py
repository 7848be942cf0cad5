"""`node.run_batch` on Arrow tables, and lines of JSON in a batch: rows with outputs and with errors together."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from vesper.api.batch import Batch, batch_of
from vesper.batch.errors import BatchError
from vesper.batch.table import Wanted
from vesper.cli.verify.ways.columns import ColumnMaker, fits_column, is_cell, read_cells
from vesper.cli.verify.ways.json_texts import bare_json, json_inputs
from vesper.cli.verify.ways.node_calls import LoadedNode
from vesper.engines.direct_engine import outcome_of_raw
from vesper.engines.outcome import ContractBroken, EngineFault, Failed, Outcome, Returned
from vesper.values.problem import ProblemKind
from vesper.verify.differential.ways.way import Answer, Given, Way

_KEPT = "kept_row"
_ERROR = "row_error"
_TEXT_SHARE = 0.5
_EXPLAINED_SHARE = 0.25
_LINE = "line"

Words: TypeAlias = tuple[str, str, str | None, str]
"""Kind, code, place and message of a row with an error."""


class Tables(Way):
    """`node.run_batch` on tables of one or several batches, with drawn column types."""

    name = "run_batch"

    def __init__(self, loaded: LoadedNode, pa: Any) -> None:
        self._loaded = loaded
        self._pa = pa
        self._types = {each.name: each.type for each in loaded.subject.compiled.node.inputs}

    def answers(self, given: Sequence[Given]) -> Iterator[Answer]:
        by_names: dict[tuple[str, ...], list[Given]] = {}
        for each in given:
            by_names.setdefault(tuple(sorted(each.inputs)), []).append(each)
        for names, rows in by_names.items():
            yield from self._table(names, rows)

    def _table(self, names: Sequence[str], given: Sequence[Given]) -> Iterator[Answer]:
        pa, subject = self._pa, self._loaded.subject
        chance = random.Random(f"{subject.seed} {self.name} {given[0].number}")
        maker = ColumnMaker(pa, chance)
        columns = {
            name: maker.column(self._types[name], [each.inputs[name] for each in given])
            if name in self._types
            else pa.nulls(len(given))
            for name in names
        }
        cells = {name: read_cells(pa, column) for name, column in columns.items()}
        inputs = [{name: cells[name][row] for name in names} for row in range(len(given))]
        now = self._loaded.shared_start(given)
        wanted = [subject.expect(each, row, now) for each, row in zip(given, inputs, strict=True)]
        detail = ", ".join(f"{name}: {column.type}" for name, column in columns.items())
        table = pa.table({**columns, _KEPT: pa.array(range(len(given)))})
        batch = self._batch(chance.randrange(2), is_explained=chance.random() < _EXPLAINED_SHARE)
        decimals: Literal["text"] | None = "text" if chance.random() < _TEXT_SHARE else None
        options = Wanted(chance.choice((1, 2)), [_KEPT], decimals, _ERROR)
        try:
            answer = batch.run(_in_batches(pa, table, chance), options, now)
        except BatchError as error:
            found = [_refused(outcome, str(error)) for outcome in wanted]
        else:
            found = self._rows(batch, answer, inputs, wanted)
        for each, outcome, expected in zip(given, found, wanted, strict=True):
            yield Answer(each, outcome, expected, detail)

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

    def told(self, raw: Any, given: Any) -> Words:
        return self.words(outcome_of_raw(raw), given)

    def words(self, outcome: Outcome, given: Any) -> Words:
        """Return kind, code, place and message of an outcome; `given` is a row, or its JSON text."""
        if isinstance(outcome, ContractBroken) and not self.is_explained:
            return outcome.kind, outcome.phase, None, bare_json(self.compiled.node, outcome)
        return Batch.explained(self, outcome, given)


def row_batch(batch: Batch, is_explained: bool) -> RowBatch:
    return RowBatch(batch.compiled, batch.program, batch.limits, batch.declared, is_explained)


class RowReader:
    """Compares rows of a result with outcomes."""

    def __init__(self, pa: Any, batch: RowBatch, schema: Any) -> None:
        self._pa = pa
        self._batch = batch
        outputs = batch.compiled.node.outputs
        self._columns = {each.name: (each.type, schema.field(each.name).type) for each in outputs}

    def outcome(self, row: Mapping[str, Any], wanted: Outcome, given: Any) -> Outcome:
        """Return the wanted outcome where the row has it, else what the row has."""
        error, outputs = row[_ERROR], {name: row[name] for name in self._columns}
        if error is None:
            is_wanted = isinstance(wanted, Returned) and all(
                is_cell(self._pa, *types, wanted.value[name], outputs[name]) for name, types in self._columns.items()
            )
            return wanted if is_wanted else Returned(outputs)
        if any(each is not None for each in outputs.values()):
            return EngineFault(f"the row has outputs and an error: {outputs}, {error}")
        if isinstance(wanted, Returned):
            is_misfit = error["code"] == "does_not_fit" and not all(
                fits_column(self._pa, *types, wanted.value[name]) for name, types in self._columns.items()
            )
            return wanted if is_misfit else EngineFault(f"the row ends with {error}")
        words = self._batch.words(wanted, given)
        is_same = tuple(error[name] for name in ("kind", "code", "where", "message")) == words
        return wanted if is_same else EngineFault(f"the row ends with {error}, and a call with {words}")


def _in_batches(pa: Any, table: Any, chance: random.Random) -> Any:
    """Return the table as one batch or as slices, whose arrays begin at an offset."""
    if chance.random() < _TEXT_SHARE:
        return table
    (batch,) = table.combine_chunks().to_batches(max_chunksize=len(table))
    cut = chance.randrange(len(table) + 1)
    return pa.Table.from_batches([batch.slice(0, cut), batch.slice(cut)], table.schema)


def _refused(wanted: Outcome, message: str) -> Outcome:
    """Return the wanted outcome of a row whose table was refused: a column is missing, or no input has it."""
    kinds = {ProblemKind.MISSING, ProblemKind.UNKNOWN}
    if isinstance(wanted, Failed) and any(each.kind in kinds for each in wanted.problems):
        return wanted
    return EngineFault(f"the table is refused: {message}")
