"""Translation of FEEL to typed expressions of Vesper."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from vesper.importers.dmn.code import (
    ADD,
    LOOSE,
    OR,
    Builder,
    Closure,
    Code,
    Guard,
    Let,
    RangeParts,
    null,
    number,
)
from vesper.importers.dmn.feel import syntax as feel
from vesper.importers.dmn.interface import read_given
from vesper.importers.dmn.operators import (
    ORDERED,
    arithmetic,
    both,
    either,
    equality,
    join_types,
    negative,
    order,
    truth,
)
from vesper.importers.dmn.temporal import at_literal, temporal_property
from vesper.importers.dmn.types import (
    ANY,
    BOOLEAN,
    NEVER,
    NULL,
    SIMPLE,
    Refusal,
    Ty,
    context_of,
    field_names,
    list_of,
    type_error,
    unsupported,
)

Env = Mapping[str, Code]
MAX_TEXT = 30_000


class Translator(Builder):
    """Translates expressions of one node. `types` are the item definitions by name."""

    types: Mapping[str, Ty]

    def translate(self, node: feel.Feel, env: Env) -> Code:
        """Return the expression of a FEEL node. Raises `Refusal` with the offset."""
        try:
            code = self._translate(node, env)
        except Refusal as refusal:
            if refusal.at < 0:
                refusal.at = node.at
            raise
        if len(code.text) > MAX_TEXT:
            raise unsupported("the translation is longer than a node may be", node.at)
        return code

    def _translate(self, node: feel.Feel, env: Env) -> Code:
        match node:
            case feel.Number():
                return number(plain_number(node.text))
            case feel.Text():
                return self.string(node.value)
            case feel.Truth():
                return Code("true" if node.value else "false", BOOLEAN)
            case feel.Null():
                return Code("null", NULL)
            case feel.AtLiteral():
                found = at_literal(node.value)
                if found is None:
                    raise type_error(f'`@"{node.value}"` is no temporal literal')
                return found
            case feel.Name():
                return read_given(self, self.name(node.name, env))
            case feel.Path():
                return read_given(self, self.property(self.translate(node.source, env), node.name))
            case feel.Filter():
                return read_given(self, self.filter(self.translate(node.source, env), node.condition, env))
            case feel.Call():
                return self.call(node, env)
            case feel.Unary():
                return negative(self, self.translate(node.operand, env))
            case feel.Binary():
                return self.binary(node.operator, self.translate(node.left, env), self.translate(node.right, env))
            case feel.Between():
                value, steps = self.bound(self.translate(node.value, env), "value")
                low, high = self.translate(node.low, env), self.translate(node.high, env)
                return self.within(steps, both(self, order(self, ">=", value, low), order(self, "<=", value, high)))
            case feel.In():
                value, steps = self.bound(self.translate(node.value, env), "value")
                return self.within(steps, self.any_test(value, node.tests, env))
            case feel.InstanceOf():
                return self.instance_of(self.translate(node.value, env), node.type)
            case feel.If():
                return self.conditional(
                    self.translate(node.condition, env),
                    self.translate(node.then, env),
                    self.translate(node.otherwise, env),
                )
            case feel.For():
                return self.iterate(node.iterators, node.body, env)
            case feel.Quantified():
                return self.quantified(node.kind, node.iterators, node.condition, env)
            case feel.FunctionLiteral():
                return self.closure(node, env)
            case feel.ListLiteral():
                return self.list_literal([self.translate(item, env) for item in node.items])
            case feel.ContextLiteral():
                return self.context_literal(node.entries, env)
            case feel.Range():
                start = None if node.low is None else self.translate(node.low, env)
                end = None if node.high is None else self.translate(node.high, env)
                return self.range_of(start, end, node.is_low_closed, node.is_high_closed)
            case feel.Comparison():
                return self.comparison_range(node.operator, self.translate(node.endpoint, env))
        raise unsupported("this form of FEEL")

    def name(self, name: str, env: Env) -> Code:
        """Return the value of a name."""
        if name in env:
            return env[name]
        from vesper.importers.dmn.functions.registry import builtin_closure

        found = builtin_closure(self, name)
        if found is None:
            raise Refusal("unknown name", f"there is no `{name}` in scope")
        return found

    def property(self, source: Code, name: str) -> Code:
        """Return `source.name`."""
        if source.fields is not None and name in source.fields:
            return source.fields[name]
        if source.range is not None:
            return self._range_property(source.range, name)
        match source.ty.kind:
            case "null":
                return Code("null", NULL)
            case "context":
                ty = source.ty.field(name)
                if ty is None:
                    return Code("null", NULL)
                value = self.strict(source if source.is_path else self.named(source, "context"), "context")
                found = self.combine([value], f"{value.text}.{field_names(value.ty)[name]}", ty)
                return replace(found, is_path=True)
            case "list":
                if source.ty.item.kind == "never":
                    return source
                items = self.strict(source, "items")
                item = self.fresh("item")
                inner = self.close(self.property(Code(item, items.ty.item, is_path=True), name))
                return self.combine([items], self._comprehension(inner, item, items), list_of(inner.ty))
            case "any":
                value = self.strict(self.named(source))
                value = self.guarded(value, f"kind({value.text}) != 'object'")
                pointer = name.replace("~", "~0").replace("/", "~1")
                path = self.string(f"/{pointer}")
                return self.combine([value], f"(get({value.text}, {path.text}) ?? parse_json('null'))", ANY)
        found_property = temporal_property(self, source, name)
        if found_property is None:
            raise type_error(f"a {source.ty.describe()} has no `{name}`")
        return found_property

    def _comprehension(self, body: Code, item: str, items: Code, condition: str = "") -> str:
        text = body.text
        if body.ty.is_nullable and body.level == LOOSE:
            text = f"({body.text}) AS {self.records.written(body.ty)}"
        where = f" WHERE {condition}" if condition else ""
        return f"[{text} FOR {item} IN {items.at(ADD)}{where}]"

    def _range_property(self, parts: RangeParts, name: str) -> Code:
        match name:
            case "start":
                return Code("null", NULL) if parts.low is None else parts.low
            case "end":
                return Code("null", NULL) if parts.high is None else parts.high
            case "start included":
                return Code("true" if parts.is_low_closed else "false", BOOLEAN)
            case "end included":
                return Code("true" if parts.is_high_closed else "false", BOOLEAN)
        raise type_error(f"a range has no `{name}`")

    def as_list(self, code: Code) -> Code:
        """Return a list: itself, or the list of one value."""
        if code.ty.kind == "list":
            return code
        if code.ty.kind == "any":
            return self.any_items(code)
        if code.ty.kind == "null":
            return Code("[]", list_of(NULL))
        closed = self.decimal(self.close(code))
        if closed.ty.is_nullable:
            return Code(f"([{closed.text}] AS array<{self.records.written(closed.ty)}>)", list_of(closed.ty))
        return Code(f"[{closed.text}]", list_of(closed.ty))

    def filter(self, source: Code, condition: feel.Feel, env: Env) -> Code:
        """Return `source[condition]`: an item by its position, or the items for which the condition holds."""
        if source.closure is not None or source.range is not None:
            raise unsupported("a filter of a range or a function")
        items = self.as_list(source)
        if source.ty.kind == "list" and source.ty.item.kind == "never":
            return Code("null", NULL) if isinstance(condition, feel.Number | feel.Unary) else source
        items = self.strict(items, "items")
        item = self.fresh("item")
        inner = dict(env)
        value = Code(item, items.ty.item, is_path=True)
        if value.ty.kind == "context":
            for name in value.ty.names:
                inner[name] = self.property(value, name)
        inner["item"] = value
        test = self.translate(condition, inner)
        if test.ty.kind == "number":
            return self.item_at(items, self.translate(condition, env))
        if test.ty.kind == "null":
            return Code(f"take({items.text}, 0)", items.ty)
        return self.combine([items], self._comprehension(value, item, items, truth(self, test).text), items.ty)

    def item_at(self, items: Code, index: Code) -> Code:
        """Return an item by its position from 1, or from the end by a negative one; null where there is none."""
        index = self.strict(index, "index")
        ty = items.ty.item.optional()
        if index.is_literal:
            whole = Decimal(index.text)
            if whole != int(whole) or not whole:
                return null(ty, self.records)
            source = items.text if whole > 0 else f"reverse({items.text})"
            return self.combine([items], f"get({source}, {abs(int(whole)) - 1})", ty)
        at = self.core(index, "index")
        at = self.guarded(at, f"trunc({at.text}) != {at.text}", f"abs({at.text}) > 1000000")
        path = self.core(items, "items")
        position = f"to_integer({at.text})"
        from_end = f"get({path.text}, length({path.text}) + {position})"
        text = f"IF {at.text} > 0 THEN get({path.text}, {position} - 1) ELSE {from_end}"
        return self.close(self.combine([path, at], text, ty, LOOSE))

    def binary(self, operator: str, left: Code, right: Code) -> Code:
        """Return the operation of two values."""
        match operator:
            case "and":
                return both(self, left, right)
            case "or":
                return either(self, left, right)
            case "=" | "!=":
                return equality(self, left, right, operator == "!=")
            case "<" | "<=" | ">" | ">=":
                return order(self, operator, left, right)
        return arithmetic(self, operator, left, right)

    def any_test(self, value: Code, tests: tuple[feel.Feel, ...], env: Env) -> Code:
        """Return whether one of the tests holds, with three values."""
        found: Code | None = None
        for test in tests:
            one = self.close(self.test(value, test, env))
            found = one if found is None else either(self, found, one)
        return Code("true", BOOLEAN) if found is None else found

    def test(self, value: Code, test: feel.Feel, env: Env) -> Code:
        """Return whether a value passes one unary test."""
        match test:
            case feel.Comparison():
                endpoint = self.translate(test.endpoint, env)
                return self.binary(test.operator, value, endpoint)
            case feel.Range():
                return self.in_range(value, self.translate(test, env))
            case feel.ListLiteral() if value.ty.kind != "list":
                return self.any_test(value, test.items, env) if test.items else Code("false", BOOLEAN)
        found = self.translate(test, {**env, "?": value})
        return self.test_value(value, found, _mentions_input(test))

    def test_value(self, value: Code, found: Code, is_condition: bool) -> Code:
        """Return code that applies a translated test to a value.

        A condition is used as it stands; a range, or a list that can contain the value, tests membership; any other
        value tests equality.
        """
        if found.ty.kind == "boolean" and value.ty.kind not in ("boolean", "any", "null", "list"):
            return found
        if is_condition and found.ty.kind in ("boolean", "null"):
            return found if found.ty.kind == "boolean" else Code("false", BOOLEAN)
        if found.range is not None:
            return self.in_range(value, found)
        if found.ty.kind == "list" and value.ty.kind != "list":
            return self.contains(found, value)
        if found.ty.kind == "list" and value.ty.kind == "list" and found.ty.item.kind == "list":
            return self.contains(found, value)
        return equality(self, value, found)

    def contains(self, items: Code, value: Code) -> Code:
        """Return whether a list has an item that equals the value."""
        if items.ty.kind == "null":
            return null(BOOLEAN, self.records)
        if items.ty.item.kind == "never":
            return Code("false", BOOLEAN)
        source = self.strict(items, "items")
        item = self.fresh("item")
        path, steps = self.bound(value, "member")
        same = self.close(equality(self, Code(item, source.ty.item, is_path=True), path))
        text = f"EXISTS {item} IN {source.at(ADD)} SATISFIES {same.text}"
        return self.within(steps, self.combine([source], text, BOOLEAN, LOOSE))

    def in_range(self, value: Code, code: Code) -> Code:
        """Return whether a value lies in a range."""
        parts = code.range
        assert parts is not None
        if value.range is not None or value.closure is not None:
            raise unsupported("a range in a range")
        if (parts.low is None or parts.high is None) and not parts.is_comparison:
            return null(BOOLEAN, self.records)
        value, steps = self.bound(value, "value")
        found: Code | None = None
        if parts.low is not None:
            found = order(self, ">=" if parts.is_low_closed else ">", value, parts.low)
        if parts.high is not None:
            high = order(self, "<=" if parts.is_high_closed else "<", value, parts.high)
            found = high if found is None else both(self, found, high)
        return Code("true", BOOLEAN) if found is None else self.within(steps, found)

    def range_of(
        self,
        low: Code | None,
        high: Code | None,
        is_low_closed: bool,
        is_high_closed: bool,
        is_comparison: bool = False,
    ) -> Code:
        """Return a range. Its ends are ordered values of one type."""
        kinds = {each.ty.kind for each in (low, high) if each is not None and each.ty.kind != "null"}
        if len(kinds) > 1 or not kinds <= {*ORDERED, "any"}:
            raise type_error("the ends of a range are values of one type with an order")
        low = None if low is None or low.ty.kind == "null" else low
        high = None if high is None or high.ty.kind == "null" else high
        return Code("", Ty("range"), range=RangeParts(low, high, is_low_closed, is_high_closed, is_comparison))

    def comparison_range(self, operator: str, endpoint: Code) -> Code:
        """Return the range of `(< 5)`."""
        match operator:
            case "<" | "<=":
                return self.range_of(None, endpoint, False, operator == "<=", True)
            case ">" | ">=":
                return self.range_of(endpoint, None, operator == ">=", False, True)
            case "=":
                return self.range_of(endpoint, endpoint, True, True, True)
        raise unsupported(f"a range of `{operator}`")

    def conditional(self, condition: Code, then: Code, otherwise: Code) -> Code:
        """Return `if`: a condition that is null counts as false."""
        test = truth(self, condition)
        if (
            then.closure is not None
            or otherwise.closure is not None
            or then.range is not None
            or otherwise.range is not None
        ):
            raise unsupported("a function or a range as the result of a condition")
        ty, (one, other) = join_types(self, [then, otherwise])
        if ty.kind == "null":
            return Code("null", NULL)
        return Code(f"IF {test.text} THEN {_branch(one)} ELSE {other.text}", ty, LOOSE)

    def list_literal(self, items: list[Code]) -> Code:
        """Return a list of values."""
        if not items:
            return Code("[]", list_of(NEVER))
        ty, values = join_types(self, items)
        text = f"[{', '.join(each.text for each in values)}]"
        if ty.is_nullable or ty.kind == "list":
            text = f"({text} AS array<{self.records.written(ty)}>)"
        return Code(text, list_of(ty), items=tuple(items))

    def context_literal(self, entries: tuple[tuple[str, feel.Feel], ...], env: Env) -> Code:
        """Return a context; each entry can use those above it."""
        inner = dict(env)
        found: dict[str, Code] = {}
        lets: list[Let] = []
        has_functions = any(isinstance(value, feel.FunctionLiteral | feel.Range) for _, value in entries)
        for name, value in entries:
            if name in found:
                raise type_error(f"the context has two entries `{name}`")
            code = self.translate(value, inner)
            # A function may be called outside the context, where a name of the context is not bound.
            found[name], steps = (code, ()) if has_functions else self.bound(code, name)
            inner[name] = found[name]
            lets += [step for step in steps if isinstance(step, Let)]
        return self.with_entries(found, lets)

    def with_entries(self, entries: dict[str, Code], lets: list[Let]) -> Code:
        """Return a context whose entries use each other by name; a name that only its entry uses is left out."""
        kept: list[Let] = []
        single: dict[str, Let] = {}
        for let in lets:
            later = [other.text for other in lets if other is not let]
            if any(re.search(rf"\b{let.name}\b", text) for text in later) or _is_static_user(entries, let.name):
                kept.append(let)
            else:
                single[let.name] = let
        values = {
            name: replace(code, text=single[code.text].text, level=LOOSE, is_path=False)
            if code.text in single
            else code
            for name, code in entries.items()
        }
        return self.within(tuple(kept), self.context_of(values))

    def context_of(self, entries: Mapping[str, Code]) -> Code:
        """Return a record of values; functions and ranges stay beside it."""
        static = {name: code for name, code in entries.items() if _is_static(code)}
        values = {name: code for name, code in entries.items() if not _is_static(code)}
        ty = context_of({name: code.value_type for name, code in values.items()})
        names = field_names(ty)
        parts = []
        for name, code in values.items():
            value = self.close(code)
            text = null(BOOLEAN, self.records).text if value.ty.kind == "null" else value.at(OR)
            parts.append(f"{names[name]}: {text}")
        text = f"{{{', '.join(parts)}}}" if parts else ""
        is_static = bool(static) or not values
        return Code(text, ty, fields=dict(entries) if is_static else None, items=tuple(entries.values()))

    def instance_of(self, value: Code, type_name: feel.TypeName) -> Code:
        """Return `value instance of type`."""
        from vesper.importers.dmn.conformance import conforms

        return conforms(self, value, type_name)

    def declared_type(self, type_name: feel.TypeName) -> Ty:
        """Return the type of a name in an expression."""
        if type_name.name in SIMPLE:
            return SIMPLE[type_name.name]
        if type_name.name == "list":
            return list_of(self.declared_type(type_name.parameters[0]) if type_name.parameters else ANY)
        if type_name.name == "context" and type_name.names:
            types = map(self.declared_type, type_name.parameters)
            return context_of(dict(zip(type_name.names, types, strict=True)))
        if type_name.name in self.types:
            return self.types[type_name.name]
        raise unsupported(f"the type `{type_name.name}`", type_name.at)

    def closure(self, node: feel.FunctionLiteral, env: Env) -> Code:
        """Return a function value."""
        if node.is_external:
            raise unsupported("an external function")
        types = tuple(None if each is None else self._parameter_type(each) for each in node.types)

        def call(arguments: list[Code]) -> Code:
            return self.translate(node.body, {**env, **dict(zip(node.parameters, arguments, strict=True))})

        return Code("", Ty("function"), closure=Closure(node.parameters, types, call))

    def _parameter_type(self, name: feel.TypeName) -> Ty | None:
        return None if name.name in ("Any", "function", "range", "context") else self.declared_type(name)

    def call(self, node: feel.Call, env: Env) -> Code:
        """Return the call of a function: of the library, or one that is inlined."""
        from vesper.importers.dmn.functions.registry import call_builtin

        arguments = [self.translate(each, env) for each in node.arguments]
        if isinstance(node.function, feel.Name) and node.function.name not in env:
            return call_builtin(self, node.function.name, arguments, node.names)
        function = self.translate(node.function, env)
        if function.closure is None:
            raise type_error("this is no function")
        return self.apply(function.closure, arguments, node.names)

    def apply(self, closure: Closure, arguments: list[Code], names: tuple[str, ...] = ()) -> Code:
        """Inline a function for these arguments."""
        if names:
            given = dict(zip(names, arguments, strict=True))
            if set(given) != set(closure.parameters):
                raise type_error("a function is called with all its parameters")
            arguments = [given[name] for name in closure.parameters]
        if len(arguments) != len(closure.parameters):
            raise type_error(f"the function has {len(closure.parameters)} parameters, and the call {len(arguments)}")
        self._calls = getattr(self, "_calls", 0) + 1
        if self._calls > 200:
            raise unsupported("functions that call each other deeper than 200 times, or themselves")
        values = []
        steps: list[Guard | Let] = []
        for name, ty, code in zip(closure.parameters, closure.types, arguments, strict=True):
            value = code if ty is None else self.coerce(code, ty)
            if closure.has_names:
                value, bound = self.bound(value, name)
                steps += bound
            values.append(value if _is_static(value) else self.close(value))
        try:
            found = closure.call(values)
        finally:
            self._calls -= 1
        return found if _is_static(found) else self.within(tuple(steps), found)

    def coerce(self, code: Code, ty: Ty) -> Code:
        """Return a value as a declared type: lists of one item, dates and values of any type are converted."""
        from vesper.importers.dmn.conformance import coerce

        return coerce(self, code, ty)

    def iterate(self, iterators: tuple[feel.Iterator, ...], body: feel.Feel, env: Env) -> Code:
        """Return `for … return …`: one list over all combinations, the last iterator fastest."""
        from vesper.importers.dmn.iteration import iterate

        return iterate(self, iterators, body, env)

    def quantified(self, kind: str, iterators: tuple[feel.Iterator, ...], condition: feel.Feel, env: Env) -> Code:
        """Return `some` or `every`."""
        from vesper.importers.dmn.iteration import quantified

        return quantified(self, kind, iterators, condition, env)


def plain_number(text: str) -> str:
    """Return a number without an exponent."""
    if text.startswith("."):
        text = f"0{text}"
    if "e" in text.lower():
        value = Decimal(text)
        if abs(value.adjusted()) > 500:
            raise unsupported("a number of more than 500 digits")
        text = format(value, "f")
    if "." not in text:
        text = text.lstrip("0") or "0"
    if "." not in text and int(text) > 2**63 - 1:
        text = f"{text}.0"
    return text


def _branch(code: Code) -> str:
    return code.text


def _is_static(code: Code) -> bool:
    return code.closure is not None or code.range is not None or code.fields is not None


def _is_static_user(entries: Mapping[str, Code], name: str) -> bool:
    """Return whether a function or range of a context may use a name."""
    return any(_is_static(code) for code in entries.values()) and name != ""


def _mentions_input(node: object) -> bool:
    """Return whether `?` occurs in a test, which makes it a condition."""
    if isinstance(node, feel.Name):
        return node.name == "?"
    if isinstance(node, tuple):
        return any(map(_mentions_input, node))
    slots = getattr(type(node), "__slots__", ())
    return any(_mentions_input(getattr(node, each)) for each in slots if each not in ("at", "name", "operator"))
