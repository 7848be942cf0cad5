//! Values as texts: of queries, of forms and of bodies.

use bytes::Bytes;
use vesper_ir::{Json, Type, Value, base64, float, json, time};
use zeroize::{Zeroize as _, Zeroizing};

use super::secrets::SecretTexts;
use super::text::{quote_plus, shown};
use crate::effect::Failure;
use crate::messages::grouped;

/// Fields of a form: each has the whole path to it in its name.
const MAX_FIELDS: usize = 10_000;

/// Returns the text of a scalar as in its JSON form; `None` for null and for values with parts.
pub(super) fn scalar_text(ty: &Type, value: &Value) -> Option<String> {
    Some(match (ty, value) {
        (Type::Optional(of), value) => return scalar_text(of, value),
        (_, Value::Boolean(value)) => value.to_string(),
        (_, Value::Integer(value)) => value.to_string(),
        (_, Value::Decimal(value)) => value.to_string(),
        (_, Value::Float(value)) => float::text(*value),
        (_, Value::Text(value)) => value.to_string(),
        (_, Value::Bytes(value)) => base64::text(value),
        (_, Value::Timestamp(value)) => time::timestamp_text(*value),
        (_, Value::Date(value)) => time::date_text(*value),
        (_, Value::Duration(value)) => time::duration_text(*value),
        (_, Value::TimeOfDay(value)) => time::time_text(*value),
        (_, Value::Period(value)) => time::period_text(*value),
        (Type::Enum(of), Value::Member(member)) => of.name(*member)?.to_string(),
        (_, Value::Json(value)) => json_scalar_text(value)?,
        _ => return None,
    })
}

fn json_scalar_text(json: &Json) -> Option<String> {
    Some(match json {
        Json::Boolean(value) => value.to_string(),
        Json::Number(number) => number.to_string(),
        Json::Text(text) => text.to_string(),
        Json::Null | Json::Array(_) | Json::Object(_) => return None,
    })
}

/// Returns the names and values of a query. Null is left out; the items of a list have the same name.
pub(super) fn query_pairs(ty: &Type, query: &Value) -> Result<Vec<(String, String)>, String> {
    let (Type::Record(of), Value::Record(values)) = (ty, query) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for (field, value) in of.fields().iter().zip(values.iter()) {
        let texts = query_texts(&field.ty, value).ok_or_else(|| {
            format!(
                "the field `{}` of the query is neither a text or number nor a list of those",
                field.name
            )
        })?;
        found.extend(texts.into_iter().map(|text| (field.name.to_string(), text)));
    }
    Ok(found)
}

/// Returns the texts of a field; `None` where it is no scalar and no list of scalars.
fn query_texts(ty: &Type, value: &Value) -> Option<Vec<String>> {
    match (ty, value) {
        (_, Value::Null) => Some(Vec::new()),
        (Type::Optional(of), value) => query_texts(of, value),
        (Type::Array(of), Value::Array(items)) => {
            let texts = items.iter().filter(|item| !is_null(item));
            texts.map(|item| scalar_text(of, item)).collect()
        }
        (Type::Set(of), Value::Set(members)) => {
            let mut texts: Vec<String> = members
                .iter()
                .map(|member| scalar_text(of, &member))
                .collect::<Option<_>>()?;
            if matches!(**of, Type::Enum(_)) {
                // Members of an enum are in declared order, their names in that of their texts.
                texts.sort_unstable();
            }
            Some(texts)
        }
        (_, Value::Json(json)) => match &**json {
            Json::Null => Some(Vec::new()),
            Json::Array(items) => {
                let texts = items.iter().filter(|item| !matches!(item, Json::Null));
                texts.map(json_scalar_text).collect()
            }
            json => json_scalar_text(json).map(|text| vec![text]),
        },
        (ty, value) => scalar_text(ty, value).map(|text| vec![text]),
    }
}

fn is_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Json(json) => matches!(**json, Json::Null),
        _ => false,
    }
}

/// Text that may hold secrets: then memory that it outgrows or leaves is overwritten.
#[derive(Default)]
struct Buffer {
    text: String,
    has_secret: bool,
}

impl Buffer {
    fn push(&mut self, text: &str) {
        let needed = self.text.len() + text.len();
        if needed > self.text.capacity() {
            let mut larger = String::with_capacity(needed.max(2 * self.text.capacity()).max(256));
            larger.push_str(&self.text);
            let mut outgrown = std::mem::replace(&mut self.text, larger);
            if self.has_secret {
                outgrown.zeroize();
            }
        }
        self.text.push_str(text);
    }

