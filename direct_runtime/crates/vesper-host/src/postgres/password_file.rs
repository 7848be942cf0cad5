//! Passwords of a `.pgpass` file: lines of `HOST:PORT:DATABASE:USER:PASSWORD`, the first that fits counts.

use std::os::unix::fs::MetadataExt;

use crate::postgres::dsn::Server;

/// Returns the password for a server. A file that others may read is ignored, as libpq ignores it.
pub fn find(path: &str, server: &Server, database: &str, user: &str) -> Option<String> {
    let status = std::fs::metadata(path).ok()?;
    if !status.is_file() || status.mode() & 0o077 != 0 {
        return None;
    }
    let text = std::fs::read_to_string(path).ok()?;
    let host = if server.is_local() {
        "localhost"
    } else {
        &server.host
    };
    let port = server.port.to_string();
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .find_map(|line| {
            let fields = split(line);
            let [names @ .., password] = fields.as_slice() else {
                return None;
            };
            let expected = [host, &port, database, user];
            let fits = names.len() == expected.len()
                && names
                    .iter()
                    .zip(expected)
                    .all(|(name, value)| name == "*" || name == value);
            fits.then(|| password.clone())
        })
}

/// Splits a line at its colons; a backslash takes the next sign as it is.
fn split(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut signs = line.chars();
    while let Some(sign) = signs.next() {
        let sign = match sign {
            ':' if fields.len() < 5 => {
                fields.push(String::new());
                continue;
            }
            '\\' => signs.next().unwrap_or('\\'),
            other => other,
        };
        if let Some(last) = fields.last_mut() {
            last.push(sign);
        }
    }
    fields
}
