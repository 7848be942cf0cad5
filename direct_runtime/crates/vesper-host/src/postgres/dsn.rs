//! The address of a Postgres database, as libpq reads it: a URL, and the environment for what the URL omits.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use crate::postgres::password_file;

/// Parameters of a URL, each with the environment variable that replaces it.
const PARAMETERS: [(&str, &str); 21] = [
    ("host", "PGHOST"),
    ("hostaddr", "PGHOSTADDR"),
    ("port", "PGPORT"),
    ("dbname", "PGDATABASE"),
    ("user", "PGUSER"),
    ("password", "PGPASSWORD"),
    ("passfile", "PGPASSFILE"),
    ("options", "PGOPTIONS"),
    ("application_name", "PGAPPNAME"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
    ("client_encoding", "PGCLIENTENCODING"),
    ("keepalives", ""),
    ("keepalives_idle", ""),
    ("keepalives_interval", ""),
    ("keepalives_count", ""),
    ("tcp_user_timeout", ""),
];
const DEFAULT_PORT: u16 = 5432;
/// Folder of sockets where neither the URL nor the environment names a host; as Debian builds libpq.
const SOCKET_FOLDERS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// Parameters of libpq that are refused by their name. Another name is not shown: it may be part of a password.
const UNSUPPORTED: [&str; 22] = [
    "channel_binding",
    "fallback_application_name",
    "gssdelegation",
    "gssencmode",
    "gsslib",
    "krbsrvname",
    "load_balance_hosts",
    "max_protocol_version",
    "min_protocol_version",
    "replication",
    "require_auth",
    "requirepeer",
    "service",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslcertmode",
    "sslcompression",
    "sslcrl",
    "sslcrldir",
    "sslnegotiation",
    "sslpassword",
    "sslsni",
];

/// A DSN that cannot be used. It holds no text of the DSN, which may be a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadDsn {
    /// A parameter of libpq that is not supported; None where the DSN cannot be read.
    pub unsupported: Option<&'static str>,
}

const UNREADABLE: BadDsn = BadDsn { unsupported: None };

/// How a session is encrypted, and what is checked of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsMode {
    Disable,
    Allow,
    #[default]
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// Which servers of a list are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionKind {
    #[default]
    Any,
    ReadWrite,
}

/// Probes of an idle connection; `None` leaves a value to the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keepalive {
    pub is_off: bool,
    pub idle: Option<Duration>,
    pub interval: Option<Duration>,
    pub count: Option<u32>,
}

/// A server that a DSN names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Name of a machine, or the folder of a Unix socket.
    pub host: String,
    /// Address to connect to instead of the one of `host`; empty where there is none.
    pub address: String,
    pub port: u16,
}

impl Server {
    /// Returns true where the host is the folder of a Unix socket.
    pub fn is_local(&self) -> bool {
        self.address.is_empty() && (self.host.starts_with('/') || self.host.starts_with('@'))
    }
}

/// Parameters of a URL, not yet completed by the environment.
#[derive(Clone)]
pub struct Dsn {
    parameters: BTreeMap<&'static str, String>,
}

impl std::fmt::Debug for Dsn {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.name()) // The parameters may hold a password.
    }
}

