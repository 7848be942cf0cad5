//! Batches: a node over the rows of an Arrow table, columns in and columns out, an error column instead of exceptions.
//!
//! `plan` finds which column is which input, and from `scales` what types the outputs have; `read` takes rows out of
//! columns and `write` puts outputs into columns; `cell` and `given` do so for whatever is not read at once, and find the
//! problems with it. Where machine code takes words instead of values, `fill` and `give` do the same for many rows at once.
//! `kept` is memory of columns that is used again.
//! `pass` goes through a part of a table, `run` through one here, `crew` through many on several threads, and
//! `stream` is how tables come and go. `row` gives one row to who looks at it. What an error says is not known here:
//! `errors` makes the column of what the crate above says. (docs/spec/batches.md)

mod cell;
mod crew;
mod errors;
mod fill;
mod give;
mod given;
mod kept;
mod names;
mod pass;
mod plan;
mod read;
mod row;
mod run;
mod scales;
mod stream;
mod write;

pub use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
pub use arrow_schema::{ArrowError, SchemaRef};
pub use cell::{Cell, cell};
pub use crew::{Crew, Holder};
pub use errors::{Told, error_column};
pub use plan::{Decimals, Form, Options, Plan, Refusal};
pub use row::inputs_of_row;
pub use run::{Ended, Failed, IsOver, Part, ROWS, Terms, json_text, run_part};
pub use stream::{Exported, Table};
