//! Patterns of dates and times such as `dd.MM.yyyy HH:mm` (docs/spec/time.md).

use std::fmt::Write as _;

use super::{Civil, DAY, SECOND, days_in_month};

/// Longest pattern, in code points.
const MAX_PATTERN: usize = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

#[derive(Clone, Debug)]
enum Piece {
    Literal(String),
    /// Letter and how often it is repeated.
    Field(char, usize),
}

/// Parsed pattern.
#[derive(Debug)]
pub struct Layout(Vec<Piece>);

/// Local day, microseconds since its midnight, and offset from UTC in minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    pub date: i32,
    pub time: i64,
    pub offset: i64,
}

impl Layout {
    /// Parses a pattern. Returns `None` for unknown fields, an open quote and a pattern that is too long.
    pub fn parse(pattern: &str) -> Option<Self> {
        if pattern.chars().count() > MAX_PATTERN {
            return None;
        }
        let mut pieces = Vec::new();
        let mut rest = pattern.chars().peekable();
        while let Some(first) = rest.next() {
            if first == '\'' {
                pieces.push(Piece::Literal(quoted(&mut rest)?));
            } else if first.is_ascii_alphabetic() {
                let mut width = 1;
                while rest.next_if_eq(&first).is_some() {
                    width += 1;
                }
                let is_known = match first {
                    'y' => width == 2 || width == 4,
                    'M' => width <= 4,
                    'd' | 'H' | 'h' | 'm' | 's' => width <= 2,
                    'E' => width == 3 || width == 4,
                    'S' => width <= 6,
                    'a' => width == 1,
                    'X' => width == 2 || width == 3,
                    _ => false,
                };
                if !is_known {
                    return None;
                }
                pieces.push(Piece::Field(first, width));
            } else {
                pieces.push(Piece::Literal(first.to_string()));
            }
        }
        Some(Self(pieces))
    }

    fn letters(&self) -> impl Iterator<Item = char> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Field(letter, _) => Some(*letter),
            Piece::Literal(_) => None,
        })
    }

    fn has(&self, letter: char) -> bool {
        self.letters().any(|each| each == letter)
    }

    /// Returns true when the pattern has no fields of a time.
    pub fn is_of_dates(&self) -> bool {
        self.letters().all(|letter| "yMdE".contains(letter))
    }

    /// Returns true when the pattern has every field that a moment needs, and each field once.
    pub fn is_whole(&self) -> bool {
        let is_single = |letter: char| self.letters().filter(|each| *each == letter).count() <= 1;
        "yMd".chars().all(|letter| self.has(letter))
            && "yMdEHhmsSaX".chars().all(is_single)
            && self.has('h') == self.has('a')
            && !(self.has('h') && self.has('H'))
    }

    /// Formats a day and a time in UTC.
    pub fn write(&self, date: i32, time: i64) -> String {
        let Civil { year, month, day } = Civil::from_date(date);
        let mut text = String::new();
        for piece in &self.0 {
            let (letter, width) = match piece {
                Piece::Literal(literal) => {
                    text.push_str(literal);
                    continue;
                }
                Piece::Field(letter, width) => (*letter, *width),
            };
            let number = match letter {
                'y' if width == 2 => i64::from(year % 100),
                'y' => i64::from(year),
                'M' if width > 2 => {
                    text.push_str(name(&MONTHS, month - 1, width == 3));
                    continue;
                }
                'M' => i64::from(month),
                'd' => i64::from(day),
                'E' => {
                    text.push_str(name(&WEEKDAYS, weekday(date), width == 3));
                    continue;
                }
                'H' => time / HOUR,
                'h' => (time / HOUR + 11) % 12 + 1,
                'm' => time / MINUTE % 60,
                's' => time / SECOND % 60,
                'S' => {
                    let digits = format!("{:06}", time % SECOND);
                    text.push_str(digits.get(..width).unwrap_or(&digits));
                    continue;
                }
                'a' => {
                    text.push_str(if time < 12 * HOUR { "AM" } else { "PM" });
                    continue;
                }
                _ => {
                    text.push('Z');
                    continue;
                }
            };
            // Writing to a string cannot fail.
            let _ = write!(text, "{number:0width$}");
        }
        text
    }

    /// Parses a text. Returns `None` where it does not follow the pattern. INVARIANT: the pattern is whole.
    pub fn read(&self, text: &str) -> Option<Fields> {
        let (mut year, mut month, mut day, mut shown) = (0, 0, 0, None);
        let (mut hour, mut noon, mut time, mut offset) = (0, None, 0, 0);
        let mut rest = text;
        for piece in &self.0 {
            match piece {
                Piece::Literal(literal) => rest = rest.strip_prefix(literal.as_str())?,
                Piece::Field('y', 2) => year = 2_000 + number(&mut rest, 2, 2)?,
                Piece::Field('y', _) => year = number(&mut rest, 4, 4)?,
                Piece::Field('M', width @ (3 | 4)) => month = 1 + place(&mut rest, &MONTHS, *width == 3)?,
                Piece::Field('M', width) => month = number(&mut rest, *width, 2)?,
                Piece::Field('d', width) => day = number(&mut rest, *width, 2)?,
                Piece::Field('E', width) => shown = Some(place(&mut rest, &WEEKDAYS, *width == 3)?),
                Piece::Field('H', width) => hour = within(number(&mut rest, *width, 2)?, 0, 23)?,
                Piece::Field('h', width) => hour = within(number(&mut rest, *width, 2)?, 1, 12)? % 12,
                Piece::Field('m', width) => {
                    time += i64::from(within(number(&mut rest, *width, 2)?, 0, 59)?) * MINUTE;
                }
                Piece::Field('s', width) => {
                    time += i64::from(within(number(&mut rest, *width, 2)?, 0, 59)?) * SECOND;
                }
                Piece::Field('S', width) => {
                    let missing = u32::try_from(6_usize.saturating_sub(*width)).unwrap_or(0);
                    time += i64::from(number(&mut rest, *width, *width)?) * 10_i64.pow(missing);
                }
                Piece::Field('a', _) => noon = Some(place(&mut rest, &["AM", "PM"], false)? * 12),
                Piece::Field(_, width) => offset = zone(&mut rest, *width == 3)?,
            }
        }
        let exists = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
        if !rest.is_empty() || !exists {
            return None;
        }
        let date = Civil::new(year, month, day)?.to_date();
        if shown.is_some_and(|shown| shown != weekday(date)) {
            return None;
        }
        time += i64::from(hour + noon.unwrap_or(0)) * HOUR;
        debug_assert!(time < DAY);
        Some(Fields { date, time, offset })
    }
}

