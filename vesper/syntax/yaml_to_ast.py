"""YAML tree to AST: shape only. Unknown keys, wrong kinds, names that cannot be names, text that is no expression.

What a name means and whether types fit is asked in `vesper.check`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from vesper.diagnostics.codes import Code
from vesper.diagnostics.diagnostic import CheckingStopped, DiagnosticBag
from vesper.diagnostics.suggest import did_you_mean
from vesper.spec.node_id import MAX_NAME, NODE_ID_HELP, split_node_id
from vesper.syntax import ast, fields, shapes
from vesper.syntax.expression_parser import parse_expression
from vesper.syntax.fields import Fields, expect_mapping, expect_scalar
from vesper.syntax.shape import Shape
from vesper.syntax.type_parser import parse_type
from vesper.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree

MAX_ROWS = 100
MAX_EXPRESSIONS = 2_048
MAX_EXPRESSION_TEXT = 32 * 1024
RESERVED = frozenset(
    {"input", "output", "true", "false", "null", "enum", "set", "array", "map", "optional", "old", "breaks"}
)
_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_TYPE_NAME = re.compile(r"[A-Z][A-Za-z0-9]*", re.ASCII)
_Item = TypeVar("_Item")


def build_ast(tree: Tree, bag: DiagnosticBag) -> ast.Document | None:
    """The document, or None when the bag has errors."""
    root = expect_mapping(tree, "a node", bag)
    document = None if root is None else _Builder(bag).document(root)
    return None if bag.has_errors else document


class _Builder:
    def __init__(self, bag: DiagnosticBag) -> None:
        self._bag = bag
        self._expressions = 0
        self._expression_text = 0

    def document(self, root: Mapping) -> ast.Document | None:
        node = Fields(root, shapes.NODE, self._bag)
        node_id = self._node_id(node.scalar("node_id"))
        type_ = self._node_type(node.scalar("type"))
        intent = node.scalar("intent")
        types: tuple[ast.RecordType | ast.NamedType, ...] = self._each(
            node.mapping("types"), self._declared_type, _TYPE_NAME
        )
        inputs = self._each(node.mapping("inputs"), self._input)
        outputs = self._outputs(node.mapping("outputs"))
        constants = self._each(node.mapping("constants"), self._constant)
        functions = self._each(node.mapping("functions"), self._function)
        contracts = self._fields(node.mapping("contracts"), shapes.CONTRACTS)
        preconditions = self._clauses(contracts, "preconditions")
        postconditions = self._clauses(contracts, "postconditions")
        flow = node.sequence("flow")
        steps = tuple(step for item in (flow.items if flow else ()) for step in self._step(item))
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
        )

    # -- small parts ------------------------------------------------------------------------------

    def _fields(self, mapping: Mapping | None, shape: Shape) -> Fields | None:
        return None if mapping is None else Fields(mapping, shape, self._bag)

    def _each(
        self, mapping: Mapping | None, read: Callable[[ast.Word, Tree], _Item | None], pattern: re.Pattern[str] = _NAME
    ) -> tuple[_Item, ...]:
        """Read every entry of a mapping whose keys are names."""
        found = []
        for key, value in mapping.entries if mapping else ():
            name = self._name(key, "this", pattern)
            item = read(name, value)
            if item is not None:
                found.append(item)
        return tuple(found)

    def _name(self, scalar: Scalar, what: str, pattern: re.Pattern[str] = _NAME) -> ast.Word:
        name = scalar.text
        if not pattern.fullmatch(name) or len(name) > MAX_NAME or name in RESERVED:
            help_ = "names are lower-case letters, digits and underscores, and start with a letter"
            if pattern is _TYPE_NAME:
                help_ = "names of types are letters and digits, and start with a capital"
            self._bag.error(Code.BAD_NAME, scalar.span, name=name, what=what, help=help_)
        return ast.Word(name, scalar.span)

    def _node_id(self, scalar: Scalar | None) -> ast.Word | None:
        if scalar is None:
            return None
        if split_node_id(scalar.text) is None:
            self._bag.error(Code.BAD_NAME, scalar.span, name=scalar.text, what="a node", help=NODE_ID_HELP)
        return ast.Word(scalar.text, scalar.span)

    def _node_type(self, scalar: Scalar | None) -> ast.Word | None:
        if scalar is None:
            return None
        if scalar.text != "function":
            self._bag.error(Code.NOT_IN_THIS_VERSION, scalar.span, what=f"the node type `{scalar.text}`")
        return ast.Word(scalar.text, scalar.span)

    # -- declarations -----------------------------------------------------------------------------

    def _type(self, scalar: Scalar | None) -> ast.TypeText | None:
        return None if scalar is None else parse_type(self._counted(scalar), self._bag)

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
        return None if type_ is None else ast.Input(name, type_, constraints, entry.get("default"))

    def _constraint(self, tree: Tree) -> ast.Constraint | None:
        if isinstance(tree, Scalar):
            return ast.Constraint(ast.Word(tree.text, tree.span), None, tree.span)
        if not isinstance(tree, Mapping) or len(tree.entries) != 1:
            fields.wrong_kind(tree, "constraints", "names or mappings with one key, such as `{min: 0}`", self._bag)
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
        """`positive`, `{max: 9}`, or a clause over `value`. A word alone is a constraint."""
        if not isinstance(tree, Scalar) or _NAME.fullmatch(tree.text):
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

    # -- contracts and flow -----------------------------------------------------------------------

    def _expression(self, scalar: Scalar | None) -> ast.Expression | None:
        return None if scalar is None else parse_expression(self._counted(scalar), self._bag)

    def _expression_in(self, tree: Tree | None, key: str) -> ast.Expression | None:
        """An expression; where a value is computed, a mapping is a record and a list is an array."""
        if tree is None:
            return None
        if isinstance(tree, Scalar):
            return self._expression(expect_scalar(tree, key, self._bag))
        if isinstance(tree, Sequence):
            items = [self._expression_in(item, key) for item in tree.items]
            known = tuple(item for item in items if item is not None)
            return ast.ArrayLiteral(known, tree.span) if len(known) == len(items) else None
        entries = self._each(tree, self._entry)
        return ast.RecordLiteral(entries, tree.span) if len(entries) == len(tree.entries) else None

    def _entry(self, name: ast.Word, tree: Tree) -> tuple[ast.Word, ast.Expression] | None:
        value = self._expression_in(tree, name.text)
        return None if value is None else (name, value)

    def _counted(self, scalar: Scalar) -> Scalar:
        """The scalar, unless it is one too many to be read: a check has a bound in time too."""
        self._expressions += 1
        self._expression_text += scalar.span.end - scalar.span.start
        for found, limit, what in (
            (self._expressions, MAX_EXPRESSIONS, "expressions and types in this document"),
            (self._expression_text, MAX_EXPRESSION_TEXT, "characters of expressions and types in this document"),
        ):
            if found > limit:
                self._bag.error(Code.TOO_LARGE, scalar.span, limit=f"{limit:,}", what=what)
                raise CheckingStopped
        return scalar

    def _clauses(self, contracts: Fields | None, key: str) -> tuple[ast.Clause, ...]:
        listed = None if contracts is None else contracts.sequence(key)
        scalars = [expect_scalar(item, key, self._bag) for item in (listed.items if listed else ())]
        clauses = [(scalar, self._expression(scalar)) for scalar in scalars if scalar is not None]
        return tuple(ast.Clause(holds, " ".join(scalar.text.split())) for scalar, holds in clauses if holds is not None)

    def _step(self, tree: Tree) -> list[ast.Step]:
        """One step; a compute block is one for each of its names."""
        mapping = expect_mapping(tree, "a step", self._bag)
        if mapping is None:
            return []
        operation = next((value for key, value in mapping.entries if key.text == "operation"), None)
        if operation is None:
            span = mapping.entries[0][0].span if mapping.entries else mapping.span
            self._bag.error(Code.MISSING_KEY, span, where="a step", key="operation")
            return []
        scalar = expect_scalar(operation, "operation", self._bag)
        if scalar is None:
            return []
        if scalar.text in shapes.LATER_OPERATIONS:
            self._bag.error(Code.NOT_IN_THIS_VERSION, scalar.span, what=f"the operation `{scalar.text}`")
            return []
        if scalar.text not in shapes.STEPS:
            help_ = did_you_mean(scalar.text, (*shapes.STEPS, *shapes.LATER_OPERATIONS))
            self._bag.error(Code.UNKNOWN_KEY, scalar.span, where="the flow", key=scalar.text, help=help_)
            return []
        if scalar.text == "compute" and any(key.text == "compute" for key, _ in mapping.entries):
            block = Fields(mapping, shapes.COMPUTE_BLOCK, self._bag)
            return list(self._each(block.mapping("compute"), self._computed))
        entry = Fields(mapping, shapes.STEPS[scalar.text], self._bag)
        step: ast.Step | None
        if scalar.text == "return":
            step = self._return(entry, scalar)
        else:
            name_scalar = entry.scalar("step")
            name = None if name_scalar is None else self._name(name_scalar, "a step")
            if scalar.text == "compute":
                value = self._expression_in(entry.get("value"), "value")
                step = None if name is None or value is None else ast.Compute(name, value)
            else:
                step = self._decision_table(name, entry)
        return [] if step is None else [step]

    def _computed(self, name: ast.Word, tree: Tree) -> ast.Step | None:
        value = self._expression_in(tree, name.text)
        return None if value is None else ast.Compute(name, value)

    def _decision_table(self, name: ast.Word | None, entry: Fields) -> ast.DecisionTable | None:
        listed = entry.sequence("rows")
        items = listed.items if listed else ()
        if len(items) > MAX_ROWS:
            self._bag.error(Code.TOO_DEEP, items[MAX_ROWS].span, limit=MAX_ROWS, what="rows in this table")
            return None
        if listed is not None and not items:
            self._bag.error(Code.MISSING_KEY, listed.span, where="a decision table", key="otherwise")
            return None
        rows = [row for item in items[:-1] if (row := self._row(item))]
        if not items or len(rows) < len(items) - 1:
            return None
        last = expect_mapping(items[-1], "a row", self._bag)
        if last is None:
            return None
        otherwise = self._expression(Fields(last, shapes.OTHERWISE, self._bag).scalar("otherwise"))
        return None if name is None or otherwise is None else ast.DecisionTable(name, tuple(rows), otherwise)

    def _row(self, tree: Tree) -> ast.Row | None:
        mapping = expect_mapping(tree, "a row", self._bag)
        if mapping is None:
            return None
        entry = Fields(mapping, shapes.ROW, self._bag)
        when, then = self._expression(entry.scalar("when")), self._expression(entry.scalar("then"))
        return None if when is None or then is None else ast.Row(when, then)

    def _return(self, entry: Fields, operation: Scalar) -> ast.Return | None:
        success = entry.get("success")
        if isinstance(success, Sequence):
            scalars = [expect_scalar(item, "success", self._bag) for item in success.items]
            words = [self._name(scalar, "an output") for scalar in scalars if scalar]
            return ast.Return(tuple((word, ast.Name(word.text, word.span)) for word in words), operation.span)
        if success is None:
            return None
        mapping = expect_mapping(success, "success", self._bag)
        return None if mapping is None else ast.Return(self._each(mapping, self._returned), operation.span)

    def _returned(self, name: ast.Word, tree: Tree) -> tuple[ast.Word, ast.Expression] | None:
        value = self._expression(expect_scalar(tree, name.text, self._bag))
        return None if value is None else (name, value)

    # -- test cases -------------------------------------------------------------------------------

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
        if name is None or expect is None:
            return None
        breaks = next((value for key, value in expect.entries if key.text == "breaks"), None)
        title = ast.Word(name.text, name.span)
        if breaks is None:
            return ast.TestCase(title, inputs, self._words(expect), None)
        clause = expect_scalar(breaks, "breaks", self._bag)
        for key, _ in expect.entries:
            if key.text != "breaks":
                help_ = "a case that breaks a clause has no outputs"
                self._bag.error(Code.UNKNOWN_KEY, key.span, where="`expect` with `breaks`", key=key.text, help=help_)
        return None if clause is None else ast.TestCase(title, inputs, (), ast.Word(clause.text, clause.span))

    def _words(self, mapping: Mapping | None) -> tuple[tuple[ast.Word, Tree], ...]:
        return tuple((ast.Word(key.text, key.span), value) for key, value in (mapping.entries if mapping else ()))
