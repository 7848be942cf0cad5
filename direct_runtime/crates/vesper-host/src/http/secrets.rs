//! Secrets in requests: references are replaced when a request is made, and put back into every text that leaves it.
//!
//! There are two spellings, because there are two authors. A node holds the value of a `secret` step, a reference that
//! only this execution has, and puts it into its headers and body. A configuration has a [`Template`]. Any other text
//! that resembles one of them stays a text.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vesper_ir::{Json, Type, Value};
use zeroize::Zeroizing;

use super::text::unquote_text;
use super::values::scalar_text;
use crate::effect::{Failure, Secrets};
use crate::encoded_forms::forms_of;

/// Shortest secret that is looked for in messages: a shorter one occurs in any text, and anybody can guess it.
const MIN_REDACTED: usize = 4;
/// Shortest secret that is looked for in answers: `test` occurs in half of them.
const MIN_IN_ANSWERS: usize = 8;

/// Text of the configuration: `texts` around the secrets that `names` has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// One more than the names.
    pub texts: Vec<String>,
    pub names: Vec<String>,
}

impl Template {
    /// Returns the text with its secrets.
    pub(super) fn fill(
        &self,
        mut secret: impl FnMut(&str) -> Result<Zeroizing<String>, Failure>,
    ) -> Result<Zeroizing<String>, Failure> {
        let values: Vec<_> = self
            .names
            .iter()
            .map(|name| secret(name))
            .collect::<Result<_, _>>()?;
        let length = self.texts.iter().map(String::len).sum::<usize>()
            + values.iter().map(|value| value.len()).sum::<usize>();
        // Room for all of it: a text that grows leaves copies of itself behind.
        let mut out = Zeroizing::new(String::with_capacity(length));
        for (place, text) in self.texts.iter().enumerate() {
            out.push_str(text);
            if let Some(value) = values.get(place) {
                out.push_str(value);
            }
        }
        Ok(out)
    }
}

/// Text of a node after its references were replaced.
pub(super) enum Filled<'t> {
    /// The text has no reference.
    Plain(&'t str),
    Secret(Zeroizing<String>),
}

impl Filled<'_> {
    pub(super) fn has_secret(&self) -> bool {
        matches!(self, Self::Secret(_))
    }

    pub(super) fn into_secret(self) -> Zeroizing<String> {
        match self {
            Self::Plain(text) => Zeroizing::new(text.to_owned()),
            Self::Secret(text) => text,
        }
    }
}

impl Deref for Filled<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Plain(text) => text,
            Self::Secret(text) => text,
        }
    }
}

/// A secret that the request has, and the reference that stands for it in messages.
struct Used {
    text: Zeroizing<String>,
    reference: String,
}

/// The secrets of one request: those that the execution may use, and those of the configuration.
pub(crate) struct SecretTexts<'a> {
    of_node: &'a dyn Secrets,
    of_provider: &'a dyn Secrets,
    /// References with the names of their secrets, the longest first.
    references: Vec<(&'a str, &'a str)>,
    used: Mutex<Vec<Used>>,
}

impl<'a> SecretTexts<'a> {
    pub(super) fn new(
        of_node: &'a dyn Secrets,
        of_provider: &'a dyn Secrets,
        references: &'a HashMap<Arc<str>, Arc<str>>,
    ) -> Self {
        let mut references: Vec<(&str, &str)> = references
            .iter()
            .map(|(reference, name)| (&**reference, &**name))
            .collect();
        references
            .sort_unstable_by(|(left, _), (right, _)| right.len().cmp(&left.len()).then(left.cmp(right)));
        Self {
            of_node,
            of_provider,
            references,
            used: Mutex::default(),
        }
    }

