"""Writer of the failures of a handler as Python conditions that exclude each other, in any order.

An exact code has precedence over a class of HTTP statuses, that over every status, and that over any failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

import libcst as cst

from vesper.codegen.layout.python_expression import write_string
from vesper.language.ir.nodes import Handler

_CLASSES = ("http_4xx", "http_5xx")
_ERROR, _ANY = "http_error", "any"


def is_default_handler(handler: Handler) -> bool:
    """Return whether this is the handler of all remaining failures, which is written as `else`."""
    return _ANY in handler.codes


def write_handler_condition(handler: Handler, handlers: Sequence[Handler], failure: str) -> cst.BaseExpression:
    """Write the condition under which only this handler takes the caught `failure`."""
    others = [code for each in handlers if each is not handler for code in each.codes]
    exact = [code for code in handler.codes if code not in (*_CLASSES, _ERROR, _ANY)]
    parts = [_write_is_in(_write_code(failure), exact)] if exact else []
    for name in (code for code in handler.codes if code in _CLASSES):
        ruled_out = [code for code in others if code.startswith(name[:6]) and code[6:].isdigit()]
        parts.append(
            _join_with_and(
                [_write_is_in(_write_class(failure), [name]), *_write_not_in(_write_code(failure), ruled_out)]
            )
        )
    if _ERROR in handler.codes:
        is_status = cst.BooleanOperation(
            cst.Comparison(_write_class(failure), [cst.ComparisonTarget(cst.NotEqual(), _write_text(""))]),
            cst.Or(),
            _write_is_in(_write_code(failure), [_ERROR]),
            lpar=[cst.LeftParen()],
            rpar=[cst.RightParen()],
        )
        classes = [code for code in others if code in _CLASSES]
        statuses = [code for code in others if code.startswith("http_") and code[5:].isdigit()]
        rest = [*_write_not_in(_write_class(failure), classes), *_write_not_in(_write_code(failure), statuses)]
        whole = _join_with_and([is_status, *rest]) if rest else is_status.with_changes(lpar=[], rpar=[])
        parts.append(whole)
    return reduce(lambda left, right: cst.BooleanOperation(left, cst.Or(), right), parts)


def _write_text(text: str) -> cst.SimpleString:
    return cst.SimpleString(write_string(text))


def _write_code(failure: str) -> cst.BaseExpression:
    return cst.Call(cst.Name("code_of"), [cst.Arg(cst.Name(failure))])


def _write_class(failure: str) -> cst.BaseExpression:
    return cst.Call(cst.Name("http_class"), [cst.Arg(_write_code(failure))])


def _write_is_in(code: cst.BaseExpression, codes: Sequence[str]) -> cst.BaseExpression:
    if len(codes) == 1:
        return cst.Comparison(code, [cst.ComparisonTarget(cst.Equal(), _write_text(codes[0]))])
    return cst.Comparison(code, [cst.ComparisonTarget(cst.In(), _write_tuple(codes))])


def _write_not_in(code: cst.BaseExpression, codes: Sequence[str]) -> list[cst.BaseExpression]:
    return [cst.Comparison(code, [cst.ComparisonTarget(cst.NotIn(), _write_tuple(codes))])] if codes else []


def _write_tuple(codes: Iterable[str]) -> cst.Tuple:
    return cst.Tuple([cst.Element(_write_text(code)) for code in codes])


def _join_with_and(parts: Sequence[cst.BaseExpression]) -> cst.BaseExpression:
    return reduce(lambda left, right: cst.BooleanOperation(left, cst.And(), right), parts)
