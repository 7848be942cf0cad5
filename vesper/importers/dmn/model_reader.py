"""Reads a DMN model from its XML, with the models that it imports."""

from __future__ import annotations

from pathlib import Path

from vesper.importers.dmn.model import (
    Boxed,
    BoxedConditional,
    BoxedContext,
    BoxedFilter,
    BoxedFunction,
    BoxedInvocation,
    BoxedIterator,
    BoxedList,
    BoxedRelation,
    BoxedTable,
    BoxedUnknown,
    Decision,
    Entry,
    InputData,
    ItemDefinition,
    KnowledgeModel,
    Literal,
    Model,
    Service,
    TableInput,
    TableOutput,
    TableRule,
)
from vesper.importers.dmn.xml_reader import Element, XmlProblem, read_xml

MODEL_NAMESPACES = "/spec/DMN/"


def read_model(path: Path) -> Model:
    """Read a model, and those beside it that it imports. Raises `XmlProblem`."""
    return _read(path, {})


def _read(path: Path, known: dict[str, Model]) -> Model:
    root = read_xml(path)
    if root.tag != "definitions" or MODEL_NAMESPACES not in root.namespace:
        raise XmlProblem(f"{path.as_posix()} is no DMN model: its root is `{root.tag}`, not `definitions` of DMN")
    model = Model(root.get("name") or path.stem, root.get("namespace"), path)
    known[model.namespace] = model
    _read_imports(root, model, known)
    for element in root.children:
        _read_top(element, model)
    return model


def _read_imports(root: Element, model: Model, known: dict[str, Model]) -> None:
    for element in root.all("import"):
        namespace = element.get("namespace")
        if MODEL_NAMESPACES not in element.get("importType"):
            model.problems.append((f"import {element.get('name')}", element.line, "imports no DMN model"))
            continue
        found = known.get(namespace) or _beside(model.path, namespace, known)
        if found is None:
            reason = f"no file beside {model.path.name} has the namespace {namespace}"
            model.problems.append((f"import {element.get('name')}", element.line, reason))
        else:
            model.imports[element.get("name")] = found


def _beside(path: Path, namespace: str, known: dict[str, Model]) -> Model | None:
    """Find the model of a namespace among the files of the folder."""
    for other in sorted(path.parent.glob("*.dmn"))[:200]:
        if other == path:
            continue
        try:
            root = read_xml(other)
        except XmlProblem:
            continue
        if root.get("namespace") == namespace:
            return _read(other, known)
    return None


def _read_top(element: Element, model: Model) -> None:
    name, line = element.get("name"), element.line
    identifier = element.get("id") or name
    variable = element.first("variable")
    type_ref = variable.get("typeRef") if variable is not None else ""
    match element.tag:
        case "itemDefinition":
            model.items[name] = _item(element)
        case "inputData":
            model.inputs[identifier] = InputData(identifier, name, type_ref, line, model)
        case "decision":
            required = _required(element, "requiredInput", "requiredDecision", "requiredKnowledge")
            logic = _logic(element, ("variable", "description", "question", "allowedAnswers", "extensionElements"))
            model.decisions[identifier] = Decision(
                identifier, name, type_ref, logic, required, _text(element, "question"),
                _text(element, "description"), line, model,
            )  # fmt: skip
        case "businessKnowledgeModel":
            encapsulated = element.first("encapsulatedLogic")
            function = None if encapsulated is None else _function(encapsulated)
            required = _required(element, "requiredKnowledge")
            model.knowledge[identifier] = KnowledgeModel(identifier, name, function, type_ref, required, line, model)
        case "decisionService":
            outputs, inner, decisions, data = (
                [each.get("href") for each in element.all(tag)]
                for tag in ("outputDecision", "encapsulatedDecision", "inputDecision", "inputData")
            )
            model.services[identifier] = Service(
                identifier, name, type_ref, outputs, inner, decisions, data, line, model
            )
        case _:
            pass  # diagrams, groups, annotations, authorities: no part of the logic


def _text(element: Element, tag: str) -> str:
    found = element.first(tag)
    return "" if found is None else " ".join(found.text.split())


def _required(element: Element, *tags: str) -> list[tuple[str, str]]:
    found = []
    for requirement in element.children:
        if requirement.tag in ("informationRequirement", "knowledgeRequirement"):
            found += [(each.get("href"), each.tag) for each in requirement.children if each.tag in tags]
    return found


def _item(element: Element) -> ItemDefinition:
    type_ref = element.first("typeRef")
    allowed = element.first("allowedValues") or element.first("typeConstraint")
    text = None if allowed is None else allowed.first("text")
    return ItemDefinition(
        element.get("name"),
        element.get("typeRef") if type_ref is None else type_ref.text.strip(),
        element.get("isCollection") == "true",
        [_item(each) for each in element.all("itemComponent")],
        "" if text is None else text.text.strip(),
        element.line,
        element.first("functionItem") is not None,
    )


