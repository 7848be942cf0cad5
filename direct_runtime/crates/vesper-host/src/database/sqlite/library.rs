//! The SQLite library of the process, loaded at run time: functions, connections and their callbacks.
//!
//! Two SQLite libraries in one process must not open the same file: closing a file in one of them drops the locks of
//! the other. Business databases are open in Python's `sqlite3` as well, so they use the library that it uses.

use std::cell::{Cell as Slot, RefCell};
use std::ffi::{CStr, CString, c_char, c_double, c_int, c_void};
use std::fmt;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Instant;

use super::connection::Connection;

pub(super) const OPEN_READ_ONLY: c_int = 0x1;
pub(super) const OPEN_READ_WRITE: c_int = 0x2;
pub(super) const OPEN_CREATE: c_int = 0x4;
pub(super) const LIMIT_LENGTH: c_int = 0;

pub(super) const OK: c_int = 0;
const DENY: c_int = 1;
pub(super) const ROW: c_int = 100;
pub(super) const DONE: c_int = 101;
pub(super) const MISUSE: c_int = 21;
const NO_MEMORY: c_int = 7;

/// Instructions of SQLite's machine between two checks of the deadline: some tens of microseconds.
const STEPS_PER_CHECK: c_int = 4_000;

pub(super) type Raw = *mut c_void;
type Progress = unsafe extern "C" fn(Raw) -> c_int;
type Authorization =
    unsafe extern "C" fn(Raw, c_int, *const c_char, *const c_char, *const c_char, *const c_char) -> c_int;

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// Functions of the library. INVARIANT: `library` stays loaded as long as they are used.
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            _library: libloading::Library,
        }

        impl Functions {
            fn find(library: libloading::Library) -> Result<Self, String> {
                $(
                    let name = concat!("sqlite3_", stringify!($name));
                    // SAFETY: the type is that of the function with this name in SQLite's C API, which is stable.
                    let $name = unsafe {
                        library.get::<unsafe extern "C" fn($($argument),*) $(-> $result)?>(name)
                    };
                    let $name = *$name.map_err(|_| format!("it has no function `{name}`"))?;
                )*
                Ok(Self { $($name,)* _library: library })
            }
        }
    };
}

functions! {
    libversion: fn() -> *const c_char;
    threadsafe: fn() -> c_int;
    open_v2: fn(*const c_char, *mut Raw, c_int, *const c_char) -> c_int;
    close_v2: fn(Raw) -> c_int;
    errmsg: fn(Raw) -> *const c_char;
    errstr: fn(c_int) -> *const c_char;
    extended_errcode: fn(Raw) -> c_int;
    busy_timeout: fn(Raw, c_int) -> c_int;
    limit: fn(Raw, c_int, c_int) -> c_int;
    get_autocommit: fn(Raw) -> c_int;
    changes: fn(Raw) -> c_int;
    progress_handler: fn(Raw, c_int, Option<Progress>, Raw);
    set_authorizer: fn(Raw, Option<Authorization>, Raw) -> c_int;
    prepare_v2: fn(Raw, *const c_char, c_int, *mut Raw, *mut *const c_char) -> c_int;
    finalize: fn(Raw) -> c_int;
    reset: fn(Raw) -> c_int;
    clear_bindings: fn(Raw) -> c_int;
    step: fn(Raw) -> c_int;
    stmt_readonly: fn(Raw) -> c_int;
    bind_parameter_count: fn(Raw) -> c_int;
    bind_parameter_name: fn(Raw, c_int) -> *const c_char;
    bind_null: fn(Raw, c_int) -> c_int;
    bind_int64: fn(Raw, c_int, i64) -> c_int;
    bind_double: fn(Raw, c_int, c_double) -> c_int;
    bind_text: fn(Raw, c_int, *const c_char, c_int, Raw) -> c_int;
    bind_blob: fn(Raw, c_int, *const c_void, c_int, Raw) -> c_int;
    bind_zeroblob: fn(Raw, c_int, c_int) -> c_int;
    column_count: fn(Raw) -> c_int;
    column_name: fn(Raw, c_int) -> *const c_char;
    column_type: fn(Raw, c_int) -> c_int;
    column_int64: fn(Raw, c_int) -> i64;
    column_double: fn(Raw, c_int) -> c_double;
    column_text: fn(Raw, c_int) -> *const c_char;
    column_blob: fn(Raw, c_int) -> *const c_void;
    column_bytes: fn(Raw, c_int) -> c_int;
}

/// A loaded library.
#[derive(Clone)]
pub struct Library(pub(super) Arc<Functions>);

impl fmt::Debug for Library {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Library({})", self.version())
    }
}

