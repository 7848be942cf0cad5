//! Requests to AWS, signed with Signature Version 4.

use std::fmt::Write as _;

use ring::digest::{SHA256, digest};
use ring::hmac;
use vesper_ir::time::{Civil, split_timestamp};
use zeroize::Zeroizing;

use super::text::{quote, unquote};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// Headers that a signature sets, so that a node cannot.
pub(super) const OWN_HEADERS: [&str; 4] = [
    "authorization",
    "x-amz-date",
    "x-amz-content-sha256",
    "x-amz-security-token",
];
/// Headers that a proxy may change, and that are therefore not signed.
const UNSIGNED_HEADERS: [&str; 4] = ["accept", "traceparent", "tracestate", "user-agent"];

/// Credentials of an AWS account, and the service that they sign for.
pub struct AwsKey<'a> {
    pub region: &'a str,
    pub service: &'a str,
    pub access_key_id: &'a str,
    pub secret_access_key: &'a str,
    pub session_token: Option<&'a str>,
}

/// Parts of a request that a signature covers.
pub struct AwsRequest<'a> {
    pub method: &'a str,
    /// The header `Host`.
    pub host: &'a str,
    /// As it is sent, percent-encoded.
    pub path: &'a str,
    /// As it is sent, without the `?`.
    pub query: &'a str,
    /// Names in lower case.
    pub headers: &'a [(String, Zeroizing<String>)],
    pub body: &'a [u8],
}

impl std::fmt::Debug for AwsKey<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "AwsKey({}/{})", self.region, self.service)
    }
}

impl std::fmt::Debug for AwsRequest<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "AwsRequest({} {})", self.method, self.host)
    }
}

/// Returns the headers that sign a request at a time in microseconds since 1970.
pub fn sign(request: &AwsRequest<'_>, key: &AwsKey<'_>, now_us: i64) -> Vec<(String, Zeroizing<String>)> {
    let moment = moment_text(now_us);
    let day = moment.get(..8).unwrap_or_default();
    let payload = hex(digest(&SHA256, request.body).as_ref());
    let mut added = vec![("x-amz-date".to_owned(), Zeroizing::new(moment.clone()))];
    if key.service == "s3" {
        added.push(("x-amz-content-sha256".to_owned(), payload.clone().into()));
    }
    if let Some(token) = key.session_token {
        added.push(("x-amz-security-token".to_owned(), token.to_owned().into()));
    }
    let host = ("host".to_owned(), Zeroizing::new(request.host.to_owned()));
    let mut headers: Vec<&(String, Zeroizing<String>)> = request
        .headers
        .iter()
        .filter(|(name, _)| !UNSIGNED_HEADERS.contains(&name.as_str()))
        .chain(&added)
        .chain([&host])
        .collect();
    headers.sort_by(|left, right| left.0.cmp(&right.0));
    let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join(";");
    let mut canonical = Zeroizing::new(format!(
        "{}\n{}\n{}\n",
        request.method,
        canonical_path(request.path, key.service),
        canonical_query(request.query)
    ));
    for (name, value) in headers {
        let words: Vec<&str> = value.split(' ').filter(|word| !word.is_empty()).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(canonical, "{name}:{}", words.join(" "));
    }
    let _ = write!(canonical, "\n{names}\n{payload}");
    let scope = format!("{day}/{}/{}/aws4_request", key.region, key.service);
    let hash = hex(digest(&SHA256, canonical.as_bytes()).as_ref());
    let text = format!("{ALGORITHM}\n{moment}\n{scope}\n{hash}");
    let secret = Zeroizing::new(format!("AWS4{}", key.secret_access_key));
    let mut signing = mac(secret.as_bytes(), day);
    for part in [key.region, key.service, "aws4_request"] {
        signing = mac(signing.as_ref(), part);
    }
    let signature = hex(mac(signing.as_ref(), &text).as_ref());
    let id = key.access_key_id;
    let value = format!("{ALGORITHM} Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}");
    added.push(("authorization".to_owned(), value.into()));
    added
}

fn mac(key: &[u8], text: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Returns a moment as `20150830T123600Z`.
fn moment_text(now_us: i64) -> String {
    let (date, within_us) = split_timestamp(now_us);
    let Civil { year, month, day } = Civil::from_date(date);
    let seconds = within_us / 1_000_000;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Returns the path encoded once for S3, and encoded once more than it is sent for every other service.
fn canonical_path(path: &str, service: &str) -> String {
    let path = if path.is_empty() { "/" } else { path };
    if service == "s3" {
        recoded(path, b"/")
    } else {
        quote(path, b"/")
    }
}

/// Returns the parameters in their one encoding, by name and then by value.
fn canonical_query(query: &str) -> String {
    let mut pairs: Vec<(String, String)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (recoded(name, b""), recoded(value, b"")))
        .collect();
    pairs.sort_unstable();
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join("&")
}

/// Decodes a text and encodes it as AWS does.
fn recoded(text: &str, safe: &[u8]) -> String {
    let bytes = unquote(text.as_bytes());
    bytes
        .iter()
        .fold(String::with_capacity(text.len()), |mut out, byte| {
            if byte.is_ascii_alphanumeric() || b"_.-~".contains(byte) || safe.contains(byte) {
                out.push(char::from(*byte));
            } else {
                let _ = write!(out, "%{byte:02X}");
            }
            out
        })
}
