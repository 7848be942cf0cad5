"""From YAML tree to AST. Reports unknown keys, wrong kinds, invalid names and malformed expressions.

`vesper.language.check` resolves names and types.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import Span
from vesper.language.syntax import ast, case_ast, fields, library_ast, shapes
from vesper.language.syntax.agents import agent_ast
from vesper.language.syntax.agents.agent_to_ast import AgentReader
from vesper.language.syntax.fields import Fields, expect_mapping, expect_scalar, expect_sequence, report_wrong_kind
from vesper.language.syntax.habits.lookup import known_field
from vesper.language.syntax.http_field import read_http
from vesper.language.syntax.shape import Shape
from vesper.language.syntax.slots import NAME, TYPE_NAME
from vesper.language.syntax.supervision.document import SUPERVISOR, is_supervisor, supervisor_document
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree
from vesper.values.model import accept
from vesper.values.node_id import NODE_ID_HELP, split_node_id
from vesper.values.outside_names import OUTSIDE_NAME_HELP, is_outside_name
from vesper.values.problem import ValueProblem
from vesper.values.types import TIMESTAMP

_Declared = TypeVar("_Declared", ast.Input, ast.Output)
_EXPECTED = ("breaks", "error", "fails")
_EFFECTS_HELP = "`effects` is a list with one entry for each request: write `- {step: NAME, returns: …}`"
_NO_ERROR_HELP = (
    "a declared error is `{error: {error_code: CODE}}`, a broken clause `{breaks: CLAUSE}` with its text, "
    "a failure `{fails: CODE}`"
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
NODE_TYPES = (
    "function",
    "data_transform",
    "http_handler",
    "event_handler",
    "scheduled_job",
    "workflow",
    "state_machine",
    "agent",
    SUPERVISOR,
)


def _id_help(text: str) -> str:
    """Return the help for an invalid id. It corrects case, separators and version if that gives a valid id."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+", "_", text).strip("_").lower()
    versioned = re.fullmatch(r"(.*?)(?:[_.\- ]+[vV]?|[vV])([1-9][0-9]*)(?:\.[0-9]+)*", text)
    numbered = "" if versioned is None else re.sub(r"[^a-z0-9]+", "_", f"{versioned[1].lower()}_v{versioned[2]}")
    for meant in (snake, numbered, f"{snake}_v1"):
        if split_node_id(meant) is not None:
            odd = "".join(dict.fromkeys(re.findall(r"[^A-Za-z0-9_]", text)))
            wrong = ["a name is in lower case"] if text != text.lower() else []
            wrong += [f"a name has no `{odd[0]}`"] if odd else []
            wrong += ["`_v1` is its version"] if meant.endswith("_v1") and not text.endswith("1") else []
            return f"write `{meant}`: {', and '.join(wrong) or 'a name in lower case, and a version'}"
    return NODE_ID_HELP


def _is_moment(text: str) -> bool:
    """Return whether a text is a date or a timestamp."""
    if _DATE.fullmatch(text):
        return True
    try:
        accept(TIMESTAMP, text)
    except ValueProblem:
        return False
    return True


def build_ast(tree: Tree, bag: DiagnosticBag, is_partial: bool = False) -> ast.Document | None:
    """Return the document.

    None if a part is missing, unless `is_partial`. An unreadable expression or type becomes `Unread`, so that its error
    does not hide those of the other parts.
    """
    root = expect_mapping(tree, "a node", bag)
    builder = _Builder(bag)
    known = (*shapes.NODE.required, *shapes.NODE.optional, "agent")
    if (
        root is not None
        and root.entries
        and not any(known_field("a node", k.text, known) or k.text in known for k, _ in root.entries)
    ):
        help_ = "a node begins with `node_id:`; `vesper new NAME` writes one to start from"
        bag.error(Code.MISSING_KEY, root.entries[0][0].span, where="a node", key="node_id", help=help_)
        return None
    document = None if root is None else builder.document(root)
    return document if is_partial or bag.error_count == builder.unread_errors else None


