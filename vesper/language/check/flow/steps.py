"""Check of a node's flow: steps in order, nested blocks, and their ends. Takes AST steps and returns IR statements.

A skipped step has the value null, so its value is optional outside. Facts about null that follow from a condition hold
in the step and, after a step that leaves the node, in everything below. A faulty statement yields None, and statements
that contain it are not reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import reduce
from itertools import zip_longest
from typing import Protocol

from vesper.language.check.expressions.checker import ExpressionChecker, place_of
from vesper.language.check.expressions.literals import Unread, read_literal
from vesper.language.check.expressions.narrowing import NOTHING, Facts, facts_when
from vesper.language.check.expressions.node_calls import strict_calls
from vesper.language.check.flow.declared_parts import declared_parts
from vesper.language.check.flow.ends import EndChecker, block_leaves, step_leaves
from vesper.language.check.flow.handlers import check_codes
from vesper.language.check.flow.observation import Observation, is_read_only
from vesper.language.check.flow.strands import StrandChecker, declared_names
from vesper.language.check.named_types import TypeResolver
from vesper.language.check.scope import Declared, Scope
from vesper.language.check.type_clauses import value_clauses
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag, Label
from vesper.language.diagnostics.source import Span
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import value_type
from vesper.language.syntax import ast, budget_ast
from vesper.language.syntax.yaml_tree import Scalar, Tree
from vesper.values.types import BOOLEAN, DECIMAL, INTEGER, NULL, STRING, Enum, OptionalOf, Record, Type, optional

MAX_ITERATIONS = 1_000_000


class EffectChecker(Protocol):
    """Checker of steps that leave the node: requests, transitions, calls of other nodes."""

    def statement(self, step: ast.Step, name: str) -> ir.Request | ir.CallNode | None: ...
    def callee_codes(self) -> dict[str, frozenset[str]]: ...
    def in_loop(self, names: Sequence[Declared]) -> AbstractContextManager[None]: ...
    def within(self, budget: Tree, name: str) -> AbstractContextManager[None]: ...
    def waits(self, node_id: str) -> bool: ...


class FlowChecker:
    """Checks the steps of one node."""

    def __init__(
        self,
        scope: Scope,
        expressions: ExpressionChecker,
        types: TypeResolver,
        effects: EffectChecker,
        bag: DiagnosticBag,
    ) -> None:
        self._scope = scope
        self._expressions = expressions
        self._types = types
        self._effects = effects
        self._bag = bag
        self._unnamed = 0
        self._skipped: dict[str, list[Declared]] = {}
        """Skippable steps by the text of their conditions. Under the same conditions these steps were executed."""
        self.ends = EndChecker(scope, expressions, bag)
        self._strands = StrandChecker(effects.waits, bag)
        self.observation: Observation | None = None
        """Reads of `contracts.observe`, which every return repeats."""
        self.reasons: list[tuple[ir.Expression, str]] = []
        """Guards with a reason code."""
        self._before: list[ir.Statement] = []
        """Statements that must precede the current one: the value of a `match`, computed once."""

    def observe(self, steps: Sequence[ast.Step], clauses: Sequence[ast.Clause]) -> list[ir.Statement]:
        """Return the reads of `contracts.observe` before the flow. Returns repeat them."""
        if not steps:
            return []
        self.observation = Observation(steps, clauses, self._scope, self._expressions, self._statement, self._bag)
        return self.observation.before_flow()

    def is_observed(self, clause: ast.Clause) -> bool:
        """Return whether a postcondition is checked before each return, because it mentions observed state."""
        return self.observation is not None and self.observation.is_about(clause)

    # -- blocks -----------------------------------------------------------------------------------

    def block(self, steps: Sequence[ast.Step]) -> ir.Block:
        """Return the statements of a block; report unreachable steps."""
        body: list[ir.Statement] = []
        for position, step in enumerate(steps):
            statement = self._step(step)
            assert statement is not None or self._bag.has_errors, "a step was dropped without a diagnostic"
            body += statement or ()
            if step_leaves(step):
                for unreachable in steps[position + 1 :]:
                    also = (Label(step.span, "the flow ends here"),)
                    self._bag.error(Code.UNREACHABLE_STEP, unreachable.span, also=also)
                break
        return tuple(body)

    @contextmanager
    def _nested_block(self, facts: Facts = NOTHING) -> Iterator[None]:
        """Open a block. Its names and facts end with it."""
        skipped = {text: list(found) for text, found in self._skipped.items()}
        with self._scope.block(), self._expressions.assuming(facts), self._assuming_clauses(()):
            yield
        self._skipped = skipped

    @contextmanager
    def _assuming_clauses(self, clauses: Iterable[ir.Expression]) -> Iterator[None]:
        """Assume clauses within a step or block. Clauses that are added inside are dropped at its end."""
        outer = self._expressions.assumptions
        self._expressions.assumptions = [*outer, *clauses]
        yield
        self._expressions.assumptions = outer

    def _block_with_value(
        self, block: ast.Block, facts: Facts, expected: Type | None
    ) -> tuple[ir.Block, ir.Expression | None]:
        with self._nested_block(facts):
            body = self.block(block.steps)
            value = None if block.value is None else self._value(block.value, expected)
        return body, value

    def _value(self, expression: ast.Expression, expected: Type | None) -> ir.Expression | None:
        if expected is not None:
            return self._expressions.check(expression, expected)
        value = self._expressions.infer(expression, None)
        if value is not None and value.type == NULL:
            self._bag.error(Code.TYPE_MISMATCH, expression.span, expected="a value", found="null")
            return None
        return value

    # -- one step ---------------------------------------------------------------------------------

    def _step(self, step: ast.Step) -> list[ir.Statement] | None:
        if isinstance(step.action, ast.Return | ast.Raise):
            return self._check_end(step)
        conditions = self._conditions(step)
        facts = self._facts(step)
        known = [each for each in conditions if each is not None]
        if isinstance(step.action, ast.Validation):
            with self._assume_conditions(step, facts):
                checks = self._validation(step.action, is_certain=not step.conditions)
            return None if len(known) < len(conditions) else self._guard(step, known, tuple(checks))
        outer, self._before = self._before, []  # steps inside this one must not take its preceding statements
        with self._assume_conditions(step, facts), self._assuming_clauses(known):
            statement = self._statement(step)
        before, self._before = self._before, outer
        if not step.conditions:
            self._expressions.add_facts(self._facts_after(step))
        type_ = None if statement is None else value_type(statement)
        is_skippable = bool(step.conditions)
        if step.name is not None:
            declared = self._scope.declare(
                "step", step.name, optional(type_) if type_ is not None and is_skippable else type_, self._bag
            )
            is_read = isinstance(statement, ir.Request) and is_read_only(statement)
            # Writes count as used. Reads and computations are warned about unless their value is used.
            declared.used = isinstance(statement, ir.Request | ir.CallNode) and not is_read
            if is_skippable:
                # A value that is optional by itself stays optional even where the step was executed.
                if not isinstance(type_, OptionalOf):
                    self._skipped.setdefault(self._conditions_text(step), []).append(declared)
                if not isinstance(statement, ir.Step):
                    declared.ir_name = f"_{step.name.text}"
        if statement is None or len(known) < len(conditions):
            return None
        after = self._declared_type_requirements(step, statement)
        if is_skippable:
            return self._skippable_statements(step, known, before, statement, after)
        return [*before, statement, *after]

    def _declared_type_requirements(self, step: ast.Step, statement: ir.Statement) -> list[ir.Statement]:
        """Return the requirements that a step's declared type puts on its value."""
        type_ = value_type(statement)
        if type_ is None:
            return []
        assert not isinstance(statement, ir.Return | ir.Raise | ir.Require)
        if isinstance(statement, ir.Step) and step.conditions:
            type_ = optional(type_)
        value = ir.Ref("step", statement.name, type_, place_of(self._bag.source, step.span))
        shown = step.name.text if step.name is not None else "value"
        clauses = [
            clause
            for text, part, name in declared_parts(step.action, value, shown)
            for clause in value_clauses(part, name, text, self._types, self._expressions)
        ]
        return [ir.Require(clause) for clause in clauses if clause is not None]

    def _assume_conditions(self, step: ast.Step, facts: Facts) -> AbstractContextManager[None]:
        """Limit facts to a step that has conditions.

        Facts of an unconditional step (a validation, a branch that leaves) hold below.
        """
        return self._expressions.assuming(facts) if step.conditions else nullcontext()

    def _skippable_statements(
        self,
        step: ast.Step,
        conditions: list[ir.Expression],
        before: list[ir.Statement],
        statement: ir.Statement,
        after: list[ir.Statement],
    ) -> list[ir.Statement]:
        condition = _conjunction(conditions)
        type_ = value_type(statement)
        if isinstance(statement, ir.Step):
            wanted = optional(statement.value.type)
            place = condition.place
            then = self._expressions.convert(statement.value, wanted)
            assert then is not None
            value = ir.If(condition, then, ir.Literal(wanted, None, place), wanted, place)
            handlers = tuple(
                ir.Handler(h.codes, h.body, None if h.value is None else self._expressions.convert(h.value, wanted))
                for h in statement.handlers
            )
            return [ir.Step(statement.name, value, statement.place, handlers), *after]
        name = (
            f"_{statement.name}" if not isinstance(statement, ir.Return | ir.Raise | ir.Require) else self._name(None)
        )
        place = place_of(self._bag.source, step.span)
        arm_value: ir.Expression | None = None
        otherwise: ir.Expression | None = None
        if type_ is not None and step.name is not None:
            assert not isinstance(statement, ir.Return | ir.Raise | ir.Require)
            ref = ir.Ref("step", statement.name, type_, place)
            arm_value = self._expressions.convert(ref, optional(type_))
            otherwise = ir.Literal(optional(type_), None, place)
        return [ir.Branch(name, (ir.Arm(condition, (*before, statement, *after), arm_value),), (), otherwise, place)]

    def _guard(self, step: ast.Step, conditions: list[ir.Expression], body: ir.Block) -> list[ir.Statement]:
        """Return statements without a value, skipped where a condition fails."""
        if not conditions:
            return list(body)
        place = place_of(self._bag.source, step.span)
        arm = ir.Arm(_conjunction(conditions), body, None)
        return [ir.Branch(self._name(None, step.operation.text), (arm,), (), None, place)]

    def _check_end(self, step: ast.Step) -> list[ir.Statement] | None:
        conditions = self._conditions(step)
        known = [each for each in conditions if each is not None]
        outer, self._before = self._before, []
        if not step.conditions:
            self._hoist_calls(_values_of(step.action))
        before, self._before = self._before, outer
        with self._expressions.assuming(self._facts(step)):
            statement = self._end(step.action)
        if len(step.conditions) == 1:
            self._expressions.add_facts(facts_when(step.conditions[0], False, self._scope))
            self._expressions.assumptions += [_negate(condition) for condition in known]
        if statement is None or len(known) < len(conditions):
            return None
        ends: list[ir.Statement] = [statement]
        if isinstance(statement, ir.Return) and self.observation is not None:
            ends = self.observation.before_return(statement)
        return self._guard(step, known, tuple(ends)) if known else [*before, *ends]

    def _end(self, action: ast.Action) -> ir.Return | ir.Raise | None:
        if isinstance(action, ast.Return):
            return self.ends.check_return(action)
        assert isinstance(action, ast.Raise)
        return self.ends.check_error(action.error)

    def _facts_after(self, step: ast.Step) -> Facts:
        """Return the facts after a conditional. A branch that leaves the node was not taken."""
        action = step.action
        if not isinstance(action, ast.Conditional) or any(handler.value is not None for handler in step.handlers):
            return NOTHING  # a handler with a value continues from any point of failure
        facts = NOTHING
        if block_leaves(action.then):
            facts |= facts_when(action.condition, False, self._scope)
        if action.otherwise is not None and block_leaves(action.otherwise):
            facts |= facts_when(action.condition, True, self._scope)
        return facts

    def _conditions(self, step: ast.Step) -> list[ir.Expression | None]:
        """Check `when` and then the guards; each assumes the ones before it."""
        found: list[ir.Expression | None] = []
        facts = NOTHING
        for condition, reason in zip_longest(step.conditions, step.reasons):
            with self._expressions.assuming(facts):
                checked = self._expressions.check(condition, BOOLEAN)
            found.append(checked)
            if checked is not None and reason is not None:
                self.reasons.append((checked, reason.text))
            facts |= facts_when(condition, True, self._scope)
        return found

    def _facts(self, step: ast.Step) -> Facts:
        """Return the facts inside a step.

        They follow from its conditions, and from earlier steps under the same conditions.
        """
        facts = NOTHING
        for condition in step.conditions:
            facts |= facts_when(condition, True, self._scope)
        if step.conditions:
            ran = self._skipped.get(self._conditions_text(step), [])
            facts |= frozenset((declared, ()) for declared in ran)
        return facts

    def _conditions_text(self, step: ast.Step) -> str:
        return " AND ".join(" ".join(self._bag.source.slice(c.span).split()) for c in step.conditions)

    def _name(self, word: ast.Word | None, operation: str = "step") -> str:
        if word is not None:
            return word.text
        self._unnamed += 1
        return f"_{operation}_{self._unnamed}"

    # -- kinds of steps ---------------------------------------------------------------------------

    def _statement(self, step: ast.Step) -> ir.Statement | None:
        name = self._name(step.name, step.operation.text)
        place = place_of(self._bag.source, step.span)
        match step.action:
            case ast.Compute() | ast.DecisionTable() as action:
                if isinstance(action, ast.Compute) and not step.conditions and not step.handlers:
                    self._hoist_calls([action.value])
                value = self._compute(step, action, self._expected(step, action))
                if value is None:
                    return None
                return ir.Step(name, value, place, self._handlers(step, value.type, ir.Step(name, value, place)))
            case ast.Conditional() as action:
                return self._attach_handlers(step, self._conditional(action, name, place, self._expected(step, action)))
            case ast.Match() as action:
                expected = self._expected(step, action)
                return self._attach_handlers(
                    step, self._match(action, name, place, expected, may_precompute=not step.handlers)
                )
            case ast.Loop() as action:
                return self._attach_handlers(step, self._loop(action, name, place))
            case ast.Parallel() as action:
                return self._attach_handlers(step, self._parallel(action, name, place))
            case budget_ast.BudgetBlock(budget=budget, block=block):
                with self._effects.within(budget, name):
                    body, inner = self._block_with_value(block, NOTHING, None)
                if block.value is not None and inner is None:
                    return None
                return self._attach_handlers(step, ir.Branch(name, (), body, inner, place))
            case _:
                return self._attach_handlers(step, self._effects.statement(step, name))

    def _hoist_calls(self, expressions: Sequence[ast.Expression]) -> None:
        """Call the nodes that every evaluation of the expressions calls, before the current statement."""
        for call in (each for expression in expressions for each in strict_calls(expression)):
            if not self._expressions.is_function_node(call.node):
                continue
            action = ast.CallNode(call.node, call.inputs)
            step = ast.Step(None, call.node, (), action, ())
            statement = self._effects.statement(step, self._name(None, call.node.text))
            self._expressions.hoisted[id(call)] = None
            if isinstance(statement, ir.CallNode):
                self._before.append(statement)
                place = place_of(self._bag.source, call.span)
                value = ir.Ref("step", statement.name, statement.result.type, place)
                self._expressions.hoisted[id(call)] = value

    def _expected(
        self, step: ast.Step, action: ast.Compute | ast.DecisionTable | ast.Conditional | ast.Match
    ) -> Type | None:
        """Return the declared type of a step, or the type of its output."""
        if isinstance(action, ast.DecisionTable):
            if action.type is not None:
                return None  # the type of its results, which the check of the table resolves
        elif action.type is not None:
            return self._types.resolve(action.type)
        output = None if step.name is None else self._scope.outputs.get(step.name.text)
        return None if output is None or step.conditions else output.type

    def _compute(
        self, step: ast.Step, action: ast.Compute | ast.DecisionTable, expected: Type | None
    ) -> ir.Expression | None:
        if isinstance(action, ast.Compute):
            return self._value(action.value, expected)
        value = self._expressions.table(action, step.name or step.operation, expected)
        if value is not None and len(action.outputs) > 1 and (step.conditions or not isinstance(value.type, Record)):
            for each in action.outputs:
                if self._types.has_constraints(each.type):
                    what = "a type with constraints in `outputs` of a table whose value is no record"
                    self._bag.error(Code.NOT_IN_THIS_VERSION, each.type.span, what=what)
        return value

    def _one_type(
        self, values: Sequence[ir.Expression | None], spans: Sequence[Span], expected: Type | None
    ) -> list[ir.Expression] | None:
        """Convert alternatives to one type; report a difference at its location."""
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        if expected is None:
            types = {value.type for value in known}
            expected = DECIMAL if types == {INTEGER, DECIMAL} else known[0].type
        fitted = [self._expressions.fit(value, expected, span) for value, span in zip(known, spans, strict=True)]
        sound = [value for value in fitted if value is not None]
        return sound if len(sound) == len(fitted) else None

    def _validation(self, validation: ast.Validation, is_certain: bool) -> list[ir.Statement]:
        found: list[ir.Statement] = []
        for requirement in validation.requirements:
            holds = self._expressions.check(requirement.clause.holds, BOOLEAN)
            if requirement.error is None:
                if holds is not None:
                    found.append(ir.Require(ir.Clause(holds, requirement.clause.text)))
            else:
                with self._expressions.assuming(facts_when(requirement.clause.holds, False, self._scope)):
                    error = self.ends.check_error(requirement.error)
                if holds is not None and error is not None:
                    place = holds.place
                    broken = _negate(holds)
                    found.append(
                        ir.Branch(self._name(None, "validation"), (ir.Arm(broken, (error,), None),), (), None, place)
                    )
            self._expressions.add_facts(facts_when(requirement.clause.holds, True, self._scope))
            if is_certain and holds is not None:
                self._expressions.assumptions.append(holds)
        return found

    def _conditional(
        self, action: ast.Conditional, name: str, place: ir.Place, expected: Type | None
    ) -> ir.Branch | None:
        condition = self._expressions.check(action.condition, BOOLEAN)
        if action.otherwise is None and isinstance(expected, OptionalOf):
            expected = expected.inner  # the missing branch yields null
        holds = facts_when(action.condition, True, self._scope)
        then, then_value = self._block_with_value(action.then, holds, expected)
        failed = facts_when(action.condition, False, self._scope)
        hint = expected or (None if then_value is None else then_value.type)
        if action.otherwise is None:
            otherwise: ir.Block = ()
            otherwise_value: ir.Expression | None = None
            if then_value is not None:
                wanted = optional(then_value.type)
                then_value = self._expressions.convert(then_value, wanted)
                otherwise_value = ir.Literal(wanted, None, place)
        else:
            with self._nested_block(failed):
                otherwise = self.block(action.otherwise.steps)
                value = action.otherwise.value
                otherwise_value = None if value is None else self._expressions.infer(value, hint)
            blocks = [(action.then, then_value), (action.otherwise, otherwise_value)]
            fitted = self._values_of(blocks, expected)
            if fitted is None:
                return None
            then_value, otherwise_value = fitted
        if condition is None:
            return None
        return ir.Branch(name, (ir.Arm(condition, then, then_value),), otherwise, otherwise_value, place)

    def _values_of(
        self, blocks: Sequence[tuple[ast.Block, ir.Expression | None]], expected: Type | None
    ) -> list[ir.Expression | None] | None:
        """Convert the values of alternatives to one type.

        Either every alternative that reaches its end has a value, or none has.
        """
        ending = [(block, value) for block, value in blocks if not block_leaves(block)]
        with_value = [(block, value) for block, value in ending if block.value is not None]
        for block, _ in blocks:
            if block.value is not None and block_leaves(block):
                problem = "no value: the block always leaves the node"
                self._bag.error(Code.WRONG_KIND, block.value.span, key="value", expected=problem, found="one")
                return None
        if not with_value:
            return [None for _ in blocks]
        for block, _ in ending:
            if block.value is None:
                also = tuple(Label(b.span, "this one has a value") for b, _ in with_value[:1])
                what = "a value, as the other block has, or a step that leaves"
                self._bag.error(Code.WRONG_KIND, block.span, also=also, key="value", expected=what, found="none")
                return None
        spans = [block.value.span for block, _ in with_value if block.value is not None]
        common = expected or self._common_type([value for _, value in with_value])
        fitted = self._one_type([value for _, value in with_value], spans, common)
        if fitted is None:
            return None
        by_block = {id(block): value for (block, _), value in zip(with_value, fitted, strict=True)}
        return [by_block.get(id(block)) for block, _ in blocks]

    def _common_type(self, values: Sequence[ir.Expression | None]) -> Type | None:
        """Return the optional type that a null among the values requires. None if the first value decides."""
        types = [value.type for value in values if value is not None]
        others = [type_ for type_ in types if type_ != NULL]
        return optional(others[0]) if others and len(others) < len(types) else None

    def _match(
        self, action: ast.Match, name: str, place: ir.Place, expected: Type | None, may_precompute: bool
    ) -> ir.Branch | None:
        on = self._expressions.infer(action.on, None)
        if on is None:
            return None
        if may_precompute and not isinstance(on, ir.Ref | ir.Local):
            once = ir.Step(f"_{name.lstrip('_')}_on", on, on.place)
            self._before.append(once)
            on = ir.Ref("step", once.name, on.type, on.place)
        if not (isinstance(on.type, Enum) or on.type in (STRING, INTEGER, BOOLEAN)):
            wanted = "an enum, string, integer or boolean"
            self._bag.error(Code.TYPE_MISMATCH, action.on.span, expected=wanted, found=on.type)
            return None
        seen: dict[object, Span] = {}
        tests: list[list[ir.Expression]] = []
        blocks: list[ast.Block] = []
        hint = expected
        bodies: list[ir.Block] = []
        values: list[ir.Expression | None] = []
        for case in action.cases:
            tests.append([test for scalar in case.literals if (test := self._test(on, scalar, seen)) is not None])
            body, value = self._match_block(case.then, hint)
            hint = hint or (None if value is None else value.type)
            bodies.append(body)
            values.append(value)
            blocks.append(case.then)
        if action.otherwise is not None:
            body, value = self._match_block(action.otherwise, hint)
            bodies.append(body)
            values.append(value)
            blocks.append(action.otherwise)
        missing = self._missing(on.type, seen)
        if action.otherwise is None and missing:
            shown = ", ".join(f"`{each}`" for each in missing[:5]) if missing != ["otherwise"] else "all other values"
            help_ = "add cases, or `otherwise`"
            self._bag.error(Code.MATCH_NOT_COMPLETE, action.on.span, missing=shown, help=help_)
            return None
        fitted = self._values_of(list(zip(blocks, values, strict=True)), expected)
        if fitted is None or any(not each for each in tests):
            return None
        arms = [
            ir.Arm(_disjunction(test), body, value) for test, body, value in zip(tests, bodies, fitted, strict=False)
        ]
        # Without `otherwise` the cases are exhaustive, so the last one needs no test.
        if action.otherwise is None:
            last = arms.pop()
            if not arms:
                wanted = "two cases at least: one that covers everything decides nothing"
                self._bag.error(Code.WRONG_KIND, action.on.span, key="cases", expected=wanted, found="one")
                return None
            return ir.Branch(name, tuple(arms), last.body, last.value, place)
        return ir.Branch(name, tuple(arms), bodies[-1], fitted[-1], place)

    def _match_block(self, block: ast.Block, hint: Type | None) -> tuple[ir.Block, ir.Expression | None]:
        with self._nested_block():
            body = self.block(block.steps)
            value = None if block.value is None else self._expressions.infer(block.value, hint)
        return body, value

    def _test(self, on: ir.Expression, scalar: Scalar, seen: dict[object, Span]) -> ir.Expression | None:
        literal = read_literal(on.type, scalar, "is", self._bag)
        if isinstance(literal, Unread):
            return None
        if literal in seen:
            also = (Label(seen[literal], "the first one"),)
            self._bag.error(Code.DUPLICATE_KEY, scalar.span, also=also, key=scalar.text)
            return None
        seen[literal] = scalar.span
        place = place_of(self._bag.source, scalar.span)
        value = ir.Literal(on.type, literal, place)
        family = "enum" if isinstance(on.type, Enum) else "text" if on.type == STRING else str(on.type)
        of = (on.type,) if isinstance(on.type, Enum) else ()
        return ir.Call(f"{family}.equal", of, (on, value), BOOLEAN, place)

    def _missing(self, type_: Type, seen: dict[object, Span]) -> list[str]:
        if isinstance(type_, Enum):
            return [member for member in type_.members if member not in seen]
        if type_ == BOOLEAN:
            return [word for word, value in (("true", True), ("false", False)) if value not in seen]
        return ["otherwise"]

    # -- loops ------------------------------------------------------------------------------------

    def _loop(self, action: ast.Loop, name: str, place: ir.Place) -> ir.Loop | None:
        over = None if action.binding is None else self._expressions.infer(action.binding.over, None)
        items = () if over is None else ir.item_types(over.type)
        binding = action.binding
        if binding is not None and over is not None and (not items or len(binding.names) > len(items)):
            expected = "an array, a set or a map" if not items else "a map, to have two names"
            self._bag.error(Code.TYPE_MISMATCH, binding.over.span, expected=expected, found=over.type)
            return None
        first = [self._first_value(each) for each in action.state]
        maximum = self._max(action.max)
        in_flight = None if action.max_in_flight is None else self._strands.in_flight(action)
        with ExitStack() as stack:
            stack.enter_context(self._nested_block())
            names = () if binding is None else binding.names
            types: tuple[Type | None, ...] = items if items else tuple(None for _ in names)
            locals_ = [
                stack.enter_context(self._scope.bind(word, type_, self._bag))
                for word, type_ in zip(names, types, strict=False)
            ]
            state = [
                stack.enter_context(self._scope.bind(each.name, None if value is None else value.type, self._bag))
                for each, value in zip(action.state, first, strict=True)
            ]
            where = None
            if binding is not None and binding.where is not None:
                where = self._expressions.check(binding.where, BOOLEAN)
                self._expressions.add_facts(facts_when(binding.where, True, self._scope))
            condition = None if action.condition is None else self._expressions.check(action.condition, BOOLEAN)
            if action.condition is not None:
                self._expressions.add_facts(facts_when(action.condition, True, self._scope))
            with self._effects.in_loop([*locals_, *state]):
                body = self.block(action.steps)
            collect = None if action.collect is None else self._value(action.collect, None)
            next_ = self._next(action, dict(zip([each.name.text for each in action.state], state, strict=True)))
            stop_when = None if action.stop_when is None else self._expressions.check(action.stop_when, BOOLEAN)
        if in_flight is not None:
            self._strands.check_rounds(action, body)
        if any(step_leaves(step) for step in action.steps):
            last = next(step for step in action.steps if step_leaves(step))
            help_ = "give it a `when`: a loop whose first iteration always leaves is no loop"
            self._bag.error(Code.UNREACHABLE_STEP, last.span, help=help_)
            return None
        if not action.state and action.collect is None:
            self._bag.error(
                Code.MISSING_KEY, _span(action), where="a loop", key="collect", help="or `state` and `next`"
            )
            return None
        wanted = [
            (action.binding, over),
            (binding.where if binding else None, where),
            (action.condition, condition),
            (action.collect, collect),
            (action.stop_when, stop_when),
        ]
        if any(source is not None and found is None for source, found in wanted) or next_ is None or maximum is None:
            return None
        values = [value for value in first if value is not None]
        if len(values) < len(first):
            return None
        return ir.Loop(
            name,
            tuple(each.number for each in locals_),
            tuple(each.name for each in locals_),
            over,
            where,
            condition,
            maximum,
            tuple(ir.LoopState(s.number, s.name, value) for s, value in zip(state, values, strict=True)),
            body,
            collect,
            next_,
            stop_when,
            place,
            in_flight=in_flight,
        )

    def _parallel(self, action: ast.Parallel, name: str, place: ir.Place) -> ir.Parallel | None:
        members = []
        for steps in action.members:
            with self._nested_block():
                members.append(self.block(steps))
        self._scope.reopen(declared_names(action))
        return ir.Parallel(name, tuple(members), place) if self._strands.check(action, members) else None

    def _first_value(self, state: ast.StateValue) -> ir.Expression | None:
        if state.name.text == "collected":
            self._bag.error(
                Code.BAD_NAME, state.name.span, name="collected", what="a state", help="choose another name"
            )
        expected = None if state.type is None else self._types.resolve(state.type)
        return self._value(state.value, expected)

    def _max(self, scalar: Scalar | None) -> int | None:
        if scalar is None:
            return MAX_ITERATIONS
        value = read_literal(INTEGER, scalar, "max", self._bag)
        if isinstance(value, Unread):
            return None
        assert isinstance(value, int)
        if not 1 <= value <= MAX_ITERATIONS:
            self._bag.error(
                Code.BAD_LITERAL, scalar.span, text=scalar.text, expected=f"a number from 1 to {MAX_ITERATIONS:,}"
            )
            return None
        return value

    def _next_value(self, expression: ast.Expression, type_: Type, state: ast.StateValue) -> ir.Expression | None:
        """Check a value of a state. A decimal for a state that starts as an integer literal is reported there."""
        value, first = self._expressions.infer(expression, type_), state.value
        if value is None:
            return None
        is_literal = isinstance(first, ast.Number) and state.type is None
        is_divided = "/" in self._bag.source.slice(expression.span)
        if type_ != INTEGER or value.type != DECIMAL or not is_literal or is_divided:
            return self._expressions.fit(value, type_, expression.span)
        assert isinstance(first, ast.Number)
        also = (Label(expression.span, "this is decimal"),)
        name = state.name.text
        help_ = f"`{name}` starts as the integer {first.text}, and `next` gives it a decimal: "
        help_ += f"write `state: {{{name}: {first.text}.00}}`"
        self._bag.error(Code.TYPE_MISMATCH, first.span, also=also, expected=value.type, found=type_, help=help_)
        return None

    def _next(self, action: ast.Loop, state: dict[str, Declared]) -> tuple[tuple[int, ir.Expression], ...] | None:
        found: dict[str, ir.Expression] = {}
        is_sound = True
        for word, expression in action.next:
            declared = state.get(word.text)
            if declared is None:
                help_ = did_you_mean(word.text, state)
                kinds = "no state of this loop"
                self._bag.error(Code.UNKNOWN_NAME, word.span, kinds=kinds, name=word.text, help=help_)
                is_sound = False
                continue
            first = next(each for each in action.state if each.name.text == word.text)
            value = None if declared.type is None else self._next_value(expression, declared.type, first)
            if value is None:
                is_sound = False
            else:
                found[word.text] = value
        for each in action.state:
            if each.name.text not in {word.text for word, _ in action.next}:
                self._bag.warning(Code.UNUSED_VALUE, each.name.span, what="the next value of", name=each.name.text)
        if not is_sound:
            return None
        return tuple((declared.number, found[name]) for name, declared in state.items() if name in found)

    # -- handlers ---------------------------------------------------------------------------------

    def _attach_handlers(self, step: ast.Step, statement: ir.Statement | None) -> ir.Statement | None:
        if statement is None:
            for handler in step.handlers:  # check the handlers of a faulty step too
                with self._nested_block():
                    self.block(handler.steps)
            return None
        if isinstance(statement, ir.Return | ir.Raise | ir.Require | ir.Step):
            return statement
        handlers = self._handlers(step, value_type(statement), statement)
        return replace(statement, handlers=handlers)

    def _handlers(self, step: ast.Step, type_: Type | None, statement: ir.Statement) -> tuple[ir.Handler, ...]:
        found: list[ir.Handler] = []
        check_codes(step.handlers, statement, self._effects.callee_codes(), self._bag)
        for handler in step.handlers:
            with self._nested_block():
                body = self.block(handler.steps)
                value = None
                if handler.value is not None:
                    if type_ is None:
                        problem = "no value: the step has none"
                        self._bag.error(Code.WRONG_KIND, handler.value.span, key="value", expected=problem, found="one")
                    else:
                        value = self._expressions.check(handler.value, type_)
            found.append(ir.Handler(tuple(word.text for word in handler.codes), body, value))
        return tuple(found)


def _values_of(action: ast.Action) -> list[ast.Expression]:
    """Return the values of a return or a raise."""
    values = (
        action.values
        if isinstance(action, ast.Return)
        else action.error.values
        if isinstance(action, ast.Raise)
        else ()
    )
    return [value for _, value in values]


def _negate(condition: ir.Expression) -> ir.Expression:
    return ir.Call("boolean.not", (), (condition,), BOOLEAN, condition.place)


def _conjunction(conditions: list[ir.Expression]) -> ir.Expression:
    return reduce(lambda left, right: ir.Logical("and", left, right, left.place), conditions)


def _disjunction(tests: list[ir.Expression]) -> ir.Expression:
    return reduce(lambda left, right: ir.Logical("or", left, right, left.place), tests)


def _span(action: ast.Loop) -> Span:
    if action.binding is not None:
        return action.binding.over.span
    assert action.condition is not None
    return action.condition.span
