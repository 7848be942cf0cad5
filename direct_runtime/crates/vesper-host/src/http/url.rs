//! URLs: one strict reader for those of the configuration and of redirects, and the join of an endpoint to a base.
//!
//! Libraries differ in how they read a strange URL, so one may check another host than the other connects to. Strange
//! URLs are therefore refused, and the request is composed of the parts that were checked.

use std::fmt;

use super::addresses::normal_host;
use super::text::{quote, shown, unquote};
use crate::messages::grouped;

/// Bytes of a path with its query; servers commonly take no more.
const MAX_TARGET: usize = 8192;
/// Number of times that a segment is decoded in search of dots. One with more layers is refused.
const MAX_DECODINGS: usize = 4;

/// Destination of a connection; `host` in its normal spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub is_secure: bool,
    pub host: String,
    pub port: u16,
}

impl Origin {
    fn scheme(&self) -> &'static str {
        if self.is_secure { "https" } else { "http" }
    }

    /// Returns the host and its port as the header `Host` has them.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        if self.port == default_port(self.is_secure) {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}://{}", self.scheme(), self.authority())
    }
}

fn default_port(is_secure: bool) -> u16 {
    if is_secure { 443 } else { 80 }
}

/// Absolute URL without a fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    pub origin: Origin,
    /// Begins with `/`, or is empty.
    pub path: String,
    /// Without the `?`.
    pub query: String,
}

impl Url {
    /// Returns path and query as the request line has them.
    pub fn target(&self) -> String {
        let path = if self.path.is_empty() { "/" } else { &self.path };
        if self.query.is_empty() {
            path.to_owned()
        } else {
            format!("{path}?{}", self.query)
        }
    }
}

/// Reads an absolute URL. Its fragment is left out, because it is never sent.
pub fn read_url(text: &str) -> Result<Url, String> {
    let label = shown_url(text);
    if text.chars().count() > MAX_TARGET {
        return Err(format!(
            "{label} is longer than {} characters",
            grouped(MAX_TARGET)
        ));
    }
    if text.chars().any(is_odd) {
        return Err(format!("{label} has a character that no URL has"));
    }
    let Some((is_secure, rest)) = split_scheme(text) else {
        return Err(format!(
            "{label} is no URL that begins with `https://` or `http://`"
        ));
    };
    let rest = rest.split('#').next().unwrap_or_default();
    let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if authority.contains('@') {
        return Err(format!(
            "{label} has a user name in it: credentials belong into `auth`"
        ));
    }
    let origin = read_origin(is_secure, authority)?;
    check_segments(path, &label)?;
    Ok(Url {
        origin,
        path: path.to_owned(),
        query: query.to_owned(),
    })
}

fn split_scheme(text: &str) -> Option<(bool, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    match scheme.to_ascii_lowercase().as_str() {
        "https" => Some((true, rest)),
        "http" => Some((false, rest)),
        _ => None,
    }
}

/// Reads `host` or `host:port`.
pub fn read_origin(is_secure: bool, authority: &str) -> Result<Origin, String> {
    let malformed = || {
        let label = shown(authority, 64);
        Err(format!("`{label}` is no host, nor a host with a port"))
    };
    let end = if authority.starts_with('[') {
        authority.find(']').map_or(0, |place| place + 1)
    } else {
        authority.find(':').unwrap_or(authority.len())
    };
    let (host, rest) = authority.split_at(end);
    let inner = host
        .strip_prefix('[')
        .map_or(host, |host| host.trim_end_matches(']'));
    if (authority.starts_with('[') && host.is_empty()) || inner.contains(['[', ']']) {
        return malformed();
    }
    let port = match rest.strip_prefix(':') {
        None if rest.is_empty() => u32::from(default_port(is_secure)),
        Some(digits)
            if (1..=5).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            digits.parse().unwrap_or_default()
        }
        _ => return malformed(),
    };
    let Some(port) = u16::try_from(port).ok().filter(|port| *port > 0) else {
        return Err(format!("{port} is no port"));
    };
    Ok(Origin {
        is_secure,
        host: normal_host(host)?,
        port,
    })
}

