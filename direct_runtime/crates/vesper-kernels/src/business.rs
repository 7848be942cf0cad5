//! Business days, counted without walking over them: a count may be of millions of days.

use vesper_ir::time::FIRST_DATE;
use vesper_ir::{ErrorCode, Key, Member, Set};

use crate::date::days_since_monday;

const WEEK: i32 = 7;

/// True for a day on the weekend or in the holidays.
pub(crate) fn is_day_off(date: i32, holidays: &Set, weekend: &Set) -> bool {
    is_on_weekend(date, weekend) || holidays.find(Key::Date(date)).is_some()
}

fn is_on_weekend(date: i32, weekend: &Set) -> bool {
    // The members are Monday to Sunday, in that order.
    let weekday = Member(days_since_monday(date).unsigned_abs());
    weekend.find(Key::Member(weekday)).is_some()
}

/// A calendar of business days.
pub(crate) struct Business {
    /// How many days of a week that begins on Monday are worked before its first, second … day, and in all of it.
    worked_before: [i64; 8],
    /// The holidays that are on no weekend, in order.
    holidays: Vec<i32>,
}

impl Business {
    /// Fails where no day of the week is left.
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
            // An empty set may be of any kind.
            _ => Vec::new(),
        };
        Ok(Self {
            worked_before,
            holidays,
        })
    }

    /// How many business days come before this one, from the first day there is.
    fn before(&self, date: i32) -> i64 {
        let days = date - FIRST_DATE;
        let [.., in_a_week] = self.worked_before;
        let day_of_week = usize::try_from(days.rem_euclid(WEEK)).unwrap_or(0);
        let in_this_week = self.worked_before.get(day_of_week).copied().unwrap_or(0);
        let holidays = self.holidays.partition_point(|holiday| *holiday < date);
        i64::from(days.div_euclid(WEEK)) * in_a_week + in_this_week - crate::count(holidays)
    }

    /// How many there are from the start up to, not with, the end; negative where the end comes first.
    pub(crate) fn between(&self, start: i32, end: i32) -> i64 {
        self.before(end) - self.before(start)
    }
}

/// The first day of a range from which on something is so.
pub(crate) fn first_day(from: i32, to: i32, is_so: impl Fn(i32) -> bool) -> Option<i32> {
    let (mut low, mut high) = (from, to + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_so(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    (low <= to).then_some(low)
}

/// The last day of a range up to which something is so.
pub(crate) fn last_day(from: i32, to: i32, is_so: impl Fn(i32) -> bool) -> Option<i32> {
    // The first for which it is not so comes behind it.
    let beyond = first_day(from, to, |day| !is_so(day)).unwrap_or(to + 1);
    (beyond > from).then(|| beyond - 1)
}
