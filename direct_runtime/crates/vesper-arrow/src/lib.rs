//! Batches: a node over the rows of an Arrow table, columns in and columns out, an error column instead of exceptions.
//!
//! `plan` finds which column is which input, and from `scales` what types the outputs have; `read` takes rows out of
//! columns and `write` puts outputs into columns; `cell` and `given` do so for whatever is not read at once, and find the
//! problems with it. Where machine code takes words instead of values, `fill` and `give` do the same for many rows at once.
//! `kept` is memory of columns that is used again.
//! `pass` goes through a part of a table, `run` through one here, `crew` through many on several threads, and
//! `stream` is how tables come and go. `row` gives one row to who looks at it. What an error says is not known here:
//! `errors` makes the column of what the crate above says. (docs/spec/batches.md)

mod block_inputs;
mod block_outputs;
mod buffer_pool;
mod cell;
mod cell_conversion;
mod column_reader;
mod column_writer;
mod enum_column;
mod error_column;
mod part;
mod part_run;
mod plan;
mod row_inputs;
mod scales;
mod stream;
mod thread_pool;

pub use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
pub use arrow_schema::{ArrowError, SchemaRef};
pub use cell::{Cell, cell};
pub use error_column::{RowError, error_column};
pub use part::{IsCancelled, MAX_PART_ROWS, Part, PartError, RowEnd, RunTerms, json_text, run_part};
pub use plan::{Decimals, Form, Options, Plan, Refusal};
pub use row_inputs::inputs_of_row;
pub use stream::{ExportedStream, Table};
pub use thread_pool::{ProgramHolder, ThreadPool};
