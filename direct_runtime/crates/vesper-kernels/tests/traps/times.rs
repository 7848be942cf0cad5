use std::sync::Arc;

use vesper_ir::ErrorCode::{BadFormat, DivisionByZero, InvalidArgument, TimeOverflow};
use vesper_ir::time::{FIRST_DATE, LAST_DATE, LAST_TIMESTAMP, LONGEST_DURATION};
use vesper_ir::{
    DateKernels, DurationKernels, ErrorCode, Member, Set, TimestampKernels, Unit, Value, Weekday,
};
use vesper_kernels::Native;

fn date(text: &str) -> i32 {
    Native.date_parse(text).unwrap()
}

fn moment(text: &str) -> i64 {
    Native.timestamp_parse(text).unwrap()
}

fn length(text: &str) -> i64 {
    Native.duration_parse(text).unwrap()
}

#[test]
fn the_calendar_day_by_day() {
    // Day by day over the whole range of years.
    let (mut year, mut month, mut day) = (1, 1, 1);
    for (number, date) in (0_i64..).zip(FIRST_DATE..=LAST_DATE) {
        assert_eq!(
            (
                Native.date_year(date),
                Native.date_month(date),
                Native.date_day(date)
            ),
            (year, month, day)
        );
        assert_eq!(Native.date_from_parts(year, month, day), Ok(date));
        assert_eq!(Native.date_weekday_number(date), number % 7 + 1);
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 if is_leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        assert_eq!(Native.date_days_in_month(date), days);
        assert_eq!(i64::from(date - Native.date_start_of_month(date)), day - 1);
        assert_eq!(i64::from(Native.date_end_of_month(date) - date), days - day);
        day += 1;
        if day > days {
            (month, day) = (month + 1, 1);
        }
        if month > 12 {
            (year, month) = (year + 1, 1);
        }
    }
    assert_eq!((year, month, day), (10_000, 1, 1));
    assert_eq!(Native.date_text(FIRST_DATE).as_ref(), "0001-01-01");
    assert_eq!(Native.date_text(LAST_DATE).as_ref(), "9999-12-31");
    assert_eq!(Native.date_weekday(FIRST_DATE), Weekday::Monday);
    assert_eq!(Native.date_day_of_year(date("1900-12-31")), 365);
    assert_eq!(Native.date_day_of_year(date("2000-12-31")), 366);
}

#[test]
fn counts_beyond_the_calendar_fail() {
    let day = date("2024-02-29");
    for count in [i64::MIN, i64::MAX] {
        assert_eq!(Native.date_add_days(day, count), Err(TimeOverflow));
        assert_eq!(Native.date_add_months(day, count), Err(TimeOverflow));
        assert_eq!(Native.date_add_years(day, count), Err(TimeOverflow));
        assert_eq!(Native.timestamp_from_epoch_seconds(count), Err(TimeOverflow));
        assert_eq!(Native.timestamp_from_epoch_microseconds(count), Err(TimeOverflow));
        assert_eq!(Native.duration_from_days(count), Err(TimeOverflow));
        assert_eq!(
            Native.duration_multiply(LONGEST_DURATION, count),
            Err(TimeOverflow)
        );
        assert_eq!(Native.date_from_parts(count, 1, 1), Err(InvalidArgument));
        assert_eq!(Native.date_from_parts(2024, count, 1), Err(InvalidArgument));
        assert_eq!(Native.date_from_parts(2024, 1, count), Err(InvalidArgument));
    }
    assert_eq!(
        Native.date_from_parts(2024, 1, (1 << 32) + 1),
        Err(InvalidArgument)
    );
    assert_eq!(Native.date_add_months(FIRST_DATE, -1), Err(TimeOverflow));
    assert_eq!(
        Native.date_add_months(FIRST_DATE, 9_999 * 12 - 1),
        Ok(date("9999-12-01"))
    );
    assert_eq!(Native.date_add_years(LAST_DATE, -9_998), Ok(date("0001-12-31")));
}

#[test]
fn months_between_inverts_add_months() {
    let starts = [
        "2023-12-31",
        "2024-01-29",
        "2024-01-30",
        "2024-01-31",
        "2024-02-29",
        "2024-03-15",
    ];
    for start in starts.map(date) {
        for end in start..start + 800 {
            let months = Native.date_months_between(start, end);
            assert!(Native.date_add_months(start, months).unwrap() <= end);
            assert!(Native.date_add_months(start, months + 1).unwrap() > end);
            assert_eq!(Native.date_months_between(end, start), -months);
            assert_eq!(Native.date_years_between(end, start), -(months / 12));
        }
    }
    assert_eq!(Native.date_months_between(FIRST_DATE, LAST_DATE), 9_999 * 12 - 1);
}

