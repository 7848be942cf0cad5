"""Batches of a compiled node: which nodes can run tables, and the messages of rows without outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from vesper.api.explain import error_info, outcome_of
from vesper.api.input_conversion import inputs_of_json
from vesper.api.json_source import TableRow
from vesper.batch.errors import BatchError
from vesper.batch.table import Declared, Form, Wanted, run_table
from vesper.compiler import Compiled
from vesper.engines.direct_engine import Batches, DirectProgram, outcome_of_raw
from vesper.engines.engine import Limits, Program
from vesper.engines.outcome import Outcome
from vesper.values.types import DECIMAL, ArrayOf, MapOf, OptionalOf, Record, SetOf, Type

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Batch:
    """A node that runs tables."""

    compiled: Compiled
    program: DirectProgram
    limits: Limits | None
    declared: Declared

    def run(
        self, table: object, wanted: Wanted, now: datetime | None, look_at: Callable[[Batches], None] | None = None
    ) -> Any:
        """Run every row, and return a table of the same kind; `look_at` as in `run_table`."""

        def run(given: object) -> Any:
            return run_table(self.program, self.declared, given, wanted, self.explain_raw, now, self.limits, look_at)

        if wanted.form == "typed":
            return run(table)
        from vesper.batch.faults import run_readable  # rows of files of texts alone

        return run_readable(table, wanted.error_column, run)

    def run_form(self, form: Form, table: pa.Table, wanted: Wanted, now: datetime | None) -> pa.Table:
        """Run every row of a table that was read from a file in this form."""
        keep = list(wanted.keep)
        if form != "json" or not keep:
            answer: pa.Table = self.run(table, replace(wanted, form=form), now)
            return answer
        from vesper.batch.files import split_lines, with_kept

        lines, kept = split_lines(table, keep)
        return with_kept(kept, self.run(lines, replace(wanted, form=form, keep=()), now))

    def explain_raw(self, raw: Any, given: Any) -> tuple[str, str, str | None, str]:
        """Return kind, code, place and message of a row without outputs, as a call reports them."""
        return self.explain_outcome(outcome_of_raw(raw), given)

    def explain_outcome(self, outcome: Outcome, given: Any) -> tuple[str, str, str | None, str]:
        """Return kind, code, place and message of an outcome without outputs.

        `given` is the row, or its JSON text.
        """
        if isinstance(given, str):
            plain = inputs_of_json(self.compiled.node.inputs, given)
            error = outcome_of(self.compiled, outcome, plain.inputs, plain).error
            assert error is not None
        else:
            inputs: Mapping[str, Any] = {} if given is None else given
            error = error_info(self.compiled, outcome, inputs, TableRow())
        return error.kind, error.code, error.where, error.message


def batch_of(compiled: Compiled, program: Program, limits: Limits | None) -> Batch:
    """Return the node as a batch. Raises `BatchError` where it cannot run tables."""
    node = compiled.node
    if not node.is_pure() or node.grants.audit != "none":
        what = "has effects" if not node.is_pure() else "is audited"
        raise BatchError(
            f"{node.node_id} {what}, and a batch performs and journals nothing: call it for each row, so that its Host "
            "does"
        )
    if not isinstance(program, DirectProgram):
        raise BatchError(
            f"batches run on the direct engine, and {node.node_id} is loaded on another one: "
            f'vesper.load("{node.node_id}", engine="interp")'
        )
    outputs = tuple(each.outside or each.name for each in node.outputs if has_decimals(each.type))
    inputs = tuple(each.outside or each.name for each in node.inputs)
    return Batch(compiled, program, limits, Declared(node.node_id, inputs, outputs))


def has_decimals(type_: Type) -> bool:
    match type_:
        case ArrayOf(inner) | SetOf(inner) | OptionalOf(inner):
            return has_decimals(inner)
        case MapOf(_, value):
            return has_decimals(value)
        case Record(fields):
            return any(has_decimals(each) for _, each in fields)
        case _:
            return type_ == DECIMAL