impl Dsn {
    /// Reads `postgresql://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?NAME=VALUE&…`.
    pub fn parse(url: &str) -> Result<Self, BadDsn> {
        let rest = url
            .strip_prefix("postgresql://")
            .or_else(|| url.strip_prefix("postgres://"));
        let rest = rest.ok_or(UNREADABLE)?;
        let mut dsn = Self {
            parameters: BTreeMap::new(),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (account, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = account.split_once(':').unwrap_or((account, ""));
        dsn.set("user", user)?;
        dsn.set("password", password)?;
        dsn.set("dbname", database)?;
        dsn.set_hosts(hosts)?;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or(UNREADABLE)?;
            dsn.set(&unescape(name)?, value)?;
        }
        dsn.resolve(|_| None)?; // Refuses a bad number or mode before anything is opened.
        Ok(dsn)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), BadDsn> {
        let value = unescape(value)?;
        let Some(known) = PARAMETERS.iter().find(|(each, _)| *each == name) else {
            let unsupported = UNSUPPORTED.into_iter().find(|each| *each == name);
            return Err(BadDsn { unsupported });
        };
        if !value.is_empty() {
            self.parameters.insert(known.0, value);
        }
        Ok(())
    }

    fn set_hosts(&mut self, hosts: &str) -> Result<(), BadDsn> {
        let mut names = Vec::new();
        let mut ports = Vec::new();
        for each in hosts.split(',') {
            let (name, port) = match each.strip_prefix('[') {
                Some(rest) => {
                    let (name, rest) = rest.split_once(']').ok_or(UNREADABLE)?;
                    (name, rest.strip_prefix(':').unwrap_or(rest))
                }
                None => each.split_once(':').unwrap_or((each, "")),
            };
            if name.contains(|sign: char| sign.is_whitespace() || sign.is_control()) {
                return Err(UNREADABLE);
            }
            names.push(unescape(name)?);
            ports.push(port);
        }
        self.set("host", &escape_percent(&names.join(",")))?;
        if ports.iter().any(|port| !port.is_empty()) {
            self.set("port", &ports.join(","))?;
        }
        Ok(())
    }

    /// Returns the database for messages; it holds no password.
    pub fn name(&self) -> String {
        let of = |name: &str| self.parameters.get(name).map_or("", String::as_str);
        let port = match of("port") {
            "" => String::new(),
            port => format!(":{port}"),
        };
        format!("postgresql://{}{port}/{}", of("host"), of("dbname"))
    }

    /// Completes the parameters by the environment, the password file and defaults.
    pub fn resolve(&self, environment: impl Fn(&str) -> Option<String>) -> Result<Target, BadDsn> {
        let of = |name: &str| -> Option<String> {
            let variable = PARAMETERS
                .iter()
                .find(|(each, _)| *each == name)
                .map_or("", |each| each.1);
            let set = self.parameters.get(name).cloned();
            set.or_else(|| environment(variable))
                .filter(|text| !text.is_empty())
        };
        if of("client_encoding").is_some_and(|name| !name.eq_ignore_ascii_case("utf8") && name != "auto") {
            return Err(UNREADABLE);
        }
        let servers = servers(&of)?;
        let user = of("user").or_else(account_name).ok_or(UNREADABLE)?;
        let database = of("dbname").unwrap_or_else(|| user.clone());
        let password_file = of("passfile").or_else(|| Some(format!("{}/.pgpass", environment("HOME")?)));
        let seconds = |name: &str| -> Result<Option<u64>, BadDsn> {
            of(name)
                .map(|text| text.parse::<u64>().map_err(|_| UNREADABLE))
                .transpose()
        };
        Ok(Target {
            servers,
            password: of("password"),
            password_file,
            options: of("options"),
            application_name: of("application_name"),
            connect_timeout: seconds("connect_timeout")?
                .filter(|each| *each > 0)
                .map(|each| Duration::from_secs(each.max(2))),
            tls: tls_mode(of("sslmode").as_deref())?,
            root_certificate: of("sslrootcert"),
            client_certificate: of("sslcert").zip(of("sslkey")),
            session: session_kind(of("target_session_attrs").as_deref())?,
            keepalive: Keepalive {
                is_off: seconds("keepalives")? == Some(0),
                idle: seconds("keepalives_idle")?.map(Duration::from_secs),
                interval: seconds("keepalives_interval")?.map(Duration::from_secs),
                count: seconds("keepalives_count")?
                    .map(|count| u32::try_from(count).map_err(|_| UNREADABLE))
                    .transpose()?,
            },
            user_timeout: seconds("tcp_user_timeout")?
                .filter(|each| *each > 0)
                .map(Duration::from_millis),
            home: environment("HOME"),
            user,
            database,
        })
    }
}

/// Everything that a connection needs.
#[derive(Clone)]
pub struct Target {
    pub servers: Vec<Server>,
    pub user: String,
    pub database: String,
    pub options: Option<String>,
    pub application_name: Option<String>,
    pub connect_timeout: Option<Duration>,
    pub tls: TlsMode,
    pub root_certificate: Option<String>,
    /// Files of a certificate and its key.
    pub client_certificate: Option<(String, String)>,
    pub session: SessionKind,
    pub keepalive: Keepalive,
    pub user_timeout: Option<Duration>,
    pub home: Option<String>,
    password: Option<String>,
    password_file: Option<String>,
}

impl Target {
    /// Returns the password for a server: of the DSN, or else of the password file.
    pub fn password(&self, server: &Server) -> Option<String> {
        let from_file =
            || password_file::find(self.password_file.as_deref()?, server, &self.database, &self.user);
        self.password.clone().or_else(from_file)
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Target({:?}, {})", self.servers, self.database)
    }
}

fn servers(of: &dyn Fn(&str) -> Option<String>) -> Result<Vec<Server>, BadDsn> {
    let default_host = || {
        let found = SOCKET_FOLDERS
            .iter()
            .find(|folder| std::path::Path::new(folder).exists());
        found.map_or_else(|| "localhost".to_owned(), |folder| (*folder).to_owned())
    };
    let split = |name: &str| -> Vec<String> {
        of(name).map_or_else(Vec::new, |text| text.split(',').map(str::to_owned).collect())
    };
    let (hosts, addresses, ports) = (split("host"), split("hostaddr"), split("port"));
    let count = hosts.len().max(addresses.len()).max(1);
    if ports.len() > 1 && ports.len() != count
        || !addresses.is_empty() && !hosts.is_empty() && addresses.len() != hosts.len()
    {
        return Err(UNREADABLE);
    }
    let mut servers = Vec::with_capacity(count);
    for index in 0..count {
        let port = ports
            .get(index)
            .or_else(|| ports.first().filter(|_| ports.len() == 1));
        let port = match port.map_or("", String::as_str) {
            "" => DEFAULT_PORT,
            text => text.parse().ok().filter(|port| *port > 0).ok_or(UNREADABLE)?,
        };
        let host = hosts.get(index).cloned().filter(|host| !host.is_empty());
        let address = addresses.get(index).cloned().unwrap_or_default();
        let host = host.unwrap_or_else(|| {
            if address.is_empty() {
                default_host()
            } else {
                address.clone()
            }
        });
        servers.push(Server { host, address, port });
    }
    Ok(servers)
}

fn tls_mode(text: Option<&str>) -> Result<TlsMode, BadDsn> {
    Ok(match text {
        None | Some("prefer") => TlsMode::Prefer,
        Some("disable") => TlsMode::Disable,
        Some("allow") => TlsMode::Allow,
        Some("require") => TlsMode::Require,
        Some("verify-ca") => TlsMode::VerifyCa,
        Some("verify-full") => TlsMode::VerifyFull,
        Some(_) => return Err(UNREADABLE),
    })
}

fn session_kind(text: Option<&str>) -> Result<SessionKind, BadDsn> {
    match text {
        None | Some("any") => Ok(SessionKind::Any),
        Some("read-write" | "primary") => Ok(SessionKind::ReadWrite),
        Some(_) => Err(UNREADABLE), // A journal writes: a standby cannot serve it.
    }
}

/// Returns the name of the account that this process has, which is libpq's default user.
fn account_name() -> Option<String> {
    let user = std::fs::metadata("/proc/self").ok()?.uid().to_string();
    let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
    let found = accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == user).then(|| name.to_owned())
    });
    found.or_else(|| std::env::var("USER").ok())
}

fn escape_percent(text: &str) -> String {
    text.replace('%', "%25")
}

/// Replaces `%XX` by its byte; refuses other escapes and what is no UTF-8.
fn unescape(text: &str) -> Result<String, BadDsn> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let pair = [rest.next().ok_or(UNREADABLE)?, rest.next().ok_or(UNREADABLE)?];
            let digits = std::str::from_utf8(&pair).map_err(|_| UNREADABLE)?;
            bytes.push(u8::from_str_radix(digits, 16).map_err(|_| UNREADABLE)?);
        } else {
            bytes.push(byte);
        }
    }
    if bytes.contains(&0) {
        return Err(UNREADABLE);
    }
    String::from_utf8(bytes).map_err(|_| UNREADABLE)
}
