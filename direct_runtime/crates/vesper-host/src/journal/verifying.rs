//! Compares the tables outside of the hash chains with what the chains prove.
//!
//! The chain of an execution covers its entries. The other tables are derivable from them: the row of the execution
//! from its first and last entries, a definition from the semantic hash of START, the uses of blobs from the lines.
//! `updated_us`, the lease and the path of a definition are not, and only messages and pruning rely on them.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::journal::cells::{data, integer, shown, text, truncate};
use crate::journal::due::QUEUED;
use crate::journal::keyed::key_digest;
use crate::journal::lines::{hexadecimal, name_of, next_hash};
use crate::journal::reading::{ExecutionRow, places};
use crate::journal::schema::PLACES;
use crate::journal::store::{Cell, Transaction};
use crate::journal::stored_line::{Body, members, read, string};
use crate::journal::{JournalError, Kind, Status, Stored};
use crate::messages::grouped;

/// What follows the hashed part of IR (docs/spec/ir.md).
const SOURCE: &[u8] = b",\"source\":";
const NAME_SIGNS: usize = 12;
/// Class of requests that a run waits for.
const WAIT: &str = "wait";

/// Returns what the row says and the entries contradict.
pub(crate) fn row_problems(row: &ExecutionRow, entries: &[Stored]) -> Vec<String> {
    let execution = &row.summary.execution;
    let mut problems: Vec<String> = derived(row, entries)
        .into_iter()
        .filter(|(_, said, proven)| said != proven)
        .map(|(name, said, proven)| {
            let (said, proven) = (shown(&said), shown(&proven));
            format!("the row of execution {execution} says {name} {said}, and its entries {proven}")
        })
        .collect();
    if entries.iter().any(|each| each.is_erased) && !row.summary.is_sensitive {
        problems.push(format!(
            "the row of execution {execution} says that it is not sensitive, and its entries are encrypted"
        ));
    }
    problems
}

fn derived(row: &ExecutionRow, entries: &[Stored]) -> Vec<(&'static str, Cell, Cell)> {
    let summary = &row.summary;
    let text = |text: &str| Cell::Text(text.to_owned());
    let optional = |text: Option<&String>| text.map_or(Cell::Null, |text| Cell::Text(text.clone()));
    let (start, end) = match (entries.first(), entries.last()) {
        (Some(start), Some(end)) if start.kind == Kind::Start => (start, end),
        (first, _) => {
            let found = first.map_or(Cell::Null, |first| text(first.kind.name()));
            return vec![("first entry", text("START"), found)];
        }
    };
    let moved: Vec<&Stored> = entries.iter().filter(|each| is_move(each)).collect();
    let mut found = vec![
        (
            "started_us",
            Cell::Integer(summary.started_us),
            Cell::Integer(start.at_us),
        ),
        (
            "has ended",
            truth(summary.status == Status::Ended),
            truth(end.kind == Kind::End),
        ),
        (
            "is in doubt",
            truth(summary.status == Status::InDoubt),
            truth(!open_doubts(entries).is_empty()),
        ),
        (
            "is waiting",
            truth(summary.status == Status::Waiting),
            truth(end.kind == Kind::Intent && end.class == WAIT),
        ),
    ];
    if summary.status == Status::Queued {
        found.push((
            "number of entries",
            Cell::Integer(1),
            Cell::Integer(i64::try_from(entries.len()).unwrap_or(i64::MAX)),
        ));
    }
    // A queued run that was claimed may be ahead of its entries: its next commit writes the HANDOFF.
    let was_queued = start.is_erased || member(start, "queue") != Cell::Null;
    let is_claimed = |fence: i64| was_queued && summary.status == Status::Running && summary.fence > fence;
    let fence = fence_of(&moved).filter(|fence| !is_claimed(*fence));
    if let Some(fence) = fence {
        found.push(("fence", Cell::Integer(summary.fence), Cell::Integer(fence)));
    }
    if !start.is_erased {
        found.push(("node_id", text(&summary.node_id), member(start, "node_id")));
        found.push((
            "semantic_hash",
            text(&summary.semantic_hash),
            member(start, "semantic_hash"),
        ));
        let context = members(&start.body).and_then(|mut members| members.remove("context"));
        let key = context.and_then(|context| key_digest(&summary.node_id, context.get()));
        found.push(("run_key", optional(row.run_key.as_ref()), optional(key.as_ref())));
    }
    let decisive = moved
        .iter()
        .rev()
        .find(|each| each.kind == Kind::Handoff)
        .copied()
        .unwrap_or(start);
    if !decisive.is_erased && fence.is_some() {
        found.push(("engine", text(&summary.engine), member(decisive, "engine")));
    }
    if let Some(last) = moved.last().filter(|last| !last.is_erased && fence.is_some()) {
        let owner = match member(last, "to") {
            Cell::Null => text(""),
            owner => owner,
        };
        found.push(("owner", text(&summary.owner), owner));
    }
    if end.kind != Kind::End {
        found.push(("outcome", optional(summary.outcome.as_ref()), Cell::Null));
    } else if !end.is_erased {
        found.push((
            "outcome",
            optional(summary.outcome.as_ref()),
            member(end, "outcome"),
        ));
    }
    found
}

