//! Hosts with one spelling, and addresses that a connection may go to.
//!
//! Both rules are needed. `normal_host` is about texts: the spellings that only some programs read as an address
//! (`0177.0.0.1`, `2130706433`, `127.1`) are refused, so that lists of hosts can be compared. But a name does not tell
//! where it leads: `refusal` checks the very address that is about to be connected to, after the lookup of the name, so
//! that no name server can answer the check with one address and the connection with another.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::OnceLock;

use super::text::{prefix, shown};
use crate::messages::grouped;

const MAX_HOST: usize = 253;
const MAX_LABEL: usize = 63;

/// Returns the one spelling of a host: a name in lower case, an IPv4 address as four numbers, an IPv6 address in its
/// short form without brackets, unless it stands for an IPv4 address.
pub fn normal_host(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("the host is missing".to_owned());
    }
    let label = shown(text, 64);
    if !text.is_ascii() {
        // Encodings of such names differ between programs: those of IDNA 2003 and of 2008.
        return Err(format!(
            "the host `{label}` is not in ASCII: write its `xn--` form"
        ));
    }
    if text.starts_with('[') {
        return ipv6(text, &label);
    }
    let lower = text.to_ascii_lowercase();
    let host = lower.strip_suffix('.').unwrap_or(&lower);
    if host.len() > MAX_HOST {
        return Err(format!(
            "a host has at most {MAX_HOST} characters, not {}",
            grouped(host.len())
        ));
    }
    let mut last = "";
    for part in host.split('.') {
        if !is_label(part) {
            let part = shown(part, 64);
            return Err(format!("`{label}` is no host: `{part}` is no label of a name"));
        }
        last = part;
    }
    if !is_number(last) {
        return Ok(host.to_owned());
    }
    // A host that ends in a number is an address to those who connect, in more spellings than one.
    match host.parse::<Ipv4Addr>() {
        Ok(address) => Ok(address.to_string()),
        Err(_) => Err(format!(
            "`{label}` is no host: an IPv4 address is four numbers from 0 to 255, in decimal"
        )),
    }
}

fn is_label(part: &str) -> bool {
    let is_inner =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
    !part.is_empty()
        && part.len() <= MAX_LABEL
        && part.bytes().all(is_inner)
        && !part.starts_with('-')
        && !part.ends_with('-')
}

