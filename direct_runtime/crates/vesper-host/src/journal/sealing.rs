//! Encryption of sensitive runs: a key for each run, which may lie under a master key, and which deletes the run.
//!
//! Bodies of a run are sealed with AES-256-GCM under a random key of its own; each is bound to its place, so that none
//! can be put where another stood. The key of the run is stored under the master key (`KeyRing`), bound to the
//! execution. Deleting it makes all bodies unreadable at once, in backups too, as far as those lack the key.

use std::fmt;
use std::sync::Arc;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hmac;
use zeroize::Zeroizing;

use crate::journal::lines::{hexadecimal, name_of};
use crate::journal::{ErrorKind, JournalError};
use crate::sources::Sources;

const NONCE_BYTES: usize = 12;
const KEY_BYTES: usize = 32;

type KeyBytes = Zeroizing<[u8; KEY_BYTES]>;

/// The key of one run.
pub struct RunKey {
    key: KeyBytes,
    cipher: LessSafeKey,
    /// Another key than the one that encrypts: one secret, one use.
    digests: hmac::Key,
    execution: Arc<str>,
    sources: Arc<dyn Sources>,
}

impl fmt::Debug for RunKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RunKey({})", self.execution)
    }
}

impl RunKey {
    /// Creates the random key of a new run.
    pub fn random(execution: &str, sources: Arc<dyn Sources>) -> Result<Self, JournalError> {
        let mut key = KeyBytes::default();
        fill(&*sources, key.as_mut())?;
        Self::of(key, execution, sources)
    }

    fn of(key: KeyBytes, execution: &str, sources: Arc<dyn Sources>) -> Result<Self, JournalError> {
        let digests = hmac::sign(
            &hmac::Key::new(hmac::HMAC_SHA256, key.as_ref()),
            b"vesper journal digests",
        );
        Ok(Self {
            cipher: cipher(&key)?,
            digests: hmac::Key::new(hmac::HMAC_SHA256, digests.as_ref()),
            key,
            execution: execution.into(),
            sources,
        })
    }

    /// Encrypts data for the entry `seq`: the nonce, the encrypted data, the tag.
    pub fn seal(&self, data: &[u8], seq: u64) -> Result<Vec<u8>, JournalError> {
        seal(&self.cipher, data, &self.place(seq), &*self.sources)
    }

    /// Decrypts data of the entry `seq`; fails where it was changed or moved.
    pub fn open(&self, data: &[u8], seq: u64) -> Result<Vec<u8>, JournalError> {
        open(&self.cipher, data, &self.place(seq))
            .ok_or_else(|| changed(&format!("entry {seq} of execution {}", self.execution)))
    }

    /// Returns the digest of a request, which only this key can compute.
    pub fn digest(&self, data: &[u8]) -> String {
        hexadecimal(hmac::sign(&self.digests, data).as_ref())
    }

    fn place(&self, seq: u64) -> String {
        format!("{}\n{seq}", self.execution)
    }
}

/// The stored form of a run's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrappedKey {
    /// Name of the master key that it is under; empty where there is none.
    pub master: String,
    pub data: Vec<u8>,
}

/// The keys of a journal. `master` wraps the keys of runs; those that an `earlier` one wrapped stay readable.
///
/// With `audit`, hashes of the audit log can only be computed by its owner.
pub struct KeyRing {
    master: Option<(String, KeyBytes)>,
    earlier: Vec<(String, KeyBytes)>,
    audit: Option<(Zeroizing<Vec<u8>>, hmac::Key)>,
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let master = if self.has_master() {
            "a master key"
        } else {
            "no master key"
        };
        write!(formatter, "KeyRing({master})")
    }
}

impl KeyRing {
    /// Creates a ring; refuses keys of another length.
    pub fn new(master: Option<&[u8]>, earlier: &[&[u8]], audit: Option<&[u8]>) -> Result<Self, JournalError> {
        let master = master.map(named).transpose()?;
        let earlier = earlier.iter().map(|key| named(key)).collect::<Result<_, _>>()?;
        if let Some(audit) = audit.filter(|audit| audit.len() < 16) {
            return Err(failed(format!(
                "the key of the audit log has 16 bytes or more, this one has {}",
                audit.len()
            )));
        }
        Ok(Self {
            master,
            earlier,
            audit: audit.map(|audit| (audit.to_vec().into(), hmac::Key::new(hmac::HMAC_SHA256, audit))),
        })
    }

    pub fn has_master(&self) -> bool {
        self.master.is_some()
    }

    /// Returns the key of the audit log, where one is configured.
    pub fn audit(&self) -> Option<&hmac::Key> {
        self.audit.as_ref().map(|(_, key)| key)
    }

    /// Returns the bytes of the audit log's key, for readers of an exported log.
    pub fn audit_bytes(&self) -> Option<&[u8]> {
        self.audit.as_ref().map(|(bytes, _)| bytes.as_slice())
    }

    /// Returns the lane of a sensitive run as tables have it: its digest under the master key.
    pub(crate) fn lane(&self, lane: &str) -> String {
        match self.digests(lane.as_bytes()).into_iter().next() {
            Some(digest) if !lane.is_empty() => digest,
            _ => String::new(),
        }
    }

