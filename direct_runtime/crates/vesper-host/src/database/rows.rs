//! Receivers of the rows of a query.

use vesper_ir::{Type, Value};

use crate::database::session::{Kind, Rows};
use crate::database::settings::DatabaseSettings;
use crate::database::values::{Cell, RowReader};
use crate::effect::Failure;
use crate::messages::grouped;

/// Returns a number of rows, for a message.
pub(super) fn counted(rows: usize) -> String {
    if rows == 1 {
        "one row".to_owned()
    } else {
        format!("{} rows", grouped(rows))
    }
}

/// Receiver that keeps all rows.
#[derive(Default)]
pub(super) struct AllRows(pub(super) Vec<Vec<Cell>>);

impl Rows for AllRows {
    fn take(&mut self, _columns: &[String], cells: Vec<Cell>) -> Result<(), Failure> {
        self.0.push(cells);
        Ok(())
    }
}

/// Rows of a query, as values.
pub(super) struct Found<'a> {
    settings: &'a DatabaseSettings,
    row: &'a Type,
    booleans_are_integers: bool,
    most: usize,
    reader: Option<RowReader<'a>>,
    pub(super) values: Vec<Value>,
    size: usize,
    /// Rows in all; one too many is only counted.
    pub(super) count: usize,
}

impl<'a> Found<'a> {
    pub(super) fn new(settings: &'a DatabaseSettings, row: &'a Type, kind: Kind, most: usize) -> Self {
        Self {
            settings,
            row,
            booleans_are_integers: kind == Kind::Sqlite,
            most,
            reader: None,
            values: Vec::new(),
            size: 0,
            count: 0,
        }
    }
}

impl Rows for Found<'_> {
    fn take(&mut self, columns: &[String], cells: Vec<Cell>) -> Result<(), Failure> {
        self.count += 1;
        if self.count > self.most {
            return Ok(());
        }
        let (settings, number) = (self.settings, self.count);
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => none.insert(RowReader::new(
                columns,
                self.row,
                &settings.name,
                self.booleans_are_integers,
            )?),
        };
        for (cell, column) in cells.iter().zip(columns) {
            let size = cell.size();
            if size > settings.max_value {
                let name = &settings.name;
                let text = format!(
                    "column `{column}` of row {number} of `{name}` holds {} bytes",
                    grouped(size)
                );
                let most = grouped(settings.max_value);
                return Err(Failure::new(
                    "bad_response",
                    format!("{text}, more than `max_value` of {most}"),
                ));
            }
            self.size += size;
        }
        if self.size > settings.max_result {
            let (name, most) = (&settings.name, grouped(settings.max_result));
            let text = format!(
                "the first {} of `{name}` hold more than `max_result` of {most}",
                counted(number)
            );
            return Err(Failure::new(
                "bad_response",
                format!("{text} bytes; select less, or raise it"),
            ));
        }
        self.values.push(reader.read(&cells, number)?);
        Ok(())
    }
}
