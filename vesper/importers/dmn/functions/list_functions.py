"""Functions of FEEL on lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vesper.importers.dmn.code import ADD, LOOSE, Code, null
from vesper.importers.dmn.functions.registry import feel_function
from vesper.importers.dmn.operators import ORDERED, equality, truth
from vesper.importers.dmn.types import ANY, BOOLEAN, NUMBER, Ty, list_of, type_error, unify, unsupported

if TYPE_CHECKING:
    from vesper.importers.dmn.translate import Translator


def items_of(build: Translator, arguments: tuple[Code, ...]) -> Code:
    """Return the list of a call: its only argument, or the list of all arguments."""
    if len(arguments) == 1:
        only = arguments[0]
        return only if only.ty.kind == "list" else build.as_list(only)
    return build.list_literal(list(arguments))


def _whole(build: Translator, items: Code, kind: str, name: str) -> Code:
    """Return a list without null items: one null item makes the call null."""
    source = build.strict(items, "items")
    have = source.ty.item
    if have.kind == "any":
        return _read_items(build, source, kind)
    if have.kind not in (kind, "never", "null"):
        raise type_error(f"`{name}` takes {kind}s, and these are {have.describe()}s")
    if not have.is_nullable:
        return source
    source = build.core(source, "items")
    item, other = build.fresh("item"), build.fresh("item")
    source = build.guarded(source, f"(EXISTS {item} IN {source.text} SATISFIES {item} IS NULL)")
    text = f"[{other} FOR {other} IN {source.text} WHERE {other} IS NOT NULL]"
    return build.combine([source], text, list_of(have.required()))


def _read_items(build: Translator, source: Code, kind: str) -> Code:
    types = {"number": "decimal", "string": "string", "boolean": "boolean"}
    if kind not in types:
        raise unsupported(f"values of any type where {kind}s are needed")
    source = build.core(source, "items")
    item, other = build.fresh("item"), build.fresh("item")
    source = build.guarded(source, f"(EXISTS {item} IN {source.text} SATISFIES kind({item}) != '{kind}')")
    return build.combine([source], f"[CAST({other} AS {types[kind]}) FOR {other} IN {source.text}]", list_of(Ty(kind)))


def _is_never(items: Code) -> bool:
    return items.ty.kind == "list" and items.ty.item.kind == "never"


@feel_function("list contains", "list, element", [None, None], BOOLEAN, takes_null=True)
def _list_contains(build: Translator, items: Code, element: Code) -> Code:
    if items.ty.kind == "null":
        return null(BOOLEAN, build.records)
    source = items_of(build, (items,))
    if element.ty.kind == "null" and not _is_never(source):
        source = build.strict(source, "items")
        item = build.fresh("item")
        test = equality(build, Code(item, source.ty.item, is_path=True), element)
        return build.combine([source], f"EXISTS {item} IN {source.at(ADD)} SATISFIES {test.text}", BOOLEAN, LOOSE)
    return build.contains(source, element)


@feel_function("count", "list", [None], NUMBER)
def _count(build: Translator, items: Code) -> Code:
    source = items_of(build, (items,))
    if _is_never(source):
        return Code("0.0", NUMBER)
    source = build.strict(source, "items")
    return build.combine([source], f"(length({source.text}) AS decimal)", NUMBER)


def _extreme(build: Translator, arguments: tuple[Code, ...], name: str) -> Code:
    source = items_of(build, arguments)
    if _is_never(source):
        return Code("null", Ty("null", is_nullable=True))
    kind = source.ty.item.kind
    kind = "number" if kind == "any" else kind
    if kind not in ORDERED:
        raise type_error(f"`{name}` takes values with an order")
    source = build.core(_whole(build, source, kind, name), "items")
    source = build.guarded(source, f"length({source.text}) == 0") if len(arguments) == 1 else source
    return build.combine([source], f"{name.upper()}({source.text})", source.ty.item)


@feel_function("min", "list, more…", [None], None)
def _min(build: Translator, *arguments: Code) -> Code:
    return _extreme(build, arguments, "min")


@feel_function("max", "list, more…", [None], None)
def _max(build: Translator, *arguments: Code) -> Code:
    return _extreme(build, arguments, "max")


def _numbers(build: Translator, arguments: tuple[Code, ...], name: str, is_empty_null: bool = True) -> Code | None:
    """Return a list of numbers with a name; None for a list that is always empty."""
    source = items_of(build, arguments)
    if _is_never(source):
        return None
    source = build.core(_whole(build, source, "number", name), "items")
    return build.guarded(source, f"length({source.text}) == 0") if is_empty_null else source


@feel_function("sum", "list, more…", [None], NUMBER)
def _sum(build: Translator, *arguments: Code) -> Code:
    source = items_of(build, arguments)
    kind = source.ty.item.kind
    if kind == "duration":
        items = build.core(_whole(build, source, kind, "sum"), "items")
        items = build.guarded(items, f"length({items.text}) == 0")
        return build.combine([items], f"SUM({items.text})", items.ty.item)
    found = _numbers(build, arguments, "sum")
    return null(NUMBER, build.records) if found is None else build.combine([found], f"SUM({found.text})", NUMBER)


@feel_function("mean", "list, more…", [None], NUMBER)
def _mean(build: Translator, *arguments: Code) -> Code:
    found = _numbers(build, arguments, "mean")
    return null(NUMBER, build.records) if found is None else build.combine([found], f"AVG({found.text})", NUMBER)


@feel_function("product", "list, more…", [None], NUMBER)
def _product(build: Translator, *arguments: Code) -> Code:
    found = _numbers(build, arguments, "product")
    if found is None:
        return null(NUMBER, build.records)
    item, product = build.fresh("item"), build.fresh("product")
    text = f"fold({product} * {item} FOR {item} IN {found.text}, {product} = 1.0)"
    return build.combine([found], text, NUMBER)


@feel_function("median", "list, more…", [None], NUMBER)
def _median(build: Translator, *arguments: Code) -> Code:
    found = _numbers(build, arguments, "median")
    return null(NUMBER, build.records) if found is None else build.combine([found], f"median({found.text})", NUMBER)


@feel_function("stddev", "list, more…", [None], NUMBER)
def _stddev(build: Translator, *arguments: Code) -> Code:
    found = _numbers(build, arguments, "stddev", is_empty_null=False)
    if found is None:
        return null(NUMBER, build.records)
    found = build.guarded(found, f"length({found.text}) < 2")
    return build.combine([found], f"stddev({found.text})", NUMBER)


@feel_function("mode", "list, more…", [None], list_of(NUMBER))
def _mode(build: Translator, *arguments: Code) -> Code:
    found = _numbers(build, arguments, "mode", is_empty_null=False)
    if found is None:
        return Code("([] AS array<decimal>)", list_of(NUMBER))
    value, other, third, fourth = (build.fresh("item") for _ in range(4))
    counts, most = build.fresh("counts"), build.fresh("most")
    tally = (
        f"[COUNT({other} FOR {other} IN {found.text} WHERE {other} == {value}) FOR {value} IN distinct({found.text})]"
    )
    text = (
        f"LET {counts} = {tally} IN IF length({counts}) == 0 THEN {found.text} ELSE LET {most} = MAX({counts}) IN "
        f"sort([{third} FOR {third} IN distinct({found.text}) "
        f"WHERE COUNT({fourth} FOR {fourth} IN {found.text} WHERE {fourth} == {third}) == {most}])"
    )
    return build.combine([found], text, list_of(NUMBER), LOOSE)


def _quantifier(build: Translator, arguments: tuple[Code, ...], name: str) -> Code:
    decisive, other = ("false", "true") if name == "all" else ("true", "false")
    source = items_of(build, arguments)
    if _is_never(source):
        return Code(other, BOOLEAN)
    source = build.strict(source, "items")
    if source.ty.item.kind == "any":
        source = build.core(source, "items")
        item, again = build.fresh("item"), build.fresh("item")
        text = (
            f"IF (EXISTS {item} IN {source.text} SATISFIES {item} == parse_json('{decisive}')) THEN {decisive} "
            f"ELSE IF (EXISTS {again} IN {source.text} SATISFIES {again} != parse_json('{other}')) "
            f"THEN null ELSE {other}"
        )
        return build.close(build.combine([source], text, BOOLEAN.optional(), LOOSE))
    if source.ty.item.kind not in ("boolean", "null"):
        raise type_error(f"`{name}` takes booleans")
    if not source.ty.item.is_nullable:
        text = f"NOT (false IN {source.at(ADD)})" if name == "all" else f"true IN {source.at(ADD)}"
        return build.combine([source], text, BOOLEAN, 4)
    source = build.core(source, "items")
    item = build.fresh("item")
    unknown = f"EXISTS {item} IN {source.text} SATISFIES {item} IS NULL"
    again = build.fresh("item")
    found_one = f"EXISTS {again} IN {source.text} SATISFIES {again} == {decisive}"
    text = f"IF ({found_one}) THEN {decisive} ELSE IF ({unknown}) THEN null ELSE {other}"
    return build.close(build.combine([source], text, BOOLEAN.optional(), LOOSE))


@feel_function("all", "list, more…", [None], BOOLEAN, takes_null=True)
def _all(build: Translator, *arguments: Code) -> Code:
    if len(arguments) == 1 and arguments[0].ty.kind == "null":
        return null(BOOLEAN, build.records)
    return _quantifier(build, arguments, "all")


@feel_function("any", "list, more…", [None], BOOLEAN, takes_null=True)
def _any(build: Translator, *arguments: Code) -> Code:
    if len(arguments) == 1 and arguments[0].ty.kind == "null":
        return null(BOOLEAN, build.records)
    return _quantifier(build, arguments, "any")


@feel_function("sublist", "list, start position, length?", [None, NUMBER, NUMBER], None)
def _sublist(build: Translator, items: Code, start: Code, length: Code | None = None) -> Code:
    source = items_of(build, (items,))
    if _is_never(source):
        return null(list_of(BOOLEAN), build.records)
    source = build.core(build.strict(source, "items"), "items")
    size = f"length({source.text})"
    at = build.core(build.strict(start, "start"), "start")
    at = build.guarded(at, f"{at.at(ADD)} == 0", f"abs({at.text}) > {size}")
    if at.is_literal:
        first = str(int(at.text) - 1) if not at.text.startswith("-") else f"({size} - {at.text[1:]})"
    else:
        first = f"(IF {at.text} > 0 THEN to_integer(trunc({at.text})) - 1 ELSE {size} + to_integer(trunc({at.text})))"
    if length is None:
        return build.combine([source, at], f"drop({source.text}, {first})", source.ty)
    count = build.core(build.strict(length, "length"), "length")
    count = build.guarded(count, f"{count.at(ADD)} < 1", f"{count.at(ADD)} > {size} - {first}")
    number = count.text if count.is_literal else f"to_integer(trunc({count.text}))"
    return build.combine([source, at, count], f"slice({source.text}, {first}, {first} + {number})", source.ty)


def _unify_item(build: Translator, items: Code, element: Code) -> tuple[Code, Code]:
    """Return a list and an item of one type."""
    source = items_of(build, (items,))
    ty = unify(source.ty.item, element.value_type)
    if ty is None:
        ty = ANY
    if ty.kind == "null":
        ty = BOOLEAN.optional()
    list_, item = build.convert(source, list_of(ty)), build.convert(element, ty)
    if list_ is None and ty.kind == "any":
        name = build.fresh("item")
        value = build.strict(source, "items")
        inner = build.to_any(Code(name, value.ty.item, is_path=True))
        list_ = build.close(build.combine([value], f"[{inner.text} FOR {name} IN {value.at(ADD)}]", list_of(ANY)))
    if list_ is None or item is None:
        raise unsupported("items of several types")
    return list_, item


@feel_function("append", "list, item, more…", [None], None, takes_null=True)
def _append(build: Translator, items: Code, *elements: Code) -> Code:
    if items.ty.kind == "null":
        return null(list_of(BOOLEAN), build.records)
    found = items
    for element in elements:
        source, item = _unify_item(build, found, element)
        source = build.strict(source, "items")
        if _is_never(source):
            found = build.list_literal([item])
        else:
            found = build.combine([source], f"append({source.text}, {item.text})", source.ty)
    return found


def _lists(build: Translator, arguments: tuple[Code, ...], name: str) -> Code:
    found: Code | None = None
    for argument in arguments:
        if argument.ty.kind == "null":
            return null(list_of(BOOLEAN), build.records)
        items = build.strict(items_of(build, (argument,)), "items")
        if found is None or _is_never(found):
            found = items
        elif not _is_never(items):
            item = unify(found.ty.item, items.ty.item) or ANY
            one, other = (_items_as(build, each, item) for each in (found, items))
            found = build.combine([one, other], f"{one.at(ADD)} + {other.at(ADD + 1)}", list_of(item), ADD)
    if found is None:
        raise type_error(f"`{name}` takes lists")
    return found


def _items_as(build: Translator, items: Code, ty: Ty) -> Code:
    if ty.kind == "any" and items.ty.item.kind != "any":
        name = build.fresh("item")
        inner = build.to_any(Code(name, items.ty.item, is_path=True))
        return build.combine([items], f"[{inner.text} FOR {name} IN {items.at(ADD)}]", list_of(ANY))
    found = build.convert(items, list_of(ty))
    if found is None:
        raise unsupported("lists of several types")
    return build.strict(found, "items")


@feel_function("concatenate", "list, more…", [None], None, takes_null=True)
def _concatenate(build: Translator, *arguments: Code) -> Code:
    return _lists(build, arguments, "concatenate")


@feel_function("union", "list, more…", [None], None, takes_null=True)
def _union(build: Translator, *arguments: Code) -> Code:
    found = _lists(build, arguments, "union")
    if _is_never(found):
        return found
    found = build.strict(found, "items")
    return build.combine([found], f"distinct({found.text})", found.ty)


@feel_function("distinct values", "list", [None], None)
def _distinct(build: Translator, items: Code) -> Code:
    source = items_of(build, (items,))
    return source if _is_never(source) else build.function("distinct", [source], source.ty.required())


@feel_function("reverse", "list", [None], None)
def _reverse(build: Translator, items: Code) -> Code:
    source = items_of(build, (items,))
    return source if _is_never(source) else build.function("reverse", [source], source.ty.required())


def _position(build: Translator, source: Code, position: Code) -> tuple[Code, str]:
    """Return a position with its guards, and the index from 0."""
    size = f"length({source.text})"
    at = build.core(build.strict(position, "position"), "position")
    at = build.guarded(at, f"{at.at(ADD)} == 0", f"abs({at.text}) > {size}")
    if at.is_literal:
        return at, (str(int(at.text) - 1) if not at.text.startswith("-") else f"{size} - {at.text[1:]}")
    return at, f"(IF {at.text} > 0 THEN to_integer(trunc({at.text})) - 1 ELSE {size} + to_integer(trunc({at.text})))"


@feel_function("insert before", "list, position, newItem", [None, NUMBER, None], None, takes_null=True)
def _insert(build: Translator, items: Code, position: Code, element: Code) -> Code:
    if items.ty.kind == "null" or _is_never(items):
        return null(list_of(BOOLEAN), build.records)
    items, item = _unify_item(build, items, element)
    source = build.core(build.strict(items, "items"), "items")
    at, index = _position(build, source, position)
    text = f"append(take({source.text}, {index}), {item.text}) + drop({source.text}, {index})"
    return build.combine([source, at], text, source.ty, ADD)


@feel_function("remove", "list, position", [None, NUMBER], None)
def _remove(build: Translator, items: Code, position: Code) -> Code:
    source = items_of(build, (items,))
    if _is_never(source):
        return null(list_of(BOOLEAN), build.records)
    source = build.core(build.strict(source, "items"), "items")
    at, index = _position(build, source, position)
    return build.combine(
        [source, at], f"take({source.text}, {index}) + drop({source.text}, {index} + 1)", source.ty, ADD
    )


@feel_function("list replace", "list, position, newItem", [None, None, None], None, takes_null=True)
def _list_replace(build: Translator, items: Code, position: Code, element: Code) -> Code:
    if items.ty.kind == "null" or position.ty.kind == "null":
        return null(list_of(BOOLEAN), build.records)
    if position.closure is not None:
        return _replace_matching(build, items, position, element)
    items, item = _unify_item(build, items, element)
    if _is_never(items):
        return null(list_of(BOOLEAN), build.records)
    source = build.core(build.strict(items, "items"), "items")
    at, index = _position(build, source, build.coerce(position, NUMBER))
    return build.combine([source, at], f"replace_at({source.text}, {index}, {item.text})", source.ty)


def _replace_matching(build: Translator, items: Code, function: Code, element: Code) -> Code:
    assert function.closure is not None
    source, new = _unify_item(build, items, element)
    if _is_never(source):
        return source
    source = build.strict(source, "items")
    name = build.fresh("item")
    value = Code(name, source.ty.item, is_path=True)
    new, steps = build.bound(new, "new_item")
    test = truth(build, build.apply(function.closure, [value, new]))
    text = f"[IF {test.text} THEN {new.text} ELSE {name} FOR {name} IN {source.at(ADD)}]"
    return build.within(steps, build.combine([source], text, source.ty))


@feel_function("index of", "list, match", [None, None], list_of(NUMBER), takes_null=True)
def _index_of(build: Translator, items: Code, element: Code) -> Code:
    if items.ty.kind == "null":
        return null(list_of(NUMBER), build.records)
    source = items_of(build, (items,))
    if _is_never(source):
        return Code("([] AS array<decimal>)", list_of(NUMBER))
    source = build.strict(source, "items")
    path, steps = build.bound(element, "match")
    entry = build.fresh("entry")
    same = build.close(equality(build, Code(f"{entry}.value", source.ty.item, is_path=True), path))
    text = f"[(({entry}.index + 1) AS decimal) FOR {entry} IN enumerate({source.text}) WHERE {same.text}]"
    return build.within(steps, build.combine([source], text, list_of(NUMBER)))


@feel_function("flatten", "list", [None], None)
def _flatten(build: Translator, items: Code) -> Code:
    source = items_of(build, (items,))
    while source.ty.item.kind == "list":
        source = build.strict(source, "items")
        if source.ty.item.is_nullable:
            raise unsupported("`flatten` of lists that may be null")
        source = build.combine([source], f"flatten({source.text})", source.ty.item)
    if source.ty.item.kind == "any":
        raise unsupported("`flatten` of values and lists together")
    return source


@feel_function("sort", "list, precedes?", [None, None], None)
def _sort(build: Translator, items: Code, precedes: Code | None = None) -> Code:
    source = items_of(build, (items,))
    if _is_never(source):
        return source
    source = build.strict(source, "items")
    if precedes is None:
        if source.ty.item.kind not in ORDERED or source.ty.item.is_nullable:
            raise type_error("`sort` without a function takes values with an order")
        return build.combine([source], f"sort({source.text})", source.ty)
    if precedes.closure is None:
        raise type_error("the second argument of `sort` is a function")
    return _sort_with(build, source, precedes)


def _sort_with(build: Translator, source: Code, precedes: Code) -> Code:
    """Return a sort by a comparison of one key of both items, or an insertion sort."""
    assert precedes.closure is not None
    left, right = build.fresh("left"), build.fresh("right")
    one, other = (Code(name, source.ty.item, is_path=True) for name in (left, right))
    test = truth(build, build.apply(precedes.closure, [one, other]))
    for symbol, direction in ((" < ", "ascending"), (" > ", "descending")):
        key, found, rest = test.text.partition(symbol)
        is_key = found and left in key and right not in key and " AND " not in test.text and " OR " not in test.text
        if is_key and rest == key.replace(left, right) and not test.text.startswith("IF"):
            return build.combine([source], f"sort_by({key} FOR {left} IN {source.at(ADD)}, {direction})", source.ty)
    sorted_, item, third = build.fresh("sorted"), build.fresh("item"), build.fresh("other")
    # An item goes before the first sorted one that it precedes.
    before = truth(
        build,
        build.apply(
            precedes.closure, [Code(item, source.ty.item, is_path=True), Code(third, source.ty.item, is_path=True)]
        ),
    )
    kept = build.fresh("kept")
    text = (
        f"fold(LET {kept} = take_while(NOT ({before.text}) FOR {third} IN {sorted_}) IN "
        f"append({kept}, {item}) + drop({sorted_}, length({kept})) "
        f"FOR {item} IN {source.at(ADD)}, {sorted_} = take({source.text}, 0))"
    )
    return build.combine([source], text, source.ty)
