//! Business days, counted arithmetically, because a count may span millions of days.

use vesper_ir::time::FIRST_DATE;
use vesper_ir::{ErrorCode, Key, Member, Set};

use crate::date::days_since_monday;

const WEEK: i32 = 7;

/// Returns true for a day on the weekend or in the holidays.
pub(crate) fn is_day_off(date: i32, holidays: &Set, weekend: &Set) -> bool {
    is_on_weekend(date, weekend) || holidays.find(Key::Date(date)).is_some()
}

fn is_on_weekend(date: i32, weekend: &Set) -> bool {
    // The members are Monday to Sunday, in that order.
    let weekday = Member(days_since_monday(date).unsigned_abs());
    weekend.find(Key::Member(weekday)).is_some()
}

/// Calendar of business days.
pub(crate) struct Business {
    /// Number of working days before each weekday, from Monday. The last entry is the whole week.
    worked_before: [i64; 8],
    /// Holidays outside the weekend, in order.
    holidays: Vec<i32>,
}

impl Business {
    /// Creates a calendar. Fails where the weekend covers the whole week.
    pub(crate) fn new(holidays: &Set, weekend: &Set) -> Result<Self, ErrorCode> {
        let mut worked_before = [0; 8];
        let mut worked = 0;
        // 0001-01-01 was a Monday.
        for (date, before) in (FIRST_DATE..).zip(&mut worked_before) {
            *before = worked;
            worked += i64::from(!is_on_weekend(date, weekend));
        }
        if worked_before == [0; 8] {
            return Err(ErrorCode::InvalidArgument);
        }
        let holidays = match holidays {
            Set::Date(dates) => dates
                .iter()
                .copied()
                .filter(|date| !is_on_weekend(*date, weekend))
                .collect(),
            // An empty set may have any kind.
            _ => Vec::new(),
        };
        Ok(Self {
            worked_before,
            holidays,
        })
    }

    /// Returns the number of business days before this date, counted from 0001-01-01.
    fn before(&self, date: i32) -> i64 {
        let days = date - FIRST_DATE;
        let [.., in_a_week] = self.worked_before;
        let day_of_week = usize::try_from(days.rem_euclid(WEEK)).unwrap_or(0);
        let in_this_week = self.worked_before.get(day_of_week).copied().unwrap_or(0);
        let holidays = self.holidays.partition_point(|holiday| *holiday < date);
        i64::from(days.div_euclid(WEEK)) * in_a_week + in_this_week - crate::count(holidays)
    }

    /// Returns the number of business days from `start` to `end`, without `end`. It is negative where `end` is earlier.
    pub(crate) fn between(&self, start: i32, end: i32) -> i64 {
        self.before(end) - self.before(start)
    }
}

/// Returns the first day of a range for which a monotone predicate becomes true.
pub(crate) fn first_day(from: i32, to: i32, predicate: impl Fn(i32) -> bool) -> Option<i32> {
    let (mut low, mut high) = (from, to + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if predicate(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    (low <= to).then_some(low)
}

/// Returns the last day of a range before a monotone predicate becomes false.
pub(crate) fn last_day(from: i32, to: i32, predicate: impl Fn(i32) -> bool) -> Option<i32> {
    // The first day for which the predicate is false follows the result.
    let beyond = first_day(from, to, |day| !predicate(day)).unwrap_or(to + 1);
    (beyond > from).then(|| beyond - 1)
}
