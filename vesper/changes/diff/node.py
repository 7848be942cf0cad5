"""The whole node as entities: declarations, flow, settings, libraries and called nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace

from vesper.changes.diff.declared import Outline
from vesper.changes.diff.flow import FlowOutline
from vesper.changes.diff.forms import Names
from vesper.changes.diff.model import Entity, Group, Level, Part
from vesper.changes.diff.version import NodeVersion, Texts, WrittenLibrary, base_name
from vesper.language.http_binding import HttpBinding
from vesper.language.syntax import ast
from vesper.language.syntax.fields import Fields


def outline_of(version: NodeVersion, names: Names) -> Entity:
    """Return the node as one entity. `names` are the names that the other version has for its declarations."""
    document = version.document
    texts = Texts(version.compiled.source, version.subject)
    outline = Outline(texts, names)
    flow = FlowOutline(outline)
    outputs = frozenset(each.name.text for each in document.outputs)
    groups = {
        "inputs": outline.inputs(document.inputs),
        "outputs": outline.fields("output", document.outputs, of="output"),
        "errors": outline.fields("error field", document.errors, of="error"),
        "types": outline.types(document.types),
        "constants": outline.constants(document.constants),
        "parameters": outline.parameters(document.parameters),
        "functions": outline.functions(document.functions),
        "state machines": outline.machines(document.machines),
        "preconditions": outline.clauses("precondition", document.preconditions),
        "postconditions": outline.clauses("postcondition", document.postconditions, outputs),
        "invariants": outline.clauses("invariant", document.invariants, outputs),
        "observed values": flow.steps(document.observed),
        "steps": flow.steps(document.flow),
        "called nodes": _called_nodes(version),
        "libraries": Group(tuple(_libraries(version))),
        "settings": Group(tuple(_settings(version, outline))),
        "cases": outline.cases(document.cases),
        "properties": outline.properties(document.properties),
    }
    parts = {
        "type": outline.word(document.type),
        "intent": outline.word(document.intent, "text"),
        "name": outline.word(document.node_id, form=base_name(document.node_id.text)),
    }
    if document.dependencies is not None:
        listed = sorted(base_name(each.text) for each in document.dependencies)
        parts["dependencies"] = Part(tuple(listed), ", ".join(listed), None, level="text")
    return Entity("node", None, "node", parts, groups)


# -- called nodes and libraries ---------------------------------------------------------------------


def _called_nodes(version: NodeVersion) -> Group:
    found = []
    for each in version.called():
        node_id = each.node.node_id
        text = f"{node_id} (semantic hash {each.semantic_hash[:12]})"
        parts = {"definition": Part((node_id, each.semantic_hash), text)}
        found.append(Entity("called node", base_name(node_id), f"called node `{base_name(node_id)}`", parts, text=text))
    return Group(tuple(found))


def _libraries(version: NodeVersion) -> Iterator[Entity]:
    """Yield the used libraries, with the definitions that the node needs."""
    needed = _mentioned_words(version.document)
    closure: dict[str, set[str]] = {}
    for library in version.libraries:
        for name, definition in _definitions(library):
            closure.setdefault(name, set()).update(_mentioned_words(definition))
    waiting = list(needed)
    while waiting:
        for name in closure.get(waiting.pop(), ()):
            if name not in needed:
                needed.add(name)
                waiting.append(name)
    for library in version.libraries:
        document = library.document
        outline = Outline(Texts(library.source))
        groups = {
            "types": outline.types([each for each in document.types if each.name.text in needed]),
            "constants": outline.constants([each for each in document.constants if each.name.text in needed]),
            "parameters": outline.parameters([each for each in document.parameters if each.name.text in needed]),
            "functions": outline.functions([each for each in document.functions if each.name.text in needed]),
        }
        name = base_name(document.library_id.text)
        parts = {"version": replace(outline.word(document.library_id), level="text")}
        line = outline.texts.line(document.library_id.span)
        yield Entity("library", name, f"library `{name}`", parts, groups, line, document.library_id.text, level="text")


def _definitions(library: WrittenLibrary) -> Iterator[tuple[str, object]]:
    document = library.document
    for each in (*document.types, *document.constants, *document.parameters, *document.functions):
        yield each.name.text, each


def _mentioned_words(part: object) -> set[str]:
    """Return every word that a part of a syntax tree has: names of types, functions, constants and others."""
    found: set[str] = set()
    waiting: list[object] = [part]
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.Word | ast.Name):
            found.add(each.text)
        elif isinstance(each, ast.Cell):
            found.update(each.text.text.replace("(", " ").replace(",", " ").split())
        elif isinstance(each, tuple | list):
            waiting += each
        elif isinstance(each, dict):
            waiting += each.values()
        elif is_dataclass(each) and not isinstance(each, type):
            waiting += [getattr(each, field.name) for field in fields(each) if field.name != "source"]
    return found


# -- settings ---------------------------------------------------------------------------------------


def _settings(version: NodeVersion, outline: Outline) -> Iterator[Entity]:
    """Yield the sections that configure runs of the node: security, policies, http, schedule, queue, events."""
    document, node = version.document, version.node
    security = document.security
    yield _section("security", _security_parts(version, outline))
    line = None if security.span is None else outline.texts.line(security.span)
    for label, kind, listed in (
        ("required capabilities", "capability", node.grants.required),
        ("denied capabilities", "denied capability", node.grants.denied),
        ("sensitive inputs", "sensitive input", ("*",) if security.is_all_sensitive else node.grants.sensitive),
    ):
        yield _listed(label, kind, [_renamed(outline, kind, each) for each in listed], line)
    for label, trees in (("policies", document.policies), ("performance", document.performance)):
        parts: dict[str, Part] = {}
        for key, tree in trees.items():
            parts |= outline.tree_parts(tree, key)
        yield _section(label, parts)
    if version.compiled.http is not None:
        yield _http(version.compiled.http, outline)
    for label, given in document.work.items():
        yield Entity(label, label, f"`{label}`", _fields_parts(given, outline), text=label)


def _renamed(outline: Outline, kind: str, name: str) -> str:
    return outline.names.of("value", name) if kind == "sensitive input" else name


def _security_parts(version: NodeVersion, outline: Outline) -> dict[str, Part]:
    security = version.document.security
    audit = version.node.grants.audit
    parts = {"audit level": Part(audit, audit)}
    for name, reason in security.declassified:
        parts[f"release of {name.text}"] = replace(outline.word(reason), kind="release")
    for name, value in security.audited:
        parts[f"audit member {name.text}"] = outline.expression(value, "audit_member")
    return parts


def _http(binding: HttpBinding, outline: Outline) -> Entity:
    """Return the binding of a handler, in which defaults are filled in."""
    parts = {label: Part(str(getattr(binding, label)), str(getattr(binding, label))) for label in ("method", "path")}
    parts |= {"body": Part(binding.body, binding.body), "status": Part(binding.status, str(binding.status))}
    for each in binding.inputs:
        text = f"{each.source} {each.key}"
        parts[f"source of {outline.names.of('value', each.name)}"] = Part(
            (each.source, each.key, each.form), text, kind="source"
        )
    for code, status in binding.errors:
        parts[f"status of {code}"] = Part(status, str(status), kind="error_status")
    for name, template in binding.response_headers:
        parts[f"header {name}"] = Part(template, template, kind="response_header")
    text = ", ".join(binding.scopes)
    parts |= {"scopes": Part(frozenset(binding.scopes), text)} if binding.scopes else {}
    return Entity("http", "http", "`http`", parts, text=f"{binding.method} {binding.path}")


def _fields_parts(given: Fields, outline: Outline) -> dict[str, Part]:
    parts: dict[str, Part] = {}
    for name in given.names():
        tree = given.get(name)
        assert tree is not None, "a listed field is present"
        parts |= outline.tree_parts(tree, name)
    return parts


def _section(label: str, parts: dict[str, Part]) -> Entity:
    """Return a section that every node has, if only with defaults."""
    return Entity(label, label, f"`{label}`", parts)


def _listed(label: str, kind: str, listed: list[str], line: int | None, level: Level = "meaning") -> Entity:
    entities = tuple(Entity(kind, each, f"{kind} `{each}`", line=line, text="", level=level) for each in listed)
    return Entity(label, label, label, groups={"entries": Group(entities)})
