"""Writer of computations over the items of a collection: comprehensions, and calls with a lambda.

The condition (`where`) of an item is evaluated just before its value. Where each item gets a computed value (sorting,
grouping), a helper of `vesper.kernels.runtime.forms` receives the function and the items and evaluates both in turn.
Python's own `sorted` would evaluate all items first, so it is used only without a condition.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal

import libcst as cst

from vesper.codegen.layout.python_expression import (
    ATOM,
    EQUAL,
    OR,
    TERNARY,
    PythonExpression,
    add_parentheses,
    write_string,
)
from vesper.codegen.metering import Metering, write_price
from vesper.codegen.naming import Naming, kernel_name
from vesper.language.ir import nodes as ir
from vesper.language.ir.new_values import ItemPrice, price_fold, price_item, price_key, takes_memory
from vesper.values.model import Key, Value, in_order
from vesper.values.prices import ENTRY_BYTES
from vesper.values.types import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    DURATION,
    INTEGER,
    PERIOD,
    STRING,
    TIME_OF_DAY,
    TIMESTAMP,
    ArrayOf,
    Enum,
    MapOf,
    OptionalOf,
    Record,
    SetOf,
    Type,
    type_text,
)

_OF_ALL = ("sum", "min", "max", "avg")
_OF_VALUES = ("array", "count", "set", "forall", "exists", "sum", "min", "max", "avg")
_BY_PYTHON = (BOOLEAN, INTEGER, DECIMAL, STRING, BYTES, DATE, TIMESTAMP, DURATION, TIME_OF_DAY, PERIOD)
"""Types that Python's own comparison puts in the order of the language."""
_HELPERS = {
    "sort_by": "sorted_by", "distinct_by": "distinct_by", "min_by": "least_by", "max_by": "greatest_by",
    "group_by": "grouped_by", "count_by": "counted_by", "take_while": "taken_while", "drop_while": "dropped_while",
    "fold": "fold",
}  # fmt: skip
_ROUNDS = {"take_while": "taken_rounds", "drop_while": "dropped_rounds"}
"""Forms that charge for their items in the rounds."""