    /// Returns a node's text with secrets in place of their references. Secrets are not searched for references.
    pub(super) fn for_node<'t>(&self, text: &'t str) -> Result<Filled<'t>, Failure> {
        let mut parts: Vec<(&str, Option<Zeroizing<String>>)> = Vec::new();
        let mut rest = text;
        let mut length = 0;
        while let Some((place, reference, name)) = self.next_reference(rest) {
            let secret = self.resolve(self.of_node, name)?;
            let (before, after) = rest.split_at_checked(place).unwrap_or((rest, ""));
            length += before.len() + secret.len();
            parts.push((before, Some(secret)));
            rest = after.strip_prefix(reference).unwrap_or_default();
        }
        if parts.is_empty() {
            return Ok(Filled::Plain(text));
        }
        length += rest.len();
        parts.push((rest, None));
        let mut out = Zeroizing::new(String::with_capacity(length));
        for (before, secret) in parts {
            out.push_str(before);
            out.push_str(secret.as_deref().map_or("", |secret| secret));
        }
        Ok(Filled::Secret(out))
    }

    /// Returns the first reference of a text; of several at one place the longest.
    fn next_reference(&self, text: &str) -> Option<(usize, &'a str, &'a str)> {
        self.references
            .iter()
            .filter_map(|(reference, name)| Some((text.find(reference)?, *reference, *name)))
            .min_by_key(|(place, _, _)| *place)
    }

    /// Returns true for a node's text with a reference in it, plain or percent-encoded.
    pub(super) fn is_named_in(&self, text: &str) -> bool {
        if self.references.is_empty() {
            return false;
        }
        let decoded = unquote_text(text);
        self.references
            .iter()
            .any(|(reference, _)| text.contains(reference) || decoded.contains(reference))
    }

    /// Returns a secret that the configuration names.
    pub(super) fn for_provider(&self, name: &str) -> Result<Zeroizing<String>, Failure> {
        self.resolve(self.of_provider, name)
    }

    /// Adds a text that was made of secrets and must be kept like them.
    pub(super) fn add(&self, text: &str, reference: String) {
        let text = Zeroizing::new(text.to_owned());
        self.lock().push(Used { text, reference });
    }

    /// Returns the text with references in place of the secrets.
    pub(crate) fn redact(&self, text: &str) -> String {
        let used = self.lock();
        let mut forms: Vec<(Zeroizing<String>, &str)> = Vec::new();
        for each in used.iter() {
            if each.text.chars().count() >= MIN_REDACTED {
                forms.extend(
                    forms_of(&each.text)
                        .into_iter()
                        .map(|form| (form, &*each.reference)),
                );
            }
        }
        forms.sort_by_key(|(form, _)| std::cmp::Reverse(form.len()));
        let mut text = text.to_owned();
        for (form, reference) in forms {
            if text.contains(form.as_str()) {
                text = text.replace(form.as_str(), reference);
            }
        }
        text
    }

    /// Returns true where a value that came back contains a secret that was sent, in a form that is at least as long.
    pub(crate) fn occur_in(&self, ty: &Type, value: &Value) -> bool {
        let mut forms: Vec<Zeroizing<String>> = Vec::new();
        for each in self.lock().iter() {
            let length = each.text.chars().count();
            if length >= MIN_IN_ANSWERS {
                let is_long = |form: &Zeroizing<String>| form.chars().count() >= length;
                forms.extend(forms_of(&each.text).into_iter().filter(is_long));
            }
        }
        !forms.is_empty() && occurs(&forms, ty, value)
    }

    fn resolve(&self, secrets: &dyn Secrets, name: &str) -> Result<Zeroizing<String>, Failure> {
        let text = secrets.text(name).map_err(|failure| {
            // `not_found` is no code of an HTTP request. A secret that may not be used here never may; one whose source
            // is away may be there later.
            let code = if failure.code.name() == "not_found" {
                "invalid_argument"
            } else {
                "unavailable"
            };
            Failure::new(code, format!("nothing was sent: {}", failure.message))
        })?;
        self.add(&text, format!("secret:{name}"));
        Ok(text)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Used>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true where a form occurs in a text of the value. Names of fields are those of the type, and not looked at.
fn occurs(forms: &[Zeroizing<String>], ty: &Type, value: &Value) -> bool {
    let in_text = |text: &str| forms.iter().any(|form| text.contains(form.as_str()));
    match (ty, value) {
        (_, Value::Null | Value::Boolean(_) | Value::Member(_)) => false,
        (Type::Optional(of), value) => occurs(forms, of, value),
        (_, Value::Text(text)) => in_text(text),
        (_, Value::Bytes(bytes)) => {
            let text: String = bytes.iter().copied().map(char::from).collect();
            in_text(&text)
        }
        (_, Value::Json(json)) => occurs_in_json(&in_text, json),
        (Type::Array(of), Value::Array(items)) => items.iter().any(|item| occurs(forms, of, item)),
        (Type::Set(of), Value::Set(members)) => members.iter().any(|member| occurs(forms, of, &member)),
        (Type::Map(of), Value::Map(map)) => map
            .keys()
            .iter()
            .zip(map.values())
            .any(|(key, value)| occurs(forms, &of.key, &key) || occurs(forms, &of.value, value)),
        (Type::Record(of), Value::Record(values)) => of
            .fields()
            .iter()
            .zip(values.iter())
            .any(|(field, value)| occurs(forms, &field.ty, value)),
        (ty, value) => scalar_text(ty, value).is_some_and(|text| in_text(&text)),
    }
}

fn occurs_in_json(in_text: &dyn Fn(&str) -> bool, json: &Json) -> bool {
    match json {
        Json::Null | Json::Boolean(_) => false,
        Json::Number(number) => in_text(&number.to_string()),
        Json::Text(text) => in_text(text),
        Json::Array(items) => items.iter().any(|item| occurs_in_json(in_text, item)),
        Json::Object(object) => object
            .entries()
            .iter()
            .any(|(key, value)| in_text(key) || occurs_in_json(in_text, value)),
    }
}
