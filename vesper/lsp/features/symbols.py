"""Occurrences of names in one file: where each is declared and used, expressions and words of fields alike.

A symbol is a kind, a name and an owner: the node or library that declares it, a type for its fields, an offset for a
name that an expression binds. Equal symbols in two files are the same thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import Span
from vesper.language.syntax import ast
from vesper.language.syntax.scalar_text import PlacedText, place_text
from vesper.language.syntax.tokens import NAME, Token, tokenize
from vesper.language.syntax.yaml_tree import Mapping, Scalar
from vesper.lsp.features.knowledge import Fact, Knowledge
from vesper.values.generated.operations import OPERATIONS
from vesper.values.types import Enum, OptionalOf, Record, Type

_STEP = re.compile(r"""['"]?([a-z][a-z0-9_]*)""")
_HOLE = re.compile(r"\{([a-z][a-z0-9_]*)\}")
FUNCTIONS = frozenset(each.function for each in OPERATIONS.values() if each.function is not None)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A named thing."""

    kind: str
    """`input`, `output`, `error`, `constant`, `parameter`, `step`, `local`, `function`, `type`, `field`, `column`,
    `machine`, `state`, `member`, `node`, `library` or `operation`."""
    name: str
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A symbol at a place."""

    span: Span
    symbol: Symbol
    is_declaration: bool = False


class Occurrences:
    """All occurrences in one file, in the order of the file."""

    def __init__(self, known: Knowledge) -> None:
        self._known = known
        self._found: dict[tuple[int, int, Symbol], Occurrence] = {}
        self._by_start: dict[int, Symbol] = {}
        """Symbols by the start of their declaration, which is what the checker keeps of a name."""
        self._columns: dict[int, Symbol] = {}
        self._calls = {
            each.name.span.start: each.action.node.text
            for each in known.all(ast.Step)
            if each.name is not None and isinstance(each.action, ast.CallNode)
        }
        self._loops = {
            (each.name.span.start, state.name.text): state.name.span.start
            for each in known.all(ast.Step)
            if each.name is not None and isinstance(each.action, ast.Loop)
            for state in each.action.state
        }
        self._declare()
        self._uses_of_libraries()
        for fact in known.facts:
            self._use_fact(fact)
        self._words()
        if isinstance(known.document, ast.Document):
            self._words_of_node(known.document)
        self._unread()
        self.list = sorted(self._found.values(), key=lambda each: (each.span.start, each.span.end))

    def at(self, offset: int) -> list[Occurrence]:
        """Return the occurrences that the offset touches."""
        return [each for each in self.list if each.span.start <= offset <= each.span.end]

    def of(self, symbols: set[Symbol]) -> list[Occurrence]:
        return [each for each in self.list if each.symbol in symbols]

    def linked(self, symbols: set[Symbol]) -> set[Symbol]:
        """Return the symbols that are renamed together: a step has the name of the output that it gives."""
        return symbols | {
            Symbol(other, each.name, each.owner)
            for each in symbols
            for kind, other in (("step", "output"), ("output", "step"))
            if each.kind == kind and Symbol(other, each.name, each.owner) in self._by_start.values()
        }

    # -- collecting -------------------------------------------------------------------------------

    def _add(self, word: ast.Word, symbol: Symbol, is_declaration: bool = False) -> None:
        # Stages of a transform become calls with words that the file does not have.
        if word.text and self._known.source.slice(word.span) == word.text:
            key = (word.span.start, word.span.end, symbol)
            if key not in self._found or is_declaration:
                self._found[key] = Occurrence(word.span, symbol, is_declaration)

    def _declare_one(self, kind: str, word: ast.Word, owner: str | None = None) -> None:
        symbol = Symbol(kind, word.text, self._known.id if owner is None else owner)
        self._by_start.setdefault(word.span.start, symbol)
        self._add(word, symbol, is_declaration=True)

    def _local(self, word: ast.Word) -> None:
        self._declare_one("local", word, f"{self._known.id}@{word.span.start}")

    def _declare(self) -> None:
        known, document = self._known, self._known.document
        is_node = isinstance(document, ast.Document)
        self._add(known.id_word, Symbol("node" if is_node else "library", known.id), is_declaration=True)
        kinds = ("input", "output", "error", "machine", "constant", "parameter", "function", "type")
        for kind in kinds if is_node else kinds[4:]:
            for each in getattr(document, f"{kind}s"):
                self._declare_one(kind, each.name)
        for type_ in document.types:
            for part in type_.fields if isinstance(type_, ast.RecordType) else ():
                self._declare_one("field", part.name, f"{known.id}.{type_.name.text}")
        for step in known.all(ast.Step):
            if step.name is not None:
                self._declare_one("step", step.name)
        for function in document.functions:
            for part in function.parameters:
                self._local(part.name)
        for binder in known.all(ast.Binding):
            for word in binder.names:
                self._local(word)
        lets: list[ast.Let | ast.StateValue] = [*known.all(ast.Let), *known.all(ast.StateValue)]
        for let in lets:
            self._local(let.name)
        for call in known.all(ast.Call):
            for word, _ in call.named:
                self._local(word)

    def _uses_of_libraries(self) -> None:
        for use in self._known.document.uses:
            checker = self._known.checker
            found = None if checker is None else checker.callees.library(use.library.text)
            library = getattr(found, "library_id", use.library.text)
            self._add(use.library, Symbol("library", library))
            for word in use.names or ():
                for kind in self._kinds_in_library(word.text):
                    self._add(word, Symbol(kind, word.text, library))

    def _kinds_in_library(self, name: str) -> Iterator[str]:
        checker = self._known.checker
        if checker is None:
            return
        declared = checker.scope.names.get(name)
        if declared is not None and declared.library is not None:
            yield declared.kind
        function = checker.functions.get(name)
        if function is not None and function.library is not None:
            yield "function"
        if self._type_owner(name) not in (None, self._known.id):
            yield "type"

    # -- expressions ------------------------------------------------------------------------------

    def _use_fact(self, fact: Fact) -> None:
        expression, declared = fact.expression, fact.declared
        word = expression.name if isinstance(expression, ast.Field) else None
        if isinstance(expression, ast.Name):
            word = ast.Word(expression.text, expression.span)
        if word is not None and declared is not None:
            symbol = self._by_start.get(declared.span.start) if declared.library is None else None
            if declared.library is not None:
                symbol = Symbol(declared.kind, declared.name, declared.library)
            if symbol is not None and symbol.name == word.text:
                self._add(word, symbol)
                self._columns[expression.span.start] = symbol
        elif isinstance(expression, ast.Name) and isinstance(inner_type(fact.type), Enum):
            self._add(ast.Word(expression.text, expression.span), Symbol("member", expression.text, str(fact.type)))
        elif isinstance(expression, ast.Field):
            self._use_field(expression)
        elif isinstance(expression, ast.RecordLiteral) and (owner := self._record_owner(fact.expected or fact.type)):
            for key, _ in expression.entries:
                self._add(key, Symbol("field", key.text, owner))

    def _use_field(self, expression: ast.Field) -> None:
        base = self._known.fact(expression.base)
        called = expression.base.node.text if isinstance(expression.base, ast.NodeCall) else None
        if base is not None and base.declared is not None:
            called = self._calls.get(base.declared.span.start)
            state = self._loops.get((base.declared.span.start, expression.name.text))
            if state is not None:
                self._add(expression.name, Symbol("local", expression.name.text, f"{self._known.id}@{state}"))
        if called is not None:
            self._add(expression.name, Symbol("output", expression.name.text, self.node_id(called)))
        elif base is not None and (owner := self._record_owner(base.type)):
            self._add(expression.name, Symbol("field", expression.name.text, owner))

    def _record_owner(self, type_: Type | None) -> str | None:
        """Return the owner of the fields of a declared record type."""
        type_ = inner_type(type_)
        name = type_.name if isinstance(type_, Record) else None
        return None if name is None or (owner := self._type_owner(name)) is None else f"{owner}.{name}"

    def _type_owner(self, name: str) -> str | None:
        if any(each.name.text == name for each in self._known.document.types):
            return self._known.id
        checker = self._known.checker
        at = ast.TypeName(ast.Word(name, Span(0, 0)), Span(0, 0))
        library = None if checker is None else checker._types.library_of(at)
        return None if library is None else library.library_id

    def node_id(self, wanted: str) -> str:
        """Return the id that a word in `node:` stands for; the word itself where no node has it."""
        checker = self._known.checker
        found = None if checker is None else checker.callees.find(wanted)
        return getattr(found, "node_id", wanted)

    # -- words of fields --------------------------------------------------------------------------

    def _words(self) -> None:
        """Add words that name something outside names of expressions: functions, types, columns, called nodes."""
        known = self._known
        own = {each.name.text for each in known.document.functions}
        for call in known.all(ast.Call):
            function = None if known.checker is None else known.checker.functions.get(call.function.text)
            if call.function.text in own:
                self._add(call.function, Symbol("function", call.function.text, known.id))
            elif function is not None and function.library is not None:
                self._add(call.function, Symbol("function", call.function.text, function.library))
            elif call.function.text in (*FUNCTIONS, "old", "now"):
                self._add(call.function, Symbol("operation", call.function.text))
        calls: list[ast.NodeCall | ast.CallNode] = [*known.all(ast.NodeCall), *known.all(ast.CallNode)]
        for called in calls:
            node_id = self.node_id(called.node.text)
            self._add(called.node, Symbol("node", node_id))
            for word, _ in called.inputs:
                self._add(word, Symbol("input", word.text, node_id))
        for name in known.all(ast.TypeName):
            if (owner := self._type_owner(name.name.text)) is not None:
                self._add(name.name, Symbol("type", name.name.text, owner))
        for enum in known.all(ast.TypeEnum):
            owner = str(Enum(tuple(each.text for each in enum.members)))
            for member in enum.members:
                self._add(member, Symbol("member", member.text, owner), is_declaration=True)
        for at in known.all(ast.AtDate):
            declared = None if known.checker is None else known.checker.scope.names.get(at.parameter.text)
            owner = None if declared is None else declared.library or known.id
            if owner is not None:
                self._add(at.parameter, Symbol("parameter", at.parameter.text, owner))
        for table in known.all(ast.DecisionTable):
            self._table(table)
        for type_ in known.document.types:
            self._clauses_of_type(type_)

    def _clauses_of_type(self, type_: ast.RecordType | ast.NamedType) -> None:
        owner = f"{self._known.id}.{type_.name.text}"
        names = {each.name.text for each in type_.fields} if isinstance(type_, ast.RecordType) else set()
        for clause in type_.constraints:
            for part in subexpressions(clause.holds) if isinstance(clause, ast.Clause) else ():
                if isinstance(part, ast.Name) and part.text in names:
                    self._add(ast.Word(part.text, part.span), Symbol("field", part.text, owner))

    def _table(self, table: ast.DecisionTable) -> None:
        owner = f"{self._known.id}@{table.span.start}"
        columns: dict[str, Symbol] = {}
        for column in table.columns:
            if column.value is not None:
                columns[column.name.text] = Symbol("column", column.name.text, owner)
                self._add(column.name, columns[column.name.text], is_declaration=True)
            elif (symbol := self._columns.get(column.name.span.start)) is not None:
                columns[column.name.text] = symbol
        outputs = {each.name.text: Symbol("column", each.name.text, f"{owner} then") for each in table.outputs}
        for output in table.outputs:
            self._add(output.name, outputs[output.name.text], is_declaration=True)
        rows = () if isinstance(table.rows, ast.TableFile) else table.rows
        for word, _ in (cell for row in rows for cell in row.cells):
            found = columns.get(word.text) or self._columns.get(word.span.start)
            if found is not None:
                columns[word.text] = found
                self._add(word, found)
        for row in (*rows, *(() if table.otherwise is None else (table.otherwise,))):
            for key, _ in row.then.entries if isinstance(row.then, ast.RecordLiteral) else ():
                if key.text in outputs:
                    self._add(key, outputs[key.text])

    def _words_of_node(self, document: ast.Document) -> None:
        known, own = self._known, self._known.id
        for returned in known.all(ast.Return):
            self._keys("output", returned.values)
        for error in known.all(ast.ErrorValue):
            self._keys("error", error.values)
        for loop in known.all(ast.Loop):
            states = {each.name.text: each.name.span.start for each in loop.state}
            for word, _ in loop.next:
                if word.text in states:
                    self._add(word, Symbol("local", word.text, f"{own}@{states[word.text]}"))
        for machine in document.machines:
            self._states(machine.name.text, machine.initial)
            for source, targets in machine.transitions:
                self._add(source, Symbol("state", source.text, f"{own}.{machine.name.text}"), is_declaration=True)
                self._states(machine.name.text, *targets)
        for move in known.all(ast.Transition):
            self._add(move.machine, Symbol("machine", move.machine.text, own))
            self._states(move.machine.text, *move.sources, move.target)
        for effect in known.all(ast.EffectStep):
            if (machine_word := effect.words.get("machine")) is not None:
                self._add(machine_word, Symbol("machine", machine_word.text, own))
        self._security(document.security)
        for word in document.dependencies or ():
            self._add(word, Symbol("node", self.node_id(word.text)))
        for case in document.cases:
            self._keys("input", case.inputs)
            self._keys("output", case.expect)
            self._keys("error", case.error or ())
            for request in case.effects:
                match = _STEP.match(known.source.slice(request.step.span))
                if match is not None:
                    start = request.step.span.start
                    span = Span(start + match.start(1), start + match.end(1))
                    self._add(ast.Word(match[1], span), Symbol("step", match[1], own))
            if case.breaks is not None:
                self._broken_clause(case.breaks, document)
        for claim in document.properties:
            self._keys("input", claim.given)
            self._keys("input", tuple((word, None) for word in claim.varied or ()))
            for part in (*subexpressions(claim.holds), *(subexpressions(claim.where) if claim.where else ())):
                self._run_field(part)
        self._http(document)
        self._work(document)

    def _broken_clause(self, breaks: ast.Word, document: ast.Document) -> None:
        """Add the names in the text of a broken clause, which are those of the clause."""
        clauses = (*document.preconditions, *document.postconditions, *document.invariants)
        clause = next((each for each in clauses if each.text == breaks.text), None)
        if clause is None:
            self._tokens(breaks)
            return
        symbols = {start: symbol for start, _, symbol in self._found}
        written = ast.Word(self._known.source.slice(clause.holds.span), clause.holds.span)
        for token, original in zip(self._names_in(breaks), self._names_in(written), strict=False):
            if original.span.start in symbols and token.text == original.text:
                self._add(ast.Word(token.text, token.span), symbols[original.span.start])

    def _keys(self, kind: str, entries: tuple[tuple[ast.Word, object], ...]) -> None:
        for word, _ in entries:
            self._add(word, Symbol(kind, word.text, self._known.id))

    def _states(self, machine: str, *words: ast.Word) -> None:
        for word in words:
            self._add(word, Symbol("state", word.text, f"{self._known.id}.{machine}"))

    def _run_field(self, part: ast.Expression) -> None:
        """Add `first.total` and `first.input.amount` of a claim over two runs."""
        match part:
            case ast.Field(base=ast.Field(base=ast.Name(text="first" | "second"), name=ast.Word(text="input"))):
                self._add(part.name, Symbol("input", part.name.text, self._known.id))
            case ast.Field(base=ast.Name(text="first" | "second")) if part.name.text != "input":
                self._add(part.name, Symbol("output", part.name.text, self._known.id))

    def _security(self, security: ast.Security) -> None:
        own = self._known.id
        names = {each.symbol.name: each.symbol for each in self._found.values() if each.symbol.kind == "step"}
        for word in security.sensitive:
            self._add(word, Symbol("input", word.text, own))
        for word in (*security.required, *security.denied):
            resource, _, machine = word.text.rpartition(".")
            if resource in ("state.read", "state.write"):
                self._add(
                    ast.Word(machine, Span(word.span.start + len(resource) + 1, word.span.end)),
                    Symbol("machine", machine, own),
                )
        for word, _ in security.declassified:
            head, _, tail = word.text.rpartition(".")
            span = Span(word.span.start + (len(head) + 1 if head else 0), word.span.end)
            symbol = Symbol("error", tail, own) if head else names.get(tail, Symbol("output", tail, own))
            self._add(ast.Word(tail, span), symbol)

    def _work(self, document: ast.Document) -> None:
        lane = document.work["queue"].get("by") if "queue" in document.work else None
        given = document.work["schedule"].get("inputs") if "schedule" in document.work else None
        keys = given.entries if isinstance(given, Mapping) else ()
        scalars = (*([lane] if isinstance(lane, Scalar) else ()), *(key for key, _ in keys))
        self._keys("input", tuple((ast.Word(each.text, each.span), None) for each in scalars))

    def _http(self, document: ast.Document) -> None:
        http = document.http
        if http is None:
            return
        body = () if http.body is None else (http.body,)
        self._keys("input", tuple((word, None) for word in (*(each for each, _ in http.query), *body)))
        self._keys("input", http.headers)
        self._holes("input", http.path)
        for _, word in http.response_headers:
            self._holes("output", word)

    def _holes(self, kind: str, word: ast.Word) -> None:
        text = self._known.source.slice(word.span)
        for match in _HOLE.finditer(text):
            span = Span(word.span.start + match.start(1), word.span.start + match.end(1))
            self._add(ast.Word(match[1], span), Symbol(kind, match[1], self._known.id))

    # -- text that has no syntax tree -------------------------------------------------------------

    def _unread(self) -> None:
        """Add names in unreadable expressions; a name has one meaning wherever it is visible."""
        for unread in self._known.all(ast.Unread):
            self._tokens(ast.Word(self._known.source.slice(unread.span), unread.span))

    def _tokens(self, word: ast.Word) -> None:
        symbols = {each.name: each for each in self._by_start.values() if each.kind not in ("field", "type")}
        for token in self._names_in(word):
            if token.text in symbols:
                self._add(ast.Word(token.text, token.span), symbols[token.text])

    def _names_in(self, word: ast.Word) -> list[Token]:
        """Return the tokens that are names in a text, in any quoting."""
        source = self._known.source
        first = source.slice(word.span)[:1]
        if first in ("'", '"') and word.text[:1] != first:
            text = place_text(source, Scalar(word.text, first, word.span))
        else:
            text = PlacedText(source.slice(word.span), range(word.span.start, word.span.end), word.span.end)
        return [each for each in tokenize(text, DiagnosticBag(source)) or () if each.kind is NAME]


def inner_type(type_: Type | None) -> Type | None:
    """Return the type without null."""
    return type_.inner if isinstance(type_, OptionalOf) else type_


def subexpressions(expression: ast.Expression) -> Iterator[ast.Expression]:
    """Yield an expression and all its parts."""
    yield expression
    for part in ast.parts(expression):
        yield from subexpressions(part)
