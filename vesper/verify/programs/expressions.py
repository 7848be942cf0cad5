"""Random well-typed expressions: `expression(type, scope, depth, hint)` draws any form of a type.

Operations and their types come from `IMPLEMENTED`, so new ones are drawn without a change here. Where the checker reads
a part with an expected type, the part is drawn with the same hint; see `vesper.language.check.expressions.checker`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import TypeAlias

from vesper.language.check.expressions.literal_arguments import CHECKED, EVALUATED
from vesper.values.operation import OpSpec
from vesper.values.types import (
    BOOLEAN,
    DATE,
    DECIMAL,
    FLOAT,
    INTEGER,
    JSON,
    STRING,
    ArrayOf,
    Enum,
    MapOf,
    OptionalOf,
    Parameter,
    Primitive,
    Record,
    SetOf,
    Type,
    declared_type,
    fits_bound,
    match_declared,
    substitute,
    without_null,
)
from vesper.verify.inputs.formats import draw_format
from vesper.verify.programs.arguments import LARGEST, draw_argument
from vesper.verify.programs.binders import BinderForms
from vesper.verify.programs.cells import CAST, OperandCell, is_in_optional, is_infix, usable_operations
from vesper.verify.programs.comparisons import ComparedPair, is_compared
from vesper.verify.programs.patterns import draw_pattern
from vesper.verify.programs.terms import (
    COMPARISON,
    LEVELS,
    LOOSEST,
    NOTHING,
    TIGHTEST,
    Known,
    NotExpressible,
    Scope,
    Term,
    hint_from,
    infix,
    parenthesise,
    prefix,
)
from vesper.verify.programs.types import SCALARS, TypeSource, is_quotable, quoted

Producer: TypeAlias = tuple[float, Callable[[], Term]]
_OFTEN, _SELDOM = 3.0, 0.3
"""Weights. Operations that select a part mostly fail, so they are rare enough for programs to end."""
_AGGREGATES = ("sum", "count", "min", "max", "avg")
"""With a FOR these are separate forms, drawn in `forms`."""
_BUDGETS = (25, 50, 80, 120, 200)
"""Maximum terms of a node before expressions become leaves; far below the document limits."""
_PREFERRED_SHARE, _REPEATED_SHARE = 0.8, 0.3
"""Shares of the positions that have a preferred operation: until each was drawn, and later."""
_NESTED_SHARE = 0.5
_LARGEST_WEIGHT = 0.6
_UNCHECKED_SHARE = 0.1
_LIMIT_SHARE = 0.5
_SAME_SHARE = 0.05
_COMPARED = ("==", "!=", "<", "<=", ">", ">=")


@cache
def _operations_returning(scalar: Primitive | None) -> tuple[tuple[OpSpec, Type], ...]:
    """Return the operations that may return this type, with their declared types.

    Without a type, those that return a composite type.
    """
    found = ((spec, declared_type(spec.returns)) for spec in usable_operations())
    return tuple((spec, returns) for spec, returns in found if not isinstance(returns, Primitive) or returns is scalar)


def _parameters(spec: OpSpec, bindings: dict[str, Type]) -> list[Type]:
    """Return the parameter types of the chosen operation."""
    return [substitute(declared_type(text), bindings) for _, text in spec.params]


_DAYS = ("01-01", "02-28", "07-01", "12-31")


class Expressions(BinderForms):
    def __init__(self, types: TypeSource, cells: Sequence[OperandCell] = ()) -> None:
        """Create a source of expressions that prefers some operations and operand types."""
        self.types = types
        types.wanted = [each for cell in cells for each in cell.operands() if has_names(each)]
        self._cells = [*cells]
        self.undrawn = len(self._cells)
        """Number of preferred operations that no position has; negative once some are repeated."""
        self._nesting = 0
        """Number of expressions being drawn around this one; zero at a position of the node."""
        self.random = types.random
        self.features = types.features
        self.pool: list[Type] = [*SCALARS]
        """Types that occur in the node, used for operations on any type."""
        self._fitting: dict[tuple[str, bool, int], list[Type]] = {}
        self.constants: dict[str, tuple[Type, str]] = {}
        """Name, type and YAML text; one is added if a value cannot be written in another way."""
        self.functions: list[tuple[str, tuple[Type, ...], Type]] = []
        """Functions of the node declared so far: name, parameters, result."""
        self.parameters: dict[str, tuple[Type | str, tuple[tuple[str, str], ...]]] = {}
        """Parameters of the node: name, type or kind of scale, and the values by date."""
        self.compared_pairs: list[ComparedPair] = []
        self.budget = self.random.choice(_BUDGETS)
        self.bound = 0

    def save(self) -> Callable[[], None]:
        """Return a function that restores the present budget, constants and preferred operations."""
        budget, constants, cells, undrawn = self.budget, dict(self.constants), [*self._cells], self.undrawn

        def restore() -> None:
            self.budget, self.constants, self._cells, self.undrawn = budget, constants, cells, undrawn

        return restore

    # -- selection ------------------------------------------------------------------------------------

    def assignable(self, type_: Type, scope: Scope, depth: int) -> Term:
        """Draw an expression assignable to this type, directly or by implicit conversion."""
        if isinstance(type_, OptionalOf):
            if self.random.random() < 0.2:
                return Term(type_, ("null",))
            if self.random.random() < 0.6:
                return self.expression(type_.inner, scope, depth, type_)
        elif type_ == DECIMAL and self.random.random() < 0.15:
            try:
                return self.expression(INTEGER, scope, depth, DECIMAL)
            except NotExpressible:
                pass
        return self.expression(type_, scope, depth, type_)

    def expression(self, type_: Type, scope: Scope, depth: int, hint: Type | None = None) -> Term:
        """Draw an expression of exactly this type, at a place that expects `hint`."""
        self.budget -= 1
        hint = None if hint is None else without_null(hint)
        if self.budget < 0:
            depth = 0
        self._nesting += 1
        try:
            return self._draw_nested(type_, scope, depth, hint)
        finally:
            self._nesting -= 1

    def _draw_nested(self, type_: Type, scope: Scope, depth: int, hint: Type | None) -> Term:
        if self._is_preferred_here(type_, depth):
            with suppress(NotExpressible):
                return self._draw_preferred(type_, scope, max(depth - 1, 0), hint)
        producers = [*self._leaves(type_, scope, hint)]
        if depth > 0:
            producers += self._operations(type_, scope, depth - 1)
            producers += self.forms(type_, scope, depth - 1, hint)
            producers += self.binder_forms(type_, scope, depth - 1, hint)
            producers += self._own_calls(type_, scope, depth - 1)
            producers += self.graded(type_, scope, depth - 1, hint)
            producers += self.comparisons(scope) if type_ == BOOLEAN else ()
            producers += self._largest_values(scope, hint) if type_ == INTEGER else ()
        while producers:
            (chosen,) = self.random.choices(range(len(producers)), [weight for weight, _ in producers])
            try:
                return producers.pop(chosen)[1]()
            except NotExpressible:
                continue
        return self._draw_constant(type_, scope)

    def _is_preferred_here(self, type_: Type, depth: int) -> bool:
        """Return whether the next preferred operation is drawn here; inside others, only one of this type."""
        if self._nesting == 1 and self._cells:
            share = _PREFERRED_SHARE if self.undrawn > 0 else _REPEATED_SHARE if depth > 0 else 0.0
            return self.random.random() < share
        if depth == 0 or self.undrawn <= 0 or self.random.random() >= _NESTED_SHARE:
            return False
        fitting = (number for number, cell in enumerate(self._cells[: self.undrawn]) if cell.returns() == type_)
        found = next(fitting, None)
        if found is not None:
            self._cells.insert(0, self._cells.pop(found))
        return found is not None

    def _draw_preferred(self, type_: Type, scope: Scope, depth: int, hint: Type | None) -> Term:
        """Draw the next preferred operation, or a condition on its result if that has another type."""
        cell = self._cells.pop(0)
        self._cells.append(cell)
        self.undrawn -= 1
        returned = cell.returns()
        term = self._by_cell(cell, returned, scope, min(depth, self.random.choice((0, 0, 1))))
        if returned == type_:
            return term
        if isinstance(returned, ArrayOf) and (not has_names(returned) or self.random.random() < 0.2):
            term, returned = Term(INTEGER, ("length(", term, ")")), INTEGER
        if returned != BOOLEAN:
            other = self.expression(returned, scope, 0, hint_from(returned))
            order = _COMPARED if is_compared(returned) else _COMPARED[:2]
            term = infix(self.random.choice(order), term, other, BOOLEAN)
        return term if type_ == BOOLEAN else self.choice(term, type_, scope, depth, hint)

    def _by_cell(self, cell: OperandCell, type_: Type, scope: Scope, depth: int) -> Term:
        spec, bindings = cell.spec, dict(cell.bindings)
        if not all(has_names(each) for each in cell.operands()):
            depth = max(depth, 1)  # an anonymous record is only the result of another operation
        if spec.name == CAST:
            return self.cast(type_, scope, depth)
        is_operator = is_infix(spec.operator)
        if is_operator and (spec.function is None or self.random.random() < 0.5):
            return self._by_operator(spec, bindings, type_, scope, depth)
        return self._by_function(spec, bindings, type_, scope, depth)

    def _leaves(self, type_: Type, scope: Scope, hint: Type | None) -> Iterator[Producer]:
        if _is_scalar(type_):
            yield 2.0, partial(self.literal, type_, hint, scope)
        named = [each for each in scope.paths if each.type == type_ and not _reads_as_member(each, hint)]
        if named:
            yield 4.0, lambda: self._respell(self.random.choice(named))
        constants = self._constants_of(type_, scope)
        if constants:
            yield 1.0, lambda: self.random.choice(constants)

    def _constants_of(self, type_: Type, scope: Scope) -> list[Term]:
        """Return constants and their fields; clauses of record types cannot use them."""
        if not scope.sees_constants:
            return []
        known = (Known(f"constant {name}", name, constant) for name, (constant, _) in self.constants.items())
        return [path for each in known for path in scope.paths_from(each) if path.type == type_]

    def _respell(self, path: Term) -> Term:
        """Return a path unchanged, or spelled with `input.` or `output.`."""
        assert path.path is not None
        kind = path.path[0].partition(" ")[0]
        text = str(path)
        if kind in ("input", "output") and not text.startswith(f"{kind}.") and self.random.random() < 0.15:
            return Term(path.type, (f"{kind}.{text}",), path=path.path)
        return path

    def _draw_constant(self, type_: Type, scope: Scope) -> Term:
        """Add a constant of this type and return it."""
        if not scope.sees_constants:
            raise NotExpressible
        same = self._constants_of(type_, scope)
        if same:
            return self.random.choice(same)
        if not has_names(type_):
            raise NotExpressible  # `entries` returns it, but it cannot be declared
        name = self.new_constant(type_)
        return Term(type_, (name,), path=(f"constant {name}", ()))

    def new_constant(self, type_: Type) -> str:
        name = f"k{len(self.constants)}"
        self.constants[name] = (type_, self.types.draw_yaml(type_))
        return name

    def any_type(self) -> Type:
        return self.random.choice(self.pool)

    # -- operations -------------------------------------------------------------------------------

    def _operations(self, type_: Type, scope: Scope, depth: int) -> Iterator[Producer]:
        """Yield every operation that returns this type, with a total weight of a few forms."""
        found: list[tuple[OpSpec, dict[str, Type]]] = []
        for spec, returns in _operations_returning(type_ if isinstance(type_, Primitive) else None):
            bindings: dict[str, Type] = {}
            if match_declared(returns, type_, bindings) and self._fill(spec, bindings):
                found.append((spec, bindings))
        for spec, bindings in found:
            share = _SELDOM if isinstance(declared_type(spec.returns), Parameter) else _OFTEN
            if spec.operator is not None and is_infix(spec.operator):
                yield 2 * share / len(found), partial(self._by_operator, spec, bindings, type_, scope, depth)
            if spec.function is not None:
                yield share / len(found), partial(self._by_function, spec, bindings, type_, scope, depth)

    def _largest_values(self, scope: Scope, hint: Type | None) -> Iterator[Producer]:
        """Yield a value of the largest size, made for few inputs only because it takes long."""
        names = [each for each in scope.paths if each.type == INTEGER]
        if names and scope.loops == 0 and self._nesting == 1:
            yield _LARGEST_WEIGHT, lambda: self._draw_largest(self.random.choice(names), scope, hint)

    def _draw_largest(self, name: Term, scope: Scope, hint: Type | None) -> Term:
        call, counts = self.random.choice(LARGEST)
        condition = infix("==", name, self.literal(INTEGER, None, scope), BOOLEAN)
        then = Term(INTEGER, (call.format(self.random.choice(counts)),))
        otherwise = self.expression(INTEGER, scope, 0, INTEGER if hint is None else hint)
        return Term(INTEGER, ("IF ", condition, " THEN ", then, " ELSE ", otherwise), LOOSEST)

    def _own_calls(self, type_: Type, scope: Scope, depth: int) -> Iterator[Producer]:
        """Yield calls of the node's own functions; arguments are read for their parameters."""
        for name, params, returns in self.functions:
            if returns == type_:
                yield 2.0, partial(self.own_call, name, params, type_, scope, depth)
        for name, (of, _) in self.parameters.items() if scope.sees_constants else ():
            if of == type_:
                yield 6.0, partial(self._at_date, name, type_, scope, depth)
            elif isinstance(of, str) and type_ == DECIMAL:
                yield 6.0, partial(self._on_scale, name, of, scope, depth)

    def _at_date(self, name: str, type_: Type, scope: Scope, depth: int) -> Term:
        """Draw the value of a parameter at a date."""
        day = self.expression(DATE, scope, depth, DATE)
        # A suffix after the date would belong to the date.
        return Term(type_, (f"{name} AT ", *parenthesise(day, TIGHTEST)), TIGHTEST - 1)

    def _on_scale(self, name: str, kind: str, scope: Scope, depth: int) -> Term:
        amount = self.assignable(DECIMAL, scope, depth)
        return Term(DECIMAL, (f"{kind}(", amount, ", ", self._at_date(name, DECIMAL, scope, depth), ")"))

    def new_parameter(self) -> None:
        """Add a parameter, mostly with a value at every date."""
        years = sorted(self.random.sample(range(1900, 2100), self.random.choice((0, 0, 1, 2, 4))))
        first = "0001-01-01" if self.random.random() < 0.8 else "1850-02-28"
        dates = [first, *(f"{year}-{self.random.choice(_DAYS)}" for year in years)]
        kind = self.random.choice(("marginal", "single_amount"))
        type_: Type | str = kind if self.random.random() < 0.3 else self.random.choice([DECIMAL, *SCALARS])
        if type_ == JSON:
            type_ = DECIMAL  # the text of a json depends on what is around it
        entries = tuple((each, self._value_from(type_, each != first)) for each in dates)
        self.parameters[f"p{len(self.parameters)}"] = (type_, entries)

    def _value_from(self, type_: Type | str, may_end: bool) -> str:
        """Draw a value as YAML; sometimes null, which ends the one before."""
        if may_end and self.random.random() < 0.15:
            return "null"
        if not isinstance(type_, str):
            return self.types.draw_yaml(type_)
        word = "rate" if type_ == "marginal" else "amount"
        starts = sorted(self.random.sample(range(-20, 200), self.random.choice((1, 2, 3))))
        brackets = [f"{{from: {start}, {word}: {self.random.randint(-30, 99) / 100}}}" for start in starts]
        return f"[{', '.join(brackets)}]"

    def own_call(self, name: str, params: tuple[Type, ...], type_: Type, scope: Scope, depth: int) -> Term:
        parts: list[str | Term] = [f"{name}("]
        for number, param in enumerate(params):
            parts += [", " if number else "", self.assignable(param, scope, depth)]
        return Term(type_, (*parts, ")"))

    def _fill(self, spec: OpSpec, bindings: dict[str, Type]) -> bool:
        """Choose the type parameters that the result leaves open; return false if none fits."""
        for name, bound in spec.type_params:
            if name not in bindings:
                assignable = self._pool_types(bound, is_in_optional(spec.name, name))
                if not assignable:
                    return False
                bindings[name] = self.random.choice(assignable)
                continue
            if not fits_bound(bindings[name], bound) or not self._may_fill(spec, name, bindings[name]):
                return False
        return True

    def _pool_types(self, bound: str, in_optional: bool) -> list[Type]:
        """Return types of the pool that can replace a type parameter; the pool only grows."""
        key = (bound, in_optional, len(self.pool))
        found = self._fitting.get(key)
        if found is None:
            found = self._fitting[key] = [
                each
                for each in self.pool
                if fits_bound(each, bound) and not (in_optional and isinstance(each, OptionalOf))
            ]
        return found

    @staticmethod
    def _may_fill(spec: OpSpec, name: str, type_: Type) -> bool:
        """Return whether a type can be a parameter: an optional of an optional is not a type."""
        return not (isinstance(type_, OptionalOf) and is_in_optional(spec.name, name))

    def _by_function(self, spec: OpSpec, bindings: dict[str, Type], type_: Type, scope: Scope, depth: int) -> Term:
        params = _parameters(spec, bindings)
        if spec.name in EVALUATED:
            return self._draw_unevaluated_call(spec, params[0], type_, scope, depth)
        left_out = self.random.randint(0, len(spec.defaults))
        parts: list[str | Term] = [f"{spec.function}("]
        for (name, declared), param in list(zip(spec.params, params, strict=True))[: len(params) - left_out]:
            if len(parts) > 1:
                parts.append(", ")
            if name in spec.literals:
                parts.append(quoted(draw_pattern(self.random)))
            elif spec.name in CHECKED and name == spec.params[CHECKED[spec.name][0]][0]:
                parts.append(self._draw_checked(spec.name, name, scope, depth))
            elif self.random.random() < _LIMIT_SHARE and (limit := self._draw_limit(spec.name, name)) is not None:
                parts.append(limit)
            elif param == declared_type(declared) and self.random.random() < 0.7 and _is_listed(param):
                parts.append(self._draw_listed(param, scope))
            elif name == "index":
                parts.append(self.position(scope, depth))
            elif len(parts) == 1 and isinstance(param, ArrayOf) and spec.function not in _AGGREGATES:
                parts += self._array_argument(param, scope, depth)
            else:
                parts.append(self.expression(param, scope, depth))
        return Term(type_, (*parts, ")"))

    def _draw_listed(self, param: Type, scope: Scope) -> Term:
        """Draw a member for a declared enum, or `[…]` for a declared set."""
        if isinstance(param, SetOf):
            return self.literal_by_place(param, scope, 0)
        return self.literal(param, param, scope)

    def _draw_checked(self, operation: str, parameter: str, scope: Scope, depth: int) -> Term:
        """Draw a text that the checker accepts as a literal, or sometimes a text that it cannot know."""
        drawn = self.expression(STRING, scope, depth) if self.random.random() < _UNCHECKED_SHARE else None
        literal = self._draw_limit(operation, parameter) if drawn is None or drawn.is_open else drawn
        assert literal is not None, f"{operation}.{parameter} has no texts"
        return literal

    def _draw_limit(self, operation: str, parameter: str) -> Term | None:
        """Draw a literal at a limit of an operation; None if the parameter has none."""
        value = draw_argument(self.random, operation, parameter, self.features.risk)
        if isinstance(value, int):
            return Term(INTEGER, (str(value),), LEVELS["unary -"] if value < 0 else TIGHTEST, is_open=True)
        return None if value is None or not is_quotable(value) else Term(STRING, (quoted(value),), is_open=True)

    def _array_argument(self, param: ArrayOf, scope: Scope, depth: int) -> tuple[str | Term, ...]:
        try:
            return self.array_argument(param, scope, depth)
        except NotExpressible:
            return (self.expression(param, scope, depth),)

    def _draw_unevaluated_call(self, spec: OpSpec, param: Type, type_: Type, scope: Scope, depth: int) -> Term:
        """Draw a call that the checker would evaluate if its argument were a literal."""
        text = draw_format(self.random, spec.name, self.random.random() >= self.features.risk)
        if self.random.random() < _LIMIT_SHARE and is_quotable(text):
            at = self.random.randint(0, len(text))
            argument = infix("+", Term(STRING, (quoted(text[:at]),)), Term(STRING, (quoted(text[at:]),)), STRING)
        else:
            argument = self.expression(param, scope, depth)
        if argument.is_open:
            raise NotExpressible
        return Term(type_, (f"{spec.function}(", argument, ")"))

    def literal(self, type_: Type, hint: Type | None, scope: Scope) -> Term:
        text = self.types.literal(type_, hint, scope.taken | self.constants.keys())
        if text is None:
            raise NotExpressible
        level = LEVELS["unary -"] if text.startswith("-") else LEVELS["unary -"] + 1
        return Term(
            type_, (text,), level, is_open=isinstance(type_, Enum) or type_ in (INTEGER, DECIMAL, FLOAT, STRING)
        )

    def _by_operator(self, spec: OpSpec, bindings: dict[str, Type], type_: Type, scope: Scope, depth: int) -> Term:
        operator, params = spec.operator, _parameters(spec, bindings)
        assert operator is not None
        if operator in ("IS NULL", "IS NOT NULL"):
            return self._is_null(params[0], scope, depth)
        if len(params) == 1:
            operand = self.expression(params[0], scope, depth)
            term = prefix(operator, operand, type_)
            if operator != "NOT":
                return term
            return Term(type_, term.parts, term.level, term.is_open, operand.when_false, operand.when_true)
        left, right = self._operands(operator, params[0], params[1], scope, depth)
        if operator == "IN" and self.random.random() < 0.3:
            return infix(operator, left, right, type_, "NOT IN")
        return infix(operator, left, right, type_)

    def _operands(self, operator: str, left: Type, right: Type, scope: Scope, depth: int) -> tuple[Term, Term]:
        """Draw operands; each side is read with the other side's type, literals last."""
        if hint_from(right) == left and self.random.random() < 0.3:
            second = self.expression(right, scope, depth)
            if not second.is_open:
                return self.literal(left, left, scope), second
        if left == right == DECIMAL and self.random.random() < 0.2:  # the integer is converted to a decimal
            left, right = self.random.choice(((INTEGER, DECIMAL), (DECIMAL, INTEGER)))
        first = self.expression(left, scope, depth)
        if left == right and not first.is_open and self.random.random() < _SAME_SHARE:
            return first, first
        if first.is_open:
            return first, self.expression(right, scope, depth)
        if operator == "IN" and isinstance(right, ArrayOf) and self.random.random() < 0.5:
            return first, self.array_literal(right, scope, depth, right)
        return first, self.expression(right, scope, depth, hint_from(left))

    def _is_null(self, type_: Type, scope: Scope, depth: int) -> Term:
        """Draw a null test. Only a test of a path narrows its type."""
        if scope.nullable and self.random.random() < 0.8:
            wanted = [each for each in scope.nullable if each.type == type_]
            operand = self._respell(self.random.choice(wanted or scope.nullable))
        else:
            operand = self.expression(type_, scope, depth)
        is_negated = self.random.random() < 0.5
        facts = NOTHING if operand.path is None else frozenset({operand.path})
        words = " IS NOT NULL" if is_negated else " IS NULL"
        parts = (*parenthesise(operand, COMPARISON + 1), words)
        true, false = (facts, NOTHING) if is_negated else (NOTHING, facts)
        return Term(BOOLEAN, parts, COMPARISON, when_true=true, when_false=false)


def has_names(type_: Type) -> bool:
    """Return whether a node can declare the type: its records have names."""
    match type_:
        case Record(fields, name):
            return name is not None and all(has_names(field) for _, field in fields)
        case ArrayOf(inner) | SetOf(inner) | OptionalOf(inner):
            return has_names(inner)
        case MapOf(key, value):
            return has_names(key) and has_names(value)
        case _:
            return True


def _is_scalar(type_: Type) -> bool:
    return isinstance(type_, Primitive | Enum)


def _is_listed(type_: Type) -> bool:
    return isinstance(type_, Enum | SetOf)


def _reads_as_member(name: Term, hint: Type | None) -> bool:
    """Return whether a bare name is ambiguous with an enum member that is expected here."""
    return isinstance(hint, Enum) and str(name) in hint.members
