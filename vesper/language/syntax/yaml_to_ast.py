"""From YAML tree to AST. Reports unknown keys, wrong kinds, invalid names and malformed expressions.

`vesper.language.check` resolves names and types.
"""

from __future__ import annotations

import re
from dataclasses import replace

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import Span
from vesper.language.syntax import ast, fields, shapes
from vesper.language.syntax.fields import Fields, expect_mapping, expect_scalar
from vesper.language.syntax.shape import Shape
from vesper.language.syntax.slots import NAME, TYPE_NAME
from vesper.language.syntax.steps_to_ast import StepReader
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Tree
from vesper.values.node_id import NODE_ID_HELP, split_node_id

_EXPECTED = ("breaks", "error", "fails")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
NODE_TYPES = (
    "function",
    "data_transform",
    "http_handler",
    "event_handler",
    "scheduled_job",
    "workflow",
    "state_machine",
)


def build_ast(tree: Tree, bag: DiagnosticBag) -> ast.Document | None:
    """Return the document; None when a part of it is missing.

    An unreadable expression or type becomes `Unread`, so that its error does not hide those of the other parts.
    """
    root = expect_mapping(tree, "a node", bag)
    builder = _Builder(bag)
    document = None if root is None else builder.document(root)
    return document if bag.error_count == builder.unread_errors else None


def build_cases(tree: Tree, bag: DiagnosticBag) -> tuple[ast.TestCase, ...]:
    """Return the cases of a file that holds only `test_cases`. The list is the same as in a node."""
    root = expect_mapping(tree, "a file of cases", bag)
    return () if root is None else _Builder(bag).cases(root)