class LoopWriter:
    """The part of the expression writer that writes loops over items (`FOR`)."""

    naming: Naming
    metering: Metering
    kernels: set[str]
    sites: dict[cst.BaseExpression, int]
    iterable_depth: int

    @abstractmethod
    def write(self, expression: ir.Expression) -> PythonExpression: ...
    @abstractmethod
    def write_stored(self, expression: ir.Expression) -> PythonExpression: ...
    @abstractmethod
    def is_atom(self, let: ir.Let) -> bool: ...
    @abstractmethod
    def write_condition(self, expression: ir.Expression) -> PythonExpression: ...
    @abstractmethod
    def write_operand(self, expression: ir.Expression, binds: int) -> cst.BaseExpression: ...
    @abstractmethod
    def write_literal(self, type_: Type, value: Value) -> PythonExpression: ...

    def write_loop(self, expression: ir.For) -> PythonExpression:
        if expression.kind in _HELPERS:
            return self._write_helper_call(expression)
        if expression.kind == "count" and _is_each_item(expression):
            items = self.metering.meter_all(self._write_over(expression.over).node)
            return PythonExpression(cst.Call(cst.Name("len"), [cst.Arg(items)]), ATOM)
        if expression.kind in _OF_ALL and is_every_item(expression):
            return self._write_aggregate_of_all(expression)
        entries = _find_entries(expression)
        if entries is not None:
            return self._write_map_literal(expression, entries)
        if expression.kind == "array" and _is_each_item(expression):
            return self._write_array(expression.over, price_item(expression))
        if self.metering.is_metered and self._counts_memory(expression):
            return self._write_counted(expression)
        loop = self.write_comprehension(expression)
        whole = expression  # the price of a value depends on the names that it binds
        if expression.kind in _OF_VALUES:
            expression, loop = self._bind_names(expression, loop)
        # A sum starts from a zero without sign, and adding to that never gives one with it.
        value = (self.write if expression.kind == "sum" else self.write_stored)(expression.value).node
        match expression.kind:
            case "array":
                return PythonExpression(self._count_array(whole, cst.ListComp(value, loop)), ATOM)
            case "count":
                return PythonExpression(cst.Call(cst.Name("len"), [cst.Arg(cst.ListComp(value, loop))]), ATOM)
            case "set":
                return PythonExpression(_write_generator_call("frozenset", value, loop), ATOM)
            case "forall" | "exists":
                return PythonExpression(
                    _write_generator_call("all" if expression.kind == "forall" else "any", value, loop), ATOM
                )
            case "avg":
                call = self._write_aggregate(expression, cst.ListComp(value, loop))
            case "sum" | "min" | "max":
                call = self._write_aggregate(expression, cst.GeneratorExp(value, loop))
            case _:
                call = self._write_map(expression, value, loop)
        self.sites[call] = expression.index
        return PythonExpression(call, ATOM)

    # -- memory -----------------------------------------------------------------------------------

    def _counts_memory(self, expression: ir.For) -> bool:
        """Return whether a comprehension counts memory.

        Its rounds take memory, or the price of its values is not one number.
        """
        inside = (expression.where, expression.key, expression.value)
        price = price_item(expression)
        if any(map(takes_memory, inside)):
            return True
        if expression.kind == "array" and expression.where is None:
            return not isinstance(price, int)
        return price is not None

    def _count_array(self, expression: ir.For, written: cst.ListComp) -> cst.BaseExpression:
        """Charge an array whose rounds take no memory: the price of an item is fixed."""
        if not self.metering.is_metered:
            return written
        price = write_price(price_item(expression))
        items = written.for_in.iter
        assert isinstance(items, cst.Call), "the items of a loop are metered"
        fitting = self.metering.charge("fitting_items", price, items.args[0].value)
        over = written.for_in.with_changes(iter=fitting)
        return self.metering.charge(
            "kept_values", write_price(price_item(expression)), written.with_changes(for_in=over)
        )

    def _write_counted(self, expression: ir.For) -> PythonExpression:
        """Write a comprehension that counts the memory of its rounds: `list(each_value(meter, price, (…)))`."""
        where = expression.where
        skips = where is not None and takes_memory(where)
        loop = self.write_comprehension(replace(expression, where=None) if skips else expression)
        condition = None if where is None or not skips else add_parentheses(self.write_condition(where), OR)
        written = (self.write if expression.kind == "sum" else self.write_stored)(expression.value)
        is_map = expression.kind in ("map", "index_by")
        value = written.node if condition is None or is_map else add_parentheses(written, OR)
        if is_map:
            key = self.write_stored(expression.key).node if expression.key is not None else value
            if expression.key is None:
                value = cst.Name(self.naming.name_local(expression.locals[0], expression.names[0]))
            value = cst.Tuple([cst.Element(key), cst.Element(value)])
        if condition is not None:
            value = cst.IfExp(test=condition, body=value, orelse=cst.Name("SKIPPED"))
        generator = cst.GeneratorExp(value, loop)
        price = write_price(price_item(expression) or 0)
        items: cst.Call
        if is_map and expression.key is not None:
            items = self.metering.charge("each_entry", write_price(price_key(expression)), price, generator)
        elif is_map:
            items = self.metering.charge("each_entry", price, write_price(0), generator)
        else:
            items = self.metering.charge("each_value", price, generator)
        return PythonExpression(self._write_counted_result(expression, items), ATOM)

    def _write_counted_result(self, expression: ir.For, items: cst.Call) -> cst.Call:
        match expression.kind:
            case "array" | "count" | "avg":
                found = cst.Call(cst.Name("list"), [cst.Arg(items)])
                if expression.kind == "array":
                    return found
                if expression.kind == "count":
                    return cst.Call(cst.Name("len"), [cst.Arg(found)])
                call = self._write_aggregate(expression, found)
            case "set":
                return cst.Call(cst.Name("frozenset"), [cst.Arg(items)])
            case "forall" | "exists":
                return cst.Call(cst.Name("all" if expression.kind == "forall" else "any"), [cst.Arg(items)])
            case "sum" | "min" | "max":
                call = self._write_aggregate(expression, items)
            case _:
                key_type = (expression.key or expression.value).type
                if isinstance(key_type, Enum):
                    call = cst.Call(cst.Name("map_of_members"), [cst.Arg(write_members(key_type)), cst.Arg(items)])
                else:
                    call = cst.Call(cst.Name("map_of"), [cst.Arg(items)])
        self.sites[call] = expression.index
        return call

    def _bind_names(self, expression: ir.For, loop: cst.CompFor) -> tuple[ir.For, cst.CompFor]:
        """Move the names that a value binds first into clauses of the comprehension: `for x in [value]`.

        A clause over a list of one item only binds its name; CPython executes it as an assignment.
        """
        value = expression.value
        bound: list[tuple[cst.Name, cst.BaseExpression]] = []
        while isinstance(value, ir.Let):
            if not self.is_atom(value):
                with self.enter_iterable():
                    written = self.write_stored(value.value).node
                bound.append((cst.Name(self.naming.name_local(value.local, value.name)), written))
            value = value.body
        inner: cst.CompFor | None = None
        for name, written in reversed(bound):
            inner = cst.CompFor(target=name, iter=cst.List([cst.Element(written)]), inner_for_in=inner)
        return replace(expression, value=value), loop.with_changes(inner_for_in=inner)

    def _write_array(self, collection: ir.Expression, price: ItemPrice | None) -> PythonExpression:
        """Write a list of all items of a collection, in order."""
        match collection.type:
            case MapOf():
                items = self.metering.meter_all(self.write(collection).node, price)
                return PythonExpression(cst.Call(cst.Name("list"), [cst.Arg(items)]), ATOM)
            case SetOf():
                return PythonExpression(self.metering.meter_all(self.write_plain_items(collection, 1), price), ATOM)
            case _ if _is_range(collection):
                items = self.metering.meter_all(self._write_over(collection).node, price)
                return PythonExpression(cst.Call(cst.Name("list"), [cst.Arg(items)]), ATOM)
            case _:
                return PythonExpression(self.metering.meter_all(self.write_operand(collection, OR), price), ATOM)

    def _write_over(self, collection: ir.Expression) -> PythonExpression:
        """Write the collection of a loop; a range is written without a list."""
        if not _is_range(collection):
            return self.write(collection)
        assert isinstance(collection, ir.Call)
        arguments = [cst.Arg(self.write(argument).node) for argument in collection.args]
        call = cst.Call(cst.Name("loop_numbers"), arguments)
        self.sites[call] = collection.index
        return PythonExpression(call, ATOM)

    def _write_aggregate_of_all(self, expression: ir.For) -> PythonExpression:
        """Write an aggregate of all items of an array, for which Python needs no loop."""
        items = self._write_over(expression.over).node
        call = self._write_aggregate(
            expression,
            self.metering.meter_all(items, price_item(expression))
            if expression.kind == "avg"
            else self.metering.meter_items(items),
        )
        self.sites[call] = expression.index
        return PythonExpression(call, ATOM)

    def _write_aggregate(self, expression: ir.For, items: cst.BaseExpression) -> cst.Call:
        """Write a sum, an average, a minimum or a maximum of items."""
        if expression.kind == "avg" or (expression.kind == "sum" and expression.type not in (INTEGER, DECIMAL)):
            op = f"{expression.value.type}.{expression.kind}"
            self.kernels.add(op)
            return cst.Call(cst.Name(kernel_name(op)), [cst.Arg(_strip_parentheses(items))])
        if expression.kind == "sum" and expression.type == DECIMAL:
            zero = cst.Arg(self.write_literal(DECIMAL, Decimal(0)).node)
            return cst.Call(cst.Name("sum"), [cst.Arg(items), zero])
        name = {"sum": "checked_sum", "min": "smallest", "max": "largest"}[expression.kind]
        if (order := write_order(expression.type)) is not None:
            return cst.Call(cst.Name(name), [cst.Arg(items), cst.Arg(order)])
        return cst.Call(cst.Name(name), [cst.Arg(_strip_parentheses(items))])

    def _write_map(self, expression: ir.For, value: cst.BaseExpression, loop: cst.CompFor) -> cst.Call:
        """Write a map of keys and values. `index_by` has no key of its own: it maps its value to the item."""
        key = self.write_stored(expression.key).node if expression.key is not None else value
        if expression.key is None:
            value = cst.Name(self.naming.name_local(expression.locals[0], expression.names[0]))
        pair = cst.Tuple([cst.Element(key), cst.Element(value)])
        key_type = (expression.key or expression.value).type
        if not isinstance(key_type, Enum):
            return _write_generator_call("map_of", pair, loop)
        members = write_members(key_type)
        return cst.Call(cst.Name("map_of_members"), [cst.Arg(members), cst.Arg(cst.GeneratorExp(pair, loop))])

    def _write_map_literal(
        self, expression: ir.For, entries: list[tuple[ir.Expression, ir.Expression]]
    ) -> PythonExpression:
        """Write the language's `{'a': 1}`.

        It is a dict if its keys are literals, distinct and in order; else it is made of pairs.
        """
        assert expression.key is not None
        pairs = [(self.write_stored(key).node, self.write_stored(value).node) for key, value in entries]
        keys: list[Key] = [
            key.value for key, _ in entries if isinstance(key, ir.Literal) and isinstance(key.value, Key)
        ]
        if len(keys) == len(entries) and keys == in_order(expression.key.type, dict.fromkeys(keys)):
            literal = cst.Dict([cst.DictElement(key, value) for key, value in pairs])
            return PythonExpression(self.metering.meter_all(literal, ENTRY_BYTES), ATOM)
        written = cst.List([cst.Element(cst.Tuple([cst.Element(key), cst.Element(value)])) for key, value in pairs])
        items = self.metering.meter_items(written)
        if self.metering.is_metered:
            items = self.metering.charge("each_value", write_price(ENTRY_BYTES), items)
        key_type = expression.key.type
        if isinstance(key_type, Enum):
            call = cst.Call(cst.Name("map_of_members"), [cst.Arg(write_members(key_type)), cst.Arg(items)])
        else:
            call = cst.Call(cst.Name("map_of"), [cst.Arg(items)])
        self.sites[call] = expression.index
        return PythonExpression(call, ATOM)

    # -- a function and the items -----------------------------------------------------------------

    def _write_helper_call(self, expression: ir.For) -> PythonExpression:
        names = self._write_names(expression)
        if expression.kind == "fold":
            names = [names[-1], *names[:-1]]
        parameters = cst.Parameters([cst.Param(name) for name in names])
        if expression.kind == "fold" and _is_condition_on_state(expression):
            return self._write_helper_call(_move_condition_inside(expression))
        is_sorted = expression.kind == "sort_by" and expression.where is None and expression.value.type in _BY_PYTHON
        items = (
            self.write_plain_items(expression.over, len(names)) if is_sorted else self._write_helper_items(expression)
        )
        with_ = None if expression.with_ is None else self.write_stored(expression.with_).node
        # The state of a fold is stored until the next item; the others only compare values.
        value = (self.write_stored if expression.kind == "fold" else self.write)(expression.value).node
        function: cst.BaseExpression = cst.Lambda(parameters, value)
        if self.metering.is_metered and expression.kind == "fold":
            return self._write_counted_fold(expression, function, items, with_)
        if is_sorted:
            return PythonExpression(self._write_sorted(expression, items, function, with_), ATOM)
        helper = _HELPERS[expression.kind]
        if expression.kind == "fold" and len(names) > 2:
            helper = "fold_entries"
        if self.metering.is_metered and expression.kind in _ROUNDS:
            return PythonExpression(self.metering.charge(_ROUNDS[expression.kind], function, items), ATOM)
        price = write_price(price_item(expression) or 0)
        excludes = self._excludes_rounds(expression)
        is_priced = takes_memory(expression.value) or price_item(expression) is not None
        if self.metering.is_metered and is_priced and not excludes:
            function = self.metering.charge("key_of_each", price, function)
        arguments = [function, items, *([] if with_ is None else [with_])]
        order = write_order(expression.value.type)
        if order is not None and expression.kind not in ("distinct_by", "fold", "take_while", "drop_while"):
            arguments.append(order)
        call = cst.Call(cst.Name(helper), [cst.Arg(argument) for argument in arguments])
        if excludes:
            call = self.metering.charge("keyed_rounds", price, cst.Name(helper), *arguments)
        if self.metering.is_metered and expression.kind in ("group_by", "count_by"):
            call = self.metering.charge("charge_groups", call)
        return PythonExpression(call, ATOM)

    def _write_counted_fold(
        self, fold: ir.For, function: cst.BaseExpression, items: cst.BaseExpression, with_: cst.BaseExpression | None
    ) -> PythonExpression:
        assert with_ is not None
        arguments = [write_price(price_fold(fold)), function, items, with_]
        if len(fold.locals) > 2:
            arguments.append(cst.Name("True"))
        return PythonExpression(self.metering.charge("counted_fold", *arguments), ATOM)

    def _write_sorted(
        self,
        expression: ir.For,
        items: cst.BaseExpression,
        function: cst.BaseExpression,
        with_: cst.BaseExpression | None,
    ) -> cst.Call:
        """Write `sorted(items, key=lambda …)`. It keeps the order of equal items in both directions, as the language
        does.
        """
        arguments = [
            cst.Arg(items),
            _write_keyword("key", self.metering.meter_each(function, price_item(expression) or 0)),
        ]
        if isinstance(expression.with_, ir.Literal):
            if expression.with_.value == "descending":
                arguments.append(_write_keyword("reverse", cst.Name("True")))
        else:
            assert with_ is not None
            target = cst.ComparisonTarget(cst.Equal(), cst.SimpleString('"descending"'))
            arguments.append(_write_keyword("reverse", cst.Comparison(with_, [target])))
        return cst.Call(cst.Name("sorted"), arguments)

    def _write_helper_items(self, expression: ir.For) -> cst.BaseExpression:
        """Write the items of a helper: the collection, or its items that satisfy the condition."""
        names = self._write_names(expression)
        if expression.kind == "fold":
            names = names[:-1]
        if expression.where is None:
            return self.write_items(expression.over, len(names))
        target = write_target(names, parentheses=True)
        if self._excludes_rounds(expression):
            loop = self.write_comprehension(replace(expression, where=None))
            condition = add_parentheses(self.write_condition(expression.where), OR)
            return cst.GeneratorExp(cst.IfExp(test=condition, body=target, orelse=cst.Name("SKIPPED")), loop)
        return cst.GeneratorExp(target, self.write_comprehension(expression))

    def _excludes_rounds(self, expression: ir.For) -> bool:
        """Return whether an excluded item is charged as a round, which then returns its memory."""
        return self.metering.is_metered and expression.where is not None and takes_memory(expression.where)

    @contextmanager
    def enter_iterable(self) -> Iterator[None]:
        """Enter the iterable of a comprehension, where Python allows no assignment."""
        self.iterable_depth += 1
        try:
            yield
        finally:
            self.iterable_depth -= 1

    # -- the loop itself --------------------------------------------------------------------------

    def _write_names(self, expression: ir.For) -> list[cst.Name]:
        return [
            cst.Name(self.naming.name_local(number, name))
            for number, name in zip(expression.locals, expression.names, strict=True)
        ]

    def write_comprehension(self, expression: ir.For) -> cst.CompFor:
        names = self._write_names(expression)
        if expression.kind == "fold":
            names = names[:-1]
        with self.enter_iterable():
            over = self.write_items(expression.over, len(names))
        conditions = []
        if expression.where is not None:
            where = add_parentheses(self.write_condition(expression.where), OR)
            conditions.append(cst.CompIf(where))
        return cst.CompFor(target=write_target(names, parentheses=False), iter=over, ifs=conditions)

    def write_items(self, collection: ir.Expression, names: int) -> cst.BaseExpression:
        """Write a collection so that a loop iterates over it in the order of the language."""
        return self.metering.meter_items(self.write_plain_items(collection, names))

    def write_plain_items(self, collection: ir.Expression, names: int) -> cst.BaseExpression:
        """Write a collection as `write_items` does, but without a meter."""
        is_argument = isinstance(collection.type, SetOf) or (isinstance(collection.type, MapOf) and names > 1)
        if _is_range(collection):
            return self._write_over(collection).node
        over = self.write_operand(collection, TERNARY if is_argument else OR)
        match collection.type:
            case SetOf(Enum() as enum):
                # SEMANTICS: a set is walked in the order of its members, which Python's sets do not have.
                return cst.Call(cst.Name("members_in_order"), [cst.Arg(write_members(enum)), cst.Arg(over)])
            case SetOf():
                return cst.Call(cst.Name("sorted"), [cst.Arg(over)])
            case MapOf() if names > 1:
                return cst.Call(cst.Name("entries_of"), [cst.Arg(over)])
            case _:
                return over


