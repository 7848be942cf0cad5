//! Errors of the journal and of the run loop as exceptions of Python.

use std::cell::RefCell;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use vesper_host::journal::{ErrorKind, JournalError};

const MODULE: &str = "vesper.journal.errors";
static CLASSES: [PyOnceLock<Py<PyType>>; 7] = [const { PyOnceLock::new() }; 7];
/// The kinds of errors with the names of their exceptions; the base class is last.
const NAMES: [(ErrorKind, &str); 7] = [
    (ErrorKind::TooLarge, "TooLarge"),
    (ErrorKind::Fenced, "Fenced"),
    (ErrorKind::NotTaken, "NotTaken"),
    (ErrorKind::UnknownExecution, "UnknownExecution"),
    (ErrorKind::Unchecked, "Unchecked"),
    (ErrorKind::KeyTaken, "KeyTaken"),
    (ErrorKind::Journal, "JournalError"),
];

thread_local! {
    /// The exception that ended a wait or a call of this thread, and that an error of the journal stands for.
    static INTERRUPT: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Runs handlers of signals; returns true where one raised, which ends the wait. For `vesper_host::interrupts`.
pub(crate) fn check_signals() -> bool {
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method itself holds for one lifetime only"
    )]
    let raised = Python::attach(|py| py.check_signals()).err();
    let is_raised = raised.is_some();
    INTERRUPT.set(raised);
    is_raised
}

/// Keeps an exception of a call inside the journal: the error that follows is raised as this exception.
pub(crate) fn keep_exception(raised: PyErr) {
    INTERRUPT.set(Some(raised));
}

/// Returns the exception of an error of the journal, or the one that caused it.
pub(crate) fn journal_exception(py: Python<'_>, error: &JournalError) -> PyErr {
    if let Some(raised) = INTERRUPT.take() {
        return raised;
    }
    for (class, (kind, name)) in CLASSES.iter().zip(NAMES) {
        if kind == error.kind {
            return match class.import(py, MODULE, name) {
                Ok(class) => PyErr::from_type(class.clone(), error.message.clone()),
                Err(other) => other,
            };
        }
    }
    pyo3::exceptions::PyRuntimeError::new_err(error.message.clone())
}

/// Returns the error of the journal that an exception reports; None for other exceptions.
pub(crate) fn journal_error(py: Python<'_>, error: &PyErr) -> Option<JournalError> {
    for (class, (kind, name)) in CLASSES.iter().zip(NAMES) {
        let class = class.import(py, MODULE, name).ok()?;
        if error.is_instance(py, class) {
            return Some(JournalError::new(kind, error.value(py).to_string()));
        }
    }
    None
}
