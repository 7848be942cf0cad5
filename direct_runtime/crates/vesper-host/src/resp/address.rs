//! Addresses of servers: `redis://`, `rediss://` and `unix://`.

use std::fmt;
use std::path::PathBuf;

use zeroize::Zeroizing;

const DEFAULT_PORT: u16 = 6379;

/// Place of a server, with the rights to use it. Its text, for messages, has no password.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub place: Place,
    pub database: u32,
    pub username: Option<String>,
    pub password: Option<Zeroizing<String>>,
}

/// Network address or socket file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Network {
        host: String,
        port: u16,
        /// None without encryption.
        tls: Option<TlsFiles>,
    },
    File(PathBuf),
}

/// Files of certificates, in PEM form; those of the system by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    pub authorities: Option<PathBuf>,
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

/// Error for a text that is no address. It does not repeat the text, which may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidAddress;

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Network { host, port, .. } => write!(formatter, "redis://{host}:{port}/{}", self.database),
            Place::File(path) => write!(formatter, "unix://{}", path.display()),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Address {
    /// Parses `redis://[user[:password]@]host[:port][/number]`, `rediss://…` for TLS, or `unix://[user[:password]@]path`.
    ///
    /// Options are `db`, `username` and `password`, and with TLS `ssl_ca_certs`, `ssl_certfile` and `ssl_keyfile`.
    pub fn parse(url: &str) -> Result<Self, InvalidAddress> {
        let (scheme, rest) = url.split_once("://").ok_or(InvalidAddress)?;
        if rest.contains('#') {
            return Err(InvalidAddress);
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let slash = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(slash).ok_or(InvalidAddress)?;
        let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (username, password) = user.split_once(':').unwrap_or((user, ""));
        let path = decode(path)?;
        let (place, database) = match scheme {
            "redis" | "rediss" => {
                let (host, port) = host_and_port(host)?;
                let tls = (scheme == "rediss").then(TlsFiles::default);
                let number = path.trim_start_matches('/');
                (Place::Network { host, port, tls }, number.to_owned())
            }
            "unix" if host.is_empty() && !path.is_empty() => {
                (Place::File(PathBuf::from(path)), String::new())
            }
            _ => return Err(InvalidAddress),
        };
        let mut address = Self {
            place,
            database: parse_database(&database)?,
            username: some_text(decode(username)?),
            password: some_text(decode(password)?).map(Zeroizing::new),
        };
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').ok_or(InvalidAddress)?;
            address.set_option(name, decode(value)?)?;
        }
        Ok(address)
    }

    fn set_option(&mut self, name: &str, value: String) -> Result<(), InvalidAddress> {
        match (name, &mut self.place) {
            ("db", _) => self.database = parse_database(&value)?,
            ("username", _) => self.username = some_text(value),
            ("password", _) => self.password = some_text(value).map(Zeroizing::new),
            ("ssl_ca_certs", Place::Network { tls: Some(tls), .. }) => {
                tls.authorities = Some(PathBuf::from(value));
            }
            ("ssl_certfile", Place::Network { tls: Some(tls), .. }) => {
                tls.certificate = Some(PathBuf::from(value));
            }
            ("ssl_keyfile", Place::Network { tls: Some(tls), .. }) => tls.key = Some(PathBuf::from(value)),
            _ => return Err(InvalidAddress),
        }
        Ok(())
    }
}

fn some_text(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

fn parse_database(text: &str) -> Result<u32, InvalidAddress> {
    match text {
        "" => Ok(0),
        _ if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().map_err(|_| InvalidAddress),
        _ => Err(InvalidAddress),
    }
}

/// Splits `host:port`; a host with colons stands in brackets.
fn host_and_port(text: &str) -> Result<(String, u16), InvalidAddress> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or(InvalidAddress)?;
            let port = after.strip_prefix(':');
            if port.is_none() && !after.is_empty() {
                return Err(InvalidAddress);
            }
            (host, port.unwrap_or(""))
        }
        None => text.split_once(':').unwrap_or((text, "")),
    };
    let host = if host.is_empty() { "localhost" } else { host };
    let port = match port {
        "" => DEFAULT_PORT,
        _ if port.bytes().all(|byte| byte.is_ascii_digit()) => port.parse().map_err(|_| InvalidAddress)?,
        _ => return Err(InvalidAddress),
    };
    Ok((decode(host)?, port))
}

/// Replaces percent escapes.
fn decode(text: &str) -> Result<String, InvalidAddress> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let escape = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = escape.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped {
            Some(escaped) if *byte == b'%' => {
                bytes.push(escaped);
                rest = after.get(2..).unwrap_or(&[]);
            }
            _ => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).map_err(|_| InvalidAddress)
}