def build_partial_ast(tree: Tree, bag: DiagnosticBag) -> ast.Document | None:
    """Return the readable parts of a faulty file's document. The bag has the errors of the other parts."""
    return _Builder(bag).document(tree, is_partial=True) if isinstance(tree, Mapping) else None


def is_library(tree: Tree | None) -> bool:
    """Return whether a document declares a library."""
    return isinstance(tree, Mapping) and any(key.text == "library_id" for key, _ in tree.entries)


def build_library(tree: Tree, bag: DiagnosticBag, is_partial: bool = False) -> library_ast.Library | None:
    """Return the library. None if a part is missing, unless `is_partial`."""
    root = expect_mapping(tree, "a library", bag)
    builder = _Builder(bag)
    library = None if root is None else builder.library(root)
    return library if is_partial or bag.error_count == builder.unread_errors else None


_WORK = {"schedule": shapes.SCHEDULE, "queue": shapes.QUEUE, "events": shapes.EVENTS}


def build_overlay(tree: Tree, bag: DiagnosticBag) -> library_ast.OverlayEntries:
    """Return the entries of an overlay by the name of their parameter."""
    root = expect_mapping(tree, "an overlay", bag)
    return () if root is None else _Builder(bag).overlay(root)


def build_cases(tree: Tree, bag: DiagnosticBag) -> tuple[case_ast.TestCase, ...]:
    """Return the cases of a file with only `test_cases`. The list has the form that it has in a node."""
    root = expect_mapping(tree, "a file of cases", bag)
    return () if root is None else _Builder(bag).cases(root)