fn weekend(days: &[u32]) -> Set {
    Set::Member(days.iter().copied().map(Member).collect())
}

/// Counts one day at a time, as the specification defines it.
fn walk(mut day: i32, count: i64, holidays: &Set, weekend: &Set) -> Result<i32, ErrorCode> {
    let mut left = count.abs();
    while left > 0 {
        day += if count > 0 { 1 } else { -1 };
        if !(FIRST_DATE..=LAST_DATE).contains(&day) {
            return Err(TimeOverflow);
        }
        left -= i64::from(Native.date_is_business_day(day, holidays, weekend));
    }
    Ok(day)
}

#[test]
fn business_days_match_a_day_by_day_count() {
    let from = date("2024-12-20");
    let holidays = Set::Date(vec![from + 1, from + 4, from + 5, from + 6, from + 12, from + 13]);
    for weekend in [
        weekend(&[5, 6]),
        weekend(&[]),
        weekend(&[0, 3, 4]),
        weekend(&[0, 1, 2, 4, 5, 6]),
    ] {
        for holidays in [&holidays, &Set::Date(Vec::new()), &Set::Boolean(Vec::new())] {
            for start in [from - 3, from, from + 1, from + 5] {
                for count in -30..=30 {
                    let found = Native.date_add_business_days(start, count, holidays, &weekend);
                    assert_eq!(
                        found,
                        walk(start, count, holidays, &weekend),
                        "{start} {count} {weekend:?}"
                    );
                    let end = start + i32::try_from(count).unwrap();
                    let between = start.min(end)..start.max(end);
                    let days = between.filter(|day| Native.date_is_business_day(*day, holidays, &weekend));
                    let days = i64::try_from(days.count()).unwrap() * count.signum();
                    assert_eq!(
                        Native.date_business_days_between(start, end, holidays, &weekend),
                        Ok(days)
                    );
                }
            }
        }
    }
    let (usual, none) = (weekend(&[5, 6]), Set::Date(Vec::new()));
    for count in [i64::MIN, -2_000_000_000, 2_000_000_000, i64::MAX] {
        assert_eq!(
            Native.date_add_business_days(from, count, &none, &usual),
            Err(TimeOverflow)
        );
    }
    for start in [FIRST_DATE, FIRST_DATE + 1, LAST_DATE - 1, LAST_DATE] {
        for count in [-2, -1, 1, 2] {
            let found = Native.date_add_business_days(start, count, &none, &usual);
            assert_eq!(found, walk(start, count, &none, &usual));
        }
    }
    let all = weekend(&[0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(
        Native.date_add_business_days(from, 0, &none, &all),
        Err(InvalidArgument)
    );
    assert_eq!(
        Native.date_business_days_between(from, from, &none, &all),
        Err(InvalidArgument)
    );
    assert!(!Native.date_is_business_day(from, &none, &all));
}

#[test]
fn malformed_dates_and_timestamps_fail() {
    for text in [
        "",
        "2024-2-29",
        "2024-02-29 ",
        " 2024-02-29",
        "+2024-02-29",
        "02024-02-29",
        "2024-02-30",
        "2024-00-01",
        "2024-01-00",
        "2024-13-01",
        "٢٠٢٤-02-29",
        "2024-02-29\n",
        "2024/02/29",
        "2024-060",
        "-001-01-01",
    ] {
        assert_eq!(Native.date_parse(text), Err(BadFormat), "{text:?}");
    }
    for text in [
        "2024-02-29",
        "2024-02-29T24:00:00Z",
        "2024-02-29T12:60:00Z",
        "2024-02-29T12:30:60Z",
        "2024-02-29T12:30:00.Z",
        "2024-02-29T12:30:00,5Z",
        "2024-02-29T12:30:00.0000000000Z",
        "2024-02-29T12:30:00.0000001Z",
        "2024-02-29T12:30:00+24:00",
        "2024-02-29T12:30:00+01:60",
        "2024-02-29T12:30:00+0100",
        "2024-02-29T12:30:00+01",
        "2024-02-29T12:30:00 Z",
        "2024-02-29T12:30:00UTC",
        "2024-02-29_12:30:00Z",
        "2024-02-29T1:30:00Z",
        "2024-02-29T12:30:00Z ",
        "2024-02-29T12:30:00ZZ",
        "0000-12-31T23:00:00-02:00",
    ] {
        assert_eq!(Native.timestamp_parse(text), Err(BadFormat), "{text:?}");
    }
    assert_eq!(
        moment("2024-02-29T12:30:00.123456000+00:00"),
        moment("2024-02-29 12:30:00.123456z")
    );
    assert_eq!(
        Native.timestamp_parse("9999-12-31T23:59:59-00:01"),
        Err(TimeOverflow)
    );
    assert_eq!(moment("9999-12-31T23:59:59.999999+00:00"), LAST_TIMESTAMP);
    assert_eq!(moment("1969-12-31T23:59:59.999999Z"), -1);
}

#[test]
fn moments_before_1970() {
    let value = moment("1969-07-20T20:17:40.000001Z");
    let parts = [
        Native.timestamp_year(value),
        Native.timestamp_month(value),
        Native.timestamp_day(value),
        Native.timestamp_hour(value),
        Native.timestamp_minute(value),
        Native.timestamp_second(value),
        Native.timestamp_microsecond(value),
    ];
    assert_eq!(parts, [1969, 7, 20, 20, 17, 40, 1]);
    let truncated = |unit| {
        Native
            .timestamp_text(Native.timestamp_truncate(value, unit))
            .to_string()
    };
    assert_eq!(truncated(Unit::Day), "1969-07-20T00:00:00Z");
    assert_eq!(truncated(Unit::Hour), "1969-07-20T20:00:00Z");
    assert_eq!(truncated(Unit::Minute), "1969-07-20T20:17:00Z");
    assert_eq!(truncated(Unit::Second), "1969-07-20T20:17:40Z");
    assert_eq!(
        Native.date_text(Native.timestamp_to_date(value)).as_ref(),
        "1969-07-20"
    );
}

#[test]
fn durations_as_text() {
    for (given, shown) in [
        ("P1D", "P1D"),
        ("+PT36H", "P1DT12H"),
        ("PT0.000001S", "PT0.000001S"),
        ("-1d2h3m4.5s", "-P1DT2H3M4.5S"),
        ("0s", "PT0S"),
        ("-0s", "PT0S"),
        ("1s1ms1us", "PT1.001001S"),
        ("P0D", "PT0S"),
        ("PT3600S", "PT1H"),
        ("000001m", "PT1M"),
        ("PT60.000000S", "PT1M"),
        ("P3652059D", "P3652059D"),
    ] {
        assert_eq!(Native.duration_text(length(given)).as_ref(), shown);
    }
    for text in [
        "",
        "-",
        "P",
        "PT",
        "P1DT",
        "P1Y",
        "P1W",
        "P1M",
        "PT1.S",
        "PT.5S",
        "PT1.0000000S",
        "PT1.5M",
        "1.5h",
        "1.5ms",
        "1s1m",
        "1m1m",
        "1 s",
        "1S",
        "1h30",
        "p1d",
        "PT1h",
        "--1s",
        "1d-1h",
        "PT1S ",
        "P1DT1D",
        "T1H",
        "1µs",
        "١s",
        "P-1D",
        "1d2d",
        "1sms",
    ] {
        assert_eq!(Native.duration_parse(text), Err(BadFormat), "{text:?}");
    }
    let long = "9".repeat(100_000);
    for text in [
        format!("{long}s"),
        format!("-P{long}D"),
        format!("{long}d{long}us"),
        "P3652059DT0.000001S".to_owned(),
    ] {
        let shown: String = text.chars().take(9).collect();
        assert_eq!(Native.duration_parse(&text), Err(TimeOverflow), "{shown}");
    }
    assert_eq!(
        Native.duration_parse(&format!("{}1s", "0".repeat(100_000))),
        Ok(1_000_000)
    );
}

#[test]
fn durations_are_divided_half_to_even() {
    for value in -40_i64..=40 {
        for divisor in -9_i64..=9 {
            let found = Native.duration_divide(value, divisor);
            if divisor == 0 {
                assert_eq!(found, Err(DivisionByZero));
                continue;
            }
            let found = found.unwrap();
            let off = (found * divisor - value).abs() * 2;
            assert!(
                off < divisor.abs() || off == divisor.abs() && found % 2 == 0,
                "{value}/{divisor}: {found}"
            );
        }
    }
    assert_eq!(Native.duration_divide(LONGEST_DURATION, i64::MIN), Ok(0));
    assert_eq!(
        Native.duration_divide(-LONGEST_DURATION, -1),
        Ok(LONGEST_DURATION)
    );
    assert_eq!(Native.duration_negate(-LONGEST_DURATION), LONGEST_DURATION);
    assert_eq!(Native.duration_total_seconds(-1).to_string(), "-0.000001");
    let values: Arc<[Value]> = Arc::from([LONGEST_DURATION, 1, -1].map(Value::Duration));
    assert_eq!(Native.duration_sum(&values), Err(TimeOverflow));
}
