//! Tables of a document: rows of cells over typed columns, each with a result. docs/spec/ir.md defines their bytes.

use std::sync::Arc;

use crate::types::Type;
use crate::value::Value;

mod index;

use index::Index;

/// Table with the index of its rows.
#[derive(Debug)]
pub struct Table {
    /// Record type of the keys: one field for each column.
    keys: Type,
    /// Record type of the results.
    results: Type,
    rows: Vec<Value>,
    index: Index,
}

/// Condition of a row on one column.
#[derive(Debug)]
pub(crate) enum Cell {
    /// Every value, and null.
    Any,
    /// The values that pass one of the tests.
    In(Vec<Test>),
}

/// Test of a cell. Null passes only `Is(Value::Null)`.
#[derive(Debug)]
pub(crate) enum Test {
    Is(Value),
    Between(Option<Bound>, Option<Bound>),
}

/// End of a range.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) value: Value,
    /// Whether the value itself is outside the range.
    pub(crate) is_open: bool,
}

impl Table {
    /// Builds a table. Every row has one cell for each field of `keys`.
    pub(crate) fn new(keys: Type, results: Type, columns: usize, rows: Vec<(Vec<Cell>, Value)>) -> Self {
        let (cells, rows): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        Self {
            keys,
            results,
            rows,
            index: Index::new(columns, &cells),
        }
    }

    /// Returns the record types of the keys and of the results.
    pub fn types(&self) -> (&Type, &Type) {
        (&self.keys, &self.results)
    }

    /// Returns the result of the first row that matches.
    pub fn find(&self, keys: &[Value]) -> Option<Value> {
        self.result(self.index.first(keys)?)
    }

    /// Returns the results of all rows that match, in their order.
    pub fn find_all(&self, keys: &[Value]) -> Arc<[Value]> {
        let found = self.index.all(keys);
        found.into_iter().filter_map(|row| self.result(row)).collect()
    }

    fn result(&self, row: u32) -> Option<Value> {
        self.rows.get(usize::try_from(row).ok()?).cloned()
    }
}
