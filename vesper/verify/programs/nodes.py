"""Random well-typed nodes from a seed, for the verifier.

`draw_program(seed)` returns a whole node as data; its `text()` is a `.vsp` document that the checker must accept.
Layers, from the bottom: types and literals, terms and scopes (`types`, `terms`); forms, comparisons and operations
(`forms`, `comparisons`, `binders`, `expressions`); steps of a flow (`flow`, `effects`); text (`text`); campaigns and
reduction (`campaign`, `reduce`).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from vesper.values.types import (
    BOOLEAN,
    DECIMAL,
    FLOAT,
    INTEGER,
    STRING,
    ArrayOf,
    MapOf,
    OptionalOf,
    Record,
    SetOf,
    Type,
    is_key,
    optional,
)
from vesper.verify.programs.blocks import Drawing
from vesper.verify.programs.cells import preferred_cells
from vesper.verify.programs.expressions import Expressions
from vesper.verify.programs.features import Features
from vesper.verify.programs.flow import Flow
from vesper.verify.programs.outside import OutsideSource
from vesper.verify.programs.plain_terms import NUMBERS
from vesper.verify.programs.risks import SteadyTerms, is_fallible, is_risky
from vesper.verify.programs.tables import TableDrawing
from vesper.verify.programs.terms import (
    COMPARISON,
    LOOSEST,
    NOTHING,
    Facts,
    Known,
    NotExpressible,
    Scope,
    Term,
    infix,
)
from vesper.verify.programs.text import (
    Draft,
    DrawnCompute,
    DrawnConstant,
    DrawnFlow,
    DrawnFunction,
    DrawnInput,
    DrawnNamed,
    DrawnParameter,
    DrawnRecord,
    DrawnStep,
    DrawnTable,
    Tree,
    Written,
    error_codes,
)
from vesper.verify.programs.types import SCALARS, TypeSource

_NAMES = (
    "amount", "balance", "total", "rate", "items", "lines", "prices", "flags", "note", "who", "class", "len", "decimal",
    "mark", "match", "import", "success", "d_0", "length", "at", "contains", "frozenset", "checked", "self", "type",
    "none", "sorted", "k", "v", "x", "y", "z", "text_length", "range", "raise", "result", "node", "outputs", "inputs",
    "float", "bytes", "date", "json", "timedelta", "json_cast", "time", "period",
)  # fmt: skip
_WITH_EFFECTS = ("event_handler", "http_handler", "scheduled_job")
_ALSO_MEMBERS = ("status", "kind", "open")
"""Names that are also enum members; only for types that never appear where an enum is expected."""
_FIELDS = ("a", "b", "qty", "price", "tags", "note", "kind", "of", "keys", "items", "get", "def", "self_")
_TYPE_NAMES = ("Line", "Order", "Decimal", "Any", "Record0", "TypedDict")
_NAMED_TYPES = ("Quantity", "Code")
_FUNCTIONS = ("helper", "of_each", "second_way")
_PARAMETERS = ("p", "q", "given")
_CONSTRAINTS: dict[Type, tuple[str, ...]] = {
    INTEGER: ("{min: 0}", "{min: -5}", "{max: 1000}", "{max: 9223372036854775807}", "positive", "non_negative"),
    DECIMAL: ("{min: 0}", "{min: -0.50}", "{max: 100000.00}", "positive", "non_negative"),
    FLOAT: ("{min: 0}", "{min: -1e3}", "{max: 1e308}", "positive"),
    STRING: ("{min_length: 1}", "{max_length: 40}", "{length: 2}", "non_empty", "{min_length: 0}"),
}

_ALWAYS_USED: tuple[Type, ...] = (BOOLEAN, INTEGER)
_NUMBER_SHARE = 0.7
_RECURSIVE_SHARE = 0.3
_CONCAT_SHARE = 0.5
_MAX_DEPTHS = (1, 2, 3, 7, 40)
_TRIES = 4
_PRECONDITION_TESTS = 0.25
"""Share of preconditions that inputs may break; those of programs are changed to meet them."""
_LOOP_SHARE = 0.4
_MANY_STEPS_SHARE = 0.05
_ENDING_SHARE = 0.2
"""Share of the flows that end on every way of a last conditional or match."""


def draw_program(seed: int) -> Draft:
    """Return the node of this seed, the same on every machine."""
    return _Program(seed).draft()


class _Program:
    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._random = random.Random(f"program {seed}")
        self._features = Features.draw(self._random)
        self._types = TypeSource(self._random, self._features)
        self._expressions = Expressions(self._types, preferred_cells(seed))
        weights = {type_: self._features.weight(f"type {type_}") for type_ in SCALARS}
        self._expressions.pool[:] = [type_ for type_, weight in weights.items() if weight or type_ in _ALWAYS_USED]
        self._drawing = Drawing.of(self._expressions)
        self._outside = OutsideSource(seed)
        self._scope = Scope()
        self._unused = [*_NAMES]
        self._random.shuffle(self._unused)
        # Most nodes have steps that are no expressions, and most of those may have effects.
        self._type = self._random.choice(("function", "function", *_WITH_EFFECTS))
        self._has_flow = self._type != "function" or self._random.random() < 0.75

    def draft(self) -> Draft:
        named = tuple(self._named(name) for name in _NAMED_TYPES[: self._choose_count(0, 0, 1, 2)])
        records = tuple(
            self._record(name) for name in self._random.sample(_TYPE_NAMES, self._choose_count(0, 0, 1, 1, 2, 3))
        )
        inputs = tuple(self._input(named) for _ in range(self._choose_count(0, 1, 2, 3, 3, 4, 5)))
        if self._random.random() < _NUMBER_SHARE:
            inputs = (*inputs, self._number_input())
        for _ in range(self._choose_count(0, 1, 2, 3)):
            type_ = self._new_type()
            self._expressions.new_constant(type_)
        for _ in range(self._choose_count(0, 1, 0, 1, 2)):
            self._expressions.new_parameter()
        if self._type == "event_handler":
            self._scope = self._scope.declare("input", "event_id", STRING)
            inputs = (*inputs, DrawnInput("event_id", STRING, (), None))
        outputs = self._outputs(inputs)
        functions = tuple(self._function(name) for name in _FUNCTIONS[: self._choose_count(0, 0, 1, 2, 3)])
        flow = Flow(self._drawing, outputs, self._type != "function") if self._has_flow else None
        preconditions = (
            self._clauses(self._scope, self._choose(0, 0, 0, 1, 2), _PRECONDITION_TESTS) + self._not_null_clauses()
        )
        # The checker derives facts about null from them for all later clauses.
        facts = NOTHING.union(*(clause.when_true for clause in preconditions))
        self._scope = self._scope.assuming(facts)
        calls = tuple(self._call_of(each) for each in functions if each.max_depth is not None)
        steps, returned = self._flow(outputs, flow)
        steps = (*calls, *steps)
        # A step that could not be drawn to its end may have declared errors that nothing raises.
        raised = {code for step in steps if isinstance(step, DrawnFlow) for code in error_codes(dict(step.fields))}
        postconditions = self._clauses(
            self._postcondition_scope(inputs, outputs).assuming(facts), self._choose(0, 0, 1, 2)
        )
        invariants: tuple[Term, ...] = ()
        if flow is not None:
            seen = self._invariant_scope(inputs, outputs, is_optional=bool(raised))
            invariants = self._clauses(seen.assuming(facts), self._choose(0, 0, 1))
        draft = Draft(
            node_id=f"program_{self._seed}_v1" if self._seed >= 0 else f"program_m{-self._seed}_v1",
            records=records,
            inputs=inputs,
            constants=tuple(
                DrawnConstant(name, type_, value) for name, (type_, value) in self._expressions.constants.items()
            ),
            parameters=tuple(
                DrawnParameter(name, type_, entries) for name, (type_, entries) in self._expressions.parameters.items()
            ),
            outputs=outputs,
            preconditions=preconditions,
            steps=steps,
            returned=returned,
            postconditions=postconditions,
            named=named,
            functions=functions,
            type=self._type,
            error_codes=tuple(sorted(raised)),
            invariants=invariants,
            capabilities=() if flow is None or flow.effects is None else tuple(sorted(flow.effects.capabilities)),
        )
        return self._outside.decorate(draft)

    def _choose(self, *counts: int) -> int:
        return self._random.choice(counts)

    def _choose_count(self, *counts: int) -> int:
        """Choose one of the counts, of the lower half if the program is small."""
        return self._choose(*counts[: (len(counts) + 1) // 2]) if self._features.is_small else self._choose(*counts)

    def _depth(self) -> int:
        return self._random.choice((1, 1, 2, 2, 3) if self._features.is_small else (1, 2, 2, 3, 3, 4, 5))

    def _name(self) -> str:
        return self._unused.pop()

    def _new_type(self) -> Type:
        """Draw a type and remember it for operations on any type."""
        type_ = self._types.type()
        self._add_to_pool(type_)
        return type_

    def _add_to_pool(self, type_: Type) -> None:
        if type_ not in self._expressions.pool:
            self._expressions.pool.append(type_)
        match type_:
            case ArrayOf(inner) | SetOf(inner) | OptionalOf(inner) | MapOf(_, inner):
                self._add_to_pool(inner)
            case _:
                pass

    # -- declarations -----------------------------------------------------------------------------

    def _record(self, name: str) -> DrawnRecord:
        names = self._random.sample(_FIELDS, self._choose(1, 2, 2, 3, 4))
        drawn = tuple((field, self._types.type(2)) for field in names)
        fields, outside = self._outside.record(drawn)
        record = Record(fields, name, outside)
        self._types.records.append(record)
        self._add_to_pool(record)
        scope = Scope(sees_constants=False)
        for field, type_ in fields:
            scope = scope.declare("field", field, type_)
        return DrawnRecord(name, fields, self._clauses(scope, self._choose(0, 0, 1)), outside)

    def _named(self, name: str) -> DrawnNamed:
        if self._outside.is_enum():
            enum = self._outside.enum(self._types.enum())
            if enum.outside:
                return DrawnNamed(name, enum, ())
        type_ = self._random.choice(tuple(_CONSTRAINTS))
        clause = "value != 'none'" if type_ == STRING else "value * 0 == 0"
        constraints = self._random.sample(_CONSTRAINTS[type_], self._choose(0, 1, 1, 2))
        if self._random.random() < 0.3:
            constraints.append(f'"{clause}"')
        return DrawnNamed(name, type_, tuple(constraints))

    def _by_name(self, named: DrawnNamed) -> tuple[Type, str]:
        """Draw the type of an input that refers to a named type; return it with its text."""
        choices: list[tuple[Type, str]] = [
            (named.type, named.name),
            (ArrayOf(named.type), f"array<{named.name}>"),
            (OptionalOf(named.type), f"optional<{named.name}>"),
        ]
        if is_key(named.type):
            choices += [
                (SetOf(named.type), f"set<{named.name}>"),
                (MapOf(named.type, ArrayOf(named.type)), f"map<{named.name}, array<{named.name}>>"),
            ]
        return self._random.choice(choices)

    def _function(self, name: str) -> DrawnFunction:
        """Draw a function that sees constants, its parameters and earlier functions."""
        draw = self._expressions
        scope = Scope()
        params = []
        for number, param in enumerate(_PARAMETERS[: self._choose(0, 1, 1, 2, 3)]):
            type_ = self._random.choice(draw.pool)
            params.append((param, type_))
            scope = scope.bind(param, type_, -1 - number)
        returns = self._random.choice(draw.pool)
        value = self._drawing.steady.assignable(returns, scope, self._depth())
        types = tuple(type_ for _, type_ in params)
        max_depth = None
        if self._random.random() < _RECURSIVE_SHARE:
            max_depth = self._random.choice(_MAX_DEPTHS)
            value = self._recursion(name, types, returns, scope, value)
        draw.functions.append((name, types, returns))
        return DrawnFunction(name, tuple(params), returns, value, max_depth)

    def _call_of(self, function: DrawnFunction) -> DrawnCompute:
        """Draw a step that calls a recursive function: few expressions have exactly its type."""
        types = tuple(type_ for _, type_ in function.params)
        value = self._expressions.own_call(function.name, types, function.returns, self._scope, 1)
        name = self._name()
        self._scope = self._scope.declare("step", name, function.returns)
        return DrawnCompute(((name, value),), is_block=False)

    def _recursion(self, name: str, params: tuple[Type, ...], returns: Type, scope: Scope, end: Term) -> Term:
        """Draw a value that calls its function at most once, so that a call takes no more steps than its depth."""
        draw = self._expressions
        condition = self._drawing.steady.expression(BOOLEAN, scope, 1, BOOLEAN)
        for _ in range(_TRIES):  # `end` was drawn without facts about null
            if not condition.when_true and not condition.when_false:
                break
            condition = self._drawing.steady.expression(BOOLEAN, scope, 1, BOOLEAN)
        else:
            return end
        call = draw.own_call(name, params, returns, scope, 1)
        if isinstance(returns, ArrayOf) and self._random.random() < _CONCAT_SHARE:
            call = Term(returns, ("concat(", call, ", ", self._drawing.steady.assignable(returns, scope, 1), ")"))
        return Term(returns, ("IF ", condition, " THEN ", end, " ELSE ", call), LOOSEST)

    def _input(self, named: tuple[DrawnNamed, ...]) -> DrawnInput:
        if named and self._random.random() < 0.4:
            type_, written = self._by_name(self._random.choice(named))
            self._add_to_pool(type_)
            name = self._name()
            self._scope = self._scope.declare("input", name, type_)
            # A scheduled job runs without a caller, so its inputs need defaults.
            default = self._types.draw_yaml(type_) if self._type == "scheduled_job" else None
            return DrawnInput(name, type_, (), default, written)
        type_ = self._new_type()
        known = _CONSTRAINTS.get(type_, ())
        name = self._name()
        if type_ in SCALARS and self._random.random() < 0.1:
            free = [each for each in _ALSO_MEMBERS if each not in self._scope.taken]
            name = self._random.choice(free) if free else name
        constraints = self._random.sample(known, self._choose(0, 0, 0, 1, 1, 2)) if known else []
        default = self._types.draw_yaml(type_) if self._random.random() < 0.2 else None
        if self._type == "scheduled_job" and default is None:  # it runs without a caller
            default = self._types.draw_yaml(type_)
        self._scope = self._scope.declare("input", name, type_)
        return DrawnInput(name, type_, tuple(constraints), default)

    def _number_input(self) -> DrawnInput:
        """Draw an input for plain arithmetic and tests."""
        name, type_ = self._name(), self._random.choice((INTEGER, INTEGER, DECIMAL))
        self._scope = self._scope.declare("input", name, type_)
        constraints = self._random.sample(_CONSTRAINTS[type_], self._choose(0, 0, 1))
        default = self._types.draw_yaml(type_) if self._type == "scheduled_job" else None
        return DrawnInput(name, type_, tuple(constraints), default)

    def _outputs(self, inputs: tuple[DrawnInput, ...]) -> tuple[tuple[str, Type], ...]:
        names = [self._name() for _ in range(self._choose_count(1, 1, 2, 2, 3, 4))]
        outputs = [(name, self._output_type()) for name in names]
        if inputs and self._random.random() < 0.15:  # an output may have the name of an input
            outputs.append((self._random.choice(inputs).name, self._new_type()))
        return tuple(outputs)

    def _output_type(self) -> Type:
        pick = self._random.random()
        if pick < 0.5:
            return self._random.choice((INTEGER, INTEGER, DECIMAL, DECIMAL, STRING, ArrayOf(INTEGER)))
        return self._random.choice(self._expressions.pool) if pick < 0.8 else self._new_type()

    # -- contracts --------------------------------------------------------------------------------

    def _clauses(self, scope: Scope, count: int, test_share: float = 0.03) -> tuple[Term, ...]:
        """Draw clauses, most of which hold: a broken one ends an execution."""
        found: list[Term] = []
        for _ in range(count):
            try:
                found.append(self._clause(scope, test_share))
            except NotExpressible:
                continue
        return tuple(found)

    def _clause(self, scope: Scope, test_share: float) -> Term:
        plain, steady = self._drawing.plain, self._drawing.steady
        pick = self._random.random()
        if pick < 0.35 and scope.sees_constants:
            return plain.tautology(scope)
        if pick < 0.35 + test_share and scope.sees_constants:
            return plain.test(scope)
        clause = steady.expression(BOOLEAN, scope, self._depth(), BOOLEAN)
        if pick < 0.95:
            other = steady.expression(BOOLEAN, scope, 1, BOOLEAN)
            return infix("OR", clause, infix("OR", other, Term(BOOLEAN, ("true",)), BOOLEAN), BOOLEAN)
        return clause

    def _not_null_clauses(self) -> tuple[Term, ...]:
        """Sometimes return a clause that an input is not null."""
        if not self._scope.nullable or self._random.random() > 0.3:
            return ()
        name = self._random.choice(self._scope.nullable)
        known = NOTHING if name.path is None else frozenset({name.path})
        return (Term(BOOLEAN, (name, " IS NOT NULL"), COMPARISON, when_true=known),)

    def _postcondition_scope(self, inputs: tuple[DrawnInput, ...], outputs: tuple[tuple[str, Type], ...]) -> Scope:
        """Return the scope of postconditions: an output hides an input of its name."""
        scope = Scope()
        for name, type_ in outputs:
            scope = scope.declare("output", name, type_)
        hidden = {name for name, _ in outputs}
        for each in inputs:
            if each.name in hidden:
                known = Known(f"input {each.name}", f"input.{each.name}", each.type)
                scope = replace(scope, names=(*scope.names, known))
            else:
                scope = scope.declare("input", each.name, each.type)
        return scope

    def _invariant_scope(
        self, inputs: tuple[DrawnInput, ...], outputs: tuple[tuple[str, Type], ...], is_optional: bool
    ) -> Scope:
        """Return the scope of invariants: outputs by full name, optional if the node can raise."""
        scope = Scope()
        for each in inputs:
            scope = scope.declare("input", each.name, each.type)
        found = [
            Known(f"output {name}", f"output.{name}", optional(type_) if is_optional else type_)
            for name, type_ in outputs
        ]
        return replace(scope, names=(*scope.names, *found))

    # -- flow -------------------------------------------------------------------------------------

    def _flow(
        self, outputs: tuple[tuple[str, Type], ...], flow: Flow | None
    ) -> tuple[tuple[DrawnStep, ...], tuple[tuple[str, Term | None], ...]]:
        """Draw the steps, including those named like outputs, and the returned values."""
        wanted: list[tuple[str, Type | None]] = [
            (self._name(), None) for _ in range(self._choose_count(0, 0, 1, 1, 2, 3))
        ]
        as_steps = self._random.random()
        wanted += [
            (name, type_)
            for name, type_ in outputs
            if name not in self._scope.taken and self._random.random() < as_steps * 1.5
        ]
        self._random.shuffle(wanted)
        steps: list[DrawnStep] = []
        done: set[str] = set()
        if flow is not None:
            if self._type == "http_handler":  # it declares errors
                steps.append(DrawnFlow(flow.raising(self._scope)))
            if self._random.random() < _LOOP_SHARE:
                steps += self._flow_steps(flow.loop, 1)
            steps += self._flow_steps(flow.step, self._choose_count(0, 1, 2, 2, 3))
        if not self._features.is_small and self._random.random() < _MANY_STEPS_SHARE:
            steps += self._many_steps()
        while wanted:
            size = min(len(wanted), self._choose(1, 1, 1, 2, 3))
            now, wanted = wanted[:size], wanted[size:]
            steps.append(self._value_step(now))
            done |= {name for name, type_ in now if type_ is not None}
            steps += [] if flow is None else self._flow_steps(flow.step, self._choose_count(0, 0, 1))
        if flow is not None and self._random.random() < _ENDING_SHARE:
            return (*steps, DrawnFlow(flow.ending(self._scope))), ()
        returned = tuple(
            (name, None if name in done else self._drawing.output(type_, self._scope, self._depth()))
            for name, type_ in outputs
        )
        return tuple(steps), returned

    def _many_steps(self) -> list[DrawnStep]:
        """Draw many small steps, so that many values are alive at once."""
        found: list[DrawnStep] = []
        for number in range(self._choose(30, 36, 50)):
            type_ = self._random.choice(NUMBERS)
            value = self._drawing.plain.number(type_, self._scope)
            name = f"many_{number}"
            found.append(DrawnCompute(((name, value),), is_block=False))
            self._scope = self._scope.declare("step", name, type_)
        return found

    def _value_step(self, wanted: list[tuple[str, Type | None]]) -> DrawnStep:
        """Draw a step of these names; one that can fail mostly has a handler."""
        (name, type_), *others = wanted
        if not others and self._random.random() < 0.4:
            return self._any_table(name, type_)
        before = self._scope
        source = self._drawing.steady if others else self._drawing.handled
        values = tuple((name, self._draw_computed(name, type_, source)) for name, type_ in wanted)
        (_, value), *_ = values
        is_block = bool(others) or self._random.random() < 0.3
        if others or not isinstance(value, Term) or not is_fallible(value):
            return DrawnCompute(values, is_block)
        if not is_risky(value) and self._random.random() < 0.5:
            return DrawnCompute(values, is_block)
        handled: dict[str, Tree] = {"value": self._drawing.steady.assignable(self._type_of(name), before, 1)}
        return DrawnFlow({"step": name, "operation": "compute", "value": value, "on_error": {"any": handled}})

    def _type_of(self, step: str) -> Type:
        return next(known.type for known in self._scope.names if known.key == f"step {step}")

    def _flow_steps(self, draw: Callable[[Scope], tuple[dict[str, Tree], Scope]], count: int) -> list[DrawnStep]:
        found: list[DrawnStep] = []
        for _ in range(count):
            try:
                fields, self._scope = draw(self._scope)
            except NotExpressible:
                continue
            found.append(DrawnFlow(fields))
        return found

    def _declare_step(self, name: str, type_: Type) -> None:
        self._add_to_pool(type_)
        self._scope = self._scope.declare("step", name, type_)

    def _draw_computed(self, name: str, held_to: Type | None, source: SteadyTerms) -> Written:
        """Draw the value of a step; one named like an output has the output's type."""
        type_ = held_to or self._random.choice(self._expressions.pool)
        depth, hint = self._depth(), held_to
        value: Written
        try:
            value = self._draw_structured(type_, depth, hint)
        except NotExpressible:
            if type_ in NUMBERS and self._random.random() < 0.4:
                value = self._drawing.plain.number(type_, self._scope)
            elif hint is None:
                value = source.expression(type_, self._scope, depth)
            else:
                value = source.assignable(type_, self._scope, depth)
        self._declare_step(name, type_)
        return value

    def _draw_structured(self, type_: Type, depth: int, hint: Type | None) -> Written:
        """Draw a record or an array written as YAML."""
        draw = self._expressions
        if self._random.random() < 0.5:
            raise NotExpressible
        if isinstance(type_, Record):
            return dict(draw.record_entries(type_, self._scope, depth - 1, hint))
        if isinstance(type_, ArrayOf):
            return [*draw.array_literal(type_, self._scope, depth - 1, hint).terms()]
        raise NotExpressible

    def _any_table(self, name: str, held_to: Type | None) -> DrawnStep:
        if held_to is None and self._random.random() < 0.6:
            with suppress(NotExpressible):
                drawing = TableDrawing(self._random, self._drawing.steady.expression, self._expressions.pool)
                fields, type_ = drawing.table(name, self._scope)
                self._declare_step(name, type_)
                return DrawnFlow(fields)
        return self._table(name, held_to)

    def _table(self, name: str, held_to: Type | None) -> DrawnTable:
        """Draw a decision table; a row is reached if all conditions above it failed."""
        draw, failed = self._expressions, NOTHING
        type_ = held_to or self._random.choice(draw.pool)
        rows: list[tuple[Term, Term]] = []
        if self._random.random() < 0.2:
            with suppress(NotExpressible):
                rows += [
                    (when, self._result(type_, held_to, when.when_true)) for when in draw.tests_of_one(self._scope)
                ]
        count = self._choose(0, 1, 2, 2, 3, 4) if self._features.is_small else self._choose(1, 2, 3, 5, 8, 12)
        for _ in range(count):
            inner = self._scope.assuming(failed)
            is_plain = self._random.random() < (0.4 if count < 4 else 0.8)
            when = (
                self._drawing.plain.test(inner)
                if is_plain
                else self._drawing.steady.expression(BOOLEAN, inner, 2, BOOLEAN)
            )
            rows.append((when, self._result(type_, held_to, failed | when.when_true)))
            failed |= when.when_false
        otherwise = self._result(type_, held_to, failed)
        self._declare_step(name, type_)
        return DrawnTable(name, tuple(rows), otherwise)

    def _result(self, type_: Type, held_to: Type | None, facts: Facts) -> Term:
        scope = self._scope.assuming(facts)
        if held_to is None:
            return self._drawing.steady.expression(type_, scope, 1)
        return self._drawing.steady.assignable(type_, scope, 1)
