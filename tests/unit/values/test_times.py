"""Dates, timestamps and durations as text, by the grammars of time.md only."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.values.model import ValueProblem
from vesper.values.times import (
    MAX_DURATION,
    date_text,
    duration_text,
    parse_date,
    parse_duration,
    parse_timestamp,
    timestamp_text,
)


@pytest.mark.parametrize("text", ["0001-01-01", "2024-02-29", "9999-12-31"])
def test_valid_date_is_parsed(text: str) -> None:
    assert date_text(parse_date(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "20240229", "2023-02-29", "0000-01-01", "2024-2-29", " 2024-02-29", "2024-02-29\n", "\uff12024-02-29"],
)
def test_invalid_date_is_rejected(text: str) -> None:
    with pytest.raises(ValueProblem, match="malformed"):
        parse_date(text)


@pytest.mark.parametrize(
    "text, shown",
    [
        ("2024-02-29T12:30:00Z", "2024-02-29T12:30:00Z"),
        ("2024-02-29t12:30:00.5+02:00", "2024-02-29T10:30:00.500000Z"),
        ("2024-02-29 12:30:00.123456000z", "2024-02-29T12:30:00.123456Z"),
        ("2024-01-01T00:00:00-00:00", "2024-01-01T00:00:00Z"),
        ("0001-01-01T00:00:00-23:59", "0001-01-01T23:59:00Z"),
    ],
)
def test_valid_timestamp_is_parsed(text: str, shown: str) -> None:
    assert timestamp_text(parse_timestamp(text)) == shown


@pytest.mark.parametrize(
    "text, kind",
    [
        *((text, "malformed") for text in (
            "2024-02-29", "2024-02-29T12:30Z", "2024-02-29T12:30:00", "2024-02-29T24:00:00Z", "2024-06-30T23:59:60Z",
            "2023-02-29T00:00:00Z", "2024-01-01T00:00:00.Z", "2024-01-01T00:00:00.1234567Z",
            "2024-01-01T00:00:00+24:00", "2024-01-01T00:00:00+0200", "2024-01-01T00:00:00.0000000000Z",
            "2024-01-01T00:00:00+01:60",
        )),
        ("0001-01-01T00:00:00+01:00", "out_of_range"),
        ("9999-12-31T23:59:59-00:01", "out_of_range"),
    ],
)  # fmt: skip
def test_invalid_timestamp_is_rejected(text: str, kind: str) -> None:
    with pytest.raises(ValueProblem, match=kind):
        parse_timestamp(text)


@pytest.mark.parametrize(
    "text, shown",
    [
        ("90s", "PT1M30S"),
        ("1h30m", "PT1H30M"),
        ("200ms", "PT0.2S"),
        ("5us", "PT0.000005S"),
        ("1d2h3m4.5s6ms7us", "P1DT2H3M4.506007S"),
        ("-P1DT0.5S", "-P1DT0.5S"),
        ("+PT24H", "P1D"),
        ("P0D", "PT0S"),
        ("-0s", "PT0S"),
        ("0" * 5000 + "1s", "PT1S"),
        ("P3652059D", "P3652059D"),
    ],
)
def test_valid_duration_is_parsed(text: str, shown: str) -> None:
    assert duration_text(parse_duration(text)) == shown


@pytest.mark.parametrize(
    "text, kind",
    [
        *((text, "malformed") for text in (
            "", "P", "PT", "30", "-", "P1M", "P1Y", "1s1h", "1.5h", "1.1234567s", "1 s", "PT1S ", "1S",
        )),
        ("P3652060D", "out_of_range"),
        ("-P3652059DT0.000001S", "out_of_range"),
        ("9" * 100_000 + "us", "out_of_range"),
    ],
)  # fmt: skip
def test_invalid_duration_is_rejected(text: str, kind: str) -> None:
    with pytest.raises(ValueProblem, match=kind):
        parse_duration(text)


@given(st.timedeltas(-MAX_DURATION, MAX_DURATION))
def test_duration_text_round_trips(length: timedelta) -> None:
    assert parse_duration(duration_text(length)) == length