class _Builder(AgentReader):
    def document(self, root: Mapping, is_partial: bool = False) -> ast.Document | None:
        if is_supervisor(root):
            return self._supervisor(root)
        node = Fields(root, _shape_of(root), self._bag)
        node_id = self._node_id(node.scalar("node_id"))
        type_ = self._node_type(node.scalar("type"))
        intent = node.scalar("intent")
        uses = self._uses(node)
        types = self._types(node)
        inputs = _with_flags(self._read_each(node.mapping("inputs"), self._input), _flag_input)
        outputs = self._outputs(node.mapping("outputs"))
        constants = self._read_each(node.mapping("constants"), self._constant)
        parameters = self._read_each(node.mapping("parameters"), self._parameter)
        functions = self._read_each(node.mapping("functions"), self._function)
        tables = self._read_each(node.mapping("tables"), self._table)
        contracts = self._fields(node.mapping("contracts"), shapes.CONTRACTS)
        preconditions = self._clauses(contracts, "preconditions")
        postconditions = self._clauses(contracts, "postconditions")
        invariants = self._clauses(contracts, "invariants")
        observed = self._read_each(None if contracts is None else contracts.mapping("observe"), self._observed_step)
        machines = self._read_each(node.mapping("state_machines"), self._machine)
        agent = self._agent(node.mapping("agent"))
        flow = node.sequence("flow") if agent is None else Sequence((), agent.span)
        steps = self._flow(flow)
        if agent is not None and outputs:
            types = (*types, ast.RecordType(ast.Word(agent_ast.ANSWER_TYPE, agent.span), outputs, ()))
        dependencies = self._metadata(node.mapping("metadata"))
        security = self._security(node.mapping("security"))
        errors, errors_span = self._errors(node.mapping("outputs"))
        policies = self._literals(node.mapping("policies"), shapes.POLICIES)
        for key, section in agent.policies.items() if agent is not None else ():
            if policies.setdefault(key, section) is not section:
                self._bag.error(Code.DUPLICATE_KEY, section.span, key=key)
        performance = self._literals(node.mapping("performance"), shapes.PERFORMANCE)
        testing = self._fields(node.mapping("testing"), shapes.TESTING)
        cases, properties = self._cases(testing), self._properties(testing)
        parallel = self._word(node.scalar("parallel"), "parallel", ("auto",))
        request = node.mapping("http")
        http = None if request is None else read_http(request, self._bag)
        work = {key: self._fields(node.mapping(key), shape) for key, shape in _WORK.items() if node.get(key)}
        if is_partial:  # a workflow may use every operation and the clock
            missing = ast.Word("", root.span)
            node_id, type_ = node_id or missing, type_ or ast.Word("workflow", root.span)
            intent, flow = intent or Scalar("", "", root.span), flow or Sequence((), root.span)
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
            # A function or table can use those above it, in the order of the file.
            functions=tuple(sorted((*functions, *tables), key=lambda each: each.name.span.start)),
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
            properties=properties,
            observed=observed,
            uses=uses,
            parameters=parameters,
            http=http,
            parallel=parallel,
            work={key: entry for key, entry in work.items() if entry is not None},
            agent=agent,
        )

    def _supervisor(self, root: Mapping) -> ast.Document | None:
        node = Fields(root, shapes.SUPERVISOR_NODE, self._bag)
        node_id, intent = self._node_id(node.scalar("node_id")), node.scalar("intent")
        self._metadata(node.mapping("metadata"))
        if node_id is None or intent is None or node.get("children") is None:
            return None
        purpose = ast.Word(" ".join(intent.text.split()), intent.span)
        return supervisor_document(self._bag.source, node_id, purpose, node)

    def _observed_step(self, name: ast.Word, tree: Tree) -> ast.Step | None:
        """Read a step of `observe`. Its name is the key, and it is always executed."""
        steps = self._step(tree)
        if not steps:
            return None
        (step, *more) = steps
        problem = (
            "an effect that reads, such as `database_query`"
            if more or not isinstance(step.action, ast.EffectStep)
            else "a read without `step`, `when` and `guards`"
            if step.name is not None or step.conditions
            else None
        )
        if problem is not None:
            self._bag.error(Code.WRONG_KIND, name.span, key=name.text, expected=problem, found="another step")
            return None
        return replace(step, name=name)

    def library(self, root: Mapping) -> library_ast.Library | None:
        fields = Fields(root, shapes.LIBRARY, self._bag)
        library_id = self._node_id(fields.scalar("library_id"))
        intent = fields.scalar("intent")
        uses = self._uses(fields)
        types = self._types(fields)
        constants = self._read_each(fields.mapping("constants"), self._constant)
        parameters = self._read_each(fields.mapping("parameters"), self._parameter)
        functions = self._read_each(fields.mapping("functions"), self._function)
        tables = self._read_each(fields.mapping("tables"), self._table)
        if library_id is None or intent is None:
            return None
        purpose = ast.Word(" ".join(intent.text.split()), intent.span)
        ordered = tuple(sorted((*functions, *tables), key=lambda each: each.name.span.start))
        return library_ast.Library(self._bag.source, library_id, purpose, uses, types, constants, parameters, ordered)

    def overlay(self, root: Mapping) -> library_ast.OverlayEntries:
        listed = Fields(root, shapes.OVERLAY, self._bag).mapping("parameters")
        found = []
        for key, tree in listed.entries if listed else ():
            dates = expect_mapping(tree, key.text, self._bag)
            if dates is not None:
                found.append((ast.Word(key.text, key.span), tuple(self._since(*each) for each in dates.entries)))
        return tuple(found)

    # -- small parts ------------------------------------------------------------------------------

    def _node_id(self, scalar: Scalar | None) -> ast.Word | None:
        if scalar is None:
            return None
        if split_node_id(scalar.text) is None:
            self._bag.error(Code.BAD_NAME, scalar.span, name=scalar.text, what="a node", help=_id_help(scalar.text))
            self.unread_errors += 1
        return ast.Word(scalar.text, scalar.span)

    def _node_type(self, scalar: Scalar | None) -> ast.Word | None:
        if scalar is None:
            return None
        return self._word(scalar, "type", NODE_TYPES)

    # -- declarations -----------------------------------------------------------------------------

    def _types(self, fields: Fields) -> tuple[ast.RecordType | ast.NamedType, ...]:
        types: tuple[ast.RecordType | ast.NamedType, ...] = self._read_each(
            fields.mapping("types"), self._declared_type, TYPE_NAME
        )
        return types

    def _uses(self, fields: Fields) -> tuple[library_ast.Use, ...]:
        """Read `use`: a list of libraries, or the names taken from each."""
        tree = fields.get("use")
        if tree is None:
            return ()
        if isinstance(tree, Mapping):
            named = [(key, expect_sequence(value, key.text, self._bag)) for key, value in tree.entries]
            return tuple(
                library_ast.Use(ast.Word(key.text, key.span), self._taken_names(listed))
                for key, listed in named
                if listed
            )
        listed = fields.sequence("use")
        scalars = [expect_scalar(item, "use", self._bag) for item in (listed.items if listed else ())]
        return tuple(library_ast.Use(ast.Word(each.text, each.span), None) for each in scalars if each is not None)

    def _taken_names(self, listed: Sequence) -> tuple[ast.Word, ...]:
        scalars = [expect_scalar(item, "use", self._bag) for item in listed.items]
        return tuple(ast.Word(each.text, each.span) for each in scalars if each is not None)

    def _parameter(self, name: ast.Word, tree: Tree) -> library_ast.Parameter | None:
        mapping = expect_mapping(tree, name.text, self._bag)
        if mapping is None:
            return None
        entry = Fields(mapping, shapes.PARAMETER, self._bag)
        type_ = self._type(entry.scalar("type"))
        scale = self._word(entry.scalar("scale"), "scale", ("marginal", "single_amount"))
        unit, reference = entry.scalar("unit"), entry.scalar("reference")
        since = entry.mapping("since")
        if since is None:
            return None
        if (entry.get("type") is None) == (entry.get("scale") is None):
            found = "neither" if entry.get("type") is None else "both"
            self._bag.error(Code.WRONG_KIND, name.span, key=name.text, expected="`type` or `scale`", found=found)
            return None
        if not since.entries:
            self._bag.error(Code.WRONG_KIND, since.span, key="since", expected="at least one date", found="none")
        return library_ast.Parameter(
            name, type_, None if scale is None else scale.text, None if unit is None else unit.text,
            None if reference is None else reference.text, tuple(self._since(*each) for each in since.entries),
        )  # fmt: skip

    def _since(self, key: Scalar, tree: Tree) -> library_ast.ParameterEntry:
        """Read an entry of `since`.

        A mapping of only `value` and `reference` is a value with its reference; any other is the value itself.
        """
        word = ast.Word(key.text, key.span)
        if not isinstance(tree, Mapping) or {each.text for each, _ in tree.entries} - {"value", "reference"}:
            return library_ast.ParameterEntry(word, tree, None)
        entry = Fields(tree, shapes.PARAMETER_ENTRY, self._bag)
        reference = entry.scalar("reference")
        found = None if reference is None else ast.Word(reference.text, reference.span)
        return library_ast.ParameterEntry(word, entry.get("value") or tree, found)

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
        outside, flag = self._outside_name(entry.scalar("as")), self._flag(entry)
        default = entry.get("default")
        return None if type_ is None else ast.Input(name, type_, constraints, default, is_required, outside, flag)

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
        if (
            mapping is not None
            and mapping.entries
            and not {"success", "error"} & {key.text for key, _ in mapping.entries}
        ):
            help_ = "put `success:` on a line of its own below `outputs:`, and the outputs below it, 2 spaces deeper"
            self._bag.error(Code.MISSING_KEY, mapping.entries[0][0].span, where="`outputs`", key="success", help=help_)
            return _with_flags(self._read_each(mapping, self._output), ast.Output)
        outputs = self._fields(mapping, shapes.OUTPUTS)
        success = None if outputs is None else outputs.mapping("success")
        if success is not None and not success.entries:
            self._bag.error(Code.WRONG_KIND, success.span, key="success", expected="at least one output", found="none")
        return _with_flags(self._read_each(success, self._output), ast.Output)

    def _typed_output(self, name: ast.Word, tree: Tree) -> ast.Output | None:
        type_ = self._type(expect_scalar(tree, name.text, self._bag))
        return None if type_ is None else ast.Output(name, type_)

    def _output(self, name: ast.Word, tree: Tree) -> ast.Output | None:
        return self._named_output(name, tree, shapes.OUTPUT)

    def _field(self, name: ast.Word, tree: Tree) -> ast.Output | None:
        return self._named_output(name, tree, shapes.FIELD)

    def _named_output(self, name: ast.Word, tree: Tree, shape: Shape) -> ast.Output | None:
        """Read a type, or a mapping with a type, an outside name and a flag."""
        if not isinstance(tree, Mapping):
            return self._typed_output(name, tree)
        entry = Fields(tree, shape, self._bag)
        type_ = self._type(entry.scalar("type"))
        outside, flag = self._outside_name(entry.scalar("as")), self._flag(entry)
        return None if type_ is None else ast.Output(name, type_, outside, flag)

    def _outside_name(self, scalar: Scalar | None) -> ast.Word | None:
        if scalar is None:
            return None
        if not is_outside_name(scalar.text):
            help_ = OUTSIDE_NAME_HELP
            self._bag.error(Code.BAD_NAME, scalar.span, name=scalar.text, what="a value outside", help=help_)
        return ast.Word(scalar.text, scalar.span)

    def _flag(self, entry: Fields) -> ast.Word | None:
        scalar = entry.scalar("absent")
        return None if scalar is None else self._name(scalar, "a flag")

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
        fields = _with_flags(self._read_each(listed, self._field), ast.Output)
        is_open = self._word(entry.scalar("open"), "open", ("true", "false"))
        rest: ast.Word | None = None
        if is_open is not None and is_open.text == "true":
            span = is_open.span
            rest = ast.Word("rest", span)
            parts = tuple(ast.TypeName(ast.Word(text, span), span) for text in ("string", "json"))
            fields = (*fields, ast.Output(rest, ast.TypeApplied(ast.Word("map", span), parts, span)))
        return ast.RecordType(name, fields, self._clauses(entry, "constraints"), rest)

    def _named_type(self, name: ast.Word, mapping: Mapping) -> ast.NamedType | None:
        entry = Fields(mapping, shapes.NAMED_TYPE, self._bag)
        type_ = self._type(entry.scalar("type"))
        listed = entry.sequence("constraints")
        found = [self._constraint_or_clause(item) for item in (listed.items if listed else ())]
        constraints = tuple(each for each in found if each is not None)
        texts = entry.mapping("as")
        outside = [
            (ast.Word(key.text, key.span), self._outside_name(expect_scalar(value, key.text, self._bag)))
            for key, value in (texts.entries if texts else ())
        ]
        known = tuple((member, text) for member, text in outside if text is not None)
        return None if type_ is None else ast.NamedType(name, type_, constraints, known)

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
        parameters = self._read_each(listed, self._typed_output)
        returns = self._type(entry.scalar("returns"))
        is_whole = listed is None or len(parameters) == len(listed.entries)
        value = self._function_value(entry)
        if not (returns and value and is_whole):
            return None
        return ast.Function(name, parameters, returns, value, entry.scalar("max_depth"))

    def _function_value(self, entry: Fields) -> ast.Expression | ast.DecisionTable | None:
        given = [key for key in ("value", "table") if key in entry.names()]
        if not given:
            self._bag.error(Code.MISSING_KEY, entry.span, where="a function", key="value", help="or `table`")
            return None
        if len(given) == 2:
            tree = entry.get("table")
            assert tree is not None
            expected = "`value` or `table`, not both"
            self._bag.error(Code.WRONG_KIND, tree.span, key="table", expected=expected, found="both")
            return None
        if given == ["value"]:
            return self._expression_in(entry.get("value"), "value")
        table = self._fields(entry.mapping("table"), shapes.FUNCTION_TABLE)
        return None if table is None else self._decision_table(table)

    def _table(self, name: ast.Word, tree: Tree) -> ast.Function | None:
        entry = self._fields(expect_mapping(tree, name.text, self._bag), shapes.TABLE)
        if entry is None:
            return None
        listed = entry.mapping("inputs")
        parameters = self._read_each(listed, self._output)
        is_whole = listed is not None and len(parameters) == len(listed.entries)
        table = self._decision_table(entry)
        return ast.Function(name, parameters, None, table) if table and is_whole else None

    # -- declarations around the flow -------------------------------------------------------------

    def _errors(self, mapping: Mapping | None) -> tuple[tuple[ast.Output, ...], Span | None]:
        found = next((value for key, value in (mapping.entries if mapping else ()) if key.text == "error"), None)
        if found is None:
            return (), None
        listed = expect_mapping(found, "error", self._bag)
        return _with_flags(self._read_each(listed, self._output), ast.Output), found.span

    def _machine(self, name: ast.Word, tree: Tree) -> ast.StateMachine | None:
        entry = self._fields(expect_mapping(tree, name.text, self._bag), shapes.STATE_MACHINE)
        if entry is None:
            return None
        initial = entry.scalar("initial")
        transitions = self._read_each(entry.mapping("transitions"), self._transitions_of)
        return None if initial is None else ast.StateMachine(name, self._name(initial, "a state"), transitions)

    def _transitions_of(self, name: ast.Word, tree: Tree) -> tuple[ast.Word, tuple[ast.Word, ...]]:
        return name, self._names(tree, name.text)

    def _metadata(self, mapping: Mapping | None) -> tuple[ast.Word, ...] | None:
        """Return the dependencies. The other metadata is only checked for its structure, because it is for readers."""
        metadata = self._fields(mapping, shapes.METADATA)
        if metadata is None:
            return None
        metadata.scalar("author")
        created = metadata.scalar("created")
        if created is not None and not _is_moment(created.text):
            expected = "a date or a timestamp: `2026-11-15`, `2026-11-15T12:00:00Z`"
            self._bag.error(Code.BAD_LITERAL, created.span, text=created.text, expected=expected)
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
            self._releases(entry.mapping("declassify")),
            self._audit_members(entry.mapping("audit")),
        )

    def _audit_members(self, mapping: Mapping | None) -> tuple[tuple[ast.Word, ast.Expression], ...]:
        entry = self._fields(mapping, shapes.AUDIT)
        values = {} if entry is None else {name: self._expression(entry.scalar(name)) for name in entry.names()}
        keys = {key.text: key.span for key, _ in (mapping.entries if mapping else ())}
        return tuple((ast.Word(name, keys[name]), value) for name, value in values.items() if value is not None)

    def _releases(self, mapping: Mapping | None) -> tuple[tuple[ast.Word, ast.Word], ...]:
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

    def cases(self, testing: Mapping) -> tuple[case_ast.TestCase, ...]:
        return self._cases(Fields(testing, shapes.TESTING, self._bag))

    def _cases(self, testing: Fields | None) -> tuple[case_ast.TestCase, ...]:
        listed = None if testing is None else testing.sequence("test_cases")
        return tuple(case for item in (listed.items if listed else ()) if (case := self._case(item)))

    def _case(self, tree: Tree) -> case_ast.TestCase | None:
        mapping = expect_mapping(tree, "a test case", self._bag)
        if mapping is None:
            return None
        entry = Fields(mapping, shapes.TEST_CASE, self._bag)
        name = entry.scalar("name")
        inputs = self._words(entry.mapping("inputs"))
        expect = entry.mapping("expect")
        now = entry.scalar("now")
        given = entry.get("effects")
        if isinstance(given, Mapping):
            first = given.entries[0][0].text if given.entries else "NAME"
            report_wrong_kind(given, "effects", "a list", self._bag, _EFFECTS_HELP.replace("NAME", first))
        listed = None if isinstance(given, Mapping) else entry.sequence("effects")
        effects = tuple(e for item in (listed.items if listed else ()) if (e := self._case_effect(item)))
        if name is None or expect is None:
            return None
        title = ast.Word(name.text, name.span)
        special = next(((key, value) for key, value in expect.entries if key.text in _EXPECTED), None)
        case = case_ast.TestCase(title, inputs, self._words(expect), None, now=now, effects=effects)
        if special is None:
            return case
        key, value = special
        for other, _ in expect.entries:
            if other is not key:
                help_ = f"a case with `{key.text}` has no outputs"
                where = f"`expect` with `{key.text}`"
                self._bag.error(Code.UNKNOWN_KEY, other.span, where=where, key=other.text, help=help_)
        if key.text == "error":
            fields = value if isinstance(value, Mapping) else None
            if fields is None:
                report_wrong_kind(value, "error", "a mapping", self._bag, _NO_ERROR_HELP)
            return None if fields is None else replace(case, expect=(), error=self._words(fields))
        scalar = expect_scalar(value, key.text, self._bag)
        if scalar is None:
            return None
        word = ast.Word(scalar.text, scalar.span)
        return replace(case, expect=(), breaks=word) if key.text == "breaks" else replace(case, expect=(), fails=word)

    def _properties(self, testing: Fields | None) -> tuple[case_ast.Property, ...]:
        listed = None if testing is None else testing.sequence("properties")
        return tuple(each for item in (listed.items if listed else ()) if (each := self._property(item)))

    def _property(self, tree: Tree) -> case_ast.Property | None:
        entry = self._fields(expect_mapping(tree, "a property", self._bag), shapes.PROPERTY)
        if entry is None:
            return None
        name, holds = entry.scalar("name"), self._expression(entry.scalar("holds"))
        twice = self._fields(entry.mapping("twice"), shapes.TWICE)
        varied = None if twice is None else self._names(twice.get("same except"), "same except")
        where, given = self._expression(entry.scalar("where")), self._words(entry.mapping("given"))
        if name is None or holds is None:
            return None
        return case_ast.Property(ast.Word(name.text, name.span), given, varied, where, holds)

    def _case_effect(self, tree: Tree) -> case_ast.CaseEffect | None:
        mapping = expect_mapping(tree, "an effect of a case", self._bag)
        if mapping is None:
            return None
        entry = Fields(mapping, shapes.CASE_EFFECT, self._bag)
        step, fails = entry.scalar("step"), entry.scalar("fails")
        returns = entry.get("returns")
        if step is None:
            return None
        if returns is not None and fails is not None:
            self._bag.error(Code.WRONG_KIND, step.span, key="effects", expected="`returns` or `fails`", found="both")
            return None
        failed = None if fails is None else ast.Word(fails.text, fails.span)
        request = self._words(entry.mapping("request"))
        return case_ast.CaseEffect(ast.Word(step.text, step.span), request, returns, failed)

    def _words(self, mapping: Mapping | None) -> tuple[tuple[ast.Word, Tree], ...]:
        return tuple((ast.Word(key.text, key.span), value) for key, value in (mapping.entries if mapping else ()))


def _shape_of(root: Mapping) -> Shape:
    """Return the shape of a node of this type."""
    is_agent = any(
        key.text == "type" and isinstance(value, Scalar) and value.text == "agent" for key, value in root.entries
    )
    return shapes.AGENT_NODE if is_agent else shapes.NODE


def _flag_input(name: ast.Word, type_: ast.TypeText) -> ast.Input:
    return ast.Input(name, type_, (), None)


def _with_flags(
    declared: tuple[_Declared, ...], make: Callable[[ast.Word, ast.TypeText], _Declared]
) -> tuple[_Declared, ...]:
    """Return the declarations, each with a flag followed by that flag."""
    found: list[_Declared] = []
    for each in declared:
        found.append(each)
        if each.flag is not None:
            found.append(make(each.flag, ast.TypeName(ast.Word("boolean", each.flag.span), each.flag.span)))
    return tuple(found)
