"""A module as text: statements on lines, expressions laid out within the width, and where each marked one stands.

libcst could print the tree itself, but breaks no lines. What is not known here is refused: a form that no writer makes.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence

import libcst as cst

from vesper.codegen.layout.expressions import ExpressionLayout, code_of, parentheses_of
from vesper.codegen.layout.pretty_printer import (
    INDENT,
    SOFT,
    Document,
    FirstThatFits,
    Group,
    Indented,
    Position,
    Printer,
    width_of,
)

WIDTH = 100

_Positions = dict[cst.BaseExpression, Position]


def source_of(module: cst.Module, marked: Collection[cst.BaseExpression] = ()) -> tuple[str, _Positions]:
    """The text of a module, and the positions of the marked expressions in it, without their parentheses."""
    writer = _SourceWriter(marked)
    for line in module.header:  # whole, however long: other programs read them
        writer.printer.plain("" if line.comment is None else line.comment.value)
    writer.block(module.body, 0)
    printer = writer.printer
    positions = {each: place for each, place in printer.positions.items() if isinstance(each, cst.BaseExpression)}
    return "\n".join(printer.lines) + "\n", positions


class _SourceWriter:
    def __init__(self, marked: Collection[cst.BaseExpression]) -> None:
        self.printer = Printer(WIDTH)
        self._layout = ExpressionLayout(marked)

    def block(self, statements: Sequence[cst.BaseStatement | cst.BaseSmallStatement], indent: int) -> None:
        for statement in statements:
            self._statement(statement, indent)

    def empty_line(self, line: cst.EmptyLine, indent: int) -> None:
        if line.comment is None:
            self.printer.plain("")
            return
        # A long comment goes on below, a little further in.
        self._wrapped(line.comment.value, indent, "#   ")

    def _docstring(self, literal: str, indent: int) -> None:
        self._wrapped(literal, indent, "")

    def _wrapped(self, text: str, indent: int, before: str) -> None:
        """Prose within the width; a word that is too long for a line stays whole."""
        if width_of(text) <= WIDTH - indent:
            self.printer.plain(" " * indent + text)
            return
        lines = textwrap.wrap(
            text, WIDTH - indent, subsequent_indent=before, break_long_words=False, break_on_hyphens=False
        )
        for line in lines:
            self.printer.plain(" " * indent + line)

    def _statement(self, statement: cst.BaseStatement | cst.BaseSmallStatement, indent: int) -> None:
        for line in getattr(statement, "leading_lines", ()):
            self.empty_line(line, indent)
        match statement:
            case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString(value=text))]):
                self._docstring(text, indent)
            case cst.SimpleStatementLine(body=[small]):
                self.printer.statement(indent, self._small(small))
            case cst.If():
                self._if(statement, "if ", indent)
            case cst.While():
                self._head(["while ", *self._layout.last(statement.test), ":"], statement.body, indent)
            case cst.For():
                loop = ["for ", *self._assigned(statement.target), " in ", *self._layout.last(statement.iter), ":"]
                self._head(loop, statement.body, indent)
            case cst.Try():
                self._try(statement, indent)
            case cst.FunctionDef():
                self._function(statement, indent)
            case cst.ClassDef():
                bases = [code_of(each.value) for each in statement.bases]
                head = f"class {statement.name.value}" + (f"({', '.join(bases)})" if bases else "")
                self._head([head, ":"], statement.body, indent)
            case _:
                raise AssertionError(f"no layout for {type(statement).__name__}")

    def _head(self, head: Sequence[Document], body: cst.BaseSuite, indent: int) -> None:
        self.printer.statement(indent, head)
        self.block(body.body, indent + INDENT)

    # -- simple statements ------------------------------------------------------------------------

    def _small(self, small: cst.BaseSmallStatement) -> list[Document]:
        match small:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(lpar=[_, *_]) as several)], value=value):
                names: list[list[Document]] = [[code_of(element.value)] for element in several.elements]
                if len(names) > 1:  # parentheses are there where the names do not fit on a line
                    return ["(", *_one_a_line(names), ") = ", *self._assigned(value)]
                return ["(", *names[0], ",) = ", *self._assigned(value)]
            case cst.Assign(targets=[target], value=value):
                return [*self._layout.target(target.target), " = ", *self._assigned(value)]
            case cst.AnnAssign(value=None):
                annotation = self._layout.last(small.annotation.annotation)
                return [code_of(small.target), ": ", *annotation]
            case cst.AnnAssign(value=cst.BaseExpression() as value):
                return self._annotated(code_of(small.target), small.annotation.annotation, value)
            case cst.Return(value=cst.BaseExpression() as value):
                return ["return ", *self._layout.last(value)]
            case cst.Raise(exc=cst.BaseExpression() as raised):
                cause = [] if small.cause is None else [" from ", *self._layout.expression(small.cause.item)]
                return ["raise ", *self._layout.last(raised), *cause]
            case cst.Expr(value=value):
                return self._layout.expression(value, "top")
            case cst.ImportFrom():
                return self._import(small)
            case _:
                return [code_of(small).strip()]

    def _annotated(self, target: str, annotation: cst.BaseExpression, value: cst.BaseExpression) -> list[Document]:
        declared = [f"{target}: ", *self._layout.last(annotation)]
        is_call = isinstance(value, cst.Call)
        if not isinstance(annotation, cst.Subscript) or not (is_call or parentheses_of(value) == "best fit"):
            return [*declared, " = ", *self._assigned(value)]
        # The annotation could be broken too, but that comes last.
        flat = f"{target}: {code_of(annotation)} = "
        written = self._layout.expression(value, "top")
        below: list[Document] = ["(", Group([Indented([SOFT, *written]), SOFT], expands=True), ")"]
        in_its_brackets = [[flat, *written]] if is_call else []
        return [FirstThatFits([[flat, *written], *in_its_brackets, [flat, *below], [*declared, " = ", *written]])]

    def _assigned(self, value: cst.BaseExpression) -> list[Document]:
        if isinstance(value, cst.Tuple) and not value.lpar:
            items = [self._layout.expression(element.value) for element in value.elements]
            return self._layout.tuple_in_parentheses(items)
        return self._layout.last(value)

    def _import(self, statement: cst.ImportFrom) -> list[Document]:
        assert not isinstance(statement.names, cst.ImportStar)
        names = [_imported(name) for name in statement.names]
        head = f"from {'.' * len(statement.relative)}{code_of(statement.module) if statement.module else ''} import "
        if len(head) + len(", ".join(names)) <= WIDTH:
            return [head + ", ".join(names)]
        return [head, "(", *_one_a_line([[name] for name in names]), ")"]

    # -- compound statements ----------------------------------------------------------------------

    def _if(self, statement: cst.If, word: str, indent: int) -> None:
        self._head([word, *self._layout.last(statement.test), ":"], statement.body, indent)
        if isinstance(statement.orelse, cst.If):
            self._if(statement.orelse, "elif ", indent)
        elif statement.orelse is not None:
            self._head(["else:"], statement.orelse.body, indent)

    def _try(self, statement: cst.Try, indent: int) -> None:
        self._head(["try:"], statement.body, indent)
        for handler in statement.handlers:
            caught = "" if handler.type is None else f" {code_of(handler.type)}"
            name = "" if handler.name is None else f" as {code_of(handler.name.name)}"
            self._head([f"except{caught}{name}:"], handler.body, indent)
        assert statement.orelse is None
        assert statement.finalbody is None

    def _function(self, statement: cst.FunctionDef, indent: int) -> None:
        for decorator in statement.decorators:
            self.printer.statement(indent, [f"@{code_of(decorator.decorator)}"])
        returns = "" if statement.returns is None else f" -> {code_of(statement.returns.annotation)}"
        head, end = f"def {statement.name.value}(", f"){returns}:"
        flat = code_of(statement.params)
        if width_of(flat) + indent + len(head + end) <= WIDTH:
            self.printer.statement(indent, [head, flat, end])
        else:
            self.printer.statement(indent, [head, *_one_a_line(self._parameters(statement.params)), end])
        self.block(statement.body.body, indent + INDENT)

    def _parameters(self, parameters: cst.Parameters) -> list[list[Document]]:
        star: list[list[Document]] = [["*"]] if parameters.kwonly_params else []
        return [
            *(self._parameter(each) for each in parameters.params),
            *star,
            *(self._parameter(each) for each in parameters.kwonly_params),
        ]

    def _parameter(self, parameter: cst.Param) -> list[Document]:
        parts: list[Document] = [parameter.name.value]
        if parameter.annotation is not None:
            parts += [": ", *self._layout.expression(parameter.annotation.annotation)]
        if parameter.default is not None:
            parts += [" = " if parameter.annotation else "=", *self._layout.expression(parameter.default)]
        return parts


def _imported(name: cst.ImportAlias) -> str:
    return code_of(name.name) + (f" as {code_of(name.asname.name)}" if name.asname is not None else "")


def _one_a_line(items: Sequence[Sequence[Document]]) -> list[Document]:
    parts: list[Document] = []
    for item in items:
        parts += [SOFT, *item, ","]
    return [Group([Indented(parts), SOFT], expands=True)]
