//! Writer of typed JSON.

use std::fmt::Write as _;

use vesper_ir::json::quote;
use vesper_ir::time::{SECOND, date_text, split_timestamp, time_text};
use vesper_ir::{Decimal, EnumType, Json, Key, Map, MapType, Set, Type, Value, base64, float};

use crate::journal::{ErrorKind, JournalError};

/// Bytes of the text of one value. Parts of a value may be shared, so that a small one can have a text that exceeds
/// memory.
pub const MAX_TEXT: usize = 64 << 20;

/// Scale up to which Python writes every decimal in plain notation.
const PLAIN_SCALE: u16 = 6;

/// Appends a text in quotes, with the minimum of escapes.
pub fn write_text(out: &mut String, text: &str) {
    quote(text, out);
}

/// Writer of one value at the end of a text.
pub(super) struct Writer<'a> {
    out: &'a mut String,
    /// Length at which the value is too large.
    end: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(out: &'a mut String) -> Self {
        let end = out.len().saturating_add(MAX_TEXT);
        Self { out, end }
    }

    /// Appends a value. The depth of recursion is that of the type, which is limited.
    pub(super) fn value(&mut self, ty: &Type, value: &Value) -> Result<(), JournalError> {
        match (ty, value) {
            (Type::Optional(_), Value::Null) => self.out.push_str("null"),
            (Type::Optional(of), value) => return self.value(of, value),
            (Type::Enum(of), Value::Member(member)) => match of.name(*member) {
                Some(name) => write_text(self.out, name),
                None => return Err(misfit(ty)),
            },
            (Type::Set(of), Value::Set(set)) => return self.set(of, set),
            (Type::Array(of), Value::Array(items)) => {
                return self.items("[", "]", items.iter(), |writer, item| writer.value(of, item));
            }
            (Type::Map(of), Value::Map(map)) => return self.map(of, map),
            (Type::Record(of), Value::Record(values)) => {
                let fields = of.fields_by_name();
                return self.items("{", "}", fields, |writer, (place, field)| {
                    writer.name(&field.name);
                    let value = values.get(place).ok_or_else(|| misfit(ty))?;
                    writer.value(&field.ty, value)
                });
            }
            (Type::Json, Value::Json(json)) => return self.json(json),
            _ => return self.scalar(ty, value),
        }
        Ok(())
    }

    fn scalar(&mut self, ty: &Type, value: &Value) -> Result<(), JournalError> {
        match (ty, value) {
            (Type::Decimal, Value::Decimal(value)) => push_decimal(self.out, value),
            (Type::Float, Value::Float(value)) => push_float(self.out, *value),
            (Type::Duration, Value::Duration(value)) => {
                // Writing to a string cannot fail.
                let _ = write!(self.out, "{{\"$duration\":{value}}}");
            }
            (Type::TimeOfDay, Value::TimeOfDay(value)) => push_tag(self.out, "$clock", &time_text(*value)),
            (Type::Period, Value::Period(value)) => {
                let _ = write!(self.out, "{{\"$period\":{value}}}");
            }
            _ => match value.as_key() {
                Some(key) => self.key(ty, key)?,
                None => return Err(misfit(ty)),
            },
        }
        Ok(())
    }

    /// Appends a value of a type that set members and map keys may have.
    fn key(&mut self, ty: &Type, key: Key<'_>) -> Result<(), JournalError> {
        match (ty, key) {
            (Type::Boolean, Key::Boolean(value)) => self.out.push_str(if value { "true" } else { "false" }),
            (Type::Integer, Key::Integer(value)) => {
                let _ = write!(self.out, "{value}");
            }
            (Type::Text, Key::Text(value)) => write_text(self.out, value),
            (Type::Bytes, Key::Bytes(value)) => push_tag(self.out, "$bytes", &base64::text(value)),
            (Type::Timestamp, Key::Timestamp(value)) => push_tag(self.out, "$time", &moment_text(value)),
            (Type::Date, Key::Date(value)) => push_tag(self.out, "$date", &date_text(value)),
            _ => return Err(misfit(ty)),
        }
        Ok(())
    }

    fn set(&mut self, of: &Type, set: &Set) -> Result<(), JournalError> {
        if let (Type::Enum(of), false) = (of, set.is_empty()) {
            let names = member_names(of, set)?;
            return self.items("{\"$set\":[", "]}", names.into_iter(), |writer, (name, _)| {
                write_text(writer.out, name);
                Ok(())
            });
        }
        let keys = (0..set.len()).filter_map(|place| set.key(place));
        self.items("{\"$set\":[", "]}", keys, |writer, key| writer.key(of, key))
    }

    fn map(&mut self, of: &MapType, map: &Map) -> Result<(), JournalError> {
        let values = map.values();
        if values.is_empty() {
            // An empty map of Python does not know the type of its keys.
            self.out.push_str("{}");
            return Ok(());
        }
        match (&of.key, map.keys()) {
            (Type::Text, Set::Text(names)) => {
                let names = names.iter().map(|name| &**name).zip(values);
                self.entries(names, |writer, value| writer.value(&of.value, value))
            }
            (Type::Enum(members), keys) => {
                let names = member_names(members, keys)?.into_iter();
                let entries = names.filter_map(|(name, place)| Some((name, values.get(place)?)));
                self.entries(entries, |writer, value| writer.value(&of.value, value))
            }
            (key, keys) => {
                let keys = (0..values.len()).filter_map(|place| keys.key(place)).zip(values);
                self.items("{\"$map\":[", "]}", keys, |writer, (each, value)| {
                    writer.out.push('[');
                    writer.key(key, each)?;
                    writer.out.push(',');
                    writer.value(&of.value, value)?;
                    writer.out.push(']');
                    Ok(())
                })
            }
        }
    }

    /// Appends a json in the form of the plain objects that stand for it. The depth of a json is limited.
    fn json(&mut self, json: &Json) -> Result<(), JournalError> {
        match json {
            Json::Null => self.out.push_str("null"),
            Json::Boolean(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Json::Number(number) if number.scale() == 0 => {
                let _ = write!(self.out, "{number}");
            }
            Json::Number(number) => push_decimal(self.out, number),
            Json::Text(text) => write_text(self.out, text),
            Json::Array(items) => return self.items("[", "]", items.iter(), Self::json),
            Json::Object(object) => {
                let entries = object.entries().iter().map(|(name, item)| (&**name, item));
                return self.entries(entries, Self::json);
            }
        }
        Ok(())
    }

    /// Appends entries with text keys in code-point order: an object, unless a key resembles a tag.
    fn entries<'v, T>(
        &mut self,
        entries: impl Iterator<Item = (&'v str, T)> + Clone,
        mut write: impl FnMut(&mut Self, T) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        if entries.clone().all(|(name, _)| !name.starts_with('$')) {
            return self.items("{", "}", entries, |writer, (name, item)| {
                writer.name(name);
                write(writer, item)
            });
        }
        self.items("{\"$map\":[", "]}", entries, |writer, (name, item)| {
            writer.out.push('[');
            write_text(writer.out, name);
            writer.out.push(',');
            write(writer, item)?;
            writer.out.push(']');
            Ok(())
        })
    }

    fn name(&mut self, name: &str) {
        write_text(self.out, name);
        self.out.push(':');
    }

    /// Appends items between brackets, separated by commas.
    fn items<T>(
        &mut self,
        open: &str,
        close: &str,
        items: impl Iterator<Item = T>,
        mut write: impl FnMut(&mut Self, T) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        self.out.push_str(open);
        for (place, item) in items.enumerate() {
            if place > 0 {
                self.out.push(',');
            }
            write(self, item)?;
            if self.out.len() > self.end {
                return Err(too_large());
            }
        }
        self.out.push_str(close);
        Ok(())
    }
}

