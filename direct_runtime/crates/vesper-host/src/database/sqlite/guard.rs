//! Limits of a node's statement in SQLite, enforced by SQLite itself.
//!
//! The checker reads tables and functions from the text of a statement. SQLite's authorizer reports what the statement
//! really reads, writes and calls when it is compiled, and this guard denies the rest. A compiled statement is not
//! authorized again, so a repeated one costs nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::affinity;
use super::connection::Connection;
use super::library::{Action, Authorizer, Parameter, SqliteError};
use crate::database::statement::{Limits, PureNames};
use crate::database::values::Cell;

const DELETE: i32 = 9;
const INSERT: i32 = 18;
const PRAGMA: i32 = 19;
const READ: i32 = 20;
const SELECT: i32 = 21;
const UPDATE: i32 = 23;
const FUNCTION: i32 = 31;
const RECURSIVE: i32 = 33;

const OPERATOR_FUNCTIONS: [&str; 5] = ["->", "->>", "glob", "like", "match"];
/// Endings of the tables in which a virtual table keeps its rows.
const SHADOW_ENDINGS: [&str; 11] = [
    "config", "content", "data", "docsize", "idx", "node", "parent", "rowid", "segdir", "segments", "stat",
];
const SCHEMA: &str = "sqlite_master";
const VIEWS: &str = "SELECT lower(name) FROM sqlite_master WHERE type = 'view'";
const KEYS: &str = "SELECT lower(m.name), lower(f.\"table\") FROM sqlite_master m \
    JOIN pragma_foreign_key_list(m.name) f WHERE m.type = 'table'";

/// The guard of one connection.
#[derive(Debug, Default)]
pub(super) struct Guard {
    /// Version of the schema that the rest was read from.
    version: Option<Cell>,
    views: HashSet<String>,
    /// Pairs of tables that a foreign key connects.
    keys: Vec<[String; 2]>,
    /// Name and declared type of each column of the tables that were asked for.
    columns: HashMap<Box<str>, Arc<[(String, String)]>>,
    /// What each statement may do with this schema.
    decided: HashMap<Arc<str>, Arc<Permitted>>,
}

impl Guard {
    /// Returns the authorizer of a statement.
    pub(super) fn authorizer(
        &mut self,
        connection: &mut Connection,
        sql: &Arc<str>,
        limits: &Limits,
        pure: &Arc<PureNames>,
    ) -> Result<Arc<dyn Authorizer>, SqliteError> {
        self.refresh(connection)?;
        if let Some(found) = self.decided.get(sql) {
            return Ok(Arc::clone(found) as Arc<dyn Authorizer>);
        }
        let permitted = Arc::new(Permitted {
            limits: limits.clone(),
            pure: Arc::clone(pure),
            related: related(&self.keys, &limits.writes),
            reads_view: !self.views.is_disjoint(&limits.reads),
        });
        self.decided.insert(Arc::clone(sql), Arc::clone(&permitted));
        Ok(permitted)
    }

    /// Returns name and declared type of each column of a table.
    pub(super) fn columns(
        &mut self,
        connection: &mut Connection,
        table: &str,
    ) -> Result<Arc<[(String, String)]>, SqliteError> {
        self.refresh(connection)?;
        if let Some(found) = self.columns.get(table) {
            return Ok(Arc::clone(found));
        }
        let mut columns = Vec::new();
        let name = |_: &str| Some(Parameter::Text(table));
        connection.run(affinity::COLUMNS, &name, None, &mut |row| {
            if let (Cell::Text(name), Cell::Text(kind)) = (row.cell(0), row.cell(1)) {
                columns.push((name, kind));
            }
            Ok(true)
        })?;
        let columns: Arc<[(String, String)]> = Arc::from(columns);
        self.columns.insert(Box::from(table), Arc::clone(&columns));
        Ok(columns)
    }

    /// Forgets what was read from an older schema.
    fn refresh(&mut self, connection: &mut Connection) -> Result<(), SqliteError> {
        let version = rows(connection, "PRAGMA schema_version")?
            .pop()
            .and_then(|mut row| row.pop());
        if version != self.version {
            self.views = rows(connection, VIEWS)?
                .into_iter()
                .flatten()
                .filter_map(text)
                .collect();
            let keys = rows(connection, KEYS)?.into_iter();
            self.keys = keys
                .filter_map(|row| {
                    row.into_iter()
                        .map(text)
                        .collect::<Option<Vec<_>>>()?
                        .try_into()
                        .ok()
                })
                .collect();
            self.columns.clear();
            self.decided.clear();
            self.version = version;
        }
        Ok(())
    }
}

fn rows(connection: &mut Connection, sql: &str) -> Result<Vec<Vec<Cell>>, SqliteError> {
    let mut found = Vec::new();
    connection.run(sql, &|_| None, None, &mut |row| {
        found.push((0..row.columns).map(|column| row.cell(column)).collect());
        Ok(true)
    })?;
    Ok(found)
}

fn text(cell: Cell) -> Option<String> {
    match cell {
        Cell::Text(text) => Some(text),
        _ => None,
    }
}

/// Returns the tables that foreign keys connect with these: a write reads their keys, and may cascade to them.
fn related(keys: &[[String; 2]], tables: &HashSet<String>) -> HashSet<String> {
    let mut found = tables.clone();
    let mut before = 0;
    while !keys.is_empty() && found.len() != before {
        before = found.len();
        for pair in keys {
            if pair.iter().any(|table| found.contains(table)) {
                found.extend(pair.iter().cloned());
            }
        }
    }
    found
}

/// What one statement may do.
#[derive(Debug)]
struct Permitted {
    limits: Limits,
    pure: Arc<PureNames>,
    related: HashSet<String>,
    reads_view: bool,
}

impl Authorizer for Permitted {
    fn allows(&self, action: &Action<'_>) -> bool {
        let limits = &self.limits;
        if action
            .source
            .is_some_and(|source| !limits.local_names.contains(&source.to_lowercase()))
        {
            return true; // inside a view or a trigger, which are the database's own
        }
        let (first, second) = (action.first.to_lowercase(), action.second.to_lowercase());
        match action.code {
            READ => {
                // Rows without a column: SQLite names the table below a view or a WITH.
                let is_below = second.is_empty() && (self.reads_view || limits.local_names.contains(&first));
                // Read where a table function is set up.
                let is_schema = first == SCHEMA && second == "rowid";
                is_below
                    || is_schema
                    || self.pure.functions.contains(&first)
                    || self.is_table(&first, &limits.reads)
            }
            UPDATE if first == SCHEMA => true,
            INSERT | UPDATE | DELETE => self.is_table(&first, &limits.writes),
            FUNCTION => {
                let is_pure = self.pure.functions.contains(&second) || self.pure.syntax.contains(&second);
                is_pure || OPERATOR_FUNCTIONS.contains(&&*second) || limits.functions.contains(&second)
            }
            PRAGMA => first == "data_version" && second.is_empty(), // of a full-text table
            code => matches!(code, SELECT | RECURSIVE),
        }
    }
}

impl Permitted {
    fn is_table(&self, name: &str, tables: &HashSet<String>) -> bool {
        if tables.contains(name) || self.related.contains(name) {
            return true;
        }
        let (owner, ending) = name.rsplit_once('_').unwrap_or(("", name));
        SHADOW_ENDINGS.contains(&ending) && tables.contains(owner)
    }
}
