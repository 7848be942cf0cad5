//! Kernels of the `date` family: days since 1970-01-01. The calendar is in `vesper_ir::time`.

use std::sync::Arc;

use vesper_ir::time::{
    Civil, DAY, FIRST_DATE, LAST_DATE, Layout, SECOND, clock, date_text, days_in_month, parse_date, timestamp,
};
use vesper_ir::{Ambiguous, DateKernels, ErrorCode, Set, Weekday};

use crate::Native;
use crate::business::{Business, first_day, is_day_off, last_day};

/// Converts a count of days to a date. Fails outside the years 1 to 9999.
fn date_in_range(days: i64) -> Result<i32, ErrorCode> {
    vesper_ir::time::date(days).map_err(|_| ErrorCode::TimeOverflow)
}

/// Returns the first day of a month and the number of its days. Months are counted from the year 0, which does not
/// exist.
fn month_of(months: i128) -> Option<(Civil, i32)> {
    let year = i32::try_from(months.div_euclid(12)).ok()?;
    let month = i32::try_from(months.rem_euclid(12)).ok()? + 1;
    Some((Civil::new(year, month, 1)?, days_in_month(year, month)))
}

fn months(of: Civil) -> i64 {
    i64::from(of.year) * 12 + i64::from(of.month) - 1
}

pub(crate) fn add_months(value: i32, count: i128) -> Result<i32, ErrorCode> {
    let from = Civil::from_date(value);
    let (first, days) = month_of(i128::from(months(from)) + count).ok_or(ErrorCode::TimeOverflow)?;
    // SEMANTICS: the last day of a month that is too short.
    let day = from.day.min(days);
    Ok(Civil { day, ..first }.to_date())
}

/// Returns the number of whole months from an earlier day to a later one.
fn whole_months(start: i32, end: i32) -> i64 {
    let (from, to) = (Civil::from_date(start), Civil::from_date(end));
    // In the month of the end, the day is at most the last of that month.
    let reached = from.day.min(days_in_month(to.year, to.month));
    months(to) - months(from) - i64::from(reached > to.day)
}

/// Returns the number of days since Monday.
pub(crate) fn days_since_monday(date: i32) -> i32 {
    // 1970-01-01 was a Thursday.
    (date + 3).rem_euclid(7)
}

/// Returns the Thursday of the week of a day. It may be in the year 10000.
fn thursday_of(date: i32) -> i32 {
    date - days_since_monday(date) + 3
}

/// Returns the first day of a month.
fn first_of(year: i32, month: i32) -> i32 {
    Civil { year, month, day: 1 }.to_date()
}

impl DateKernels for Native {
    #[inline]
    fn date_equal(&self, left: i32, right: i32) -> bool {
        left == right
    }

    #[inline]
    fn date_not_equal(&self, left: i32, right: i32) -> bool {
        left != right
    }

    #[inline]
    fn date_less(&self, left: i32, right: i32) -> bool {
        left < right
    }

    #[inline]
    fn date_less_or_equal(&self, left: i32, right: i32) -> bool {
        left <= right
    }

    #[inline]
    fn date_greater(&self, left: i32, right: i32) -> bool {
        left > right
    }

    #[inline]
    fn date_greater_or_equal(&self, left: i32, right: i32) -> bool {
        left >= right
    }

    fn date_parse(&self, value: &str) -> Result<i32, ErrorCode> {
        parse_date(value).map_err(|_| ErrorCode::BadFormat)
    }

    fn date_from_parts(&self, year: i64, month: i64, day: i64) -> Result<i32, ErrorCode> {
        let part = |part: i64| i32::try_from(part).ok();
        let civil = part(year)
            .zip(part(month))
            .zip(part(day))
            .and_then(|((year, month), day)| Civil::new(year, month, day));
        Ok(civil.ok_or(ErrorCode::InvalidArgument)?.to_date())
    }

    fn date_text(&self, value: i32) -> Arc<str> {
        Arc::from(date_text(value))
    }

    #[inline]
    fn date_to_timestamp(&self, value: i32) -> i64 {
        i64::from(value) * DAY
    }

    fn date_add_days(&self, value: i32, count: i64) -> Result<i32, ErrorCode> {
        date_in_range(i64::from(value).saturating_add(count))
    }

    fn date_add_months(&self, value: i32, count: i64) -> Result<i32, ErrorCode> {
        add_months(value, i128::from(count))
    }

    fn date_add_years(&self, value: i32, count: i64) -> Result<i32, ErrorCode> {
        add_months(value, 12 * i128::from(count))
    }

    #[inline]
    fn date_days_between(&self, start: i32, end: i32) -> i64 {
        i64::from(end) - i64::from(start)
    }

    fn date_months_between(&self, start: i32, end: i32) -> i64 {
        if start <= end {
            whole_months(start, end)
        } else {
            -whole_months(end, start)
        }
    }

    fn date_years_between(&self, start: i32, end: i32) -> i64 {
        // Rust's division truncates, as `quot` does.
        self.date_months_between(start, end) / 12
    }

    fn date_weekday(&self, value: i32) -> Weekday {
        match days_since_monday(value) {
            0 => Weekday::Monday,
            1 => Weekday::Tuesday,
            2 => Weekday::Wednesday,
            3 => Weekday::Thursday,
            4 => Weekday::Friday,
            5 => Weekday::Saturday,
            _ => Weekday::Sunday,
        }
    }

    fn date_weekday_number(&self, value: i32) -> i64 {
        i64::from(days_since_monday(value)) + 1
    }

    fn date_year(&self, value: i32) -> i64 {
        i64::from(Civil::from_date(value).year)
    }

