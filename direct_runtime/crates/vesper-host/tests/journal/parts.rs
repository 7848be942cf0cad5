//! Parts of the journal's writer: lines, seals, ids, owners, limits.

use std::sync::Arc;

use vesper_host::journal::execution_id::trace_id;
use vesper_host::journal::limits::Limits;
use vesper_host::journal::lines::{first_hash, hexadecimal, write_line};
use vesper_host::journal::owner::{is_dead, this_owner};
use vesper_host::journal::sealing::{KeyRing, RunKey};
use vesper_host::journal::{Entry, ErrorKind, Kind};
use vesper_host::sources::{NoRandomness, Sources, SystemSources};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A clock that stands, and bytes that count.
struct Fixed;

impl Sources for Fixed {
    fn now_ns(&self) -> i64 {
        1_794_743_041_256_097_123
    }

    fn fill(&self, buffer: &mut [u8]) -> Result<(), NoRandomness> {
        for (number, byte) in (1..).zip(buffer) {
            *byte = number;
        }
        Ok(())
    }
}

fn intent<'a>(key: Option<&'a str>, body: &'a str) -> Entry<'a> {
    Entry {
        kind: Kind::Intent,
        path: "charge[2]\n",
        effect: "external_api_call",
        class: "keyed",
        key,
        digest: "9f",
        at_us: -5,
        body,
    }
}

