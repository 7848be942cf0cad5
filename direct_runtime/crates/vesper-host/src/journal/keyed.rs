//! Idempotency keys: one run for each key of a caller and node.

use vesper_ir::json::quote;

use crate::journal::JournalError;
use crate::journal::Status;
use crate::journal::begin::StoreJournal;
use crate::journal::lines::name_of;
use crate::journal::owner::is_dead;
use crate::journal::reading::{COLUMNS, ExecutionRow, Summary};
use crate::journal::store::{Cell, read};
use crate::journal::stored_line::{members, string};

/// Returns the digest of the key in a context; None without a key.
///
/// SHA-256 over the typed JSON of `[node_id, "tenant", tenant, key]` or `[node_id, "caller", via, actor, key]`.
pub(crate) fn key_digest(node_id: &str, context: &str) -> Option<String> {
    let members = members(context)?;
    let member = |name: &str| members.get(name).and_then(|raw| string(raw));
    let key = member("key")?;
    let caller = match member("tenant") {
        Some(tenant) => vec![Some("tenant".to_owned()), Some(tenant)],
        None => vec![Some("caller".to_owned()), member("via"), member("actor")],
    };
    let mut text = String::from("[");
    quote(node_id, &mut text);
    for part in caller.into_iter().chain([Some(key)]) {
        text.push(',');
        match part {
            Some(part) => quote(&part, &mut text),
            None => text.push_str("null"),
        }
    }
    text.push(']');
    Some(name_of(text.as_bytes()))
}

impl StoreJournal {
    /// Returns the run of a node with the key of a context, and whether it has an owner that may still end it.
    pub fn keyed(&self, node_id: &str, context: &str) -> Result<Option<(Summary, bool)>, JournalError> {
        let Some(key) = key_digest(node_id, context) else {
            return Ok(None);
        };
        let sql = format!("SELECT {COLUMNS} FROM vesper_executions WHERE run_key = ?");
        let (rows, now) = read(&*self.store, |transaction| {
            let rows = transaction.rows(&sql, &[Cell::Text(key.clone())])?;
            Ok((rows, transaction.now_us()?))
        })?;
        let Some(cells) = rows.first() else {
            return Ok(None);
        };
        let row = ExecutionRow::read(cells)?;
        let is_owned = match row.summary.status {
            Status::Running => row.lease_until_us > now && !is_dead(&row.summary.owner),
            Status::Waiting | Status::Queued => true, // until it is woken, or a worker takes it over
            Status::InDoubt | Status::Ended => false,
        };
        Ok(Some((row.summary, is_owned)))
    }
}
