//! Kernels of the `timestamp` family: microseconds since 1970-01-01 in UTC.

use std::sync::Arc;

use vesper_ir::time::{
    Civil, DAY, Fields, Layout, SECOND, TimeError, clock, parse_timestamp, split_timestamp, timestamp,
    timestamp_text,
};
use vesper_ir::{ErrorCode, TimestampKernels, Unit};

use crate::Native;
use crate::date::add_months;

const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// Converts microseconds to a timestamp. Fails outside the years 1 to 9999.
fn timestamp_in_range(microseconds: i128) -> Result<i64, ErrorCode> {
    timestamp(microseconds).map_err(|_| ErrorCode::TimeOverflow)
}

/// Returns by how many microseconds clocks of a zone are ahead of UTC.
fn offset(moment: i64, zone: &str) -> Result<i64, ErrorCode> {
    let clock = clock(zone).ok_or(ErrorCode::UnknownZone)?;
    Ok(i64::from(clock.offset(moment.div_euclid(SECOND))) * SECOND)
}

fn day(value: i64) -> Civil {
    Civil::from_date(split_timestamp(value).0)
}

/// Returns the number of whole units since midnight.
fn units_since_midnight(value: i64, unit: i64) -> i64 {
    split_timestamp(value).1 / unit
}

impl TimestampKernels for Native {
    #[inline]
    fn timestamp_equal(&self, left: i64, right: i64) -> bool {
        left == right
    }

    #[inline]
    fn timestamp_not_equal(&self, left: i64, right: i64) -> bool {
        left != right
    }

    #[inline]
    fn timestamp_less(&self, left: i64, right: i64) -> bool {
        left < right
    }

    #[inline]
    fn timestamp_less_or_equal(&self, left: i64, right: i64) -> bool {
        left <= right
    }

    #[inline]
    fn timestamp_greater(&self, left: i64, right: i64) -> bool {
        left > right
    }

    #[inline]
    fn timestamp_greater_or_equal(&self, left: i64, right: i64) -> bool {
        left >= right
    }

    fn timestamp_add(&self, moment: i64, length: i64) -> Result<i64, ErrorCode> {
        timestamp_in_range(i128::from(moment) + i128::from(length))
    }

    fn timestamp_subtract(&self, moment: i64, length: i64) -> Result<i64, ErrorCode> {
        timestamp_in_range(i128::from(moment) - i128::from(length))
    }

    #[inline]
    fn timestamp_since(&self, end: i64, start: i64) -> i64 {
        // The whole range of years is shorter than the longest duration.
        end - start
    }

    fn timestamp_parse(&self, value: &str) -> Result<i64, ErrorCode> {
        parse_timestamp(value).map_err(|error| match error {
            TimeError::Malformed => ErrorCode::BadFormat,
            TimeError::OutOfRange => ErrorCode::TimeOverflow,
        })
    }

    fn timestamp_text(&self, value: i64) -> Arc<str> {
        Arc::from(timestamp_text(value))
    }

    #[inline]
    fn timestamp_to_date(&self, value: i64) -> i32 {
        split_timestamp(value).0
    }

    fn timestamp_year(&self, value: i64) -> i64 {
        i64::from(day(value).year)
    }

    fn timestamp_month(&self, value: i64) -> i64 {
        i64::from(day(value).month)
    }

    fn timestamp_day(&self, value: i64) -> i64 {
        i64::from(day(value).day)
    }

    fn timestamp_hour(&self, value: i64) -> i64 {
        units_since_midnight(value, HOUR)
    }

    fn timestamp_minute(&self, value: i64) -> i64 {
        units_since_midnight(value, MINUTE) % 60
    }

    fn timestamp_second(&self, value: i64) -> i64 {
        units_since_midnight(value, SECOND) % 60
    }

    fn timestamp_microsecond(&self, value: i64) -> i64 {
        units_since_midnight(value, 1) % SECOND
    }

    #[inline]
    fn timestamp_epoch_microseconds(&self, value: i64) -> i64 {
        value
    }

    #[inline]
    fn timestamp_epoch_seconds(&self, value: i64) -> i64 {
        // SEMANTICS: rounds toward negative infinity; Rust's `/` rounds toward zero.
        value.div_euclid(SECOND)
    }

    fn timestamp_from_epoch_microseconds(&self, count: i64) -> Result<i64, ErrorCode> {
        timestamp_in_range(i128::from(count))
    }

    fn timestamp_from_epoch_seconds(&self, count: i64) -> Result<i64, ErrorCode> {
        timestamp_in_range(i128::from(count) * i128::from(SECOND))
    }

    fn timestamp_truncate(&self, value: i64, unit: Unit) -> i64 {
        let length = match unit {
            Unit::Day => DAY,
            Unit::Hour => HOUR,
            Unit::Minute => MINUTE,
            Unit::Second => SECOND,
        };
        // Rounds down also before 1970.
        value - value.rem_euclid(length)
    }

    #[inline]
    fn timestamp_to_time(&self, value: i64) -> i64 {
        split_timestamp(value).1
    }

    fn timestamp_add_period(&self, moment: i64, length: i32) -> Result<i64, ErrorCode> {
        let (date, time) = split_timestamp(moment);
        Ok(i64::from(add_months(date, i128::from(length))?) * DAY + time)
    }

    fn timestamp_subtract_period(&self, moment: i64, length: i32) -> Result<i64, ErrorCode> {
        self.timestamp_add_period(moment, -length)
    }

    fn timestamp_local_date(&self, moment: i64, zone: &str) -> Result<i32, ErrorCode> {
        let local = timestamp_in_range(i128::from(moment) + i128::from(offset(moment, zone)?))?;
        Ok(split_timestamp(local).0)
    }

    fn timestamp_local_time(&self, moment: i64, zone: &str) -> Result<i64, ErrorCode> {
        Ok((moment + offset(moment, zone)?).rem_euclid(DAY))
    }

    fn timestamp_utc_offset(&self, moment: i64, zone: &str) -> Result<i64, ErrorCode> {
        offset(moment, zone)
    }

    fn timestamp_parse_pattern(&self, value: &str, pattern: &str) -> Result<i64, ErrorCode> {
        let layout = Layout::parse(pattern).filter(Layout::is_whole);
        let fields = layout.ok_or(ErrorCode::InvalidArgument)?.read(value);
        let Fields { date, time, offset } = fields.ok_or(ErrorCode::BadFormat)?;
        timestamp_in_range(i128::from(date) * i128::from(DAY) + i128::from(time - offset * MINUTE))
    }

    fn timestamp_format_pattern(&self, value: i64, pattern: &str) -> Result<Arc<str>, ErrorCode> {
        let layout = Layout::parse(pattern).ok_or(ErrorCode::InvalidArgument)?;
        let (date, time) = split_timestamp(value);
        Ok(Arc::from(layout.write(date, time)))
    }
}