#[test]
fn a_line_is_the_array_of_the_specification() -> Outcome {
    let (line, blob) = write_line(
        &intent(Some("é\"\u{1}"), r#"{"a":1}"#),
        2,
        None,
        &Limits::default(),
    )?;
    let expected = r#"[1,"main",2,"INTENT","charge[2]\n","external_api_call","keyed","é\"\u0001","9f",-5,"plain",{"a":1}]"#;
    assert_eq!(line, expected);
    assert_eq!(blob, None);
    Ok(())
}

#[test]
fn the_chain_starts_from_the_execution() {
    // printf 'vesper journal 1\nrun-1' | sha256sum
    let first = "27b8a7ffe4b5e40b8d00e8d10f8fcf5e2fe5a2402f55e2c3b407765c8d2c4885";
    assert_eq!(hexadecimal(&first_hash("run-1")), first);
    assert_ne!(first_hash("run-1"), first_hash("run-2"));
}

#[test]
fn a_large_body_stands_beside_its_line() -> Outcome {
    let limits = Limits::new(30.0, 10, 100)?;
    let body = format!(r#"{{"a":"{}"}}"#, "x".repeat(80));
    let (line, blob) = write_line(&intent(None, &body), 1, None, &limits)?;
    let blob = blob.ok_or("there is no blob")?;
    assert!(line.ends_with(&format!(r#"null,"9f",-5,"blob",["{}",88,false]]"#, blob.name)));
    assert!(blob.is_compressed && blob.data.len() < body.len());
    let body = format!(r#"{{"a":"{}"}}"#, "x".repeat(1200));
    let refused =
        write_line(&intent(None, &body), 1, None, &limits).map_err(|error| (error.kind, error.message));
    let message = "the INTENT of step `charge[2]\n` has 1,208 bytes, and the journal takes 100 at most: let the step \
                   give less, or raise `max_body` of the journal";
    assert_eq!(refused, Err((ErrorKind::TooLarge, message.to_owned())));
    Ok(())
}

#[test]
fn a_sealed_body_is_bound_to_its_place() -> Outcome {
    let key = RunKey::random("run-1", Arc::new(Fixed))?;
    let sealed = key.seal(b"secret", 7)?;
    assert_eq!(
        sealed.get(..12),
        Some(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12][..])
    );
    assert_eq!(key.open(&sealed, 7)?, b"secret");
    let moved = key.open(&sealed, 8).map_err(|error| error.message);
    let message = "entry 8 of execution run-1 cannot be decrypted: it was changed, or moved from its place";
    assert_eq!(moved, Err(message.to_owned()));
    assert!(key.open(b"short", 7).is_err());
    Ok(())
}

#[test]
fn an_earlier_master_key_opens_the_keys_that_it_wrapped() -> Outcome {
    let (old, new) = ([1; 32], [2; 32]);
    let key = RunKey::random("run-1", SystemSources::shared())?;
    let wrapped = KeyRing::new(Some(&old), &[], None)?.wrap(&key, "run-1")?;
    let sealed = key.seal(b"secret", 1)?;
    let ring = KeyRing::new(Some(&new), &[&old], None)?;
    let unwrapped = ring.unwrap(&wrapped.master, &wrapped.data, "run-1", SystemSources::shared())?;
    assert_eq!(unwrapped.open(&sealed, 1)?, b"secret");
    assert_eq!(unwrapped.digest(b"request"), key.digest(b"request"));
    let unknown = KeyRing::new(Some(&new), &[], None)?;
    let refused = unknown.unwrap(&wrapped.master, &wrapped.data, "run-1", SystemSources::shared());
    assert!(refused.is_err_and(|error| error.message.contains("which is not configured; name its secret")));
    let moved = ring.unwrap(&wrapped.master, &wrapped.data, "run-2", SystemSources::shared());
    assert!(moved.is_err_and(|error| {
        error
            .message
            .starts_with("the key of execution run-2 cannot be decrypted")
    }));
    Ok(())
}

#[test]
fn keys_of_another_length_are_refused() {
    let short = KeyRing::new(Some(&[0; 31]), &[], None).map_err(|error| error.message);
    let message = "a master key of the journal has 32 bytes, this one has 31";
    assert_eq!(short.err().as_deref(), Some(message));
    let audit = KeyRing::new(None, &[], Some(&[0; 15])).map_err(|error| error.message);
    let message = "the key of the audit log has 16 bytes or more, this one has 15";
    assert_eq!(audit.err().as_deref(), Some(message));
}

#[test]
fn an_id_is_a_uuid_of_version_7() {
    let id = trace_id(Fixed.now_ns(), &Fixed);
    assert_eq!(id.as_deref(), Ok("01a1df05-7ce8-718d-8102-030405060708"));
}

#[test]
fn a_living_owner_is_not_dead() {
    let owner = this_owner();
    assert!(!is_dead(&owner));
    let parts: Vec<&str> = owner.split(':').collect();
    let [host, pid, start, place] = parts.as_slice() else {
        return assert_eq!(parts.len(), 4);
    };
    assert!(is_dead(&format!("{host}:{pid}:{start}1:{place}")));
    assert!(is_dead(&format!("{host}:4194304:{start}:{place}")));
    for unknown in [
        format!("{host}:{pid}:{start}1:000000000000"),
        format!("{host}:{pid}:0:{place}"),
        format!("{host}:0:1:{place}"),
        format!("{pid}:{start}:{place}"),
        "ada".to_owned(),
        String::new(),
    ] {
        assert!(!is_dead(&unknown), "{unknown}");
    }
}

#[test]
fn a_zombie_is_dead() -> Outcome {
    let mut child = std::process::Command::new("true").spawn()?;
    let owner = this_owner();
    let place = owner.rsplit(':').next().unwrap_or_default();
    let stat = format!("/proc/{}/stat", child.id());
    while !std::fs::read_to_string(&stat)?.contains(") Z ") {
        std::thread::yield_now();
    }
    assert!(is_dead(&format!("host:{}:1:{place}", child.id())));
    child.wait()?;
    assert!(is_dead(&format!("host:{}:1:{place}", child.id())));
    Ok(())
}

#[test]
fn limits_are_checked() {
    let message =
        |limits: Result<Limits, vesper_host::journal::JournalError>| limits.map_err(|error| error.message);
    let lease = "a lease is between 10 ms and a day long, not 0.001 s";
    assert_eq!(message(Limits::new(0.001, 1, 1)), Err(lease.to_owned()));
    let inline = "bodies of up to 1 MiB can stand in their line, not of 1,048,577 bytes";
    assert_eq!(
        message(Limits::new(1.0, (1 << 20) + 1, 1)),
        Err(inline.to_owned())
    );
    let body = "a body may have up to 67,108,864 bytes, not 0";
    assert_eq!(message(Limits::new(1.0, 1, 0)), Err(body.to_owned()));
}
