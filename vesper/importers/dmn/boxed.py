"""Translation of boxed expressions: literals, contexts, invocations, lists, relations, functions, iterators."""

from __future__ import annotations

from collections.abc import Mapping

from vesper.importers.dmn import model as dmn
from vesper.importers.dmn.code import Closure, Code, Let
from vesper.importers.dmn.feel.parser import parse_expression, parse_unary_tests
from vesper.importers.dmn.feel.syntax import Feel, Iterator, UnaryTests
from vesper.importers.dmn.feel.tokens import FeelProblem
from vesper.importers.dmn.tables import translate_table
from vesper.importers.dmn.translate import Env, Translator
from vesper.importers.dmn.types import SIMPLE, Refusal, Ty, type_error, unsupported

FEEL_LANGUAGES = ("", "feel", "http://www.omg.org/spec/FEEL/20140401", "https://www.omg.org/spec/DMN/20230324/FEEL/")


class PlacedRefusal(Refusal):
    """A refusal with the line and the text of the source."""

    def __init__(self, refusal: Refusal, line: int, text: str) -> None:
        super().__init__(refusal.category, refusal.reason, refusal.at)
        self.line = line
        self.text = text


class BoxedTranslator(Translator):
    """Translates boxed expressions of a model."""

    properties: frozenset[str]
    """Names of all fields and entries of the model, which may have spaces."""

    def literal(self, text: str, env: Env, line: int) -> Code:
        """Return the expression of FEEL text."""
        if not text.strip():
            return Code("null", Ty("null", is_nullable=True))
        return self._placed(lambda: self.translate(self.parse(text, env), env), text, line)

    def parse(self, text: str, env: Env) -> Feel:
        """Parse FEEL text with the names in scope."""
        try:
            return parse_expression(text, env.keys(), self.properties)
        except FeelProblem as problem:
            raise Refusal("not FEEL", problem.reason, problem.at) from None

    def cell(self, text: str, env: Env, line: int) -> UnaryTests:
        """Parse the cell of a table."""
        try:
            return parse_unary_tests(text, env.keys(), self.properties)
        except FeelProblem as problem:
            raise PlacedRefusal(Refusal("not FEEL", problem.reason, problem.at), line, text) from None

    def _placed(self, action: object, text: str, line: int) -> Code:
        try:
            return action()  # type: ignore[operator, no-any-return]  # a closure without parameters
        except PlacedRefusal:
            raise
        except Refusal as refusal:
            at = max(refusal.at, 0)
            raise PlacedRefusal(refusal, line + text.count("\n", 0, at), text) from None
        except RecursionError:
            raise PlacedRefusal(unsupported("the expression is nested too deep"), line, text) from None

    def type_of(self, reference: str) -> Ty | None:
        """Return the type of a `typeRef`; None where it declares nothing."""
        name = reference.rpartition(":")[2].strip()
        if not name or name == "Any":
            return None
        if name in self.types:
            return self.types[name]
        if name in SIMPLE:
            return SIMPLE[name]
        if name in ("context", "function", "range", "list"):
            return None
        raise unsupported(f"the type `{reference}` is not declared")

    def boxed(self, box: dmn.Boxed | None, env: Env) -> Code:
        """Return the expression of a boxed expression, as its declared type."""
        if box is None:
            raise unsupported("there is no logic")
        try:
            found = self._boxed(box, env)
            declared = self.type_of(box.type_ref) if not isinstance(box, dmn.BoxedFunction) else None
            return found if declared is None else self.coerce(found, declared)
        except PlacedRefusal:
            raise
        except Refusal as refusal:
            text = box.text if isinstance(box, dmn.Literal) else ""
            raise PlacedRefusal(refusal, box.line, text) from None

    def _boxed(self, box: dmn.Boxed, env: Env) -> Code:
        match box:
            case dmn.Literal():
                if box.language.strip() not in FEEL_LANGUAGES and "FEEL" not in box.language.upper():
                    raise unsupported(f"the expression language {box.language}")
                return self.literal(box.text, env, box.line)
            case dmn.BoxedContext():
                return self._context(box, env)
            case dmn.BoxedInvocation():
                return self._invocation(box, env)
            case dmn.BoxedList():
                return self.list_literal([self.boxed(item, env) for item in box.items])
            case dmn.BoxedRelation():
                return self._relation(box, env)
            case dmn.BoxedFunction():
                return self.function_value(box, env)
            case dmn.BoxedConditional():
                parts = [self.boxed(each, env) for each in (box.condition, box.then, box.otherwise)]
                return self.conditional(*parts)
            case dmn.BoxedFilter():
                return self._filter(box, env)
            case dmn.BoxedIterator():
                return self._iterator(box, env)
            case dmn.BoxedTable():
                return translate_table(self, box, env)
        raise unsupported(f"the element `{box.tag}`")

    def _context(self, box: dmn.BoxedContext, env: Env) -> Code:
        inner = dict(env)
        found: dict[str, Code] = {}
        lets: list[Let] = []
        result: Code | None = None
        # A function may be called outside the context, where a name of the context is not bound.
        has_functions = any(isinstance(entry.value, dmn.BoxedFunction) and entry.name for entry in box.entries) and all(
            entry.name for entry in box.entries
        )
        for entry in box.entries:
            declared = self.type_of(entry.type_ref)
            code = self.boxed(entry.value, inner)
            code = code if declared is None else self.coerce(code, declared)
            if not entry.name:
                result = code
                break
            found[entry.name], steps = (code, ()) if has_functions else self.bound(code, entry.name)
            inner[entry.name] = found[entry.name]
            lets += [step for step in steps if isinstance(step, Let)]
        return self.with_entries(found, lets) if result is None else self.within(tuple(lets), self.close(result))

    def _invocation(self, box: dmn.BoxedInvocation, env: Env) -> Code:
        arguments = [self.boxed(each.value, env) for each in box.bindings]
        names = tuple(each.name for each in box.bindings)
        if isinstance(box.function, dmn.Literal) and box.function.text.strip() not in env:
            from vesper.importers.dmn.functions.registry import FUNCTIONS, call_builtin

            name = " ".join(box.function.text.split())
            if name in FUNCTIONS:
                return call_builtin(self, name, arguments, names)
        function = self.boxed(box.function, env)
        if function.closure is None:
            raise type_error("this is no function")
        return self.apply(function.closure, arguments, names)

    def _relation(self, box: dmn.BoxedRelation, env: Env) -> Code:
        rows = []
        for row in box.rows:
            if len(row) != len(box.columns):
                raise unsupported("a relation with a row of another length")
            cells: dict[str, Code] = {}
            for column, cell in zip(box.columns, row, strict=True):
                declared = self.type_of(column.type_ref)
                code = self.boxed(cell, env)
                cells[column.name] = code if declared is None else self.coerce(code, declared)
            rows.append(self.context_of({name: self.close(code) for name, code in cells.items()}))
        return self.list_literal(rows)

    def function_value(self, box: dmn.BoxedFunction, env: Env) -> Code:
        """Return a function value whose body is a boxed expression."""
        if box.kind not in ("", "FEEL"):
            raise unsupported(f"a function of kind {box.kind}")
        names = tuple(each.name for each in box.parameters)
        types = tuple(self.type_of(each.type_ref) for each in box.parameters)
        returns = self.type_of(box.type_ref)

        def call(arguments: list[Code]) -> Code:
            found = self.boxed(box.body, {**env, **dict(zip(names, arguments, strict=True))})
            return found if returns is None else self.coerce(found, returns)

        return Code("", Ty("function"), closure=Closure(names, types, call))

    def _filter(self, box: dmn.BoxedFilter, env: Env) -> Code:
        if not isinstance(box.match, dmn.Literal):
            raise unsupported("a boxed filter whose condition is no literal expression")
        match = box.match
        source = self.boxed(box.source, env)
        inner = dict(env)
        if source.ty.kind == "list" and source.ty.item.kind == "context":
            inner.update(dict.fromkeys(source.ty.item.names, Code("", Ty("null"))))
        inner["item"] = Code("", Ty("null"))
        return self._placed(lambda: self.filter(source, self.parse(match.text, inner), env), match.text, match.line)

    def _iterator(self, box: dmn.BoxedIterator, env: Env) -> Code:
        if not isinstance(box.source, dmn.Literal) or not isinstance(box.body, dmn.Literal):
            raise unsupported("a boxed iterator whose parts are no literal expressions")
        source, body = box.source, box.body
        names: Mapping[str, Code] = {**env, box.variable: Code("", Ty("null")), "partial": Code("", Ty("null"))}
        iterator = (Iterator(box.variable, self.parse(source.text, env), None, 0),)
        tree = self.parse(body.text, names)

        def run() -> Code:
            if box.kind == "for":
                return self.iterate(iterator, tree, env)
            return self.quantified(box.kind, iterator, tree, env)

        return self._placed(run, body.text, body.line)