_LOGIC = (
    "literalExpression", "decisionTable", "context", "invocation", "list", "relation", "functionDefinition",
    "conditional", "filter", "for", "some", "every",
)  # fmt: skip
_OTHER = (
    "informationRequirement", "knowledgeRequirement", "authorityRequirement", "supportedObjective",
    "impactedPerformanceIndicator", "decisionMaker", "decisionOwner", "usingProcess", "usingTask",
    "formalParameter", "parameter", "binding",
)  # fmt: skip


def _logic(element: Element | None, ignored: tuple[str, ...] = ()) -> Boxed | None:
    """Return the boxed expression among the children."""
    if element is None:
        return None
    for child in element.children:
        if child.tag in _LOGIC:
            return read_boxed(child)
    for child in element.children:
        if child.tag not in (*ignored, *_OTHER, "variable", "description", "extensionElements"):
            return BoxedUnknown(child.tag, child.get("typeRef"), child.line)
    return None


def _literal(element: Element | None, type_ref: str = "") -> Literal:
    if element is None:
        return Literal("", type_ref, 0)
    text = element.first("text")
    line = element.line if text is None else text.line
    found = element.get("typeRef") or type_ref
    return Literal("" if text is None else text.text, found, line, element.get("expressionLanguage"))


def read_boxed(element: Element) -> Boxed:
    """Read an expression element."""
    line, type_ref = element.line, element.get("typeRef")
    match element.tag:
        case "literalExpression":
            return _literal(element)
        case "context":
            return BoxedContext([_context_entry(each) for each in element.all("contextEntry")], type_ref, line)
        case "invocation":
            return BoxedInvocation(_logic(element), [_binding(each) for each in element.all("binding")], type_ref, line)
        case "list":
            return BoxedList([read_boxed(each) for each in element.children if each.tag in _LOGIC], type_ref, line)
        case "relation":
            columns = [Entry(each.get("name"), each.get("typeRef"), None, each.line) for each in element.all("column")]
            rows: list[list[Boxed | None]] = [
                [read_boxed(each) for each in row.children if each.tag in _LOGIC] for row in element.all("row")
            ]
            return BoxedRelation(columns, rows, type_ref, line)
        case "functionDefinition":
            return _function(element)
        case "conditional":
            condition, then, otherwise = (_logic(element.first(tag)) for tag in ("if", "then", "else"))
            return BoxedConditional(condition, then, otherwise, type_ref, line)
        case "filter":
            return BoxedFilter(_logic(element.first("in")), _logic(element.first("match")), type_ref, line)
        case "for" | "some" | "every":
            body = _logic(element.first("return", "satisfies"))
            variable = element.get("iteratorVariable")
            return BoxedIterator(element.tag, variable, _logic(element.first("in")), body, type_ref, line)
        case "decisionTable":
            return _table(element)
    return BoxedUnknown(element.tag, type_ref, line)


def _context_entry(element: Element) -> Entry:
    variable = element.first("variable")
    name, type_ref = ("", "") if variable is None else (variable.get("name"), variable.get("typeRef"))
    return Entry(name, type_ref, _logic(element), element.line)


def _binding(element: Element) -> Entry:
    parameter = element.first("parameter")
    name, type_ref = ("", "") if parameter is None else (parameter.get("name"), parameter.get("typeRef"))
    return Entry(name, type_ref, _logic(element), element.line)


def _function(element: Element) -> BoxedFunction:
    parameters = [
        Entry(each.get("name"), each.get("typeRef"), None, each.line) for each in element.all("formalParameter")
    ]
    return BoxedFunction(parameters, _logic(element), element.get("kind", "FEEL"), element.get("typeRef"), element.line)


def _table(element: Element) -> BoxedTable:
    inputs = []
    for column in element.all("input"):
        expression, values = column.first("inputExpression"), column.first("inputValues")
        inputs.append(TableInput(column.get("label"), _literal(expression), _literal(values).text.strip(), column.line))
    outputs = []
    for column in element.all("output"):
        values, default = column.first("outputValues"), column.first("defaultOutputEntry")
        outputs.append(
            TableOutput(
                column.get("name"),
                column.get("label"),
                column.get("typeRef"),
                _literal(values).text.strip(),
                None if default is None else _literal(default, column.get("typeRef")),
                column.line,
            )
        )
    rules = []
    for rule in element.all("rule"):
        annotations = [_text(each, "text") for each in rule.all("annotationEntry")]
        cells = [_literal(each) for each in rule.all("inputEntry")]
        rules.append(TableRule(cells, [_literal(each) for each in rule.all("outputEntry")], annotations, rule.line))
    return BoxedTable(
        element.get("hitPolicy") or "UNIQUE", element.get("aggregation"), inputs, outputs,
        [each.get("name") for each in element.all("annotation")], rules, element.get("typeRef"), element.line,
    )  # fmt: skip
