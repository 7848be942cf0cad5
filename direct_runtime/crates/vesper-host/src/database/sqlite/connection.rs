//! A connection of the SQLite library of the process, and the rows that it reads.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Instant;

use super::library::{
    Authorizer, DONE, Hooks, Library, MISUSE, OK, Parameter, ROW, Raw, SqliteError, text_of,
};
use crate::database::values::Cell;

/// Compiled statements that a connection keeps.
const MAX_STATEMENTS: usize = 128;

/// A compiled statement. INVARIANT: its connection finalizes it before the connection is closed.
struct Compiled {
    raw: NonNull<c_void>,
    last_use: u64,
}

/// A connection, used by one thread at a time.
pub struct Connection {
    library: Library,
    raw: NonNull<c_void>,
    hooks: Arc<Hooks>,
    /// Statements of Vesper, and statements of nodes: only the latter were authorized.
    statements: [HashMap<Box<str>, Compiled>; 2],
    uses: u64,
}

// SAFETY: the library is built for threads (`Library::load`), so a connection may move between them; every use needs
// it exclusively, or reads its state only.
unsafe impl Send for Connection {}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Connection")
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let functions = &self.library.0;
        for compiled in self.statements.iter().flat_map(HashMap::values) {
            // SAFETY: the statement belongs to this connection and is not used any more.
            unsafe { (functions.finalize)(compiled.raw.as_ptr()) };
        }
        // SAFETY: the handle is open, and nothing uses it any more.
        unsafe { (functions.close_v2)(self.raw.as_ptr()) };
    }
}

/// A row that was just read.
#[derive(Debug)]
pub struct Row<'a> {
    connection: &'a Connection,
    statement: Raw,
    pub columns: usize,
}

impl Connection {
    /// Owns an open handle, whose callbacks read these hooks.
    pub(super) fn new(library: Library, raw: NonNull<c_void>, hooks: Arc<Hooks>) -> Self {
        Self {
            library,
            raw,
            hooks,
            statements: [HashMap::new(), HashMap::new()],
            uses: 0,
        }
    }

    /// Sets the moment at which a running statement is interrupted.
    pub fn set_deadline(&mut self, at: Option<Instant>) {
        self.hooks.deadline.set(at);
    }

    /// Sets the time that SQLite itself waits for a lock, in milliseconds.
    pub fn set_busy_timeout(&mut self, milliseconds: c_int) {
        // SAFETY: the handle is open.
        unsafe { (self.library.0.busy_timeout)(self.raw.as_ptr(), milliseconds) };
    }

    /// Sets a limit of the connection (`LIMIT_LENGTH`).
    pub fn set_limit(&mut self, limit: c_int, value: c_int) {
        // SAFETY: the handle is open.
        unsafe { (self.library.0.limit)(self.raw.as_ptr(), limit, value) };
    }

    /// Returns true while a transaction is open.
    pub fn in_transaction(&self) -> bool {
        // SAFETY: the handle is open.
        unsafe { (self.library.0.get_autocommit)(self.raw.as_ptr()) == 0 }
    }

    /// Executes a statement, without looking at its rows.
    pub fn execute(&mut self, sql: &str) -> Result<u64, SqliteError> {
        self.run(sql, &|_| None, None, &mut |_| Ok(true))
    }

    /// Executes a statement whose parameters `value_of` gives by name, and shows each row to `on_row` until that
    /// returns false. Returns the number of rows that it changed.
    ///
    /// With an authorizer the statement may do only what that allows; a compiled statement was asked before.
    pub fn run<'v>(
        &mut self,
        sql: &str,
        value_of: &dyn Fn(&str) -> Option<Parameter<'v>>,
        authorizer: Option<Arc<dyn Authorizer>>,
        on_row: &mut dyn FnMut(&Row<'_>) -> Result<bool, SqliteError>,
    ) -> Result<u64, SqliteError> {
        let is_guarded = authorizer.is_some();
        self.hooks.authorizer.replace(authorizer);
        let result = self.compiled(sql, is_guarded).and_then(|statement| {
            let result = self.step_through(statement, value_of, on_row);
            let functions = &self.library.0;
            // SAFETY: the statement is compiled. Bound texts are borrowed until here and not longer.
            unsafe {
                (functions.reset)(statement);
                (functions.clear_bindings)(statement);
            }
            result
        });
        self.hooks.authorizer.replace(None);
        result
    }