class _Builder(StepReader):
    def document(self, root: Mapping) -> ast.Document | None:
        node = Fields(root, shapes.NODE, self._bag)
        node_id = self._node_id(node.scalar("node_id"))
        type_ = self._node_type(node.scalar("type"))
        intent = node.scalar("intent")
        types: tuple[ast.RecordType | ast.NamedType, ...] = self._each(
            node.mapping("types"), self._declared_type, TYPE_NAME
        )
        inputs = self._each(node.mapping("inputs"), self._input)
        outputs = self._outputs(node.mapping("outputs"))
        constants = self._each(node.mapping("constants"), self._constant)
        functions = self._each(node.mapping("functions"), self._function)
        contracts = self._fields(node.mapping("contracts"), shapes.CONTRACTS)
        preconditions = self._clauses(contracts, "preconditions")
        postconditions = self._clauses(contracts, "postconditions")
        invariants = self._clauses(contracts, "invariants")
        machines = self._each(node.mapping("state_machines"), self._machine)
        flow = node.sequence("flow")
        steps = self._flow(flow)
        dependencies = self._metadata(node.mapping("metadata"))
        security = self._security(node.mapping("security"))
        errors, errors_span = self._errors(node.mapping("outputs"))
        policies = self._literals(node.mapping("policies"), shapes.POLICIES)
        performance = self._literals(node.mapping("performance"), shapes.PERFORMANCE)
        cases = self._cases(self._fields(node.mapping("testing"), shapes.TESTING))
        if node_id is None or type_ is None or intent is None or flow is None:
            return None
        return ast.Document(
            source=self._bag.source,
            node_id=node_id,
            type=type_,
            intent=ast.Word(" ".join(intent.text.split()), intent.span),
            inputs=inputs,
            types=types,
            outputs=outputs,
            constants=constants,
            functions=functions,
            preconditions=preconditions,
            postconditions=postconditions,
            flow=steps,
            flow_span=flow.span,
            cases=cases,
            errors=errors,
            errors_span=errors_span,
            invariants=invariants,
            machines=machines,
            dependencies=dependencies,
            security=security,
            policies=policies,
            performance=performance,
        )

    # -- small parts ------------------------------------------------------------------------------

    def _node_id(self, scalar: Scalar | None) -> ast.Word | None:
        if scalar is None:
            return None
        if split_node_id(scalar.text) is None:
            self._bag.error(Code.BAD_NAME, scalar.span, name=scalar.text, what="a node", help=NODE_ID_HELP)
        return ast.Word(scalar.text, scalar.span)

    def _node_type(self, scalar: Scalar | None) -> ast.Word | None:
        if scalar is None:
            return None
        return self._word(scalar, "type", NODE_TYPES)

    # -- declarations -----------------------------------------------------------------------------

    def _input(self, name: ast.Word, tree: Tree) -> ast.Input | None:
        if isinstance(tree, Scalar):
            scalar = expect_scalar(tree, name.text, self._bag)
            type_ = self._type(scalar)
            return None if type_ is None else ast.Input(name, type_, (), None)
        mapping = expect_mapping(tree, name.text, self._bag)
        if mapping is None:
            return None
        entry = Fields(mapping, shapes.INPUT, self._bag)
        type_ = self._type(entry.scalar("type"))
        listed = entry.sequence("constraints")
        constraints = tuple(c for item in (listed.items if listed else ()) if (c := self._constraint(item)))
        required = self._word(entry.scalar("required"), "required", ("true", "false"))
        is_required = required is None or required.text == "true"
        return None if type_ is None else ast.Input(name, type_, constraints, entry.get("default"), is_required)

    def _constraint(self, tree: Tree) -> ast.Constraint | None:
        if isinstance(tree, Scalar):
            return ast.Constraint(ast.Word(tree.text, tree.span), None, tree.span)
        if not isinstance(tree, Mapping) or len(tree.entries) != 1:
            fields.report_wrong_kind(
                tree, "constraints", "names or mappings with one key, such as `{min: 0}`", self._bag
            )
            return None
        key, value = tree.entries[0]
        bound = expect_scalar(value, key.text, self._bag)
        return None if bound is None else ast.Constraint(ast.Word(key.text, key.span), bound, key.span.to(bound.span))

    def _outputs(self, mapping: Mapping | None) -> tuple[ast.Output, ...]:
        outputs = self._fields(mapping, shapes.OUTPUTS)
        success = None if outputs is None else outputs.mapping("success")
        if success is not None and not success.entries:
            self._bag.error(Code.WRONG_KIND, success.span, key="success", expected="at least one output", found="none")
        return self._each(success, self._output)

    def _output(self, name: ast.Word, tree: Tree) -> ast.Output | None:
        type_ = self._type(expect_scalar(tree, name.text, self._bag))
        return None if type_ is None else ast.Output(name, type_)

    def _declared_type(self, name: ast.Word, tree: Tree) -> ast.RecordType | ast.NamedType | None:
        mapping = expect_mapping(tree, name.text, self._bag)
        if mapping is None:
            return None
        if any(key.text == "type" for key, _ in mapping.entries):
            return self._named_type(name, mapping)
        entry = Fields(mapping, shapes.RECORD_TYPE, self._bag)
        listed = entry.mapping("fields")
        if listed is not None and not listed.entries:
            self._bag.error(Code.WRONG_KIND, listed.span, key="fields", expected="at least one field", found="none")
        return ast.RecordType(name, self._each(listed, self._output), self._clauses(entry, "constraints"))

    def _named_type(self, name: ast.Word, mapping: Mapping) -> ast.NamedType | None:
        entry = Fields(mapping, shapes.NAMED_TYPE, self._bag)
        type_ = self._type(entry.scalar("type"))
        listed = entry.sequence("constraints")
        found = [self._constraint_or_clause(item) for item in (listed.items if listed else ())]
        constraints = tuple(each for each in found if each is not None)
        return None if type_ is None else ast.NamedType(name, type_, constraints)

    def _constraint_or_clause(self, tree: Tree) -> ast.Constraint | ast.Clause | None:
        """Read `positive`, `{max: 9}`, or a clause over `value`. A single word is a constraint."""
        if not isinstance(tree, Scalar) or NAME.fullmatch(tree.text):
            return self._constraint(tree)
        scalar = expect_scalar(tree, "constraints", self._bag)
        holds = self._expression(scalar)
        return None if scalar is None or holds is None else ast.Clause(holds, " ".join(scalar.text.split()))

    def _constant(self, name: ast.Word, tree: Tree) -> ast.Constant | None:
        mapping = expect_mapping(tree, name.text, self._bag)
        if mapping is None:
            return None
        entry = Fields(mapping, shapes.CONSTANT, self._bag)
        type_, value = self._type(entry.scalar("type")), entry.get("value")
        return None if type_ is None or value is None else ast.Constant(name, type_, value)

    def _function(self, name: ast.Word, tree: Tree) -> ast.Function | None:
        mapping = expect_mapping(tree, name.text, self._bag)
        if mapping is None:
            return None
        entry = Fields(mapping, shapes.FUNCTION, self._bag)
        listed = entry.mapping("params")
        parameters = self._each(listed, self._output)
        returns = self._type(entry.scalar("returns"))
        value = self._expression_in(entry.get("value"), "value")
        is_whole = listed is None or len(parameters) == len(listed.entries)
        return ast.Function(name, parameters, returns, value) if returns and value and is_whole else None

    # -- declarations around the flow -------------------------------------------------------------

    def _errors(self, mapping: Mapping | None) -> tuple[tuple[ast.Output, ...], Span | None]:
        found = next((value for key, value in (mapping.entries if mapping else ()) if key.text == "error"), None)
        if found is None:
            return (), None
        listed = expect_mapping(found, "error", self._bag)
        return self._each(listed, self._output), found.span

    def _machine(self, name: ast.Word, tree: Tree) -> ast.StateMachine | None:
        entry = self._fields(expect_mapping(tree, name.text, self._bag), shapes.STATE_MACHINE)
        if entry is None:
            return None
        initial = entry.scalar("initial")
        transitions = self._each(entry.mapping("transitions"), self._transitions_of)
        return None if initial is None else ast.StateMachine(name, self._name(initial, "a state"), transitions)

    def _transitions_of(self, name: ast.Word, tree: Tree) -> tuple[ast.Word, tuple[ast.Word, ...]]:
        return name, self._names(tree, name.text)

    def _metadata(self, mapping: Mapping | None) -> tuple[ast.Word, ...] | None:
        """Return the dependencies; check the structure of the other metadata, which is for readers only."""
        metadata = self._fields(mapping, shapes.METADATA)
        if metadata is None:
            return None
        metadata.scalar("author")
        created = metadata.scalar("created")
        if created is not None and not _DATE.fullmatch(created.text):
            self._bag.error(Code.BAD_LITERAL, created.span, text=created.text, expected="a date: `2026-11-15`")
        self._texts(metadata, "tags")
        return None if metadata.get("dependencies") is None else self._texts(metadata, "dependencies")

    def _texts(self, entry: Fields, key: str) -> tuple[ast.Word, ...]:
        listed = entry.sequence(key)
        scalars = [expect_scalar(item, key, self._bag) for item in (listed.items if listed else ())]
        return tuple(ast.Word(scalar.text, scalar.span) for scalar in scalars if scalar is not None)

    def _security(self, mapping: Mapping | None) -> ast.Security:
        entry = self._fields(mapping, shapes.SECURITY)
        if entry is None:
            return ast.Security()
        sensitive = self._true_or_names(entry.get("sensitive_data"), "sensitive_data")
        audit = self._word(entry.scalar("audit_level"), "audit_level", ("none", "basic", "detailed"))
        required = entry.sequence("capabilities_required")
        return ast.Security(
            self._texts(entry, "capabilities_required"),
            self._texts(entry, "denied_capabilities"),
            sensitive is True,
            () if isinstance(sensitive, bool) else sensitive,
            "none" if audit is None else audit.text,
            None if required is None else required.span,
            self._declassified(entry.mapping("declassify")),
        )

    def _declassified(self, mapping: Mapping | None) -> tuple[tuple[ast.Word, ast.Word], ...]:
        found = []
        for key, tree in mapping.entries if mapping else ():
            if not isinstance(tree, Scalar) or not tree.text.strip():
                self._bag.error(Code.RELEASE_WITHOUT_REASON, key.span, name=key.text)
                continue
            found.append((ast.Word(key.text, key.span), ast.Word(tree.text.strip(), tree.span)))
        return tuple(found)

    def _literals(self, mapping: Mapping | None, shape: Shape) -> dict[str, Tree]:
        entry = self._fields(mapping, shape)
        return {} if entry is None else {key: value for key in entry.names() if (value := entry.get(key)) is not None}

    # -- test cases -------------------------------------------------------------------------------

    def cases(self, testing: Mapping) -> tuple[ast.TestCase, ...]:
        return self._cases(Fields(testing, shapes.TESTING, self._bag))

    def _cases(self, testing: Fields | None) -> tuple[ast.TestCase, ...]:
        listed = None if testing is None else testing.sequence("test_cases")
        return tuple(case for item in (listed.items if listed else ()) if (case := self._case(item)))

    def _case(self, tree: Tree) -> ast.TestCase | None:
        mapping = expect_mapping(tree, "a test case", self._bag)
        if mapping is None:
            return None
        entry = Fields(mapping, shapes.TEST_CASE, self._bag)
        name = entry.scalar("name")
        inputs = self._words(entry.mapping("inputs"))
        expect = entry.mapping("expect")
        now = entry.scalar("now")
        listed = entry.sequence("effects")
        effects = tuple(e for item in (listed.items if listed else ()) if (e := self._case_effect(item)))
        if name is None or expect is None:
            return None
        title = ast.Word(name.text, name.span)
        special = next(((key, value) for key, value in expect.entries if key.text in _EXPECTED), None)
        case = ast.TestCase(title, inputs, self._words(expect), None, now=now, effects=effects)
        if special is None:
            return case
        key, value = special
        for other, _ in expect.entries:
            if other is not key:
                help_ = f"a case with `{key.text}` has no outputs"
                where = f"`expect` with `{key.text}`"
                self._bag.error(Code.UNKNOWN_KEY, other.span, where=where, key=other.text, help=help_)
        if key.text == "error":
            fields = expect_mapping(value, "error", self._bag)
            return None if fields is None else replace(case, expect=(), error=self._words(fields))
        scalar = expect_scalar(value, key.text, self._bag)
        if scalar is None:
            return None
        word = ast.Word(scalar.text, scalar.span)
        return replace(case, expect=(), breaks=word) if key.text == "breaks" else replace(case, expect=(), fails=word)

    def _case_effect(self, tree: Tree) -> ast.CaseEffect | None:
        mapping = expect_mapping(tree, "an effect of a case", self._bag)
        if mapping is None:
            return None
        entry = Fields(mapping, shapes.CASE_EFFECT, self._bag)
        step, fails = entry.scalar("step"), entry.scalar("fails")
        returns = entry.get("returns")
        if step is None:
            return None
        if (returns is None) == (fails is None):
            found = "neither" if returns is None else "both"
            self._bag.error(Code.WRONG_KIND, step.span, key="effects", expected="`returns` or `fails`", found=found)
            return None
        failed = None if fails is None else ast.Word(fails.text, fails.span)
        request = self._words(entry.mapping("request"))
        return ast.CaseEffect(ast.Word(step.text, step.span), request, returns, failed)

    def _words(self, mapping: Mapping | None) -> tuple[tuple[ast.Word, Tree], ...]:
        return tuple((ast.Word(key.text, key.span), value) for key, value in (mapping.entries if mapping else ()))