/// Joins an endpoint and a query to a base. The result cannot leave the base.
///
/// The holes of an endpoint were percent-encoded when it was made (docs/spec/flow.md), so a plain character in it comes
/// from the author of the node; but dots need no encoding, so a segment may still be `..`.
pub(super) fn join(base: &Url, endpoint: &str, query: &[(String, String)]) -> Result<Url, String> {
    let label = format!("the endpoint {}", shown_url(endpoint));
    if endpoint.chars().any(is_odd) {
        return Err(format!("{label} has a character that must be percent-encoded"));
    }
    if endpoint.contains('#') {
        return Err(format!(
            "{label} has a `#`, and what comes after it would not be sent"
        ));
    }
    if !endpoint.is_empty() && !endpoint.starts_with(['/', '?']) {
        return Err(format!(
            "{label} does not begin with `/`: it is a path below the provider's `base_url`"
        ));
    }
    let (path, own_query) = endpoint.split_once('?').unwrap_or((endpoint, ""));
    if path.starts_with("//") {
        return Err(format!("{label} begins with `//`, which names a host"));
    }
    check_segments(path, &label)?;
    if path.contains("//") {
        return Err(format!(
            "{label} has an empty segment: perhaps a value in it is empty"
        ));
    }
    let mut all = own_query.to_owned();
    for (name, value) in query {
        if !all.is_empty() {
            all.push('&');
        }
        all.push_str(&quote(name, b""));
        all.push('=');
        all.push_str(&quote(value, b""));
    }
    let url = Url {
        origin: base.origin.clone(),
        path: format!("{}{path}", base.path),
        query: all,
    };
    let target = url.target();
    if target.len() > MAX_TARGET {
        return Err(format!(
            "{label} and its query have {} characters, more than {}",
            grouped(target.len()),
            grouped(MAX_TARGET)
        ));
    }
    read_url(&format!("{}{target}", base.origin))
}

/// Checks an endpoint of the configuration against its base.
pub fn check_endpoint(base: &Url, endpoint: &str) -> Result<(), String> {
    join(base, endpoint, &[]).map(drop)
}

/// Returns the destination of a redirect: an absolute URL, one without a scheme, or a path.
pub(super) fn redirected(url: &Url, location: &str) -> Result<Url, String> {
    if location.starts_with("//") {
        read_url(&format!("{}:{location}", url.origin.scheme()))
    } else if location.starts_with('/') {
        read_url(&format!("{}{location}", url.origin))
    } else {
        read_url(location)
    }
}

/// Returns the beginning of a URL for a message, without anything that a terminal acts on.
pub(super) fn shown_url(text: &str) -> String {
    let end = if text.chars().nth(100).is_some() {
        "…"
    } else {
        ""
    };
    format!("`{}{end}`", shown(text, 100))
}

fn is_odd(char: char) -> bool {
    !matches!(char, '!'..='~') || "\\\"<>^`{|}".contains(char)
}

/// Refuses a segment `.` or `..`, however often it is encoded: a server on the way may decode it.
fn check_segments(path: &str, label: &str) -> Result<(), String> {
    if has_broken_escape(path) {
        return Err(format!("{label} has a `%` without two hexadecimal digits"));
    }
    for segment in path.split('/') {
        let decoded = decode(segment, label)?;
        for part in decoded.split(|byte| matches!(byte, b'/' | b'\\')) {
            // `;` begins parameters of a segment: some servers read `..;x` as `..`.
            let name = part.split(|byte| *byte == b';').next().unwrap_or_default();
            if matches!(name, b"." | b"..") {
                return Err(format!("{label} has a segment `.` or `..`"));
            }
            if part.iter().any(u8::is_ascii_control) {
                return Err(format!("{label} has a control character"));
            }
        }
    }
    Ok(())
}

fn has_broken_escape(path: &str) -> bool {
    path.split('%').skip(1).any(|after| {
        let mut digits = after.bytes();
        !(digits.next().is_some_and(|byte| byte.is_ascii_hexdigit())
            && digits.next().is_some_and(|byte| byte.is_ascii_hexdigit()))
    })
}

