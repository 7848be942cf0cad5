"""Check of a model's answer inside the loop: first its type, then the contract.

Each problem becomes a text for the model.
"""

from __future__ import annotations

from vesper.language.check.agents.rewriting import read_expression, substitute_names
from vesper.language.check.named_types import TypeResolver
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import Span
from vesper.language.syntax import ast
from vesper.language.syntax.agents.agent_ast import ANSWER_TYPE
from vesper.values.types import STRING, OptionalOf, Outside, Record, Type, optional, without_null

_NO_VALUE = "parse_json('null')"


class AnswerCheck:
    """The typed answer of one agent, and the steps that read and check it."""

    def __init__(self, document: ast.Document, types: TypeResolver, span: Span, bag: DiagnosticBag) -> None:
        self._document = document
        self._span = span
        self._bag = bag
        found = types.resolve(ast.TypeName(self._word(ANSWER_TYPE), span)) if document.outputs else None
        self.outputs = found if isinstance(found, Record) else None
        """The record of the outputs; None where they are faulty."""
        fields = () if self.outputs is None else self.outputs.fields
        self.is_text = [type_ for _, type_ in fields] == [STRING]
        """Whether the text of the model is the answer."""

    def steps(self, has_calls: bool) -> tuple[ast.Step, ...]:
        """Return the steps that read an answer, check it, and return a valid one."""
        if self.outputs is None:
            return (self._compute("_problem", self._read("''")),)
        known = ast.KnownType(optional(self.outputs), self._span)
        cast = ast.Cast(self._read("_output"), ast.TypeName(self._word(ANSWER_TYPE), self._span), self._span)
        is_final = ["length(_calls) == 0"] if has_calls else []
        values = tuple(
            (each.name, ast.Field(ast.Name("_reply", self._span), each.name, self._span))
            for each in self._document.outputs
        )
        ends = tuple(self._read(each) for each in (*is_final, "_problem == ''", "_reply IS NOT NULL"))
        return (
            self._output(),
            self._compute("_reply", ast.Compute(cast, known), ("bad_cast",), "null"),
            self._problem(is_final),
            ast.Step(None, self._word("return"), ends, ast.Return(values, self._span), ()),
        )

    def _output(self) -> ast.Step:
        assert self.outputs is not None
        if self.is_text:
            name = next(iter((self.outputs.outside or Outside()).name_of(each) for each, _ in self.outputs.fields))
            entries = ((self._word(name), self._read("_answer.text ?? ''")),)
            return self._compute("_output", ast.JsonTree(entries, (), False, self._span))
        value = "_answer.output ?? parse_json(_answer.text ?? '')"
        return self._compute("_output", self._read(value), ("bad_format", "too_large"), _NO_VALUE)

    def _problem(self, is_final: list[str]) -> ast.Step:
        assert self.outputs is not None
        names = self.outputs.outside or Outside()
        fields = {names.name_of(name): (type_, False) for name, type_ in self.outputs.fields}
        steps, problems = field_problems("_answer", "_output", fields, self._span, self._bag)
        misfit = self._read("'The answer does not fit: ' + problems", {"problems": problems})
        broken = self._broken_clause_text()
        then, otherwise = (self._if_final(each, is_final) for each in (broken, misfit))
        outcome = ast.Conditional(
            self._read("_reply IS NOT NULL"),
            ast.Block((), then, self._span),
            ast.Block(steps, otherwise, self._span),
        )
        return ast.Step(self._word("_problem"), self._word("conditional"), (), outcome, ())

    def _if_final(self, problem: ast.Expression, is_final: list[str]) -> ast.Expression:
        if not is_final:
            return problem
        return self._read(f"IF {is_final[0]} THEN problem ELSE ''", {"problem": problem})

    def _broken_clause_text(self) -> ast.Expression:
        """Return the text of the first broken postcondition, or the empty text."""
        parts: dict[str, ast.Expression] = {
            each.name.text: ast.Field(ast.Name("_reply", self._span), each.name, self._span)
            for each in self._document.outputs
        }
        found = self._read("''")
        observed = {each.name.text for each in self._document.observed if each.name is not None}
        for clause in reversed(self._document.postconditions):
            if observed & _names(clause.holds):
                continue
            message = ast.String(f"The contract is broken: {clause.text}", self._span, (self._span.start,))
            holds = substitute_names(clause.holds, parts)
            found = self._read("IF holds THEN rest ELSE message", {"holds": holds, "rest": found, "message": message})
        return found

    def _compute(
        self, name: str, action: ast.Compute | ast.Expression, codes: tuple[str, ...] = (), instead: str = ""
    ) -> ast.Step:
        handlers = (ast.Handler(tuple(map(self._word, codes)), (), self._read(instead)),) if codes else ()
        value = action if isinstance(action, ast.Compute) else ast.Compute(action)
        return ast.Step(self._word(name), self._word("compute"), (), value, handlers)

    def _word(self, text: str) -> ast.Word:
        return ast.Word(text, self._span)

    def _read(self, text: str, parts: dict[str, ast.Expression] | None = None) -> ast.Expression:
        return read_expression(text, self._span, self._bag, parts or {})


def field_problems(
    prefix: str, value: str, fields: dict[str, tuple[Type, bool]], span: Span, bag: DiagnosticBag
) -> tuple[tuple[ast.Step, ...], ast.Expression]:
    """Return steps that check each field of a JSON object, and the text of problems.

    `fields` has the type of each field and whether it may be absent.
    """
    steps = []
    texts = []
    for name, (type_, may_miss) in fields.items():
        fits = f"{prefix}_{name}_fits"
        is_absent = may_miss or isinstance(type_, OptionalOf)
        read = f"get({value}, '/{name}') ?? {_NO_VALUE}" if is_absent else f"{value}['{name}']"
        wanted = optional(type_) if may_miss else type_
        tried = read_expression(f"length([CAST({read} AS _type)]) == 1", span, bag, {}, wanted)
        codes = ("bad_cast",) if is_absent else ("bad_cast", "missing_key")
        failed = ast.Handler(tuple(ast.Word(each, span) for each in codes), (), ast.Boolean(False, span))
        steps.append(ast.Step(ast.Word(fits, span), ast.Word("compute", span), (), ast.Compute(tried), (failed,)))
        shown = ast.String(f"{name} must be {without_null(type_)}; ", span, (span.start,))
        texts.append(read_expression(f"IF {fits} THEN '' ELSE shown", span, bag, {"shown": shown}))
    return tuple(steps), read_expression("join(texts, '')", span, bag, {"texts": ast.ArrayLiteral(tuple(texts), span)})


def _names(expression: ast.Expression) -> set[str]:
    own = {expression.text} if isinstance(expression, ast.Name) else set()
    return own.union(*(_names(part) for part in ast.parts(expression)))