/// Returns true for the entries that moved a run: another process took it over, a person resolved it, it was woken.
fn is_move(entry: &Stored) -> bool {
    match entry.kind {
        Kind::Handoff | Kind::Resolved => true,
        Kind::Result | Kind::Failed => {
            entry.class == WAIT && (entry.is_erased || member(entry, "woken") != Cell::Null)
        }
        _ => false,
    }
}

/// Returns the fence that the moves of a run prove; None where their bodies were erased.
fn fence_of(moved: &[&Stored]) -> Option<i64> {
    let mut fence = 1;
    for each in moved {
        let said = members(&each.body).and_then(|members| members.get("fence")?.get().parse().ok());
        fence = said.unwrap_or(fence + 1);
    }
    moved.iter().all(|each| !each.is_erased).then_some(fence)
}

/// Returns where the row of due work of a run contradicts its status.
pub(crate) fn due_problems(
    transaction: &mut dyn Transaction,
    row: &ExecutionRow,
    entries: &[Stored],
) -> Result<Vec<String>, JournalError> {
    let execution = &row.summary.execution;
    let sql = "SELECT kind, path FROM vesper_due WHERE run = ?";
    let rows = transaction.rows(sql, &[Cell::Integer(row.id)])?;
    let found = rows
        .first()
        .map(|cells| (text(cells.first()), text(cells.get(1))));
    let status = row.summary.status;
    let path = entries.last().map_or("", |last| &last.path);
    let problem = match (status, found) {
        (Status::Waiting | Status::Queued, None) => {
            "vesper_due has no row for it, so that nothing wakes or begins it".to_owned()
        }
        (Status::Waiting, Some((kind, at))) if kind.clone()? == QUEUED || at.clone()? != path => {
            format!("its row in vesper_due is not that of its wait at `{path}`")
        }
        (Status::Running | Status::InDoubt | Status::Ended | Status::Queued, Some((kind, _)))
            if kind.clone()? != QUEUED =>
        {
            format!("it has a row of a wait in vesper_due, and is {}", status.name())
        }
        _ => return Ok(Vec::new()),
    };
    Ok(vec![format!("execution {execution}: {problem}")])
}

fn truth(is_true: bool) -> Cell {
    Cell::Other(if is_true { "True" } else { "False" }.to_owned())
}

/// Returns a member of a body.
fn member(stored: &Stored, name: &str) -> Cell {
    let found = members(&stored.body);
    match found.as_ref().and_then(|members| members.get(name)) {
        None => Cell::Null,
        Some(raw) if raw.get() == "null" => Cell::Null,
        Some(raw) => string(raw).map_or_else(|| Cell::Other(raw.get().to_owned()), Cell::Text),
    }
}

/// Returns the entries of requests in doubt that nobody resolved, in the order of their paths' first doubt.
pub(crate) fn open_doubts(entries: &[Stored]) -> Vec<&Stored> {
    let mut open: Vec<&Stored> = Vec::new();
    for each in entries {
        match each.kind {
            Kind::InDoubt => match open.iter_mut().find(|found| found.path == each.path) {
                Some(found) => *found = each,
                None => open.push(each),
            },
            Kind::Resolved => open.retain(|found| found.path != each.path),
            _ => {}
        }
    }
    open
}

/// Returns blobs of an execution that pruning would delete because no use is noted, and uses without a line.
pub(crate) fn use_problems(
    transaction: &mut dyn Transaction,
    row: &ExecutionRow,
) -> Result<Vec<String>, JournalError> {
    let execution = &row.summary.execution;
    let mut needed = BTreeSet::new();
    let sql = "SELECT lines FROM vesper_commits WHERE place >= ? AND place < ?";
    for cells in transaction.rows(sql, &places(row.id))? {
        for line in data(cells.first())?.split(|byte| *byte == b'\n') {
            if let Body::Blob(blob) = read(line)?.body {
                needed.insert(blob.name);
            }
        }
    }
    let mut noted = BTreeSet::new();
    for cells in transaction.rows(
        "SELECT name FROM vesper_blob_uses WHERE run = ?",
        &[Cell::Integer(row.id)],
    )? {
        noted.insert(text(cells.first())?.to_owned());
    }
    let short = |name: &String| truncate(name, NAME_SIGNS);
    let unnoted = needed.difference(&noted).map(|name| {
        format!(
            "execution {execution} uses the blob {}, and the journal does not note it",
            short(name)
        )
    });
    let unused = noted.difference(&needed).map(|name| {
        format!(
            "the journal notes that execution {execution} uses the blob {}, and no entry does",
            short(name)
        )
    });
    Ok(unnoted.chain(unused).collect())
}

