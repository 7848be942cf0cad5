"""The Rust extension writes the texts of the journal as `typed_json` does, or leaves them to it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vesper._direct import journal_text
from vesper.journal.entry import Definition, Entry, Kind
from vesper.journal.journal import Beginning, open_journal
from vesper.journal.typed_json import DIGESTED_IN_PYTHON, EXACT_IN_PYTHON, digest_of
from vesper.values.json_value import parse_json

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.text(st.characters(max_codepoint=0x7F))
    | st.binary()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.dates()
    | st.datetimes(timezones=st.just(UTC))
    | st.timedeltas()
)
KEYS = st.text() | st.sampled_from(["$decimal", "$", "a$", "é", "😀"]) | st.integers() | st.booleans()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner),
    max_leaves=20,
)


@given(VALUES)
@example({"a": '\x00\x1f\x20\x7f"\\/\b\f\n\r\t\u2028'})
@example({"b": 1, "a": 2, "": 3, "\U0001f600": 4, "\ue000": 5})
@example({"$map": []})
@example({1: 2})
@example([2**63 - 1, 2**63, -(2**63), -(2**63) - 1])
@example([0.0, -0.0, 1e16, 1e-7, 5e-324, float("nan"), float("inf")])
@example([Decimal("0E-10"), Decimal("1E+3"), Decimal("-0.00")])
@example("\ud800")
@example({"\udc80": 1})
@example([datetime(2026, 11, 15, tzinfo=UTC), date(1, 1, 1), timedelta(days=-1)])
def test_the_two_write_the_same(value: Any) -> None:
    for write in (EXACT_IN_PYTHON, DIGESTED_IN_PYTHON):
        text = journal_text(value, write)
        if text is not None:
            assert text == write(value)


def test_the_common_kinds_are_written_in_rust() -> None:
    value = {"a": ["x", 1, True, None, 1.5, Decimal("1.50"), {"b": ()}], "c": {"d": "é"}}

    def other(part: object) -> str:
        raise AssertionError(part)

    assert journal_text(value, other) == EXACT_IN_PYTHON(value)


def test_what_is_too_deep_or_contains_itself_is_left_alone() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert journal_text(loop, EXACT_IN_PYTHON) is None
    shared: Any = "x" * 100_000
    for _ in range(12):
        shared = [shared, shared]
    assert journal_text(shared, EXACT_IN_PYTHON) is None


def test_a_kind_that_is_a_subclass_goes_to_the_other() -> None:
    class Text(str):
        __slots__ = ()

    assert journal_text([Text("x")], EXACT_IN_PYTHON) == '["x"]'


# -- lines ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [{"a": "x", "n": Decimal("1.50")}, {"body": parse_json("[1.50]")}, {"text": "x" * 20_000}, {"s": "\ud800"}],
    ids=["usual", "json", "large", "surrogate"],
)
@pytest.mark.parametrize("is_sensitive", [False, True], ids=["plain", "sensitive"])
def test_a_run_intends_what_it_would_append(arguments: dict[str, Any], is_sensitive: bool, tmp_path: Path) -> None:
    """The digest is that of the request, and the entry is the one that an appended INTENT with this digest is."""
    entry = Entry(
        Kind.INTENT, "charge", "custom", "keyed", "k", "", {"fixed": {"name": "a"}, "arguments": arguments}, 7
    )
    journal = open_journal(f"sqlite:{tmp_path / 'journal.db'}")
    definition = Definition("ab" * 32, "bench", "bench.vsp", "", b"{}")
    run = journal.begin(
        Beginning("run", definition, {}, datetime(2026, 1, 1, tzinfo=UTC), "python", is_sensitive=is_sensitive)
    )
    digest = run.intend(entry)
    assert digest == run.digest("custom", "keyed", {"name": "a"}, arguments, "k")
    if not is_sensitive:
        assert digest == digest_of("custom", "keyed", {"name": "a"}, arguments, "k")
    run.append(replace(entry, digest=digest))
    run.commit()
    intended, appended = (each.entry for each in journal.read("run").entries[1:])
    journal.close()
    assert intended == appended == replace(entry, digest=digest)