    fn push_quoted(&mut self, text: &str) {
        let needs_escape = |char: char| matches!(char, '\0'..='\x1f' | '"' | '\\');
        self.push("\"");
        for part in text.split_inclusive(needs_escape) {
            let end = part
                .char_indices()
                .next_back()
                .filter(|(_, char)| needs_escape(*char));
            let (plain, odd) = part.split_at(end.map_or(part.len(), |(place, _)| place));
            self.push(plain);
            if !odd.is_empty() {
                let mut quoted = String::new();
                json::quote(odd, &mut quoted);
                let escape = quoted.get(1..quoted.len() - 1);
                self.push(escape.unwrap_or_default());
            }
        }
        self.push("\"");
    }

    fn into_bytes(mut self) -> Bytes {
        let text = std::mem::take(&mut self.text);
        if self.has_secret {
            Bytes::from_owner(Zeroizing::new(text))
        } else {
            Bytes::from(text)
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.has_secret {
            self.text.zeroize();
        }
    }
}

/// Returns a body as JSON whose numbers keep their places, with secrets in place of their references. Names of fields
/// stay as they are.
pub(super) fn json_body(json: &Json, secrets: &SecretTexts<'_>) -> Result<Bytes, Failure> {
    let mut out = Buffer::default();
    write_json(json, secrets, &mut out)?;
    Ok(out.into_bytes())
}

fn write_json(json: &Json, secrets: &SecretTexts<'_>, out: &mut Buffer) -> Result<(), Failure> {
    match json {
        Json::Text(text) => {
            let text = secrets.for_node(text)?;
            out.has_secret |= text.has_secret();
            out.push_quoted(&text);
        }
        Json::Array(items) => {
            out.push("[");
            for (place, item) in items.iter().enumerate() {
                out.push(if place > 0 { "," } else { "" });
                write_json(item, secrets, out)?;
            }
            out.push("]");
        }
        Json::Object(object) => {
            out.push("{");
            for (place, (key, value)) in object.entries().iter().enumerate() {
                out.push(if place > 0 { "," } else { "" });
                out.push_quoted(key);
                out.push(":");
                write_json(value, secrets, out)?;
            }
            out.push("}");
        }
        Json::Null | Json::Boolean(_) | Json::Number(_) => out.push(&json.literal_text()),
    }
    Ok(())
}

/// Returns a body as a form, with nested fields as `items[0][id]`.
pub(super) fn form_body(json: &Json, provider: &str, secrets: &SecretTexts<'_>) -> Result<Bytes, Failure> {
    let Json::Object(_) = json else {
        return Err(not_sent(format!(
            "`{provider}` takes forms, and the body is no object"
        )));
    };
    let mut form = Form {
        secrets,
        out: Buffer::default(),
        fields: 0,
    };
    form.write("", json)?;
    Ok(form.out.into_bytes())
}

struct Form<'a> {
    secrets: &'a SecretTexts<'a>,
    out: Buffer,
    fields: usize,
}

impl Form<'_> {
    /// Writes a value under its path. Null has no form and is left out.
    fn write(&mut self, path: &str, json: &Json) -> Result<(), Failure> {
        match json {
            Json::Null => Ok(()),
            Json::Object(object) => {
                for (name, item) in object.entries() {
                    if name.is_empty() || name.contains(['[', ']']) {
                        let label = shown(name, 64);
                        return Err(not_sent(format!(
                            "the name `{label}` in the body cannot be one of a form"
                        )));
                    }
                    if path.is_empty() {
                        self.write(name, item)?;
                    } else {
                        self.write(&format!("{path}[{name}]"), item)?;
                    }
                }
                Ok(())
            }
            Json::Array(items) => {
                let mut numbered = items.iter().enumerate();
                numbered.try_for_each(|(index, item)| self.write(&format!("{path}[{index}]"), item))
            }
            Json::Text(text) => {
                let text = self.secrets.for_node(text)?;
                self.out.has_secret |= text.has_secret();
                self.add(path, &text)
            }
            Json::Boolean(_) | Json::Number(_) => self.add(path, &json.literal_text()),
        }
    }

    fn add(&mut self, name: &str, text: &str) -> Result<(), Failure> {
        self.fields += 1;
        if self.fields > MAX_FIELDS {
            return Err(not_sent(format!(
                "the body has more than {} fields, too many for a form",
                grouped(MAX_FIELDS)
            )));
        }
        self.out.push(if self.fields > 1 { "&" } else { "" });
        self.out.push(&quote_plus(name));
        self.out.push("=");
        self.out.push(&Zeroizing::new(quote_plus(text)));
        Ok(())
    }
}

/// Creates the failure of a request that was refused before anything was sent. Another attempt would fail alike.
pub(super) fn not_sent(problem: impl AsRef<str>) -> Failure {
    Failure::new(
        "invalid_argument",
        format!("nothing was sent: {}", problem.as_ref()),
    )
}
