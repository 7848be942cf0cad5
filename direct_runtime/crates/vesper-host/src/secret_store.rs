//! Secrets: their sources, and their removal from every text that leaves the process.
//!
//! A node sees only references, `secret:NAME:…`, with an end that cannot be guessed. Performers receive the texts, and
//! `redact` finds each text that a performer ever received, also where it was encoded on the way.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::ready;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aho_corasick::{AhoCorasick, MatchKind};
use rustix::fs::{CWD, Mode, OFlags};
use vesper_ir::Value;
use zeroize::Zeroizing;

use crate::ambient::never_probed;
use crate::effect::{Ask, Failure, Pending, Performer, Secrets};
use crate::encoded_forms::forms_of;
use crate::messages::{grouped, reason};
use crate::runtime::Polling;
use crate::sources::Sources;

/// Characters of the shortest secret: a shorter text occurs in any sentence, and redacting it would leave nothing to
/// read.
pub const MIN_CHARACTERS: usize = 4;
const MAX_BYTES: usize = 65_536;
const MAX_NAME: usize = 128;
/// Number of texts of one secret that are redacted: the current one and those before it.
const MAX_REMEMBERED: usize = 16;
const WAIT: Duration = Duration::from_secs(5);
/// Longest wait for another thread; the clock cannot represent every duration.
const MAX_WAIT: Duration = Duration::from_hours(24);

/// A function of the application that gives secrets.
pub type SecretFunction = Box<dyn Fn(&str) -> Result<Zeroizing<String>, Failure> + Send + Sync>;

/// Origin of the texts.
pub enum SecretSource {
    /// Variables: `stripe_key` is the prefix and `STRIPE_KEY`.
    Environment { prefix: String },
    /// A folder with one file for each secret.
    Files { path: PathBuf },
    /// A function, with the time that it may take.
    Function { call: SecretFunction, timeout: Duration },
}

impl fmt::Debug for SecretSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretSource")
    }
}

/// The secrets of a process. A forked process knows the texts of its parent, to redact them.
pub struct SecretStore {
    source: SecretSource,
    /// Time after which the source is asked again, so that a new text is found.
    ttl: Duration,
    sources: Arc<dyn Sources>,
    state: Mutex<State>,
    /// Notified when a thread has asked the source.
    asked: Condvar,
}

#[derive(Default)]
struct State {
    /// Texts, each with the end of its time by the monotonic clock, in microseconds.
    known: HashMap<String, (Zeroizing<String>, i64)>,
    /// All texts of each name that were given out, the newest first.
    given: HashMap<String, Vec<Zeroizing<String>>>,
    /// Names that a thread of a process is asking the source for: a forked child has none of those threads.
    asking: HashSet<(u32, String)>,
    finder: Option<Finder>,
}

/// Forms of all secrets that were given out, and the names of those secrets.
struct Finder {
    forms: AhoCorasick,
    replacements: Vec<String>,
}

impl fmt::Debug for SecretStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretStore")
    }
}

impl SecretStore {
    pub fn new(source: SecretSource, ttl: Duration, sources: Arc<dyn Sources>) -> Self {
        Self {
            source,
            ttl,
            sources,
            state: Mutex::default(),
            asked: Condvar::new(),
        }
    }

    /// Returns the text with `secret:NAME` in place of each secret that was given out: plain, in base64 (also inside a
    /// longer text), percent-encoded, escaped as in JSON or Python, in hexadecimal.
    pub fn redact(&self, text: &str) -> String {
        let _polling = Polling::new();
        match &self.state().finder {
            Some(finder) => finder.forms.replace_all(text, &finder.replacements),
            None => text.to_owned(),
        }
    }