/// Returns rows of executions that the journal does not have: their row was deleted by hand.
pub(crate) fn stray_problems(transaction: &mut dyn Transaction) -> Result<Vec<String>, JournalError> {
    let mut problems = Vec::new();
    for (table, run) in [
        ("commits", format!("place / {PLACES}")),
        ("blob_uses", "run".into()),
        ("keys", "run".into()),
        ("due", "run".into()),
        ("signals", "run".into()),
    ] {
        let sql = format!(
            "SELECT COUNT(*) FROM vesper_{table} WHERE {run} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM vesper_executions WHERE id = {run})"
        );
        let rows = transaction.rows(&sql, &[])?;
        let count = integer(rows.first().and_then(|row| row.first()))?;
        if count > 0 {
            let count = grouped(u64::try_from(count).unwrap_or_default());
            problems.push(format!(
                "vesper_{table} has {count} rows of executions that vesper_executions does not have"
            ));
        }
    }
    Ok(problems)
}

/// Returns definitions that are not those of their semantic hash, and executions without a definition.
pub(crate) fn definition_problems(transaction: &mut dyn Transaction) -> Result<Vec<String>, JournalError> {
    let mut problems = Vec::new();
    let mut known = HashSet::new();
    let mut called: Vec<(String, String)> = Vec::new();
    for cells in transaction.rows(
        "SELECT semantic_hash FROM vesper_definitions ORDER BY semantic_hash",
        &[],
    )? {
        let hash = text(cells.first())?.to_owned();
        let rows = transaction.rows(
            "SELECT node_id, source, ir, callees FROM vesper_definitions WHERE semantic_hash = ?",
            &[Cell::Text(hash.clone())],
        )?;
        let short = truncate(&hash, NAME_SIGNS);
        match rows.first().and_then(|row| changes(&hash, row)) {
            None => problems.push(format!("the definition {short} was changed: it cannot be read")),
            Some((node_id, changes, callees)) => {
                let report = |change| format!("the definition {short} of {node_id} was changed: {change}");
                problems.extend(changes.into_iter().map(report));
                called.extend(callees.into_iter().map(|callee| (callee, node_id.clone())));
            }
        }
        known.insert(hash);
    }
    let mut missing: HashMap<&str, usize> = HashMap::new();
    let mut order: Vec<(&str, &str)> = Vec::new();
    for (callee, caller) in called.iter().filter(|(callee, _)| !known.contains(callee)) {
        // The last caller is named, in the place of the first.
        let index = *missing.entry(callee).or_insert(order.len());
        match order.get_mut(index) {
            Some(found) => found.1 = caller,
            None => order.push((callee, caller)),
        }
    }
    problems.extend(order.into_iter().map(|(callee, caller)| {
        format!(
            "the definition {}, which {caller} calls, is missing",
            truncate(callee, NAME_SIGNS)
        )
    }));
    for cells in transaction.rows("SELECT DISTINCT semantic_hash FROM vesper_executions", &[])? {
        let hash = text(cells.first())?;
        if !known.contains(hash) {
            let short = truncate(hash, NAME_SIGNS);
            problems.push(format!("the definition {short} of an execution is missing"));
        }
    }
    Ok(problems)
}

/// Returns the node of a definition, what was changed of it, and the hashes that it calls; None where it is unreadable.
fn changes(hash: &str, row: &[Cell]) -> Option<(String, Vec<String>, Vec<String>)> {
    let node_id = text(row.first()).ok()?;
    let source = text(row.get(1)).ok()?;
    let ir = data(row.get(2)).ok()?;
    let callees: Vec<String> = serde_json::from_str(text(row.get(3)).ok()?).ok()?;
    let mut found = Vec::new();
    if has_hash(ir, hash) {
        let document = members(std::str::from_utf8(ir).ok()?)?;
        let semantics = members(document.get("semantics")?.get())?;
        let own = string(semantics.get("node_id")?)?;
        if own != node_id {
            found.push(format!("its IR is that of {}", truncate(&own, 80)));
        }
        let origin = members(document.get("source")?.get())?;
        if string(origin.get("sha256")?)? != name_of(source.as_bytes()) {
            found.push("its text is not the one that was compiled".to_owned());
        }
        let calls: Vec<&serde_json::value::RawValue> =
            serde_json::from_str(semantics.get("calls")?.get()).ok()?;
        let mut hashes = Vec::with_capacity(calls.len());
        for call in calls {
            hashes.push(string(members(call.get())?.get("hash")?)?);
        }
        if hashes != callees {
            found.push("it calls other nodes".to_owned());
        }
    } else {
        found.push("its IR has another semantic hash".to_owned());
    }
    Some((node_id.to_owned(), found, callees))
}

/// Returns true where IR has this hash, which covers the document up to its source.
fn has_hash(ir: &[u8], hash: &str) -> bool {
    let ends = ir
        .windows(SOURCE.len())
        .enumerate()
        .filter(|(_, part)| *part == SOURCE);
    ends.into_iter().any(|(at, _)| {
        let hashed = next_hash(ir.get(..at).unwrap_or_default(), b"}");
        hexadecimal(&hashed) == hash
    })
}
