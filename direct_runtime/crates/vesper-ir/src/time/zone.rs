//! Time zones of the IANA database, from the extract in `zones.txt`, whose first lines describe its form.
//!
//! A local time is converted by trying each piece of constant offset around it.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::Civil;
use crate::Ambiguous;

const TEXT: &str = include_str!("zones.txt");
const DAY: i64 = 86_400;
/// Start of 0001-01-01 in seconds since 1970.
const BEGINNING: i64 = -62_135_596_800;
/// No two offsets differ by more.
const WINDOW: i64 = 2 * DAY;

/// Clock of a zone: its offsets from UTC in seconds. Moments are seconds since 1970.
#[derive(Debug)]
pub struct Clock {
    /// Offset before all changes.
    first: i32,
    /// Moment and new offset of each change, in order.
    changes: Vec<(i64, i32)>,
    /// Changes of all years after the last one.
    rule: Option<Rule>,
}

#[derive(Debug)]
struct Rule {
    standard: i32,
    summer: i32,
    begin: Yearly,
    end: Yearly,
}

/// Day of a year by month, week (5 is the last one) and weekday (0 is Sunday), and seconds after its midnight.
#[derive(Clone, Copy, Debug)]
struct Yearly {
    month: i32,
    week: i32,
    weekday: i32,
    seconds: i32,
}

/// Returns the clock of a zone, or `None` for an unknown name.
pub fn clock(zone: &str) -> Option<&'static Clock> {
    static CLOCKS: LazyLock<(HashMap<&str, usize>, Vec<Clock>)> = LazyLock::new(|| {
        let (mut places, mut clocks) = (HashMap::new(), Vec::new());
        for line in TEXT.lines().filter(|line| !line.starts_with('#')) {
            let Some((names, rest)) = line.split_once(';') else {
                continue;
            };
            if let Some(clock) = Clock::parse(rest) {
                places.extend(names.split(',').map(|name| (name, clocks.len())));
                clocks.push(clock);
            }
        }
        (places, clocks)
    });
    CLOCKS.1.get(*CLOCKS.0.get(zone)?)
}

impl Clock {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(';');
        let offsets: Vec<i32> = parts
            .next()?
            .split(',')
            .filter_map(|each| each.parse().ok())
            .collect();
        let mut moment = BEGINNING;
        let mut changes = Vec::new();
        for change in parts.next()?.split_ascii_whitespace() {
            let (after, place) = change.split_once(':')?;
            moment += i64::from_str_radix(after, 36).ok()?;
            changes.push((moment, *offsets.get(place.parse::<usize>().ok()?)?));
        }
        let rule = match parts.next()? {
            "" => None,
            rule => Some(Rule::parse(rule)?),
        };
        Some(Self {
            first: *offsets.first()?,
            changes,
            rule,
        })
    }

    /// Returns the offset at a moment.
    pub fn offset(&self, moment: i64) -> i32 {
        let place = self.changes.partition_point(|(change, _)| *change <= moment);
        let listed = match place.checked_sub(1).and_then(|place| self.changes.get(place)) {
            Some((_, offset)) => *offset,
            None => self.first,
        };
        match &self.rule {
            Some(rule) if place == self.changes.len() => rule.offset(moment),
            _ => listed,
        }
    }

    /// Returns the moment at which clocks show a local time, in seconds. `None` only where it is to be rejected.
    pub fn moment(&self, local: i64, ambiguous: Ambiguous) -> Option<i64> {
        let pieces = self.pieces(local);
        let ends = pieces.iter().skip(1).map(|(start, _)| *start).chain([i64::MAX]);
        let mut found = pieces.iter().zip(ends).filter_map(|((start, offset), end)| {
            let moment = local - i64::from(*offset);
            (*start <= moment && moment < end).then_some(moment)
        });
        if let Some(first) = found.next() {
            return match (found.last(), ambiguous) {
                (None, _) | (Some(_), Ambiguous::Compatible | Ambiguous::Earlier) => Some(first),
                (last, Ambiguous::Later) => last,
                (Some(_), Ambiguous::Reject) => None,
            };
        }
        // Clocks skip the local time at the change between two pieces.
        let (before, after) =
            pieces
                .iter()
                .zip(pieces.iter().skip(1))
                .find_map(|((_, before), (start, after))| {
                    let is_skipped = start + i64::from(*before) <= local && local < start + i64::from(*after);
                    is_skipped.then_some((*before, *after))
                })?;
        match ambiguous {
            Ambiguous::Compatible | Ambiguous::Later => Some(local - i64::from(before)),
            Ambiguous::Earlier => Some(local - i64::from(after)),
            Ambiguous::Reject => None,
        }
    }

    /// Returns start and offset of each piece of constant offset around a local time, in order.
    fn pieces(&self, local: i64) -> Vec<(i64, i32)> {
        let (from, to) = (local - WINDOW, local + WINDOW);
        let mut pieces = vec![(i64::MIN, self.offset(from))];
        let is_near = |(moment, _): &(i64, i32)| from < *moment && *moment <= to;
        pieces.extend(self.changes.iter().copied().filter(is_near));
        if let Some(rule) = &self.rule {
            let last = self.changes.last().map_or(i64::MIN, |(moment, _)| *moment);
            let mut yearly: Vec<(i64, i32)> = [year(from), year(to)]
                .into_iter()
                .flat_map(|year| rule.changes(year))
                .filter(|change| is_near(change) && change.0 > last)
                .collect();
            yearly.sort_unstable();
            yearly.dedup();
            pieces.extend(yearly);
        }
        pieces
    }
}