    fn step_through<'v>(
        &self,
        statement: Raw,
        value_of: &dyn Fn(&str) -> Option<Parameter<'v>>,
        on_row: &mut dyn FnMut(&Row<'_>) -> Result<bool, SqliteError>,
    ) -> Result<u64, SqliteError> {
        let functions = &self.library.0;
        self.bind(statement, value_of)?;
        loop {
            // SAFETY: the statement is compiled and its parameters are alive.
            match unsafe { (functions.step)(statement) } {
                ROW => {
                    // SAFETY: the statement is compiled.
                    let columns = unsafe { (functions.column_count)(statement) };
                    let row = Row {
                        connection: self,
                        statement,
                        columns: usize::try_from(columns).unwrap_or(0),
                    };
                    if !on_row(&row)? {
                        return Ok(0);
                    }
                }
                DONE => break,
                code => return Err(self.error(code)),
            }
        }
        // SAFETY: the statement is compiled, the handle open.
        let changes = unsafe {
            match (functions.stmt_readonly)(statement) {
                0 => (functions.changes)(self.raw.as_ptr()),
                _ => 0,
            }
        };
        Ok(u64::try_from(changes).unwrap_or(0))
    }

    fn bind<'v>(
        &self,
        statement: Raw,
        value_of: &dyn Fn(&str) -> Option<Parameter<'v>>,
    ) -> Result<(), SqliteError> {
        let functions = &self.library.0;
        // SAFETY: the statement is compiled.
        let count = unsafe { (functions.bind_parameter_count)(statement) };
        for place in 1..=count {
            // SAFETY: the statement is compiled, and has so many parameters.
            let name = text_of(unsafe { (functions.bind_parameter_name)(statement, place) });
            let name = name.as_deref().map_or("", |name| name.get(1..).unwrap_or(""));
            let value = value_of(name).ok_or_else(|| {
                SqliteError::new(
                    MISUSE,
                    format!("You did not supply a value for binding parameter :{name}."),
                )
            })?;
            let code = self.bind_one(statement, place, value);
            if code != OK {
                return Err(self.error(code));
            }
        }
        Ok(())
    }

    fn bind_one(&self, statement: Raw, place: c_int, value: Parameter<'_>) -> c_int {
        const TOO_BIG: c_int = 18;
        let functions = &self.library.0;
        // A null destructor: SQLite reads the memory, which outlives the bindings (`run` clears them).
        let kept = ptr::null_mut();
        // SAFETY: the statement is compiled and has this parameter; lengths are those of the slices.
        unsafe {
            match value {
                Parameter::Null => (functions.bind_null)(statement, place),
                Parameter::Integer(number) => (functions.bind_int64)(statement, place, number),
                Parameter::Float(number) => (functions.bind_double)(statement, place, number),
                Parameter::Text(text) => match c_int::try_from(text.len()) {
                    Ok(length) => (functions.bind_text)(statement, place, text.as_ptr().cast(), length, kept),
                    Err(_) => TOO_BIG,
                },
                // An empty slice may have any address, and null would be NULL.
                Parameter::Bytes([]) => (functions.bind_zeroblob)(statement, place, 0),
                Parameter::Bytes(bytes) => match c_int::try_from(bytes.len()) {
                    Ok(length) => {
                        (functions.bind_blob)(statement, place, bytes.as_ptr().cast(), length, kept)
                    }
                    Err(_) => TOO_BIG,
                },
            }
        }
    }

    fn compiled(&mut self, sql: &str, is_guarded: bool) -> Result<Raw, SqliteError> {
        self.uses += 1;
        let [own, guarded] = &mut self.statements;
        let statements = if is_guarded { guarded } else { own };
        if let Some(found) = statements.get_mut(sql) {
            found.last_use = self.uses;
            return Ok(found.raw.as_ptr());
        }
        let functions = &self.library.0;
        let length =
            c_int::try_from(sql.len()).map_err(|_| SqliteError::new(MISUSE, "the SQL is too long"))?;
        let mut raw: Raw = ptr::null_mut();
        // SAFETY: the handle is open, the length is that of the text, and `raw` is a place for the statement.
        let code = unsafe {
            (functions.prepare_v2)(
                self.raw.as_ptr(),
                sql.as_ptr().cast(),
                length,
                &raw mut raw,
                ptr::null_mut(),
            )
        };
        if code != OK {
            return Err(self.error(code));
        }
        let raw = NonNull::new(raw).ok_or_else(|| SqliteError::new(MISUSE, "the SQL is empty"))?;
        let last_use = self.uses;
        if statements.len() >= MAX_STATEMENTS
            && let Some(oldest) = statements
                .iter()
                .min_by_key(|(_, each)| each.last_use)
                .map(|(sql, _)| sql.clone())
            && let Some(compiled) = statements.remove(&oldest)
        {
            // SAFETY: the statement belongs to this connection and is not used any more.
            unsafe { (functions.finalize)(compiled.raw.as_ptr()) };
        }
        statements.insert(Box::from(sql), Compiled { raw, last_use });
        Ok(raw.as_ptr())
    }

    /// Returns the last error of the connection.
    pub(super) fn error(&self, code: c_int) -> SqliteError {
        let functions = &self.library.0;
        // SAFETY: the handle is open; the texts live until the next call and are copied.
        unsafe {
            let extended = (functions.extended_errcode)(self.raw.as_ptr());
            if extended & 0xFF == code & 0xFF {
                SqliteError::new(
                    extended,
                    text_of((functions.errmsg)(self.raw.as_ptr())).unwrap_or_default(),
                )
            } else {
                SqliteError::new(code, text_of((functions.errstr)(code)).unwrap_or_default())
            }
        }
    }
}

