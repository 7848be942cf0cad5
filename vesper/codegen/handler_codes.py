"""Which failures a handler takes, as Python conditions that exclude each other, so that their order does not matter.

An exact code comes before a class of HTTP statuses, that before every status, that before anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

import libcst as cst

from vesper.codegen.layout.python_expression import string_literal
from vesper.language.ir.nodes import Handler

_CLASSES = ("http_4xx", "http_5xx")
_ERROR, _ANY = "http_error", "any"


def takes_the_rest(handler: Handler) -> bool:
    """True for a handler that takes whatever no other does: it is the `else`."""
    return _ANY in handler.codes


def taken_when(handler: Handler, handlers: Sequence[Handler], failure: str) -> cst.BaseExpression:
    """When this handler, and no other, takes what was caught as `failure`."""
    others = [code for each in handlers if each is not handler for code in each.codes]
    exact = [code for code in handler.codes if code not in (*_CLASSES, _ERROR, _ANY)]
    parts = [_is_in(_code(failure), exact)] if exact else []
    for name in (code for code in handler.codes if code in _CLASSES):
        ruled_out = [code for code in others if code.startswith(name[:6]) and code[6:].isdigit()]
        parts.append(_all([_is_in(_class(failure), [name]), *_not_in(_code(failure), ruled_out)]))
    if _ERROR in handler.codes:
        is_status = cst.BooleanOperation(
            cst.Comparison(_class(failure), [cst.ComparisonTarget(cst.NotEqual(), _text(""))]),
            cst.Or(),
            _is_in(_code(failure), [_ERROR]),
            lpar=[cst.LeftParen()],
            rpar=[cst.RightParen()],
        )
        classes = [code for code in others if code in _CLASSES]
        statuses = [code for code in others if code.startswith("http_") and code[5:].isdigit()]
        rest = [*_not_in(_class(failure), classes), *_not_in(_code(failure), statuses)]
        whole = _all([is_status, *rest]) if rest else is_status.with_changes(lpar=[], rpar=[])
        parts.append(whole)
    return reduce(lambda left, right: cst.BooleanOperation(left, cst.Or(), right), parts)


def _text(text: str) -> cst.SimpleString:
    return cst.SimpleString(string_literal(text))


def _code(failure: str) -> cst.BaseExpression:
    return cst.Call(cst.Name("code_of"), [cst.Arg(cst.Name(failure))])


def _class(failure: str) -> cst.BaseExpression:
    return cst.Call(cst.Name("http_class"), [cst.Arg(_code(failure))])


def _is_in(code: cst.BaseExpression, codes: Sequence[str]) -> cst.BaseExpression:
    if len(codes) == 1:
        return cst.Comparison(code, [cst.ComparisonTarget(cst.Equal(), _text(codes[0]))])
    return cst.Comparison(code, [cst.ComparisonTarget(cst.In(), _tuple(codes))])


def _not_in(code: cst.BaseExpression, codes: Sequence[str]) -> list[cst.BaseExpression]:
    return [cst.Comparison(code, [cst.ComparisonTarget(cst.NotIn(), _tuple(codes))])] if codes else []


def _tuple(codes: Iterable[str]) -> cst.Tuple:
    return cst.Tuple([cst.Element(_text(code)) for code in codes])


def _all(parts: Sequence[cst.BaseExpression]) -> cst.BaseExpression:
    return reduce(lambda left, right: cst.BooleanOperation(left, cst.And(), right), parts)
