"""Iteration of FEEL: `for`, `some`, `every`."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from vesper.importers.dmn.code import ADD, LOOSE, Code
from vesper.importers.dmn.feel import syntax as feel
from vesper.importers.dmn.types import BOOLEAN, NEVER, NUMBER, list_of, type_error, unsupported

if TYPE_CHECKING:
    from vesper.importers.dmn.translate import Env, Translator


def source_of(build: Translator, iterator: feel.Iterator, env: Env) -> Code:
    """Return the list of an iterator, with its null items."""
    if iterator.end is not None:
        return _numbers(build, build.translate(iterator.source, env), build.translate(iterator.end, env))
    found = build.translate(iterator.source, env)
    if found.range is not None:
        parts = found.range
        if parts.low is None or parts.high is None:
            raise type_error("an iteration over a range without an end")
        return _numbers(build, parts.low, parts.high, parts.is_low_closed, parts.is_high_closed)
    if found.ty.kind == "null":
        raise type_error("an iteration over null")
    if found.ty.kind != "list":
        found = build.as_list(found)
    return build.strict(found, "items")


def _numbers(build: Translator, low: Code, high: Code, is_low_closed: bool = True, is_high_closed: bool = True) -> Code:
    """Return the whole numbers, or the days, from one end to the other, upwards or downwards."""
    if {low.ty.kind, high.ty.kind} == {"date"}:
        return _days(build, low, high)
    low, high = build.coerce(low, NUMBER), build.coerce(high, NUMBER)
    item = build.fresh("number")
    if low.is_literal and high.is_literal:
        first, last = Decimal(low.text), Decimal(high.text)
        if first != int(first) or last != int(last):
            raise unsupported("an iteration over numbers with a fraction")
        start = int(first) + (0 if is_low_closed else 1)
        stop = int(last) - (0 if is_high_closed else 1)
        inner = f"range({start}, {stop + 1})" if first <= last else f"range({start}, {stop - 1}, -1)"
        return Code(f"[{item} AS decimal FOR {item} IN {inner}]", list_of(NUMBER))
    if not is_low_closed or not is_high_closed:
        raise unsupported("an iteration over an open range of computed ends")
    low = build.core(build.decimal(build.strict(low, "start")), "start")
    high = build.core(build.decimal(build.strict(high, "stop")), "stop")
    both = build.combine([low, high], "", list_of(NUMBER))
    for each in (low, high):
        both = build.guarded(both, f"trunc({each.text}) != {each.text}")
    up = f"range(to_integer({low.text}), to_integer({high.text}) + 1)"
    down = f"range(to_integer({low.text}), to_integer({high.text}) - 1, -1)"
    inner = f"(IF {low.text} <= {high.text} THEN {up} ELSE {down})"
    return Code(f"[{item} AS decimal FOR {item} IN {inner}]", both.ty, steps=both.steps)


def _days(build: Translator, low: Code, high: Code) -> Code:
    low, high = build.core(build.strict(low, "start"), "start"), build.core(build.strict(high, "stop"), "stop")
    item = build.fresh("day")
    days = f"days_between({low.text}, {high.text})"
    up, down = f"range(0, {days} + 1)", f"range(0, {days} - 1, -1)"
    inner = f"(IF {low.text} <= {high.text} THEN {up} ELSE {down})"
    return build.combine([low, high], f"[add_days({low.text}, {item}) FOR {item} IN {inner}]", list_of(low.ty))


def iterate(build: Translator, iterators: tuple[feel.Iterator, ...], body: feel.Feel, env: Env) -> Code:
    """Return `for … return …`."""
    first, *rest = iterators
    source = source_of(build, first, env)
    if source.ty.item.kind == "never":
        return Code("[]", list_of(NEVER))
    item = build.fresh(first.name)
    inner = {**env, first.name: Code(item, source.ty.item, is_path=True)}
    if rest:
        value = build.close(iterate(build, tuple(rest), body, inner))
        if value.ty.is_nullable:
            raise unsupported("an iteration over a list that may be null")
        return build.combine([source], f"flatten([{value.text} FOR {item} IN {source.at(ADD)}])", value.ty)
    if _uses_partial(body):
        return _accumulate(build, source, item, body, inner)
    value = build.translate(body, inner)
    if value.closure is not None or value.range is not None:
        raise unsupported("a list of functions or ranges")
    value = build.close(value)
    if value.ty.kind == "null":
        value = Code("(null AS optional<boolean>)", BOOLEAN.optional())
    return build.combine([source], build._comprehension(value, item, source), list_of(value.ty))


def _uses_partial(node: object) -> bool:
    if isinstance(node, feel.Name):
        return node.name == "partial"
    if isinstance(node, tuple):
        return any(map(_uses_partial, node))
    slots = getattr(type(node), "__slots__", ())
    return any(_uses_partial(getattr(node, slot)) for slot in slots if slot not in ("at", "name"))


def _accumulate(build: Translator, source: Code, item: str, body: feel.Feel, env: Env) -> Code:
    """Return an iteration whose body uses the results so far. Their type is that of the first result."""
    ty = build.close(build.translate(body, {**env, "partial": Code("[]", list_of(NEVER))})).ty
    results = build.fresh("results")
    partial = Code(results, list_of(ty), is_path=True)
    value = build.convert(build.translate(body, {**env, "partial": partial}), ty)
    if value is None:
        ty = ty.optional()
        partial = Code(results, list_of(ty), is_path=True)
        value = build.convert(build.translate(body, {**env, "partial": partial}), ty)
    if value is None or ty.kind in ("null", "never"):
        raise unsupported("an iteration whose results have several types")
    start = f"[] AS {build.records.written(list_of(ty))}"
    text = f"fold(append({results}, {value.text}) FOR {item} IN {source.at(ADD)}, {results} = {start})"
    return build.combine([source], text, list_of(ty))


def quantified(
    build: Translator, kind: str, iterators: tuple[feel.Iterator, ...], condition: feel.Feel, env: Env
) -> Code:
    """Return `some` or `every`: the `or` or `and` of the conditions, with three values."""
    found = _conditions(build, iterators, condition, env)
    if isinstance(found, tuple):
        source, item, test = found
        word = "EXISTS" if kind == "some" else "FORALL"
        return build.combine([source], f"{word} {item} IN {source.at(ADD)} SATISFIES {test}", BOOLEAN, LOOSE)
    values = build.named(found, "conditions")
    decisive, other = ("true", "false") if kind == "some" else ("false", "true")
    item, again = build.fresh("condition"), build.fresh("condition")
    unknown = f"EXISTS {item} IN {values.text} SATISFIES {item} IS NULL"
    found_one = f"EXISTS {again} IN {values.text} SATISFIES {again} == {decisive}"
    text = f"IF ({found_one}) THEN {decisive} ELSE IF ({unknown}) THEN null ELSE {other}"
    return build.close(build.combine([values], text, BOOLEAN.optional(), LOOSE))


def _conditions(
    build: Translator, iterators: tuple[feel.Iterator, ...], condition: feel.Feel, env: Env
) -> tuple[Code, str, str] | Code:
    """Return source, name and test of one iterator whose test is never null; otherwise the list of all conditions."""
    first, *rest = iterators
    source = source_of(build, first, env)
    if source.ty.item.kind == "never":
        return (Code("[]", list_of(BOOLEAN)), build.fresh("item"), "false")
    item = build.fresh(first.name)
    inner = {**env, first.name: Code(item, source.ty.item, is_path=True)}
    if rest:
        nested = iterate(build, tuple(rest), condition, inner)
        value = build.close(nested)
        if value.ty.is_nullable:
            raise unsupported("an iteration over a list that may be null")
        flat = f"flatten([{value.text} FOR {item} IN {source.at(ADD)}])"
        found = build.combine([source], flat, list_of(value.ty.item))
        if value.ty.item.kind == "boolean" and not value.ty.item.is_nullable:
            again = build.fresh("condition")
            return found, again, again
        return found
    test = build.translate(condition, inner)
    if test.ty.kind not in ("boolean", "any"):
        raise type_error("`satisfies` needs a boolean")
    closed = build.close(build.from_any(test, BOOLEAN) if test.ty.kind == "any" else test)
    if not closed.ty.is_nullable and closed.ty.kind == "boolean":
        return source, item, closed.text
    return build.combine([source], build._comprehension(closed, item, source), list_of(BOOLEAN.optional()))
