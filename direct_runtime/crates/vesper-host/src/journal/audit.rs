//! Lines of the audit log: one chain for the whole store, in which a change is detected.
//!
//! Each line holds its own number; its hash is made of the hash before and the line, with a secret where one is
//! configured (`KeyRing::audit`). A head holds the number of lines and the last hash.

use ring::hmac;

use crate::journal::batch::Batch;
use crate::journal::lines::{Hash, next_hash};
use crate::journal::store::{Cell, Transaction};
use crate::journal::{ErrorKind, JournalError};
use crate::messages::grouped;

/// The hash before the first line.
pub const FIRST: Hash = [0; 32];

/// The number of a line that has none yet. The texts behind it hold no bare quotes, so that its last place is the one.
const NO_NUMBER: &str = ",\"seq\":0";

/// Checks an event that is queued: typed JSON with `seq` 0, which becomes its number.
pub fn audit_text(event: &str, max_body: usize) -> Result<String, JournalError> {
    if !event.contains(NO_NUMBER) {
        return Err(JournalError::new(
            ErrorKind::Journal,
            "an audit event has no place for its number",
        ));
    }
    if event.len() > max_body {
        // `action` is the first name of the mapping.
        let action = event.strip_prefix("{\"action\":\"").unwrap_or_default();
        let action: String = action.chars().take_while(|each| *each != '"').take(80).collect();
        let (size, most) = (grouped(event.len() as u64), grouped(max_body as u64));
        return Err(JournalError::new(
            ErrorKind::TooLarge,
            format!("an audit event `{action}` has {size} bytes, and the journal takes {most}"),
        ));
    }
    Ok(event.to_owned())
}

/// Returns the hash of a line of the audit log.
pub fn audit_hash(before: &[u8], line: &[u8], key: Option<&hmac::Key>) -> Hash {
    let Some(key) = key else {
        return next_hash(before, line);
    };
    let mut context = hmac::Context::with_key(key);
    context.update(before);
    context.update(line);
    let mut hash = FIRST;
    for (to, from) in hash.iter_mut().zip(context.sign().as_ref()) {
        *to = *from;
    }
    hash
}

/// Adds the audit events of batches that were not refused to the one chain of the store.
pub fn write_audit<'a>(
    transaction: &mut dyn Transaction,
    batches: impl IntoIterator<Item = &'a Batch>,
    key: Option<&hmac::Key>,
) -> Result<(), JournalError> {
    let accepted = batches.into_iter().filter(|batch| batch.error.is_none());
    let events: Vec<&String> = accepted.flat_map(|batch| &batch.audit).collect();
    if events.is_empty() {
        return Ok(());
    }
    let sql = format!(
        "SELECT count, hash FROM vesper_audit_head WHERE one = 1{}",
        transaction.locking()
    );
    let found = transaction.rows(&sql, &[])?;
    let Some([count, last]) = found.first().map(Vec::as_slice) else {
        return Err(JournalError::new(
            ErrorKind::Journal,
            "the audit log has lost its head: somebody changed the journal",
        ));
    };
    let (mut count, mut last) = (count.integer()?, last.bytes()?.to_vec());
    for event in events {
        count += 1;
        let (before, behind) = event.rsplit_once(NO_NUMBER).unwrap_or_default();
        let line = format!("{before},\"seq\":{count}{behind}").into_bytes();
        last = audit_hash(&last, &line, key).to_vec();
        let values = [Cell::Integer(count), Cell::Bytes(line), Cell::Bytes(last.clone())];
        transaction.run(
            "INSERT INTO vesper_audit (seq, line, hash) VALUES (?, ?, ?)",
            &values,
        )?;
    }
    let values = [Cell::Integer(count), Cell::Bytes(last)];
    transaction.run(
        "UPDATE vesper_audit_head SET count = ?, hash = ? WHERE one = 1",
        &values,
    )?;
    Ok(())
}
