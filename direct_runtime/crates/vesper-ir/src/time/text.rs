//! Parsing and formatting of times by the grammars of docs/spec/time.md.

use std::fmt::Write as _;

use super::{Civil, DAY, SECOND, TimeError, duration, period, split_timestamp, timestamp};

const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
/// Saturation value of a number. It exceeds every limit, and sums of a few do not overflow 128 bits.
const SATURATED: i128 = 1_000_000_000_000_000_000_000_000;

type Parsed<T> = Result<T, TimeError>;

/// Unread rest of a text.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// Consumes the next byte if it is one of these.
    fn one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        if !bytes.contains(first) {
            return None;
        }
        self.0 = rest;
        Some(*first)
    }

    fn expect(&mut self, bytes: &[u8]) -> Parsed<u8> {
        self.one_of(bytes).ok_or(TimeError::Malformed)
    }

    /// Consumes bytes while the predicate holds.
    fn take_while(&mut self, predicate: impl Fn(&u8) -> bool) -> &'a [u8] {
        let length = self.0.iter().take_while(|byte| predicate(byte)).count();
        let (taken, rest) = self.0.split_at_checked(length).unwrap_or((self.0, &[]));
        self.0 = rest;
        taken
    }

    fn digits(&mut self) -> &'a [u8] {
        self.take_while(u8::is_ascii_digit)
    }

    /// Reads a number of exactly this many digits.
    fn number(&mut self, digits: usize) -> Parsed<i32> {
        let (taken, rest) = self.0.split_at_checked(digits).ok_or(TimeError::Malformed)?;
        if !taken.iter().all(u8::is_ascii_digit) {
            return Err(TimeError::Malformed);
        }
        self.0 = rest;
        Ok(taken
            .iter()
            .fold(0, |sum, digit| sum * 10 + i32::from(digit - b'0')))
    }

    /// Reads a number of two digits, at most `largest`.
    fn part(&mut self, largest: i32) -> Parsed<i64> {
        match self.number(2)? {
            number if number <= largest => Ok(i64::from(number)),
            _ => Err(TimeError::Malformed),
        }
    }

    /// Reads the digits after a point as microseconds. At most `most` digits are permitted, and those past the sixth
    /// must be 0.
    fn fraction(&mut self, most: usize) -> Parsed<i64> {
        let digits = self.digits();
        if digits.is_empty() || digits.len() > most {
            return Err(TimeError::Malformed);
        }
        let (kept, rest) = digits.split_at_checked(6).unwrap_or((digits, &[]));
        if rest.iter().any(|digit| *digit != b'0') {
            return Err(TimeError::Malformed);
        }
        let padded = kept.iter().copied().chain(std::iter::repeat(b'0')).take(6);
        Ok(padded.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
    }

    fn day(&mut self) -> Parsed<i32> {
        let year = self.number(4)?;
        self.expect(b"-")?;
        let month = self.number(2)?;
        self.expect(b"-")?;
        let day = self.number(2)?;
        let civil = Civil::new(year, month, day).ok_or(TimeError::Malformed)?;
        Ok(civil.to_date())
    }

    /// Reads a time of day with an optional fraction.
    fn clock(&mut self) -> Parsed<i64> {
        let mut time = self.part(23)? * HOUR;
        self.expect(b":")?;
        time += self.part(59)? * MINUTE;
        self.expect(b":")?;
        time += self.part(59)? * SECOND;
        if self.one_of(b".").is_some() {
            time += self.fraction(9)?;
        }
        Ok(time)
    }

    fn end(&self) -> Parsed<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(TimeError::Malformed)
    }
}

/// Parses a date: `2024-02-29`.
pub fn parse_date(text: &str) -> Parsed<i32> {
    let mut rest = Rest(text.as_bytes());
    let date = rest.day()?;
    rest.end()?;
    Ok(date)
}

/// Parses a timestamp: `2024-02-29T12:30:00.5+02:00`.
pub fn parse_timestamp(text: &str) -> Parsed<i64> {
    let mut rest = Rest(text.as_bytes());
    let days = rest.day()?;
    rest.expect(b"Tt ")?;
    let time = rest.clock()?;
    let offset = match rest.expect(b"Zz+-")? {
        sign @ (b'+' | b'-') => {
            let hours = rest.part(23)? * HOUR;
            rest.expect(b":")?;
            let offset = hours + rest.part(59)? * MINUTE;
            if sign == b'-' { -offset } else { offset }
        }
        _ => 0,
    };
    rest.end()?;
    timestamp(i128::from(days) * i128::from(DAY) + i128::from(time - offset))
}

/// Units of the two forms of a duration, in their required order. In the ISO form the units below a day follow a `T`.
const ISO_DAYS: &[(&[u8], i64)] = &[(b"D", DAY)];
const ISO_TIME: &[(&[u8], i64)] = &[(b"H", HOUR), (b"M", MINUTE), (b"S", SECOND)];
const SHORT: &[(&[u8], i64)] = &[
    (b"d", DAY),
    (b"h", HOUR),
    (b"m", MINUTE),
    (b"s", SECOND),
    (b"ms", 1_000),
    (b"us", 1),
];

