"""Nodes from a model: one for each decision or service that a caller asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from vesper.importers.dmn import model as dmn
from vesper.importers.dmn.allowed import allowed_clauses
from vesper.importers.dmn.boxed import BoxedTranslator, PlacedRefusal
from vesper.importers.dmn.case_texts import MAX_CASES, Unwritable, case_entry
from vesper.importers.dmn.cases import TestCase
from vesper.importers.dmn.code import LOOSE, Closure, Code
from vesper.importers.dmn.element_texts import excerpt_lines, intent_of, mentions_null, notes
from vesper.importers.dmn.interface import given_type, outside_type, present
from vesper.importers.dmn.item_types import item_types, property_names
from vesper.importers.dmn.table_steps import table_fields
from vesper.importers.dmn.types import ANY, NUMBER, Records, Refusal, Ty, field_names, unsupported
from vesper.importers.writer import CommentedValue, InlineValue, QuotedText, node_name, string_literal, write_node

MAX_NODE_ID = 60


@dataclass(slots=True)
class Untranslated:
    """A part of the model without a translation."""

    element: str
    line: int
    category: str
    reason: str
    text: str


@dataclass(slots=True)
class ImportedNode:
    """A node: its text, and the parts of its source without a translation."""

    node_id: str
    source: str
    """Name of the decision or service."""
    kind: str
    text: str
    inputs: dict[str, tuple[str, Ty]]
    """Inside name and type of each input, by the name in the model."""
    output: str
    output_type: Ty
    problems: list[Untranslated] = field(default_factory=list)
    cases: list[str] = field(default_factory=list)
    """Names of the cases of the source that the node has."""


class NodeBuilder:
    """Builds the node of one decision or service."""

    def __init__(
        self,
        model: dmn.Model,
        cases: Sequence[TestCase] = (),
        lowered: frozenset[str] = frozenset(),
        has_null_inputs: bool = False,
    ) -> None:
        self.model = model
        self._cases = cases
        self._has_null_inputs = has_null_inputs
        self._lowered = lowered
        self.records = Records()
        self.taken: set[str] = set()
        self.translator = BoxedTranslator(self.records, self.taken)
        self.translator.types = item_types(model)
        self.translator.properties = frozenset(property_names(model))
        for name, ty in self.translator.types.items():
            inner = ty.item if ty.kind == "list" else ty
            if inner.kind == "context":
                self.records.suggest(inner, name.rpartition(".")[2])
        self.inputs: dict[str, tuple[str, Ty]] = {}
        self.clauses: list[str] = []
        self.steps: list[CommentedValue] = []
        self.functions: dict[str, CommentedValue] = {}
        self.problems: list[Untranslated] = []
        self._values: dict[tuple[str, str], Code] = {}
        self._functions: dict[tuple[str, str, tuple[Ty, ...]], tuple[str, Ty] | None] = {}
        self._overrides: dict[tuple[str, str], Code] = {}
        self._open: list[str] = []

    def build_decision(self, decision: dmn.Decision) -> ImportedNode:
        """Return the node of a decision."""
        self._note_nulls([decision])
        value = self._decision(decision)
        return self._node(decision.name, "decision", value, decision.question or decision.description)

    def build_service(self, service: dmn.Service) -> ImportedNode:
        """Return the node of a decision service: its inputs are data and decisions."""
        model = service.model
        self._note_nulls([])
        for href in service.input_decisions:
            found = model.resolve(href)
            if found is not None and isinstance(found[1], dmn.Decision):
                decision = found[1]
                ty = self._declared(decision.type_ref)
                self._overrides[(decision.model.namespace, decision.id)] = self._input(decision.name, ty, True)
        outputs = [found for href in service.outputs if (found := model.resolve(href)) is not None]
        decisions = [each for _, each in outputs if isinstance(each, dmn.Decision)]
        if not decisions:
            raise unsupported(f"the service `{service.name}` has no output decision")
        values = {each.name: self._decision(each) for each in decisions}
        if len(values) == 1:
            (value,) = values.values()
        else:
            value = self.translator.close(self.translator.context_of(values))
        return self._node(service.name, "decision service", value, "")

    def _note_nulls(self, roots: list[dmn.Decision]) -> None:
        """Note whether the logic tests for null: only then inputs other than booleans may be null."""
        self._mentions_null = False
        stack: list[dmn.Required] = list(roots)
        seen: set[int] = set()
        while stack:
            element = stack.pop()
            if id(element) in seen:
                continue
            seen.add(id(element))
            logic = element.logic if isinstance(element, dmn.Decision) else getattr(element, "function", None)
            if mentions_null(logic):
                self._mentions_null = True
            for href, _ in getattr(element, "required", ()):
                found = element.model.resolve(href)
                if found is not None:
                    stack.append(found[1])

    def _declared(self, reference: str) -> Ty:
        try:
            found = self.translator.type_of(reference)
        except Refusal:
            found = None
        return ANY if found is None else found

    def _input(self, name: str, ty: Ty, is_nullable: bool = False) -> Code:
        """Declare an input, and return its value."""
        if name not in self.inputs:
            inside = self.translator.fresh(name)
            if ty.kind != "any" and (
                is_nullable or ty.kind == "boolean" or self._mentions_null or self._has_null_inputs
            ):
                ty = ty.optional()
            self.inputs[name] = (inside, ty)
            self._values[("input", name)] = Code(inside, given_type(ty), is_path=True)
        return self._values[("input", name)]

    def _decision(self, decision: dmn.Decision) -> Code:
        """Add the step of a decision after those that it requires, and return its value."""
        key = (decision.model.namespace, decision.id)
        if key in self._overrides:
            return self._overrides[key]
        if key in self._values:
            return self._values[key]
        if decision.id in self._open:
            raise unsupported(f"the decision `{decision.name}` requires itself")
        self._open.append(decision.id)
        try:
            env = self._requirements(decision)
            found = self._table(decision, env)
            value = self._translate_decision(decision, env) if found is None else None
        finally:
            self._open.pop()
        if found is not None:
            self._values[key] = self._table_step(decision, *found)
            return self._values[key]
        assert value is not None
        if value.closure is not None or value.range is not None or value.fields is not None:
            self._values[key] = value
            return value
        name = self.translator.fresh(decision.name)
        if value.ty.kind == "null":
            value = Code("(null AS optional<json>)", ANY.optional())
        step = {"step": name, "operation": "compute", "value": value.text}
        if value.ty.kind != "error" and value.ty.kind != "never":
            step["type"] = self.records.written(value.ty)
        self.steps.append(CommentedValue(step, notes(decision)))
        self._values[key] = Code(name, value.ty, is_path=True)
        return self._values[key]

    def _table(self, decision: dmn.Decision, env: dict[str, Code]) -> tuple[dict[str, object], Ty] | None:
        """Return the fields of a decision table with rows of cells; None where an expression is needed."""
        if decision.name in self._lowered or not isinstance(decision.logic, dmn.BoxedTable):
            return None
        return self._checked_table(decision.logic, env, decision.type_ref)

    def _checked_table(
        self, box: dmn.BoxedTable, env: dict[str, Code], type_ref: str
    ) -> tuple[dict[str, object], Ty] | None:
        try:
            found = table_fields(self.translator, box, env)
            if found is None:
                return None
            fields, ty = found
            declared = self.translator.type_of(type_ref) or self.translator.type_of(box.type_ref)
            probe = Code("", ty if ty.kind != "count" else NUMBER, is_path=True)
            if declared is not None and self.translator.coerce(probe, declared).text:
                return None
        except Refusal:
            return None  # the expression of the table reports it
        if "outputs" not in fields and ty.kind != "count":
            row = ty.item if fields["hit"] in ("collect", "rule_order", "output_order") else ty
            row = row.required() if fields["hit"] in ("min", "max") else row
            rows = fields.pop("rows")
            fields |= {"type": self.records.written(row), "rows": rows}
        return fields, ty

    def _table_step(self, decision: dmn.Decision, fields: dict[str, object], ty: Ty) -> Code:
        name = self.translator.fresh(decision.name)
        step: dict[str, object] = {"step": name, "operation": "decision_table", **fields}
        if ty.kind == "count":
            self.steps.append(CommentedValue(step, notes(decision)))
            return Code(f"({name} AS decimal)", NUMBER)
        self.steps.append(CommentedValue(step, notes(decision)))
        return Code(name, ty, is_path=True)

    def _translate_decision(self, decision: dmn.Decision, env: dict[str, Code]) -> Code:
        """Return the closed value of a decision, or an expression that the check refuses."""
        try:
            code = self.translator.boxed(decision.logic, env)
            declared = self.translator.type_of(decision.type_ref)
            if declared is not None:
                code = self.translator.coerce(code, declared)
            code = self.translator.close(code)
            if code.closure is None and code.range is None and code.ty.kind not in ("null", "never"):
                self.records.written(code.ty)
        except Refusal as refusal:
            return self._list_refusal(decision.name, decision.line, refusal)
        if code.ty.kind == "list" and code.ty.item.kind == "never":
            written = self.records.written(code.ty)
            return Code(f"({code.text} AS {written})", code.ty)
        return code

    def _list_refusal(self, name: str, line: int, refusal: Refusal) -> Code:
        """List a part without a translation, and return the expression that replaces it."""
        place = refusal.line if isinstance(refusal, PlacedRefusal) else line
        text = refusal.text if isinstance(refusal, PlacedRefusal) else ""
        shown = " ".join(text.split())[:200]
        self.problems.append(Untranslated(name, place, refusal.category, refusal.reason, shown))
        reason = re.sub(r"['\"]", "`", refusal.reason)
        return Code(f"not_translated({string_literal(reason)})", Ty("error"), LOOSE)

    def _requirements(self, element: dmn.Decision | dmn.KnowledgeModel) -> dict[str, Code]:
        """Return the names that the logic of an element can use."""
        env: dict[str, Code] = {}
        imported: dict[str, dict[str, Code]] = {}
        for href, _ in element.required:
            found = element.model.resolve(href)
            if found is None:
                refusal = Refusal("unknown reference", f"the reference {href} has no element")
                self._list_refusal(element.name, element.line, refusal)
                continue
            prefix, required = found
            code = self._required(required)
            if prefix:
                imported.setdefault(prefix, {})[required.name] = code
            else:
                env[required.name] = code
        for prefix, codes in imported.items():
            env[prefix] = Code("", Ty("context"), fields=codes)
        return env

    def _required(self, element: dmn.Required) -> Code:
        match element:
            case dmn.InputData():
                is_new = element.name not in self.inputs
                value = self._input(element.name, self._declared(element.type_ref))
                if is_new:
                    self.clauses += allowed_clauses(self.translator, element.model, element.type_ref, value)
                return value
            case dmn.Decision():
                value = self._decision(element)
                if value.ty.kind == "error":
                    raise PlacedRefusal(
                        Refusal("requires another", f"the decision `{element.name}` is not translated"),
                        element.line,
                        "",
                    )
                return value
            case dmn.KnowledgeModel():
                return self._knowledge(element)
        return self._service_value(element)

    def _knowledge(self, element: dmn.KnowledgeModel) -> Code:
        """Return a knowledge model as a function of the node: one for each combination of types of its arguments."""
        function = element.function
        if function is None:
            raise unsupported(f"the knowledge model `{element.name}` has no logic")
        names = tuple(each.name for each in function.parameters)
        types = tuple(self.translator.type_of(each.type_ref) for each in function.parameters)

        def call(arguments: list[Code]) -> Code:
            return self._call(element, arguments)

        return Code("", Ty("function"), closure=Closure(names, types, call, has_names=False))

    def _call(self, element: dmn.KnowledgeModel, arguments: list[Code]) -> Code:
        function = element.function
        assert function is not None
        inner = self.translator.function_value(function, self._requirements(element))
        assert inner.closure is not None
        if any(each.closure or each.range or each.fields or each.ty.kind in ("null", "never") for each in arguments):
            return self.translator.apply(inner.closure, arguments)
        key = (element.model.namespace, element.id, tuple(each.ty for each in arguments))
        if key not in self._functions:
            self._functions[key] = None
            self._functions[key] = self._function(element, inner.closure, [each.ty for each in arguments])
        declared = self._functions[key]
        if declared is None:
            raise unsupported(f"the knowledge model `{element.name}` calls itself")
        name, returns = declared
        if not name:
            return self.translator.apply(inner.closure, arguments)
        values = [self.translator.decimal(each) for each in arguments]
        return self.translator.combine(values, f"{name}({', '.join(each.text for each in values)})", returns)

    def _function(self, element: dmn.KnowledgeModel, closure: Closure, types: list[Ty]) -> tuple[str, Ty]:
        """Declare a function for these types; an empty name where its value is no value of a node."""
        outer, self.translator.taken = self.translator.taken, {*self.functions}
        try:
            parameters = [
                Code(self.translator.fresh(name), ty, is_path=True)
                for name, ty in zip(closure.parameters, types, strict=True)
            ]
            table = self._function_table(element, closure, parameters)
            if table is not None and table[1].kind == "count":
                table = None
            found = self.translator.close(closure.call(parameters)) if table is None else Code("", table[1])
        finally:
            self.translator.taken = outer
        if table is not None:
            name = self.translator.fresh(element.name)
            written = {each.text: self.records.written(each.ty) for each in parameters}
            returns = self.records.written(table[1])
            table[0].pop("type", None)  # `returns` has it
            self.functions[name] = CommentedValue(
                {"params": InlineValue(written), "returns": returns, "table": table[0]},
                (f"Business knowledge model `{element.name}`",),
            )
            return name, table[1]
        if found.closure or found.range or found.fields or found.ty.kind in ("null", "never", "error"):
            return "", found.ty
        if found.ty.kind == "list" and found.ty.item.kind == "never":
            return "", found.ty
        name = self.translator.fresh(element.name)
        written = {each.text: self.records.written(each.ty) for each in parameters}
        function = {"params": InlineValue(written), "returns": self.records.written(found.ty), "value": found.text}
        self.functions[name] = CommentedValue(function, (f"Business knowledge model `{element.name}`",))
        return name, found.ty

    def _function_table(
        self, element: dmn.KnowledgeModel, closure: Closure, parameters: list[Code]
    ) -> tuple[dict[str, object], Ty] | None:
        """Return the table of a knowledge model; None where an expression is needed."""
        function = element.function
        assert function is not None
        if element.name in self._lowered or not isinstance(function.body, dmn.BoxedTable):
            return None
        env = {**self._requirements(element), **dict(zip(closure.parameters, parameters, strict=True))}
        return self._checked_table(function.body, env, function.type_ref or element.type_ref)

    def _service_value(self, service: dmn.Service) -> Code:
        """Return a decision service as a function: its decisions are inlined over its arguments."""
        model = service.model
        inputs = []
        for href in (*service.input_data, *service.input_decisions):
            found = model.resolve(href)
            if found is None:
                raise unsupported(f"the service `{service.name}` refers to {href}, which is no element")
            inputs.append(found[1])
        types = tuple(self.translator.type_of(getattr(each, "type_ref", "")) for each in inputs)

        def call(arguments: list[Code]) -> Code:
            return self._run_service(service, inputs, arguments)

        names = tuple(each.name for each in inputs)
        return Code("", Ty("function"), closure=Closure(names, types, call))

    def _run_service(self, service: dmn.Service, inputs: list[dmn.Required], arguments: list[Code]) -> Code:
        given = dict(zip(((each.model.namespace, each.id) for each in inputs), arguments, strict=True))
        results = {}
        for href in service.outputs:
            found = service.model.resolve(href)
            if found is None or not isinstance(found[1], dmn.Decision):
                raise unsupported(f"the service `{service.name}` refers to {href}, which is no decision")
            results[found[1].name] = self._inline_decision(found[1], given, [])
        if len(results) == 1:
            return next(iter(results.values()))
        return self.translator.context_of(results)

    def _inline_decision(self, decision: dmn.Decision, given: dict[tuple[str, str], Code], path: list[str]) -> Code:
        """Return the value of a decision over the arguments of a service."""
        key = (decision.model.namespace, decision.id)
        if key in given:
            return given[key]
        if decision.id in path or len(path) > 50:
            raise unsupported(f"the decision `{decision.name}` requires itself")
        env: dict[str, Code] = {}
        for href, _ in decision.required:
            found = decision.model.resolve(href)
            if found is None:
                raise unsupported(f"the reference {href} has no element")
            prefix, required = found
            if prefix:
                raise unsupported("a service over imported decisions")
            if (required.model.namespace, required.id) in given:
                env[required.name] = given[(required.model.namespace, required.id)]
            elif isinstance(required, dmn.Decision):
                env[required.name] = self._inline_decision(required, given, [*path, decision.id])
            elif isinstance(required, dmn.InputData):
                raise unsupported(f"the service does not have the input `{required.name}`")
            else:
                env[required.name] = self._required(required)
        code = self.translator.boxed(decision.logic, env)
        declared = self.translator.type_of(decision.type_ref)
        return code if declared is None else self.translator.coerce(code, declared)

    def _node(self, name: str, kind: str, value: Code, intent: str) -> ImportedNode:
        """Return the node whose output is a value."""
        translator = self.translator
        node_id = f"{node_name(f'{self.model.name}_{name}')[:MAX_NODE_ID].rstrip('_')}_v1"
        if value.closure is not None or value.range is not None or value.fields is not None:
            refusal = unsupported(f"the value of `{name}` is a function or a range, which no node returns")
            value = self._list_refusal(name, 0, refusal)
            self.steps.append(
                CommentedValue({"step": translator.fresh(name), "operation": "compute", "value": value.text})
            )
        output = value.text if value.is_path else translator.fresh(name)
        shown = outside_type(value.ty) if value.ty.kind != "error" else Ty("string")
        result: object = [output]
        if value.ty.kind != "error" and (shown != value.ty or not value.is_path):
            output = translator.fresh(f"{name} result")
            result = {output: translator.close(present(translator, value, shown)).text}
        type_ = "function"
        if self._reads_clock():
            # A function has no clock; a scheduled job has one, and every input of it may be absent.
            type_ = "scheduled_job"
            if not all(ty.is_nullable for _, ty in self.inputs.values()):
                refusal = unsupported("`now` and `today` beside inputs that are required")
                self._list_refusal(name, 0, refusal)
        document: dict[str, object] = {"node_id": node_id, "type": type_, "intent": intent_of(intent, name, kind)}
        inputs = {
            inside: _declared(self._written(given_type(ty)), name, inside) for name, (inside, ty) in self.inputs.items()
        }
        written = _declared(self._written(shown), name, output)
        types = self._types()
        if types:
            document["types"] = types
        if inputs:
            document["inputs"] = inputs
        document["outputs"] = {"success": {output: written}}
        functions = {**self._helpers(), **self.functions}
        if functions:
            document["functions"] = functions
        if self.clauses:
            document["contracts"] = {"preconditions": list(dict.fromkeys(self.clauses))}
        document["flow"] = [*self.steps, {"operation": "return", "success": InlineValue(result)}]
        entries, names, left = self._test_cases(output, value.ty, kind)
        if entries:
            document["testing"] = {"test_cases": entries}
        header = (f"Imported from {self.model.path.name}: {kind} `{name}`", *left, *self._listed())
        text = write_node(document, header)
        return ImportedNode(node_id, name, kind, text, self.inputs, output, value.ty, self.problems, names)

    def _test_cases(self, output: str, ty: Ty, kind: str) -> tuple[list[object], list[str], list[str]]:
        """Return the entries of cases, their names, and comments about cases that are left out."""
        entries, names, left = [], [], []
        if ty.kind == "error":
            return [], [], []
        for case in self._cases[:MAX_CASES]:
            try:
                entries.append(case_entry(case, self.inputs, output, ty, kind != "decision"))
                names.append(case.name)
            except Unwritable as reason:
                left.append(f"Case left out: {case.name}: {reason}")
        return entries, names, left

    def _reads_clock(self) -> bool:
        return any("now()" in str(step.value) for step in (*self.steps, *self.functions.values()))

    def _helpers(self) -> dict[str, object]:
        return {
            name: {"params": InlineValue(dict(parameters)), "returns": returns, "value": value}
            for name, parameters, returns, value in self.translator.helpers.values()
        }

    def _written(self, ty: Ty) -> str:
        return "string" if ty.kind == "error" else self.records.written(ty)

    def _types(self) -> dict[str, object]:
        found: dict[str, object] = {}
        for name, ty in self.records.declarations().items():
            names = field_names(ty)
            fields = {}
            for outer, inner in zip(ty.names, ty.items, strict=True):
                written = self.records.written(inner)
                fields[names[outer]] = _declared(written, outer, names[outer])
            found[name] = {"fields": fields}
        return found

    def _listed(self) -> list[str]:
        if not self.problems:
            return []
        lines = ["", "Not translated:"]
        for each in self.problems:
            lines.append(f"  line {each.line}, `{each.element}`: {each.reason}")
            lines += [f"    {line}" for line in excerpt_lines(each.text)]
        return lines


def _declared(written: str, outside: str, inside: str) -> object:
    """Return a declaration: a type, with the outside name where it differs."""
    return written if outside == inside else InlineValue({"type": written, "as": QuotedText(outside)})