    fn date_month(&self, value: i32) -> i64 {
        i64::from(Civil::from_date(value).month)
    }

    fn date_day(&self, value: i32) -> i64 {
        i64::from(Civil::from_date(value).day)
    }

    fn date_day_of_year(&self, value: i32) -> i64 {
        let year = Civil::from_date(value).year;
        i64::from(value - first_of(year, 1)) + 1
    }

    fn date_days_in_month(&self, value: i32) -> i64 {
        let Civil { year, month, .. } = Civil::from_date(value);
        i64::from(days_in_month(year, month))
    }

    fn date_start_of_month(&self, value: i32) -> i32 {
        let Civil { year, month, .. } = Civil::from_date(value);
        first_of(year, month)
    }

    fn date_end_of_month(&self, value: i32) -> i32 {
        let Civil { year, month, .. } = Civil::from_date(value);
        first_of(year, month) + days_in_month(year, month) - 1
    }

    fn date_is_business_day(&self, value: i32, holidays: &Set, weekend: &Set) -> bool {
        !is_day_off(value, holidays, weekend)
    }

    fn date_add_business_days(
        &self,
        value: i32,
        count: i64,
        holidays: &Set,
        weekend: &Set,
    ) -> Result<i32, ErrorCode> {
        let business = Business::new(holidays, weekend)?;
        let wanted = i64::try_from(count.unsigned_abs()).unwrap_or(i64::MAX);
        let found = match count {
            0 => Some(value),
            1.. => first_day(value + 1, LAST_DATE, |day| {
                business.between(value + 1, day + 1) >= wanted
            }),
            _ => last_day(FIRST_DATE, value - 1, |day| {
                business.between(day, value) >= wanted
            }),
        };
        found.ok_or(ErrorCode::TimeOverflow)
    }

    fn date_business_days_between(
        &self,
        start: i32,
        end: i32,
        holidays: &Set,
        weekend: &Set,
    ) -> Result<i64, ErrorCode> {
        // The start is included and the end excluded in both directions; only the sign differs.
        Ok(Business::new(holidays, weekend)?.between(start, end))
    }

    fn date_add_period(&self, value: i32, length: i32) -> Result<i32, ErrorCode> {
        add_months(value, i128::from(length))
    }

    fn date_subtract_period(&self, value: i32, length: i32) -> Result<i32, ErrorCode> {
        add_months(value, -i128::from(length))
    }

    fn date_period_between(&self, start: i32, end: i32) -> i32 {
        // At most 9,998 years and 11 months.
        i32::try_from(self.date_months_between(start, end)).unwrap_or(0)
    }

    fn date_iso_week(&self, value: i32) -> i64 {
        // The year of a week is that of its Thursday.
        let thursday = thursday_of(value);
        let first = first_of(Civil::from_date(thursday).year, 1);
        i64::from((thursday - first) / 7 + 1)
    }

    fn date_iso_week_year(&self, value: i32) -> i64 {
        i64::from(Civil::from_date(thursday_of(value)).year)
    }

    fn date_from_iso_week(&self, year: i64, week: i64, day: i64) -> Result<i32, ErrorCode> {
        let part = |part: i64, range: std::ops::RangeInclusive<i64>| {
            let part = range
                .contains(&part)
                .then_some(part)
                .ok_or(ErrorCode::InvalidArgument)?;
            i32::try_from(part).map_err(|_| ErrorCode::InvalidArgument)
        };
        let (year, week, day) = (part(year, 1..=9999)?, part(week, 1..=53)?, part(day, 1..=7)?);
        // 4 January is always in week 1.
        let fourth = Civil {
            year,
            month: 1,
            day: 4,
        }
        .to_date();
        let monday = fourth - days_since_monday(fourth) + 7 * (week - 1);
        if Civil::from_date(monday + 3).year != year {
            return Err(ErrorCode::InvalidArgument);
        }
        vesper_ir::time::date(i64::from(monday + day - 1)).map_err(|_| ErrorCode::InvalidArgument)
    }

    fn date_parse_pattern(&self, value: &str, pattern: &str) -> Result<i32, ErrorCode> {
        let layout = Layout::parse(pattern).filter(|layout| layout.is_whole() && layout.is_of_dates());
        let fields = layout.ok_or(ErrorCode::InvalidArgument)?.read(value);
        fields.map(|fields| fields.date).ok_or(ErrorCode::BadFormat)
    }

    fn date_format_pattern(&self, value: i32, pattern: &str) -> Result<Arc<str>, ErrorCode> {
        let layout = Layout::parse(pattern).filter(Layout::is_of_dates);
        let layout = layout.ok_or(ErrorCode::InvalidArgument)?;
        Ok(Arc::from(layout.write(value, 0)))
    }

    fn date_at_time(&self, value: i32, time: i64) -> i64 {
        i64::from(value) * DAY + time
    }

    fn date_at_zone(
        &self,
        value: i32,
        time: i64,
        zone: &str,
        ambiguous: Ambiguous,
    ) -> Result<i64, ErrorCode> {
        let clock = clock(zone).ok_or(ErrorCode::UnknownZone)?;
        let local = self.date_at_time(value, time);
        let (seconds, fraction) = (local.div_euclid(SECOND), local.rem_euclid(SECOND));
        let moment = clock
            .moment(seconds, ambiguous)
            .ok_or(ErrorCode::InvalidArgument)?;
        let moment = i128::from(moment) * i128::from(SECOND) + i128::from(fraction);
        timestamp(moment).map_err(|_| ErrorCode::TimeOverflow)
    }
}