    /// Returns the digests of data under the master key and those before it; without one, that which anyone computes.
    pub(crate) fn digests(&self, data: &[u8]) -> Vec<String> {
        let keys = self.master.iter().chain(&self.earlier);
        let mut digests: Vec<String> = keys
            .map(|(_, key)| {
                let own = hmac::sign(
                    &hmac::Key::new(hmac::HMAC_SHA256, key.as_ref()),
                    b"vesper journal lanes",
                );
                let own = hmac::Key::new(hmac::HMAC_SHA256, own.as_ref());
                hexadecimal(hmac::sign(&own, data).as_ref())
            })
            .collect();
        if self.master.is_none() {
            digests.insert(0, name_of(data));
        }
        digests
    }

    /// Returns the stored form of a run's key.
    pub fn wrap(&self, key: &RunKey, execution: &str) -> Result<WrappedKey, JournalError> {
        let Some((name, master)) = &self.master else {
            return Ok(WrappedKey {
                master: String::new(),
                data: key.key.to_vec(),
            });
        };
        Ok(WrappedKey {
            master: name.clone(),
            data: seal(&cipher(master)?, key.key.as_ref(), execution, &*key.sources)?,
        })
    }

    /// Returns the key of a run from its stored form; `master` is the name of the key that it is under.
    pub fn unwrap(
        &self,
        master: &str,
        data: &[u8],
        execution: &str,
        sources: Arc<dyn Sources>,
    ) -> Result<RunKey, JournalError> {
        if master.is_empty() {
            return RunKey::of(sized(data, execution)?, execution, sources);
        }
        let known = self.master.iter().chain(&self.earlier);
        let Some((_, key)) = known.into_iter().find(|(name, _)| name == master) else {
            return Err(failed(format!(
                "the key of execution {execution} lies under the master key {master}, which is not configured; name \
                 its secret as `key_secret` or among `earlier_key_secrets` under [journal]"
            )));
        };
        let opened = open(&cipher(key)?, data, execution)
            .map(Zeroizing::new)
            .ok_or_else(|| changed(&format!("the key of execution {execution}")))?;
        RunKey::of(sized(&opened, execution)?, execution, sources)
    }
}

fn cipher(key: &KeyBytes) -> Result<LessSafeKey, JournalError> {
    // A key of this length is always taken.
    let key = UnboundKey::new(&AES_256_GCM, key.as_ref());
    key.map(LessSafeKey::new)
        .map_err(|_| failed("a key of the journal cannot be used".to_owned()))
}

fn seal(
    cipher: &LessSafeKey,
    data: &[u8],
    place: &str,
    sources: &dyn Sources,
) -> Result<Vec<u8>, JournalError> {
    let mut nonce = [0; NONCE_BYTES];
    fill(sources, &mut nonce)?;
    let mut sealed = Vec::with_capacity(NONCE_BYTES + data.len() + AES_256_GCM.tag_len());
    sealed.extend_from_slice(&nonce);
    let mut content = data.to_vec();
    let nonce = Nonce::assume_unique_for_key(nonce);
    cipher
        .seal_in_place_append_tag(nonce, Aad::from(place.as_bytes()), &mut content)
        .map_err(|_| failed("a body is too large to be encrypted".to_owned()))?;
    sealed.append(&mut content);
    Ok(sealed)
}

fn open(cipher: &LessSafeKey, data: &[u8], place: &str) -> Option<Vec<u8>> {
    let (nonce, content) = data.split_at_checked(NONCE_BYTES)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let mut content = content.to_vec();
    let size = cipher
        .open_in_place(nonce, Aad::from(place.as_bytes()), &mut content)
        .ok()?
        .len();
    content.truncate(size);
    Some(content)
}

fn fill(sources: &dyn Sources, buffer: &mut [u8]) -> Result<(), JournalError> {
    let filled = sources.fill(buffer);
    filled.map_err(|_| {
        failed("the operating system gives no random bytes, and nothing can be encrypted".to_owned())
    })
}

fn sized(data: &[u8], execution: &str) -> Result<KeyBytes, JournalError> {
    exact(data).ok_or_else(|| {
        failed(format!(
            "the key of execution {execution} is damaged: it has {} bytes",
            data.len()
        ))
    })
}

fn exact(data: &[u8]) -> Option<KeyBytes> {
    data.try_into().ok().map(Zeroizing::new)
}

/// Returns a master key with the name that distinguishes it from others and reveals nothing about it.
fn named(master: &[u8]) -> Result<(String, KeyBytes), JournalError> {
    let key = exact(master).ok_or_else(|| {
        failed(format!(
            "a master key of the journal has {KEY_BYTES} bytes, this one has {}",
            master.len()
        ))
    })?;
    let text = Zeroizing::new([b"vesper master key\n", key.as_ref()].concat());
    let mut name = name_of(&text);
    name.truncate(16);
    Ok((name, key))
}

fn changed(what: &str) -> JournalError {
    failed(format!(
        "{what} cannot be decrypted: it was changed, or moved from its place"
    ))
}

fn failed(message: String) -> JournalError {
    JournalError::new(ErrorKind::Journal, message)
}
