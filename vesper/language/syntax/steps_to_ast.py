"""Steps of a flow, from YAML to AST. Checks structure only; `vesper.language.check` resolves names and types."""

from __future__ import annotations

import re
from dataclasses import replace

from vesper.language.diagnostics.codes import Code
from vesper.language.syntax import ast, budget_ast, shapes
from vesper.language.syntax.agents.agent_steps import AgentStepReader, split_budget_read
from vesper.language.syntax.fields import Fields, expect_mapping, expect_scalar, report_wrong_kind
from vesper.language.syntax.habits.keys import raised_help, written_key
from vesper.language.syntax.habits.lookup import help_for_missing, help_for_operation
from vesper.language.syntax.habits.steps import help_for_unnamed_kind, note_on_unnamed_field, problem_of_write
from vesper.language.syntax.supervision.message_steps import MESSAGE_STEPS
from vesper.language.syntax.table_to_ast import TableReader
from vesper.language.syntax.template import as_text
from vesper.language.syntax.transform_stages import Stages
from vesper.language.syntax.yaml_tree import UNREAD, Mapping, Scalar, Sequence, Tree

MAX_STEPS = 1_000
MAX_BLOCKS = 16
PARTS_OF_HANDLER = (*shapes.HANDLER.optional, "error_code", "message")
"""Fields below a failure code of `on_error`."""
_LEAVING = ("return", "raise")


def _with_operation(mapping: Mapping) -> Mapping:
    """Return a step with the `operation` that its keys imply. For example `rows` implies a decision table."""
    keys = {key.text: key for key, _ in mapping.entries}
    if "operation" in keys:
        return mapping
    name = next((name for name in (*shapes.SHORT, *shapes.IMPLIED) if name in keys), None)
    if name is None:
        return mapping
    key = keys[name]
    entries = mapping.entries
    if name in shapes.SHORT:
        entries = tuple(
            (replace(each, text=shapes.SHORT[name]) if each is key else each, value) for each, value in entries
        )
    operation = Scalar(shapes.IMPLIED.get(name, name), "", key.span)
    return Mapping(((replace(key, text="operation"), operation), *entries), mapping.span)


def _by_code(mapping: Mapping) -> tuple[tuple[Scalar, Tree], ...]:
    """Return the handlers by their codes. Parts of a handler without a code stand under the first of these parts."""
    parts = tuple(entry for entry in mapping.entries if entry[0].text in PARTS_OF_HANDLER)
    if not parts:
        return mapping.entries
    body: Tree = Mapping(parts, mapping.span)
    if parts[0][0].text in ("error_code", "message"):
        body = Mapping(((replace(parts[0][0], text="return_error"), body),), mapping.span)
    return (*(entry for entry in mapping.entries if entry not in parts), (parts[0][0], body))