impl Rule {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        Some(Self {
            standard: words.next()?.parse().ok()?,
            summer: words.next()?.parse().ok()?,
            begin: Yearly::parse(words.next()?)?,
            end: Yearly::parse(words.next()?)?,
        })
    }

    fn changes(&self, year: i32) -> [(i64, i32); 2] {
        [
            (self.begin.local(year) - i64::from(self.standard), self.summer),
            (self.end.local(year) - i64::from(self.summer), self.standard),
        ]
    }

    fn offset(&self, moment: i64) -> i32 {
        let [(begin, _), (end, _)] = self.changes(year(moment));
        let is_summer = if begin < end {
            begin <= moment && moment < end
        } else {
            moment < end || begin <= moment
        };
        if is_summer { self.summer } else { self.standard }
    }
}

impl Yearly {
    fn parse(text: &str) -> Option<Self> {
        let (day, seconds) = text.split_once('/')?;
        let mut parts = day.split('.').map(|part| part.parse::<i32>().ok());
        Some(Self {
            month: parts.next()??,
            week: parts.next()??,
            weekday: parts.next()??,
            seconds: seconds.parse().ok()?,
        })
    }

    /// Returns the local time of the change in seconds, by the clock before it.
    fn local(self, year: i32) -> i64 {
        let first = Civil {
            year,
            month: self.month,
            day: 1,
        }
        .to_date();
        // 1970-01-01 was a Thursday.
        let weekday = (first + 4).rem_euclid(7);
        let mut day = (self.weekday - weekday).rem_euclid(7) + 7 * (self.week - 1);
        if day >= super::days_in_month(year, self.month) {
            day -= 7;
        }
        i64::from(first + day) * DAY + i64::from(self.seconds)
    }
}

/// Returns the year of a time, at most a few days outside the years 1 to 9999.
fn year(seconds: i64) -> i32 {
    let days = i32::try_from(seconds.div_euclid(DAY)).unwrap_or(0);
    Civil::from_date(days).year
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_clock() {
        let lines = TEXT.lines().filter(|line| !line.starts_with('#'));
        let mut count = 0;
        for line in lines {
            let (names, rest) = line.split_once(';').unwrap_or_default();
            assert!(Clock::parse(rest).is_some(), "{names}");
            assert!(names.split(',').all(|name| clock(name).is_some()));
            count += 1;
        }
        assert!(count > 300);
        assert!(clock("europe/berlin").is_none() && clock("").is_none());
    }
}
