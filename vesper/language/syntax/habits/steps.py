"""Help for steps in foreign forms: unknown fields, kinds that nothing names, and SQL in the wrong step."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from vesper.language.diagnostics.suggest import did_you_mean, single_suggestion
from vesper.language.syntax import shapes
from vesper.language.syntax.expression_slot import quote_scalar
from vesper.language.syntax.yaml_tree import Scalar, Tree

NOTHING_SAYS = (
    "nothing says what this step does: add `value:`, `rows:`, `over:`, `condition:`, `require:`, `return:` "
    "or `operation: …`"
)
_VALUE_WORDS = (
    *("formula", "expression", "expr", "calc", "calculate", "calculation", "computation", "eval", "evaluate"),
    *("assign", "equals", "exp", "output", "result"),
)
_MEANT = {
    **dict.fromkeys(_VALUE_WORDS, "value"),
    **dict.fromkeys(("if", "test"), "condition"),
    **dict.fromkeys(("rules", "decision_table"), "rows"),
    **dict.fromkeys(("assert", "check", "validate", "requires", "ensure"), "require"),
    **dict.fromkeys(("throw", "fail"), "raise"),
    **dict.fromkeys(("call", "call_node"), "node"),
}
"""Fields of no step, and the field that each stands for."""
_LOOPS = ("for", "foreach", "for_each", "each", "iterate", "loop")
_BODIES = ("do", "body", "accumulate")
_ADDRESSES = ("url", "uri", "href", "address", "base_url", "host")
_ADDRESS = re.compile(r"(?P<base>[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*)(?P<path>/[^?#]*)?(?P<query>\?.*)?")
_ITEMS = re.compile(r"(?P<item>[a-z_]\w*) +(?:in|IN|of) +(?P<all>\S.*)", re.ASCII)
_ASSIGNMENT = re.compile(r"(?P<name>[a-z_]\w*) *(?P<sign>[-+*])?= *(?P<value>[^=].*)", re.ASCII)
_COMMON = frozenset(("step", "operation", "parameters", "when", "guards", "on_error", "error_handling", "type"))
_INSERT = re.compile(
    r"\s*INSERT\s+INTO\s+(?P<table>[a-z_]\w*)\s*\((?P<columns>[\w\s,]+)\)\s*VALUES\s*\((?P<values>[^()]*)\)\s*;?\s*",
    re.IGNORECASE | re.ASCII,
)
_WRITE = re.compile(r"\s*(INSERT|UPDATE|DELETE)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StepNote:
    """Help for an unknown field of a step."""

    help: str
    meant: str | None = None
    """Field that the step is read with in its place."""
    replaces: tuple[str, ...] = ()
    """Fields that the help asks for; they are not reported as missing too."""


def note_on_step_field(where: str, key: str, value: Tree) -> StepNote | None:
    """Return the note on a field of another language in a step; None for an unknown word."""
    name, text = key.lower().replace(" ", "_").replace("-", "_"), value.text if isinstance(value, Scalar) else ""
    if name in ("elif", "elsif", "elseif", "else_if") and where in ("a step", "a conditional"):
        when = quote_scalar(text) if re.search(r"[,:#{}\[\]\"]", text) else text or "…"
        rows = f"`- {{when: {when}, then: …}}` for each case and `- {{otherwise: …}}` last"
        return StepNote(f"a conditional has two branches; for more write a table: `rows:` with {rows}")
    if name in _LOOPS and where in ("a step", "a loop"):
        return StepNote(_help_for_loop(text), replaces=("over",))
    if name in _BODIES and where in ("a step", "a loop"):
        return StepNote(_help_for_body(text))
    if name in _ADDRESSES and where in ("a step", "an API call"):
        return StepNote(help_for_address(text), replaces=("provider", "endpoint"))
    return None


def _help_for_loop(text: str) -> str:
    found = _ITEMS.fullmatch(text.strip())
    item, items = (found["item"], found["all"]) if found is not None else ("x", "items")
    return (
        f"write `over: {item} IN {items}` with `state:` and `next:`; a list of new values is one expression: "
        f"`value: '[… FOR {item} IN {items}]'`"
    )


def _help_for_body(text: str) -> str:
    found = _ASSIGNMENT.fullmatch(text.strip())
    if found is None:
        return "write `state: {total: 0}` with the start values and `next: {total: total + …}`, or a list of `steps:`"
    name, value = found["name"], found["value"]
    if found["sign"] is not None:
        value = f"{name} {found['sign']} {value}"
    value = quote_scalar(value) if re.search(r"[,:#{}\[\]\"]", value) else value
    return f"write `state: {{{name}: 0}}` with the start value and `next: {{{name}: {value}}}`"


def help_for_address(text: str, provider: str = "NAME") -> str:
    """Return the help for a whole address in a step."""
    found = _ADDRESS.match(text)
    base, path = (found["base"], found["path"] or "/") if found is not None else ("the address", "/path")
    place = f"`base_url` of `[providers.{provider}]` in vesper.toml"
    named = f"`{base}`" if found is not None else base
    query = "; what follows `?` goes to `query:`" if found is not None and found["query"] else ""
    fields = f"`endpoint: {path}`" if provider != "NAME" else f"`provider: NAME` and `endpoint: {path}`"
    return f"write {fields}; {named} goes to {place}{query}"


def is_whole_address(text: str) -> bool:
    """Return whether a text begins with a scheme and a host."""
    return _ADDRESS.match(text) is not None


def note_on_unnamed_field(key: str, value: Tree) -> StepNote | None:
    """Return the note on a field of a step whose kind nothing names; None for a field of some kind."""
    known = _fields_of_all()
    if key in ("type", "kind", "action", "op", "do", "run", "uses") and isinstance(value, Scalar):
        if value.text in shapes.STEPS:
            return StepNote("write `operation`", "operation")
    if key in known:
        return None
    note = note_on_step_field("a step", key, value)
    if note is not None:
        return note
    name = key.lower().replace("-", "_")
    meant = _MEANT.get(name) or (name if name in known else None)
    if meant is not None:
        return StepNote(f"write `{meant}`", meant)
    help_ = did_you_mean(key, known)
    return StepNote(help_ or NOTHING_SAYS, single_suggestion(help_))


def help_for_unnamed_kind(keys: tuple[str, ...]) -> str:
    """Return the help for a step without `operation`, from the kinds that have all of its fields."""
    own = [key for key in keys if key not in _COMMON]
    fits = [name for name, shape in shapes.STEPS.items() if {*own} <= {*shape.required, *shape.optional}]
    if not own or not fits or len(fits) > 4:
        return NOTHING_SAYS
    return "add " + " or ".join(f"`operation: {name}`" for name in fits)


def _fields_of_all() -> tuple[str, ...]:
    found = [*shapes.SHORT, *shapes.IMPLIED]
    for shape in shapes.STEPS.values():
        found += [*shape.required, *shape.optional]
    return tuple(dict.fromkeys(found))


def problem_of_write(sql: str, binds: Mapping[str, str]) -> tuple[str, str] | None:
    """Return problem and help for SQL in `database_query` that writes; None for other SQL."""
    found = _WRITE.match(sql)
    if found is None:
        return None
    verb = found[1].upper()
    problem = f"is {'an' if verb != 'DELETE' else 'a'} {verb}, and `database_query` only reads"
    insert = _INSERT.fullmatch(sql)
    columns = [] if insert is None else [each.strip() for each in insert["columns"].split(",")]
    values = [] if insert is None else [_value(each.strip(), binds) for each in insert["values"].split(",")]
    if insert is not None and len(columns) == len(values) and None not in values:
        data = ", ".join(f"{name}: {value}" for name, value in zip(columns, values, strict=True))
        fields = f"`operation: database_write`, `table: {insert['table']}` and `data: {{{data}}}`"
        return problem, f"write {fields} in place of `query` and `bind`"
    operation = "database_update" if verb == "UPDATE" else "database_write"
    return problem, f"write `operation: {operation}` with the same `query` and `bind`, and no `returns`"


def _value(text: str, binds: Mapping[str, str]) -> str | None:
    """Return a value of an INSERT as an expression in braces, or None."""
    if text.startswith(":") and text[1:].isidentifier():
        value = binds.get(text[1:], text[1:])
        return quote_scalar(value) if re.search(r"[,:#{}\[\]\"]", value) else value
    if re.fullmatch(r"'[^'\"\\]*'", text):
        return f'"{text}"'
    return text if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?|true|false|null", text) else None
