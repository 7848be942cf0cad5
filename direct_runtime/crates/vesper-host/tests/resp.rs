//! Addresses of Redis. Python tests connect to real servers and to hostile ones.

use vesper_host::resp::{Address, InvalidAddress};

#[test]
fn addresses_are_parsed() -> Result<(), InvalidAddress> {
    for (text, shown) in [
        ("redis://host", "redis://host:6379/0"),
        ("redis://", "redis://localhost:6379/0"),
        ("redis://:secret@host:1/2", "redis://host:1/2"),
        ("rediss://user:se%40cret@host/15", "redis://host:6379/15"),
        ("redis://[::1]:7/0", "redis://::1:7/0"),
        ("redis://host/1?db=3", "redis://host:6379/3"),
        ("unix:///tmp/redis%20socket?db=4", "unix:///tmp/redis socket"),
    ] {
        assert_eq!(Address::parse(text)?.to_string(), shown, "{text}");
    }
    let address = Address::parse("rediss://u:a%3Ab@h?ssl_ca_certs=/x.pem")?;
    assert_eq!(address.username.as_deref(), Some("u"));
    assert_eq!(address.password.as_deref().map(String::as_str), Some("a:b"));
    assert!(!format!("{address:?}").contains("a:b"));
    Ok(())
}

#[test]
fn other_texts_are_refused() {
    for text in [
        "",
        "host",
        "http://host",
        "redis:host",
        "redis://host:port",
        "redis://host:99999",
        "redis://host/x",
        "redis://host/-1",
        "redis://host?what=1",
        "redis://host?db",
        "redis://host?ssl_ca_certs=/x",
        "redis://a#b@host",
        "redis://[::1",
        "redis://%ff@host",
        "unix://",
        "unix://host/path",
    ] {
        assert_eq!(Address::parse(text), Err(InvalidAddress), "{text}");
    }
}
