//! The owner of a run: a name by which another process of the same machine knows whether the owner still lives.
//!
//! `host:pid:start:place`. `start` is when the process started, in ticks since the machine did: a pid is used again,
//! the pair is not. `place` stands for this start of the machine and this namespace of process ids: only where it is
//! the same can the pid be looked up. Where it differs (another machine, another container) only the lease shows that
//! an owner is gone.

use std::cell::RefCell;
use std::fs;
use std::io::ErrorKind;
use std::process;
use std::sync::{Arc, LazyLock, OnceLock};

use ring::rand::{SecureRandom, SystemRandom};

use crate::journal::lines::name_of;

const PLACE_DIGITS: usize = 12;
const MAX_PID: u32 = 1 << 22;

thread_local! {
    /// The name of this process with its pid. Each thread has its own: a fork would copy a lock as it is.
    static OWNER: RefCell<Option<(u32, Arc<str>)>> = const { RefCell::new(None) };
}
static PLACE: OnceLock<String> = OnceLock::new();
static HIDES_PROCESSES: LazyLock<bool> = LazyLock::new(hides_processes);

/// State of a process, as the system lists it.
enum Process {
    /// Ticks since the machine started.
    Started(u64),
    /// A zombie writes nothing any more.
    Gone,
    Unlisted,
    Unknown,
}

/// Returns the name of this process; another one after a fork.
pub fn this_owner() -> Arc<str> {
    let pid = process::id();
    OWNER.with_borrow_mut(|known| match known {
        Some((of, name)) if *of == pid => name.clone(),
        _ => {
            let started = match process_of(pid) {
                Process::Started(ticks) => ticks,
                _ => 0,
            };
            let name: Arc<str> = format!("{}:{pid}:{started}:{}", host(), place()).into();
            *known = Some((pid, name.clone()));
            name
        }
    })
}

/// Returns true where the owner is known to be gone; false where it lives or that cannot be known.
pub fn is_dead(owner: &str) -> bool {
    let mut parts = owner.rsplitn(4, ':');
    let (Some(at), Some(start), Some(pid), Some(_)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let (Ok(start), Ok(pid)) = (start.parse::<u64>(), pid.parse::<u32>()) else {
        return false;
    };
    if at != place() || start == 0 || !(1..=MAX_PID).contains(&pid) {
        return false;
    }
    match process_of(pid) {
        Process::Started(ticks) => ticks != start,
        Process::Gone => true,
        Process::Unlisted => !*HIDES_PROCESSES,
        Process::Unknown => false,
    }
}

/// Reads field 22 of /proc/PID/stat; the name of the program before it may hold anything, brackets and blanks too.
fn process_of(pid: u32) -> Process {
    let stat = match fs::read(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat,
        Err(error) if error.kind() == ErrorKind::NotFound => return Process::Unlisted,
        Err(error) if error.raw_os_error() == Some(ESRCH) => return Process::Gone,
        Err(_) => return Process::Unknown,
    };
    let stat = String::from_utf8_lossy(&stat);
    let fields = stat.rsplit_once(") ").map(|(_, rest)| rest.split_whitespace());
    let Some(mut fields) = fields else {
        return Process::Unknown;
    };
    match fields.next() {
        Some("Z" | "X") => Process::Gone,
        Some(_) => fields
            .nth(18)
            .and_then(|ticks| ticks.parse().ok())
            .map_or(Process::Unknown, Process::Started),
        None => Process::Unknown,
    }
}

/// The process ended while its file was read.
const ESRCH: i32 = 3;

/// Returns whether processes of other users are missing from /proc: a missing one may then live.
fn hides_processes() -> bool {
    let Ok(mounts) = fs::read_to_string("/proc/self/mountinfo") else {
        return true;
    };
    let is_shown =
        |line: &str| line.contains(" /proc ") && line.contains(" - proc ") && !line.contains("hidepid=");
    !mounts.lines().any(is_shown)
}

fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "unknown".to_owned(),
        name => name.replace(':', "-"),
    }
}

fn place() -> &'static str {
    PLACE.get_or_init(|| {
        let start = fs::read_to_string("/proc/sys/kernel/random/boot_id");
        let namespace = fs::read_link("/proc/self/ns/pid");
        let mut name = match (start, namespace) {
            (Ok(start), Ok(namespace)) => {
                name_of(format!("{}\n{}", start.trim(), namespace.display()).as_bytes())
            }
            // Without /proc: a place that no other process is in, so that none is taken for dead.
            _ => name_of(&unguessable()),
        };
        name.truncate(PLACE_DIGITS);
        name
    })
}

fn unguessable() -> [u8; 16] {
    let mut bytes = [0; 16];
    // Without random bytes the pid keeps the place of most processes apart.
    if SystemRandom::new().fill(&mut bytes).is_err() {
        bytes = u128::from(process::id()).to_be_bytes();
    }
    bytes
}