/// Reads the text behind an opening quote; `''` is a quote.
fn quoted(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<String> {
    let mut text = String::new();
    loop {
        match rest.next()? {
            '\'' if rest.next_if_eq(&'\'').is_some() => text.push('\''),
            '\'' if text.is_empty() => return Some("'".to_owned()),
            '\'' => return Some(text),
            char => text.push(char),
        }
    }
}

/// Returns the number of days since Monday.
fn weekday(date: i32) -> i32 {
    (date + 3).rem_euclid(7)
}

fn name(names: &[&'static str], place: i32, is_short: bool) -> &'static str {
    let name = usize::try_from(place)
        .ok()
        .and_then(|place| names.get(place))
        .copied()
        .unwrap_or("");
    if is_short {
        name.get(..3).unwrap_or(name)
    } else {
        name
    }
}

/// Reads one of these names, in full or by its first three letters, and returns its place.
fn place(rest: &mut &str, names: &[&'static str], is_short: bool) -> Option<i32> {
    let places = 0..i32::try_from(names.len()).ok()?;
    let found = places.into_iter().find_map(|place| {
        let left = rest.strip_prefix(name(names, place, is_short))?;
        Some((place, left))
    })?;
    *rest = found.1;
    Some(found.0)
}

/// Reads between `least` and `most` digits, as many as there are.
fn number(rest: &mut &str, least: usize, most: usize) -> Option<i32> {
    let count = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
    if count < least {
        return None;
    }
    let (digits, left) = rest.split_at_checked(count)?;
    *rest = left;
    digits.parse().ok()
}

fn within(number: i32, least: i32, most: i32) -> Option<i32> {
    (least..=most).contains(&number).then_some(number)
}

/// Reads `Z`, or an offset with or without a colon, in minutes.
fn zone(rest: &mut &str, has_colon: bool) -> Option<i64> {
    if let Some(left) = rest.strip_prefix('Z') {
        *rest = left;
        return Some(0);
    }
    let sign = match rest.bytes().next()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    *rest = rest.get(1..)?;
    let hours = within(number(rest, 2, 2)?, 0, 23)?;
    if has_colon {
        *rest = rest.strip_prefix(':')?;
    }
    let minutes = within(number(rest, 2, 2)?, 0, 59)?;
    Some(sign * i64::from(60 * hours + minutes))
}