impl Library {
    /// Loads the library that the file at `path` uses: the library itself or a module that depends on it.
    ///
    /// Without a path the functions are those of the program and its global libraries. The version must be `version`:
    /// another library than the expected one is refused.
    pub fn load(path: Option<&Path>, version: &str) -> Result<Self, String> {
        let found = match path {
            // SAFETY: the file is one that the process has loaded already, or SQLite itself: its initializers are safe.
            Some(path) => unsafe { libloading::Library::new(path) }.map_err(|error| error.to_string())?,
            None => libloading::os::unix::Library::this().into(),
        };
        let library = Self(Arc::new(Functions::find(found)?));
        // SAFETY: the function takes nothing.
        if unsafe { (library.0.threadsafe)() } == 0 {
            return Err("it was built for one thread only".to_owned());
        }
        if library.version() != version {
            return Err(format!(
                "its version is {}, and {version} is expected",
                library.version()
            ));
        }
        Ok(library)
    }

    /// Returns the version of the library.
    pub fn version(&self) -> String {
        // SAFETY: the function takes nothing, and gives a constant text.
        text_of(unsafe { (self.0.libversion)() }).unwrap_or_default()
    }

    /// Opens a file.
    pub fn open(&self, path: &Path, flags: c_int) -> Result<Connection, SqliteError> {
        let path = CString::new(path.as_os_str().as_encoded_bytes())
            .map_err(|_| SqliteError::new(MISUSE, "a path has no NUL character"))?;
        let mut raw: Raw = ptr::null_mut();
        // SAFETY: the path ends in NUL, and `raw` is a place for the handle.
        let code = unsafe { (self.0.open_v2)(path.as_ptr(), &raw mut raw, flags, ptr::null()) };
        let Some(raw) = NonNull::new(raw) else {
            return Err(SqliteError::new(NO_MEMORY, "out of memory"));
        };
        // From here on the handle is closed with the connection, even after a failure, as SQLite asks for.
        #[expect(
            clippy::arc_with_non_send_sync,
            reason = "shared with the callbacks, on the thread of the connection"
        )]
        let hooks = Arc::new(Hooks::default());
        let connection = Connection::new(self.clone(), raw, Arc::clone(&hooks));
        if code != OK {
            return Err(connection.error(code));
        }
        let hooks = Arc::as_ptr(&hooks).cast_mut().cast::<c_void>();
        // SAFETY: `hooks` lives as long as the connection, which calls back only from within its own functions.
        unsafe {
            (self.0.progress_handler)(raw.as_ptr(), STEPS_PER_CHECK, Some(on_progress), hooks);
            (self.0.set_authorizer)(raw.as_ptr(), Some(on_authorization), hooks);
        }
        Ok(connection)
    }
}

/// Error of SQLite: its extended code and its message, which names no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteError {
    pub code: c_int,
    pub message: String,
}

impl SqliteError {
    pub fn new(code: c_int, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }
}

/// A parameter of a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Parameter<'a> {
    Null,
    Integer(i64),
    Float(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

/// What a statement does, as SQLite reports it while it is compiled.
#[derive(Debug)]
pub struct Action<'a> {
    pub code: c_int,
    pub first: &'a str,
    pub second: &'a str,
    /// The view or trigger that does it.
    pub source: Option<&'a str>,
}

/// Decision about the actions of a statement.
pub trait Authorizer: Send + Sync {
    fn allows(&self, action: &Action<'_>) -> bool;
}

/// State of a connection that its callbacks read. Only the thread that uses the connection touches it.
#[derive(Default)]
pub(super) struct Hooks {
    pub(super) deadline: Slot<Option<Instant>>,
    pub(super) authorizer: RefCell<Option<Arc<dyn Authorizer>>>,
}

unsafe extern "C" fn on_progress(hooks: Raw) -> c_int {
    // SAFETY: the pointer is that of the connection's hooks, as registered in `Library::open`.
    let hooks = unsafe { &*hooks.cast::<Hooks>() };
    c_int::from(hooks.deadline.get().is_some_and(|at| Instant::now() >= at))
}

unsafe extern "C" fn on_authorization(
    hooks: Raw,
    code: c_int,
    first: *const c_char,
    second: *const c_char,
    _database: *const c_char,
    source: *const c_char,
) -> c_int {
    // SAFETY: the pointer is that of the connection's hooks, as registered in `Library::open`.
    let hooks = unsafe { &*hooks.cast::<Hooks>() };
    let Ok(authorizer) = hooks.authorizer.try_borrow() else {
        return DENY;
    };
    let Some(authorizer) = authorizer.as_ref() else {
        return OK;
    };
    let (first, second, source) = (text_of(first), text_of(second), text_of(source));
    let action = Action {
        code,
        first: first.as_deref().unwrap_or(""),
        second: second.as_deref().unwrap_or(""),
        source: source.as_deref(),
    };
    if authorizer.allows(&action) { OK } else { DENY }
}

/// Returns a text of the library; None for a null pointer.
pub(super) fn text_of(raw: *const c_char) -> Option<String> {
    // SAFETY: the library gives null, or a text that ends in NUL and lives until its next call.
    (!raw.is_null()).then(|| unsafe { CStr::from_ptr(raw) }.to_string_lossy().into_owned())
}
