"""Line breaks for long lines, the way a formatter would put them, so that generated code reads like written code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import libcst as cst

WIDTH = 88
_INDENT = "    "
_EMPTY = cst.Module([])

Moved: TypeAlias = Callable[[cst.BaseExpression, cst.BaseExpression], None]
"""Told of every expression that is replaced by one that only looks different."""


def code_of(node: cst.CSTNode) -> str:
    return _EMPTY.code_for_node(node)


def fits(node: cst.CSTNode, column: int) -> bool:
    return column + len(code_of(node)) <= WIDTH


def _new_line(indent: str) -> cst.ParenthesizedWhitespace:
    return cst.ParenthesizedWhitespace(indent=True, last_line=cst.SimpleWhitespace(indent))


def break_long(node: cst.BaseExpression, moved: Moved) -> cst.BaseExpression:
    """An expression that is too long for its line: a call by its arguments, a row of operators by its operands."""
    if isinstance(node, cst.Call) and node.args:
        broken = break_arguments(node)
        moved(node, broken)
        return broken
    if isinstance(node, cst.Dict) and node.elements:
        return break_dict(node)
    if isinstance(node, cst.IfExp):
        return _break_condition(node)
    if isinstance(node, cst.ListComp):
        if not fits(node, 2 * len(_INDENT)):
            node = node.with_changes(for_in=_break_loop(node.for_in))
        return node.with_changes(
            lbracket=cst.LeftSquareBracket(whitespace_after=_new_line(_INDENT)),
            rbracket=cst.RightSquareBracket(whitespace_before=_new_line("")),
        )
    return break_chain(node, moved)


def _break_loop(loop: cst.CompFor) -> cst.CompFor:
    """`for …` and each `if …` of a comprehension on lines of their own."""
    conditions = [condition.with_changes(whitespace_before=_new_line(_INDENT)) for condition in loop.ifs]
    return loop.with_changes(whitespace_before=_new_line(_INDENT), ifs=conditions)


def _break_condition(node: cst.IfExp) -> cst.IfExp:
    """`(a` / `if c` / `else b)`."""
    return node.with_changes(
        whitespace_before_if=_new_line(_INDENT),
        whitespace_before_else=_new_line(_INDENT),
        lpar=[cst.LeftParen(whitespace_after=_new_line(_INDENT))],
        rpar=[cst.RightParen(whitespace_before=_new_line(""))],
    )


def break_chain(node: cst.BaseExpression, moved: Moved) -> cst.BaseExpression:
    """A row of operators, one operand a line, in parentheses; anything else as it is."""
    if not isinstance(node, cst.BinaryOperation | cst.BooleanOperation):
        return node
    broken = _broken(node, moved)
    wrapped = broken.with_changes(
        lpar=[cst.LeftParen(whitespace_after=_new_line(_INDENT))],
        rpar=[cst.RightParen(whitespace_before=_new_line(""))],
    )
    moved(broken, wrapped)
    return wrapped


def _broken(node: cst.BaseExpression, moved: Moved) -> cst.BaseExpression:
    if not isinstance(node, cst.BinaryOperation | cst.BooleanOperation) or node.lpar:
        return node
    operator = node.operator.with_changes(whitespace_before=_new_line(_INDENT))
    broken = node.with_changes(left=_broken(node.left, moved), operator=operator)
    moved(node, broken)
    return broken


def break_arguments(call: cst.Call) -> cst.Call:
    """Each argument of a call on a line of its own, with a comma after the last."""
    last = len(call.args) - 1
    if last == 0 and isinstance(call.args[0].value, cst.GeneratorExp) and not call.args[0].value.lpar:
        # A bare generator may not have a comma after it.
        args = [call.args[0].with_changes(whitespace_after_arg=_new_line(""))]
        return call.with_changes(args=args, whitespace_before_args=_new_line(_INDENT))
    args = [
        argument.with_changes(comma=cst.Comma(whitespace_after=_new_line("" if position == last else _INDENT)))
        for position, argument in enumerate(call.args)
    ]
    return call.with_changes(args=args, whitespace_before_args=_new_line(_INDENT))


def break_parameters(parameters: cst.Parameters) -> tuple[cst.Parameters, cst.ParenthesizedWhitespace]:
    """Each parameter on a line of its own, and the white space that goes before the first."""
    everything = [*parameters.params, *parameters.kwonly_params]
    last = everything[-1]

    def on_its_line(parameter: cst.Param) -> cst.Param:
        end = "" if parameter is last else _INDENT
        return parameter.with_changes(comma=cst.Comma(whitespace_after=_new_line(end)))

    star = cst.ParamStar(comma=cst.Comma(whitespace_after=_new_line(_INDENT)))
    broken = parameters.with_changes(
        params=[on_its_line(parameter) for parameter in parameters.params],
        star_arg=star if parameters.kwonly_params else cst.MaybeSentinel.DEFAULT,
        kwonly_params=[on_its_line(parameter) for parameter in parameters.kwonly_params],
    )
    return broken, _new_line(_INDENT)


def break_import(statement: cst.ImportFrom) -> cst.ImportFrom:
    """Each name of an import on a line of its own, in parentheses."""
    assert not isinstance(statement.names, cst.ImportStar)
    last = len(statement.names) - 1
    names = [
        name.with_changes(comma=cst.Comma(whitespace_after=_new_line("" if position == last else _INDENT)))
        for position, name in enumerate(statement.names)
    ]
    opening = cst.LeftParen(whitespace_after=_new_line(_INDENT))
    return statement.with_changes(names=names, lpar=opening, rpar=cst.RightParen())


def break_dict(display: cst.Dict, base: str = "") -> cst.Dict:
    """Each entry of a dict on a line of its own; `base` is how far the dict stands in from its statement."""
    last = len(display.elements) - 1
    inner = base + _INDENT
    elements = [
        element.with_changes(comma=cst.Comma(whitespace_after=_new_line(base if position == last else inner)))
        for position, element in enumerate(display.elements)
    ]
    return display.with_changes(elements=elements, lbrace=cst.LeftCurlyBrace(whitespace_after=_new_line(inner)))


def fit_dict(display: cst.Dict, column: int, base: str) -> cst.Dict:
    """A dict at this column, broken where it is too long, and so those in it."""
    if not display.elements or fits(display, column):
        return display
    elements = []
    for element in display.elements:
        value = element.value
        if isinstance(element, cst.DictElement) and isinstance(value, cst.Dict):
            inner = fit_dict(value, column + len(_INDENT) + len(code_of(element.key)) + 3, base + _INDENT)
            element = element.with_changes(value=inner)
        elements.append(element)
    return break_dict(display.with_changes(elements=elements), base)