fn is_number(part: &str) -> bool {
    match part.strip_prefix("0x") {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => part.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

fn ipv6(text: &str, label: &str) -> Result<String, String> {
    let inner = text.strip_prefix('[').unwrap_or(text);
    let Some(inner) = inner.strip_suffix(']').filter(|inner| !inner.contains('%')) else {
        return Err(format!(
            "`{label}` is no host: an IPv6 address stands in brackets and has no zone"
        ));
    };
    let Ok(address) = inner.parse::<Ipv6Addr>() else {
        let inner = prefix(inner, 64);
        return Err(format!("`{label}` is no host: `{inner}` is no IPv6 address"));
    };
    // A mapped address is another spelling of the IPv4 address.
    Ok(address
        .to_ipv4_mapped()
        .map_or_else(|| address.to_string(), |address| address.to_string()))
}

// -- addresses that may be connected to ------------------------------------------------------------

/// Networks of a company's own services: `allow_private_addresses` opens them.
const INTERNAL: [(&str, &str); 7] = [
    ("10.0.0.0/8", "private"),
    ("172.16.0.0/12", "private"),
    ("192.168.0.0/16", "private"),
    ("100.64.0.0/10", "shared by the customers of a carrier"),
    ("127.0.0.0/8", "loopback"),
    ("::1/128", "loopback"),
    ("fc00::/7", "private"),
];

/// Networks that no setting opens: services that give out the credentials of the machine, and places without services.
const CLOSED: [(&str, &str); 27] = [
    ("169.254.169.254/32", "the metadata service of a cloud"),
    ("169.254.170.2/32", "the credentials service of a cloud"),
    ("168.63.129.16/32", "the metadata service of a cloud"),
    ("100.100.100.200/32", "the metadata service of a cloud"),
    ("192.0.0.192/32", "the metadata service of a cloud"),
    ("fd00:ec2::254/128", "the metadata service of a cloud"),
    ("fd20:ce::254/128", "the metadata service of a cloud"),
    ("0.0.0.0/8", "unspecified"),
    ("169.254.0.0/16", "link-local"),
    ("192.0.0.0/24", "reserved for protocols"),
    ("192.0.2.0/24", "reserved for documentation"),
    ("192.88.99.0/24", "a relay of 6to4"),
    ("198.18.0.0/15", "reserved for benchmarks"),
    ("198.51.100.0/24", "reserved for documentation"),
    ("203.0.113.0/24", "reserved for documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
    ("::/128", "unspecified"),
    (
        "64:ff9b:1::/48",
        "a translation of an IPv4 address that only this network knows",
    ),
    ("2001::/32", "a Teredo tunnel"),
    ("2001::/23", "reserved for protocols"),
    ("2001:db8::/32", "reserved for documentation"),
    ("2002::/16", "a 6to4 tunnel"),
    ("3fff::/20", "reserved for documentation"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "site-local"),
    ("ff00::/8", "multicast"),
];

/// Interface identifiers of ISATAP, whose last four bytes are an IPv4 address.
const ISATAP: [u64; 2] = [0x0000_5efe, 0x0200_5efe];

/// Network of either family; addresses are compared as numbers of their own family.
struct Network {
    is_v4: bool,
    bits: u128,
    shift: u32,
    kind: &'static str,
}

struct Rules {
    closed: Vec<Network>,
    internal: Vec<Network>,
}

fn rules() -> &'static Rules {
    static RULES: OnceLock<Rules> = OnceLock::new();
    RULES.get_or_init(|| Rules {
        closed: CLOSED.into_iter().filter_map(network).collect(),
        internal: INTERNAL.into_iter().filter_map(network).collect(),
    })
}

fn network((text, kind): (&'static str, &'static str)) -> Option<Network> {
    let (address, length) = text.split_once('/')?;
    let (is_v4, bits) = bits_of(address.parse().ok()?);
    let shift = (if is_v4 { 32 } else { 128 }) - length.parse::<u32>().ok()?;
    Some(Network {
        is_v4,
        bits,
        shift,
        kind,
    })
}

fn bits_of(address: IpAddr) -> (bool, u128) {
    match address {
        IpAddr::V4(address) => (true, u128::from(address.to_bits())),
        IpAddr::V6(address) => (false, address.to_bits()),
    }
}

impl Network {
    fn contains(&self, address: IpAddr) -> bool {
        let (is_v4, bits) = bits_of(address);
        is_v4 == self.is_v4 && (bits ^ self.bits) >> self.shift == 0
    }
}

/// Returns what an address is that no connection may go to; `None` where one may.
pub(super) fn refusal(address: IpAddr, allow_private: bool) -> Option<String> {
    if let IpAddr::V6(outer) = address
        && let Some(inner) = embedded(outer)
    {
        let kind = refusal(IpAddr::V4(inner), allow_private)?;
        return Some(format!("{kind}, as {inner} inside an IPv6 address"));
    }
    let find = |among: &[Network]| {
        among
            .iter()
            .find(|each| each.contains(address))
            .map(|each| each.kind)
    };
    let rules = rules();
    if let Some(kind) = find(&rules.closed) {
        return Some(kind.to_owned());
    }
    if let Some(kind) = find(&rules.internal) {
        return (!allow_private).then(|| kind.to_owned());
    }
    let IpAddr::V6(address) = address else {
        return None;
    };
    let last = address.to_bits() & u128::from(u64::MAX);
    if address.to_bits() >> 125 != 1 {
        return Some("reserved".to_owned());
    }
    if ISATAP.iter().any(|each| u128::from(*each) == last >> 32) {
        return refusal(IpAddr::V4(last_four(address)), allow_private);
    }
    None
}

/// Returns the last four bytes of an address as an address.
fn last_four(address: Ipv6Addr) -> Ipv4Addr {
    let [.., high, low] = address.segments();
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

/// Returns the IPv4 address that a connection to this IPv6 address goes to.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let is_embedding = match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => true,
        // `::` and `::1` are addresses of their own.
        [0, 0, 0, 0, 0, 0, ..] => address.to_bits() > 1,
        _ => false,
    };
    is_embedding.then(|| last_four(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_one_spelling() {
        let cases = [
            ("API.Example.com", "api.example.com"),
            ("api.example.com.", "api.example.com"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("my_service", "my_service"),
            ("10.0.0.1", "10.0.0.1"),
            ("1.2.3.4.", "1.2.3.4"),
            ("[::1]", "::1"),
            ("[0:0::0:1]", "::1"),
            ("[::ffff:127.0.0.1]", "127.0.0.1"),
            ("[::ffff:7f00:1]", "127.0.0.1"),
            ("[2606:4700:4700::1111]", "2606:4700:4700::1111"),
            ("127.0.0.1.example.com", "127.0.0.1.example.com"),
        ];
        for (text, normal) in cases {
            assert_eq!(normal_host(text).as_deref(), Ok(normal));
        }
    }

    #[test]
    fn ambiguous_hosts_are_refused() {
        let long = ["a".repeat(64) + ".example", "a.".repeat(130)];
        let cases = [
            "2130706433",
            "0x7f000001",
            "0x7f.0.0.1",
            "0x7f.1",
            "0177.0.0.1",
            "127.1",
            "127.0.1",
            "127.0.0.1.0",
            "127.0.0.256",
            "127.0.0.01",
            "1.2.3.0x4",
            "example.0",
            "example.0x",
            "",
            ".",
            "..",
            "a..b",
            ".example.com",
            "-a.example",
            "a-.example",
            "a b",
            "a/b",
            "a%2eb",
            "a\nb",
            "a\0b",
            "user@example.com",
            "[::1",
            "[::1%eth0]",
            "[127.0.0.1]",
            "[]",
            "[::g]",
            "::1",
            "b\u{fc}cher.example",
            "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
            "127\u{3002}0\u{3002}0\u{3002}1",
            "exam\u{200b}ple.com",
        ];
        for text in cases.into_iter().chain(long.iter().map(String::as_str)) {
            assert!(normal_host(text).is_err(), "{text}");
        }
    }

    fn refused(address: &str, allow_private: bool) -> Option<String> {
        let address = address.parse();
        address.ok().and_then(|address| refusal(address, allow_private))
    }

    #[test]
    fn internal_addresses_are_opened_by_the_setting_alone() {
        let cases = [
            ("127.0.0.1", "loopback"),
            ("127.255.255.254", "loopback"),
            ("10.1.2.3", "private"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.168.1.1", "private"),
            ("100.64.0.1", "carrier"),
            ("100.127.255.255", "carrier"),
            ("::1", "loopback"),
            ("fc00::1", "private"),
            ("fd12:3456::1", "private"),
            (
                "::ffff:127.0.0.1",
                "loopback, as 127.0.0.1 inside an IPv6 address",
            ),
            ("::ffff:10.0.0.1", "private"),
            ("::127.0.0.1", "loopback"),
            ("64:ff9b::10.0.0.1", "private"),
            ("2a00::5efe:192.168.0.1", "private"),
            ("2a00::200:5efe:10.0.0.1", "private"),
        ];
        for (address, kind) in cases {
            let found = refused(address, false).unwrap_or_default();
            assert!(found.contains(kind), "{address}: {found}");
            assert_eq!(refused(address, true), None, "{address}");
        }
    }

    #[test]
    fn some_addresses_stay_closed() {
        let cases = [
            ("0.0.0.0", "unspecified"),
            ("0.1.2.3", "unspecified"),
            ("::", "unspecified"),
            ("169.254.1.1", "link-local"),
            ("fe80::1", "link-local"),
            ("fec0::1", "site-local"),
            ("169.254.169.254", "metadata"),
            ("169.254.170.2", "credentials"),
            ("168.63.129.16", "metadata"),
            ("100.100.100.200", "metadata"),
            ("192.0.0.192", "metadata"),
            ("fd00:ec2::254", "metadata"),
            ("::ffff:169.254.169.254", "metadata"),
            ("64:ff9b::169.254.169.254", "metadata"),
            ("::169.254.169.254", "metadata"),
            ("2a00::5efe:169.254.169.254", "metadata"),
            ("224.0.0.1", "multicast"),
            ("239.255.255.255", "multicast"),
            ("ff02::1", "multicast"),
            ("240.0.0.1", "reserved"),
            ("255.255.255.255", "reserved"),
            ("192.0.0.1", "protocols"),
            ("192.0.2.1", "documentation"),
            ("198.51.100.7", "documentation"),
            ("203.0.113.9", "documentation"),
            ("198.18.0.1", "benchmarks"),
            ("198.19.255.255", "benchmarks"),
            ("192.88.99.1", "6to4"),
            ("2002:7f00:1::1", "6to4"),
            ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "Teredo"),
            ("2001:db8::1", "documentation"),
            ("3fff::1", "documentation"),
            ("64:ff9b:1::1", "only this network"),
            ("2001:10::1", "protocols"),
            ("100::1", "reserved"),
            ("4000::1", "reserved"),
            ("5f00::1", "reserved"),
        ];
        for (address, kind) in cases {
            for allow_private in [false, true] {
                let found = refused(address, allow_private).unwrap_or_default();
                assert!(found.contains(kind), "{address}: {found}");
            }
        }
    }

    #[test]
    fn public_addresses_are_open() {
        let cases = [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "198.17.0.1",
            "223.255.1.1",
            "2606:4700:4700::1111",
            "2a00::1",
            "2001:4860:4860::8888",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
        ];
        for address in cases {
            assert!(address.parse::<IpAddr>().is_ok());
            assert_eq!(refused(address, false), None, "{address}");
        }
        assert_eq!(rules().closed.len() + rules().internal.len(), 34);
    }
}