fn decode(segment: &str, label: &str) -> Result<Vec<u8>, String> {
    let mut found = segment.as_bytes().to_vec();
    for _ in 0..MAX_DECODINGS {
        let again = unquote(&found);
        if again == found {
            return Ok(found);
        }
        found = again;
    }
    Err(format!(
        "{label} is percent-encoded more than {} times over",
        MAX_DECODINGS - 1
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Url {
        Url {
            origin: Origin {
                is_secure: true,
                host: "shop.example".to_owned(),
                port: 443,
            },
            path: "/v1".to_owned(),
            query: String::new(),
        }
    }

    #[test]
    fn urls_are_read_strictly() {
        let url = read_url("HTTPS://Shop.Example:8443/a/b?x=1?&y#z")
            .map(|url| (url.to_string_parts(), url.target()));
        assert_eq!(
            url,
            Ok(("https://shop.example:8443".to_owned(), "/a/b?x=1?&y".to_owned()))
        );
        assert_eq!(
            read_url("http://[::1]").map(|url| url.to_string_parts()),
            Ok("http://[::1]".to_owned())
        );
        assert_eq!(
            read_url("http://x?q").map(|url| url.target()),
            Ok("/?q".to_owned())
        );
        let cases = [
            "http://2130706433/",
            "http://127.1/",
            "http://user@example.com/",
            "http://user:pass@example.com/",
            "http://example.com\\@evil.example/",
            "http://exam ple.com/",
            "http://example.com:0/",
            "http://example.com:99999/",
            "http://example.com:8o/",
            "http://[::1/",
            "http://[::1%25eth0]/",
            "http://\u{2460}.0.0.1/",
            "http:///x",
            "http:example",
            "ftp://example.com/",
            "file:///etc/passwd",
            "//example.com/",
            "example.com",
            "",
            "http://example.com/a/../b",
            "http://example.com/%2e%2e/b",
            "http://example.com/\r\nX: 1",
            "javascript:alert(1)",
            "http://example.com:80:80/",
            "http://a[b]c/",
            "http://[::1]x/",
            "http://]/",
            "http://x:/",
        ];
        for text in cases {
            assert!(read_url(text).is_err(), "{text}");
        }
    }

    impl Url {
        fn to_string_parts(&self) -> String {
            self.origin.to_string()
        }
    }

    #[test]
    fn an_endpoint_cannot_leave_its_base() {
        let cases = [
            "https://evil.example/x",
            "//evil.example/x",
            "///evil.example/x",
            "\\\\evil.example/x",
            "/\\evil.example/x",
            "/a\\..\\b",
            "@evil.example/x",
            "evil.example/x",
            ":80/x",
            ".evil.example/x",
            "../x",
            "/..",
            "/../x",
            "/a/../../x",
            "/a/./b",
            "/%2e%2e/x",
            "/%2E./x",
            "/.%2e/x",
            "/a/..%2f..%2fx",
            "/a/..%5c..%5cx",
            "/%252e%252e/x",
            "/%25252e%25252e/x",
            "/%2525252525252e/x",
            "/..;/x",
            "/..;jsessionid=1/x",
            "/%2e%2e%3bx/y",
            "/a//b",
            "/a/%",
            "/a/%2",
            "/a/%zz",
            "/a b",
            "/a\r\nX-Evil: 1",
            "/a\0b",
            "/a%00b",
            "/a%0d%0aX-Evil:%201",
            "/a\tb",
            "/a\x7fb",
            "/b\u{fc}cher",
            "/a#b",
            "/a?x=1#y",
            "/a?x= 1",
            "/a\"b",
            "/<script>",
            "/{secret}",
        ];
        for endpoint in cases {
            assert!(join(&base(), endpoint, &[]).is_err(), "{endpoint}");
        }
        let pairs = [("q".to_owned(), "a b&".to_owned())];
        assert_eq!(
            join(&base(), "/it?x=1", &pairs).map(|url| url.target()),
            Ok("/v1/it?x=1&q=a%20b%26".to_owned())
        );
        assert_eq!(
            join(&base(), "", &[]).map(|url| url.target()),
            Ok("/v1".to_owned())
        );
        let pairs = [("q".to_owned(), "a".repeat(9000))];
        assert_eq!(
            join(&base(), "/it", &pairs),
            Err("the endpoint `/it` and its query have 9,009 characters, more than 8,192".to_owned())
        );
    }

    #[test]
    fn redirects_lead_to_urls() {
        let lead = |location: &str| {
            redirected(&base(), location).map(|url| format!("{}{}", url.origin, url.target()))
        };
        assert_eq!(lead("/x"), Ok("https://shop.example/x".to_owned()));
        assert_eq!(lead("//a.example/x"), Ok("https://a.example/x".to_owned()));
        assert_eq!(lead("http://a.example:80"), Ok("http://a.example/".to_owned()));
        assert!(lead("x").is_err());
    }
}
