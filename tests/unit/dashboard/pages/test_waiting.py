"""The page of waiting runs: the form of an answer's type, answers, cancellations."""

from __future__ import annotations

from decimal import Decimal

import pytest

from vesper.dashboard.page import BadRequest
from vesper.dashboard.pages.waiting.answer_form import answer_of, form_fields
from vesper.values.types import BOOLEAN, DECIMAL, INTEGER, STRING, ArrayOf, Enum, OptionalOf, Record

APPROVAL = Record(
    (
        ("approved", BOOLEAN),
        ("note", OptionalOf(STRING)),
        ("level", Enum(("low", "high"))),
        ("amount", DECIMAL),
        ("lines", ArrayOf(INTEGER)),
    )
)


def test_each_type_has_a_field_and_its_value() -> None:
    fields = form_fields(APPROVAL)
    assert [(each.name, each.kind) for each in fields] == [
        ("answer.approved", "select"),
        ("answer.note", "text"),
        ("answer.level", "select"),
        ("answer.amount", "text"),
        ("answer.lines", "textarea"),
    ]
    assert fields[0].choices == ("–", "yes", "no")  # nothing is chosen by itself
    assert fields[1].is_optional
    given = {"answer.approved": "no", "answer.level": "high", "answer.amount": "1.50", "answer.lines": "[1, 2]"}
    assert answer_of(APPROVAL, given) == {"approved": False, "level": "high", "amount": "1.50", "lines": [1, 2]}
    assert answer_of(OptionalOf(BOOLEAN), {"answer": "–"}) is None
    assert answer_of(INTEGER, {"answer": "2.5"}) == Decimal("2.5")  # refused with its type by the run
    assert (form_fields(None), answer_of(None, {})) == ((), None)
    with pytest.raises(BadRequest, match="`approved` is not chosen"):
        answer_of(APPROVAL, {**given, "answer.approved": "–"})
    with pytest.raises(BadRequest, match="`lines` is no array<integer>"):
        answer_of(APPROVAL, {**given, "answer.lines": "["})