/// Returns the names of enum members in code-point order, each with its index in the set.
fn member_names<'t>(of: &'t EnumType, members: &Set) -> Result<Vec<(&'t str, usize)>, JournalError> {
    let name = |place: usize| match members.key(place) {
        Some(Key::Member(member)) => of.name(member).map(|name| (&**name, place)),
        _ => None,
    };
    let names: Option<Vec<(&str, usize)>> = (0..members.len()).map(name).collect();
    let mut names =
        names.ok_or_else(|| JournalError::new(ErrorKind::Journal, "an enum has no such member"))?;
    names.sort_unstable();
    Ok(names)
}

fn push_tag(out: &mut String, tag: &str, plain: &str) {
    let _ = write!(out, "{{\"{tag}\":\"{plain}\"}}");
}

fn push_float(out: &mut String, value: f64) {
    if value.is_finite() {
        out.push_str(&float::text(value));
    } else if value.is_nan() {
        out.push_str("{\"$float\":\"nan\"}");
    } else {
        let sign = if value.is_sign_negative() { "-" } else { "" };
        push_tag(out, "$float", &format!("{sign}inf"));
    }
}

fn push_decimal(out: &mut String, value: &Decimal) {
    out.push_str("{\"$decimal\":\"");
    if value.scale() <= PLAIN_SCALE {
        let _ = write!(out, "{value}");
    } else {
        out.push_str(&decimal_text(value));
    }
    out.push_str("\"}");
}

/// Formats a decimal as Python does: small numbers in scientific notation, `1E-7`.
pub(super) fn decimal_text(value: &Decimal) -> String {
    let plain = value.to_string();
    let digits: String = plain.chars().filter(char::is_ascii_digit).collect();
    let digits = match digits.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    let point = length - i64::from(value.scale());
    if value.scale() <= PLAIN_SCALE || point > -i64::from(PLAIN_SCALE) {
        return plain;
    }
    let sign = if plain.starts_with('-') { "-" } else { "" };
    let exponent = point - 1;
    match digits.split_at_checked(1) {
        Some((first, rest)) if !rest.is_empty() => format!("{sign}{first}.{rest}E{exponent}"),
        _ => format!("{sign}{digits}E{exponent}"),
    }
}

/// Formats a moment with all six digits of its microseconds.
pub(super) fn moment_text(timestamp: i64) -> String {
    let (date, time) = split_timestamp(timestamp);
    let seconds = time / SECOND;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let day = date_text(date);
    format!("{day}T{hour:02}:{minute:02}:{second:02}.{:06}Z", time % SECOND)
}

fn misfit(ty: &Type) -> JournalError {
    JournalError::new(
        ErrorKind::Journal,
        format!("a value is no {ty} and cannot be written"),
    )
}

fn too_large() -> JournalError {
    JournalError::new(
        ErrorKind::TooLarge,
        "a value is too large for the journal: its text has more than 67,108,864 characters",
    )
}
