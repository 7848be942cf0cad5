//! Decoder of the tables of a document.

use std::collections::HashMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::Rejected;
use crate::canonical::Reader;
use crate::fit::fit;
use crate::intern::Types;
use crate::limits::{COLUMNS, LISTED, ROWS};
use crate::table::{Bound, Cell, Table, Test};
use crate::types::{RecordType, Type};
use crate::value::Value;

use super::hexadecimal;
use super::types::{ty, value};

/// Reads the tables by their hash. Fails where a hash is not that of its table.
pub(super) fn tables(
    reader: &mut Reader<'_>,
    types: &mut Types,
    bytes: &[u8],
) -> Result<HashMap<Arc<str>, Arc<Table>>, Rejected> {
    let found = reader.map(LISTED, |reader, hash| {
        let start = reader.position();
        let table = table(reader, types)?;
        let text = bytes.get(start..reader.position()).unwrap_or_default();
        if hexadecimal(Sha256::digest(text).as_ref()) != hash {
            return Err(reader.refuse(format_args!(
                "`{}` is not the hash of its table",
                hash.escape_debug()
            )));
        }
        Ok(Arc::new(table))
    })?;
    Ok(found
        .into_iter()
        .map(|(hash, table)| (Arc::from(hash), table))
        .collect())
}

fn table(reader: &mut Reader<'_>, types: &mut Types) -> Result<Table, Rejected> {
    reader.open_object()?;
    let keys = reader.field("keys", |reader| record(reader, types))?;
    let results = reader.field("results", |reader| record(reader, types))?;
    let columns: Vec<Type> = fields(&keys).iter().map(|field| field.ty.clone()).collect();
    if columns.len() > COLUMNS {
        return Err(reader.refuse(format_args!("a table has more than {COLUMNS} columns")));
    }
    if let Some(other) = columns.iter().find(|column| !is_searchable(column)) {
        return Err(reader.refuse(format_args!("a column of a table cannot be {other}")));
    }
    let rows = reader.field("rows", |reader| {
        reader.list(ROWS, |reader| row(reader, &columns, fields(&results)))
    })?;
    reader.close_object()?;
    Ok(Table::new(keys, results, columns.len(), rows))
}

fn record(reader: &mut Reader<'_>, types: &mut Types) -> Result<Type, Rejected> {
    match ty(reader, types)? {
        found @ Type::Record(_) => Ok(found),
        other => Err(reader.refuse(format_args!("a table has records, not {other}"))),
    }
}

fn fields(record: &Type) -> &[crate::types::Field] {
    match record {
        Type::Record(of) => RecordType::fields(of),
        _ => &[],
    }
}

/// Returns whether values of the type have an order in which cells can be searched.
fn is_searchable(ty: &Type) -> bool {
    match ty {
        Type::Optional(inner) => is_searchable(inner),
        Type::Boolean
        | Type::Integer
        | Type::Decimal
        | Type::Text
        | Type::Date
        | Type::Timestamp
        | Type::Duration
        | Type::Enum(_) => true,
        _ => false,
    }
}

type Row = (Vec<Cell>, Value);

fn row(reader: &mut Reader<'_>, columns: &[Type], results: &[crate::types::Field]) -> Result<Row, Rejected> {
    let mut found: Option<Vec<Cell>> = None;
    let parts = reader.list(2, |reader| {
        if found.is_none() {
            let mut types = columns.iter();
            found = Some(reader.list(columns.len(), |reader| match types.next() {
                Some(column) => cell(reader, column),
                None => Err(reader.refuse("a row has too many cells")),
            })?);
            return Ok(Vec::new());
        }
        let mut types = results.iter();
        reader.list(results.len(), |reader| match types.next() {
            Some(field) => typed(reader, &field.ty),
            None => Err(reader.refuse("a row has too many results")),
        })
    })?;
    let (Some(cells), [_, values]) = (found, parts.as_slice()) else {
        return Err(reader.refuse("a row has cells and results"));
    };
    if cells.len() != columns.len() || values.len() != results.len() {
        return Err(reader.refuse("a row has a cell for each column and each result"));
    }
    Ok((cells, Value::Record(Arc::from(values.as_slice()))))
}

fn cell(reader: &mut Reader<'_>, column: &Type) -> Result<Cell, Rejected> {
    match reader.peek() {
        Some(b'n') => reader.null().map(|()| Cell::Any),
        Some(b'[') => {
            let tests = reader.list(LISTED, |reader| test(reader, column))?;
            if tests.len() == 1 {
                return Err(reader.refuse("one test of a cell is written without brackets"));
            }
            Ok(Cell::In(tests))
        }
        _ => Ok(Cell::In(vec![test(reader, column)?])),
    }
}

fn test(reader: &mut Reader<'_>, column: &Type) -> Result<Test, Rejected> {
    let plain = match column {
        Type::Optional(inner) => inner,
        other => other,
    };
    let bound = |reader: &mut Reader<'_>, name, is_open| {
        let value = reader.optional_field(name, |reader| typed(reader, plain))?;
        Ok::<_, Rejected>(value.map(|value| Bound { value, is_open }))
    };
    reader.open_object()?;
    let above = bound(reader, "above", true)?;
    let below = bound(reader, "below", true)?;
    let from = bound(reader, "from", false)?;
    let is = reader.optional_field("is", |reader| typed(reader, column))?;
    let to = bound(reader, "to", false)?;
    reader.close_object()?;
    match (is, above, from, below, to) {
        (Some(value), None, None, None, None) => Ok(Test::Is(value)),
        (Some(_), ..)
        | (None, None, None, None, None)
        | (_, Some(_), Some(_), ..)
        | (_, _, _, Some(_), Some(_)) => {
            Err(reader.refuse("a test has `is`, or at most one lower and one upper end"))
        }
        (None, above, from, below, to) => Ok(Test::Between(above.or(from), below.or(to))),
    }
}

fn typed(reader: &mut Reader<'_>, ty: &Type) -> Result<Value, Rejected> {
    let raw = value(reader)?;
    fit(ty, &raw).map_err(|what| reader.refuse(what))
}
