//! Batches: a node over the rows of an Arrow table (docs/spec/batches.md). Errors are a column instead of exceptions.
//!
//! `plan` maps columns to inputs and determines the output types with `scales`. `column_reader` reads rows and
//! `column_writer` writes outputs; `cell` and `cell_conversion` read everything that the readers do not, and find its
//! problems. For machine code on words, `block_inputs` and `block_outputs` convert many rows at once. `buffer_pool`
//! recycles the memory of columns.
//!
//! `part_run` runs one part of a table, `part` runs it in the current thread, and `thread_pool` runs many parts on
//! several threads. `stream` imports and exports tables, and `row_inputs` reads a single row. `error_column` makes
//! the column of errors; their messages come from the calling crate.

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
