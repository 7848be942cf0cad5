"""Translation of decision tables to expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vesper.importers.dmn.code import AND, LOOSE, NOT, Code, Let, null
from vesper.importers.dmn.operators import join_types, truth
from vesper.importers.dmn.types import BOOLEAN, NUMBER, Ty, field_names, list_of, type_error, unsupported

if TYPE_CHECKING:
    from vesper.importers.dmn.boxed import BoxedTranslator
    from vesper.importers.dmn.feel.syntax import UnaryTests
    from vesper.importers.dmn.model import BoxedTable, Literal, TableInput, TableRule
    from vesper.importers.dmn.translate import Env

MAX_CELLS = 20_000


class Table:
    """The parts of a table: names of its inputs, a condition and a result for each row."""

    def __init__(self, build: BoxedTranslator, box: BoxedTable, env: Env) -> None:
        self.build = build
        self.box = box
        if not box.outputs or len(box.rules) * (len(box.inputs) + len(box.outputs)) > MAX_CELLS:
            raise unsupported("a table without outputs, or with more than 20,000 cells")
        self.lets: list[Let] = []
        self.inputs = [self._input(column, env) for column in box.inputs]
        self.conditions = [self._condition(rule, env) for rule in box.rules]
        self.results = [self._result(rule.outputs, env) for rule in box.rules]
        self.default = self._default(env)
        self.ty, self.values = self._joined()

    def _input(self, column: TableInput, env: Env) -> Code:
        build = self.build
        code = build.boxed(column.expression, env)
        named, steps = build.bound(code, column.expression.text.strip() or "column")
        self.lets += [step for step in steps if isinstance(step, Let)]
        return named

    def _condition(self, rule: TableRule, env: Env) -> Code:
        build = self.build
        if len(rule.inputs) != len(self.inputs) or len(rule.outputs) != len(self.box.outputs):
            raise unsupported("a row with another number of cells than the table has columns")
        parts: list[Code] = []
        for value, cell in zip(self.inputs, rule.inputs, strict=True):
            tests = build.cell(cell.text, env, cell.line)
            if not tests.tests:
                continue
            found = build._placed(lambda v=value, t=tests: self._cell(v, t, env), cell.text, cell.line)
            parts.append(found)
        if not parts:
            return Code("true", BOOLEAN)
        if len(parts) == 1:
            return parts[0]
        return Code(" AND ".join(each.at(NOT) for each in parts), BOOLEAN, AND)

    def _cell(self, value: Code, tests: UnaryTests, env: Env) -> Code:
        build = self.build
        plain = Code(value.text, value.ty, value.level, is_path=value.is_path, is_literal=value.is_literal)
        parts = [truth(build, build.test(plain, each, env)) for each in tests.tests]
        found = parts[0] if len(parts) == 1 else Code(" OR ".join(each.at(AND) for each in parts), BOOLEAN, 2)
        return Code(f"NOT {found.at(NOT)}", BOOLEAN, NOT) if tests.is_negated else found

    def _result(self, cells: list[Literal], env: Env) -> Code:
        build = self.build
        found = {}
        for column, cell in zip(self.box.outputs, cells, strict=True):
            code = build.literal(cell.text, env, cell.line)
            declared = build.type_of(column.type_ref)
            if declared is not None and declared.kind != "list":
                code = build._placed(lambda c=code, d=declared: build.coerce(c, d), cell.text, cell.line)
            found[column.name or self.box.outputs[0].name or "result"] = build.close(code)
        if len(self.box.outputs) == 1:
            return next(iter(found.values()))
        return build.close(build.context_of(found))

    def _default(self, env: Env) -> Code | None:
        cells = [column.default for column in self.box.outputs]
        if any(cell is None for cell in cells):
            return None
        return self._result([cell for cell in cells if cell is not None], env)

    def _joined(self) -> tuple[Ty, list[Code]]:
        codes = [*self.results, *([] if self.default is None else [self.default])]
        ty, values = join_types(self.build, codes)
        if ty.kind == "null":
            ty = BOOLEAN.optional()
            values = [null(BOOLEAN, self.build.records) for _ in values]
        if self.default is not None:
            self.default = values.pop()
        return ty, values

    def matched(self) -> str:
        """Return the list of the results of matching rows."""
        build = self.build
        row = build.fresh("row")
        rows = [f"{{hit: {c.at(2)}, then: {self._then(v)}}}" for c, v in zip(self.conditions, self.values, strict=True)]
        return f"[{row}.then FOR {row} IN [{', '.join(rows)}] WHERE {row}.hit]"

    def _then(self, value: Code) -> str:
        if self.ty.is_nullable:
            return f"(({value.text}) AS {self.build.records.written(self.ty)})"
        return value.at(2)

    def without_match(self) -> str:
        """Return the value where no row matches."""
        return "null" if self.default is None else self.default.text


def translate_table(build: BoxedTranslator, box: BoxedTable, env: Env) -> Code:
    """Return the expression of a table by its hit policy."""
    table = Table(build, box, env)
    hit = box.hit.upper()
    if not table.values:
        found = table.default or Code("null", Ty("null", is_nullable=True))
    elif hit == "FIRST":
        found = _first(table)
    elif hit in ("UNIQUE", "ANY", "PRIORITY"):
        found = _single_result(table, hit)
    elif hit in ("COLLECT", "RULE ORDER", "OUTPUT ORDER"):
        found = _several_results(table, hit)
    else:
        raise unsupported(f"the hit policy {box.hit}")
    if found.ty.kind == "null":
        return found
    return Code(found.text, found.ty, found.level, tuple(table.lets))


def _first(table: Table) -> Code:
    text = "".join(f"IF {c.text} THEN {v.at(1)} ELSE " for c, v in zip(table.conditions, table.values, strict=True))
    ty = table.ty if table.default is not None else table.ty.optional()
    return Code(text + table.without_match(), ty, LOOSE)


def _rank_values(table: Table, values: str) -> str:
    """Return the values in the order of their priority. Of several output columns, the first decides first."""
    build = table.build
    keys = []
    for column, name in zip(table.box.outputs, field_names(table.ty).values() or [""], strict=False):
        if not column.values:
            continue
        tests = build.cell(column.values, {}, column.line)
        listed = [build.decimal(build.translate(each, {})).text for each in tests.tests]
        item = build.fresh("result")
        path = f"{item}.{name}" if name else item
        keys.append((item, f"index_of([{', '.join(listed)}], {path}) ?? {len(listed)}"))
    if not keys:
        raise unsupported("the hit policy needs the list of output values")
    for item, key in reversed(keys):
        values = f"sort_by({key} FOR {item} IN {values})"
    return values


def _single_result(table: Table, hit: str) -> Code:
    """Return the result of a policy with one result: a conflict is null, as in FEEL."""
    build = table.build
    matched = build.fresh("matched")
    ty = table.ty if table.default is not None and hit == "PRIORITY" else table.ty.optional()
    empty = table.without_match()
    values = _rank_values(table, table.matched()) if hit == "PRIORITY" else table.matched()
    if hit == "PRIORITY":
        rest = f"{matched}[0]"
    else:
        counted = f"distinct({matched})" if hit == "ANY" else matched
        rest = f"IF length({counted}) > 1 THEN null ELSE {matched}[0]"
    text = f"LET {matched} = {values} IN IF length({matched}) == 0 THEN {empty} ELSE {rest}"
    return Code(text, ty, LOOSE)


def _several_results(table: Table, hit: str) -> Code:
    build = table.build
    values = _rank_values(table, table.matched()) if hit == "OUTPUT ORDER" else table.matched()
    aggregation = table.box.aggregation.upper()
    if hit != "COLLECT" or not aggregation:
        if table.default is not None:
            matched = build.fresh("matched")
            text = f"LET {matched} = {values} IN IF length({matched}) == 0 THEN [{table.default.text}] ELSE {matched}"
            return Code(text, list_of(table.ty), LOOSE)
        return Code(values, list_of(table.ty))
    matched = build.fresh("matched")
    if aggregation == "COUNT":
        return Code(f"(length({values}) AS decimal)", NUMBER)
    if table.ty.kind != "number" or table.ty.is_nullable:
        raise type_error("an aggregation of values that are no numbers")
    word = {"SUM": "SUM", "MIN": "MIN", "MAX": "MAX"}.get(aggregation)
    if word is None:
        raise unsupported(f"the aggregation {aggregation}")
    empty = table.without_match()
    text = f"LET {matched} = {values} IN IF length({matched}) == 0 THEN {empty} ELSE {word}({matched})"
    return Code(text, NUMBER if table.default is not None else NUMBER.optional(), LOOSE)
