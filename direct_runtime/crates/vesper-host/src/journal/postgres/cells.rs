//! Cells as parameters and columns of Postgres.

use std::error::Error;

use bytes::{BufMut, BytesMut};
use tokio_postgres::Row;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::journal::store::Cell;

impl ToSql for Cell {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => return Ok(IsNull::Yes),
            Self::Integer(number) if *ty == Type::INT4 => out.put_i32(i32::try_from(*number)?),
            Self::Integer(number) => out.put_i64(*number),
            Self::Text(text) => out.put_slice(text.as_bytes()),
            Self::Bytes(bytes) => out.put_slice(bytes),
            Self::Other(text) => return Err(format!("{text} is no value of a table").into()),
        }
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        [Type::INT4, Type::INT8, Type::TEXT, Type::VARCHAR, Type::BYTEA].contains(ty)
    }

    to_sql_checked!();
}

/// Returns the cells of a row.
pub(super) fn cells_of(row: &Row) -> Result<Vec<Cell>, tokio_postgres::Error> {
    let cell = |(index, column): (usize, &tokio_postgres::Column)| {
        Ok(match column.type_() {
            ty if *ty == Type::INT8 => row
                .try_get::<_, Option<i64>>(index)?
                .map_or(Cell::Null, Cell::Integer),
            ty if *ty == Type::INT4 => {
                let number: Option<i32> = row.try_get(index)?;
                number.map_or(Cell::Null, |number| Cell::Integer(number.into()))
            }
            ty if [Type::TEXT, Type::VARCHAR].contains(ty) => row
                .try_get::<_, Option<String>>(index)?
                .map_or(Cell::Null, Cell::Text),
            ty if *ty == Type::BYTEA => row
                .try_get::<_, Option<Vec<u8>>>(index)?
                .map_or(Cell::Null, Cell::Bytes),
            other => Cell::Other(format!("a value of type {other}")),
        })
    };
    row.columns().iter().enumerate().map(cell).collect()
}
