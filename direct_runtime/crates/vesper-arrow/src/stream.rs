//! Import and export of tables through the C interfaces of Arrow.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr::NonNull;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{Array, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, SchemaRef};

use crate::part::MAX_PART_ROWS;

/// A table that is read once, from its start to its end.
pub struct Table {
    reader: Box<dyn RecordBatchReader + Send>,
    /// Batches that were read but not returned yet.
    buffered: VecDeque<RecordBatch>,
    /// True after the end or an error. The stream is not read again, and the error is reported after all batches
    /// before it.
    is_over: bool,
    error: Option<ArrowError>,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Table")
            .field("schema", &self.reader.schema())
            .finish_non_exhaustive()
    }
}

#[allow(
    unsafe_code,
    reason = "imports structures of another library by their addresses"
)]
impl Table {
    /// Imports a stream.
    ///
    /// # Safety
    ///
    /// The address is that of an `ArrowArrayStream` of the C stream interface, with no other users meanwhile.
    pub unsafe fn of_stream(stream: NonNull<c_void>) -> Result<Self, ArrowError> {
        // SAFETY: guaranteed by the caller; the source is marked as released.
        let reader = unsafe { RecordBatchStreamReader::from_raw(stream.cast().as_ptr()) }?;
        Ok(Self {
            reader: Box::new(reader),
            buffered: VecDeque::new(),
            is_over: false,
            error: None,
        })
    }

    /// Imports an array of records.
    ///
    /// # Safety
    ///
    /// The addresses are those of an `ArrowSchema` and an `ArrowArray` of the C data interface for the same data,
    /// with no other users meanwhile.
    pub unsafe fn of_array(schema: NonNull<c_void>, array: NonNull<c_void>) -> Result<Self, ArrowError> {
        // SAFETY: guaranteed by the caller; the source is marked as released.
        let (schema, array) = unsafe {
            (
                FFI_ArrowSchema::from_raw(schema.cast().as_ptr()),
                FFI_ArrowArray::from_raw(array.cast().as_ptr()),
            )
        };
        // SAFETY: both belong to the same data, and this is the only owner now.
        let data = unsafe { from_ffi(array, &schema) }?;
        if !matches!(data.data_type(), arrow_schema::DataType::Struct(_)) {
            return Err(ArrowError::SchemaError(format!(
                "a table has columns; this is an array of {}",
                data.data_type()
            )));
        }
        let records = StructArray::from(data);
        if records.null_count() > 0 {
            return Err(ArrowError::SchemaError(
                "rows of a table are not null as a whole; this array has such rows".to_owned(),
            ));
        }
        let batch = RecordBatch::from(records);
        let schema = batch.schema();
        Ok(Self {
            reader: Box::new(RecordBatchIterator::new([Ok(batch)], schema)),
            buffered: VecDeque::new(),
            is_over: false,
            error: None,
        })
    }
}

impl Table {
    pub fn schema(&self) -> SchemaRef {
        self.reader.schema()
    }

    /// Returns the next `count` parts of at most `MAX_PART_ROWS` rows. At the end of the table there are fewer.
    pub fn parts(&mut self, count: usize) -> Result<Vec<RecordBatch>, ArrowError> {
        let mut parts = Vec::with_capacity(count);
        while parts.len() < count {
            let Some(batch) = self.buffered.pop_front() else {
                if self.is_over {
                    break;
                }
                match self.reader.next() {
                    Some(Ok(batch)) => self.buffered.push_back(batch),
                    ended => {
                        self.is_over = true;
                        self.error = ended.and_then(Result::err);
                    }
                }
                continue;
            };
            let rows = batch.num_rows();
            if rows > MAX_PART_ROWS {
                self.buffered
                    .push_front(batch.slice(MAX_PART_ROWS, rows - MAX_PART_ROWS));
            }
            if rows > 0 {
                parts.push(batch.slice(0, rows.min(MAX_PART_ROWS)));
            }
        }
        match self.error.take_if(|_| parts.is_empty()) {
            Some(error) => Err(error),
            None => Ok(parts),
        }
    }
}

impl Table {
    /// Puts parts that were not run back to the front.
    pub fn return_parts(&mut self, parts: Vec<RecordBatch>) {
        for part in parts.into_iter().rev() {
            self.buffered.push_front(part);
        }
    }
}

/// A stream exported to another library.
#[derive(Debug)]
pub struct ExportedStream(FFI_ArrowArrayStream);

impl ExportedStream {
    pub fn new(reader: Box<dyn RecordBatchReader + Send>) -> Self {
        Self(FFI_ArrowArrayStream::new(reader))
    }

    /// Returns the structure of the C stream interface.
    pub fn into_inner(self) -> FFI_ArrowArrayStream {
        self.0
    }
}
