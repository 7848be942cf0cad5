"""The Rust extension writes the texts and lines of the journal as `typed_json` and `lines` do, or leaves them to it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vesper._direct import journal_text
from vesper.journal import lines as journal_lines
from vesper.journal.entry import Definition, Entry, Kind
from vesper.journal.errors import JournalError
from vesper.journal.journal import Beginning, open_journal
from vesper.journal.limits import Limits
from vesper.journal.lines import native_intent, native_line, next_hash, write_line
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

LIMITS = Limits(lease_seconds=30, max_inline=200, max_body=10_000)
BEFORE = bytes(range(32))
TEXTS = st.text(max_size=10) | st.sampled_from(["", "charge[2]", 'a"\\\n', "\ud800", "é😀"])
ENTRIES = st.builds(
    Entry,
    st.sampled_from(Kind),
    TEXTS,
    TEXTS,
    st.sampled_from(["", "read", "keyed"]),
    st.none() | TEXTS,
    st.sampled_from(["", "ab" * 32]),
    st.dictionaries(TEXTS | KEYS, VALUES, max_size=4),
    st.integers(-(2**64), 2**64),
)
ARGUMENTS = st.dictionaries(st.text(max_size=5), VALUES, max_size=4)


def _in_python(entry: Entry, seq: int) -> tuple[bytes, bytes] | type[JournalError]:
    try:
        line, _ = write_line(entry, seq, None, LIMITS)
    except JournalError as error:
        return type(error)
    return line, next_hash(BEFORE, line)


@given(ENTRIES, st.integers(1, 2**31))
def test_the_two_write_the_same_lines(entry: Entry, seq: int) -> None:
    try:
        made: object = native_line(entry, seq, BEFORE, LIMITS.max_inline)
    except JournalError as error:
        made = type(error)
    if made is not None:
        assert made == _in_python(entry, seq)


@given(ARGUMENTS, TEXTS, st.none() | TEXTS, st.integers(1, 2**31))
@example({"body": parse_json('{"a": 1.50}')}, "charge", None, 1)
@example({"at": [date(2026, 11, 15), b"\x00"]}, "charge", "k", 1)
@example({"text": '{"$json":'}, "charge", "k", 1)
def test_the_two_write_the_same_intents(arguments: dict[str, Any], path: str, key: str | None, seq: int) -> None:
    fixed = {"provider": "stripe"}
    entry = Entry(Kind.INTENT, path, "http_request", "keyed", key, "", {"fixed": fixed, "arguments": arguments}, 7)
    made = native_intent(entry, seq, BEFORE, LIMITS.max_inline)
    if made is not None:
        line, hash_, digest = made
        assert digest == digest_of("http_request", "keyed", fixed, arguments, key)
        with_digest = Entry(Kind.INTENT, path, "http_request", "keyed", key, digest, entry.body, 7)
        assert (line, hash_) == _in_python(with_digest, seq)


def test_what_is_usual_is_written_in_rust() -> None:
    body = {"fixed": {"name": "a"}, "arguments": {"amount": Decimal("1.50"), "at": date(2026, 11, 15)}}
    entry = Entry(Kind.INTENT, "charge[2]", "custom", "keyed", "k", "", body, 7)
    assert native_intent(entry, 2, BEFORE, LIMITS.max_inline) is not None
    assert native_line(entry, 2, BEFORE, LIMITS.max_inline) == _in_python(entry, 2)


@pytest.mark.parametrize("size", [-1, 0, 1])
def test_a_body_that_stands_elsewhere_is_left_alone(size: int) -> None:
    """In bytes, not in characters; one more than fits is a blob."""
    text = "é" * 90
    body = {"v": text + "x" * (LIMITS.max_inline - len(text.encode()) - len('{"v":""}') + size)}
    entry = Entry(Kind.RESULT, "look", "custom", "read", None, "", body, 7)
    made = native_line(entry, 2, BEFORE, LIMITS.max_inline)
    _, blob = write_line(entry, 2, None, LIMITS)
    assert (made is None, blob is not None) == (size > 0, size > 0)


@pytest.mark.parametrize(
    "arguments",
    [{"a": "x", "n": Decimal("1.50")}, {"body": parse_json("[1.50]")}, {"text": "x" * 20_000}, {"s": "\ud800"}],
    ids=["usual", "json", "large", "surrogate"],
)
@pytest.mark.parametrize("is_sensitive", [False, True], ids=["plain", "sensitive"])
def test_a_run_intends_alike_with_and_without_the_extension(
    arguments: dict[str, Any], is_sensitive: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The digest is that of the request, and the line is the one that an appended INTENT with this digest has."""
    entry = Entry(
        Kind.INTENT, "charge", "custom", "keyed", "k", "", {"fixed": {"name": "a"}, "arguments": arguments}, 7
    )
    journal = open_journal(f"sqlite:{tmp_path / 'journal.db'}")
    definition = Definition("ab" * 32, "bench", "bench.vsp", "", b"{}")
    found = []
    for is_native in (True, False):
        monkeypatch.setattr(journal_lines, "_HAS_NATIVE", is_native)
        name = f"run-{is_native}"
        run = journal.begin(
            Beginning(name, definition, {}, datetime(2026, 1, 1, tzinfo=UTC), "python", is_sensitive=is_sensitive)
        )
        digest = run.intend(entry)
        assert digest == run.digest("custom", "keyed", {"name": "a"}, arguments, "k")
        run.append(Entry(Kind.RESULT, "charge", "custom", "keyed", "k", digest, {"value": "done"}, 8))
        run.commit()
        stored = [each.entry for each in journal.read(name).entries[1:]]
        assert [each.digest for each in stored] == [digest, digest]
        found.append([(each.kind, each.path, each.key, each.body, each.at_us) for each in stored])
    journal.close()
    assert found[0] == found[1]
