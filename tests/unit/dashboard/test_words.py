"""Numbers with units, shares that never round to all or nothing, times as distances."""

from __future__ import annotations

from vesper.dashboard.words import duration_text, number_text, share_text, size_text, utc_text, when_text


def test_numbers_have_groups_and_units() -> None:
    assert number_text(1234567, "runs") == "1,234,567 runs"
    assert number_text(0.01234) == "0.0123"
    assert number_text(None) == "–"
    assert [size_text(each) for each in (0, 1023, 1024, 5 << 20)] == ["0 B", "1023 B", "1.0 KiB", "5.0 MiB"]


def test_only_all_is_shown_as_all() -> None:
    assert [share_text(each) for each in (0, 0.00001, 0.5, 0.99999, 1)] == ["0 %", "0.1 %", "50.0 %", "99.9 %", "100 %"]


def test_times_are_distances_and_far_ones_dates() -> None:
    now = 1_700_000_000_000_000
    moments = (0, 5, 90, 7_200, 200_000, 10**8)
    assert [when_text(now - each * 1_000_000, now) for each in moments] == [
        *("just now", "5 s ago", "1 min ago", "2 h ago", "2 d ago", "2020-09-13")
    ]
    assert when_text(now + 90_000_000, now) == "in 1 min"
    assert utc_text(now) == "2023-11-14T22:13:20Z"
    durations = (12.0, 1_500.0, 2_500_000.0, 125e6, 7_380e6)
    assert [duration_text(each) for each in durations] == ["12 µs", "1.5 ms", "2.5 s", "2 min 5 s", "2 h 3 min"]
