//! Receipts: one row for each write that happened, in the transaction of that write.
//!
//! A write inserts its receipt first. A second one with the same name waits there until the first has committed or
//! rolled back (on the row in Postgres, on the lock of the database in SQLite), and then finds the receipt and the
//! result, or goes on as if it were the first.

use std::sync::{Arc, LazyLock};

use ring::digest::{SHA256, digest};
use vesper_ir::EffectClass;

use crate::database::session::{Rows, Session, SessionError, Table};
use crate::database::statement::Statement;
use crate::database::values::{Cell, Column, Values, hex};
use crate::effect::{Ask, Failure};

pub const RECEIPTS: Table = Table {
    sqlite: "CREATE TABLE IF NOT EXISTS vesper_receipts \
             (receipt TEXT NOT NULL PRIMARY KEY, value TEXT, at TEXT NOT NULL)",
    postgres: "CREATE TABLE IF NOT EXISTS vesper_receipts \
               (receipt text NOT NULL PRIMARY KEY, value text, at timestamptz NOT NULL)",
};

static INSERT: LazyLock<Statement> = LazyLock::new(|| {
    Statement::own(
        "INSERT INTO vesper_receipts (receipt, at) VALUES (:receipt, :at) ON CONFLICT (receipt) DO NOTHING",
    )
});
static FILL: LazyLock<Statement> =
    LazyLock::new(|| Statement::own("UPDATE vesper_receipts SET value = :value WHERE receipt = :receipt"));
static FIND: LazyLock<Statement> =
    LazyLock::new(|| Statement::own("SELECT value FROM vesper_receipts WHERE receipt = :receipt"));

/// Characters of the longest name that is kept as it is.
const MAX_NAME: usize = 500;

/// Returns the name of a write among all of its database.
///
/// Two steps of one event handler may have the same key, so the name of a keyed write has its statement in it too. A
/// name that no index would hold is replaced by its hash.
pub fn receipt_name(ask: &Ask<'_>) -> String {
    let mut name = ask.receipt();
    if ask.request.class == EffectClass::Keyed {
        let mut fixed: Vec<String> = ask
            .request
            .fixed
            .iter()
            .map(|(field, text)| format!("{field}={text}"))
            .collect();
        fixed.sort();
        let statement = [vec![ask.request.effect.name().to_owned()], fixed]
            .concat()
            .join("\0");
        name = format!("{name}/{}", hash(&statement).get(..16).unwrap_or_default());
    }
    if name.chars().count() <= MAX_NAME && name.chars().all(is_printable) {
        return name;
    }
    format!("sha256:{}", hash(&name))
}

fn hash(text: &str) -> String {
    hex(digest(&SHA256, text.as_bytes()).as_ref())
}

/// Returns whether a character is one that the database can show: no control, no separator but the space.
fn is_printable(letter: char) -> bool {
    if letter.is_ascii() {
        return (' '..='~').contains(&letter);
    }
    // A text escapes what cannot be printed, and at its start marks that combine.
    let text = format!("a{letter}");
    text.escape_debug().count() == 2
}

/// Inserts the receipt of a write; returns the result that it has already, where it happened before.
pub(super) async fn begin(
    session: &mut dyn Session,
    receipt: &Arc<str>,
    now: i64,
) -> Result<Option<String>, SessionError> {
    let values = vec![
        (Arc::from("receipt"), Column::Text(Arc::clone(receipt))),
        (Arc::from("at"), Column::Timestamp(now)),
    ];
    if session.change(&INSERT, &values).await? == 1 {
        return Ok(None);
    }
    let unfinished = || {
        Failure::new(
            "unavailable",
            "another attempt at this very write is not finished; try again",
        )
    };
    find(session, receipt)
        .await?
        .map(Some)
        .ok_or_else(|| unfinished().into())
}

/// Stores the result of a write in its receipt.
pub(super) async fn fill(
    session: &mut dyn Session,
    receipt: &Arc<str>,
    value: &str,
) -> Result<(), SessionError> {
    let values = vec![
        (Arc::from("receipt"), Column::Text(Arc::clone(receipt))),
        (Arc::from("value"), Column::Text(Arc::from(value))),
    ];
    session.change(&FILL, &values).await?;
    Ok(())
}

/// Returns the result of the write with this receipt; None where it did not happen.
pub(super) async fn find(
    session: &mut dyn Session,
    receipt: &Arc<str>,
) -> Result<Option<String>, SessionError> {
    let values: Values = vec![(Arc::from("receipt"), Column::Text(Arc::clone(receipt)))];
    let mut first = FirstRow::default();
    match session.rows(&FIND, &values, 1, &mut first).await {
        Ok(()) => Ok(first.0.and_then(|cells| match cells.into_iter().next() {
            Some(Cell::Text(text)) => Some(text),
            _ => None,
        })),
        Err(SessionError::MissingTable(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Receiver that keeps the first row.
#[derive(Debug, Default)]
pub(super) struct FirstRow(pub Option<Vec<Cell>>);

impl Rows for FirstRow {
    fn take(&mut self, _columns: &[String], cells: Vec<Cell>) -> Result<(), Failure> {
        self.0.get_or_insert(cells);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::is_printable;

    #[test]
    fn knows_what_can_be_printed() {
        for letter in ['a', ' ', '"', '\'', '\\', 'ü', '漢', '\u{301}', '🎉'] {
            assert!(is_printable(letter), "{letter:?}");
        }
        for letter in ['\n', '\0', '\x7f', '\u{a0}', '\u{200b}', '\u{2028}', '\u{e000}'] {
            assert!(!is_printable(letter), "{letter:?}");
        }
    }
}
