//! Conversion between `datetime` objects and times.
//!
//! Parts are read from the storage of the base types. Only the offset of a time zone calls Python.

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyDate, PyDateAccess, PyDateTime, PyDelta, PyDeltaAccess, PyTime, PyTimeAccess, PyType, PyTzInfo,
    PyTzInfoAccess,
};
use vesper_interp::inputs::Given;
use vesper_ir::time::{Civil, DAY, SECOND, split_timestamp};

/// Reads a `datetime` or a `date`; returns `None` for other objects.
pub(crate) fn read_moment(object: &Bound<'_, PyAny>) -> PyResult<Option<Given<'static>>> {
    // This test comes first, because every `datetime` is also a `date`.
    if let Ok(moment) = object.cast::<PyDateTime>() {
        let py = object.py();
        // `utcoffset` of the base type, which calls the time zone.
        let class = py.get_type::<PyDateTime>();
        let offset = class.call_method1(intern!(py, "utcoffset"), (moment,))?;
        if offset.is_none() {
            return Ok(Some(Given::NaiveMoment));
        }
        let offset = microseconds(offset.cast::<PyDelta>()?);
        let seconds = (i64::from(moment.get_hour()) * 60 + i64::from(moment.get_minute())) * 60
            + i64::from(moment.get_second());
        let time = seconds * SECOND + i64::from(moment.get_microsecond());
        let local = i128::from(days(moment)) * i128::from(DAY) + i128::from(time);
        return Ok(Some(Given::Moment(local - offset)));
    }
    Ok(object
        .cast::<PyDate>()
        .ok()
        .map(|day| Given::Day(i64::from(days(day)))))
}

/// Reads a `timedelta`; returns `None` for other objects.
pub(crate) fn read_duration(object: &Bound<'_, PyAny>) -> Option<Given<'static>> {
    let length = object.cast::<PyDelta>().ok()?;
    Some(Given::Length(microseconds(length)))
}

/// Reads a `time`; returns `None` for other objects.
pub(crate) fn read_time(object: &Bound<'_, PyAny>) -> Option<Given<'static>> {
    let time = object.cast::<PyTime>().ok()?;
    if time.get_tzinfo().is_some() {
        return Some(Given::ZonedTime);
    }
    let seconds =
        (i64::from(time.get_hour()) * 60 + i64::from(time.get_minute())) * 60 + i64::from(time.get_second());
    Some(Given::Clock(i128::from(
        seconds * SECOND + i64::from(time.get_microsecond()),
    )))
}

fn period_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "vesper.values.period", "Period")
}

/// Reads a `Period`; returns `None` for other objects.
pub(crate) fn read_period(object: &Bound<'_, PyAny>) -> PyResult<Option<Given<'static>>> {
    if !object.get_type().is(period_class(object.py())?) {
        return Ok(None);
    }
    let months = object.getattr(intern!(object.py(), "months"))?;
    Ok(Some(Given::Months(months.extract()?)))
}

fn days(day: &impl PyDateAccess) -> i32 {
    let civil = Civil {
        year: day.get_year(),
        month: i32::from(day.get_month()),
        day: i32::from(day.get_day()),
    };
    civil.to_date()
}

fn microseconds(length: &Bound<'_, PyDelta>) -> i128 {
    i128::from(length.get_days()) * i128::from(DAY)
        + i128::from(length.get_seconds()) * i128::from(SECOND)
        + i128::from(length.get_microseconds())
}

pub(crate) fn date_object(py: Python<'_>, date: i32) -> PyResult<Bound<'_, PyAny>> {
    let (year, month, day) = parts(date)?;
    Ok(PyDate::new(py, year, month, day)?.into_any())
}

pub(crate) fn timestamp_object(py: Python<'_>, timestamp: i64) -> PyResult<Bound<'_, PyAny>> {
    let (date, time) = split_timestamp(timestamp);
    let (year, month, day) = parts(date)?;
    let seconds = time / SECOND;
    let (hour, minute, second) = (
        small(seconds / 3_600)?,
        small(seconds / 60 % 60)?,
        small(seconds % 60)?,
    );
    let microsecond = small(time % SECOND)?;
    let zone = PyTzInfo::utc(py)?;
    Ok(PyDateTime::new(
        py,
        year,
        month,
        day,
        hour,
        minute,
        second,
        microsecond,
        Some(&zone),
    )?
    .into_any())
}

pub(crate) fn duration_object(py: Python<'_>, duration: i64) -> PyResult<Bound<'_, PyAny>> {
    // The seconds and microseconds of a `timedelta` are never negative.
    let (days, time) = (duration.div_euclid(DAY), duration.rem_euclid(DAY));
    let length = PyDelta::new(
        py,
        small(days)?,
        small(time / SECOND)?,
        small(time % SECOND)?,
        false,
    )?;
    Ok(length.into_any())
}

pub(crate) fn time_object(py: Python<'_>, time: i64) -> PyResult<Bound<'_, PyAny>> {
    let seconds = time / SECOND;
    let (hour, minute, second) = (
        small(seconds / 3_600)?,
        small(seconds / 60 % 60)?,
        small(seconds % 60)?,
    );
    Ok(PyTime::new(py, hour, minute, second, small(time % SECOND)?, None)?.into_any())
}

pub(crate) fn period_object(py: Python<'_>, months: i32) -> PyResult<Bound<'_, PyAny>> {
    period_class(py)?.call1((months,))
}

fn parts(date: i32) -> PyResult<(i32, u8, u8)> {
    let Civil { year, month, day } = Civil::from_date(date);
    Ok((year, small(month)?, small(day)?))
}

/// Converts a part of a time to the type that the constructors of Python take.
fn small<T: TryFrom<N>, N>(part: N) -> PyResult<T> {
    T::try_from(part).map_err(|_| PyRuntimeError::new_err("engine fault: a time is outside its range"))
}
