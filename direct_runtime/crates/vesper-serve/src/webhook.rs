//! Signatures of webhooks: HMAC-SHA256 over the body as it was sent, and often over a timestamp.

use std::time::{SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName};
use ring::hmac;
use serde_json::Value;

use crate::text::hex_digit;
use vesper_auth::Rejection;
use vesper_auth::{Actor, Fields, TableError};

const SIGNATURE_BYTES: usize = 32;
const BODY: &str = "{body}";
const TIMESTAMP: &str = "{timestamp}";
const WRONG: Rejection = "The signature does not fit the body.";

/// The scheme by which a sender signs its requests, and the secrets that it may use.
#[derive(Debug)]
pub struct Webhook {
    /// The sender: the subject of the actor.
    name: String,
    header: HeaderName,
    /// Text before a signature that is the whole header.
    prefix: String,
    /// Names of the signature and the timestamp in a header `t=…,v1=…`.
    pairs: Option<(String, String)>,
    timestamp_header: Option<HeaderName>,
    /// Signed text, with places for the timestamp and, at its end, for the body.
    signed: String,
    keys: Vec<hmac::Key>,
    tolerance_seconds: f64,
}

/// A signature that was read from the head of a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Signature {
    /// A sender that changes its secret signs with the old one too.
    candidates: Vec<Vec<u8>>,
    /// Signed text before the body.
    before: String,
}

impl Webhook {
    /// Reads a scheme from JSON.
    pub fn of_json(text: &[u8]) -> Result<Self, TableError> {
        let value = serde_json::from_slice(text).map_err(|error| TableError(error.to_string()))?;
        Self::read(Fields::of(value, "webhook")?)
    }

    pub(crate) fn read(mut fields: Fields) -> Result<Self, TableError> {
        let header = |fields: &Fields, name: &str, text: &str| {
            HeaderName::from_bytes(text.as_bytes()).map_err(|_| fields.error(name, "is no name of a header"))
        };
        let text = fields.text("header")?;
        let place = header(&fields, "header", &text)?;
        let timestamp_header = match fields.optional_text("timestamp_header")? {
            Some(text) => Some(header(&fields, "timestamp_header", &text)?),
            None => None,
        };
        let pairs = fields
            .optional_text("signature_field")?
            .zip(fields.optional_text("timestamp_field")?);
        let keys = fields.texts("secrets")?;
        let keys = keys
            .iter()
            .map(|key| hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes()));
        let found = Self {
            name: fields.text("name")?,
            header: place,
            prefix: fields.optional_text("prefix")?.unwrap_or_default(),
            pairs,
            timestamp_header,
            keys: keys.collect(),
            tolerance_seconds: match fields.take("tolerance_seconds") {
                Value::Number(seconds) => seconds.as_f64().unwrap_or_default(),
                _ => return Err(fields.error("tolerance_seconds", "a number is expected")),
            },
            signed: fields.text("signed")?,
        };
        fields.done()?;
        let has_timestamp = found.pairs.is_some() || found.timestamp_header.is_some();
        if !found.signed.ends_with(BODY) || has_timestamp != found.signed.contains(TIMESTAMP) {
            return Err(TableError(
                "webhook.signed: it ends with `{body}`, and has `{timestamp}` where the request has one"
                    .to_owned(),
            ));
        }
        Ok(found)
    }

    pub(crate) fn actor(&self) -> Actor {
        Actor {
            subject: self.name.clone(),
            tenant: None,
            via: "webhook".into(),
            scopes: Vec::new(),
        }
    }

    /// Reads the signature from a head, and checks its age.
    pub fn signature(&self, headers: &HeaderMap, now: SystemTime) -> Result<Signature, Rejection> {
        let text = only(headers, &self.header)
            .ok_or("The header with the signature is missing, or is there twice.")?;
        let mut timestamp = None;
        let mut found = Vec::new();
        match &self.pairs {
            None => found.extend(text.strip_prefix(self.prefix.as_str())),
            Some((signature, moment)) => {
                for (name, value) in text.split(',').filter_map(|pair| pair.trim().split_once('=')) {
                    if name == signature {
                        found.push(value);
                    } else if name == moment && timestamp.replace(value).is_some() {
                        return Err("The signature has two timestamps.");
                    }
                }
            }
        }
        if let Some(header) = &self.timestamp_header {
            timestamp = only(headers, header);
        }
        let candidates: Vec<Vec<u8>> = found.into_iter().filter_map(from_hex).collect();
        if candidates.is_empty() {
            return Err("The header has no signature of a known form.");
        }
        let before = self.signed.strip_suffix(BODY).unwrap_or_default();
        let before = if before.contains(TIMESTAMP) {
            let timestamp = timestamp.filter(|text| (1..=12).contains(&text.len()));
            let timestamp = timestamp.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            let timestamp = timestamp.ok_or("The signature has no timestamp.")?;
            let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
            let age = now - timestamp.parse::<f64>().unwrap_or_default();
            if age.abs() > self.tolerance_seconds {
                return Err("The timestamp of the signature is too far from now.");
            }
            before.replace(TIMESTAMP, timestamp)
        } else {
            before.to_owned()
        };
        Ok(Signature { candidates, before })
    }

    /// Checks a body against the signature of its head, by each secret.
    pub fn verify(&self, signature: &Signature, body: &[u8]) -> Result<(), Rejection> {
        let mut is_known = false;
        for key in &self.keys {
            let mut context = hmac::Context::with_key(key);
            context.update(signature.before.as_bytes());
            context.update(body);
            let tag = context.sign();
            // Every candidate is compared in full, so the time says nothing about the signature.
            for candidate in &signature.candidates {
                let pairs = candidate.iter().zip(tag.as_ref());
                let difference = pairs.fold(0, |sum, (left, right)| sum | (left ^ right));
                is_known |= std::hint::black_box(difference) == 0;
            }
        }
        if is_known { Ok(()) } else { Err(WRONG) }
    }
}

/// Returns the text of a header that is there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(first)
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().map(hex_digit).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits
        .chunks_exact(2)
        .map(|pair| pair.iter().fold(0, |sum, digit| sum << 4 | digit))
        .collect();
    (digits.len() == 2 * SIGNATURE_BYTES).then_some(bytes)
}