/// Parses a duration: `-P1DT2H`, `1h30m`.
pub fn parse_duration(text: &str) -> Parsed<i64> {
    let mut rest = Rest(text.as_bytes());
    let is_negative = rest.one_of(b"+-") == Some(b'-');
    let length = if rest.one_of(b"P").is_some() {
        let days = parts(&mut rest, ISO_DAYS)?;
        let time = match rest.one_of(b"T") {
            None => None,
            Some(_) => Some(parts(&mut rest, ISO_TIME)?.ok_or(TimeError::Malformed)?),
        };
        match (days, time) {
            (None, None) => return Err(TimeError::Malformed),
            (days, time) => days.unwrap_or(0) + time.unwrap_or(0),
        }
    } else {
        parts(&mut rest, SHORT)?.ok_or(TimeError::Malformed)?
    };
    rest.end()?;
    duration(if is_negative { -length } else { length })
}

/// Parses numbers with these units, each at most once and in this order, and returns their sum.
///
/// Returns `None` where the text has no number.
fn parts(rest: &mut Rest<'_>, units: &[(&[u8], i64)]) -> Parsed<Option<i128>> {
    let mut left = units.iter();
    let mut sum = None;
    while rest.peek().is_some_and(|byte| byte.is_ascii_digit()) {
        let number = rest.digits().iter().fold(0_i128, |sum, digit| {
            // Saturates, because a number may have any count of digits.
            (sum * 10 + i128::from(digit - b'0')).min(SATURATED)
        });
        let fraction = match rest.one_of(b".") {
            None => None,
            Some(_) => Some(rest.fraction(6)?),
        };
        // Reads all letters, so that `ms` is not `m` with a rest. `T` starts the next part.
        let name = rest.take_while(|byte| byte.is_ascii_alphabetic() && *byte != b'T');
        let (_, unit) = left.find(|(unit, _)| *unit == name).ok_or(TimeError::Malformed)?;
        if fraction.is_some() && *unit != SECOND {
            return Err(TimeError::Malformed);
        }
        let length = number * i128::from(*unit) + i128::from(fraction.unwrap_or(0));
        sum = Some(sum.unwrap_or(0) + length);
    }
    Ok(sum)
}

/// Parses a time of day: `14:30:00.5`.
pub fn parse_time(text: &str) -> Parsed<i64> {
    let mut rest = Rest(text.as_bytes());
    let time = rest.clock()?;
    rest.end()?;
    Ok(time)
}

/// Units of a period, in their required order.
const MONTHS: &[(u8, i64)] = &[(b'Y', 12), (b'M', 1)];

/// Parses a period: `-P1Y2M`.
pub fn parse_period(text: &str) -> Parsed<i32> {
    let mut rest = Rest(text.as_bytes());
    let is_negative = rest.one_of(b"+-") == Some(b'-');
    rest.expect(b"P")?;
    let mut units = MONTHS.iter();
    let mut sum = None;
    while rest.peek().is_some_and(|byte| byte.is_ascii_digit()) {
        let number = rest.digits().iter().fold(0_i64, |sum, digit| {
            // Saturates far above the limit, because a number may have any count of digits.
            (sum * 10 + i64::from(digit - b'0')).min(1_000_000_000)
        });
        let (_, months) = units
            .find(|(unit, _)| rest.one_of(&[*unit]).is_some())
            .ok_or(TimeError::Malformed)?;
        sum = Some(sum.unwrap_or(0) + number * months);
    }
    rest.end()?;
    let months = sum.ok_or(TimeError::Malformed)?;
    period(if is_negative { -months } else { months })
}

/// Formats a time of day.
pub fn time_text(time: i64) -> String {
    let (hour, minute, second) = (time / HOUR, time / MINUTE % 60, time / SECOND % 60);
    match time % SECOND {
        0 => format!("{hour:02}:{minute:02}:{second:02}"),
        fraction => format!("{hour:02}:{minute:02}:{second:02}.{fraction:06}"),
    }
}

/// Formats a period.
pub fn period_text(months: i32) -> String {
    let sign = if months < 0 { "-" } else { "" };
    match (months.unsigned_abs() / 12, months.unsigned_abs() % 12) {
        (0, months) => format!("{sign}P{months}M"),
        (years, 0) => format!("{sign}P{years}Y"),
        (years, months) => format!("{sign}P{years}Y{months}M"),
    }
}

/// Formats a date.
pub fn date_text(date: i32) -> String {
    let Civil { year, month, day } = Civil::from_date(date);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Formats a timestamp.
pub fn timestamp_text(timestamp: i64) -> String {
    let (date, time) = split_timestamp(timestamp);
    format!("{}T{}Z", date_text(date), time_text(time))
}

/// Formats a duration.
pub fn duration_text(duration: i64) -> String {
    if duration == 0 {
        return "PT0S".to_owned();
    }
    let mut text = String::from(if duration < 0 { "-P" } else { "P" });
    let length = duration.unsigned_abs();
    let in_unit = |unit: i64| length / unit.unsigned_abs();
    let time = [(in_unit(HOUR) % 24, 'H'), (in_unit(MINUTE) % 60, 'M')];
    let (seconds, fraction) = (in_unit(SECOND) % 60, length % SECOND.unsigned_abs());
    // Writing to a string cannot fail.
    if in_unit(DAY) > 0 {
        let _ = write!(text, "{}D", in_unit(DAY));
    }
    if !length.is_multiple_of(DAY.unsigned_abs()) {
        text.push('T');
    }
    for (number, unit) in time {
        if number > 0 {
            let _ = write!(text, "{number}{unit}");
        }
    }
    if fraction > 0 {
        let fraction = format!("{fraction:06}");
        let _ = write!(text, "{seconds}.{}S", fraction.trim_end_matches('0'));
    } else if seconds > 0 {
        let _ = write!(text, "{seconds}S");
    }
    text
}