def write_members(enum: Enum) -> cst.Tuple:
    return cst.Tuple([cst.Element(cst.SimpleString(write_string(member))) for member in enum.members])


def write_order(type_: Type) -> cst.BaseExpression | None:
    """Write the argument by which a kernel compares values of a type. None if the Python values suffice."""
    match type_:
        case Enum():
            return write_members(type_)
        case ArrayOf() | Record() | OptionalOf():
            return cst.SimpleString(write_string(type_text(type_)))
        case _:
            return None


def is_every_item(expression: ir.For) -> bool:
    """Return whether a loop yields all items of an array unchanged. Python then needs no loop."""
    return isinstance(expression.over.type, ArrayOf) and _is_each_item(expression)


def _is_range(collection: ir.Expression) -> bool:
    return isinstance(collection, ir.Call) and collection.op == "array.range" and len(collection.args) == 3


def _is_each_item(expression: ir.For) -> bool:
    return (
        expression.where is None
        and isinstance(expression.value, ir.Local)
        and expression.value.number == expression.locals[0]
    )


def _find_entries(expression: ir.For) -> list[tuple[ir.Expression, ir.Expression]] | None:
    """Return the entries of a map literal: `{e.key: e.value FOR e IN [{key: …, value: …}, …]}`.

    None for other loops.
    """
    if not isinstance(expression.over, ir.Array) or expression.where is not None or expression.key is None:
        return None
    for part, name in ((expression.key, "key"), (expression.value, "value")):
        if not (isinstance(part, ir.Field) and part.name == name and isinstance(part.of, ir.Local)):
            return None
        if part.of.number != expression.locals[0]:
            return None
    entries: list[tuple[ir.Expression, ir.Expression]] = []
    for item in expression.over.items:
        if not isinstance(item, ir.RecordValue) or [name for name, _ in item.fields] != ["key", "value"]:
            return None
        entries.append((item.fields[0][1], item.fields[1][1]))
    return entries


