"""Functions of FEEL on ranges and points: the relations of Allen's algebra, and `range`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from vesper.importers.dmn.code import Code, RangeParts
from vesper.importers.dmn.functions.registry import feel_function
from vesper.importers.dmn.operators import both, either, equality, order
from vesper.importers.dmn.types import BOOLEAN, STRING, Ty, type_error, unsupported

if TYPE_CHECKING:
    from vesper.importers.dmn.translate import Translator

_TRUE, _FALSE = Code("true", BOOLEAN), Code("false", BOOLEAN)


def _parts(code: Code) -> RangeParts:
    """Return the ends of a range; a point is the range of itself."""
    if code.range is not None:
        if code.range.low is None or code.range.high is None:
            raise unsupported("relations of a range without an end")
        return code.range
    return RangeParts(code, code, True, True)


class _Relation:
    """Tests on the ends of two ranges."""

    def __init__(self, build: Translator, left: Code, right: Code) -> None:
        self.build = build
        one, other = _parts(left), _parts(right)
        assert one.low and one.high and other.low and other.high
        self.one, self.other = one, other

    def less(self, left: Code | None, right: Code | None) -> Code:
        assert left is not None and right is not None
        return order(self.build, "<", left, right)

    def same(self, left: Code | None, right: Code | None) -> Code:
        assert left is not None and right is not None
        return equality(self.build, left, right)

    def when(self, condition: bool, code: Code) -> Code:
        return code if condition else _FALSE

    def all(self, *codes: Code) -> Code:
        kept = [code for code in codes if code is not _TRUE]
        if any(code is _FALSE for code in kept):
            return _FALSE
        found = kept[0] if kept else _TRUE
        for code in kept[1:]:
            found = both(self.build, found, code)
        return found

    def some(self, *codes: Code) -> Code:
        kept = [code for code in codes if code is not _FALSE]
        found = kept[0] if kept else _FALSE
        for code in kept[1:]:
            found = either(self.build, found, code)
        return found

    def before(self) -> Code:
        one, other = self.one, self.other
        touch = self.when(not (one.is_high_closed and other.is_low_closed), self.same(one.high, other.low))
        return self.some(self.less(one.high, other.low), touch)

    def meets(self) -> Code:
        one, other = self.one, self.other
        return self.when(one.is_high_closed and other.is_low_closed, self.same(one.high, other.low))

    def starts_later(self, *, or_same: bool) -> Code:
        """Return whether the first range starts after the second, or together with it."""
        one, other = self.one, self.other
        tie = (or_same and (other.is_low_closed or not one.is_low_closed)) or (
            not or_same and other.is_low_closed and not one.is_low_closed
        )
        return self.some(self.less(other.low, one.low), self.when(tie, self.same(one.low, other.low)))

    def ends_earlier(self, *, or_same: bool) -> Code:
        """Return whether the first range ends before the second, or together with it."""
        one, other = self.one, self.other
        tie = (or_same and (other.is_high_closed or not one.is_high_closed)) or (
            not or_same and other.is_high_closed and not one.is_high_closed
        )
        return self.some(self.less(one.high, other.high), self.when(tie, self.same(one.high, other.high)))

    def during(self) -> Code:
        return self.all(self.starts_later(or_same=True), self.ends_earlier(or_same=True))

    def starts(self) -> Code:
        one, other = self.one, self.other
        same = self.when(one.is_low_closed == other.is_low_closed, self.same(one.low, other.low))
        return self.all(same, self.ends_earlier(or_same=True))

    def finishes(self) -> Code:
        one, other = self.one, self.other
        same = self.when(one.is_high_closed == other.is_high_closed, self.same(one.high, other.high))
        return self.all(same, self.starts_later(or_same=True))

    def coincides(self) -> Code:
        one, other = self.one, self.other
        shape = (one.is_low_closed, one.is_high_closed) == (other.is_low_closed, other.is_high_closed)
        return self.when(shape, self.all(self.same(one.low, other.low), self.same(one.high, other.high)))

    def reaches(self) -> Code:
        """Return whether the first range ends at or after the start of the second."""
        one, other = self.one, self.other
        tie = one.is_high_closed and other.is_low_closed
        return self.some(self.less(other.low, one.high), self.when(tie, self.same(other.low, one.high)))

    def overlaps_before(self) -> Code:
        one, other = self.one, self.other
        starts_first = self.some(
            self.less(one.low, other.low),
            self.when(one.is_low_closed and not other.is_low_closed, self.same(one.low, other.low)),
        )
        ends_first = self.some(
            self.less(one.high, other.high),
            self.when(not one.is_high_closed or other.is_high_closed, self.same(one.high, other.high)),
        )
        return self.all(starts_first, self.reaches(), ends_first)


def _flip(relation: Callable[[_Relation], Code]) -> Callable[[Translator, Code, Code], Code]:
    return lambda build, left, right: relation(_Relation(build, right, left))


def _keep(relation: Callable[[_Relation], Code]) -> Callable[[Translator, Code, Code], Code]:
    return lambda build, left, right: relation(_Relation(build, left, right))


def _overlaps(build: Translator, left: Code, right: Code) -> Code:
    forwards, backwards = _Relation(build, left, right), _Relation(build, right, left)
    return forwards.all(forwards.reaches(), backwards.reaches())


_RELATIONS: dict[str, tuple[str, Callable[[Translator, Code, Code], Code]]] = {
    "before": ("any", _keep(_Relation.before)),
    "after": ("any", _flip(_Relation.before)),
    "meets": ("ranges", _keep(_Relation.meets)),
    "met by": ("ranges", _flip(_Relation.meets)),
    "overlaps": ("ranges", _overlaps),
    "overlaps before": ("ranges", _keep(_Relation.overlaps_before)),
    "overlaps after": ("ranges", _flip(_Relation.overlaps_before)),
    "finishes": ("second", _keep(_Relation.finishes)),
    "finished by": ("first", _flip(_Relation.finishes)),
    "includes": ("first", _flip(_Relation.during)),
    "during": ("second", _keep(_Relation.during)),
    "starts": ("second", _keep(_Relation.starts)),
    "started by": ("first", _flip(_Relation.starts)),
    "coincides": ("alike", _keep(_Relation.coincides)),
}


def _declare(name: str, shape: str, relation: Callable[[Translator, Code, Code], Code]) -> None:
    def translate(build: Translator, left: Code, right: Code) -> Code:
        shapes = (left.range is not None, right.range is not None)
        allowed = {
            "any": True,
            "ranges": shapes == (True, True),
            "first": shapes[0],
            "second": shapes[1],
            "alike": shapes[0] == shapes[1],
        }
        if not allowed[shape]:
            raise type_error(f"`{name}` takes other points and ranges")
        left, outer = build.bound(left, "point")
        right, inner = build.bound(right, "point")
        return build.within((*outer, *inner), build.close(relation(build, left, right)))

    names = {"first": "range, point"}.get(shape, "point1, point2")
    feel_function(name, names, [None, None], BOOLEAN)(translate)
    for other in ("range1, range2", "point, range", "range, point"):
        if other != names:
            feel_function(name, other, [None, None], BOOLEAN)(translate)


for _name, (_shape, _relation) in _RELATIONS.items():
    _declare(_name, _shape, _relation)


@feel_function("range", "from", [STRING], Ty("range"))
def _range(build: Translator, text: Code) -> Code:
    from vesper.importers.dmn.feel import syntax as feel
    from vesper.importers.dmn.feel.parser import parse_expression
    from vesper.importers.dmn.feel.tokens import FeelProblem, unescape

    if not text.is_literal:
        raise unsupported("a range from a text that is known at run time only")
    try:
        found = parse_expression(_padded(unescape(text.text[1:-1])), ())
    except FeelProblem:
        raise type_error("this text is no range") from None
    if not isinstance(found, feel.Range):
        raise type_error("this text is no range")
    for end in (found.low, found.high):
        if not _is_constant(end):
            raise type_error("the ends of a range in a text are literals")
    code = build.translate(found, {})
    parts = code.range
    assert parts is not None
    if parts.low is not None and parts.high is not None and parts.low.is_literal and parts.high.is_literal:
        _check_order(parts)
    return code


def _padded(text: str) -> str:
    """Write the absent ends of a range as null."""
    import re

    text = re.sub(r"^([\[\](])\s*\.\.", r"\1null..", text.strip())
    return re.sub(r"\.\.\s*([\[\])])$", r"..null\1", text)


def _is_constant(node: object) -> bool:
    from vesper.importers.dmn.feel import syntax as feel

    if isinstance(node, feel.Unary):
        return isinstance(node.operand, feel.Number)
    if isinstance(node, feel.Call):
        return isinstance(node.function, feel.Name) and all(isinstance(each, feel.Text) for each in node.arguments)
    return isinstance(node, feel.Number | feel.Text | feel.AtLiteral | feel.Null)


def _check_order(parts: RangeParts) -> None:
    from decimal import Decimal

    assert parts.low is not None and parts.high is not None
    if parts.low.ty.kind == "number" and Decimal(parts.low.text) > Decimal(parts.high.text):
        raise type_error("the range ends before it starts")
