"""Functions of FEEL on contexts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vesper.importers.dmn.code import Code, Guard, Let
from vesper.importers.dmn.functions.registry import feel_function
from vesper.importers.dmn.types import NULL, Ty, list_of, type_error, unsupported

if TYPE_CHECKING:
    from vesper.importers.dmn.translate import Translator


def _key(code: Code) -> str:
    """Return the text of a key, which the type of the result depends on."""
    if code.ty.kind != "string":
        raise type_error("a key is a string")
    if not code.is_literal:
        raise unsupported("a key that is known at run time only")
    return code.text[1:-1]


def _keys(code: Code) -> list[str]:
    if code.ty.kind != "list":
        return [_key(code)]
    if code.items is None and code.ty.item.kind != "never":
        raise unsupported("keys that are known at run time only")
    found = [_key(each) for each in code.items or ()]
    if not found:
        raise type_error("a path of keys has at least one")
    return found


def _entries(build: Translator, code: Code) -> dict[str, Code]:
    """Return the entries of a context that is not null, each under the path of the context."""
    if code.ty.kind != "context":
        raise type_error(f"a context is needed, and this is a {code.ty.describe()}")
    if code.fields is not None:
        return dict(code.fields)
    return {name: build.property(code, name) for name in code.ty.names}


@feel_function("get value", "m, key", [None, None], None)
def _get_value(build: Translator, context: Code, key: Code) -> Code:
    if context.ty.kind != "context":
        raise type_error("`get value` takes a context")
    found = context
    for name in _keys(key):
        if found.ty.kind not in ("context", "null"):
            raise type_error(f"a {found.ty.describe()} has no entries")
        found = build.property(found, name)
    return found


@feel_function("get entries", "m", [None], None)
def _get_entries(build: Translator, context: Code) -> Code:
    source = build.core(build.strict(context, "context"), "context")
    found = _entries(build, replace(source, steps=()))
    if not found:
        return Code("[]", list_of(Ty("never")))
    rows = [build.context_of({"key": build.string(name), "value": value}) for name, value in found.items()]
    values = [build.close(row) for row in found.values()]
    if len({each.value_type for each in values}) > 1:
        rows = [
            build.context_of({"key": build.string(name), "value": build.to_any(value)}) for name, value in found.items()
        ]
    listed = build.list_literal(rows)
    return build.combine([source], listed.text, listed.ty)


@feel_function("context put", "context, keys, value", [None, None, None], None, takes_null=True)
def _context_put_path(build: Translator, context: Code, keys: Code, value: Code) -> Code:
    if "null" in (context.ty.kind, keys.ty.kind):
        return Code("null", NULL)
    if keys.ty.kind != "list":
        raise type_error("the keys of `context put` are a list")
    return _put(build, context, _keys(keys), value)


@feel_function("context put", "context, key, value", [None, None, None], None, takes_null=True)
def _context_put(build: Translator, context: Code, key: Code, value: Code) -> Code:
    if "null" in (context.ty.kind, key.ty.kind):
        return Code("null", NULL)
    return _put(build, context, [_key(key)], value)


def _put(build: Translator, context: Code, keys: list[str], value: Code) -> Code:
    if context.ty.kind != "context":
        raise type_error("`context put` takes a context")
    source = context if context.fields is not None else build.core(build.strict(context, "context"), "context")
    found = _entries(build, replace(source, steps=()))
    if len(keys) > 1:
        inner = found.get(keys[0])
        if inner is None:
            raise type_error(f"there is no context `{keys[0]}`")
        value = _put(build, inner, keys[1:], value)
    found[keys[0]] = value
    made = build.context_of(found)
    return replace(made, steps=(*source.steps, *made.steps))


@feel_function("context merge", "contexts", [None], None)
def _context_merge(build: Translator, contexts: Code) -> Code:
    if contexts.ty.kind != "list":
        contexts = build.list_literal([contexts])
    if contexts.items is None:
        raise unsupported("`context merge` of contexts that are known at run time only")
    found: dict[str, Code] = {}
    steps: tuple[Guard | Let, ...] = ()
    for context in contexts.items:
        source = context if context.fields is not None else build.core(build.strict(context, "context"), "context")
        found.update(_entries(build, replace(source, steps=())))
        steps = (*steps, *source.steps)
    made = build.context_of(found)
    return replace(made, steps=(*steps, *made.steps))


@feel_function("context", "entries", [None], None)
def _context(build: Translator, entries: Code) -> Code:
    if entries.ty.kind == "context":
        entries = build.list_literal([entries])
    if entries.ty.kind != "list" or entries.items is None:
        raise unsupported("`context` of entries that are known at run time only")
    found: dict[str, Code] = {}
    for entry in entries.items:
        if entry.ty.kind != "context" or "key" not in entry.ty.names or entry.items is None:
            raise type_error("an entry of `context` has a key and a value")
        if "value" not in entry.ty.names:
            raise type_error("an entry of `context` has a key and a value")
        parts = dict(zip(entry.ty.names, entry.items, strict=False))
        key = _key(parts["key"])
        if key in found:
            raise type_error(f"two entries have the key `{key}`")
        found[key] = parts["value"]
    return build.context_of(found)
