//! Runs of coroutines: workers of the runtime advance them, and a run that waits has no thread.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use vesper_host::runtime;
use vesper_interp::guard::guarded;

use crate::host::context::{attached, with_context};
use crate::host::run::Running;

/// The limit of runs that are advanced at the same time.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct RunWorkers {
    places: Arc<Semaphore>,
}

#[pymethods]
impl RunWorkers {
    #[new]
    #[pyo3(signature = (workers, /))]
    fn new(workers: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(workers.clamp(1, Semaphore::MAX_PERMITS))),
        }
    }

    /// Advances a run in a copied context. `begin` returns the run, its execution and the size of its inputs, or None
    /// where there is nothing to run; `finish` receives the outcome or the exception.
    #[pyo3(signature = (context, begin, finish, /))]
    fn spawn(&self, py: Python<'_>, context: Py<PyAny>, begin: Py<PyAny>, finish: Py<PyAny>) -> PyResult<()> {
        let spawned = Spawned {
            finish: finish.clone_ref(py),
            places: Arc::clone(&self.places),
            waiting: None,
            context: Some(context),
            run: Box::pin(run(begin, finish)),
        };
        runtime::spawn(spawned).map_err(|error| PyRuntimeError::new_err(error.0))
    }
}

async fn run(begin: Py<PyAny>, finish: Py<PyAny>) {
    let outcome = match attached(|py| begun(begin.bind(py))) {
        Ok(Some((running, execution, size))) => running.get().advance(execution, size).await,
        Ok(None) => Ok(None),
        Err(error) => Err(error),
    };
    report(&finish, outcome);
}

/// Reports the end of a run to its caller.
fn report(finish: &Py<PyAny>, outcome: PyResult<Option<Py<PyAny>>>) {
    attached(|py| {
        let finished = match outcome {
            Ok(outcome) => finish.call1(py, (outcome, py.None())),
            Err(error) => finish.call1(py, (py.None(), error.into_value(py))),
        };
        if let Err(error) = finished {
            error.write_unraisable(py, Some(finish.bind(py)));
        }
    });
}

type Begun = (Py<Running>, Py<PyAny>, u64);

fn begun(begin: &Bound<'_, PyAny>) -> PyResult<Option<Begun>> {
    begin.call0()?.extract()
}

type Waiting = Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>;

/// A run that is advanced only where a place is free.
struct Spawned {
    places: Arc<Semaphore>,
    waiting: Option<Waiting>,
    context: Option<Py<PyAny>>,
    /// For a run that panics, whose caller would wait for ever.
    finish: Py<PyAny>,
    run: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Future for Spawned {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let places = &this.places;
        let waiting = this.waiting.get_or_insert_with(|| {
            let places = Arc::clone(places);
            Box::pin(async move { places.acquire_owned().await.ok() })
        });
        let Poll::Ready(place) = waiting.as_mut().poll(context) else {
            return Poll::Pending;
        };
        this.waiting = None;
        let polled = with_context(&mut this.context, || guarded(|| this.run.as_mut().poll(context)));
        drop(place);
        polled.unwrap_or_else(|panic| {
            report(&this.finish, Err(PyRuntimeError::new_err(panic)));
            Poll::Ready(())
        })
    }
}
