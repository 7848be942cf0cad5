//! Tests of the calendar and of the texts of docs/spec/time.md.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use vesper_ir::time::{
    Civil, DAY, FIRST_DATE, FIRST_TIMESTAMP, LAST_DATE, LAST_TIMESTAMP, LONGEST_DURATION, TimeError,
    date_text, days_in_month, duration_text, parse_date, parse_duration, parse_timestamp, timestamp_text,
};

use TimeError::{Malformed, OutOfRange};

#[test]
fn the_calendar_has_every_day_once() {
    // From the first day to the last, counted one by one.
    let mut civil = Civil::new(1, 1, 1).unwrap();
    for date in FIRST_DATE..=LAST_DATE {
        assert_eq!(civil.to_date(), date);
        assert_eq!(Civil::from_date(date), civil);
        civil.day += 1;
        if civil.day > days_in_month(civil.year, civil.month) {
            civil.day = 1;
            civil.month += 1;
        }
        if civil.month > 12 {
            civil.month = 1;
            civil.year += 1;
        }
    }
    assert_eq!((civil.year, civil.month, civil.day), (10_000, 1, 1));
    assert_eq!(parse_date("1970-01-01"), Ok(0));
    assert_eq!(Civil::new(1900, 2, 29), None);
    assert!(Civil::new(2000, 2, 29).is_some());
    assert_eq!(Civil::new(2024, 0, 1), None);
    assert_eq!(Civil::new(2024, 13, 1), None);
    assert_eq!(Civil::new(2024, 4, 31), None);
}

#[test]
fn dates_have_one_text() {
    for text in ["0001-01-01", "9999-12-31", "2024-02-29", "1969-12-31"] {
        assert_eq!(date_text(parse_date(text).unwrap()), text);
    }
    for text in [
        "",
        "2024-2-29",
        "20240229",
        "2024-02-30",
        "2023-02-29",
        "0000-01-01",
        "2024-02-29 ",
        " 2024-02-29",
        "2024-02-29Z",
        "+2024-02-29",
        "-2024-02-29",
        "10000-01-01",
        "2024/02/29",
        "２０２４-02-29",
        "2024-00-01",
        "2024-01-00",
        "2024-W01-1",
        "2024-060",
    ] {
        assert_eq!(parse_date(text), Err(Malformed), "{text:?}");
    }
}

#[test]
fn timestamps_are_read_by_the_grammar_and_written_in_utc() {
    for (text, expected) in [
        ("2024-02-29t12:30:00.5+02:00", "2024-02-29T10:30:00.500000Z"),
        ("2024-02-29 12:30:00z", "2024-02-29T12:30:00Z"),
        ("2024-02-29T12:30:00-00:00", "2024-02-29T12:30:00Z"),
        ("2024-02-29T23:59:59.999999-23:59", "2024-03-01T23:58:59.999999Z"),
        ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"),
        ("2024-01-01T00:00:00.000001000Z", "2024-01-01T00:00:00.000001Z"),
        ("0001-01-01T23:59:00+23:59", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
    ] {
        assert_eq!(timestamp_text(parse_timestamp(text).unwrap()), expected, "{text}");
    }
    for text in [
        "",
        "2024-02-29",
        "2024-02-29T12:30:00",
        "2024-02-29T12:30Z",
        "2024-02-29T24:00:00Z",
        "2024-02-29T23:60:00Z",
        "2024-02-29T23:59:60Z",
        "2023-02-29T00:00:00Z",
        "2024-02-29T00:00:00.Z",
        "2024-02-29T00:00:00,5Z",
        "2024-02-29T00:00:00.1234567Z",
        "2024-02-29T00:00:00.0000000000Z",
        "2024-02-29T00:00:00+02",
        "2024-02-29T00:00:00+0200",
        "2024-02-29T00:00:00+24:00",
        "2024-02-29T00:00:00+00:60",
        "2024-02-29T00:00:00Z ",
        "2024-02-29T00:00:00 Z",
        "2024-02-29_00:00:00Z",
        "2024-02-29T1:00:00Z",
        "2024-02-29T00:00:00+02:00:00",
        "0000-12-31T23:59:59Z",
    ] {
        assert_eq!(parse_timestamp(text), Err(Malformed), "{text:?}");
    }
    assert_eq!(parse_timestamp("0001-01-01T00:00:00+00:01"), Err(OutOfRange));
    assert_eq!(
        parse_timestamp("9999-12-31T23:59:59.999999-00:01"),
        Err(OutOfRange)
    );
    assert_eq!(parse_timestamp("0001-01-01T00:00:00Z"), Ok(FIRST_TIMESTAMP));
    assert_eq!(parse_timestamp("9999-12-31T23:59:59.999999Z"), Ok(LAST_TIMESTAMP));
}

#[test]
fn durations_are_read_in_two_forms_and_written_in_one() {
    for (text, expected) in [
        ("90s", "PT1M30S"),
        ("1h30m", "PT1H30M"),
        ("200ms", "PT0.2S"),
        ("1us", "PT0.000001S"),
        ("-1d2h3m4.5s6ms7us", "-P1DT2H3M4.506007S"),
        ("P1DT0.5S", "P1DT0.5S"),
        ("+PT36H", "P1DT12H"),
        ("PT0S", "PT0S"),
        ("-0s", "PT0S"),
        ("P0D", "PT0S"),
        ("PT00000000000000000000000000000000000001S", "PT1S"),
        ("P1D", "P1D"),
        ("PT61M61S", "PT1H2M1S"),
        ("1d1us", "P1DT0.000001S"),
    ] {
        let read = parse_duration(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        assert_eq!(duration_text(read), expected, "{text}");
        assert_eq!(parse_duration(expected), Ok(read));
    }
    for text in [
        "",
        "-",
        "P",
        "PT",
        "P1DT",
        "30",
        "P1M",
        "P1Y",
        "P1W",
        "1w",
        "1H",
        "1D",
        "p1d",
        "PT1h",
        "1m1h",
        "1h1h",
        "1ms1s",
        "1us1ms",
        "1.5m",
        "1.5h",
        "PT1.5H",
        "PT1.S",
        "PT.5S",
        "1.1234567s",
        "1.0000000s",
        "--1s",
        "1s ",
        " 1s",
        "1 s",
        "1h 30m",
        "1e3s",
        "PT1M1H",
        "P1D1H",
        "1,5s",
        "PT-1S",
        "T1S",
        "1mss",
        "١s",
    ] {
        assert_eq!(parse_duration(text), Err(Malformed), "{text:?}");
    }
    let days = LONGEST_DURATION / DAY;
    assert_eq!(parse_duration(&format!("-{days}d")), Ok(-LONGEST_DURATION));
    assert_eq!(parse_duration(&format!("{days}d1us")), Err(OutOfRange));
    assert_eq!(
        parse_duration(&format!("P{}D", "9".repeat(1_000_000))),
        Err(OutOfRange)
    );
    // Malformed text takes precedence over the limit.
    assert_eq!(parse_duration(&format!("{}dx", "9".repeat(100))), Err(Malformed));
}