    /// Locks the state. The caller counts a poll: a fork would copy the lock as it is.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a text that was read within its time, or claims the right to ask the source for it.
    fn fresh_or_claimed(&self, name: &str) -> Result<Option<Zeroizing<String>>, Failure> {
        let longest = match &self.source {
            SecretSource::Function { timeout, .. } => WAIT.saturating_add(*timeout).min(MAX_WAIT),
            _ => WAIT,
        };
        let until = Instant::now() + longest;
        // Not under the lock: the sources of a test take that of Python, under which others wait for this one.
        let now_us = self.sources.monotonic_us();
        let _polling = Polling::new();
        let mut state = self.state();
        loop {
            if let Some((text, end)) = state.known.get(name)
                && now_us < *end
            {
                return Ok(Some(text.clone()));
            }
            if state.asking.insert(asker(name)) {
                return Ok(None);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let message = format!("the secret `{name}`: others ask for it, and get no answer");
                return Err(Failure::new("timeout", message));
            }
            let waited = self.asked.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn remember(&self, name: &str, text: &Zeroizing<String>, now_us: i64) -> Result<(), Failure> {
        let ttl_us = i64::try_from(self.ttl.as_micros()).unwrap_or(i64::MAX);
        let _polling = Polling::new();
        let mut state = self.state();
        let given = state.given.entry(name.to_owned()).or_default();
        if !given.contains(text) {
            given.insert(0, text.clone());
            given.truncate(MAX_REMEMBERED);
            state.finder = Some(finder(&state.given)?);
        }
        state
            .known
            .insert(name.to_owned(), (text.clone(), now_us.saturating_add(ttl_us)));
        Ok(())
    }

    fn ask_source(&self, name: &str) -> Result<Zeroizing<String>, Failure> {
        match &self.source {
            SecretSource::Environment { prefix } => {
                let variable = format!("{prefix}{}", name.replace(['.', '-'], "_").to_uppercase());
                match std::env::var(&variable) {
                    Ok(text) => Ok(Zeroizing::new(text)),
                    Err(std::env::VarError::NotPresent) => Err(Failure::new(
                        "not_found",
                        format!("there is no secret `{name}`: the variable {variable} is not set"),
                    )),
                    Err(std::env::VarError::NotUnicode(_)) => Err(no_text(name)),
                }
            }
            SecretSource::Files { path } => from_file(name, &path.join(name)),
            SecretSource::Function { call, .. } => call(name),
        }
    }
}

impl Secrets for SecretStore {
    fn text(&self, name: &str) -> Result<Zeroizing<String>, Failure> {
        if !is_name(name) {
            let start: String = name.chars().take(80).flat_map(char::escape_default).collect();
            return Err(Failure::new(
                "not_found",
                format!("no secret can be called '{start}'"),
            ));
        }
        // One thread asks the source and the others wait: when a text has had its time, all want a new one.
        if let Some(text) = self.fresh_or_claimed(name)? {
            return Ok(text);
        }
        let now_us = self.sources.monotonic_us();
        let found = self.ask_source(name).and_then(|text| {
            check(name, &text)?;
            self.remember(name, &text, now_us)?;
            Ok(text)
        });
        let polling = Polling::new();
        self.state().asking.remove(&asker(name));
        drop(polling);
        self.asked.notify_all();
        found
    }
}

/// Returns the entry of a name that this process asks for.
fn asker(name: &str) -> (u32, String) {
    (std::process::id(), name.to_owned())
}

fn is_name(name: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = name.as_bytes();
    bytes.len() <= MAX_NAME
        && bytes.first().copied().is_some_and(is_sign)
        && bytes
            .iter()
            .all(|byte| is_sign(*byte) || matches!(byte, b'.' | b'-'))
}

fn check(name: &str, text: &str) -> Result<(), Failure> {
    let problem = if text.chars().take(MIN_CHARACTERS).count() < MIN_CHARACTERS {
        format!("has fewer than {MIN_CHARACTERS} characters: it could not be kept out of messages")
    } else if text.len() > MAX_BYTES {
        format!("has more than {} bytes", grouped(MAX_BYTES as u64))
    } else if text.contains('\0') {
        return Err(no_text(name));
    } else {
        return Ok(());
    };
    Err(Failure::new(
        "unavailable",
        format!("the secret `{name}` {problem}"),
    ))
}

fn no_text(name: &str) -> Failure {
    Failure::new("unavailable", format!("the secret `{name}` is no text"))
}

fn from_file(name: &str, path: &Path) -> Result<Zeroizing<String>, Failure> {
    let shown = path.display();
    let unavailable = |why: &str| Failure::new("unavailable", format!("the secret `{name}`: {shown}{why}"));
    let failed = |error: &std::io::Error| unavailable(&format!(": {}", reason(error)));
    // Links are followed: what mounts secrets into a container creates links, to change all of them at once.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
        Ok(file) => std::fs::File::from(file),
        Err(rustix::io::Errno::NOENT) => {
            let message = format!("there is no secret `{name}`: no file `{shown}`");
            return Err(Failure::new("not_found", message));
        }
        Err(error) => return Err(failed(&error.into())),
    };
    let found = file.metadata().map_err(|error| failed(&error))?;
    if !found.is_file() {
        return Err(unavailable(" is no regular file"));
    }
    let mode = found.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(Failure::new(
            "unavailable",
            format!("the secret `{name}`: others may use {shown} (mode {mode:04o}): chmod 0400 {shown}"),
        ));
    }
    // Room for all of it: a buffer that grows leaves copies of itself behind.
    let mut data = Zeroizing::new(Vec::with_capacity(MAX_BYTES + 3));
    let most = (MAX_BYTES + 3) as u64;
    file.take(most)
        .read_to_end(&mut data)
        .map_err(|error| failed(&error))?;
    let text = std::str::from_utf8(&data).map_err(|_| unavailable(" is no UTF-8"))?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    Ok(Zeroizing::new(text.strip_suffix('\r').unwrap_or(text).to_owned()))
}

fn finder(given: &HashMap<String, Vec<Zeroizing<String>>>) -> Result<Finder, Failure> {
    let mut forms = Vec::new();
    let mut replacements = Vec::new();
    for (name, texts) in given {
        for form in texts.iter().flat_map(|text| forms_of(text)) {
            forms.push(form);
            replacements.push(format!("secret:{name}"));
        }
    }
    let forms = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(forms.iter().map(|form| form.as_bytes()));
    let forms = forms.map_err(|_| {
        Failure::new(
            "unavailable",
            "there are too many secrets to keep them out of texts",
        )
    })?;
    Ok(Finder { forms, replacements })
}

/// Performer of `secret_read`: gives a reference, once the secret is known to exist.
pub struct SecretReads {
    store: Arc<SecretStore>,
    sources: Arc<dyn Sources>,
}

impl fmt::Debug for SecretReads {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretReads")
    }
}

impl SecretReads {
    pub fn new(store: Arc<SecretStore>, sources: Arc<dyn Sources>) -> Self {
        Self { store, sources }
    }

    /// Returns a new reference each time. A text from outside cannot be one, whoever wrote it.
    fn reference(&self, name: &str) -> Result<Value, Failure> {
        self.store.text(name)?;
        let mut random = [0; 16];
        let filled = self.sources.fill(&mut random);
        filled.map_err(|_| Failure::new("unavailable", "the operating system gives no random bytes"))?;
        let end = u128::from_be_bytes(random);
        Ok(Value::Text(Arc::from(format!("secret:{name}:{end:032x}"))))
    }
}

impl Performer for SecretReads {
    fn perform<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Value> {
        Box::pin(ready(self.reference(ask.fixed("name")).map_err(Into::into)))
    }

    fn probe<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Option<Value>> {
        Box::pin(ready(Err(never_probed(ask).into())))
    }

    fn close(&self) {}
}
