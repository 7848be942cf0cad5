"""A module as text, with the positions of marked expressions in it.

libcst prints trees but breaks no lines. Forms that no writer produces are refused.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence

import libcst as cst

from vesper.codegen.layout.expressions import ExpressionLayout, choose_parentheses, render_code
from vesper.codegen.layout.pretty_printer import (
    INDENT,
    SOFT,
    Document,
    FirstThatFits,
    Group,
    Indented,
    Position,
    Printer,
    measure_width,
)

WIDTH = 100
IMPORT_WIDTH = 88
"""The default width of import sorters: at `WIDTH` a sorter without configuration would break some lines anew."""

_Positions = dict[cst.BaseExpression, Position]


def write_source(module: cst.Module, marked: Collection[cst.BaseExpression] = ()) -> tuple[str, _Positions]:
    """Return the text of a module, and the positions of the marked expressions in it, without their parentheses."""
    writer = _SourceWriter(marked)
    for line in module.header:  # whole, however long: other programs read them
        writer.printer.print_line("" if line.comment is None else line.comment.value)
    writer.write_block(module.body, 0)
    printer = writer.printer
    positions = {each: place for each, place in printer.positions.items() if isinstance(each, cst.BaseExpression)}
    return "\n".join(printer.lines) + "\n", positions


class _SourceWriter:
    def __init__(self, marked: Collection[cst.BaseExpression]) -> None:
        self.printer = Printer(WIDTH)
        self._layout = ExpressionLayout(marked)

    def write_block(self, statements: Sequence[cst.BaseStatement | cst.BaseSmallStatement], indent: int) -> None:
        for statement in statements:
            self._write_statement(statement, indent)

    def write_empty_line(self, line: cst.EmptyLine, indent: int) -> None:
        if line.comment is None:
            self.printer.print_line("")
            return
        # A long comment goes on below, a little further in.
        self._write_wrapped(line.comment.value, indent, "#   ")

    def _write_docstring(self, literal: str, indent: int) -> None:
        self._write_wrapped(literal, indent, "")

    def _write_wrapped(self, text: str, indent: int, before: str) -> None:
        """Write prose within the width. A word that is too long for a line is not broken."""
        if measure_width(text) <= WIDTH - indent:
            self.printer.print_line(" " * indent + text)
            return
        lines = textwrap.wrap(
            text, WIDTH - indent, subsequent_indent=before, break_long_words=False, break_on_hyphens=False
        )
        for line in lines:
            self.printer.print_line(" " * indent + line)

    def _write_statement(self, statement: cst.BaseStatement | cst.BaseSmallStatement, indent: int) -> None:
        for line in getattr(statement, "leading_lines", ()):
            self.write_empty_line(line, indent)
        match statement:
            case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString(value=text))]):
                self._write_docstring(text, indent)
            case cst.SimpleStatementLine(body=[small]):
                self.printer.print_statement(indent, self._lay_out_small(small))
            case cst.If():
                self._write_if(statement, "if ", indent)
            case cst.While():
                self._write_head(["while ", *self._layout.lay_out_last(statement.test), ":"], statement.body, indent)
            case cst.For():
                loop = [
                    "for ",
                    *self._lay_out_value(statement.target),
                    " in ",
                    *self._layout.lay_out_last(statement.iter),
                    ":",
                ]
                self._write_head(loop, statement.body, indent)
            case cst.Try():
                self._write_try(statement, indent)
            case cst.FunctionDef():
                self._write_function(statement, indent)
            case cst.ClassDef():
                bases = [render_code(each.value) for each in statement.bases]
                head = f"class {statement.name.value}" + (f"({', '.join(bases)})" if bases else "")
                self._write_head([head, ":"], statement.body, indent)
            case _:
                raise AssertionError(f"no layout for {type(statement).__name__}")

    def _write_head(self, head: Sequence[Document], body: cst.BaseSuite, indent: int) -> None:
        self.printer.print_statement(indent, head)
        self.write_block(body.body, indent + INDENT)

    # -- simple statements ------------------------------------------------------------------------

    def _lay_out_small(self, small: cst.BaseSmallStatement) -> list[Document]:
        match small:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(lpar=[_, *_]) as several)], value=value):
                names: list[list[Document]] = [[render_code(element.value)] for element in several.elements]
                if len(names) > 1:  # parentheses are there where the names do not fit on a line
                    return ["(", *_lay_out_lines(names), ") = ", *self._lay_out_value(value)]
                return ["(", *names[0], ",) = ", *self._lay_out_value(value)]
            case cst.Assign(targets=[target], value=value):
                return [*self._layout.lay_out_target(target.target), " = ", *self._lay_out_value(value)]
            case cst.AnnAssign(value=None):
                annotation = self._layout.lay_out_last(small.annotation.annotation)
                return [render_code(small.target), ": ", *annotation]
            case cst.AnnAssign(value=cst.BaseExpression() as value):
                return self._lay_out_annotated(render_code(small.target), small.annotation.annotation, value)
            case cst.Return(value=cst.BaseExpression() as value):
                return ["return ", *self._layout.lay_out_last(value)]
            case cst.Raise(exc=cst.BaseExpression() as raised):
                cause = [] if small.cause is None else [" from ", *self._layout.lay_out(small.cause.item)]
                return ["raise ", *self._layout.lay_out_last(raised), *cause]
            case cst.Expr(value=value):
                return self._layout.lay_out(value, "top")
            case cst.ImportFrom():
                return self._lay_out_import(small)
            case _:
                return [render_code(small).strip()]

    def _lay_out_annotated(
        self, target: str, annotation: cst.BaseExpression, value: cst.BaseExpression
    ) -> list[Document]:
        declared = [f"{target}: ", *self._layout.lay_out_last(annotation)]
        is_call = isinstance(value, cst.Call)
        if not isinstance(annotation, cst.Subscript) or not (is_call or choose_parentheses(value) == "best fit"):
            return [*declared, " = ", *self._lay_out_value(value)]
        # The annotation could be broken too, but that comes last.
        flat = f"{target}: {render_code(annotation)} = "
        written = self._layout.lay_out(value, "top")
        below: list[Document] = ["(", Group([Indented([SOFT, *written]), SOFT], expands=True), ")"]
        in_its_brackets = [[flat, *written]] if is_call else []
        return [FirstThatFits([[flat, *written], *in_its_brackets, [flat, *below], [*declared, " = ", *written]])]

    def _lay_out_value(self, value: cst.BaseExpression) -> list[Document]:
        if isinstance(value, cst.Tuple) and not value.lpar:
            items = [self._layout.lay_out(element.value) for element in value.elements]
            return self._layout.wrap_tuple(items)
        return self._layout.lay_out_last(value)

    def _lay_out_import(self, statement: cst.ImportFrom) -> list[Document]:
        assert not isinstance(statement.names, cst.ImportStar)
        names = [_render_import(name) for name in statement.names]
        head = (
            f"from {'.' * len(statement.relative)}{render_code(statement.module) if statement.module else ''} import "
        )
        if len(head) + len(", ".join(names)) <= IMPORT_WIDTH:
            return [head + ", ".join(names)]
        return [head, "(", *_lay_out_lines([[name] for name in names]), ")"]

    # -- compound statements ----------------------------------------------------------------------

    def _write_if(self, statement: cst.If, word: str, indent: int) -> None:
        self._write_head([word, *self._layout.lay_out_last(statement.test), ":"], statement.body, indent)
        if isinstance(statement.orelse, cst.If):
            self._write_if(statement.orelse, "elif ", indent)
        elif statement.orelse is not None:
            self._write_head(["else:"], statement.orelse.body, indent)

    def _write_try(self, statement: cst.Try, indent: int) -> None:
        self._write_head(["try:"], statement.body, indent)
        for handler in statement.handlers:
            caught = "" if handler.type is None else f" {render_code(handler.type)}"
            name = "" if handler.name is None else f" as {render_code(handler.name.name)}"
            self._write_head([f"except{caught}{name}:"], handler.body, indent)
        assert statement.orelse is None
        assert statement.finalbody is None

    def _write_function(self, statement: cst.FunctionDef, indent: int) -> None:
        for decorator in statement.decorators:
            self.printer.print_statement(indent, [f"@{render_code(decorator.decorator)}"])
        returns = "" if statement.returns is None else f" -> {render_code(statement.returns.annotation)}"
        head, end = f"def {statement.name.value}(", f"){returns}:"
        flat = render_code(statement.params)
        if measure_width(flat) + indent + len(head + end) <= WIDTH:
            self.printer.print_statement(indent, [head, flat, end])
        else:
            self.printer.print_statement(
                indent, [head, *_lay_out_lines(self._lay_out_parameters(statement.params)), end]
            )
        self.write_block(statement.body.body, indent + INDENT)

    def _lay_out_parameters(self, parameters: cst.Parameters) -> list[list[Document]]:
        star: list[list[Document]] = [["*"]] if parameters.kwonly_params else []
        return [
            *(self._lay_out_parameter(each) for each in parameters.params),
            *star,
            *(self._lay_out_parameter(each) for each in parameters.kwonly_params),
        ]

    def _lay_out_parameter(self, parameter: cst.Param) -> list[Document]:
        parts: list[Document] = [parameter.name.value]
        if parameter.annotation is not None:
            parts += [": ", *self._layout.lay_out(parameter.annotation.annotation)]
        if parameter.default is not None:
            parts += [" = " if parameter.annotation else "=", *self._layout.lay_out(parameter.default)]
        return parts


def _render_import(name: cst.ImportAlias) -> str:
    return render_code(name.name) + (f" as {render_code(name.asname.name)}" if name.asname is not None else "")


def _lay_out_lines(items: Sequence[Sequence[Document]]) -> list[Document]:
    parts: list[Document] = []
    for item in items:
        parts += [SOFT, *item, ","]
    return [Group([Indented(parts), SOFT], expands=True)]
