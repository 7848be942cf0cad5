"""Keys and values that can stand at a place outside of expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from vesper.language.check.constraints import BY_TYPE, PATTERN
from vesper.language.check.libraries import Library
from vesper.language.check.scope import Declared
from vesper.language.syntax import ast
from vesper.language.syntax.yaml_tree import Mapping, Scalar
from vesper.lsp.features.describe import called, declared_text
from vesper.lsp.features.knowledge import Knowledge
from vesper.lsp.features.places import Place
from vesper.lsp.features.reference import Field, Shape, error_docs, shapes, step_shapes, type_docs
from vesper.lsp.features.symbols import inner_type
from vesper.lsp.features.texts import is_cell
from vesper.lsp.view import View
from vesper.values.generated.capabilities import CAPABILITIES
from vesper.values.types import BOOLEAN, Enum, Type

_CONTAINERS = {
    "array": "array<$1>",
    "set": "set<$1>",
    "map": "map<$1, $2>",
    "optional": "optional<$1>",
    "enum": "enum[$1]",
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """One completion."""

    label: str
    kind: str
    detail: str = ""
    doc: str = ""
    insert: str | None = None
    is_snippet: bool = False
    rank: str = "1"
    """Candidates of a smaller rank come first."""
    symbol: tuple[str, str] | None = None
    """Kind and name whose description is the documentation, made on demand."""


def key_candidates(view: View, known: Knowledge | None, place: Place) -> Iterator[Candidate]:
    """Yield the keys that can stand at a place."""
    present = place.present if place.is_key else set()
    if place.is_key and place.shape is not None and place.kind == place.shape.name:
        yield from _fields(place.shape, present)
        return
    if "step" in (place.kind, place.kind.removeprefix("list<").removesuffix(">")):
        yield from _step_keys(present)
        return
    for shape in () if place.is_key else shapes().values():
        if _has_kind(place.whole_kind, shape.name):
            yield from _fields(shape, present)
    for each in _names(view, known, place):
        if each.label not in present:
            yield Candidate(each.label, each.kind, each.detail, each.doc, f"{each.label}: ", rank=each.rank)


def _has_kind(kind: str, name: str) -> bool:
    return name in kind.replace("list<", "").replace(">", "").replace("|", " ").split() and "map<" not in kind


def _fields(shape: Shape, present: set[str]) -> Iterator[Candidate]:
    for field in shape.fields.values():
        if field.name not in present and not (shape.short == field.name and shape.step in present):
            yield _field(field)


def _field(field: Field) -> Candidate:
    detail = f"{field.kind}{', required' if field.is_required else ''}"
    if len(field.values) > 1:
        insert = f"{field.name}: ${{1|{','.join(field.values)}|}}"
    elif len(field.values) == 1:
        insert = f"{field.name}: {field.values[0]}"
    elif field.kind.startswith(("list<", "map<")) and "|" not in field.kind:
        insert = f"{field.name}:\n  " + ("- $0" if field.kind.startswith("list<") else "$0")
    elif field.kind in shapes():
        insert = f"{field.name}:\n  $0"
    else:
        insert = f"{field.name}: $0"
    return Candidate(field.name, "key", detail, field.doc, insert, True, "0" if field.is_required else "1")


def _step_keys(present: set[str]) -> Iterator[Candidate]:
    """Yield the keys of a step whose operation is open: its name, and the keys that decide the operation."""
    seen = set(present)
    for shape in step_shapes():
        for key in ("step", "operation", *shape.keys, "when", "guards", "on_error"):
            field = shape.field(key)
            if field is None or key in seen:
                continue
            seen.add(key)
            decides = key in shape.keys
            doc = f"{shape.fields['operation'].doc} {field.doc}" if decides else field.doc
            if key == "operation":
                doc = "The kind of step."
            yield Candidate(
                key, "key", shape.where if decides else "a step", doc, f"{key}: ", rank="0" if decides else "1"
            )


def value_candidates(view: View, known: Knowledge | None, place: Place) -> Iterator[Candidate]:
    """Yield the values that can stand at a place."""
    field = place.field
    if place.kind == "type":
        yield from _types(known)
    elif place.path[-1:] == ("operation",):
        for step in dict.fromkeys(each.step for each in step_shapes() if each.step is not None):
            doc = next(each.fields["operation"].doc for each in step_shapes() if each.step == step)
            yield Candidate(step, "value", "", doc)
    elif field is not None and field.values:
        yield from (Candidate(each, "value", field.name) for each in field.values)
    elif place.kind == "constraint":
        for name in dict.fromkeys(name for meanings in BY_TYPE.values() for name in (*meanings, PATTERN)):
            has_bound = not any(name in each and each[name].fixed_bound is not None for each in BY_TYPE.values())
            yield Candidate(
                name, "value", "a constraint", insert=f"{{{name}: $1}}" if has_bound else name, is_snippet=True
            )
    else:
        yield from _names(view, known, place)


def _types(known: Knowledge | None) -> Iterator[Candidate]:
    for each in () if known is None else known.document.types:
        assert known is not None
        yield Candidate(each.name.text, "type", "a type", f"```yaml\n{declared_text(known, each)}\n```", rank="0")
    for name, doc in type_docs().items():
        yield Candidate(name, "type", "", doc, _CONTAINERS.get(name), name in _CONTAINERS)


# -- names of the node and of other files ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Asked:
    """A place at which names are wanted."""

    view: View
    known: Knowledge
    place: Place


def _names(view: View, known: Knowledge | None, place: Place) -> Iterator[Candidate]:
    """Yield the names that belong into a field."""
    shape, field = place.shape, place.field
    if known is None or field is None or shape is None:
        return
    if is_cell(place):
        yield from literals(_column_type(known, place))
        return
    is_value = place.kind == "literal" and not place.is_key
    if is_value and place.path[-2:-1] in (("inputs",), ("given",), ("expect",)):
        yield from literals(_declared_type(known, place.path[-1]))
    name = f"{shape.name}.{field.name}"
    if is_value and place.path[-1] != field.name and field.name != "expect":
        return
    find = _BY_FIELD.get(name) or _BY_FIELD.get(f"*.{field.name}")
    if find is not None:
        yield from find(_Asked(view, known, place))


def _declared(known: Knowledge, *kinds: str) -> Iterator[Candidate]:
    scope = None if known.checker is None else known.checker.scope
    tables = () if scope is None else (scope.names, scope.outputs, scope.errors, scope.ended)
    for table in tables:
        for each in table.values():
            if each.kind in kinds:
                yield Candidate(each.name, each.kind, str(each.type or "?"))


def _declared_type(known: Knowledge, name: str) -> Type | None:
    scope = None if known.checker is None else known.checker.scope
    found: Declared | None = None if scope is None else scope.names.get(name) or scope.outputs.get(name)
    return None if found is None else found.type


def literals(type_: Type | None) -> Iterator[Candidate]:
    """Yield the members of an enum, or the booleans."""
    inner = inner_type(type_)
    if isinstance(inner, Enum):
        yield from (Candidate(each, "member", str(inner), rank="0") for each in inner.members)
    elif inner == BOOLEAN:
        yield from (Candidate(each, "value", "boolean", rank="0") for each in ("true", "false"))


def _column_type(known: Knowledge, place: Place) -> Type | None:
    """Return the type of the column of a cell: of its expression, or of the name in scope."""
    name = place.path[-1]
    for table in known.all(ast.DecisionTable):
        if table.span.start <= place.scalar.span.start <= table.span.end:
            for column in table.columns:
                fact = None if column.name.text != name or column.value is None else known.fact(column.value)
                if fact is not None:
                    return fact.type
    return _declared_type(known, name) or next(
        (each.type for fact in known.facts for each in fact.visible if each.name == name), None
    )


def _columns(asked: _Asked) -> Iterator[Candidate]:
    for table in asked.known.all(ast.DecisionTable):
        if table.span.start <= asked.place.scalar.span.start <= table.span.end:
            yield from (Candidate(each.name.text, "input", "a column", rank="0") for each in table.columns)
    yield from _declared(asked.known, "input", "step", "constant")


def _of(*kinds: str) -> Callable[[_Asked], Iterator[Candidate]]:
    return lambda asked: _declared(asked.known, *kinds)


def _listed(names: Iterable[tuple[str, str]], kind: str = "value") -> Iterator[Candidate]:
    return (Candidate(name, kind, "", doc) for name, doc in names)


def _codes(asked: _Asked) -> Iterator[Candidate]:
    yield from _listed(error_docs().items())
    if asked.place.is_key or asked.place.kind.startswith("map<"):
        yield Candidate("any", "value", "", "Every code without a handler of its own.")


def _expected(asked: _Asked) -> Iterator[Candidate]:
    if asked.place.path[-1:] == ("fails",):
        yield from _codes(asked)
    elif asked.place.is_key or asked.place.path[-1:] == ("expect",):
        yield from _declared(asked.known, "output")
        for word, doc in (("error", "A declared error."), ("fails", "A code."), ("breaks", "The text of a clause.")):
            yield Candidate(word, "key", "", doc, rank="2")


def _capabilities(asked: _Asked) -> Iterator[Candidate]:
    yield from _listed(CAPABILITIES.items())
    for machine in asked.known.document.machines if isinstance(asked.known.document, ast.Document) else ():
        for word in ("read", "write"):
            yield Candidate(f"state.{word}.{machine.name.text}", "value", "", CAPABILITIES[f"state.{word}"])


def _files(view: View, is_library: bool) -> Iterator[Candidate]:
    for node_id, path in view.collection.ids(view.path).items():
        if path != view.path and view.collection.is_library(path) == is_library:
            yield Candidate(node_id, "node", symbol=("library" if is_library else "node", node_id))


def _nodes(asked: _Asked) -> Iterator[Candidate]:
    yield from _files(asked.view, is_library=False)


def _uses(asked: _Asked) -> Iterator[Candidate]:
    """Yield libraries, and below one of them its definitions."""
    checker, path = asked.known.checker, asked.place.path
    library = None if checker is None or len(path) < 2 else checker.callees.library(path[-1])
    if isinstance(library, Library) and not asked.place.is_key:
        yield from (Candidate(each, "value", asked.place.path[-1]) for each in library.names())
    else:
        yield from _files(asked.view, is_library=True)


def _called_inputs(asked: _Asked) -> Iterator[Candidate]:
    """Yield the inputs of the called node; in a list also, since it passes names."""
    word = asked.place.value("node", up=1 if asked.place.is_key else 0)
    found = called(asked.view, word.text) if isinstance(word, Scalar) else None
    if found is not None and found.node is not None:
        yield from (Candidate(each.name, "input", str(each.type)) for each in found.node.inputs)


def _returned(asked: _Asked) -> Iterator[Candidate]:
    """Yield the outputs; in a list of names only those that a value has."""
    names = {each.label for each in _declared(asked.known, "input", "step", "constant")}
    for each in _declared(asked.known, "output"):
        if asked.place.is_key or each.label in names or asked.place.kind.startswith("map"):
            yield each


def _machines(asked: _Asked) -> Iterator[Candidate]:
    machine = asked.place.value("machine")
    for each in asked.known.document.machines if isinstance(asked.known.document, ast.Document) else ():
        if asked.place.path[-1] == "machine":
            yield Candidate(each.name.text, "value", "a state machine")
        elif isinstance(machine, Scalar) and machine.text == each.name.text:
            states = dict.fromkeys(word.text for source, targets in each.transitions for word in (source, *targets))
            yield from (Candidate(state, "member", each.name.text) for state in states)


def _state_names(asked: _Asked) -> Iterator[Candidate]:
    state = asked.place.value("state", up=1)
    for key, _ in state.entries if isinstance(state, Mapping) else ():
        yield Candidate(key.text, "local", "state of the loop")


def _matched(asked: _Asked) -> Iterator[Candidate]:
    on = asked.place.value("on", up=1)
    fact = None if on is None else asked.known.fact(ast.Name("", on.span))
    yield from literals(None if fact is None else fact.type)


def _error_codes(asked: _Asked) -> Iterator[Candidate]:
    scope = None if asked.known.checker is None else asked.known.checker.scope
    code = None if scope is None else scope.errors.get("error_code")
    yield from literals(None if code is None else code.type)


def _requests(asked: _Asked) -> Iterator[Candidate]:
    for step in asked.known.all(ast.Step):
        if step.name is not None and isinstance(step.action, ast.EffectStep | ast.CallNode | ast.Transition):
            yield Candidate(step.name.text, "step", step.operation.text)


def _own_id(asked: _Asked) -> Iterator[Candidate]:
    yield Candidate(asked.view.path.stem, "node", "the name of the file")


_BY_FIELD: dict[str, Callable[[_Asked], Iterator[Candidate]]] = {
    "return.success": _returned, "handler.return": _returned, "test_case.inputs": _of("input"),
    "property.given": _of("input"), "twice.same except": _of("input"), "test_case.expect": _expected,
    "raise.error": _of("error"), "return.error": _of("error"), "requirement.error": _of("error"),
    "handler.return_error": _of("error"), "call_node.inputs": _called_inputs, "call_node.node": _nodes,
    "metadata.dependencies": _nodes, "loop.next": _state_names, "row.in": _columns, "*.on_error": _codes,
    "*.error_handling": _codes, "retry.on": _codes, "case_effect.fails": _codes, "*.use": _uses,
    "security.capabilities_required": _capabilities, "security.denied_capabilities": _capabilities,
    "security.sensitive_data": _of("input"), "security.declassify": _of("step", "output"), "*.machine": _machines,
    "*.to": _machines, "*.from": _machines, "http.query": _of("input"), "http.body": _of("input"),
    "http.headers": _of("input"), "http.errors": _error_codes, "queue.by": _of("input"),
    "schedule.inputs": _of("input"), "case_effect.step": _requests, "match_case.is": _matched,
    "node.node_id": _own_id, "library.library_id": _own_id, "*.bind": _of("input", "step", "constant"),
    "*.data": _of("input", "step", "constant"), "*.request": _of("input", "step", "constant"),
}  # fmt: skip
