//! Kernels of the `time_of_day` family: microseconds since midnight.

use std::sync::Arc;

use vesper_ir::time::{DAY, SECOND, parse_time, time_text};
use vesper_ir::{ErrorCode, TimeOfDayKernels};

use crate::Native;

const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

impl TimeOfDayKernels for Native {
    #[inline]
    fn time_of_day_equal(&self, left: i64, right: i64) -> bool {
        left == right
    }

    #[inline]
    fn time_of_day_not_equal(&self, left: i64, right: i64) -> bool {
        left != right
    }

    #[inline]
    fn time_of_day_less(&self, left: i64, right: i64) -> bool {
        left < right
    }

    #[inline]
    fn time_of_day_less_or_equal(&self, left: i64, right: i64) -> bool {
        left <= right
    }

    #[inline]
    fn time_of_day_greater(&self, left: i64, right: i64) -> bool {
        left > right
    }

    #[inline]
    fn time_of_day_greater_or_equal(&self, left: i64, right: i64) -> bool {
        left >= right
    }

    fn time_of_day_parse(&self, value: &str) -> Result<i64, ErrorCode> {
        parse_time(value).map_err(|_| ErrorCode::BadFormat)
    }

    fn time_of_day_from_parts(&self, hour: i64, minute: i64, second: i64) -> Result<i64, ErrorCode> {
        let is_time = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second);
        if !is_time {
            return Err(ErrorCode::InvalidArgument);
        }
        Ok(hour * HOUR + minute * MINUTE + second * SECOND)
    }

    fn time_of_day_text(&self, value: i64) -> Arc<str> {
        Arc::from(time_text(value))
    }

    fn time_of_day_hour(&self, value: i64) -> i64 {
        value / HOUR
    }

    fn time_of_day_minute(&self, value: i64) -> i64 {
        value / MINUTE % 60
    }

    fn time_of_day_second(&self, value: i64) -> i64 {
        value / SECOND % 60
    }

    fn time_of_day_microsecond(&self, value: i64) -> i64 {
        value % SECOND
    }

    fn time_of_day_add(&self, value: i64, length: i64) -> i64 {
        (value + length).rem_euclid(DAY)
    }

    fn time_of_day_subtract(&self, value: i64, length: i64) -> i64 {
        (value - length).rem_euclid(DAY)
    }

    fn time_of_day_since(&self, end: i64, start: i64) -> i64 {
        end - start
    }
}
