//! Dates, timestamps, durations, times of day, periods, zones: the calendar, and the texts of docs/spec/time.md.
//!
//! A date counts days since 1970-01-01, a timestamp microseconds since the start of that day, a duration microseconds.
//! Parsing takes time linear in the text.

mod pattern;
mod text;
mod zone;

pub use pattern::{Fields, Layout};
pub use text::{
    date_text, duration_text, parse_date, parse_duration, parse_period, parse_time, parse_timestamp,
    period_text, time_text, timestamp_text,
};
pub use zone::{Clock, clock};

/// Microseconds of a second, and of a day.
pub const SECOND: i64 = 1_000_000;
pub const DAY: i64 = 86_400 * SECOND;
/// 0001-01-01 and 9999-12-31.
pub const FIRST_DATE: i32 = -719_162;
pub const LAST_DATE: i32 = 2_932_896;
/// Start of 0001-01-01, and the last microsecond of 9999-12-31.
pub const FIRST_TIMESTAMP: i64 = FIRST_DATE as i64 * DAY;
pub const LAST_TIMESTAMP: i64 = (LAST_DATE as i64 + 1) * DAY - 1;
/// Longest duration of either sign.
pub const LONGEST_DURATION: i64 = 3_652_059 * DAY;
/// Longest period of either sign.
pub const MAX_MONTHS: i32 = 9_999 * 12;

/// Error of parsing or arithmetic on times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeError {
    /// The text does not follow the grammar, or names a day that does not exist.
    Malformed,
    /// The result is outside the years 1 to 9999, or beyond [`LONGEST_DURATION`].
    OutOfRange,
}

/// Day of the proleptic Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    pub year: i32,
    /// 1 to 12.
    pub month: i32,
    /// 1 to 31.
    pub day: i32,
}

/// Creates a date. Fails outside the years 1 to 9999.
pub fn date(days: i64) -> Result<i32, TimeError> {
    let days = i32::try_from(days).map_err(|_| TimeError::OutOfRange)?;
    if (FIRST_DATE..=LAST_DATE).contains(&days) {
        return Ok(days);
    }
    Err(TimeError::OutOfRange)
}

/// Creates a timestamp. Fails outside the years 1 to 9999.
pub fn timestamp(microseconds: i128) -> Result<i64, TimeError> {
    let microseconds = i64::try_from(microseconds).map_err(|_| TimeError::OutOfRange)?;
    if (FIRST_TIMESTAMP..=LAST_TIMESTAMP).contains(&microseconds) {
        return Ok(microseconds);
    }
    Err(TimeError::OutOfRange)
}

/// Creates a duration. Fails beyond [`LONGEST_DURATION`].
pub fn duration(microseconds: i128) -> Result<i64, TimeError> {
    let microseconds = i64::try_from(microseconds).map_err(|_| TimeError::OutOfRange)?;
    if (-LONGEST_DURATION..=LONGEST_DURATION).contains(&microseconds) {
        return Ok(microseconds);
    }
    Err(TimeError::OutOfRange)
}

/// Creates a time of day. Fails outside of a day.
pub fn time_of_day(microseconds: i128) -> Result<i64, TimeError> {
    let microseconds = i64::try_from(microseconds).map_err(|_| TimeError::OutOfRange)?;
    if (0..DAY).contains(&microseconds) {
        return Ok(microseconds);
    }
    Err(TimeError::OutOfRange)
}

/// Creates a period. Fails beyond [`MAX_MONTHS`].
pub fn period(months: i64) -> Result<i32, TimeError> {
    let months = i32::try_from(months).map_err(|_| TimeError::OutOfRange)?;
    if (-MAX_MONTHS..=MAX_MONTHS).contains(&months) {
        return Ok(months);
    }
    Err(TimeError::OutOfRange)
}

/// Returns true for years with a 29 February.
pub fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Returns the number of days in a month, or 0 for an invalid month.
pub fn days_in_month(year: i32, month: i32) -> i32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        1..=12 => 31,
        _ => 0,
    }
}

impl Civil {
    /// Creates a day. Returns `None` where it does not exist or is outside the years 1 to 9999.
    pub fn new(year: i32, month: i32, day: i32) -> Option<Self> {
        let exists = (1..=9999).contains(&year) && (1..=days_in_month(year, month)).contains(&day);
        exists.then_some(Self { year, month, day })
    }

    /// Returns the date of this day.
    pub fn to_date(self) -> i32 {
        // Years start in March here, so that the leap day is the last day of its year. The number of days before a
        // month is then linear: 153 days for five months.
        let year = if self.month > 2 { self.year } else { self.year - 1 };
        let month = (self.month + 9) % 12;
        let day_of_year = (153 * month + 2) / 5 + self.day - 1;
        365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
    }

    /// Returns the day of a date.
    pub fn from_date(date: i32) -> Self {
        // Inverse of `to_date`: the 400-year era, then the year in it, then the month.
        let days = date + 719_468;
        let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = era * 400 + year_of_era + i32::from(month <= 2);
        Self { year, month, day }
    }
}

/// Returns the UTC day of a timestamp, and the microseconds since its midnight.
pub fn split_timestamp(timestamp: i64) -> (i32, i64) {
    // INVARIANT: every timestamp is within the years 1 to 9999, so the conversion succeeds.
    let days = i32::try_from(timestamp.div_euclid(DAY)).unwrap_or(FIRST_DATE);
    (days, timestamp.rem_euclid(DAY))
}