impl Row<'_> {
    /// Returns the name of a column.
    pub fn name(&self, column: usize) -> String {
        let functions = &self.connection.library.0;
        let column = c_int::try_from(column).unwrap_or(c_int::MAX);
        // SAFETY: the statement has a row; SQLite gives null for a column that it does not have.
        text_of(unsafe { (functions.column_name)(self.statement, column) }).unwrap_or_default()
    }

    /// Returns the value of a column.
    pub fn cell(&self, column: usize) -> Cell {
        let functions = &self.connection.library.0;
        let (statement, column) = (self.statement, c_int::try_from(column).unwrap_or(c_int::MAX));
        // SAFETY: the statement has a row; SQLite gives NULL for a column that it does not have. The bytes live until
        // the next step and are copied. A text is asked for before its length, as SQLite wants it.
        unsafe {
            match (functions.column_type)(statement, column) {
                1 => Cell::Integer((functions.column_int64)(statement, column)),
                2 => Cell::Float((functions.column_double)(statement, column)),
                3 => {
                    let start = (functions.column_text)(statement, column).cast::<u8>();
                    Cell::of_text(bytes_at(start, (functions.column_bytes)(statement, column)))
                }
                4 => {
                    let start = (functions.column_blob)(statement, column).cast::<u8>();
                    Cell::Bytes(bytes_at(start, (functions.column_bytes)(statement, column)))
                }
                _ => Cell::Null,
            }
        }
    }
}

/// Copies bytes of the library.
///
/// # Safety
///
/// `start` is null, or points to `length` bytes.
unsafe fn bytes_at(start: *const u8, length: c_int) -> Vec<u8> {
    match usize::try_from(length) {
        // SAFETY: as the caller promises.
        Ok(length) if !start.is_null() => unsafe { std::slice::from_raw_parts(start, length) }.to_vec(),
        _ => Vec::new(),
    }
}