class StepReader(AgentStepReader, TableReader):
    """Reads the steps of a flow and their blocks."""

    _steps = 0
    _blocks = 0

    def _flow(self, tree: Sequence | None) -> tuple[ast.Step, ...]:
        return tuple(step for item in (tree.items if tree else ()) for step in self._step(item))

    def _step(self, tree: Tree) -> list[ast.Step]:
        """Read one step; a compute block yields one for each of its names."""
        mapping = expect_mapping(tree, "a step", self._bag)
        if mapping is None:
            return []
        self._steps += 1
        if self._steps > MAX_STEPS:
            if self._steps == MAX_STEPS + 1:
                self._bag.error(Code.TOO_LARGE, mapping.span, limit=f"{MAX_STEPS:,}", what="steps in this node")
            return []
        mapping = _with_operation(self._with_value(self._with_parameters(mapping)))
        operation = next((value for key, value in mapping.entries if key.text == "operation"), None)
        if operation is None:
            mapping = _with_operation(self._with_known_fields(mapping))
            operation = next((value for key, value in mapping.entries if key.text == "operation"), None)
        if operation is None:
            return []
        scalar = expect_scalar(operation, "operation", self._bag)
        if scalar is None:
            return []
        if scalar.text not in shapes.STEPS:
            help_ = help_for_operation(scalar.text, shapes.STEPS)
            self._bag.error(Code.UNKNOWN_OPERATION, scalar.span, name=scalar.text, help=help_)
            return []
        word = ast.Word(scalar.text, scalar.span)
        if scalar.text == "database_query" and self._refuse_write(mapping):
            return []
        if scalar.text == "compute" and any(key.text == "compute" for key, _ in mapping.entries):
            return self._compute_block(Fields(mapping, shapes.COMPUTE_BLOCK, self._bag), word)
        entry = Fields(mapping, shapes.STEPS[scalar.text], self._bag)
        name_scalar = entry.scalar("step")
        name = None if name_scalar is None else self._name(name_scalar, "a step")
        guards, handlers = self._conditions(entry), self._handlers(entry, word)
        conditions, reasons = tuple(each for each, _ in guards), tuple(each for _, each in guards)
        if scalar.text == "ask":
            return self._ask(name, word, entry, conditions, handlers, reasons)
        action = self._action(word, entry)
        step = None if action is None else ast.Step(name, word, conditions, action, handlers, reasons)
        if step is None or scalar.text != "budget_read":
            return [] if step is None else [step]
        return split_budget_read(step)

    def _with_parameters(self, mapping: Mapping) -> Mapping:
        """Return the step with the entries of `parameters` merged into its fields."""
        found = next(((key, value) for key, value in mapping.entries if key.text == "parameters"), None)
        if found is None:
            return mapping
        inner = expect_mapping(found[1], "parameters", self._bag)
        outside = tuple(entry for entry in mapping.entries if entry is not found)
        names = {key.text for key, _ in outside}
        for key, _ in inner.entries if inner else ():
            if key.text in names:
                self._bag.error(Code.DUPLICATE_KEY, key.span, key=key.text)
        return Mapping((*outside, *(inner.entries if inner else ())), mapping.span)

    def _with_value(self, mapping: Mapping) -> Mapping:
        """Return a step with `value` for a `compute` that holds one expression, after reporting it."""
        keys = {key.text for key, _ in mapping.entries}
        if "compute" not in keys or "step" not in keys or "value" in keys:
            return mapping
        found: list[tuple[Scalar, Tree]] = []
        for key, value in mapping.entries:
            if key.text == "compute" and isinstance(value, Scalar):
                self._bag.error(Code.UNKNOWN_KEY, key.span, where="a step", key=key.text, help="write `value`")
                found.append((replace(key, text="value"), value))
            else:
                found.append((key, value))
        return Mapping(tuple(found), mapping.span)

    def _with_known_fields(self, mapping: Mapping) -> Mapping:
        """Return a step that names no kind, with its unknown fields reported and renamed to those they stand for."""
        found, is_reported = [], False
        for key, value in mapping.entries:
            note = None if key.style == UNREAD else note_on_unnamed_field(key.text, value)
            if note is not None:
                self._bag.error(Code.UNKNOWN_KEY, key.span, where="a step", key=key.text, help=note.help)
                is_reported = True
            found.append((key if note is None or note.meant is None else replace(key, text=note.meant), value))
        if not is_reported and _with_operation(mapping) is mapping:
            span = mapping.entries[0][0].span if mapping.entries else mapping.span
            help_ = help_for_unnamed_kind(tuple(key.text for key, _ in mapping.entries))
            key_ = "operation`, or a field that implies it, such as `value"
            self._bag.error(Code.MISSING_KEY, span, where="a step", key=key_, help=help_)
        return Mapping(tuple(found), mapping.span)

    def _refuse_write(self, mapping: Mapping) -> bool:
        """Report SQL of a query that writes. Its other fields are those of another operation."""
        fields = {key.text: value for key, value in mapping.entries}
        sql, bind = fields.get("query"), fields.get("bind")
        given = bind.entries if isinstance(bind, Mapping) else ()
        binds = {key.text: value.text for key, value in given if isinstance(value, Scalar)}
        problem = problem_of_write(sql.text, binds) if isinstance(sql, Scalar) else None
        if problem is None:
            return False
        assert sql is not None
        self._bag.error(Code.BAD_SQL, sql.span, problem=problem[0], help=problem[1])
        return True

    def _conditions(self, entry: Fields) -> list[tuple[ast.Expression, ast.Word | None]]:
        """Read `when`, then the guards, each with its reason."""
        found: list[tuple[ast.Expression | None, ast.Word | None]] = [(self._expression(entry.scalar("when")), None)]
        guards = entry.sequence("guards")
        found += [self._guard(item) for item in (guards.items if guards else ())]
        return [(condition, reason) for condition, reason in found if condition is not None]

    def _guard(self, tree: Tree) -> tuple[ast.Expression | None, ast.Word | None]:
        if not isinstance(tree, Mapping):
            return self._expression(expect_scalar(tree, "guards", self._bag)), None
        entry = Fields(tree, shapes.GUARD, self._bag)
        holds, reason = self._expression(entry.scalar("holds")), entry.scalar("reason")
        return holds, None if reason is None else self._name(reason, "a reason")

    def _compute_block(self, entry: Fields, operation: ast.Word) -> list[ast.Step]:
        for name in ("when", "guards", "on_error", "error_handling"):
            found = entry.get(name)
            if found is not None:
                help_ = "give the steps that need it their own `step`"
                where = "a compute block"
                self._bag.error(Code.UNKNOWN_KEY, found.span, where=where, key=name, help=help_)
        listed = self._read_each(entry.mapping("compute"), self._entry)
        return [ast.Step(name, operation, (), ast.Compute(value), ()) for name, value in listed]

    def _action(self, operation: ast.Word, entry: Fields) -> ast.Action | None:
        match operation.text:
            case "compute":
                value = self._expression_in(entry.get("value"), "value")
                return None if value is None else ast.Compute(value, self._type(entry.scalar("type")))
            case "decision_table":
                return self._decision_table(entry)
            case "validation":
                return self._validation(entry)
            case "conditional":
                return self._conditional(entry)
            case "match":
                return self._match(entry)
            case "loop":
                return self._loop(entry)
            case "parallel":
                return self._parallel(entry, operation)
            case "data_transform":
                return self._data_transform(entry)
            case "string_template":
                text = self._template(entry.scalar("template"))
                return None if text is None else ast.Compute(as_text(text))
            case "return":
                return self._return(entry, operation)
            case "raise":
                error = self._error(entry.get("error"))
                return None if error is None else ast.Raise(error)
            case "state_machine_transition":
                return self._transition(entry)
            case "call_node":
                node = entry.scalar("node")
                inputs = self._entries(entry.get("inputs"), "inputs")
                return None if node is None else ast.CallNode(ast.Word(node.text, node.span), inputs)
            case "ask_agent":
                return self._ask_agent(entry)
            case "budget":
                return self._budget(entry)
            case text if text in MESSAGE_STEPS:
                return self._agent_request(operation, entry)
            case _:
                return self._effect(operation, entry)

    # -- values -----------------------------------------------------------------------------------

    def _data_transform(self, entry: Fields) -> ast.Compute | None:
        binding = self._binding(entry.scalar("over"))
        listed = entry.sequence("stages")
        if binding is None or listed is None:
            return None
        if len(binding.names) > 1:
            span = binding.names[1].span
            self._bag.error(Code.EXPRESSION_SYNTAX, span, expected="one name for each item", found="a second one")
            return None
        stages = Stages(binding, listed.span)
        for position, item in enumerate(listed.items):
            if not self._stage(stages, item, is_last=position == len(listed.items) - 1):
                return None
        return ast.Compute(stages.result())

    def _stage(self, stages: Stages, tree: Tree, is_last: bool) -> bool:
        mapping = expect_mapping(tree, "a stage", self._bag)
        if mapping is None:
            return False
        entry = Fields(mapping, shapes.STAGE, self._bag)
        if len(mapping.entries) != 1:
            expected, found = "one stage for each entry of the list", f"{len(mapping.entries)} keys"
            self._bag.error(Code.WRONG_KIND, mapping.span, key="stages", expected=expected, found=found)
            return False
        key, value = mapping.entries[0]
        if key.text in ("reduce", "aggregate") and not is_last:
            expected = "the last stage: its value is no array"
            self._bag.error(Code.WRONG_KIND, key.span, key=key.text, expected=expected, found="one before others")
            return False
        match key.text:
            case "filter" | "distinct" | "take" | "drop" | "group_by":
                given = self._expression(entry.scalar(key.text))
                return given is not None and stages.apply_simple(key.text, given)
            case "map":
                mapped = self._expression_in(value, "map")
                return mapped is not None and stages.map(mapped)
            case "sort":
                return self._sort_stage(stages, value)
            case "join":
                return self._join_stage(stages, value)
            case "reduce":
                return self._reduce_stage(stages, value)
            case "aggregate":
                entries = self._entries(value, "aggregate")
                return bool(entries) and stages.aggregate(entries, value.span)
            case _:
                return False

    def _sort_stage(self, stages: Stages, tree: Tree) -> bool:
        if isinstance(tree, Scalar):
            by = self._expression(tree)
            return by is not None and stages.sort(by, None)
        entry = self._fields(expect_mapping(tree, "sort", self._bag), shapes.SORT_STAGE)
        if entry is None:
            return False
        by = self._expression(entry.scalar("by"))
        order = self._word(entry.scalar("order"), "order", ("ascending", "descending"))
        return by is not None and stages.sort(by, order)

    def _join_stage(self, stages: Stages, tree: Tree) -> bool:
        entry = self._fields(expect_mapping(tree, "join", self._bag), shapes.JOIN_STAGE)
        if entry is None:
            return False
        binding, condition = self._binding(entry.scalar("with")), self._expression(entry.scalar("on"))
        value = self._expression_in(entry.get("value"), "value")
        return (
            binding is not None
            and condition is not None
            and value is not None
            and stages.join(binding, condition, value)
        )

    def _reduce_stage(self, stages: Stages, tree: Tree) -> bool:
        entry = self._fields(expect_mapping(tree, "reduce", self._bag), shapes.REDUCE_STAGE)
        if entry is None:
            return False
        name = entry.scalar("state")
        initial = self._expression_in(entry.get("initial"), "initial")
        next_ = self._expression_in(entry.get("next"), "next")
        if name is None or initial is None or next_ is None:
            return False
        return stages.reduce(self._name(name, "a state"), initial, next_)

    # -- ends -------------------------------------------------------------------------------------

    def _return(self, entry: Fields, operation: ast.Word) -> ast.Action | None:
        success, error = entry.get("success"), entry.get("error")
        if (success is None) == (error is None):
            key = "success" if success is None else "error"
            problem = "`success` or `error`, not both" if success is not None else "success"
            if success is None:
                help_ = help_for_missing("a return", key)
                self._bag.error(Code.MISSING_KEY, operation.span, where="a return", key=key, help=help_)
            else:
                assert error is not None
                self._bag.error(Code.WRONG_KIND, error.span, key="return", expected=problem, found="both")
            return None
        if error is not None:
            value = self._error(error)
            return None if value is None else ast.Raise(value)
        return self._success(success, operation)

    def _success(self, tree: Tree | None, operation: ast.Word) -> ast.Return | None:
        if tree is None:
            return None
        if isinstance(tree, Scalar):
            key = written_key(self._bag.source, tree, "success")
            report_wrong_kind(tree, key, "a list of names, or a mapping of outputs to expressions", self._bag)
            return None
        return ast.Return(self._entries(tree, "success"), operation.span)

    def _error(self, tree: Tree | None) -> ast.ErrorValue | None:
        key = "error" if tree is None else written_key(self._bag.source, tree, "error")
        if isinstance(tree, Scalar) and re.match(r"\w*\(|\w+ |\w*$", tree.text) and tree.text:
            report_wrong_kind(tree, key, "a mapping", self._bag, raised_help(self._bag.source, key, tree.text))
            return None
        mapping = None if tree is None else expect_mapping(tree, key, self._bag)
        if mapping is None:
            return None
        return ast.ErrorValue(self._read_each(mapping, self._error_field), mapping.span)

    def _error_field(self, name: ast.Word, tree: Tree) -> tuple[ast.Word, ast.Expression] | None:
        value: ast.Expression | None
        if name.text == "message":
            text = self._template(expect_scalar(tree, name.text, self._bag))
            value = None if text is None else as_text(text)
        else:
            value = self._expression_in(tree, name.text)
        return None if value is None else (name, value)

    def _validation(self, entry: Fields) -> ast.Validation | None:
        listed = entry.sequence("require")
        found = [self._requirement(item) for item in (listed.items if listed else ())]
        known = tuple(each for each in found if each is not None)
        if listed is not None and not listed.items:
            self._bag.error(Code.WRONG_KIND, listed.span, key="require", expected="something to require", found="none")
        return ast.Validation(known) if known and len(known) == len(found) else None

    def _requirement(self, tree: Tree) -> ast.Requirement | None:
        if isinstance(tree, Mapping):
            entry = Fields(tree, shapes.REQUIREMENT, self._bag)
            clause, error = self._clause(entry.scalar("condition")), self._error(entry.get("error"))
            return None if clause is None or error is None else ast.Requirement(clause, error)
        clause = self._clause(expect_scalar(tree, "require", self._bag))
        return None if clause is None else ast.Requirement(clause, None)

    # -- blocks -----------------------------------------------------------------------------------

    def _block(self, tree: Tree | None, key: str) -> ast.Block | None:
        """Read an expression, a list of steps, or a mapping of both."""
        if tree is None:
            return None
        if isinstance(tree, Scalar):
            value = self._expression(expect_scalar(tree, key, self._bag))
            return None if value is None else ast.Block((), value, tree.span)
        self._blocks += 1
        try:
            if self._blocks > MAX_BLOCKS:
                self._bag.error(Code.TOO_DEEP, tree.span, limit=MAX_BLOCKS, what="blocks in one another")
                return None
            if isinstance(tree, Sequence):
                return ast.Block(self._flow(tree), None, tree.span)
            entry = Fields(tree, shapes.BLOCK, self._bag)
            return ast.Block(
                self._flow(entry.sequence("steps")), self._expression_in(entry.get("value"), "value"), tree.span
            )
        finally:
            self._blocks -= 1

    def _conditional(self, entry: Fields) -> ast.Conditional | None:
        condition = self._expression(entry.scalar("condition"))
        then, otherwise = self._block(entry.get("then"), "then"), self._block(entry.get("else"), "else")
        type_ = self._type(entry.scalar("type"))
        return None if condition is None or then is None else ast.Conditional(condition, then, otherwise, type_)

    def _match(self, entry: Fields) -> ast.Match | None:
        on = self._expression(entry.scalar("on"))
        listed = entry.sequence("cases")
        cases = [self._match_case(item) for item in (listed.items if listed else ())]
        known = tuple(case for case in cases if case is not None)
        otherwise = self._block(entry.get("otherwise"), "otherwise")
        if listed is not None and not listed.items:
            self._bag.error(Code.WRONG_KIND, listed.span, key="cases", expected="at least one case", found="none")
            return None
        type_ = self._type(entry.scalar("type"))
        return None if on is None or len(known) < len(cases) else ast.Match(on, known, otherwise, type_)

    def _match_case(self, tree: Tree) -> ast.MatchCase | None:
        entry = self._fields(expect_mapping(tree, "a case", self._bag), shapes.MATCH_CASE)
        if entry is None:
            return None
        value, then = entry.get("is"), self._block(entry.get("then"), "then")
        if value is None or then is None:
            return None
        items = value.items if isinstance(value, Sequence) else (value,)
        scalars = [expect_scalar(item, "is", self._bag) for item in items]
        return ast.MatchCase(tuple(scalar for scalar in scalars if scalar is not None), then)

    def _loop(self, entry: Fields) -> ast.Loop | None:
        binding, condition = self._binding(entry.scalar("over")), self._expression(entry.scalar("while"))
        if entry.get("over") is None and entry.get("while") is None:
            self._bag.error(Code.MISSING_KEY, entry.span, where="a loop", key="over", help="or `while`, with `max`")
            return None
        if entry.get("while") is not None and entry.get("over") is None and entry.get("max") is None:
            help_ = "give the number of iterations after which the loop must have ended"
            self._bag.error(Code.MISSING_KEY, entry.span, where="a loop with `while`", key="max", help=help_)
        steps = entry.sequence("steps")
        block = None if steps is None else self._block(steps, "steps")
        return ast.Loop(
            binding,
            condition,
            entry.scalar("max"),
            self._read_each(entry.mapping("state"), self._state_value),
            () if block is None else block.steps,
            self._expression_in(entry.get("collect"), "collect"),
            self._entries(entry.mapping("next"), "next"),
            self._expression(entry.scalar("stop_when")),
            entry.scalar("max_in_flight"),
        )

    def _parallel(self, entry: Fields, operation: ast.Word) -> ast.Parallel | None:
        for name in ("when", "guards"):
            if (found := entry.get(name)) is not None:
                help_ = "give the steps in it their own `when`"
                self._bag.error(Code.UNKNOWN_KEY, found.span, where="a parallel step", key=name, help=help_)
        listed = entry.sequence("steps")
        if listed is None:
            return None
        self._blocks += 1
        try:
            if self._blocks > MAX_BLOCKS:
                self._bag.error(Code.TOO_DEEP, listed.span, limit=MAX_BLOCKS, what="blocks in one another")
                return None
            members = [
                self._flow(item) if isinstance(item, Sequence) else tuple(self._step(item)) for item in listed.items
            ]
        finally:
            self._blocks -= 1
        return ast.Parallel(tuple(members), operation.span)

    def _budget(self, entry: Fields) -> budget_ast.BudgetBlock | None:
        block = self._block(entry.sequence("steps"), "steps")
        value = self._expression_in(entry.get("value"), "value")
        if block is None:
            return None
        return budget_ast.BudgetBlock(entry.part(shapes.BUDGET_LIMITS.optional), replace(block, value=value))

    def _state_value(self, name: ast.Word, tree: Tree) -> ast.StateValue | None:
        if isinstance(tree, Mapping):
            entry = Fields(tree, shapes.TYPED_VALUE, self._bag)
            value = self._expression_in(entry.get("value"), "value")
            type_ = self._type(entry.scalar("type"))
            return None if value is None or type_ is None else ast.StateValue(name, type_, value)
        value = self._expression_in(tree, name.text)
        return None if value is None else ast.StateValue(name, None, value)

    # -- handlers ---------------------------------------------------------------------------------

    def _handlers(self, entry: Fields, operation: ast.Word) -> tuple[ast.Handler, ...]:
        given = [(key, entry.get(key)) for key in ("on_error", "error_handling") if entry.get(key) is not None]
        if len(given) > 1:
            assert given[1][1] is not None
            help_ = "`error_handling` is another spelling of `on_error`: keep one of them"
            where = "a step with `on_error`"
            self._bag.error(Code.UNKNOWN_KEY, given[1][1].span, where=where, key=given[1][0], help=help_)
        if not given:
            return ()
        key, tree = given[0]
        assert tree is not None
        if operation.text in (*_LEAVING, "validation"):
            help_ = "compute what can fail in a step before"
            self._bag.error(Code.UNKNOWN_KEY, tree.span, where=f"a {operation.text}", key=key, help=help_)
            return ()
        mapping = expect_mapping(tree, key, self._bag)
        found = [self._handler(codes, value) for codes, value in (_by_code(mapping) if mapping else ())]
        return tuple(handler for handler in found if handler is not None)

    def _handler(self, key: Scalar, tree: Tree) -> ast.Handler | None:
        entry = self._fields(expect_mapping(tree, key.text, self._bag), shapes.HANDLER)
        if entry is None:
            return None
        operation = ast.Word("return", key.span)
        compensate, more = entry.sequence("compensate"), entry.sequence("steps")
        block = [self._block(each, "steps") for each in (compensate, more) if each is not None]
        steps = [step for each in block[: 1 if compensate is not None else 0] if each for step in each.steps]
        transition = self._fields(entry.mapping("transition"), shapes.HANDLER_TRANSITION)
        if transition is not None:
            action = self._transition(transition)
            if action is not None:
                name = transition.scalar("step")
                word = None if name is None else self._name(name, "a step")
                steps.append(ast.Step(word, ast.Word("state_machine_transition", key.span), (), action, ()))
        steps += [step for each in block[1 if compensate is not None else 0 :] if each for step in each.steps]
        ends = [name for name in ("return_error", "return", "value") if entry.get(name) is not None]
        if len(ends) > 1:
            expected, found = "one end", " and ".join(f"`{name}`" for name in ends)
            self._bag.error(Code.WRONG_KIND, key.span, key=key.text, expected=expected, found=found)
            return None
        if "return_error" in ends:
            error = self._error(entry.get("return_error"))
            if error is not None:
                steps.append(ast.Step(None, replace(operation, text="raise"), (), ast.Raise(error), ()))
        if "return" in ends:
            returned = self._success(entry.get("return"), operation)
            if returned is not None:
                steps.append(ast.Step(None, operation, (), returned, ()))
        value = self._expression_in(entry.get("value"), "value")
        return ast.Handler(self._codes(key), tuple(steps), value)

    def _codes(self, key: Scalar) -> tuple[ast.Word, ...]:
        """Split `timeout, unavailable` into words. Each has its own span if the key is plain."""
        words = []
        start = 0
        for part in key.text.split(","):
            lead = len(part) - len(part.lstrip())
            offset = key.span.start + start + lead if key.style == "" else key.span.start
            end = offset + len(part.strip()) if key.style == "" else key.span.end
            words.append(ast.Word(part.strip(), type(key.span)(offset, end)))
            start += len(part) + 1
        return tuple(words)

    def _transition(self, entry: Fields) -> ast.Transition | None:
        machine, target = entry.scalar("machine"), entry.scalar("to")
        entity = self._expression(entry.scalar("entity"))
        sources = self._names(entry.get("from"), "from")
        if machine is None or target is None or entity is None:
            return None
        return ast.Transition(self._name(machine, "a machine"), entity, sources, self._name(target, "a state"))