def _is_condition_on_state(fold: ir.For) -> bool:
    """Return whether the condition of an item reads the state of the fold."""
    return fold.where is not None and any(
        isinstance(part, ir.Local) and part.number == fold.locals[-1] for part in ir.walk(fold.where)
    )


def _move_condition_inside(fold: ir.For) -> ir.For:
    """Return an equal fold in which a skipped item keeps the state."""
    assert fold.where is not None
    same = ir.Local(fold.locals[-1], fold.names[-1], fold.value.type, fold.place)
    value = ir.If(fold.where, fold.value, same, fold.value.type, fold.place)
    return replace(fold, where=None, value=value)


def write_target(names: list[cst.Name], parentheses: bool) -> cst.Name | cst.Tuple:
    if len(names) == 1:
        return names[0]
    marks: dict[str, list[cst.LeftParen] | list[cst.RightParen]] = {} if parentheses else {"lpar": [], "rpar": []}
    return cst.Tuple([cst.Element(name) for name in names], **marks)  # type: ignore[arg-type]


def _strip_parentheses(items: cst.BaseExpression) -> cst.BaseExpression:
    """Return the only argument of a call, without the parentheses that a generator does not need there."""
    return items.with_changes(lpar=[], rpar=[]) if isinstance(items, cst.GeneratorExp) else items


def _write_generator_call(function: str, value: cst.BaseExpression, loop: cst.CompFor) -> cst.Call:
    """Write `function(value for …)`."""
    generator = cst.GeneratorExp(value, loop, lpar=[], rpar=[])
    return cst.Call(cst.Name(function), [cst.Arg(generator)])


def _write_keyword(name: str, value: cst.BaseExpression) -> cst.Arg:
    return cst.Arg(value, keyword=cst.Name(name), equal=EQUAL)
